/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: the end of a kernel of StarPU's is known when it ends, though the device has the next
 * one by then, on PoCL's "pthread": all its threads are at the next one, and StarPU's marker is a
 * command that one of them must execute.
 */
#include "support.h"

#include <stdatomic.h>

enum { N = 1024, RUNS = 4, ROUNDS = 8, LEAST = 10000000 /* ns */ };

/* `saw` tells if the flag was set before the kernel lost its patience. */
static const char source[] =
    "#pragma OPENCL EXTENSION cl_khr_global_int32_base_atomics : enable\n"
    "kernel void patient(global volatile int *flag, global int *saw) {\n"
    "  int seen = 0;\n"
    "  for (int i = 0; i < 20000000 && !seen; i++) seen = atomic_add(flag, 0);\n"
    "  saw[get_global_id(0)] = seen; }\n";

static atomic_int *flag;

static cl_ulong time_of(cl_kernel slow, cl_int rounds) { /* ns */
    const size_t items = N;
    cl_event event;
    ck_ok(clSetKernelArg(slow, 1, sizeof(rounds), &rounds));
    ck_ok(clEnqueueNDRangeKernel(queue, slow, 1, NULL, &items, NULL, 0, NULL, &event));
    ck_ok(clWaitForEvents(1, &event));
    cl_ulong start = get_info(cl_ulong, clGetEventProfilingInfo, event, CL_PROFILING_COMMAND_START);
    cl_ulong end = get_info(cl_ulong, clGetEventProfilingInfo, event, CL_PROFILING_COMMAND_END);
    ck_ok(clReleaseEvent(event));
    return end - start;
}

/* Long enough for the device to be given the next kernel before that ends. */
static cl_int find_rounds(cl_kernel slow) {
    cl_int rounds = 1 << 12;
    while (time_of(slow, rounds) < LEAST)
        rounds *= 2;
    return rounds;
}

START_TEST(while_the_next_one_executes) {
    const size_t items = N, one = 1;
    const size_t groups =
        4 * (size_t)get_info(cl_uint, clGetDeviceInfo, device, CL_DEVICE_MAX_COMPUTE_UNITS);
    cl_program common = make_program(common_source), own = make_program(source);
    cl_kernel slow = make_kernel(common, "slow"), patient = make_kernel(own, "patient");
    cl_mem data = make_buffer(0, N * sizeof(cl_int), NULL);
    cl_mem saw = make_buffer(0, groups * sizeof(cl_int), NULL);
    flag = aligned_alloc(4096, 4096);
    cl_mem watched = make_buffer(CL_MEM_USE_HOST_PTR, 4096, flag);

    ck_ok(clSetKernelArg(slow, 0, sizeof(data), &data));
    ck_ok(clSetKernelArg(patient, 0, sizeof(watched), &watched));
    ck_ok(clSetKernelArg(patient, 1, sizeof(saw), &saw));
    cl_int rounds = find_rounds(slow), longer = 2 * rounds; /* the next one is given too early */
    for (int round = 0; round < ROUNDS; round++) {
        cl_event first;
        cl_int seen = 0;
        for (int run = 0; run < RUNS; run++)
            time_of(slow, rounds);
        atomic_store(flag, 0);
        ck_ok(clSetKernelArg(slow, 1, sizeof(longer), &longer));
        ck_ok(clEnqueueNDRangeKernel(queue, slow, 1, NULL, &items, NULL, 0, NULL, &first));
        ck_ok(clEnqueueNDRangeKernel(queue, patient, 1, NULL, &groups, &one, 0, NULL, NULL));
        ck_ok(clFlush(queue));
        ck_ok(clWaitForEvents(1, &first));
        atomic_store(flag, 1);
        read_ints(saw, &seen, 1);
        ck_assert_int_eq(seen, 1);
        ck_ok(clReleaseEvent(first));
    }
    ck_ok(clReleaseMemObject(watched));
    ck_ok(clReleaseMemObject(data));
    ck_ok(clReleaseMemObject(saw));
    ck_ok(clReleaseKernel(slow));
    ck_ok(clReleaseKernel(patient));
    ck_ok(clReleaseProgram(common));
    ck_ok(clReleaseProgram(own));
    free(flag);
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {while_the_next_one_executes};

    /* One device, and so one line. */
    setenv("POCL_DEVICES", "pthread", 1);
    setenv("TUTTI_DEVICES", "portable", 1);
    setenv("TUTTI_DIRECT", "never", 1);
    return test_main(argc, argv, tests, COUNT(tests));
}
