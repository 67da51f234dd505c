/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: a program that sends larger frames through a GPU by one in-order queue, and does not
 * wait for each, has uploads, kernels and downloads at the same time, each on a queue of their own,
 * in the order that its buffers and arrays ask for. PoCL stands in for the GPU.
 */
enum { N = 320 << 10 };

#include "transfer_lanes.h"

START_TEST(frames) {
    enum { FRAMES = 60, ATTEMPTS = 8 };
    unsigned up, down;
    int attempts = 0, wrong = 0;
    begin();
    do {
        take_aside(0);
        take_aside(1);
        send(FRAMES);
        ck_ok(clFinish(queue));
        up = take_aside(0);
        down = take_aside(1);
        for (int s = 0; s < SLOTS; s++)
            wrong += count_wrong(back[s], 0, N, sent[s][0] + 2);
    } while ((up < FRAMES / 2 || down < FRAMES / 2) && ++attempts < ATTEMPTS);
    ck_assert_int_eq(wrong, 0);
    ck_assert_uint_ge(up, FRAMES / 2);
    ck_assert_uint_ge(down, FRAMES / 2);
    ck_assert_ptr_ne(given.uploads, given.downloads);
    end();
}
END_TEST

/* The upload of a frame is over while the kernel of the first one is executed, and keeps its data.
 */
START_TEST(upload_beside_a_kernel) {
    enum { BUSY = 400000000, FRAMES = 6, ATTEMPTS = 8 };
    unsigned written;
    int attempts = 0;
    begin();
    do {
        send(1);
        send(1);
        ck_ok(clFinish(queue));
        slow_set_length(BUSY);
        atomic_store(&given.written, 0);
        write_later(buffer[0], 0, N, sent[0]);
        launch_from(next, buffer[0], buffer[1]);
        slow_set_length(LENGTH);
        launch_from(next, buffer[1], buffer[2]);
        read_later(buffer[2], 0, N, back[0]);
        send(FRAMES);
        ck_ok(clFlush(queue));
        usleep(BUSY / 4000);
        written = atomic_load(&given.written);
        ck_ok(clFinish(queue));
        for (int s = 0; s < SLOTS; s++)
            ck_assert_int_eq(count_wrong(back[s], 0, N, sent[s][0] + 2), 0);
    } while (written < FRAMES / 2 && ++attempts < ATTEMPTS);
    ck_assert_uint_ge(written, FRAMES / 2);
    end();
}
END_TEST

/* A program that waits for each frame gains nothing by it. */
START_TEST(one_frame_at_a_time) {
    begin();
    test_log_count("");
    for (int f = 0; f < 20; f++) {
        send(1);
        ck_ok(clFinish(queue));
    }
    ck_assert_int_eq(test_log_count(" commands in lane "), 0);
    end();
}
END_TEST

static void draw_some(void) {
    void (*const some[])(unsigned *) = {write_some, read_some, launch_some, launch_some};
    ck_assert_uint_gt(draw_programs(25, 60, some, COUNT(some)), 0);
}

START_TEST(anything) { draw_some(); }
END_TEST

START_TEST(anything_with_times) {
    cl_command_queue plain = begin_times();
    draw_some();
    end_times(plain);
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {frames, upload_beside_a_kernel, one_frame_at_a_time, anything,
                                  anything_with_times};
    return pocl_gpu_begin("pthread", change) ? test_main_logged(argc, argv, tests, COUNT(tests))
                                             : 0;
}
