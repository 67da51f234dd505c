/* SPDX-License-Identifier: MIT */
/* Native kernels that follow each other, and what the thread that executes them does between. */
#include "gate.h"
#include "resident.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MANY = 200, CROWD = 20000, ROUNDS = 200 };

static atomic_int threads, executed, ended;
static atomic_long last_thread;
static cl_command_queue inner, other;

static void CL_CALLBACK note_thread(void *argument) {
    long thread = syscall(SYS_gettid);
    (void)argument;
    if (atomic_exchange(&last_thread, thread) != thread)
        atomic_fetch_add(&threads, 1);
    atomic_fetch_add(&executed, 1);
}

static void enqueue_after(cl_event before, cl_command_queue in, void(CL_CALLBACK *function)(void *),
                          cl_event *event) {
    char argument = 0;
    ck_ok(clEnqueueNativeKernel(in, function, &argument, sizeof(argument), 0, NULL, NULL,
                                before ? 1 : 0, before ? &before : NULL, event));
}

static void enqueue(cl_command_queue in, void(CL_CALLBACK *function)(void *)) {
    enqueue_after(NULL, in, function, NULL);
}

/* Does nothing for them. */
static void look_until_executed(int count) {
    for (int ms = 0; ms < 60000 && atomic_load(&executed) < count; ms++)
        usleep(1000);
}

/*
 * So many, which begin when all are enqueued; this thread sleeps until they are over, or waits for
 * them by clFinish. Returns how much memory they took.
 */
static size_t run_many(int count, bool helps) {
    begin();
    atomic_store(&threads, 0);
    atomic_store(&last_thread, 0);
    atomic_store(&executed, 0);
    size_t before = resident();
    enqueue_after(gate, queue, note_thread, NULL);
    for (int i = 1; i < count; i++)
        enqueue(queue, note_thread);
    size_t after = resident();
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    if (!helps)
        look_until_executed(count);
    ck_ok(clFinish(queue));
    ck_assert_int_eq(atomic_load(&executed), count);
    end();
    return after > before ? after - before : 0;
}

/*
 * Each wakes no other thread for the next one: that took 7 to 20 us. Where this thread may execute
 * them it takes them over once, at most, as the gate opens.
 */
START_TEST(by_one_thread) {
    run_many(MANY, false);
    ck_assert_int_eq(atomic_load(&threads), 1);
    run_many(MANY, true);
    ck_assert_int_le(atomic_load(&threads), 2);
}
END_TEST

/* Each waits for the one before it, not for the 256 before it: those edges took 568 MiB. */
START_TEST(a_crowd_takes_little_memory) {
    size_t grown = run_many(CROWD, true);
    ck_assert_msg(grown < (size_t)CROWD * 12000, "%zu MiB", grown >> 20);
}
END_TEST

static void CL_CALLBACK note_end(void *argument) {
    (void)argument;
    atomic_fetch_add(&ended, 1);
}

/*
 * It waits for other work, which its thread may do itself meanwhile, and then, without a call that
 * waits, for work that is given after that.
 */
static void CL_CALLBACK give_others(void *argument) {
    cl_int value = 1, seen = 0;
    int before = atomic_load(&ended);
    (void)argument;
    ck_ok(clEnqueueWriteBuffer(inner, buffer, CL_FALSE, 0, sizeof(value), &value, 0, NULL, NULL));
    enqueue(inner, note_end);
    ck_ok(clEnqueueReadBuffer(inner, buffer, CL_TRUE, 0, sizeof(seen), &seen, 0, NULL, NULL));
    ck_assert_int_eq(seen, value);
    enqueue(other, note_end);
    ck_ok(clFlush(other));
    for (int ms = 0; ms < 20000 && atomic_load(&ended) < before + 2; ms++)
        usleep(1000);
    ck_assert_int_eq(atomic_load(&ended), before + 2);
}

START_TEST(that_give_others_and_wait) {
    begin();
    inner = make_queue(0);
    other = make_queue(0);
    for (int i = 0; i < ROUNDS; i++)
        enqueue(queue, give_others);
    ck_ok(clFinish(queue));
    ck_assert_int_eq(atomic_load(&ended), 2 * ROUNDS);
    ck_ok(clReleaseCommandQueue(inner));
    ck_ok(clReleaseCommandQueue(other));
    end();
}
END_TEST

static atomic_bool goes_on;

