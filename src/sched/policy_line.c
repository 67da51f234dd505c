/* SPDX-License-Identifier: MIT */
#include "sched/policy_line.h"

#include "sched/batch.h"

/* Through so many tasks at the end of a line is looked for the place of one of an earlier order. */
#define MOST_OVERTAKEN 256

/* The first of those that a task of that order overtakes, or NULL; and what they take in all. */
static struct starpu_task *first_overtaken(const struct tutti_line *line, unsigned long order,
                                           double *length) {
    struct starpu_task *first = NULL, *task = line->tasks.tail;
    *length = 0;
    for (unsigned i = 0; task && i < MOST_OVERTAKEN; i++, task = task->prev) {
        if (tutti_device_task_batch(task)->order < order)
            break;
        *length += task->predicted;
        first = task;
    }
    return first;
}

double tutti_line_ready(const struct tutti_line *line, unsigned long order, double now) {
    if (line->unfinished == 0)
        return now;
    double end = line->last_end + line->drift, least = now + line->waiting, overtaken = 0;
    double late = line->head_end > 0 && now > line->head_end ? now - line->head_end : 0;
    end += line->head_known ? late : 2 * late; /* a wrong guess may be wrong by as much again */
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

void tutti_line_put(struct tutti_line *line, struct starpu_task *task, double start, double end) {
    if (line->unfinished++ == 0)
        line->drift = line->head_end = 0;
    double overtaken, length = end - start;
    struct starpu_task *first =
        first_overtaken(line, tutti_device_task_batch(task)->order, &overtaken);
    task->predicted = length;
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
}

static void remove_from(struct tutti_line *line, struct starpu_task *task) {
    starpu_task_list_erase(&line->tasks, task);
    line->waiting = starpu_task_list_empty(&line->tasks) ? 0 : line->waiting - task->predicted;
    atomic_fetch_sub_explicit(&line->count, 1, memory_order_relaxed);
}

struct starpu_task *tutti_line_take(struct tutti_line *line) {
    if (starpu_task_list_empty(&line->tasks))
        return NULL;
    struct starpu_task *task = starpu_task_list_front(&line->tasks);
    remove_from(line, task);
    return task;
}

void tutti_line_leave(struct tutti_line *line, struct starpu_task *task) {
    remove_from(line, task);
    line->unfinished--;
    line->last_end -= task->predicted;
}

void tutti_line_begin(struct tutti_line *line, const struct starpu_task *task, bool known,
                      double now) {
    line->drift = now - task->predicted_start;
    line->head_end = now + task->predicted;
    line->head_known = known;
}

void tutti_line_end(struct tutti_line *line, double now) {
    line->unfinished--;
    if (line->head_end > 0)
        line->drift += now - line->head_end;
    line->head_end = 0;
}

void tutti_line_expect(struct tutti_line *line, double waiting) {
    line->last_end += waiting - line->waiting;
    line->waiting = waiting;
}
