/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: transfers of page-locked memory beside longer kernels of a GPU that they need not
 * come after. PoCL stands in for the GPU, with kernels of a time of their own.
 */
#include "slow_gpu.h"

enum { N = 1 << 18, BYTES = N * sizeof(cl_int), WARM = 12 };
enum { SHORT = 200000, LONG = 10000000 /* ns */ };
#define SECONDS 60 /* until a transfer counts as one that waits */

static const char source[] =
    "kernel void next(global const int *in, global int *out) {"
    "    out[get_global_id(0)] = in[get_global_id(0)] + 1; }"
    "kernel void join(global const int *in, global const int *more, global int *out) {"
    "    size_t i = get_global_id(0); out[i] = in[i] + more[i]; }";

static cl_program program;
static cl_kernel next, join;
static cl_mem locked, buffer[4];
static cl_int *host; /* page-locked */
static cl_command_queue other;

static void run_next(int from, int to, cl_event *event) {
    const size_t count = N;
    ck_ok(clSetKernelArg(next, 0, sizeof(cl_mem), &buffer[from]));
    ck_ok(clSetKernelArg(next, 1, sizeof(cl_mem), &buffer[to]));
    ck_ok(clEnqueueNDRangeKernel(queue, next, 1, NULL, &count, NULL, 0, NULL, event));
}

static void run_join(int from, int more, int to, cl_event *event) {
    const size_t count = N;
    ck_ok(clSetKernelArg(join, 0, sizeof(cl_mem), &buffer[from]));
    ck_ok(clSetKernelArg(join, 1, sizeof(cl_mem), &buffer[more]));
    ck_ok(clSetKernelArg(join, 2, sizeof(cl_mem), &buffer[to]));
    ck_ok(clEnqueueNDRangeKernel(queue, join, 1, NULL, &count, NULL, 0, NULL, event));
}

static void write_now(int to, cl_int value) {
    for (int i = 0; i < N; i++)
        host[i] = value;
    ck_ok(clEnqueueWriteBuffer(queue, buffer[to], CL_TRUE, 0, BYTES, host, 0, NULL, NULL));
}

static void ck_all(cl_int value) {
    int wrong = 0;
    for (int i = 0; i < N; i++)
        wrong += host[i] != value;
    ck_assert_int_eq(wrong, 0);
}

static void ck_reads(int from, cl_int value) {
    ck_ok(clEnqueueReadBuffer(queue, buffer[from], CL_TRUE, 0, BYTES, host, 0, NULL, NULL));
    ck_all(value);
}

/* Is the transfer over while the kernel is held? Then that is let go. */
static bool passes(cl_event transfer) {
    cl_int status = CL_QUEUED;
    ck_ok(clFlush(other));
    for (int ms = 0; ms < SECONDS * 1000 && status != CL_COMPLETE; ms++) {
        usleep(1000);
        ck_ok(clGetEventInfo(transfer, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
                             NULL));
    }
    slow_end_all();
    return status == CL_COMPLETE;
}

/* The kernels are measured then, and all is on the GPU. */
static void begin(void) {
    program = make_program(source);
    next = make_kernel(program, "next");
    join = make_kernel(program, "join");
    other = make_queue(0);
    for (int i = 0; i < 4; i++)
        buffer[i] = make_buffer(0, BYTES, NULL);
    locked = make_buffer(CL_MEM_ALLOC_HOST_PTR, BYTES, NULL);
    host = clEnqueueMapBuffer(queue, locked, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, BYTES, 0, NULL,
                              NULL, &error);
    ck_ok(error);
    slow_set_length(SHORT);
    write_now(0, 1);
    write_now(3, 1);
    for (int i = 0; i < WARM; i++) {
        run_next(0, 1, NULL);
        run_join(0, 1, 2, NULL);
        run_next(2, 1, NULL);
        ck_ok(clFinish(queue));
    }
}

static void end(void) {
    ck_ok(clEnqueueUnmapMemObject(queue, locked, host, 0, NULL, NULL));
    ck_ok(clFinish(queue));
    ck_ok(clReleaseMemObject(locked));
    for (int i = 0; i < 4; i++)
        ck_ok(clReleaseMemObject(buffer[i]));
    ck_ok(clReleaseCommandQueue(other));
    ck_ok(clReleaseKernel(next));
    ck_ok(clReleaseKernel(join));
    ck_ok(clReleaseProgram(program));
}

/* By hand with several queues: what one kernel wrote is read while the next one uses it, too. */
START_TEST(a_read_passes_a_reader) {
    cl_event first, second, read;
    begin();
    write_now(0, 5);
    run_next(0, 1, &first);
    ck_ok(clFlush(queue));
    ck_ok(clEnqueueReadBuffer(other, buffer[1], CL_FALSE, 0, BYTES, host, 1, &first, &read));
    ck_ok(clFlush(other));
    unsigned long before = slow_set_length(SLOW_HELD);
    run_next(1, 2, &second);
    ck_ok(clFlush(queue));
    slow_await(before + 1);
    slow_set_length(SHORT);
    ck_assert_msg(passes(read), "the read waited for a kernel that only reads");
    ck_all(6);
    ck_ok(clWaitForEvents(1, &second));
    ck_reads(2, 7);
    ck_ok(clReleaseEvent(first));
    ck_ok(clReleaseEvent(second));
    ck_ok(clReleaseEvent(read));
    end();
}
END_TEST

/* The next kernel's input is on its way meanwhile. */
START_TEST(a_write_passes_what_does_not_use_it) {
    cl_event kernel, write;
    begin();
    write_now(0, 5);
    unsigned long before = slow_set_length(SLOW_HELD);
    run_next(0, 1, &kernel);
    ck_ok(clFlush(queue));
    slow_await(before + 1);
    slow_set_length(SHORT);
    for (int i = 0; i < N; i++)
        host[i] = 30;
    ck_ok(clEnqueueWriteBuffer(other, buffer[3], CL_FALSE, 0, BYTES, host, 0, NULL, &write));
    ck_assert_msg(passes(write), "the write waited for a kernel that does not use it");
    run_join(1, 3, 2, NULL);
    ck_reads(2, 36);
    ck_ok(clReleaseEvent(kernel));
    ck_ok(clReleaseEvent(write));
    end();
}
END_TEST

/* Those that must come after a longer kernel do. */
START_TEST(none_passes_what_it_comes_after) {
    enum { ROUNDS = 20 };
    begin();
    for (cl_int round = 0; round < ROUNDS; round++) {
        write_now(0, round);
        slow_set_length(LONG);
        run_next(0, 1, NULL);
        for (int i = 0; i < N; i++)
            host[i] = 100 + round;
        ck_ok(clEnqueueWriteBuffer(queue, buffer[0], CL_FALSE, 0, BYTES / 2, host, 0, NULL, NULL));
        ck_ok(clEnqueueWriteBuffer(queue, buffer[0], CL_FALSE, BYTES / 2, BYTES / 2, host, 0, NULL,
                                   NULL));
        slow_set_length(SHORT);
        run_join(0, 1, 2, NULL);
        ck_reads(2, 101 + 2 * round);
        slow_set_length(LONG);
        run_next(2, 1, NULL);
        ck_reads(1, 102 + 2 * round);
        ck_reads(0, 100 + round);
    }
    slow_set_length(SHORT);
    end();
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {a_read_passes_a_reader, a_write_passes_what_does_not_use_it,
                                  none_passes_what_it_comes_after};
    return test_main_gpu(argc, argv, tests, COUNT(tests), slow_change);
}
