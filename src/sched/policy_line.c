/* SPDX-License-Identifier: MIT */
#include "sched/policy_line.h"

double tutti_line_ready(const struct tutti_line *line, double now) {
    if (line->unfinished == 0)
        return now;
    double end = line->last_end + line->drift, least = now + line->waiting;
    double late = line->head_end > 0 && now > line->head_end ? now - line->head_end : 0;
    end += line->head_known ? late : 2 * late; /* a wrong guess may be wrong by as much again */
    return end > least ? end : least;
}

void tutti_line_append(struct tutti_line *line, struct starpu_task *task, double start,
                       double end) {
    if (line->unfinished++ == 0)
        line->drift = line->head_end = 0;
    task->predicted = end - start;
    task->predicted_start = start - line->drift;
    line->last_end = end - line->drift;
    line->waiting += task->predicted;
    starpu_task_list_push_back(&line->tasks, task);
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
