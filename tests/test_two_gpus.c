/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti, with two GPUs of one kind, for which PoCL stands in: a stream of small frames costs
 * no more than with one of them. After a beginning in which both get some of it, one GPU gets each
 * command as it comes, past StarPU, as its data goes where the rest of it is.
 */
enum { N = 256 << 10, ROUNDS = 3, MEASURED = 40, FEW = 8 };

#include "frame_stream.h"

/* Both GPUs may have a part of what is in the buffers, and of their versions. */
static void mix(void) {
    for (int i = 0; i < ROUNDS; i++)
        stream(MEASURED, FEW);
}

START_TEST(frames_stay_together) { ck_given_as_it_comes(0, MEASURED, FEW, mix); }
END_TEST

/* Each of these would be worth a task of StarPU's, if there were more of them for each transfer. */
START_TEST(with_longer_kernels) {
    kernel_length = 20000;
    ck_given_as_it_comes(0, MEASURED, FEW, mix);
}
END_TEST

static void change(cl_icd_dispatch *driver) {
    slow_change(driver);
    slow.length = kernel_length;
}

int main(int argc, char **argv) {
    const TTest *const tests[] = {frames_stay_together, with_longer_kernels};
    return pocl_gpu_begin("pthread pthread", change) ? test_main(argc, argv, tests, COUNT(tests))
                                                     : 0;
}
