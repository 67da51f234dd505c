/* SPDX-License-Identifier: MIT */
/* What StarPU asks of a scheduling policy, around the decisions of policy_choose.h. */
#include "sched/policy.h"

#include "log.h"
#include "memory/room.h"
#include "sched/ahead.h"
#include "sched/direct.h"
#include "sched/idle.h"
#include "sched/lanes.h"
#include "sched/link.h"
#include "sched/policy_line.h"
#include "sched/policy_task.h"
#include "sched/runtime.h"
#include "virtual_device/late_build.h"

#include <math.h>
#include <pthread.h>
#include <starpu_scheduler.h>
#include <stdlib.h>

#define SHARE_OF_ESTIMATES 0.05 /* of the time */
/* An idle device looks at so many tasks of another's queue, the last ones. */
#define MOST_LOOKED_AT 4
/*
 * ns between two looks: when something has changed, for each device that there is, as all might
 * look; and when nothing but the time has.
 */
#define LOOK_SOON 20000u
#define LOOK_AGAIN 200000u
#define LONGEST_DIRECT 5000000u /* ns for which a device takes no task while others may */
/* µs that the other device must be late by: to take a task over costs some. */
#define WORTH_TAKING 20.0
/* µs: longer tasks are begun in their order, by whichever device of a kind is free first. */
#define IN_TURN 100.0

static struct {
    atomic_bool active;
    pthread_mutex_t lock; /* guards what follows; StarPU's locks are taken before it, none after */
    struct tutti_line line[TUTTI_MAX_DEVICES];
    struct {
        unsigned changes;
        cl_ulong time;
        cl_ulong direct_since; /* so long it has waited for kernels past StarPU; 0: it does not */
    } look[TUTTI_MAX_DEVICES]; /* the last one at other lines, for the device's worker alone */
    struct tutti_plan_device device[TUTTI_MAX_DEVICES];
    unsigned generation; /* of the models that `waiting` was computed from */
    double next_estimate;
    atomic_uint changes; /* counts what may give an idle device something to take */
    atomic_uint tasks;   /* in all lines */
} policy = {.lock = PTHREAD_MUTEX_INITIALIZER};

_Static_assert(TUTTI_PLAN_DEVICES >= TUTTI_MAX_DEVICES, "each device has a place in plans");

static double now_in_us(void) { return (double)tutti_runtime_now() / 1000; }

/* Before a task of that order. With the lock held. */
static void look_at_devices(unsigned long order, double now) {
    const struct tutti_device_list *list = tutti_devices();
    for (unsigned d = 0; d < list->count; d++) {
        const struct tutti_real_device *device = list->device[d];
        struct tutti_plan_device *plan = &policy.device[d];
        if (device->place.devid < 0)
            continue;
        struct tutti_link up = tutti_link_expect(device, TUTTI_UPLOAD);
        struct tutti_link down = tutti_link_expect(device, TUTTI_DOWNLOAD);
        plan->at_home = device->at_home;
        plan->ready = tutti_line_ready(&policy.line[d], order, now) + tutti_ahead_busy(device);
        plan->longer = policy.line[d].longer + tutti_ahead_busy(device);
        plan->room = tutti_room_left(device);
        plan->full = tutti_room_is_full(device);
        plan->up.latency = up.latency;
        plan->up.rate = up.rate;
        plan->down.latency = down.latency;
        plan->down.rate = down.rate;
    }
}

static struct tutti_batch *batch_of(struct starpu_task *task) {
    return tutti_device_task_batch(task);
}

/* With the lock held, like tutti_policy_delay. Mostly there is nothing to do. */
static void note_delay(struct tutti_batch *batch, unsigned device, double delay) {
    if (delay > 0 || batch->delayed)
        tutti_policy_delay(batch, device, delay);
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
        struct tutti_line *line = &policy.line[d];
        double waiting = 0, longer = 0;
        for (struct starpu_task *task = starpu_task_list_begin(&line->tasks);
             task != starpu_task_list_end(&line->tasks); task = starpu_task_list_next(task)) {
            struct tutti_plan_task estimate;
            tutti_policy_expect(batch_of(task), &estimate);
            double before = task->predicted;
            task->predicted = estimate.delay[d] + estimate.length[d] - estimate.beside[d];
            waiting += task->predicted;
            longer += tutti_line_is_launched(task) ? 0 : task->predicted - before;
            note_delay(batch_of(task), d, estimate.delay[d]);
        }
        tutti_line_expect(line, waiting, longer);
    }
    double end = now_in_us();
    policy.next_estimate = end + (end - now) / SHARE_OF_ESTIMATES;
}

