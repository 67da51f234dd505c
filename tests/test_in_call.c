/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: what the host does soon with a buffer in home memory, which is done in the call that
 * enqueues it where nothing is before it. The log says which are. Whatever is before them, they
 * come in their place; and they leave the same events as others do.
 */
#include "gate.h"

#include "task_counts.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { N = 64, BYTES = N * sizeof(cl_int), ROUNDS = 200, THREADS = 4, MAPS = 4 };

static int at_once(void) { return test_log_count("work at once"); }

/* Do all devices work in the host's memory? */
static bool at_home(void) {
    char names[REAL][64];
    cl_uint number = read_names(names);

    for (cl_uint d = 0; d < number; d++)
        if (strncmp(names[d], "basic", strlen("basic")) && strncmp(names[d], "pthread", 7))
            return false;
    return true;
}

static void ck_times(cl_event event) {
    cl_ulong times[4], zero = 0;
    const cl_profiling_info names[] = {CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_SUBMIT,
                                       CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_END};

    for (size_t i = 0; i < COUNT(names); i++) {
        times[i] = get_info(cl_ulong, clGetEventProfilingInfo, event, names[i]);
        ck_assert_uint_ge(times[i], i ? times[i - 1] : zero + 1);
    }
}

static void ck_event(cl_event event, cl_command_type type) {
    ck_assert_int_eq(get_info(cl_int, clGetEventInfo, event, CL_EVENT_COMMAND_EXECUTION_STATUS),
                     CL_COMPLETE);
    ck_assert_uint_eq(get_info(cl_command_type, clGetEventInfo, event, CL_EVENT_COMMAND_TYPE),
                      type);
    ck_assert_ptr_eq(get_info(cl_command_queue, clGetEventInfo, event, CL_EVENT_COMMAND_QUEUE),
                     queue);
    ck_times(event);
    ck_ok(clReleaseEvent(event));
}

static void ck_holds(cl_mem object, cl_int expected) {
    cl_int seen[N];

    ck_ok(clEnqueueReadBuffer(queue, object, CL_TRUE, 0, BYTES, seen, 0, NULL, NULL));
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(seen[i], expected);
}

static cl_int *map(cl_command_queue on, cl_map_flags flags, cl_event *event) {
    return ck_made(
        clEnqueueMapBuffer(on, buffer, CL_TRUE, flags, 0, BYTES, 0, NULL, event, &error));
}

START_TEST(each_kind_with_its_event) {
    cl_int values[N], pattern = 5;
    cl_event event[6];

    skip_if(!at_home(), "the devices have memory of their own");
    begin();
    cl_mem other = make_buffer(0, BYTES, NULL);
    for (int i = 0; i < N; i++)
        values[i] = 4;
    at_once();
    ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, BYTES, values, 0, NULL, &event[0]));
    ck_ok(clEnqueueReadBuffer(queue, buffer, CL_FALSE, 0, BYTES, values, 0, NULL, &event[1]));
    cl_int *mapped = map(queue, CL_MAP_READ | CL_MAP_WRITE, &event[2]);
    ck_assert_int_eq(mapped[N - 1], 4);
    mapped[0] = 4;
    ck_ok(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, &event[3]));
    ck_assert_int_eq(at_once(), 4);
    ck_event(event[0], CL_COMMAND_WRITE_BUFFER);
    ck_event(event[1], CL_COMMAND_READ_BUFFER);
    ck_event(event[2], CL_COMMAND_MAP_BUFFER);
    ck_event(event[3], CL_COMMAND_UNMAP_MEM_OBJECT);
    ck_holds(buffer, 4);
    ck_ok(
        clEnqueueFillBuffer(queue, other, &pattern, sizeof(pattern), 0, BYTES, 0, NULL, &event[4]));
    ck_event(event[4], CL_COMMAND_FILL_BUFFER);
    ck_holds(other, 5);
    ck_ok(clEnqueueCopyBuffer(queue, other, buffer, 0, 0, BYTES, 0, NULL, &event[5]));
    ck_ok(clWaitForEvents(1, &event[5]));
    ck_event(event[5], CL_COMMAND_COPY_BUFFER);
    ck_holds(buffer, 5);
    ck_ok(clReleaseMemObject(other));
    end();
}
END_TEST

static void count_call(cl_event event, cl_int status, void *calls) {
    (void)event;
    if (status == CL_COMPLETE)
        atomic_fetch_add((atomic_int *)calls, 1);
}

/* Others may wait for such an event, in any queue, and it calls back. */
START_TEST(their_events_are_events) {
    cl_command_queue loose = make_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    cl_int value = 7;
    atomic_int calls = 0;
    cl_event first, second;

    begin();
    ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, sizeof(value), &value, 0, NULL, &first));
    ck_ok(clSetEventCallback(first, CL_COMPLETE, count_call, &calls));
    ck_ok(
        clEnqueueReadBuffer(loose, buffer, CL_FALSE, 0, sizeof(value), &value, 1, &first, &second));
    ck_ok(clWaitForEvents(1, &second));
    ck_ok(clFinish(loose));
    for (int i = 0; i < 2000 && atomic_load(&calls) == 0; i++)
        usleep(1000);
    ck_assert_int_eq(atomic_load(&calls), 1);
    ck_ok(clReleaseEvent(first));
    ck_ok(clReleaseEvent(second));
    ck_ok(clReleaseCommandQueue(loose));
    end();
}
END_TEST

