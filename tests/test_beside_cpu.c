/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: a CPU device beside a GPU costs a program that computes on the GPU no transfer: what
 * is there stays there. PoCL stands in for the GPU.
 */
#include "driver_moves.h"
#include "traffic.h"

#include <stdatomic.h>

enum { N = 256 << 10, BYTES = N * sizeof(cl_int), KERNELS = 20, PART = 64, READS = 5 };

static atomic_uint on_gpu, on_cpu; /* kernels */

static cl_int CL_API_CALL enqueue(cl_command_queue on, cl_kernel kernel, cl_uint dimensions,
                                  const size_t *offset, const size_t *global, const size_t *local,
                                  cl_uint count, const cl_event *list, cl_event *event) {
    cl_device_id of;
    real.clGetCommandQueueInfo(on, CL_QUEUE_DEVICE, sizeof(of), &of, NULL);
    atomic_fetch_add(is_gpu(of) ? &on_gpu : &on_cpu, 1);
    return real.clEnqueueNDRangeKernel(on, kernel, dimensions, offset, global, local, count, list,
                                       event);
}

static void change(cl_icd_dispatch *table) {
    driver_moves_change(table);
    table->clEnqueueNDRangeKernel = enqueue;
}

static cl_program program;
static cl_kernel add;
static cl_int *values;

static void add_to(cl_mem buffer) {
    cl_int one = 1;
    ck_ok(clSetKernelArg(add, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(add, 1, sizeof(one), &one));
    launch(add, N);
}

/* The GPU gets all bytes once, and the host what it reads: nothing goes home for the CPU. */
static void compute(cl_mem_flags flags) {
    struct traffic on[MOST_REAL];
    cl_uint devices = 0;
    cl_mem buffer = make_buffer(flags, BYTES, flags & CL_MEM_USE_HOST_PTR ? values : NULL);
    memset(values, 0, BYTES);
    write_ints(buffer, values, N);
    for (int r = 0; r < READS; r++) {
        cl_int seen[PART];
        for (int k = 0; k < KERNELS; k++)
            add_to(buffer);
        ck_ok(clFinish(queue));
        ck_ok(clEnqueueReadBuffer(queue, buffer, CL_TRUE, BYTES - sizeof(seen), sizeof(seen), seen,
                                  0, NULL, NULL));
        ck_all(seen, PART, (r + 1) * KERNELS);
    }
    ck_ok(find_traffic()(buffer, MOST_REAL, on, &devices));
    ck_assert_uint_eq(devices, 2);
    ck_assert_uint_eq(on[0].bytes_to_device, BYTES);
    ck_assert_uint_eq(on[0].bytes_from_device, READS * PART * sizeof(cl_int));
    ck_assert_uint_eq(on[1].transfers_to_device + on[1].transfers_from_device, 0);
    ck_assert_uint_eq(on[1].bytes_to_device + on[1].bytes_from_device, 0);
    ck_assert_uint_eq(on[0].evictions + on[1].evictions, 0);
    ck_ok(clReleaseMemObject(buffer));
}

static void compute_apart(cl_mem_flags flags) {
    program = make_program(common_source);
    add = make_kernel(program, "add");
    values = aligned_alloc(4096, BYTES);
    compute(flags);
    ck_assert_uint_eq(atomic_load(&on_cpu), 0);
    ck_assert_uint_ge(atomic_load(&on_gpu), READS * KERNELS);
    free(values);
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}

START_TEST(on_plain_buffers) { compute_apart(0); }
END_TEST

START_TEST(on_memory_of_the_driver) { compute_apart(CL_MEM_ALLOC_HOST_PTR); }
END_TEST

START_TEST(on_memory_of_the_program) { compute_apart(CL_MEM_USE_HOST_PTR); }
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {on_plain_buffers, on_memory_of_the_driver,
                                  on_memory_of_the_program};
    setenv("TUTTI_BUILDS", "auto", 1); /* no kernel for the CPU as long as they are short */
    return pocl_gpu_begin("pthread basic", change) ? test_main(argc, argv, tests, COUNT(tests)) : 0;
}
