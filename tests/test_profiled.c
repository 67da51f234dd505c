/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: commands whose times the program asks for, on a GPU, follow each other past StarPU as
 * others do. PoCL stands in for the GPU.
 */
#include "pocl_gpu.h"

enum { N = 256, ROUNDS = 200, KNOWN = 50 };

/* A write, a kernel and a read, each with an event, and a wait for the last one. */
static void one_round(cl_kernel add, cl_mem mem, cl_int value) {
    const size_t items = N;
    static cl_int up[N], down[N];
    cl_event event[3];
    for (int i = 0; i < N; i++)
        up[i] = value + i;
    ck_ok(clEnqueueWriteBuffer(queue, mem, CL_FALSE, 0, sizeof(up), up, 0, NULL, &event[0]));
    ck_ok(clSetKernelArg(add, 0, sizeof(mem), &mem));
    ck_ok(clSetKernelArg(add, 1, sizeof(value), &value));
    ck_ok(clEnqueueNDRangeKernel(queue, add, 1, NULL, &items, NULL, 1, &event[0], &event[1]));
    ck_ok(
        clEnqueueReadBuffer(queue, mem, CL_FALSE, 0, sizeof(down), down, 1, &event[1], &event[2]));
    ck_ok(clWaitForEvents(1, &event[2]));
    cl_ulong last = 0;
    for (int i = 0; i < 3; i++) {
        cl_ulong start =
            get_info(cl_ulong, clGetEventProfilingInfo, event[i], CL_PROFILING_COMMAND_START);
        cl_ulong end =
            get_info(cl_ulong, clGetEventProfilingInfo, event[i], CL_PROFILING_COMMAND_END);
        ck_assert_uint_le(last, start);
        ck_assert_uint_le(start, end);
        last = end;
        ck_ok(clReleaseEvent(event[i]));
    }
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(down[i], 2 * value + i);
}

START_TEST(behind_each_other) {
    cl_program program = make_program(common_source);
    cl_kernel add = make_kernel(program, "add");
    cl_mem mem = make_buffer(0, N * sizeof(cl_int), NULL);
    for (int round = 0; round < ROUNDS; round++) {
        if (round == KNOWN) /* by now its time is */
            test_log_count("");
        one_round(add, mem, round);
    }
    int by_starpu = test_log_count("a task is expected to begin");
    ck_assert_int_le(by_starpu, 3 * (ROUNDS - KNOWN) / 20);
    ck_ok(clReleaseMemObject(mem));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {behind_each_other};

    return pocl_gpu_begin("pthread", NULL) ? test_main_logged(argc, argv, tests, COUNT(tests)) : 0;
}
