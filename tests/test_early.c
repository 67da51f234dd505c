/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: small buffers that a GPU's kernels use before StarPU knows of them, made for a
 * command or two and released at once. PoCL stands in for the GPU.
 */
#include "lives.h"
#include "pocl_gpu.h"

enum { ROUNDS = 300, KEPT = 320, KEPT_BYTES = 256 << 10 };

/* Nothing of theirs is StarPU's. */
START_TEST(live_past_starpu) {
    lives_begin(1);
    for (int round = 0; round < ROUNDS / 3; round++) /* until it is known how long they take */
        lives_one(true);
    test_went_directly();
    for (int round = 0; round < ROUNDS; round++)
        lives_one(true);
    ck_assert_int_gt(test_went_directly(), 2 * ROUNDS);
    lives_end();
}
END_TEST

/* Whatever uses them next finds what the kernels made. */
START_TEST(are_used_by_others) {
    for (cl_uint seed = 1; seed < 6; seed++) {
        lives_begin(seed);
        for (int round = 0; round < ROUNDS; round++)
            lives_one(round % 4 == 0);
        lives_end();
    }
}
END_TEST

/* More than may be early at the same time. */
START_TEST(are_many) {
    static cl_int values[KEPT_BYTES / sizeof(cl_int)];
    static cl_mem buffer[KEPT];
    size_t items = KEPT_BYTES / sizeof(cl_int);
    lives_begin(1);
    for (int round = 0; round < ROUNDS / 3; round++)
        lives_one(true);
    for (int time = 0; time < 2; time++) {
        for (int b = 0; b < KEPT; b++) {
            cl_int by = 1000 * b;
            buffer[b] = make_buffer(CL_MEM_COPY_HOST_PTR, KEPT_BYTES, values);
            ck_ok(clSetKernelArg(lives.add, 0, sizeof(buffer[b]), &buffer[b]));
            ck_ok(clSetKernelArg(lives.add, 1, sizeof(by), &by));
            for (int k = 0; k < 2; k++)
                lives_launch(lives.add, items);
        }
        for (int b = 0; b < KEPT; b++) {
            ck_ok(clEnqueueReadBuffer(queue, buffer[b], CL_TRUE, 0, KEPT_BYTES, values, 0, NULL,
                                      NULL));
            int wrong = 0; /* an assertion for each takes a minute on a busy machine */
            for (size_t i = 0; i < items; i++)
                wrong += values[i] != 2000 * b;
            ck_assert_int_eq(wrong, 0);
            memset(values, 0, sizeof(values));
            ck_ok(clReleaseMemObject(buffer[b]));
        }
    }
    lives_end();
}
END_TEST

/* A kernel that waits for the program brings what the buffer had when it was enqueued. */
START_TEST(wait_for_the_program) {
    cl_int values[LIFE], seen[LIFE];
    lives_begin(1);
    for (int round = 0; round < ROUNDS / 3; round++)
        lives_one(true);
    for (int round = 0; round < 20; round++) {
        size_t items = LIFE;
        cl_int by = 5;
        for (int i = 0; i < LIFE; i++)
            values[i] = i;
        cl_mem buffer = make_buffer(CL_MEM_COPY_HOST_PTR, LIFE_BYTES, values);
        cl_event gate = make_user_event();
        ck_ok(clSetKernelArg(lives.add, 0, sizeof(buffer), &buffer));
        ck_ok(clSetKernelArg(lives.add, 1, sizeof(by), &by));
        ck_ok(clEnqueueNDRangeKernel(queue, lives.add, 1, NULL, &items, NULL, 1, &gate, NULL));
        memset(values, 0, sizeof(values));
        ck_ok(clEnqueueReadBuffer(queue, buffer, CL_FALSE, 0, LIFE_BYTES, seen, 0, NULL, NULL));
        ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, LIFE_BYTES, values, 0, NULL, NULL));
        ck_ok(clReleaseMemObject(buffer));
        ck_ok(clSetUserEventStatus(gate, round % 2 ? CL_COMPLETE : -77));
        ck_ok(clReleaseEvent(gate));
        cl_int result = clFinish(queue);
        for (int i = 0; i < LIFE && round % 2; i++)
            ck_assert_int_eq(seen[i], i + 5);
        ck_assert_int_eq(result, CL_SUCCESS);
    }
    lives_end();
}
END_TEST

/* Two boxes of one buffer that do not overlap, though PoCL's driver says so. */
START_TEST(copy_boxes_within_themselves) {
    cl_int expected[LIFE], seen[LIFE];
    const size_t from[] = {4, 0, 10}, to[] = {0, 0, 9}, region[] = {2, 6, 1};
    unsigned char *bytes = (unsigned char *)expected;
    lives_begin(1);
    cl_mem buffer = make_buffer(0, LIFE_BYTES, NULL);
    for (int round = 0; round < 20; round++) {
        lives_set(buffer, round << 10, expected);
        ck_ok(clEnqueueCopyBufferRect(queue, buffer, buffer, from, to, region, 10, 60, 10, 60, 0,
                                      NULL, NULL));
        for (int y = 0; y < 6; y++)
            memcpy(bytes + 9 * 60 + 10 * y, bytes + 10 * 60 + 10 * y + 4, 2);
        ck_ok(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, LIFE_BYTES, seen, 0, NULL, NULL));
        ck_assert_mem_eq(seen, expected, LIFE_BYTES);
    }
    ck_ok(clReleaseMemObject(buffer));
    lives_end();
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {live_past_starpu, are_used_by_others, are_many,
                                  wait_for_the_program, copy_boxes_within_themselves};
    return pocl_gpu_begin("pthread", NULL) ? test_main_logged(argc, argv, tests, COUNT(tests)) : 0;
}
