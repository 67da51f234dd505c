/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: what goes from one GPU to the other through page-locked memory. PoCL stands in for
 * two.
 */
#include "pocl_gpu.h"

#define ACROSS_LOGGED "bytes on to"
#include "across.h"
#include "page_locked.h"

/* What only devices use gets no memory of the host's, though it wanders; the host may want it yet.
 */
START_TEST(a_buffer_of_devices) {
    enum { PART = 1 << 20 };
    skip_if(real_devices() < 2, "one real device only");
    open_all();
    cl_mem ramp = make_ramp(), buffer = make_buffer(0, BYTES, NULL);
    cl_int first;
    int went_on;

    copy_to(ramp, buffer, INTS);
    ck_ok(clFinish(queue));
    moves();
    for (int i = 0; i < STEPS; i++)
        add_to(buffer, 1, INTS);
    ck_ok(clFinish(queue));
    ck_assert_int_eq(locked_since(BYTES, ACROSS_LOGGED, &went_on), 0);
    ck_assert_int_gt(went_on, 0);
    ck_ok(clReleaseMemObject(ramp)); /* what was locked for that would be used again */
    read_ints(buffer, &first, 1);
    ck_assert_int_eq(first, STEPS);
    for (int i = 0; i < STEPS; i++) {
        add_to(buffer, 1, INTS);
        cl_int *mapped = clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                            PART, PART, 0, NULL, NULL, &error);
        ck_ok(error);
        ck_assert_int_eq(mapped[0], PART / 4 + STEPS + i + 1);
        ck_ok(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL));
    }
    ck_ramp(buffer, 2 * STEPS);
    ck_ok(clReleaseMemObject(buffer));
    close_all();
}
END_TEST

/* A copy of a part takes no memory for all of it either. */
START_TEST(a_part_goes_across) {
    enum { PART = 5 << 20 };
    skip_if(real_devices() < 2, "one real device only");
    open_all();
    cl_mem from = make_ramp(), to = make_ramp();

    locked_since(0, NULL, NULL);
    for (int i = 1; i <= STEPS / 2; i++) {
        add_to(from, 1, INTS);
        add_to(to, 1, INTS);
        ck_ok(clEnqueueCopyBuffer(queue, from, to, 0, 0, PART, 0, NULL, NULL));
        ck_ok(clFinish(queue));
    }
    ck_assert_int_eq(locked_since(PART, NULL, NULL), 0);
    ck_ramp(to, STEPS / 2);
    ck_ok(clReleaseMemObject(from));
    ck_ok(clReleaseMemObject(to));
    close_all();
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {a_buffer_of_devices, a_part_goes_across, ACROSS_TESTS};

    across_set("staged");
    return pocl_gpu_begin("pthread pthread", NULL)
               ? test_main_logged(argc, argv, tests, COUNT(tests))
               : 0;
}
