/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: a CPU device beside a GPU that is far faster gets nothing that makes the program
 * slower, wherever the data is and however late the GPU's work is looked at. PoCL stands in for
 * both.
 */
#include "lives.h"
#include "slow_gpu.h"

enum { N = 64, BUFFERS = 16, KERNELS = 32, ROUNDS = 30, GPU_TIME = 40, CPU_TIME = 3000 /* µs */ };

static const char source[] =
    "kernel void add_one(global int *data) { data[get_global_id(0)] += 1; }";

static unsigned long on_cpu(void) { /* kernels */
    pthread_mutex_lock(&slow.lock);
    unsigned long enqueued = slow.enqueued_beside;
    pthread_mutex_unlock(&slow.lock);
    return enqueued;
}

static cl_int written[BUFFERS][N], seen[BUFFERS][N], expected[BUFFERS];

static void one_round(cl_kernel add_one, const cl_mem *buffer, bool writes) {
    const size_t items = N;
    for (unsigned i = 0; i < KERNELS; i++) {
        unsigned b = i % BUFFERS;
        if (writes)
            ck_ok(clEnqueueWriteBuffer(queue, buffer[b], CL_FALSE, 0, sizeof(written[b]),
                                       written[b], 0, NULL, NULL));
        ck_ok(clSetKernelArg(add_one, 0, sizeof(buffer[b]), &buffer[b]));
        ck_ok(clEnqueueNDRangeKernel(queue, add_one, 1, NULL, &items, NULL, 0, NULL, NULL));
        expected[b] = writes ? 1 : expected[b] + 1;
        if (writes)
            ck_ok(clEnqueueReadBuffer(queue, buffer[b], CL_FALSE, 0, sizeof(seen[b]), seen[b], 0,
                                      NULL, NULL));
    }
    ck_ok(clFinish(queue));
}

/* The CPU gets some before it is known how long they take there, but no share of the rest. */
static void leave_to_gpu(bool writes) {
    cl_mem buffer[BUFFERS];
    cl_program program = make_program(source);
    cl_kernel add_one = make_kernel(program, "add_one");
    for (unsigned b = 0; b < BUFFERS; b++) {
        buffer[b] = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(written[b]), written[b]);
        expected[b] = 0;
    }
    for (unsigned round = 0; round < ROUNDS; round++)
        one_round(add_one, buffer, writes);
    unsigned long before = on_cpu();
    for (unsigned round = 0; round < ROUNDS; round++)
        one_round(add_one, buffer, writes);
    ck_assert_uint_le(on_cpu() - before, ROUNDS * KERNELS / 50);
    for (unsigned b = 0; b < BUFFERS; b++) {
        ck_ok(clEnqueueReadBuffer(queue, buffer[b], CL_TRUE, 0, sizeof(seen[b]), seen[b], 0, NULL,
                                  NULL));
        for (unsigned i = 0; i < N; i++)
            ck_assert_int_eq(seen[b][i], expected[b]);
        ck_ok(clReleaseMemObject(buffer[b]));
    }
    ck_ok(clReleaseKernel(add_one));
    ck_ok(clReleaseProgram(program));
}

START_TEST(kernels_alone) { leave_to_gpu(false); }
END_TEST

START_TEST(what_is_written_runs_and_is_read) { leave_to_gpu(true); }
END_TEST

/* Buffers that the GPU has before StarPU knows of them may be wanted by the CPU, too. */
START_TEST(short_lives) {
    slow.beside = 0;
    for (cl_uint seed = 1; seed < 4; seed++) {
        lives_begin(seed);
        for (int round = 0; round < 200; round++)
            lives_one(round % 4 == 0);
        lives_end();
    }
    slow.beside = CPU_TIME * 1000;
}
END_TEST

static void change(cl_icd_dispatch *driver) {
    slow_change(driver);
    slow.length = GPU_TIME * 1000;
    slow.beside = CPU_TIME * 1000;
}

int main(int argc, char **argv) {
    const TTest *const tests[] = {kernels_alone, what_is_written_runs_and_is_read, short_lives};
    return pocl_gpu_begin("pthread basic", change) ? test_main(argc, argv, tests, COUNT(tests)) : 0;
}
