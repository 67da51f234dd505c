/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: kernels of 0.05 to 2 ms. Where all devices work in home memory such a kernel goes
 * straight to one if nothing else is under way, or behind another one, and nobody may wait for it:
 * each test begins with one that is alone, and comes to its end in another way.
 */
#include "support.h"

#include "task_counts.h"

#include <pthread.h>
#include <unistd.h>

enum { N = 64, BYTES = N * sizeof(cl_int), ROUNDS = 20, MANY = 40, THREADS = 4, WORK = 4000 };

static const char source[] =
    "kernel void add(global int *data, int rounds, int by) {"
    "    uint noise = get_global_id(0);"
    "    for (int i = 0; i < rounds; i++) noise = noise * 1664525u + 1013904223u;"
    "    data[get_global_id(0)] += noise == 7u && rounds < 0 ? 0 : by;"
    "}";

static cl_program program;
static cl_kernel kernel;
static cl_mem data;

static cl_mem make_zeros(void) {
    static cl_int zeros[N];
    cl_int failed;
    cl_mem buffer = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, BYTES, zeros, &failed);
    ck_ok(failed);
    return buffer;
}

static cl_event run(cl_command_queue in, cl_kernel with, cl_mem buffer, cl_int by, cl_uint count,
                    const cl_event *list) {
    size_t items = N;
    cl_int work = WORK;
    cl_event event;
    ck_ok(clSetKernelArg(with, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(with, 1, sizeof(work), &work));
    ck_ok(clSetKernelArg(with, 2, sizeof(by), &by));
    ck_ok(clEnqueueNDRangeKernel(in, with, 1, NULL, &items, NULL, count, list, &event));
    return event;
}

static void drop(cl_event event) { ck_ok(clReleaseEvent(event)); }

/* Until it is known how long the kernel takes, in µs. */
static double begin(void) {
    cl_command_queue timed = make_queue(CL_QUEUE_PROFILING_ENABLE);
    cl_ulong start = 0, end = 0;
    program = make_program(source);
    kernel = make_kernel(program, "add");
    data = make_zeros();
    for (int i = 0; i < 10; i++) {
        cl_event event = run(timed, kernel, data, 0, 0, NULL);
        ck_ok(clFinish(timed));
        start = get_info(cl_ulong, clGetEventProfilingInfo, event, CL_PROFILING_COMMAND_START);
        end = get_info(cl_ulong, clGetEventProfilingInfo, event, CL_PROFILING_COMMAND_END);
        drop(event);
    }
    ck_ok(clReleaseCommandQueue(timed));
    test_went_directly();
    return (double)(end - start) / 1000;
}

static void end(void) {
    ck_ok(clReleaseMemObject(data));
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(program));
}

static void ck_holds(cl_mem buffer, cl_int expected) {
    cl_int values[N];
    ck_ok(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, BYTES, values, 0, NULL, NULL));
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(values[i], expected);
}

START_TEST(waited_for) {
    double length = begin();
    bool may = no_device_memory() && length > 100 && length < 1000;
    int runs = 0, directly = 0;
    /* A run that others kept from its core makes the kernel look longer, for some runs more. */
    while (runs < ROUNDS || (may && !directly && runs < 50 * ROUNDS)) {
        drop(run(queue, kernel, data, 1, 0, NULL));
        ck_ok(clFinish(queue));
        runs++;
        directly += test_went_directly();
    }
    if (may)
        ck_assert_int_gt(directly, 0);
    for (int i = 1; i <= ROUNDS; i++) {
        drop(run(queue, kernel, data, 1, 0, NULL));
        ck_holds(data, runs + i);
    }
    end();
}
END_TEST

START_TEST(looked_at) {
    begin();
    for (int i = 1; i <= ROUNDS; i++) {
        cl_event event = run(queue, kernel, data, 1, 0, NULL);
        if (i % 2)
            ck_ok(clFlush(queue));
        while (get_info(cl_int, clGetEventInfo, event, CL_EVENT_COMMAND_EXECUTION_STATUS) !=
               CL_COMPLETE)
            usleep(50);
        drop(event);
        ck_holds(data, i);
    }
    end();
}
END_TEST

