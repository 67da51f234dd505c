/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: short commands that wait for a longer kernel are collected, and what the host takes
 * from them does not wait for another longer one behind them. PoCL stands in for the GPU, with
 * kernels of a time of their own.
 */
#include "slow_gpu.h"

enum { N = 1024, BYTES = N * sizeof(cl_int), ROUNDS = 12, ATTEMPTS = 6, LENGTH = 4000000 /* ns */ };

static const char source[] = "kernel void add(global int *data, int by) {"
                             "    data[get_global_id(0)] += by; }";

static unsigned long kernels_over(void) {
    pthread_mutex_lock(&slow.lock);
    unsigned long over = slow.enqueued;
    for (unsigned i = 0; i < SLOW_KERNELS; i++)
        over -= slow.kernel[i].gate != NULL;
    pthread_mutex_unlock(&slow.lock);
    return over;
}

static struct {
    unsigned long over; /* kernels, when the host has the result */
    cl_int value;
} result;

static void CL_CALLBACK take(void *snapshot) {
    result.over = kernels_over();
    result.value = **(cl_int **)snapshot;
}

static void add(cl_kernel kernel, cl_mem data, cl_int by) {
    ck_ok(clSetKernelArg(kernel, 0, sizeof(data), &data));
    ck_ok(clSetKernelArg(kernel, 1, sizeof(by), &by));
    launch(kernel, N);
}

/* The host has what was copied between two kernels while the second one is executed. */
START_TEST(no_later_kernel_is_waited_for) {
    cl_program program = make_program(source);
    cl_kernel kernel = make_kernel(program, "add");
    cl_mem data = make_buffer(0, BYTES, NULL), snapshot = make_buffer(0, BYTES, NULL);
    const cl_int zero = 0;
    cl_int value = 0;
    int late = 0;
    slow_set_length(LENGTH);
    ck_ok(clEnqueueFillBuffer(queue, data, &zero, sizeof(zero), 0, BYTES, 0, NULL, NULL));
    for (int round = 0; round < ROUNDS + ATTEMPTS && (round < ROUNDS || late); round++) {
        cl_mem argument = snapshot;
        const void *place = &argument;
        unsigned long before = kernels_over();
        add(kernel, data, 1);
        ck_ok(clEnqueueCopyBuffer(queue, data, snapshot, 0, 0, BYTES, 0, NULL, NULL));
        add(kernel, data, 10);
        ck_ok(clEnqueueNativeKernel(queue, take, &argument, sizeof(argument), 1, &snapshot, &place,
                                    0, NULL, NULL));
        ck_ok(clFinish(queue));
        ck_assert_int_eq(result.value, value + 1);
        value += 11;
        late = result.over > before + 1; /* in the first rounds nothing is measured */
    }
    ck_assert_int_eq(late, 0);
    ck_ok(clReleaseMemObject(data));
    ck_ok(clReleaseMemObject(snapshot));
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(program));
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {no_later_kernel_is_waited_for};
    setenv("TUTTI_DIRECT", "never", 1); /* that would go on at once, in the order of the queue */
    return test_main_gpu(argc, argv, tests, COUNT(tests), slow_change);
}
