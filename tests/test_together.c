/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti, with two GPUs of one kind, for which PoCL stands in: kernels that take less than
 * their launch all go to one of them, as one thread launches for both, and where they went at first
 * the later ones go, too.
 */
#include "slow_gpu.h"

#include <stdatomic.h>

enum {
    N = 64,
    LARGER = 1 << 17 /* ints: it takes longer to bring than to launch for */,
    BUFFERS = 16,
    KERNELS = 4,
    ROUNDS = 10,
    LEARNING = 40,
    SHORT = 2000 /* ns */
};

static const char source[] = "kernel void add_one(global int *a) { a[get_global_id(0)] += 1; }";

static atomic_ulong launches[2];

static cl_int CL_API_CALL count_and_enqueue(cl_command_queue on, cl_kernel kernel,
                                            cl_uint dimensions, const size_t *offset,
                                            const size_t *global, const size_t *local,
                                            cl_uint count, const cl_event *list, cl_event *event) {
    static _Atomic(cl_device_id) first;
    cl_device_id of, none = NULL;
    real.clGetCommandQueueInfo(on, CL_QUEUE_DEVICE, sizeof(of), &of, NULL);
    atomic_compare_exchange_strong(&first, &none, of);
    atomic_fetch_add(&launches[of != atomic_load(&first)], 1);
    return slow_enqueue(on, kernel, dimensions, offset, global, local, count, list, event);
}

static void run(cl_command_queue in, cl_kernel kernel, cl_mem buffer) {
    const size_t items = N;
    ck_ok(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
    ck_ok(clEnqueueNDRangeKernel(in, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
}

/* Written by a command, or made `from_home` with what it has. */
static cl_mem make_zeroed(bool from_home) {
    static cl_int zeros[LARGER];
    if (from_home)
        return make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(zeros), zeros);
    cl_mem buffer = make_buffer(0, N * sizeof(cl_int), NULL);
    ck_ok(
        clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, N * sizeof(cl_int), zeros, 0, NULL, NULL));
    return buffer;
}

static void ck_all(cl_mem buffer, cl_int wanted) {
    cl_int seen[N];
    read_ints(buffer, seen, N);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(seen[i], wanted);
}

/* Fresh buffers, each with a queue of its own if there are several. */
static void run_round(cl_kernel kernel, const cl_command_queue *queues, unsigned count,
                      bool from_home) {
    cl_mem buffer[BUFFERS];
    for (int b = 0; b < BUFFERS; b++)
        buffer[b] = make_zeroed(from_home);
    for (int i = 0; i < KERNELS * BUFFERS; i++)
        run(queues[(unsigned)i % count], kernel, buffer[i % BUFFERS]);
    for (unsigned i = 0; i < count; i++)
        ck_ok(clFinish(queues[i]));
    for (int b = 0; b < BUFFERS; b++) {
        ck_all(buffer[b], KERNELS);
        ck_ok(clReleaseMemObject(buffer[b]));
    }
}

static void ck_together(unsigned count, bool from_home) {
    cl_command_queue queues[BUFFERS];
    cl_program program = make_program(source);
    cl_kernel kernel = make_kernel(program, "add_one");
    cl_mem buffer = make_zeroed(false);
    for (unsigned i = 0; i < count; i++)
        queues[i] = make_queue(0);
    for (int i = 0; i < LEARNING; i++) {
        run(queue, kernel, buffer);
        ck_ok(clFinish(queue));
    }
    unsigned long own[2] = {0}, fewer = 1, most = 0;
    /* A busy machine moves the larger ones so slowly that another GPU's link counts. */
    for (int attempt = 0; attempt < (from_home ? 5 : 1) && fewer > most; attempt++) {
        unsigned long before[2] = {launches[0], launches[1]};
        for (int i = 0; i < ROUNDS; i++)
            run_round(kernel, queues, count, from_home);
        for (int d = 0; d < 2; d++)
            own[d] = launches[d] - before[d];
        fewer = own[0] < own[1] ? own[0] : own[1];
        most = (own[0] + own[1]) / (from_home ? 5 : 20);
    }
    ck_assert_msg(fewer <= most, "%lu and %lu", own[0], own[1]);
    for (unsigned i = 0; i < count; i++)
        ck_ok(clReleaseCommandQueue(queues[i]));
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(program));
}

START_TEST(in_one_queue) { ck_together(1, false); }
END_TEST
START_TEST(in_many_queues) { ck_together(BUFFERS, false); }
END_TEST

START_TEST(from_home_in_one_queue) { ck_together(1, true); }
END_TEST
START_TEST(from_home_in_many_queues) { ck_together(BUFFERS, true); }
END_TEST

static void change(cl_icd_dispatch *driver) {
    slow_change(driver);
    slow.length = SHORT;
    driver->clEnqueueNDRangeKernel = count_and_enqueue;
}

int main(int argc, char **argv) {
    const TTest *const tests[] = {in_one_queue, in_many_queues, from_home_in_one_queue,
                                  from_home_in_many_queues};
    return pocl_gpu_begin("pthread pthread", change) ? test_main(argc, argv, tests, COUNT(tests))
                                                     : 0;
}
