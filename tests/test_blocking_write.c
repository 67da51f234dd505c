/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: a blocking write returns once its memory may be used again, and what else of its
 * in-order queue uses the program's memory is over; not kernels. A native kernel in another queue
 * holds what must not end.
 */
#include "native.h"

#include <pthread.h>

enum { N = 1024, BYTES = N * sizeof(cl_int) };

static cl_program program;
static cl_kernel set, add;
static cl_command_queue plain; /* without times */
static cl_mem fixed, other;
static cl_int *memory, value = 7;

/* A buffer that never gets other storage: whoever writes it waits for those who use it. */
static void begin(void) {
    program = make_program(common_source);
    set = make_kernel(program, "set");
    add = make_kernel(program, "add");
    plain = make_queue(0);
    memory = calloc(1, BYTES);
    fixed = make_buffer(CL_MEM_USE_HOST_PTR, BYTES, memory);
    other = make_buffer(0, BYTES, NULL);
}

static void end(void) {
    ck_ok(clFinish(plain));
    ck_ok(clReleaseCommandQueue(plain));
    ck_ok(clReleaseMemObject(fixed));
    ck_ok(clReleaseMemObject(other));
    free(memory);
    ck_ok(clReleaseKernel(set));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}

static void run(cl_command_queue on, cl_kernel kernel, cl_mem mem, cl_int by, cl_event *event) {
    const size_t all = N;

    ck_ok(clSetKernelArg(kernel, 0, sizeof(mem), &mem));
    ck_ok(clSetKernelArg(kernel, 1, sizeof(by), &by));
    ck_ok(clEnqueueNDRangeKernel(on, kernel, 1, NULL, &all, NULL, 0, NULL, event));
}

static void write_other(cl_command_queue on, cl_event *event) {
    ck_ok(clEnqueueWriteBuffer(on, other, CL_TRUE, 0, sizeof(value), &value, 0, NULL, event));
}

static void *vacate_after_a_while(void *unused) {
    (void)unused;
    usleep(100000);
    vacate();
    return NULL;
}

static pthread_t vacate_later(void) {
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, vacate_after_a_while, NULL), 0);
    return thread;
}

static void join(pthread_t thread) { ck_assert_int_eq(pthread_join(thread, NULL), 0); }

static void write_behind_kernel(size_t size) {
    cl_int *x = malloc(size), *y = calloc(1, size), count = (cl_int)(size / sizeof(*x));
    cl_mem mem = make_buffer(0, size, NULL);
    cl_event event;

    for (int i = 0; i < count; i++)
        x[i] = 7;
    occupy(fixed);
    run(plain, set, fixed, 1, NULL);
    ck_ok(clEnqueueWriteBuffer(plain, mem, CL_TRUE, 0, size, x, 0, NULL, &event));
    for (int i = 0; i < count; i++)
        x[i] = 8;
    ck_assert_int_gt(event_status(event), CL_COMPLETE);
    run(plain, add, mem, 3, NULL);
    vacate();
    ck_ok(clEnqueueReadBuffer(plain, mem, CL_TRUE, 0, size, y, 0, NULL, NULL));
    ck_assert_int_eq(event_status(event), CL_COMPLETE);
    for (int i = 0; i < count; i++)
        if (y[i] != (i < N ? 10 : 7))
            ck_abort_msg("[%d] is %d", i, y[i]);
    ck_ok(clReleaseEvent(event));
    ck_ok(clReleaseMemObject(mem));
    free(x);
    free(y);
}

START_TEST(behind_a_kernel_it_waits_for_its_memory_alone) {
    begin();
    write_behind_kernel(BYTES);
    write_behind_kernel(4 << 20);
    end();
}
END_TEST

/* Yet who waits for the queue, or for the write, waits for what is before it. */
START_TEST(what_waits_behind_it) {
    begin();
    for (int way = 0; way < 3; way++) {
        cl_event kernel, write;
        occupy(fixed);
        run(plain, add, fixed, 1, &kernel);
        write_other(plain, &write);
        pthread_t thread = vacate_later();
        if (way == 1)
            ck_ok(clWaitForEvents(1, &write));
        if (way == 2) /* what comes behind it needs not wait either */
            write_other(plain, NULL);
        if (way != 1)
            ck_ok(clFinish(plain));
        ck_assert_int_eq(event_status(kernel), CL_COMPLETE);
        ck_assert_int_eq(event_status(write), CL_COMPLETE);
        join(thread);
        ck_ok(clReleaseEvent(kernel));
        ck_ok(clReleaseEvent(write));
    }
    end();
}
END_TEST

