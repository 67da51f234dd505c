/* SPDX-License-Identifier: MIT */
#include "sched/policy_line.h"

#include "sched/batch.h"

/* Through so many tasks at the end of a line is looked for the place of one of an earlier order. */
#define MOST_OVERTAKEN 256
/* Tasks that the worker has at once: the device begins the second when the first is over. */
#define AHEAD 2
/*
 * µs before the device needs it a task is taken: more than StarPU and the driver need for it. And
 * the part of what the device executes, by which that may be shorter than expected.
 */
#define TAKEN_BEFORE 500.0
#define TAKEN_SHARE 8
#define SOON 1.0 /* µs */

/* The first of those that a task of that order overtakes, or NULL; and what they take in all. */
static struct starpu_task *first_overtaken(const struct tutti_line *line, unsigned long order,
                                           double *length) {
    struct starpu_task *first = NULL, *task = line->tasks.tail;
    *length = 0;
    for (unsigned i = 0; task && i < MOST_OVERTAKEN; i++, task = task->prev) {
        if (tutti_device_task_batch(task)->user.order < order)
            break;
        *length += task->predicted;
        first = task;
    }
    return first;
}

double tutti_line_ready(const struct tutti_line *line, unsigned long order, double now) {
    if (line->unfinished == 0)
        return now;
    double busy = tutti_line_busy(line, now), overtaken = 0;
    double late = busy > 0 ? now + busy - line->flight_end : 0;
    double end = line->last_end + line->drift + late, least = now + busy + line->waiting;
    if (order != TUTTI_LINE_END)
        first_overtaken(line, order, &overtaken);
    end = (end > least ? end : least) - overtaken;
    return end > now ? end : now;
}

static void insert_before(struct starpu_task_list *list, struct starpu_task *task,
                          struct starpu_task *next) {
    task->next = next;
    task->prev = next->prev;
    *(task->prev ? &task->prev->next : &list->head) = task;
    next->prev = task;
}

/* What is to be known of waiting tasks without the lock. */
static void count(struct tutti_line *line, struct starpu_task *task, int more) {
    const struct tutti_batch *batch = tutti_device_task_batch(task);
    if (batch->unbrought)
        atomic_fetch_add_explicit(&line->unbrought, (unsigned)more, memory_order_relaxed);
    if (batch->beside)
        atomic_fetch_add_explicit(&line->beside, (unsigned)more, memory_order_relaxed);
}

/* One more, or one less, is not over. */
static void count_unfinished(struct tutti_line *line, const struct starpu_task *task, int more) {
    line->unfinished += (unsigned)more;
    if (!tutti_line_is_launched(task))
        line->longer += more * task->predicted;
    if (line->unfinished == 0)
        line->longer = 0;
}

void tutti_line_put(struct tutti_line *line, struct starpu_task *task, double start, double end) {
    if (line->unfinished == 0)
        line->drift = 0;
    double overtaken, length = end - start;
    struct starpu_task *first =
        first_overtaken(line, tutti_device_task_batch(task)->user.order, &overtaken);
    task->predicted = length;
    count_unfinished(line, task, 1);
    if (first) {
        task->predicted_start = first->predicted_start;
        insert_before(&line->tasks, task, first);
        for (; first; first = first->next)
            first->predicted_start += length;
        line->last_end += length;
    } else {
        task->predicted_start = start - line->drift;
        line->last_end = end - line->drift;
        starpu_task_list_push_back(&line->tasks, task);
    }
    line->waiting += length;
    atomic_fetch_add_explicit(&line->count, 1, memory_order_release);
    count(line, task, 1);
}

static void remove_from(struct tutti_line *line, struct starpu_task *task) {
    starpu_task_list_erase(&line->tasks, task);
    line->waiting = starpu_task_list_empty(&line->tasks) ? 0 : line->waiting - task->predicted;
    atomic_fetch_sub_explicit(&line->count, 1, memory_order_relaxed);
    count(line, task, -1);
}

struct starpu_task *tutti_line_take(struct tutti_line *line) {
    if (starpu_task_list_empty(&line->tasks))
        return NULL;
    struct starpu_task *task = starpu_task_list_front(&line->tasks);
    bool beside = tutti_device_task_batch(task)->beside;
    if (!beside && atomic_load_explicit(&line->taken, memory_order_relaxed) >= AHEAD)
        return NULL;
    remove_from(line, task);
    atomic_fetch_add_explicit(&line->taken, 1, memory_order_relaxed);
    return task;
}

void tutti_line_leave(struct tutti_line *line, struct starpu_task *task) {
    remove_from(line, task);
    count_unfinished(line, task, -1);
    line->last_end -= task->predicted;
}

void tutti_line_begin(struct tutti_line *line, const struct starpu_task *task, double now) {
    double before = line->flying++ ? line->flight_end : now, start = before > now ? before : now;
    line->drift = start - task->predicted_start;
    line->flight = line->flight + task->predicted;
    line->flight_end = start + task->predicted;
}

void tutti_line_end(struct tutti_line *line, const struct starpu_task *task, double now) {
    count_unfinished(line, task, -1);
    atomic_fetch_sub_explicit(&line->taken, 1, memory_order_relaxed);
    if (line->flying == 0)
        return;
    line->flight = --line->flying ? line->flight - task->predicted : 0;
    line->drift += now + line->flight - line->flight_end;
    line->flight_end = line->flying ? now + line->flight : 0;
}

double tutti_line_busy(const struct tutti_line *line, double now) {
    double end = atomic_load_explicit(&line->flight_end, memory_order_relaxed);
    if (end == 0)
        return 0;
    return end > now ? end - now : now - end;
}

/* µs around the expected end of what it executes in which the device is given the next task. */
static double taken_before(const struct tutti_line *line) {
    double share = atomic_load_explicit(&line->flight, memory_order_relaxed) / TAKEN_SHARE;
    return share > TAKEN_BEFORE ? share : TAKEN_BEFORE;
}

bool tutti_line_keeps(const struct tutti_line *line, double now) {
    if (atomic_load_explicit(&line->beside, memory_order_relaxed) > 0)
        return false;
    if (atomic_load_explicit(&line->taken, memory_order_relaxed) >= AHEAD)
        return true;
    return atomic_load_explicit(&line->unbrought, memory_order_relaxed) == 0 &&
           tutti_line_busy(line, now) > taken_before(line);
}

double tutti_line_next_look(const struct tutti_line *line, double now) {
    double end = atomic_load_explicit(&line->flight_end, memory_order_relaxed);
    if (end == 0)
        return 0;
    double early = taken_before(line), due = end - early;
    if (atomic_load_explicit(&line->count, memory_order_relaxed) == 0 ||
        atomic_load_explicit(&line->taken, memory_order_relaxed) >= AHEAD || now > end + early)
        return HUGE_VAL;
    return due > now ? due - now : SOON;
}

void tutti_line_expect(struct tutti_line *line, double waiting, double longer) {
    line->longer += longer;
    line->last_end += waiting - line->waiting;
    line->waiting = waiting;
}
