/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: while all that is under way went past StarPU to a GPU, for which PoCL stands in, no
 * thread looks for more all the time; and what StarPU gets then is done all the same.
 */
#include "slow_gpu.h"

#include <time.h>

enum { N = 64, LEARNING = 20, SHORT = 2000 /* ns */ };

static const char source[] = "kernel void add_one(global int *a) { a[get_global_id(0)] += 1; }";

static cl_program program;
static cl_kernel kernel;
static cl_mem buffer;

static void run(cl_mem on) {
    const size_t items = N;
    ck_ok(clSetKernelArg(kernel, 0, sizeof(on), &on));
    ck_ok(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
}

static void ck_all(cl_mem of, cl_int wanted) {
    cl_int seen[N];
    read_ints(of, seen, N);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(seen[i], wanted);
}

/* Its kernel is measured, and its buffer on the GPU. */
static void begin(void) {
    static cl_int zeros[N];
    slow_set_length(SHORT);
    program = make_program(source);
    kernel = make_kernel(program, "add_one");
    buffer = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(zeros), zeros);
    for (int i = 0; i < LEARNING; i++) {
        run(buffer);
        ck_ok(clFinish(queue));
    }
}

static void end(void) {
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(program));
}

static double processor_seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

/* A kernel that does not end. */
static void hold_one(void) {
    unsigned long before = slow_set_length(SLOW_HELD);
    run(buffer);
    ck_ok(clFlush(queue));
    ck_assert(slow_await(before + 1));
    slow_set_length(SHORT);
}

START_TEST(no_processor_is_used) {
    double spent = 1;
    begin();
    test_went_directly();
    for (int attempt = 0; attempt < 5 && spent >= 0.4; attempt++) {
        hold_one();
        usleep(100000);
        double before = processor_seconds();
        usleep(1000000);
        spent = processor_seconds() - before;
        slow_end_all();
        ck_ok(clFinish(queue));
    }
    ck_assert_int_gt(test_went_directly(), 0);
    ck_assert_msg(spent < 0.4, "a second of a kernel cost %.2f s of processor time", spent);
    end();
}
END_TEST

/* Data that the host has is brought by StarPU's worker. */
START_TEST(the_worker_wakes) {
    enum { ROUNDS = 20 };
    cl_command_queue other = make_queue(0);
    static cl_int zeros[N];
    begin();
    for (int r = 0; r < ROUNDS; r++) {
        const size_t items = N;
        cl_mem fresh = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(zeros), zeros);
        hold_one();
        usleep(30000);
        ck_ok(clSetKernelArg(kernel, 0, sizeof(fresh), &fresh));
        ck_ok(clEnqueueNDRangeKernel(other, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
        ck_ok(clFlush(other));
        slow_end_all();
        ck_ok(clFinish(other));
        ck_ok(clFinish(queue));
        ck_all(fresh, 1);
        ck_ok(clReleaseMemObject(fresh));
    }
    ck_all(buffer, LEARNING + ROUNDS);
    ck_ok(clReleaseCommandQueue(other));
    end();
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {no_processor_is_used, the_worker_wakes};
    return pocl_gpu_begin("pthread", slow_change)
               ? test_main_logged(argc, argv, tests, COUNT(tests))
               : 0;
}