/* Puts the task, planned for now, into the device's line. With the lock held. */
static void put(struct starpu_task *task, const struct tutti_plan *plan, double now) {
    struct tutti_real_device *device = tutti_devices()->device[plan->device];
    struct tutti_batch *batch = batch_of(task);
    if (plan->probes)
        for (struct tutti_device_task *part = batch->first; part; part = part->next)
            tutti_model_try(part->model, device, true);
    note_delay(batch, plan->device, plan->delay);
    tutti_line_set_launched(task, plan->launched);
    batch->beside = tutti_lanes_for(batch, device) > 1;
    tutti_device_task_decide(batch, 1u << plan->device);
    starpu_task_set_implementation(task, tutti_device_task_implementation(batch, device));
    tutti_log(DEBUG, "real device %u: a task is expected to begin in %.0f us and to take %.0f%s%s",
              plan->device, plan->start - now, plan->end - plan->start,
              plan->moves ? ", data is brought" : "", plan->probes ? ", to be measured there" : "");
    tutti_line_put(&policy.line[plan->device], task, plan->start, plan->free);
    atomic_fetch_add_explicit(&policy.tasks, 1, memory_order_release);
}

/*
 * A prefetch that has to wait for room holds what it takes from, on other devices too (room.h); so
 * only what has room is brought before the device is about to execute the task.
 */
static bool worth_prefetching(const struct tutti_plan *plan) {
    return plan->moves && !plan->evicts && starpu_get_prefetch_flag();
}

static void wake(const struct tutti_real_device *device) {
#ifndef STARPU_NON_BLOCKING_DRIVERS
    starpu_wake_worker_relax_light(device->place.workerid);
#endif
    tutti_idle_call(device);
}

void tutti_policy_look_again(const struct tutti_real_device *device) {
    if (atomic_load_explicit(&policy.tasks, memory_order_acquire) == 0)
        return;
    atomic_fetch_add_explicit(&policy.changes, 1, memory_order_relaxed);
    wake(device);
}

/*
 * The task is ready, and waits for the device's other tasks. If nobody knows how long it takes,
 * that is taken for long.
 */
static void note_waiting(const struct tutti_batch *batch, const struct tutti_plan_task *task,
                         const struct tutti_plan *plan, double now) {
    double length = task->length[plan->device], wait = plan->start - now;
    bool known = task->certainty[plan->device] != TUTTI_GUESSED;
    if (!known && policy.line[plan->device].unfinished > 0)
        length = wait = INFINITY;
    for (const struct tutti_device_task *part = batch->first; part && wait > 0; part = part->next)
        if (part->late.program &&
            tutti_late_build_note(part->late.program, wait < length ? wait : length))
            tutti_late_build_start(part->late.program, tutti_policy_look_again);
}

static int push(struct starpu_task *starpu_task) {
    struct tutti_batch *batch = batch_of(starpu_task);
    struct tutti_plan_data data[TUTTI_MOST_DATA];
    struct tutti_plan_task task;
    tutti_batch_note_ready(batch);
    tutti_policy_expect(batch, &task);
    tutti_policy_locate(batch, &task, data);

    pthread_mutex_lock(&policy.lock);
    double now = now_in_us();
    unsigned count = tutti_devices()->count;
    estimate_again(now);
    look_at_devices(batch->user.order, now);
    struct tutti_plan plan = tutti_policy_choose(policy.device, count, &task, now);
    tutti_policy_book(policy.device, count, &task, &plan, now);
    tutti_policy_miss(batch, &plan, now);
    note_waiting(batch, &task, &plan, now);
    bool prefetches = worth_prefetching(&plan);
    batch->unbrought = plan.moves && !prefetches;
    if (prefetches) { /* while the worker can't have the task yet */
        pthread_mutex_unlock(&policy.lock);
        starpu_prefetch_task_input_for(
            starpu_task, (unsigned)tutti_devices()->device[plan.device]->place.workerid);
        pthread_mutex_lock(&policy.lock);
    }
    put(starpu_task, &plan, now);
    starpu_push_task_end(starpu_task);
    atomic_fetch_add_explicit(&policy.changes, 1, memory_order_relaxed);
    pthread_mutex_unlock(&policy.lock);
    wake(tutti_devices()->device[plan.device]);
    return 0;
}

/*
 * Of the devices but `thief` that have waiting tasks the one that would end them last, if that is
 * worth anything. With the lock held.
 */