/* Tasks of StarPU's that were expected to be shorter than the kernels, since the last call. */
static int short_tasks(void) {
    char line[512];
    int count = 0;
    FILE *log = test_log_open();
    ck_assert_ptr_nonnull(log);
    while (fgets(line, sizeof(line), log)) {
        const char *length = strstr(line, "a task is expected") ? strstr(line, "to take ") : NULL;
        count += length && strtod(length + strlen("to take "), NULL) < 50;
    }
    test_log_close(log);
    return count;
}

/* What moves nothing is done where the kernel ends, and is no task of StarPU's. */
START_TEST(maps_behind_them) {
    cl_mem buffer[ROUNDS];
    void *mapped[ROUNDS];
    double length = begin();
    bool may = no_device_memory() && length > 100 && !getenv("TUTTI_BATCH");
    for (int i = 0; i < ROUNDS; i++)
        buffer[i] = make_zeros();
    short_tasks();
    for (int i = 0; i < ROUNDS; i++) {
        cl_int failed;
        drop(run(queue, kernel, buffer[i], 1 + i, 0, NULL));
        mapped[i] = clEnqueueMapBuffer(queue, buffer[i], CL_FALSE, CL_MAP_READ, 0, BYTES, 0, NULL,
                                       NULL, &failed);
        ck_ok(failed);
    }
    ck_ok(clFinish(queue));
    int tasks = short_tasks();
    if (may)
        ck_assert_int_eq(tasks, 0);
    for (int i = 0; i < ROUNDS; i++) {
        ck_assert_int_eq(((cl_int *)mapped[i])[N - 1], 1 + i);
        ck_ok(clEnqueueUnmapMemObject(queue, buffer[i], mapped[i], 0, NULL, NULL));
        ck_ok(clReleaseMemObject(buffer[i]));
    }
    end();
}
END_TEST

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t called = PTHREAD_COND_INITIALIZER;
static int calls;

static void CL_CALLBACK count_call(cl_event event, cl_int status, void *unused) {
    (void)event;
    (void)status;
    (void)unused;
    pthread_mutex_lock(&lock);
    calls++;
    pthread_cond_signal(&called);
    pthread_mutex_unlock(&lock);
}

START_TEST(told_by_a_callback) {
    begin();
    for (int i = 1; i <= ROUNDS; i++) {
        cl_event event = run(queue, kernel, data, 1, 0, NULL);
        ck_ok(clSetEventCallback(event, CL_COMPLETE, count_call, NULL));
        pthread_mutex_lock(&lock);
        while (calls < i)
            pthread_cond_wait(&called, &lock);
        pthread_mutex_unlock(&lock);
        drop(event);
    }
    ck_holds(data, ROUNDS);
    end();
}
END_TEST

/* What comes behind it in this queue, in another one, and beside it. */
START_TEST(followed_by_others) {
    begin();
    cl_command_queue other = make_queue(0);
    cl_mem second = make_zeros(), third = make_zeros();
    cl_kernel twin = make_kernel(program, "add");
    for (int i = 1; i <= ROUNDS; i++) {
        cl_event first = run(queue, kernel, data, 1, 0, NULL);
        drop(run(queue, kernel, data, 1, 0, NULL));
        cl_event copied;
        ck_ok(clEnqueueCopyBuffer(queue, data, second, 0, 0, BYTES, 0, NULL, &copied));
        drop(run(other, twin, third, 1, 1, &first));
        drop(run(other, twin, second, 1, 1, &copied));
        ck_ok(clFinish(other));
        ck_holds(data, 2 * i);
        ck_holds(second, 2 * i + 1);
        ck_holds(third, i);
        drop(first);
        drop(copied);
    }
    ck_ok(clReleaseKernel(twin));
    ck_ok(clReleaseMemObject(second));
    ck_ok(clReleaseMemObject(third));
    ck_ok(clReleaseCommandQueue(other));
    end();
}
END_TEST

/* The host's memory is looked at, or goes, at once. */
START_TEST(memory_of_the_program) {
    begin();
    for (int i = 0; i < ROUNDS; i++) {
        cl_int *own = calloc(N, sizeof(*own));
        cl_mem buffer = ck_made(clCreateBuffer(context, CL_MEM_USE_HOST_PTR, BYTES, own, &error));
        drop(run(queue, kernel, buffer, 5, 0, NULL));
        if (i % 2) {
            const cl_int *mapped = ck_made(clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ,
                                                              0, BYTES, 0, NULL, NULL, &error));
            for (int j = 0; j < N; j++)
                ck_assert_int_eq(mapped[j], 5);
            ck_ok(clEnqueueUnmapMemObject(queue, buffer, own, 0, NULL, NULL));
        } else {
            ck_ok(clFinish(queue));
        }
        ck_ok(clReleaseMemObject(buffer));
        for (int j = 0; j < N && i % 2; j++) /* only a map brings it there (5.2.1) */
            ck_assert_int_eq(own[j], 5);
        free(own);
    }
    end();
}
END_TEST

