/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: the host's reads of what a GPU's kernels compute are collected beside a CPU that
 * takes far longer, as they are without it, and each is not a task of StarPU's. PoCL stands in for
 * the GPU, with kernels of a time of their own.
 */
#include "slow_gpu.h"

#include <limits.h>

enum { N = 64, BYTES = N * sizeof(cl_int), KERNELS = 60, WARM = 12, ROUNDS = 6, FEW = 12 };
enum { LENGTH = 300000, LENGTH_BESIDE = 20000000 /* ns */ };

static const char source[] = "kernel void set(global int *data, int value) {"
                             "    data[get_global_id(0)] = value; }";

static cl_program program;
static cl_kernel set;
static cl_int memory[KERNELS][N] __attribute__((aligned(4096)));

/* Each kernel's result is mapped once it is there, and unmapped when all are, for good. */
static void go_round(cl_command_queue in, cl_int round) {
    const size_t items = N;
    cl_mem buffer[KERNELS];
    const cl_int *seen[KERNELS];
    for (cl_int i = 0; i < KERNELS; i++) {
        cl_event computed;
        buffer[i] = make_buffer(CL_MEM_WRITE_ONLY | CL_MEM_USE_HOST_PTR, BYTES, memory[i]);
        cl_int value = round + i;
        ck_ok(clSetKernelArg(set, 0, sizeof(buffer[i]), &buffer[i]));
        ck_ok(clSetKernelArg(set, 1, sizeof(value), &value));
        ck_ok(clEnqueueNDRangeKernel(in, set, 1, NULL, &items, NULL, 0, NULL, &computed));
        seen[i] = ck_made(clEnqueueMapBuffer(in, buffer[i], CL_FALSE, CL_MAP_READ, 0, BYTES, 1,
                                             &computed, NULL, &error));
        ck_ok(clReleaseEvent(computed));
    }
    ck_ok(clFinish(in));
    for (cl_int i = 0; i < KERNELS; i++) {
        ck_assert_int_eq(seen[i][N - 1], round + i);
        ck_ok(clEnqueueUnmapMemObject(in, buffer[i], (void *)seen[i], 0, NULL, NULL));
        ck_ok(clReleaseMemObject(buffer[i]));
    }
    ck_ok(clFinish(in));
}

/* StarPU's tasks in the best of some rounds, once the kernel is known. */
START_TEST(maps_go_together) {
    cl_command_queue in = make_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    int least = INT_MAX;
    program = make_program(source);
    set = make_kernel(program, "set");
    for (cl_int round = 0; round < WARM + ROUNDS; round++) {
        test_log_count("a task is expected");
        go_round(in, round);
        int tasks = test_log_count("a task is expected");
        if (round >= WARM && tasks < least)
            least = tasks;
    }
    ck_assert_int_le(least, KERNELS + FEW);
    ck_ok(clReleaseKernel(set));
    ck_ok(clReleaseProgram(program));
    ck_ok(clReleaseCommandQueue(in));
}
END_TEST

static void change(cl_icd_dispatch *driver) {
    slow_change(driver);
    slow.length = LENGTH;
    slow.beside = LENGTH_BESIDE;
}

int main(int argc, char **argv) {
    const TTest *const tests[] = {maps_go_together};
    return pocl_gpu_begin("pthread basic", change)
               ? test_main_logged(argc, argv, tests, COUNT(tests))
               : 0;
}
