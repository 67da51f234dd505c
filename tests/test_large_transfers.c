/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: transfers of page-locked memory that are too large to be among kernels are ordered
 * with those by the GPU's queues, without a thread that waits for their ends.
 */
enum { N = 1280 << 10 };

#include "transfer_lanes.h"

enum { FRAMES = 10 };

/* Kernels take longer from here on, until slow_set_length, and are known to. */
static void lengthen(void) {
    enum { LONGER = 200000 /* ns */ };
    slow_set_length(LONGER);
    for (int i = 0; i < 2 * WARM; i++) {
        send(1);
        ck_ok(clFinish(queue));
    }
}

static int count_apart(void) { return test_log_count(" commands in lane "); }

START_TEST(of_frames) {
    begin();
    count_apart();
    for (int f = 0; f < FRAMES; f++) {
        send(1);
        ck_ok(clFinish(queue));
        ck_assert_int_eq(count_wrong(back[0], 0, N, sent[0][0] + 2), 0);
        memset(back[0], 0, BYTES);
    }
    ck_assert_int_ge(count_apart(), FRAMES); /* of twice as many */
    end();
}
END_TEST

/*
 * A program that is far ahead of its kernels, which are collected then: the upload of a frame was
 * collected with the kernels and the download of the one before it, and came after both.
 */
START_TEST(of_frames_far_ahead) {
    enum { MANY = 80 };
    int wrong = 0;
    begin();
    lengthen();
    send(MANY);
    ck_ok(clFinish(queue));
    take_aside(0);
    take_aside(1);
    send(MANY);
    ck_ok(clFinish(queue));
    for (int s = 0; s < SLOTS; s++)
        wrong += count_wrong(back[s], 0, N, sent[s][0] + 2);
    ck_assert_int_eq(wrong, 0);
    ck_assert_uint_ge(take_aside(0), MANY * 3 / 4);
    ck_assert_uint_ge(take_aside(1), MANY * 3 / 4);
    slow_set_length(LENGTH);
    end();
}
END_TEST

/* What StarPU's task used on the GPU is known to be there as soon as that is over. */
START_TEST(behind_a_task_of_starpu) {
    int aside = 0;
    begin();
    for (int f = 0; f < FRAMES; f++) {
        cl_mem in = make_buffer(0, BYTES, NULL), out = make_buffer(0, BYTES, NULL);
        write_later(in, 0, N, sent[0]);
        launch_from(next, in, out);
        ck_ok(clFinish(queue));
        count_apart();
        write_later(in, 0, N, sent[1]);
        ck_ok(clFinish(queue));
        aside += count_apart();
        launch_from(next, in, out);
        read_later(out, 0, N, back[0]);
        ck_ok(clFinish(queue));
        ck_assert_int_eq(count_wrong(back[0], 0, N, sent[1][0] + 1), 0);
        ck_ok(clReleaseMemObject(in));
        ck_ok(clReleaseMemObject(out));
    }
    ck_assert_int_ge(aside, FRAMES / 2);
    end();
}
END_TEST

/*
 * It is as far ahead as it likes: from the 64th command on its kernels were collected, and StarPU
 * got the transfers between them, for as long as the program did not wait.
 */
START_TEST(of_a_long_stream) {
    enum { MANY = 80, ATTEMPTS = 8 };
    int wrong = 0, collected, attempts = 0;
    begin();
    lengthen();
    do {
        send(MANY);
        ck_ok(clFinish(queue));
        test_log_count("");
        send(MANY);
        ck_ok(clFinish(queue));
        collected = test_log_count(" kernels as one task");
        for (int s = 0; s < SLOTS; s++)
            wrong += count_wrong(back[s], 0, N, sent[s][0] + 2);
    } while (collected > MANY / 4 && ++attempts < ATTEMPTS);
    ck_assert_int_eq(wrong, 0);
    ck_assert_int_le(collected, MANY / 4);
    slow_set_length(LENGTH);
    end();
}
END_TEST

/* How many of an in-order queue's commands have times that can't be. Releases their events. */
static int count_late(cl_event *events, int count) {
    cl_ulong last = 0;
    int late = 0;
    for (int e = 0; e < count; e++) {
        cl_ulong time[4]; /* queued, submitted, started, ended */
        for (cl_profiling_info what = 0; what < COUNT(time); what++)
            ck_ok(clGetEventProfilingInfo(events[e], CL_PROFILING_COMMAND_QUEUED + what,
                                          sizeof(time[what]), &time[what], NULL));
        late += time[0] > time[1] || time[1] > time[2] || time[2] > time[3] || time[3] < last;
        last = time[3];
        ck_ok(clReleaseEvent(events[e]));
    }
    return late;
}

/*
 * By a queue with profiling: StarPU executed each, and a frame's kernels waited for the download of
 * the one before it.
 */
