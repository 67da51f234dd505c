/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_POLICY_LINE_H
#define TUTTI_POLICY_LINE_H

#include <limits.h>
#include <math.h>
#include <starpu.h>
#include <stdatomic.h>
#include <stdbool.h>

/*
 * What a device was given to do, and when it should be through with it. Times in µs, as in
 * policy_choose.h. The policy's lock guards it, but for what is said to need none.
 */
struct tutti_line {
    struct starpu_task_list tasks; /* not taken by StarPU's worker yet */
    atomic_uint count;             /* of them; read without the lock */
    atomic_uint unbrought;     /* of them, whose data is brought once they are taken; likewise */
    atomic_uint beside;        /* of them, that the device executes beside others; likewise */
    atomic_uint taken;         /* what the worker has taken and not ended; likewise */
    double waiting;            /* expected time of them all */
    unsigned unfinished;       /* these, and what was taken; */
    double longer;             /* expected time of those that are not `launched` */
    double last_end;           /* of the last one, as planned when it was given */
    double drift;              /* by how much the device is later than planned */
    unsigned flying;           /* tasks that began, one behind the other */
    _Atomic double flight;     /* expected time of those in all. Read without the lock */
    _Atomic double flight_end; /* when they should end; 0: there are none. Read without the lock */
};

/*
 * When the device will have done all that comes before a task of that order (batch.h): a line is in
 * the program's order. So one chain ends after the other, and what comes after it, as to read its
 * result, overlaps the next; in the order in which tasks become ready, all chains would end at
 * once.
 */
double tutti_line_ready(const struct tutti_line *line, unsigned long order, double now);
#define TUTTI_LINE_END ULONG_MAX /* the order of what comes after all */

/*
 * Is it a GPU's line, which executes the task in less time than its launch takes? That is said
 * before it is put there, and kept with the task: its batch is no more when StarPU tells the end.
 */
static inline void tutti_line_set_launched(struct starpu_task *task, bool launched) {
    task->sched_data = launched ? task : NULL;
}
static inline bool tutti_line_is_launched(const struct starpu_task *task) {
    return task->sched_data != NULL;
}

/*
 * Puts the task into the line; it is expected to begin and end then. Its batch knows whether its
 * data is brought meanwhile.
 */
void tutti_line_put(struct tutti_line *line, struct starpu_task *task, double start, double end);
/* The worker takes the first task; NULL: there is none, or it is too early. */
struct starpu_task *tutti_line_take(struct tutti_line *line);
/* Takes a waiting task away, for another device. */
void tutti_line_leave(struct tutti_line *line, struct starpu_task *task);

/* A task that was taken begins, maybe behind others; and the first of them has ended. */
void tutti_line_begin(struct tutti_line *line, const struct starpu_task *task, double now);
void tutti_line_end(struct tutti_line *line, const struct starpu_task *task, double now);

/*
 * Expected time until the device has ended what it executes; 0: nothing. What is late by some time
 * is expected to need as much again. Needs no lock.
 */
double tutti_line_busy(const struct tutti_line *line, double now);

/*
 * Is it too early for StarPU's worker to take another task? It takes one while the device executes
 * another, and that can go to no other device any more; more than one if the device executes them
 * at the same time. Needs no lock.
 */
bool tutti_line_keeps(const struct tutti_line *line, double now);

/*
 * The device executes something: µs until the worker may take the next task, if there is one;
 * HUGE_VAL: not before that ends. 0: it executes nothing. Needs no lock.
 */
double tutti_line_next_look(const struct tutti_line *line, double now);

/*
 * The waiting tasks are expected to take `waiting` in all now; those that count as `longer` so much
 * more than before.
 */
void tutti_line_expect(struct tutti_line *line, double waiting, double longer);

#endif
