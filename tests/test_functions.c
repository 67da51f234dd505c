/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: a program that makes a kernel object for each launch, as Boost.Compute does, makes
 * few of the driver's. PoCL takes as long to release one as there are others.
 */
#include "pocl_table.h"

#include <stdatomic.h>

enum { N = 64, LAUNCHES = 300 };

static cl_icd_dispatch real; /* what was in the driver's table */
static atomic_uint made;

static cl_kernel CL_API_CALL create_kernel(cl_program program, const char *name, cl_int *result) {
    atomic_fetch_add(&made, 1);
    return real.clCreateKernel(program, name, result);
}

static bool change_driver(void) {
    cl_platform_id pocl;
    cl_icd_dispatch *table = pocl_table(&pocl);
    if (!table)
        return false;
    real = *table;
    table->clCreateKernel = create_kernel;
    return true;
}

START_TEST(kernel_for_each_launch) {
    cl_program program = make_program(common_source);
    cl_mem buffer = make_buffer(0, N * sizeof(cl_int), NULL);
    cl_int seen[N] = {0};
    write_ints(buffer, seen, N);
    atomic_store(&made, 0);
    for (cl_int i = 1; i <= LAUNCHES; i++) {
        cl_kernel kernel = make_kernel(program, "add");
        ck_ok(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
        ck_ok(clSetKernelArg(kernel, 1, sizeof(i), &i));
        launch(kernel, N);
        ck_ok(clReleaseKernel(kernel));
    }
    read_ints(buffer, seen, N);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(seen[i], LAUNCHES * (LAUNCHES + 1) / 2);
    unsigned count = atomic_load(&made);
    ck_assert_uint_lt(count, 10);
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseProgram(program));
}
END_TEST

/* Kernel objects of one function have arguments of their own. */
START_TEST(arguments_apart) {
    cl_program program = make_program(common_source);
    cl_mem buffer[2] = {make_buffer(0, N * sizeof(cl_int), NULL),
                        make_buffer(0, N * sizeof(cl_int), NULL)};
    cl_kernel kernel[2] = {make_kernel(program, "set"), make_kernel(program, "set")};
    cl_int seen[N], value[2] = {3, 4};
    for (int i = 0; i < 2; i++) {
        ck_ok(clSetKernelArg(kernel[i], 0, sizeof(cl_mem), &buffer[i]));
        ck_ok(clSetKernelArg(kernel[i], 1, sizeof(cl_int), &value[i]));
    }
    for (int n = 0; n < 20; n++)
        launch(kernel[n % 2], N);
    for (int i = 0; i < 2; i++) {
        read_ints(buffer[i], seen, N);
        for (int j = 0; j < N; j++)
            ck_assert_int_eq(seen[j], value[i]);
    }
    /* A build makes new ones, while the old ones may be in flight. */
    launch(kernel[0], N);
    ck_ok(clReleaseKernel(kernel[0]));
    ck_ok(clReleaseKernel(kernel[1]));
    ck_ok(clBuildProgram(program, 0, NULL, "-cl-mad-enable", NULL, NULL));
    kernel[0] = make_kernel(program, "add");
    ck_ok(clSetKernelArg(kernel[0], 0, sizeof(cl_mem), &buffer[1]));
    ck_ok(clSetKernelArg(kernel[0], 1, sizeof(cl_int), &value[0]));
    launch(kernel[0], N);
    read_ints(buffer[1], seen, N);
    for (int j = 0; j < N; j++)
        ck_assert_int_eq(seen[j], 7);
    ck_ok(clReleaseKernel(kernel[0]));
    for (int i = 0; i < 2; i++)
        ck_ok(clReleaseMemObject(buffer[i]));
    ck_ok(clReleaseProgram(program));
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {kernel_for_each_launch, arguments_apart};
    if (!change_driver()) {
        puts("1..0 # SKIP PoCL is not there");
        return 0;
    }
    return test_main(argc, argv, tests, COUNT(tests));
}