START_TEST(of_frames_with_times) {
    enum { MANY = 24, ATTEMPTS = 8 };
    cl_event ends[MANY][2];
    int wrong = 0, aside, attempts = 0;
    begin();
    cl_command_queue plain = begin_times();
    lengthen();
    do {
        send(MANY);
        ck_ok(clFinish(queue));
        count_apart();
        for (int f = 0; f < MANY; f++) {
            ck_ok(clEnqueueWriteBuffer(queue, buffer[0], CL_FALSE, 0, BYTES, sent[f % SLOTS], 0,
                                       NULL, &ends[f][0]));
            launch_from(next, buffer[0], buffer[1]);
            launch_from(next, buffer[1], buffer[2]);
            ck_ok(clEnqueueReadBuffer(queue, buffer[2], CL_FALSE, 0, BYTES, back[f % SLOTS], 0,
                                      NULL, &ends[f][1]));
        }
        ck_ok(clFinish(queue));
        aside = count_apart();
        for (int s = 0; s < SLOTS; s++)
            wrong += count_wrong(back[s], 0, N, sent[s][0] + 2);
        wrong += count_late(&ends[0][0], 2 * MANY);
    } while (aside < MANY && ++attempts < ATTEMPTS);
    ck_assert_int_eq(wrong, 0);
    ck_assert_int_ge(aside, MANY); /* of twice as many */
    end_times(plain);
    slow_set_length(LENGTH);
    end();
}
END_TEST

/* What is executed beside a kernel takes no longer by its times, though it ends behind that. */
START_TEST(times_beside_a_kernel) {
    enum { BUSY = 400000000 /* ns */ };
    const size_t size = N;
    cl_event computed, written;
    cl_ulong started, ended;
    begin();
    cl_command_queue plain = begin_times();
    send(1);
    ck_ok(clFinish(queue));
    count_apart();
    unsigned long before = slow_set_length(BUSY);
    ck_ok(clSetKernelArg(next, 0, sizeof(cl_mem), &buffer[0]));
    ck_ok(clSetKernelArg(next, 1, sizeof(cl_mem), &buffer[1]));
    ck_ok(clEnqueueNDRangeKernel(queue, next, 1, NULL, &size, NULL, 0, NULL, &computed));
    ck_ok(clFlush(queue));
    ck_assert(slow_await(before + 1));
    slow_set_length(LENGTH);
    ck_ok(clEnqueueWriteBuffer(queue, buffer[2], CL_FALSE, 0, BYTES, sent[0], 0, NULL, &written));
    ck_ok(clFinish(queue));
    ck_assert_int_eq(count_apart(), 1);
    ck_ok(clGetEventProfilingInfo(written, CL_PROFILING_COMMAND_START, sizeof(started), &started,
                                  NULL));
    ck_ok(clGetEventProfilingInfo(written, CL_PROFILING_COMMAND_END, sizeof(ended), &ended, NULL));
    ck_assert_uint_lt(ended - started, BUSY / 2);
    ck_ok(clReleaseEvent(computed));
    ck_ok(clReleaseEvent(written));
    end_times(plain);
    end();
}
END_TEST

/* What the program wrote to a map, before the kernel that uses it. */
START_TEST(of_maps) {
    begin();
    count_apart();
    for (int f = 0; f < FRAMES; f++) {
        cl_int *bytes =
            ck_made(clEnqueueMapBuffer(queue, buffer[0], CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 0,
                                       BYTES, 0, NULL, NULL, &error));
        for (int i = 0; i < N; i++)
            bytes[i] = f;
        ck_ok(clEnqueueUnmapMemObject(queue, buffer[0], bytes, 0, NULL, NULL));
        launch_from(next, buffer[0], buffer[1]);
        ck_ok(clFinish(queue));
        ck_ok(clEnqueueReadBuffer(queue, buffer[1], CL_TRUE, 0, BYTES, back[0], 0, NULL, NULL));
        ck_assert_int_eq(count_wrong(back[0], 0, N, f + 1), 0);
    }
    ck_assert_int_ge(count_apart(), FRAMES / 2);
    end();
}
END_TEST

/*
 * Mapped while a worker gives it its first memory on the GPU. ThreadSanitizer is the judge: home
 * memory is made at the same time.
 */
START_TEST(map_of_what_is_new) {
    begin();
    for (int f = 0; f < FRAMES; f++) {
        cl_mem fresh = make_buffer(0, BYTES, NULL);
        write_later(fresh, 0, N, sent[f % SLOTS]);
        cl_int *bytes = ck_made(clEnqueueMapBuffer(queue, fresh, CL_FALSE, CL_MAP_READ, 0, BYTES, 0,
                                                   NULL, NULL, &error));
        ck_ok(clFinish(queue));
        ck_assert_int_eq(count_wrong(bytes, 0, N, sent[f % SLOTS][0]), 0);
        ck_ok(clEnqueueUnmapMemObject(queue, fresh, bytes, 0, NULL, NULL));
        ck_ok(clReleaseMemObject(fresh));
    }
    end();
}
END_TEST

START_TEST(anything) {
    void (*const some[])(unsigned *) = {write_some, read_some, launch_some, launch_some, map_some};
    ck_assert_uint_gt(draw_programs(12, 50, some, COUNT(some)), 0);
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {of_frames,        of_frames_far_ahead,  behind_a_task_of_starpu,
                                  of_a_long_stream, of_frames_with_times, times_beside_a_kernel,
                                  of_maps,          map_of_what_is_new,   anything};
    return pocl_gpu_begin("pthread", change) ? test_main_logged(argc, argv, tests, COUNT(tests))
                                             : 0;
}
