/* SPDX-License-Identifier: MIT */
/* What StarPU asks of a scheduling policy, around the decisions of policy_choose.h. */
#include "sched/policy.h"

#include "log.h"
#include "sched/batch.h"
#include "sched/link.h"
#include "sched/policy_choose.h"
#include "sched/runtime.h"

#include <pthread.h>
#include <starpu_scheduler.h>
#include <stdlib.h>

#define SHARE_OF_ESTIMATES 0.05 /* of the time */
#define MOST_DATA 64            /* of one task that are looked at */
/* An idle device looks at so many tasks of another's queue, the last ones. */
#define MOST_LOOKED_AT 4
/* ns between two looks: when something has changed, and when nothing but the time has. */
#define LOOK_SOON 20000u
#define LOOK_AGAIN 200000u
/* µs that the other device must be late by: to take a task over costs some. */
#define WORTH_TAKING 20.0

/* One for each real device. Times as in policy_choose.h. */
struct line {
    struct starpu_task_list tasks; /* not taken by StarPU's worker yet */
    atomic_uint count;             /* of them; read without the lock */
    double waiting;                /* expected time of them all */
    unsigned unfinished;           /* these, and what the worker has taken */
    double last_end;               /* of the last one, as planned when it was given */
    double drift;                  /* by how much the device is later than planned */
    double head_end;               /* when what it executes now should end; 0: nothing */
    bool head_known;               /* its time was measured */
    unsigned seen;                 /* `changes` and the time when it looked at other lines last: */
    cl_ulong looked;               /* for its worker alone */
};

static struct {
    atomic_bool active;
    pthread_mutex_t lock; /* guards what follows; StarPU's locks are taken before it, none after */
    struct line line[TUTTI_MAX_DEVICES];
    struct tutti_plan_device device[TUTTI_MAX_DEVICES];
    unsigned generation; /* of the models that `waiting` was computed from */
    double next_estimate;
    atomic_uint changes; /* counts what may give an idle device something to take */
    atomic_uint tasks;   /* in all lines */
} policy = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_one(unsigned bits) { return (bits & (bits - 1)) == 0; }

static double now_in_us(void) { return (double)tutti_runtime_now() / 1000; }

/* What the models say of a batch. */
static void expect(const struct tutti_batch *batch, struct tutti_plan_task *task) {
    const struct tutti_device_list *list = tutti_devices();
    task->able = batch->devices;
    task->tried = 0;
    for (unsigned d = 0; d < list->count; d++) {
        task->length[d] = 0;
        task->certainty[d] = TUTTI_MEASURED;
        if (!(task->able & 1u << d))
            continue;
        for (struct tutti_device_task *part = batch->first; part; part = part->next) {
            enum tutti_certainty certainty;
            task->length[d] += tutti_model_estimate(part->model, list->device[d], &certainty);
            if (certainty > task->certainty[d])
                task->certainty[d] = certainty;
            if (certainty != TUTTI_MEASURED && tutti_model_is_tried(part->model, list->device[d]))
                task->tried |= 1u << d;
        }
    }
}

/* Where the batch's data is. It is not locked: StarPU may move some meanwhile. */
static void locate(const struct tutti_batch *batch, struct tutti_plan_task *task,
                   struct tutti_plan_data data[MOST_DATA]) {
    const struct tutti_device_list *list = tutti_devices();
    task->data = data;
    task->count = batch->count < MOST_DATA ? batch->count : MOST_DATA;
    if (is_one(task->able) && list->device[__builtin_ctz(task->able)]->at_home)
        task->count = 0; /* there is no choice, and nothing to bring */
    for (unsigned i = 0; i < task->count; i++) {
        const struct tutti_device_use *use = &batch->use[i];
        data[i] = (struct tutti_plan_data){.bytes = use->view->size,
                                           .reads = (use->mode & STARPU_R) != 0};
        int allocated, valid, coming;
        starpu_data_query_status(use->view->handle, STARPU_MAIN_RAM, NULL, &valid, NULL);
        data[i].valid = valid ? TUTTI_PLAN_HOME : 0;
        for (unsigned d = 0; d < list->count; d++) {
            const struct tutti_real_device *device = list->device[d];
            if (device->place.devid < 0)
                continue;
            int node = (int)device->place.node;
            starpu_data_query_status(use->view->handle, node, &allocated, &valid, NULL);
            data[i].allocated |= allocated ? 1u << d : 0;
            data[i].valid |= valid ? 1u << d : 0;
            if (valid || !data[i].reads)
                continue;
            starpu_data_query_status(use->view->handle, node, NULL, NULL, &coming);
            data[i].coming |= coming ? 1u << d : 0;
        }
    }
}