static void CL_CALLBACK wait_for_the_other(void *argument) {
    (void)argument;
    for (int ms = 0; ms < 20000 && !atomic_load(&goes_on); ms++)
        usleep(1000);
    ck_assert(atomic_load(&goes_on));
}

static void CL_CALLBACK go_on(void *argument) {
    (void)argument;
    atomic_store(&goes_on, true);
}

/* The first one lets both go, and one waits for the other: its thread takes but one of them. */
START_TEST(two_that_become_ready_at_once) {
    other = make_queue(0);
    for (int i = 0; i < ROUNDS; i++) {
        cl_event first;
        atomic_store(&goes_on, false);
        enqueue_after(NULL, queue, note_thread, &first);
        enqueue(queue, wait_for_the_other);
        enqueue_after(first, other, go_on, NULL);
        ck_ok(clFlush(other));
        ck_ok(clFinish(queue));
        ck_ok(clFinish(other));
        ck_ok(clReleaseEvent(first));
    }
    ck_ok(clReleaseCommandQueue(other));
}
END_TEST

enum { FOLLOWERS = 100, TURNS = 3 };

static cl_event follower[MANY][FOLLOWERS];

static cl_int status_of(cl_event event) {
    cl_int status = CL_QUEUED;
    ck_ok(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL));
    return status;
}

/* Ends once the followers of the one before it are over, and nobody is at them any more. */
static void CL_CALLBACK see_others_go(void *argument) {
    int own = *(const int *)argument, over = 0;
    note_thread(NULL);
    for (int i = 0; own > 0 && over < FOLLOWERS && i < 200000; i++)
        if (status_of(follower[own - 1][over]) == CL_COMPLETE)
            over++;
        else
            usleep(100);
    usleep(200);
    ck_assert(own == 0 || over == FOLLOWERS);
}

/* So many, each of which lets go the next one, and then others of another queue. */
static void run_with_followers(void) {
    begin();
    other = make_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    enqueue_after(gate, queue, note_thread, NULL);
    for (int i = 0; i < MANY; i++) {
        cl_event event;
        ck_ok(clEnqueueNativeKernel(queue, see_others_go, &i, sizeof(i), 0, NULL, NULL, 0, NULL,
                                    &event));
        for (int k = 0; k < FOLLOWERS; k++)
            follower[i][k] = fill_after(other, i, 1, &event);
        ck_ok(clReleaseEvent(event));
    }
    ck_ok(clFlush(other));
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    ck_ok(clFinish(queue));
    ck_ok(clFinish(other));
    ck_assert_int_eq(first_value(), MANY - 1);
    for (int i = 0; i < MANY * FOLLOWERS; i++)
        ck_ok(clReleaseEvent(follower[i / FOLLOWERS][i % FOLLOWERS]));
    ck_ok(clReleaseCommandQueue(other));
    end();
}

/*
 * The thread of one goes on with the next one, and leaves to another what else may be dispatched:
 * it did that itself, and each next one waited for another thread to wake.
 */
START_TEST(leave_the_rest_to_others) {
    atomic_store(&threads, 0);
    for (int i = 0; i < TURNS; i++)
        run_with_followers();
    ck_assert_msg(atomic_load(&threads) < MANY / 2, "%d times another thread",
                  atomic_load(&threads));
}
END_TEST

enum { NAPS = 20, NAP = 5000 /* us */ };

static long own_thread;
static atomic_int by_own;

static void CL_CALLBACK note_whose_thread(void *argument) {
    (void)argument;
    atomic_fetch_add(&by_own, syscall(SYS_gettid) == own_thread);
    atomic_fetch_add(&executed, 1);
}

static void *open_gate_later(void *argument) {
    (void)argument;
    usleep(NAP);
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    return NULL;
}

/* So many behind a gate which opens while this thread sleeps until all of the queue is over. */
static void sleep_behind(int count, bool on_event) {
    pthread_t opener;
    cl_event last;
    begin();
    own_thread = syscall(SYS_gettid);
    atomic_store(&executed, 0);
    enqueue_after(gate, queue, note_whose_thread, NULL);
    for (int i = 1; i < count - 1; i++)
        enqueue(queue, note_whose_thread);
    enqueue_after(NULL, queue, note_whose_thread, &last);
    ck_ok(clFlush(queue));
    ck_assert_int_eq(pthread_create(&opener, NULL, open_gate_later, NULL), 0);
    ck_ok(on_event ? clWaitForEvents(1, &last) : clFinish(queue));
    ck_assert_int_eq(atomic_load(&executed), count);
    ck_assert_int_eq(pthread_join(opener, NULL), 0);
    ck_ok(clReleaseEvent(last));
    end();
}

