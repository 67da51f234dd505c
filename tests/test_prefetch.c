/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: the data of kernels that wait for a GPU goes there while the one before them still
 * runs. PoCL stands in for the GPU, whose kernels end when the test says so.
 */
#include "driver_moves.h"
#include "slow_gpu.h"

enum { N = 512 << 10, BYTES = N * sizeof(cl_int), WAITING = 6, SHORT = 1000 /* ns */ };

static cl_program program;
static cl_kernel add;
static cl_int values[N];

static cl_mem make_filled(cl_int value) {
    for (int i = 0; i < N; i++)
        values[i] = value;
    return make_buffer(CL_MEM_COPY_HOST_PTR, BYTES, values);
}

static void add_one(cl_mem buffer) {
    cl_int one = 1;
    ck_ok(clSetKernelArg(add, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(add, 1, sizeof(one), &one));
    launch(add, N);
}

static void ck_content(cl_mem buffer, cl_int value) {
    int wrong = 0;
    read_ints(buffer, values, N);
    for (int i = 0; i < N; i++)
        wrong += values[i] != value;
    ck_assert_int_eq(wrong, 0);
}

/* A kernel runs on the GPU until slow_end_all. */
static void occupy(cl_mem buffer) {
    unsigned long before = slow_set_length(SLOW_HELD);
    add_one(buffer);
    ck_ok(clFlush(queue));
    bool runs = slow_await(before + 1);
    slow_set_length(SHORT);
    ck_assert(runs);
    driver_forget_moves();
}

/* How many whole buffers went to the GPU, once all had the time for it. Ends the kernel. */
static unsigned count_brought(void) {
    for (int ms = 0; ms < 10000 && driver_count(WRITE, BYTES) < WAITING; ms++)
        usleep(1000);
    unsigned brought = driver_count(WRITE, BYTES);
    slow_end_all();
    ck_ok(clFinish(queue));
    return brought;
}

/* More of them than StarPU's worker looks at before it can execute them. */
START_TEST(while_a_kernel_runs) {
    cl_mem busy = make_filled(0), waiting[WAITING];
    program = make_program(common_source);
    add = make_kernel(program, "add");
    add_one(busy);
    ck_ok(clFinish(queue));
    for (int w = 0; w < WAITING; w++)
        waiting[w] = make_filled(w);
    occupy(busy);
    for (int w = 0; w < WAITING; w++)
        add_one(waiting[w]);
    ck_ok(clFlush(queue));
    unsigned brought = count_brought();
    ck_assert_uint_eq(brought, WAITING);
    for (int w = 0; w < WAITING; w++) {
        ck_content(waiting[w], w + 1);
        ck_ok(clReleaseMemObject(waiting[w]));
    }
    ck_content(busy, 2);
    ck_ok(clReleaseMemObject(busy));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}
END_TEST

static void change(cl_icd_dispatch *driver) {
    slow_change(driver);
    driver_moves_change(driver);
    slow.length = SHORT;
}

int main(int argc, char **argv) {
    const TTest *const tests[] = {while_a_kernel_runs};
    return test_main_gpu(argc, argv, tests, COUNT(tests), change);
}
