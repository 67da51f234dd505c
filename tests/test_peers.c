/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: what goes from one real device to the other by a copy of the driver that owns both.
 * PoCL stands in for two GPUs.
 */
#include "pocl_gpu.h"

#define ACROSS_LOGGED "bytes straight to"
#include "across.h"

#include <stdatomic.h>

/* No copy of the driver's gets so many bytes, as if a device had no room for what it takes. */
static atomic_size_t refused = SIZE_MAX;

static cl_int CL_API_CALL enqueue_copy(cl_command_queue on, cl_mem from, cl_mem to,
                                       size_t from_offset, size_t to_offset, size_t size,
                                       cl_uint count, const cl_event *list, cl_event *event) {
    return size >= refused ? CL_MEM_OBJECT_ALLOCATION_FAILURE
                           : real.clEnqueueCopyBuffer(on, from, to, from_offset, to_offset, size,
                                                      count, list, event);
}

static void change(cl_icd_dispatch *driver) { driver->clEnqueueCopyBuffer = enqueue_copy; }

/* Short ones too, which StarPU's worker copies itself. */
START_TEST(short_ones_wander) {
    enum { SHORT = 100 };
    open_all();
    cl_mem buffer = make_ramp();

    moves();
    for (int i = 0; i < STEPS; i++)
        add_to(buffer, 1, SHORT);
    for (int i = 0; i < STEPS; i++) {
        cl_int first = 0;
        add_to(buffer, 1, SHORT);
        read_ints(buffer, &first, 1);
        ck_assert_int_eq(first, STEPS + i + 1);
    }
    ck_assert_uint_gt(moves(), 0);
    ck_ok(clReleaseMemObject(buffer));
    close_all();
}
END_TEST

START_TEST(a_refused_copy_goes_another_way) {
    open_all();
    cl_mem buffer = make_ramp();

    moves();
    refused = BYTES;
    for (int i = 0; i < STEPS; i++)
        add_to(buffer, 1, INTS);
    ck_ok(clFinish(queue));
    ck_assert_uint_eq(moves(), 0);
    refused = SIZE_MAX;
    ck_ramp(buffer, STEPS);
    ck_ok(clReleaseMemObject(buffer));
    close_all();
}
END_TEST

/* A program of the common context has a binary for each device in it. */
START_TEST(programs_have_binaries) {
    enum { FEW = 1000 };
    cl_program built = make_program(common_source);
    unsigned char *binary;
    size_t size = 0;
    cl_int status;

    ck_ok(clGetProgramInfo(built, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, NULL));
    ck_assert_uint_gt(size, 0);
    ck_assert_ptr_nonnull(binary = malloc(size));
    ck_ok(clGetProgramInfo(built, CL_PROGRAM_BINARIES, sizeof(binary), &binary, NULL));
    ck_ok(clReleaseProgram(built));
    program = ck_made(clCreateProgramWithBinary(context, 1, &device, &size,
                                                (const unsigned char **)&binary, &status, &error));
    ck_ok(status);
    ck_ok(clBuildProgram(program, 0, NULL, NULL, NULL, NULL));
    add = make_kernel(program, "add");
    cl_int zeros[FEW] = {0};
    cl_mem buffer = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(zeros), zeros);
    for (int i = 0; i < STEPS; i++)
        add_to(buffer, 1, FEW);
    read_ints(buffer, zeros, FEW);
    ck_all(zeros, FEW, STEPS);
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
    free(binary);
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {ACROSS_TESTS, short_ones_wander, a_refused_copy_goes_another_way,
                                  programs_have_binaries};

    across_set("peer");
    return pocl_gpu_begin("pthread pthread", change)
               ? test_main_logged(argc, argv, tests, COUNT(tests))
               : 0;
}