static struct tutti_line *latest(unsigned thief, double now) {
    struct tutti_line *latest = NULL;
    double end = now + WORTH_TAKING;
    for (unsigned d = 0; d < tutti_devices()->count; d++) {
        struct tutti_line *line = &policy.line[d];
        if (d == thief || starpu_task_list_empty(&line->tasks))
            continue;
        double ready = tutti_line_ready(line, TUTTI_LINE_END, now);
        if (ready > end) {
            end = ready;
            latest = line;
        }
    }
    return latest;
}

/* Moves a waiting task to the line of the plan. With the lock held. */
static void move_over(struct tutti_line *from, struct starpu_task *task,
                      const struct tutti_plan *plan, double now) {
    tutti_line_leave(from, task);
    atomic_fetch_sub_explicit(&policy.tasks, 1, memory_order_relaxed);
    put(task, plan, now);
}

/*
 * Devices of one kind that work in home memory take longer tasks in their order, whoever they were
 * meant for: how long each takes is a guess, and one that was left for the end may be the longest.
 * With the lock held.
 */
static void take_in_turn(const struct tutti_real_device *thief) {
    const struct tutti_device_list *list = tutti_devices();
    struct tutti_line *own = &policy.line[thief->index], *from = own;
    for (unsigned d = 0; d < list->count && thief->at_home; d++) {
        struct tutti_line *line = &policy.line[d];
        if (line == own || list->device[d]->identity != thief->identity ||
            starpu_task_list_empty(&line->tasks))
            continue;
        struct starpu_task *first = starpu_task_list_front(&line->tasks);
        struct tutti_batch *batch = batch_of(first);
        bool older = starpu_task_list_empty(&from->tasks) ||
                     batch->user.order < batch_of(starpu_task_list_front(&from->tasks))->user.order;
        if (older && batch->at_home && first->predicted - batch->delay > IN_TURN &&
            tutti_batch_devices(batch) & 1u << thief->index)
            from = line;
    }
    if (from == own)
        return;
    struct starpu_task *task = starpu_task_list_front(&from->tasks);
    double now = now_in_us(), start = now + tutti_line_busy(own, now);
    struct tutti_plan plan = {.device = thief->index,
                              .start = start,
                              .end = start + task->predicted,
                              .free = start + task->predicted,
                              .delay = batch_of(task)->delay};
    move_over(from, task, &plan, now);
}

/* Takes a task for a device that has none to its line. With the lock held. */
static void take_from_others(unsigned thief) {
    double now = now_in_us();
    estimate_again(now);
    struct tutti_line *line = latest(thief, now);
    if (!line)
        return;
    unsigned owner = (unsigned)(line - policy.line), left = MOST_LOOKED_AT;
    const struct tutti_device_list *list = tutti_devices();
    look_at_devices(TUTTI_LINE_END, now);
    for (struct starpu_task *last = starpu_task_list_back(&line->tasks); last && left--;
         last = last->prev) {
        struct tutti_batch *batch = batch_of(last);
        struct tutti_plan_data data[TUTTI_MOST_DATA];
        struct tutti_plan_task task;
        policy.device[owner].ready -= last->predicted;
        if (!(tutti_batch_devices(batch) & 1u << thief))
            continue;
        tutti_policy_expect(batch, &task);
        tutti_policy_locate(batch, &task, data);
        if (!(task.able & 1u << thief))
            continue;
        task.others = task.able;
        task.able = 1u << owner | 1u << thief;
        struct tutti_plan plan = tutti_policy_choose(policy.device, list->count, &task, now);
        if (plan.device != thief)
            continue;
        for (struct tutti_device_task *part = batch->first; part; part = part->next)
            tutti_model_try(part->model, list->device[owner], false);
        tutti_policy_book(policy.device, list->count, &task, &plan, now);
        batch->unbrought = plan.moves;
        move_over(line, last, &plan, now);
        return;
    }
}

/* Has anything changed for an idle device since it looked? The worker asks all the time. */
static bool worth_looking(unsigned device) {
    unsigned changes = atomic_load_explicit(&policy.changes, memory_order_relaxed);
    cl_ulong now = tutti_runtime_now();
    cl_ulong rest =
        changes == policy.look[device].changes ? LOOK_AGAIN : LOOK_SOON * tutti_devices()->count;
    if (now - policy.look[device].time < rest)
        return false;
    policy.look[device].changes = changes;
    policy.look[device].time = now;
    return true;
}

