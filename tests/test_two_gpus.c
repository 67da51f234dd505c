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

START_TEST(frames_stay_together) { ck_given_as_it_comes(LENGTH, MEASURED, FEW, mix); }
END_TEST

static void change(cl_icd_dispatch *driver) {
    slow_change(driver);
    slow.length = LENGTH;
}

int main(int argc, char **argv) {
    const TTest *const tests[] = {frames_stay_together};
    return pocl_gpu_begin("pthread pthread", change) ? test_main(argc, argv, tests, COUNT(tests))
                                                     : 0;
}