/* When the device will have done all it was given. With the lock held. */
static double ready_time(const struct line *line, double now) {
    if (line->unfinished == 0)
        return now;
    double end = line->last_end + line->drift, least = now + line->waiting;
    if (line->head_end > 0 &&
        now > line->head_end) /* a wrong guess may be wrong by as much again */
        end += (now - line->head_end) * (line->head_known ? 1 : 2);
    return end > least ? end : least;
}

/* With the lock held. */
static void look_at_devices(double now) {
    const struct tutti_device_list *list = tutti_devices();
    for (unsigned d = 0; d < list->count; d++) {
        const struct tutti_real_device *device = list->device[d];
        struct tutti_plan_device *plan = &policy.device[d];
        if (device->place.devid < 0)
            continue;
        struct tutti_link up = tutti_link_expect(device, TUTTI_UPLOAD);
        struct tutti_link down = tutti_link_expect(device, TUTTI_DOWNLOAD);
        starpu_ssize_t room = starpu_memory_get_available(device->place.node);
        plan->at_home = device->at_home;
        plan->ready = ready_time(&policy.line[d], now);
        plan->room = room < 0 ? (size_t)device->global_mem_size : (size_t)room;
        plan->up.latency = up.latency;
        plan->up.rate = up.rate;
        plan->down.latency = down.latency;
        plan->down.rate = down.rate;
    }
}

static struct tutti_batch *batch_of(struct starpu_task *task) {
    return tutti_device_task_batch(task);
}

/*
 * After a first measurement: what waits may take much longer, or shorter. Not each time where each
 * command is the first of its kind. With the lock held.
 */
static void estimate_again(double now) {
    unsigned generation = tutti_model_generation();
    if (generation == policy.generation || now < policy.next_estimate)
        return;
    policy.generation = generation;
    const struct tutti_device_list *list = tutti_devices();
    for (unsigned d = 0; d < list->count; d++) {
        struct line *line = &policy.line[d];
        double before = line->waiting;
        line->waiting = 0;
        for (struct starpu_task *task = starpu_task_list_begin(&line->tasks);
             task != starpu_task_list_end(&line->tasks); task = starpu_task_list_next(task)) {
            struct tutti_plan_task estimate;
            expect(batch_of(task), &estimate);
            line->waiting += task->predicted = estimate.length[d];
        }
        line->last_end += line->waiting - before;
    }
    double end = now_in_us();
    policy.next_estimate = end + (end - now) / SHARE_OF_ESTIMATES;
}

/* Puts the task, planned for now, at the end of the device's line. With the lock held. */
static void append(struct starpu_task *task, const struct tutti_plan_task *estimate,
                   const struct tutti_plan *plan, double now) {
    struct line *line = &policy.line[plan->device];
    struct tutti_real_device *device = tutti_devices()->device[plan->device];
    const struct tutti_batch *batch = batch_of(task);
    if (plan->probes)
        for (struct tutti_device_task *part = batch->first; part; part = part->next)
            tutti_model_try(part->model, device, true);
    starpu_task_set_implementation(task, tutti_device_task_implementation(batch, device));
    if (line->unfinished++ == 0)
        line->drift = line->head_end = 0;
    task->predicted = estimate->length[plan->device];
    task->predicted_start = plan->start - line->drift;
    line->last_end = plan->end - line->drift;
    line->waiting += task->predicted;
    tutti_log(DEBUG, "%s: a task is expected to begin in %.0f us and to take %.0f%s%s",
              device->name, plan->start - now, task->predicted,
              plan->moves ? ", data is brought" : "", plan->probes ? ", to be measured there" : "");
    starpu_task_list_push_back(&line->tasks, task);
    atomic_fetch_add_explicit(&line->count, 1, memory_order_release);
    atomic_fetch_add_explicit(&policy.tasks, 1, memory_order_release);
}

