/* SPDX-License-Identifier: MIT */
#include "sched/at_once.h"

#include "brief_lock.h"
#include "log.h"
#include "memory/version.h"
#include "memory/window.h"
#include "sched/append.h"
#include "sched/crew.h"
#include "sched/direct.h"
#include "sched/lanes.h"
#include "sched/row.h"
#include "sched/runtime.h"
#include "sched/statistics.h"

/*
 * µs: of what takes longer two devices do two sooner. With one device another thread could only
 * take it off the caller, which gains once its waking, and the caller's waiting, cost less. So it
 * is with several, if the program has waited for each of the last kernels before it went on.
 */
#define SHORT 6.0
#define SHORT_ALONE 200.0
#define LONE 4        /* of the last kernels */
#define APART 64      /* kernels until that is tried again, if others had something to do */
#define TRIES 1000    /* in a row, while others dispatch */
#define LATE 8000000u /* ns, by a clock that is slow, which */
#define LOOK 4        /* one of so many kernels looks at */

/* What the devices and the settings allow; none of it changes once StarPU has started. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct tutti_device_list *devices;
static enum { COMMANDS, APPENDED, IN_ROWS, ALONE } way;
static double longest; /* µs that a kernel may take, */
static bool depends;   /* or SHORT_ALONE, by what the program does */

static void look_at_devices(void) {
    devices = tutti_devices();
    if (tutti_row_serves()) {
        way = IN_ROWS;
        longest = tutti_row_longest();
    } else if (tutti_crew_serves()) {
        way = ALONE;
        depends = !tutti_direct_serves_all();
        longest = depends ? SHORT : SHORT_ALONE;
    } else if (tutti_direct_is_wanted()) {
        for (unsigned d = 0; d < devices->count && way == COMMANDS; d++)
            way = tutti_lanes_are_of_gpu(devices->device[d]) ? APPENDED : COMMANDS;
    }
}

/* µs that the next kernel may take; counts it. */
static double find_longest(struct tutti_graph *graph) {
    if (!depends)
        return longest;
    int lone = atomic_load_explicit(&graph->lone, memory_order_relaxed);
    if (lone >= 0 && !atomic_load_explicit(&graph->waited, memory_order_relaxed))
        lone = 0;
    else if (lone < LONE)
        lone++;
    atomic_store_explicit(&graph->lone, lone, memory_order_relaxed);
    atomic_store_explicit(&graph->waited, false, memory_order_relaxed);
    return lone == LONE ? SHORT_ALONE : longest;
}

/* One that executes it in so short a time; NULL: there is none. */
static struct tutti_real_device *find_device(const struct tutti_model *model, unsigned able,
                                             double within) {
    for (unsigned d = 0; d < devices->count; d++)
        if (able & 1u << d && tutti_model_is_within(model, devices->device[d], within))
            return devices->device[d];
    return NULL;
}

static void unlock_devices(unsigned count) {
    while (count-- > 0)
        pthread_mutex_unlock(&devices->device[count]->place.enqueues);
}

/*
 * None of them is given anything meanwhile: the kernel can't be confused with others (pocl.h). What
 * holds them while no command is under way is another thread's kernel in its call, which is soon
 * over: a very short one waits for that, as a command would cost more.
 */
static bool lock_devices(bool in_row, const struct tutti_model *model,
                         const struct tutti_real_device *device) {
    for (unsigned d = 0; d < devices->count; d++) {
        pthread_mutex_t *lock = &devices->device[d]->place.enqueues;
        if (pthread_mutex_trylock(lock) == 0)
            continue;
        if (in_row || !tutti_model_is_within(model, device, SHORT) ||
            tutti_runtime_in_flight() > 0) {
            unlock_devices(d);
            return false;
        }
        tutti_brief_lock_persist(lock);
    }
    return true;
}

static struct tutti_view *view_of(cl_mem mem) { return tutti_window_storage_of(mem)->view; }

/* What a kernel executed at once is given of each memory object. */
struct found {
    const struct tutti_storage *storage[TUTTI_PLAIN_ARGUMENTS];
    struct tutti_storage window[TUTTI_PLAIN_ARGUMENTS];
};

/* By the dispatching thread, with the devices locked. */
static bool find_storage(const struct tutti_invocation *call,
                         const struct tutti_real_device *device, unsigned able, bool in_row,
                         struct found *found) {
    for (unsigned i = 0; i < call->count; i++)
        if (tutti_window_is(call->mem[i]))
            tutti_window_make_room(view_of(call->mem[i]), device);
    for (unsigned i = 0; i < call->count; i++) {
        cl_mem mem = call->mem[i];
        if (!tutti_version_is_idle(mem, in_row) ||
            (tutti_mem_has_siblings(mem) && !tutti_invocation_settle_part(call, mem, able)))
            return false;
        const struct tutti_storage *whole = tutti_view_storage(view_of(mem), device);
        found->storage[i] = whole;
        if (!whole->argument)
            return false;
        if (!tutti_window_is(mem))
            continue;
        found->storage[i] = &found->window[i];
        if (tutti_window_find(view_of(mem), mem->view, device, whole, &found->window[i]) !=
            CL_SUCCESS)
            return false;
    }
    return true;
}

