/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: a GPU's kernels, and the host's maps of what they compute, are collected beside a CPU
 * that takes far longer, as they are without it. PoCL stands in for the GPU, with kernels of a time
 * of their own.
 */
#include "slow_gpu.h"

#include <limits.h>

enum { N = 64, BYTES = N * sizeof(cl_int), KERNELS = 60, WARM = 12, ROUNDS = 6, FEW = 12 };
enum { LONG = 300000, SHORT = 5000, BESIDE = 20000000 /* ns */ };

static const char source[] = "kernel void sum(global int *to, global const int *from, int by) {"
                             "    to[get_global_id(0)] = from[get_global_id(0)] + by; }";

static cl_program program;
static cl_kernel sum;
static cl_mem from; /* zeros, which stay on the GPU */
static cl_int zeros[N], memory[KERNELS][N] __attribute__((aligned(4096)));

/* Each kernel's result is mapped once it is there, and unmapped when all are, for good. */
static void go_round(cl_command_queue in, cl_int round) {
    const size_t items = N;
    cl_mem buffer[KERNELS];
    const cl_int *seen[KERNELS];
    for (cl_int i = 0; i < KERNELS; i++) {
        cl_event computed;
        buffer[i] = make_buffer(CL_MEM_WRITE_ONLY | CL_MEM_USE_HOST_PTR, BYTES, memory[i]);
        cl_int value = round + i;
        ck_ok(clSetKernelArg(sum, 0, sizeof(buffer[i]), &buffer[i]));
        ck_ok(clSetKernelArg(sum, 1, sizeof(from), &from));
        ck_ok(clSetKernelArg(sum, 2, sizeof(value), &value));
        ck_ok(clEnqueueNDRangeKernel(in, sum, 1, NULL, &items, NULL, 0, NULL, &computed));
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

/* What the devices were given by itself, by StarPU or past it, since this was asked. */
static int count_given(void) {
    char line[512];
    int given = 0;
    FILE *log = test_log_open();
    ck_assert_ptr_nonnull(log);
    while (fgets(line, sizeof(line), log))
        given += strstr(line, "a task is expected") || strstr(line, "past StarPU");
    test_log_close(log);
    return given;
}

/* In the best of some rounds, once the kernel is known. */
static void are_collected(cl_ulong length, int most) {
    cl_command_queue in = make_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    int least = INT_MAX;
    slow_set_length(length);
    program = make_program(source);
    sum = make_kernel(program, "sum");
    from = make_buffer(0, BYTES, NULL);
    write_ints(from, zeros, N);
    for (cl_int round = 0; round < WARM + ROUNDS; round++) {
        count_given();
        go_round(in, round);
        int given = count_given();
        if (round >= WARM && given < least)
            least = given;
    }
    ck_assert_int_le(least, most);
    ck_ok(clReleaseMemObject(from));
    ck_ok(clReleaseKernel(sum));
    ck_ok(clReleaseProgram(program));
    ck_ok(clReleaseCommandQueue(in));
}

/* Each of those is given by itself, as another one may execute beside it. */
START_TEST(maps_behind_long_kernels) { are_collected(LONG, KERNELS + FEW); }
END_TEST

START_TEST(short_kernels_and_maps) { are_collected(SHORT, KERNELS); }
END_TEST

static void change(cl_icd_dispatch *driver) {
    slow_change(driver);
    slow.beside = BESIDE;
}

int main(int argc, char **argv) {
    const TTest *const tests[] = {maps_behind_long_kernels, short_kernels_and_maps};
    return pocl_gpu_begin("pthread basic", change)
               ? test_main_logged(argc, argv, tests, COUNT(tests))
               : 0;
}