/* Nobody waits for it, and its objects go. */
START_TEST(left_alone) {
    begin();
    for (int i = 0; i < ROUNDS; i++) {
        cl_mem buffer = make_zeros();
        drop(run(queue, kernel, buffer, 1, 0, NULL));
        ck_ok(clReleaseMemObject(buffer));
        usleep(i % 3 * 300);
    }
    drop(run(queue, kernel, data, 1, 0, NULL));
    end();
}
END_TEST

/* The first of many is alone when it comes. */
START_TEST(the_first_of_many) {
    cl_ulong before[REAL], after[REAL];
    cl_mem buffer[MANY];
    begin();
    for (int i = 0; i < MANY; i++)
        buffer[i] = make_zeros();
    cl_uint count = read_counts(before);
    for (int i = 1; i <= ROUNDS; i++) {
        for (int j = 0; j < MANY; j++)
            drop(run(queue, kernel, buffer[j], 1, 0, NULL));
        ck_ok(clFinish(queue));
    }
    read_counts(after);
    for (cl_uint d = 0; d < count && equal_devices(); d++)
        ck_assert_msg(after[d] > before[d], "real device %u of %u ran nothing", d, count);
    for (int i = 0; i < MANY; i++) {
        ck_holds(buffer[i], ROUNDS);
        ck_ok(clReleaseMemObject(buffer[i]));
    }
    end();
}
END_TEST

/* Each comes after the one before it, but for some on another buffer, and copies between the two.
 */
START_TEST(in_a_row) {
    enum { ROW = 100 };
    begin();
    cl_mem second = make_zeros();
    cl_int here = 0, there = 0;
    for (int i = 1; i <= ROW; i++) {
        drop(run(queue, kernel, data, i, 0, NULL));
        here += i;
        if (i % 7 == 0) {
            drop(run(queue, kernel, second, 1, 0, NULL));
            there++;
        }
        if (i % 23 == 0) {
            ck_ok(clEnqueueCopyBuffer(queue, data, second, 0, 0, BYTES, 0, NULL, NULL));
            there = here;
        }
        if (i % 40 == 0)
            ck_holds(second, there);
    }
    ck_holds(data, here);
    ck_holds(second, there);
    ck_ok(clReleaseMemObject(second));
    end();
}
END_TEST

static void *run_and_wait(void *unused) {
    cl_int failed;
    cl_command_queue own = clCreateCommandQueue(context, device, 0, &failed);
    (void)unused;
    ck_ok(failed);
    cl_kernel with = clCreateKernel(program, "add", &failed);
    ck_ok(failed);
    cl_mem buffer = make_zeros();
    cl_int values[N];
    for (int i = 1; i <= ROUNDS; i++) {
        drop(run(own, with, buffer, 1, 0, NULL));
        ck_ok(clFinish(own));
        ck_ok(clEnqueueReadBuffer(own, buffer, CL_TRUE, 0, BYTES, values, 0, NULL, NULL));
        for (int j = 0; j < N; j++)
            ck_assert_int_eq(values[j], i);
    }
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseKernel(with));
    ck_ok(clReleaseCommandQueue(own));
    return NULL;
}

START_TEST(in_threads) {
    pthread_t thread[THREADS];
    begin();
    for (int t = 0; t < THREADS; t++)
        ck_assert_int_eq(pthread_create(&thread[t], NULL, run_and_wait, NULL), 0);
    for (int t = 0; t < THREADS; t++)
        ck_assert_int_eq(pthread_join(thread[t], NULL), 0);
    end();
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        waited_for,         looked_at,          maps_behind_them,
        told_by_a_callback, followed_by_others, memory_of_the_program,
        left_alone,         the_first_of_many,  in_a_row,
        in_threads,
    };
    return test_main_logged(argc, argv, tests, COUNT(tests));
}