static void remove_from(struct line *line, struct starpu_task *task) {
    starpu_task_list_erase(&line->tasks, task);
    line->waiting = starpu_task_list_empty(&line->tasks) ? 0 : line->waiting - task->predicted;
    atomic_fetch_sub_explicit(&line->count, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&policy.tasks, 1, memory_order_relaxed);
}

/*
 * A prefetch that has to wait for room holds what it takes from, on other devices too (room.h); so
 * only what has room is brought before the device is about to execute the task.
 */
static void prefetch(struct starpu_task *task, const struct tutti_plan *plan) {
    if (plan->moves && !plan->evicts && starpu_get_prefetch_flag())
        starpu_prefetch_task_input_for(
            task, (unsigned)tutti_devices()->device[plan->device]->place.workerid);
}

static void wake(unsigned device) {
#ifndef STARPU_NON_BLOCKING_DRIVERS
    starpu_wake_worker_relax_light(tutti_devices()->device[device]->place.workerid);
#else
    (void)device; /* the worker looks by itself */
#endif
}

static int push(struct starpu_task *starpu_task) {
    const struct tutti_batch *batch = batch_of(starpu_task);
    struct tutti_plan_data data[MOST_DATA];
    struct tutti_plan_task task;
    expect(batch, &task);
    locate(batch, &task, data);

    pthread_mutex_lock(&policy.lock);
    double now = now_in_us();
    unsigned count = tutti_devices()->count;
    estimate_again(now);
    look_at_devices(now);
    struct tutti_plan plan = tutti_policy_choose(policy.device, count, &task, now);
    tutti_policy_book(policy.device, count, &task, &plan, now);
    if (plan.moves && !plan.evicts) { /* while the worker can't have the task yet */
        pthread_mutex_unlock(&policy.lock);
        prefetch(starpu_task, &plan);
        pthread_mutex_lock(&policy.lock);
    }
    append(starpu_task, &task, &plan, now);
    starpu_push_task_end(starpu_task);
    atomic_fetch_add_explicit(&policy.changes, 1, memory_order_relaxed);
    pthread_mutex_unlock(&policy.lock);
    wake(plan.device);
    return 0;
}

/*
 * The device that would end its last tasks latest, but for `thief`; NULL: none has more than one.
 * With the lock held.
 */
static struct line *latest(unsigned thief, double now) {
    struct line *latest = NULL;
    double end = now + WORTH_TAKING;
    for (unsigned d = 0; d < tutti_devices()->count; d++) {
        struct line *line = &policy.line[d];
        if (d == thief || starpu_task_list_empty(&line->tasks))
            continue;
        double ready = ready_time(line, now);
        if (ready > end) {
            end = ready;
            latest = line;
        }
    }
    return latest;
}

/* Takes a task for a device that has none to its line. With the lock held. */
static void take_from_others(unsigned thief) {
    double now = now_in_us();
    estimate_again(now);
    struct line *line = latest(thief, now);
    if (!line)
        return;
    unsigned owner = (unsigned)(line - policy.line), left = MOST_LOOKED_AT;
    const struct tutti_device_list *list = tutti_devices();
    look_at_devices(now);
    for (struct starpu_task *last = starpu_task_list_back(&line->tasks); last && left--;
         last = last->prev) {
        const struct tutti_batch *batch = batch_of(last);
        struct tutti_plan_data data[MOST_DATA];
        struct tutti_plan_task task;
        policy.device[owner].ready -= last->predicted;
        if (!(batch->devices & 1u << thief))
            continue;
        expect(batch, &task);
        locate(batch, &task, data);
        task.able = 1u << owner | 1u << thief;
        struct tutti_plan plan = tutti_policy_choose(policy.device, list->count, &task, now);
        if (plan.device != thief)
            continue;
        remove_from(line, last);
        line->unfinished--;
        line->last_end -= last->predicted;
        for (struct tutti_device_task *part = batch->first; part; part = part->next)
            tutti_model_try(part->model, list->device[owner], false);
        tutti_policy_book(policy.device, list->count, &task, &plan, now);
        append(last, &task, &plan, now);
        return;
    }
}