/* Programs make the last of several calls block, and take all for done. */
START_TEST(behind_a_read_it_waits_for_that) {
    cl_int *y = calloc(1, BYTES);

    begin();
    occupy(fixed);
    run(plain, set, fixed, 5, NULL);
    ck_ok(clEnqueueReadBuffer(plain, fixed, CL_FALSE, 0, BYTES, y, 0, NULL, NULL));
    pthread_t thread = vacate_later();
    write_other(plain, NULL);
    ck_assert(y[0] == 5 && y[N - 1] == 5);
    join(thread);
    end();
    free(y);
}
END_TEST

START_TEST(behind_a_write_it_waits_for_that) {
    cl_int *x = calloc(1, BYTES), *y = calloc(1, BYTES);

    begin();
    occupy(fixed);
    x[0] = x[N - 1] = 5;
    ck_ok(clEnqueueWriteBuffer(plain, fixed, CL_FALSE, 0, BYTES, x, 0, NULL, NULL));
    pthread_t thread = vacate_later();
    write_other(plain, NULL);
    x[0] = x[N - 1] = 6;
    join(thread);
    ck_ok(clEnqueueReadBuffer(plain, fixed, CL_TRUE, 0, BYTES, y, 0, NULL, NULL));
    ck_assert(y[0] == 5 && y[N - 1] == 5);
    end();
    free(x);
    free(y);
}
END_TEST

START_TEST(behind_a_map_it_waits_for_that) {
    begin();
    occupy(fixed);
    run(plain, set, fixed, 5, NULL);
    cl_int *mapped = ck_made(
        clEnqueueMapBuffer(plain, fixed, CL_FALSE, CL_MAP_READ, 0, BYTES, 0, NULL, NULL, &error));
    pthread_t thread = vacate_later();
    write_other(plain, NULL);
    ck_assert(mapped[0] == 5 && mapped[N - 1] == 5);
    join(thread);
    ck_ok(clEnqueueUnmapMemObject(plain, fixed, mapped, 0, NULL, NULL));
    end();
}
END_TEST

/* The first waits for a kernel, the second comes after what the first waited for. */
START_TEST(behind_each_other) {
    cl_int *y = calloc(1, BYTES);
    cl_event kernel;

    begin();
    occupy(fixed);
    run(plain, add, fixed, 1, &kernel);
    run(plain, set, other, 5, NULL);
    ck_ok(clEnqueueReadBuffer(plain, other, CL_FALSE, 0, BYTES, y, 0, NULL, NULL));
    write_other(plain, NULL);
    ck_assert(y[0] == 5 && y[N - 1] == 5);
    for (int i = 0; i < 100; i++)
        write_other(plain, NULL);
    ck_assert_int_gt(event_status(kernel), CL_COMPLETE);
    vacate();
    end();
    ck_ok(clReleaseEvent(kernel));
    free(y);
}
END_TEST

static void *write_and_wait(void *unused) {
    (void)unused;
    for (int i = 0; i < 100; i++)
        write_other(plain, NULL);
    return NULL;
}

/* Several threads write to one queue, each behind the others and behind reads. */
START_TEST(of_several_threads) {
    enum { THREADS = 3 };
    pthread_t thread[THREADS];
    cl_int *y = calloc(1, BYTES);

    begin();
    for (int t = 0; t < THREADS; t++)
        ck_assert_int_eq(pthread_create(&thread[t], NULL, write_and_wait, NULL), 0);
    for (int i = 1; i <= 100; i++) {
        run(plain, set, fixed, i, NULL);
        ck_ok(clEnqueueReadBuffer(plain, fixed, CL_FALSE, 0, BYTES, y, 0, NULL, NULL));
        write_other(plain, NULL);
        ck_assert(y[0] == i && y[N - 1] == i);
    }
    for (int t = 0; t < THREADS; t++)
        join(thread[t]);
    end();
    free(y);
}
END_TEST

/* Who wants the times of a blocking write asks for them right after it. */
START_TEST(with_times_it_is_over) {
    cl_ulong started, ended;
    cl_event write;

    begin();
    occupy(fixed);
    run(queue, set, fixed, 1, NULL);
    pthread_t thread = vacate_later();
    write_other(queue, &write);
    ck_ok(clGetEventProfilingInfo(write, CL_PROFILING_COMMAND_START, sizeof(started), &started,
                                  NULL));
    ck_ok(clGetEventProfilingInfo(write, CL_PROFILING_COMMAND_END, sizeof(ended), &ended, NULL));
    ck_assert(started <= ended);
    join(thread);
    ck_ok(clReleaseEvent(write));
    end();
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        behind_a_kernel_it_waits_for_its_memory_alone,
        what_waits_behind_it,
        behind_a_read_it_waits_for_that,
        behind_a_write_it_waits_for_that,
        behind_a_map_it_waits_for_that,
        behind_each_other,
        of_several_threads,
        with_times_it_is_over,
    };

    test_prefer_pocl();
    return test_main(argc, argv, tests, COUNT(tests));
}