/* What is before it in its queue, or in its wait list, comes first. */
START_TEST(not_before_others) {
    cl_int value = 9, seen = -1;

    begin();
    cl_event filled = fill_after(queue, 3, 1, &gate), written, read;
    at_once();
    ck_ok(
        clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, sizeof(value), &value, 0, NULL, &written));
    ck_ok(clEnqueueReadBuffer(queue, buffer, CL_FALSE, 0, sizeof(seen), &seen, 0, NULL, &read));
    ck_assert_int_eq(at_once(), 0);
    ck_assert_int_gt(get_info(cl_int, clGetEventInfo, read, CL_EVENT_COMMAND_EXECUTION_STATUS),
                     CL_COMPLETE);
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    ck_ok(clWaitForEvents(1, &read));
    ck_assert_int_eq(seen, 9);
    ck_ok(clFinish(queue));
    ck_ok(clReleaseEvent(filled));
    ck_ok(clReleaseEvent(written));
    ck_ok(clReleaseEvent(read));
    end();
}
END_TEST

START_TEST(nor_before_its_wait_list) {
    cl_int value = 9, seen = -1;
    cl_event written;

    begin();
    at_once();
    ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, sizeof(value), &value, 1, &gate,
                               &written));
    ck_assert_int_eq(at_once(), 0);
    ck_assert_int_eq(first_value(), 0);
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    ck_ok(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(seen), &seen, 0, NULL, NULL));
    ck_assert_int_eq(seen, 9);
    ck_ok(clReleaseEvent(written));
    end();
}
END_TEST

START_TEST(nor_after_what_failed) {
    cl_int value = 9;
    cl_event written;

    begin();
    ck_ok(clSetUserEventStatus(gate, -7));
    at_once();
    ck_assert_cl(
        clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, sizeof(value), &value, 1, &gate, NULL),
        ENDED_BY_ANOTHER);
    ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, sizeof(value), &value, 1, &gate,
                               &written));
    ck_assert_int_eq(at_once(), 0);
    ck_assert_cl(clWaitForEvents(1, &written), ENDED_BY_ANOTHER);
    ck_assert_int_eq(first_value(), 0);
    ck_ok(clReleaseEvent(written));
    end();
}
END_TEST

/* A map that is refused, or given back with another pointer, changes nothing. */
START_TEST(maps_are_counted) {
    cl_int *mapped[MAPS];

    begin();
    for (int i = 0; i < MAPS; i++)
        mapped[i] = map(queue, CL_MAP_READ, NULL);
    ck_assert_uint_eq(get_info(cl_uint, clGetMemObjectInfo, buffer, CL_MEM_MAP_COUNT), MAPS);
    ck_assert_cl(clEnqueueUnmapMemObject(queue, buffer, mapped[0] + 1, 0, NULL, NULL),
                 CL_INVALID_VALUE);
    for (int i = 0; i < MAPS; i++)
        ck_ok(clEnqueueUnmapMemObject(queue, buffer, mapped[i], 0, NULL, NULL));
    ck_ok(clFinish(queue));
    ck_assert_uint_eq(get_info(cl_uint, clGetMemObjectInfo, buffer, CL_MEM_MAP_COUNT), 0);
    mapped[0] = map(queue, CL_MAP_WRITE, NULL);
    ck_refused(
        clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_WRITE, 0, BYTES, 0, NULL, NULL, &error),
        CL_INVALID_OPERATION);
    ck_ok(clEnqueueUnmapMemObject(queue, buffer, mapped[0], 0, NULL, NULL));
    ck_assert_ptr_eq(mapped[0], map(queue, CL_MAP_WRITE_INVALIDATE_REGION, NULL));
    ck_ok(clEnqueueUnmapMemObject(queue, buffer, mapped[0], 0, NULL, NULL));
    ck_assert_cl(clEnqueueUnmapMemObject(queue, buffer, mapped[0], 0, NULL, NULL),
                 CL_INVALID_VALUE);
    ck_ok(clFinish(queue));
    end();
}
END_TEST

/* A part of the buffer, of which both are brought up to date. */
START_TEST(with_parts) {
    const cl_buffer_region half = {0, BYTES / 2};
    cl_int seen, value = 8;

    begin();
    cl_mem part =
        ck_made(clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &half, &error));
    for (int i = 0; i < ROUNDS; i++) {
        value = i;
        ck_ok(clEnqueueWriteBuffer(queue, i % 2 ? buffer : part, CL_TRUE, 0, sizeof(value), &value,
                                   0, NULL, NULL));
        ck_ok(clEnqueueReadBuffer(queue, i % 2 ? part : buffer, CL_TRUE, 0, sizeof(seen), &seen, 0,
                                  NULL, NULL));
        ck_assert_int_eq(seen, i);
    }
    ck_ok(clReleaseMemObject(part));
    end();
}
END_TEST