/*
 * Is the device at a kernel past StarPU? A task that its worker took would wait behind that, where
 * no other device may take it. But not for long, as more of them may follow.
 */
static bool waits_for_direct(const struct tutti_real_device *device) {
    cl_ulong *since = &policy.look[device->index].direct_since;
    if (!device->place.synchronous || tutti_devices()->serving == 1 ||
        tutti_ahead_busy(device) == 0) {
        *since = 0;
        return false;
    }
    cl_ulong now = tutti_runtime_now();
    if (*since == 0)
        *since = now;
    return now - *since < LONGEST_DIRECT;
}

/* In a worker's thread. Without a lock while there is no task: it is asked all the time. */
static struct starpu_task *pop(unsigned context) {
    (void)context;
    if (atomic_load_explicit(&policy.tasks, memory_order_acquire) == 0)
        return NULL;
    const struct tutti_real_device *device = tutti_runtime_device_of_worker(starpu_worker_get_id());
    if (!device)
        return NULL;
    struct tutti_line *line = &policy.line[device->index];
    if (waits_for_direct(device))
        return NULL;
    bool empty = atomic_load_explicit(&line->count, memory_order_acquire) == 0;
    if (empty ? !worth_looking(device->index) : tutti_line_keeps(line, now_in_us()))
        return NULL;
    pthread_mutex_lock(&policy.lock);
    take_in_turn(device);
    if (starpu_task_list_empty(&line->tasks))
        take_from_others(device->index);
    struct starpu_task *task = tutti_line_take(line);
    if (task)
        atomic_fetch_sub_explicit(&policy.tasks, 1, memory_order_relaxed);
    pthread_mutex_unlock(&policy.lock);
    if (task)
        tutti_idle_worked(); /* StarPU asks for the next one before it begins this one */
    return task;
}

/* The data is there and the task begins; in a worker's thread. */
static void begins(struct starpu_task *task, unsigned context) {
    (void)context;
    const struct tutti_real_device *device = tutti_runtime_device_of_worker(starpu_worker_get_id());
    double now = now_in_us();
    if (!device)
        return;
    pthread_mutex_lock(&policy.lock);
    tutti_line_begin(&policy.line[device->index], task, now);
    pthread_mutex_unlock(&policy.lock);
}

static void ends(struct starpu_task *task, unsigned context) {
    (void)context;
    const struct tutti_real_device *device = tutti_runtime_device_of_worker(starpu_worker_get_id());
    double now = now_in_us();
    if (!device)
        return;
    pthread_mutex_lock(&policy.lock);
    tutti_line_end(&policy.line[device->index], task, now);
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
#if STARPU_MAJOR_VERSION > 1 || STARPU_MINOR_VERSION >= 4
    .prefetches = 1,
#endif
};

bool tutti_policy_is_active(void) {
    return atomic_load_explicit(&policy.active, memory_order_relaxed);
}

double tutti_policy_next_look(const struct tutti_real_device *device) {
    return tutti_line_next_look(&policy.line[device->index], now_in_us());
}

const struct tutti_real_device *tutti_policy_place_content(unsigned able,
                                                           const struct tutti_model *reader,
                                                           const struct tutti_real_device *before,
                                                           size_t bytes) {
    const struct tutti_device_list *list = tutti_devices();
    if (!tutti_policy_is_active())
        return NULL;
    struct tutti_plan_task task;
    tutti_policy_expect_kernel(reader, able, &task);
    double now = now_in_us();
    pthread_mutex_lock(&policy.lock);
    look_at_devices(TUTTI_LINE_END, now);
    unsigned best = tutti_policy_place(policy.device, list->count, &task,
                                       before ? before->index : list->count, bytes, now);
    pthread_mutex_unlock(&policy.lock);
    return list->device[best];
}

unsigned tutti_policy_likely(const struct tutti_model *model, unsigned devices) {
    const struct tutti_device_list *list = tutti_devices();
    unsigned likely = devices;
    double time[TUTTI_MAX_DEVICES], least = HUGE_VAL;
    if (!model || tutti_is_one_device(devices) || tutti_devices_are_at_home(devices) ||
        !tutti_policy_is_active())
        return devices;
    for (unsigned d = 0; d < list->count; d++)
        if (devices & 1u << d) {
            time[d] = tutti_model_expect(model, list->device[d]);
            least = time[d] < least ? time[d] : least;
        }
    for (unsigned d = 0; d < list->count; d++)
        if (devices & 1u << d && time[d] > TUTTI_FAR_SLOWER * least)
            likely &= ~(1u << d);
    return likely;
}