/* To give a device a kernel in the call. */
struct attempt {
    cl_command_queue queue;
    struct tutti_wait_list list;
    cl_command_type type;
    cl_event *event;
    bool in_row;
    double longest;   /* µs that it may take */
    bool entered;     /* the caller is the dispatching thread */
    bool held;        /* it waits for others than the device, or its queue does */
    bool unpublished; /* it may be in a row once what is before it is published, */
    cl_event last;    /* and with it this, retained */
};

/* The caller becomes the dispatching thread, if nothing is under way, or only such kernels are. */
static void enter(struct attempt *attempt) {
    cl_command_queue queue = attempt->queue;
    struct tutti_graph *graph = &queue->context->graph;
    pthread_mutex_lock(&graph->lock);
    attempt->held = attempt->in_row && tutti_row_is_held(queue, attempt->list);
    bool able = attempt->in_row ? !attempt->held && tutti_row_may_follow()
                                : !queue->first && tutti_runtime_in_flight() == 0;
    attempt->entered = able && tutti_graph_begin(graph);
    if (attempt->entered && attempt->in_row &&
        !tutti_row_is_published(queue, attempt->list, attempt->event != NULL)) {
        graph->dispatching = attempt->entered = false;
        attempt->unpublished = true;
        if (attempt->event && tutti_queue_in_order(queue) && !attempt->last)
            attempt->last = tutti_object_retain(queue->last);
    }
    pthread_mutex_unlock(&graph->lock);
}

/* Other threads have something to do beside it: the next kernels are not kept for the caller. */
static void note_others(const struct attempt *attempt) {
    if (attempt->longest > longest)
        atomic_store_explicit(&attempt->queue->context->graph.lone, -APART, memory_order_relaxed);
}

/* What others have enqueued meanwhile is dispatched here: without any lock. */
static void leave(const struct attempt *attempt) {
    struct tutti_graph *graph = &attempt->queue->context->graph;
    pthread_mutex_lock(&graph->lock);
    graph->dispatching = false;
    if (graph->first)
        note_others(attempt);
    unlock_devices(devices->count); /* not before: who waits for them would find it dispatching */
    if (attempt->in_row)
        tutti_row_end_turn();
    tutti_graph_run_and_unlock(graph);
}

/*
 * In the call, with what is learnt of it. When those before it ended long ago, it may have been
 * this kernel that took so long, and is not what its model says: the next one is measured. To look
 * at the clock costs some percent of an empty kernel.
 */
static bool execute(const struct tutti_invocation *call, struct tutti_real_device *device,
                    const struct tutti_storage *const *storage, struct tutti_model *model,
                    unsigned able, cl_event event) {
    static cl_ulong last_end; /* that was looked at; by the devices' locks, as the others */
    static unsigned unseen;   /* kernels since then */
    static bool measures;
    struct tutti_invocation_times times = {0, 0};
    bool timed = tutti_model_measures(model, device) != TUTTI_NOT_MEASURED || measures ||
                 (event && event->profiled);
    tutti_log(DEBUG, "%s: a kernel past StarPU, in the call", device->name);
    if (tutti_invocation_enqueue(call, device, device->place.kernels, storage, true, 0, NULL, NULL,
                                 timed ? &times : NULL) != CL_SUCCESS)
        return false;
    measures = false;
    if (timed || ++unseen == LOOK) {
        cl_ulong end = timed ? times.end : tutti_runtime_about_now();
        measures = end > last_end + LATE;
        last_end = end;
        unseen = 0;
    }
    double took = (double)(times.end - times.start) / 1000;
    if (timed)
        tutti_model_learn(model, device, took);
    tutti_statistics_count(model, able, device, took);
    if (event) {
        event->started = times.start;
        event->ended = times.end;
    }
    return true;
}

/* By the dispatching thread, with the devices locked. False: not at all. */
static bool run(const struct attempt *attempt, const struct tutti_invocation *call,
                struct tutti_real_device *device, struct tutti_model *model, unsigned able,
                cl_event event) {
    struct found found;
    bool in_row = attempt->in_row;
    if (!find_storage(call, device, able, in_row, &found))
        return false;
    const struct tutti_row_kernel kernel = {attempt->queue, attempt->list, model, able, event};
    for (unsigned i = 0; i < call->count; i++) {
        struct tutti_view *view = view_of(call->mem[i]);
        tutti_view_take_over(view);
        view->defined = true;
        view->unread = false;
    }
    bool done = in_row ? tutti_row_enqueue(call, device, found.storage, &kernel) == CL_SUCCESS
                       : execute(call, device, found.storage, model, able, event);
    for (unsigned i = 0; i < call->count; i++) {
        struct tutti_view *view = view_of(call->mem[i]);
        if (in_row) /* kernels of its device may end meanwhile */
            tutti_view_hand_over(view);
        else
            tutti_view_hand_over_alone(view);
    }
    return done;
}