/*
 * Another one woke for the first one, and this one, which was to wake anyway, at the end. All of
 * one round will do: in others this thread may come to wait too late.
 */
START_TEST(by_the_thread_that_waits_for_them) {
    enum { COUNT_BEHIND = 10 };
    atomic_store(&by_own, 0);
    for (int i = 0; i < NAPS; i++)
        sleep_behind(COUNT_BEHIND, i % 2);
    ck_assert_int_ge(atomic_load(&by_own), COUNT_BEHIND);
}
END_TEST

enum { SLEEPERS = 3, WAITED = 40 };

static cl_event waited[WAITED];

static void CL_CALLBACK count_in_order(void *argument) {
    ck_assert_int_eq(atomic_fetch_add(&executed, 1), *(const int *)argument);
}

static void *wait_for_some(void *argument) {
    for (size_t i = (size_t)argument; i < WAITED; i += SLEEPERS)
        ck_ok(clWaitForEvents(1, &waited[i]));
    return NULL;
}

static void *wait_for_first(void *argument) {
    (void)argument;
    ck_ok(clWaitForEvents(1, &waited[0]));
    return NULL;
}

/* Whoever gets them they keep their order, and each thread goes on as soon as its own is over. */
START_TEST(several_threads_wait_for_those_of_one_queue) {
    for (int round = 0; round < NAPS; round++) {
        pthread_t sleeper[SLEEPERS];
        begin();
        atomic_store(&executed, 0);
        for (cl_int i = 0, natives = 0; i < WAITED; i++) {
            if (i % 4 == 3) {
                waited[i] = fill_after(queue, i, 0, NULL);
                continue;
            }
            ck_ok(clEnqueueNativeKernel(queue, count_in_order, &natives, sizeof(natives), 0, NULL,
                                        NULL, i == 0, i == 0 ? &gate : NULL, &waited[i]));
            natives++;
        }
        ck_ok(clFlush(queue));
        for (size_t i = 0; i < SLEEPERS; i++)
            ck_assert_int_eq(pthread_create(&sleeper[i], NULL, wait_for_some, (void *)i), 0);
        usleep(NAP / 10 * (round % 3));
        ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
        for (size_t i = 0; i < SLEEPERS; i++)
            ck_assert_int_eq(pthread_join(sleeper[i], NULL), 0);
        ck_assert_int_eq(atomic_load(&executed), WAITED - WAITED / 4);
        ck_assert_int_eq(first_value(), WAITED - 1);
        for (int i = 0; i < WAITED; i++)
            ck_ok(clReleaseEvent(waited[i]));
        end();
    }
}
END_TEST

/*
 * A thread still wakes up for what was the queue's last command as another one enqueues the next:
 * it is not for that one to execute, which nobody would have done.
 */
START_TEST(enqueued_as_a_thread_wakes_up) {
    for (int round = 0; round < MANY; round++) {
        pthread_t sleeper;
        begin();
        atomic_store(&executed, 0);
        waited[0] = fill_after(queue, 1, 1, &gate);
        ck_ok(clFlush(queue));
        ck_assert_int_eq(pthread_create(&sleeper, NULL, wait_for_first, NULL), 0);
        usleep(NAP / 10);
        ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
        while (get_info(cl_int, clGetEventInfo, waited[0], CL_EVENT_COMMAND_EXECUTION_STATUS) >
               CL_COMPLETE)
            ;
        enqueue(queue, note_thread);
        ck_ok(clFlush(queue));
        ck_assert_int_eq(pthread_join(sleeper, NULL), 0);
        look_until_executed(1);
        ck_assert_int_eq(atomic_load(&executed), 1);
        ck_ok(clFinish(queue));
        ck_ok(clReleaseEvent(waited[0]));
        end();
    }
}
END_TEST

int main(int argc, char **argv) {
    const TTest *tests[] = {
        by_one_thread,
        a_crowd_takes_little_memory,
        that_give_others_and_wait,
        two_that_become_ready_at_once,
        leave_the_rest_to_others,
        by_the_thread_that_waits_for_them,
        several_threads_wait_for_those_of_one_queue,
        enqueued_as_a_thread_wakes_up,
    };
    return test_main(argc, argv, tests, COUNT(tests));
}
