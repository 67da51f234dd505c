/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: when a device is through with what it was given, by tasks, times and a clock that are
 * made up. Nothing is executed.
 */
#include "../src/sched/policy_line.c"
#include "support.h"

enum { MOST = 4 };
static struct tutti_line line;
static struct starpu_task tasks[MOST];
static struct tutti_batch batches[MOST];

struct tutti_batch *tutti_device_task_batch(struct starpu_task *task) {
    return task->cl_arg;
}

static void start(void) {
    memset(&line, 0, sizeof(line));
    memset(tasks, 0, sizeof(tasks));
    memset(batches, 0, sizeof(batches));
}

/* Task i, behind all others in the program, takes so long; the line has the others before it. */
static void put(unsigned i, double length, double now) {
    double ready = tutti_line_ready(&line, TUTTI_LINE_END, now);

    batches[i].user.order = i + 1;
    tasks[i].cl_arg = &batches[i];
    tutti_line_put(&line, &tasks[i], ready, ready + length);
}

static void begin(unsigned i, double now) {
    ck_assert_ptr_eq(tutti_line_take(&line), &tasks[i]);
    tutti_line_begin(&line, &tasks[i], now);
}

static void check_ready(double at, double now) {
    ck_assert_double_eq_tol(tutti_line_ready(&line, TUTTI_LINE_END, now), at, 1e-6);
}

START_TEST(what_is_done_is_forgotten) {
    start();
    check_ready(7, 7);
    put(0, 1000, 0);
    check_ready(1000, 0);
    begin(0, 0);
    check_ready(1000, 400);
    tutti_line_end(&line, &tasks[0], 800);
    check_ready(800, 800);
}
END_TEST

/* A task that ends has no batch any more. */
START_TEST(short_ones_are_told_apart) {
    start();
    put(0, 1000, 0);
    tutti_line_set_launched(&tasks[1], true);
    put(1, 4, 0);
    put(2, 500, 0);
    ck_assert_double_eq(line.longer, 1500);
    begin(0, 0);
    begin(1, 0);
    tasks[0].cl_arg = tasks[1].cl_arg = NULL;
    tutti_line_end(&line, &tasks[0], 1000);
    tutti_line_end(&line, &tasks[1], 1004);
    ck_assert_double_eq(line.longer, 500);
    tutti_line_leave(&line, &tasks[2]);
    ck_assert_double_eq(line.longer, 0);
}
END_TEST

/* StarPU's worker has two tasks at its device: the second one does not begin at once. */
START_TEST(tasks_fly_one_behind_the_other) {
    start();
    put(0, 1000, 0);
    put(1, 1000, 0);
    put(2, 1000, 0);
    begin(0, 0);
    begin(1, 1);
    check_ready(3000, 2);
    ck_assert_ptr_null(tutti_line_take(&line)); /* it would only wait there */
    tutti_line_end(&line, &tasks[0], 1000);
    check_ready(3000, 1000);
    begin(2, 1000);
    check_ready(3000, 1000);
    tutti_line_end(&line, &tasks[1], 1500); /* the second one was faster */
    check_ready(2500, 1500);
    tutti_line_end(&line, &tasks[2], 2500);
    check_ready(2500, 2500);
}
END_TEST

/* Those that the device executes at the same time are taken, however long each takes. */
START_TEST(tasks_fly_beside_each_other) {
    start();
    for (unsigned i = 0; i < MOST; i++) {
        batches[i].beside = true;
        put(i, 1000, 0);
    }
    for (unsigned i = 0; i < MOST; i++) {
        ck_assert(!tutti_line_keeps(&line, i));
        begin(i, i);
    }
    for (unsigned i = 0; i < MOST; i++)
        tutti_line_end(&line, &tasks[i], 1000);
    check_ready(1000, 1000);
}
END_TEST

/* What takes longer than it ever did is not about to end, and what waits behind it waits longer. */
START_TEST(a_late_task_needs_longer) {
    start();
    put(0, 1000, 0);
    put(1, 1000, 0);
    begin(0, 0);
    check_ready(2000, 1000);
    check_ready(2600, 1300);
    tutti_line_end(&line, &tasks[0], 1300);
    check_ready(2300, 1300);
    begin(1, 1300);
    check_ready(2300, 1300);
    check_ready(2400, 2350);
}
END_TEST

/* Another device may take it, as long as StarPU's worker does not have it. */
START_TEST(tasks_stay_until_the_device_needs_them) {
    start();
    put(0, 5000, 0);
    ck_assert(!tutti_line_keeps(&line, 0));
    put(1, 5000, 0);
    put(2, 5000, 0);
    begin(0, 0);
    ck_assert(tutti_line_keeps(&line, 0));
    ck_assert(!tutti_line_keeps(&line, 4900)); /* it is about to end */
    ck_assert(tutti_line_keeps(&line, 6000));  /* who knows when */
    tutti_line_leave(&line, &tasks[2]);
    check_ready(10000, 100);
    begin(1, 4900);
    check_ready(10000, 4900);
    put(2, 5000, 4950);
    ck_assert(tutti_line_keeps(&line, 5000));
    tutti_line_end(&line, &tasks[0], 5000);
    tutti_line_end(&line, &tasks[1], 6000);
    ck_assert(!tutti_line_keeps(&line, 6000));
}
END_TEST

/* Around the expected end, which may be wrong by an eighth; a worker may sleep until then. */
START_TEST(the_next_task_is_taken_in_time) {
    start();
    ck_assert_double_eq(tutti_line_next_look(&line, 0), 0);
    put(0, 16000, 0);
    begin(0, 0);
    ck_assert_double_eq(tutti_line_next_look(&line, 100), HUGE_VAL); /* there is none */
    put(1, 16000, 0);
    put(2, 16000, 0);
    ck_assert_double_eq_tol(tutti_line_next_look(&line, 100), 13900, 1e-6);
    ck_assert(tutti_line_keeps(&line, 13999));
    ck_assert(!tutti_line_keeps(&line, 14001));
    ck_assert_double_gt(tutti_line_next_look(&line, 14001), 0);
    ck_assert_double_lt(tutti_line_next_look(&line, 14001), 10);
    ck_assert(!tutti_line_keeps(&line, 17999));
    ck_assert(tutti_line_keeps(&line, 18001));
    ck_assert_double_eq(tutti_line_next_look(&line, 18001), HUGE_VAL);
    begin(1, 15000);
    ck_assert_double_eq(tutti_line_next_look(&line, 15001), HUGE_VAL); /* it has two */
    tutti_line_end(&line, &tasks[0], 16000);
    ck_assert_double_eq_tol(tutti_line_next_look(&line, 16000), 14000, 1e-6);
}
END_TEST

/* What is brought only once it is taken comes while the device executes the one before. */
START_TEST(tasks_without_their_data_are_taken_early) {
    start();
    batches[1].unbrought = true;
    put(0, 5000, 0);
    put(1, 5000, 0);
    put(2, 5000, 0);
    begin(0, 0);
    ck_assert(!tutti_line_keeps(&line, 100));
    begin(1, 100);
    ck_assert(tutti_line_keeps(&line, 100));
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        what_is_done_is_forgotten,      short_ones_are_told_apart,
        tasks_fly_one_behind_the_other, tasks_fly_beside_each_other,
        a_late_task_needs_longer,       tasks_stay_until_the_device_needs_them,
        the_next_task_is_taken_in_time, tasks_without_their_data_are_taken_early};

    return test_main_bare(argc, argv, tests, COUNT(tests));
}