enum outcome { EXECUTED, NOT_ABLE, OTHERS_FIRST };

/* With the kernel's lock held. */
static enum outcome try(struct attempt *attempt, struct tutti_invocation *call) {
    cl_command_queue queue = attempt->queue;
    bool in_row = attempt->in_row;
    unsigned able, holding = ~0u; /* those that can hold the arguments */
    if (!tutti_invocation_take_plain(call, queue->context, &holding))
        return NOT_ABLE;
    struct tutti_model *model = tutti_invocation_recall(call, &able);
    able &= holding;
    struct tutti_real_device *device = find_device(model, able, attempt->longest);
    if (!device)
        return NOT_ABLE;
    if (!lock_devices(in_row, model, device)) {
        note_others(attempt);
        return in_row ? OTHERS_FIRST : NOT_ABLE;
    }
    enter(attempt);
    if (!attempt->entered) {
        unlock_devices(devices->count);
        return OTHERS_FIRST;
    }
    cl_event event = attempt->event ? tutti_event_create_outside(queue, attempt->type) : NULL;
    bool done = (event || !attempt->event) && run(attempt, call, device, model, able, event);
    if (done && event)
        *attempt->event = event;
    else if (event)
        tutti_object_user_release(event);
    return done ? EXECUTED : NOT_ABLE;
}

static enum outcome lock_and_try(struct attempt *attempt, struct tutti_invocation *call) {
    attempt->entered = attempt->held = attempt->unpublished = false;
    if (attempt->in_row)
        tutti_row_begin_turn();
    pthread_mutex_lock(&call->kernel->lock);
    enum outcome outcome = try(attempt, call);
    pthread_mutex_unlock(&call->kernel->lock);
    if (attempt->entered)
        leave(attempt);
    else if (attempt->in_row)
        tutti_row_end_turn();
    return outcome;
}

static enum outcome try_in_row(struct attempt *attempt, struct tutti_invocation *call) {
    enum outcome outcome = lock_and_try(attempt, call);
    if (attempt->unpublished) {
        tutti_row_publish(attempt->last, attempt->list);
        outcome = lock_and_try(attempt, call);
    } else {
        for (int i = 0; i < TRIES && outcome == OTHERS_FIRST; i++) {
            if (attempt->held || !tutti_row_await_others(attempt->queue))
                break;
            outcome = lock_and_try(attempt, call);
        }
    }
    tutti_object_release(attempt->last);
    tutti_row_keep_close(attempt->queue);
    return outcome;
}

static enum outcome try_alone(struct attempt *attempt, struct tutti_invocation *call) {
    enum outcome outcome = lock_and_try(attempt, call);
    if (outcome == OTHERS_FIRST && tutti_crew_assist(longest))
        outcome = lock_and_try(attempt, call);
    if (outcome == OTHERS_FIRST)
        note_others(attempt);
    return outcome;
}

bool tutti_launch_at_once(cl_command_queue queue, cl_kernel kernel, const struct tutti_range *range,
                          cl_command_type type, struct tutti_wait_list list, cl_event *event,
                          bool *row) {
    if (!tutti_runtime_usable())
        return false;
    pthread_once(&once, look_at_devices);
    if (way == COMMANDS)
        return false;
    cl_mem mem[TUTTI_PLAIN_ARGUMENTS];
    unsigned mem_of[TUTTI_PLAIN_ARGUMENTS];
    struct tutti_invocation call;
    call.kernel = kernel;
    call.range = range;
    call.mem = mem;
    call.mem_of = mem_of;
    if (way == APPENDED)
        return !event && !kernel->prints && tutti_wait_list_is_complete(list) &&
               tutti_append_kernel(queue, &call);
    struct attempt attempt = {.queue = queue,
                              .list = list,
                              .type = type,
                              .event = event,
                              .longest = find_longest(&queue->context->graph)};
    if (way == ALONE)
        return !kernel->prints && tutti_wait_list_is_complete(list) &&
               try_alone(&attempt, &call) == EXECUTED;
    bool counts = !(event && queue->properties & CL_QUEUE_PROFILING_ENABLE);
    attempt.in_row = counts && tutti_row_goes_on(queue);
    *row = counts && !attempt.in_row;
    if (kernel->prints || !attempt.in_row)
        return false;
    enum outcome outcome = try_in_row(&attempt, &call);
    *row = outcome == OTHERS_FIRST;
    return outcome == EXECUTED;
}
