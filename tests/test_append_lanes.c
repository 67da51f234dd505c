/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: of small kernels that execute beside others (lanes.h), those that come after the one
 * before them anyway are appended to it (append.h), and wait for nothing else.
 */
static unsigned long each = 40000; /* ns that a kernel takes */
#define LENGTH each
#include "append.h"

enum { QUEUES = 6, ROUNDS = 20 };

static unsigned most_busy(void) {
    pthread_mutex_lock(&slow.lock);
    unsigned most = slow.most_busy;
    slow.most_busy = slow.busy;
    pthread_mutex_unlock(&slow.lock);
    return most;
}

/* The first of each chain takes longer, so that all are on their way at the same time. */
static void begin_chains(cl_command_queue *on, int count, int chains) {
    calm_down();
    keep_events();
    most_busy();
    slow_set_length(10 * SLOW);
    for (int i = 0; i < chains; i++)
        run(on[i % count], turn, i, i, NULL);
    slow_set_length(LENGTH);
}

/* In so many queues, each with chains of its own. */
static void ck_chains(int queue_count, int chains, int in_turn) {
    int most = 0;
    unsigned at_once = 0;
    begin();
    for (int round = 0; round < ROUNDS && (most < SOME || at_once < QUEUES - 2); round++) {
        begin_chains(queues, queue_count, chains);
        appended();
        for (int i = 0; i < SOME * chains; i++)
            run(queues[i / in_turn % chains % queue_count], turn, i / in_turn % chains, i, NULL);
        for (int i = 0; i < queue_count; i++)
            ck_ok(clFinish(queues[i]));
        ck_assert_uint_eq(count_running(), 0);
        int now = appended();
        unsigned busy = most_busy();
        most = now > most ? now : most;
        at_once = busy > at_once ? busy : at_once;
    }
    ck_assert_int_ge(most, SOME);
    ck_assert_uint_ge(at_once, QUEUES - 2);
    ck_buffers(queues[0], chains);
    end();
}

START_TEST(of_several_queues) { ck_chains(QUEUES, QUEUES, 1); }
END_TEST

/* Which go past StarPU each by itself. */
START_TEST(of_longer_ones) {
    each = 200000;
    ck_chains(QUEUES, QUEUES, 1);
}
END_TEST

/* Where the next one is of another chain, it goes beside the last one. */
START_TEST(of_one_queue) { ck_chains(1, QUEUES, 2); }
END_TEST

static void settle(int number, unsigned long length) {
    each = length;
    slow_set_length(each);
    for (int i = 0; i < 4; i++) {
        run(queues[0], part, 0, number, NULL);
        ck_ok(clFinish(queues[0]));
    }
    most_busy();
    appended();
}

/* The kernel's integer argument says how long it takes, which is known for each of them. */
START_TEST(as_their_arguments_say) {
    unsigned at_once = 0;
    int short_ones = 0;
    each = 6000;
    begin();
    settle(1, 6000);
    for (int i = 0; i < MANY; i++)
        run(queues[0], part, 0, 1, NULL);
    ck_ok(clFinish(queues[0]));
    settle(2, 200000);
    settle(1, 6000);
    for (int attempt = 0; attempt < MOST - QUEUES && (at_once < QUEUES - 2 || !short_ones);
         attempt++) {
        slow_set_length(200000);
        for (int i = 0; i < 4 * QUEUES; i++)
            run(queues[i % QUEUES], part, i % QUEUES, 2, NULL);
        for (int i = 0; i < QUEUES; i++)
            ck_ok(clFinish(queues[i]));
        unsigned busy = most_busy();
        at_once = busy > at_once ? busy : at_once;
        appended();
        slow_set_length(6000);
        cl_command_queue fresh = queues[QUEUES + attempt]; /* where nothing was tried in vain */
        for (int i = 0; i < SOME; i++)
            run(fresh, part, i % 3, 1, NULL);
        ck_ok(clFinish(fresh));
        short_ones += most_busy() == 1 && appended() > 0;
    }
    ck_assert_uint_ge(at_once, QUEUES - 2);
    ck_assert_int_gt(short_ones, 0);
    ck_buffers(queues[0], QUEUES);
    end();
}
END_TEST

/* The command's end, which was to be seen, tells nothing of what is appended. */
START_TEST(its_end_is_no_more) {
    int appended_to = 0;
    begin();
    for (int round = 0; round < ROUNDS && appended_to < 3; round++) {
        begin_chains(queues, 2, 2);
        appended();
        usleep(round % 2 * 3000); /* who looks after ends has seen it */
        slow_set_length(20 * SLOW);
        run(queues[1], turn, 1, round, NULL);
        slow_set_length(LENGTH);
        appended_to += appended();
        ck_ok(clFinish(queues[1]));
        ck_assert_uint_eq(count_running(), 0);
        ck_ok(clFinish(queues[0]));
    }
    ck_assert_int_gt(appended_to, 0);
    ck_buffers(queues[0], 2);
    end();
}
END_TEST

/* What uses their memory waits for them, whatever it is, and the next ones for that. */
START_TEST(others_wait_for_them) {
    begin();
    for (int round = 0; round < ROUNDS; round++) {
        cl_int seen[N];
        begin_chains(queues, QUEUES, QUEUES);
        for (int i = 0; i < 3 * QUEUES; i++)
            run(queues[i % QUEUES], turn, i % QUEUES, i, NULL);
        for (int i = 0; i < QUEUES; i++)
            ck_ok(clFlush(queues[i]));
        run_gather(queues[0], 1, 2);
        ck_ok(clFinish(queues[0]));
        ck_ok(clEnqueueCopyBuffer(queues[1], buffer[2], buffer[3], 0, 0, sizeof(seen), 0, NULL,
                                  NULL));
        want[3] = want[2];
        ck_ok(clFinish(queues[1]));
        run(queues[3], turn, 3, round, NULL);
        ck_ok(clEnqueueReadBuffer(queues[3], buffer[3], CL_TRUE, 0, sizeof(seen), seen, 0, NULL,
                                  NULL));
        for (int k = 0; k < N; k++)
            ck_assert_uint_eq((cl_uint)seen[k], want[3]);
        ck_buffers(queues[4], QUEUES);
        for (int i = 0; i < QUEUES; i++)
            ck_ok(clFinish(queues[i]));
        count_running();
    }
    ck_assert_int_gt(appended(), 0);
    end();
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        of_several_queues, of_longer_ones,     as_their_arguments_say,
        of_one_queue,      its_end_is_no_more, others_wait_for_them,
    };
    return pocl_gpu_begin("pthread", change) ? test_main_logged(argc, argv, tests, COUNT(tests))
                                             : 0;
}