/* Has anything changed for an idle device since it looked? The worker asks all the time. */
static bool worth_looking(struct line *line) {
    unsigned changes = atomic_load_explicit(&policy.changes, memory_order_relaxed);
    cl_ulong now = tutti_runtime_now();
    if (now - line->looked < (changes == line->seen ? LOOK_AGAIN : LOOK_SOON))
        return false;
    line->seen = changes;
    line->looked = now;
    return true;
}

/* In a worker's thread. Without a lock while there is no task: it is asked all the time. */
static struct starpu_task *pop(unsigned context) {
    (void)context;
    if (atomic_load_explicit(&policy.tasks, memory_order_acquire) == 0)
        return NULL;
    const struct tutti_real_device *device = tutti_runtime_device_of_worker(starpu_worker_get_id());
    if (!device)
        return NULL;
    struct line *line = &policy.line[device->index];
    bool idle = atomic_load_explicit(&line->count, memory_order_acquire) == 0;
    if (idle && !worth_looking(line))
        return NULL;
    pthread_mutex_lock(&policy.lock);
    if (starpu_task_list_empty(&line->tasks))
        take_from_others(device->index);
    struct starpu_task *task = NULL;
    if (!starpu_task_list_empty(&line->tasks)) {
        task = starpu_task_list_front(&line->tasks);
        remove_from(line, task);
    }
    pthread_mutex_unlock(&policy.lock);
    return task;
}

/* The data is there and the task begins; in a worker's thread. */
static void begins(struct starpu_task *task, unsigned context) {
    (void)context;
    const struct tutti_real_device *device = tutti_runtime_device_of_worker(starpu_worker_get_id());
    double now = now_in_us();
    if (!device)
        return;
    struct line *line = &policy.line[device->index];
    enum tutti_certainty certainty;
    tutti_model_estimate(batch_of(task)->first->model, device, &certainty);
    pthread_mutex_lock(&policy.lock);
    line->drift = now - task->predicted_start;
    line->head_end = now + task->predicted;
    line->head_known = certainty == TUTTI_MEASURED;
    pthread_mutex_unlock(&policy.lock);
}

static void ends(struct starpu_task *task, unsigned context) {
    (void)task;
    (void)context;
    const struct tutti_real_device *device = tutti_runtime_device_of_worker(starpu_worker_get_id());
    double now = now_in_us();
    if (!device)
        return;
    struct line *line = &policy.line[device->index];
    pthread_mutex_lock(&policy.lock);
    line->unfinished--;
    if (line->head_end > 0)
        line->drift += now - line->head_end;
    line->head_end = 0;
    atomic_fetch_add_explicit(&policy.changes, 1, memory_order_relaxed);
    pthread_mutex_unlock(&policy.lock);
}

static void init(unsigned context) {
    (void)context;
    for (unsigned d = 0; d < TUTTI_MAX_DEVICES; d++)
        starpu_task_list_init(&policy.line[d].tasks);
    atomic_store(&policy.active, true);
}

static void deinit(unsigned context) { (void)context; }

struct starpu_sched_policy tutti_policy = {
    .init_sched = init,
    .deinit_sched = deinit,
    .push_task = push,
    .pop_task = pop,
    .pre_exec_hook = begins,
    .post_exec_hook = ends,
    .policy_name = "tutti",
    .policy_description = "expected end by Tutti's own models of kernels and links",
    .worker_type = STARPU_WORKER_LIST,
};

const struct tutti_real_device *
tutti_policy_place_content(unsigned able, const struct tutti_real_device *before, size_t bytes) {
    const struct tutti_device_list *list = tutti_devices();
    if (!atomic_load_explicit(&policy.active, memory_order_relaxed))
        return NULL;
    double now = now_in_us();
    pthread_mutex_lock(&policy.lock);
    look_at_devices(now);
    unsigned best = tutti_policy_place(policy.device, list->count, able,
                                       before ? before->index : list->count, bytes, now);
    pthread_mutex_unlock(&policy.lock);
    return list->device[best];
}
