/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: a program that the GPU is soon through with is not built for the CPU beside it, and
 * one that keeps the GPU busy is. PoCL stands in for the GPU.
 */
#include "slow_gpu.h"

#include <stdatomic.h>
#include <unistd.h>

enum { N = 64, FEW = 8, MANY = 64, GPU_TIME = 6000, CPU_TIME = 30000 /* µs */ };

static const char source[] =
    "kernel void add_one(global int *data) { data[get_global_id(0)] += 1; }";

static atomic_uint built; /* for the CPU */

static cl_int CL_API_CALL build(cl_program program, cl_uint count, const cl_device_id *devices,
                                const char *options, void(CL_CALLBACK *notify)(cl_program, void *),
                                void *data) {
    for (cl_uint i = 0; i < count; i++)
        if (!is_gpu(devices[i]))
            atomic_fetch_add(&built, 1);
    return real.clBuildProgram(program, count, devices, options, notify, data);
}

/* Each on a buffer of its own, so that they wait for the device alone. */
static void run(cl_kernel add_one, unsigned count) {
    cl_mem mem[MANY];
    const size_t items = N;
    cl_int zero[N] = {0}, values[N];
    for (unsigned i = 0; i < count; i++) {
        mem[i] = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(zero), zero);
        ck_ok(clSetKernelArg(add_one, 0, sizeof(mem[i]), &mem[i]));
        ck_ok(clEnqueueNDRangeKernel(queue, add_one, 1, NULL, &items, NULL, 0, NULL, NULL));
    }
    for (unsigned i = 0; i < count; i++) {
        read_ints(mem[i], values, N);
        for (int n = 0; n < N; n++)
            ck_assert_int_eq(values[n], 1);
        ck_ok(clReleaseMemObject(mem[i]));
    }
}

START_TEST(only_what_keeps_the_gpu_busy) {
    cl_program program = make_program(source);
    cl_kernel add_one = make_kernel(program, "add_one");
    run(add_one, FEW);
    ck_assert_uint_eq(atomic_load(&built), 0);
    /* Its binary is for both all the same. */
    size_t size = 0, again = 0;
    ck_ok(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, NULL));
    /* Once they have waited as long as the first build took: on a busy machine that is seconds. */
    for (int i = 0; i < 50 && atomic_load(&built) == 0; i++)
        run(add_one, MANY);
    for (int i = 0; i < 1000 && atomic_load(&built) == 0; i++)
        usleep(10000);
    ck_assert_uint_eq(atomic_load(&built), 1);
    run(add_one, MANY); /* with both */
    ck_ok(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(again), &again, NULL));
    ck_assert_uint_eq(size, again);
    ck_ok(clReleaseKernel(add_one));
    ck_ok(clReleaseProgram(program));
}
END_TEST

static void change(cl_icd_dispatch *driver) {
    slow_change(driver);
    driver->clBuildProgram = build;
    slow.length = GPU_TIME * 1000;
    slow.beside = CPU_TIME * 1000;
}

int main(int argc, char **argv) {
    const TTest *const tests[] = {only_what_keeps_the_gpu_busy};

    setenv("TUTTI_BUILDS", "auto", 1);
    setenv("TUTTI_LANES", "1", 1);
    return pocl_gpu_begin("pthread basic", change) ? test_main(argc, argv, tests, COUNT(tests)) : 0;
}