static const char source[] =
    "kernel void add(global int *data, int by) { data[get_global_id(0)] += by; }";

static cl_program program;

struct worker {
    pthread_t thread;
    int number;
    const char *failed;
};

static bool ok(struct worker *worker, cl_int result, const char *what) {
    if (result != CL_SUCCESS && !worker->failed)
        worker->failed = what;
    return !worker->failed;
}

/* Its own buffer goes up, through a kernel, and down, by all ways; all map the common one. */
static void *work(void *argument) {
    struct worker *worker = argument;
    size_t items = N;
    cl_int result, one = 1, values[N];
    cl_command_queue own = clCreateCommandQueue(context, device, 0, &result);
    cl_kernel kernel = ok(worker, result, "queue") ? clCreateKernel(program, "add", &result) : NULL;
    cl_mem data =
        ok(worker, result, "kernel") ? clCreateBuffer(context, 0, BYTES, NULL, &result) : NULL;
    ok(worker, result, "buffer");

    for (int r = 0; r < ROUNDS && !worker->failed; r++) {
        for (int i = 0; i < N; i++)
            values[i] = r + worker->number;
        ok(worker, clEnqueueWriteBuffer(own, data, r % 2, 0, BYTES, values, 0, NULL, NULL),
           "write");
        clSetKernelArg(kernel, 0, sizeof(data), &data);
        clSetKernelArg(kernel, 1, sizeof(one), &one);
        ok(worker, clEnqueueNDRangeKernel(own, kernel, 1, NULL, &items, NULL, 0, NULL, NULL),
           "launch");
        cl_int *seen = clEnqueueMapBuffer(own, data, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, BYTES,
                                          0, NULL, NULL, &result);
        if (!ok(worker, result, "map"))
            break;
        for (int i = 0; i < N; i++)
            if (seen[i]++ != r + worker->number + 1)
                worker->failed = "what the kernel wrote";
        ok(worker, clEnqueueUnmapMemObject(own, data, seen, 0, NULL, NULL), "unmap");
        ok(worker, clEnqueueReadBuffer(own, data, CL_TRUE, 0, BYTES, values, 0, NULL, NULL),
           "read");
        for (int i = 0; i < N; i++)
            if (values[i] != r + worker->number + 2)
                worker->failed = "what the host wrote";
        cl_int *common =
            clEnqueueMapBuffer(own, buffer, CL_TRUE, CL_MAP_READ, 0, BYTES, 0, NULL, NULL, &result);
        if (ok(worker, result, "common map")) {
            if (common[r % N] != 0)
                worker->failed = "the common buffer";
            ok(worker, clEnqueueUnmapMemObject(own, buffer, common, 0, NULL, NULL), "its unmap");
        }
    }
    clFinish(own);
    clReleaseMemObject(data);
    clReleaseKernel(kernel);
    clReleaseCommandQueue(own);
    return NULL;
}

START_TEST(from_threads) {
    struct worker workers[THREADS];

    begin();
    program = make_program(source);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.number = i};
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < THREADS; i++)
        ck_assert_msg(!workers[i].failed, "thread %d: %s", i, workers[i].failed);
    ck_assert_uint_eq(get_info(cl_uint, clGetMemObjectInfo, buffer, CL_MEM_MAP_COUNT), 0);
    ck_ok(clReleaseProgram(program));
    end();
}
END_TEST

/* All that is large goes past the caches, with any ends. */
START_TEST(large_ones_arrive_whole) {
    const size_t large = ((size_t)17 << 20) + 123;
    unsigned char *bytes = malloc(large + 64), *back = malloc(large + 64);

    ck_assert(bytes && back);
    for (size_t i = 0; i < large; i++)
        bytes[i + 5] = (unsigned char)(i * 31 + i / 4096);
    cl_mem object = make_buffer(0, large, NULL);
    ck_ok(clEnqueueWriteBuffer(queue, object, CL_TRUE, 0, large, bytes + 5, 0, NULL, NULL));
    ck_ok(clEnqueueReadBuffer(queue, object, CL_TRUE, 0, large, back + 3, 0, NULL, NULL));
    ck_assert_int_eq(memcmp(bytes + 5, back + 3, large), 0);
    ck_ok(clEnqueueReadBuffer(queue, object, CL_TRUE, 7, large - 9, back, 0, NULL, NULL));
    ck_assert_int_eq(memcmp(bytes + 5 + 7, back, large - 9), 0);
    ck_ok(clReleaseMemObject(object));
    free(bytes);
    free(back);
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        each_kind_with_its_event,
        their_events_are_events,
        not_before_others,
        nor_before_its_wait_list,
        nor_after_what_failed,
        maps_are_counted,
        with_parts,
        from_threads,
        large_ones_arrive_whole,
    };
    return test_main_logged(argc, argv, tests, COUNT(tests));
}
