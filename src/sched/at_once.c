/* SPDX-License-Identifier: MIT */
#include "sched/at_once.h"

#include "log.h"
#include "memory/version.h"
#include "sched/crew.h"
#include "sched/direct.h"
#include "sched/row.h"
#include "sched/runtime.h"
#include "sched/statistics.h"
#include "virtual_device/sampler.h"

#define MOST_ARGUMENTS 16
/*
 * µs: of what takes longer two devices do two sooner. With one device another thread could only
 * take it off the caller, which gains once its waking, and the caller's waiting, cost less.
 */
#define SHORT 6.0
#define SHORT_ALONE 200.0
/* ns, by a clock that is slow: a kernel that takes so long is not what its model says. */
#define LATE 8000000u

static bool are_complete(struct tutti_wait_list list) {
    for (cl_uint i = 0; i < list.count; i++)
        if (tutti_event_status(list.events[i]) != CL_COMPLETE)
            return false;
    return true;
}

/* Fills in the memory objects, all of them plain buffers. With the kernel's lock held. */
static bool take_arguments(struct tutti_invocation *call, cl_context context, unsigned *devices) {
    struct tutti_arguments *arguments = call->kernel->arguments;
    if (arguments->count > MOST_ARGUMENTS || arguments->count != call->kernel->argument_count)
        return false;
    call->arguments = arguments;
    for (unsigned i = 0; i < arguments->count; i++) {
        const struct tutti_argument *argument = &arguments->argument[i];
        cl_mem mem = argument->mem;
        if (!argument->set || argument->pointer)
            return false;
        if (argument->sampler)
            *devices &= tutti_sampler_devices(argument->sampler);
        if (!mem)
            continue;
        if (!TUTTI_IS_MEM(mem) || mem->context != context || mem->type != CL_MEM_OBJECT_BUFFER ||
            mem->parent || mem->is_svm)
            return false;
        *devices &= mem->devices;
        tutti_invocation_add(call, i);
    }
    return true;
}

/* µs */
static double longest(void) { return tutti_direct_serves_all() ? SHORT_ALONE : SHORT; }

/* One that executes it in so short a time; NULL: there is none. */
static struct tutti_real_device *find_device(const struct tutti_model *model, unsigned devices,
                                             double most) {
    const struct tutti_device_list *list = tutti_devices();
    for (unsigned d = 0; model && d < list->count; d++)
        if (devices & 1u << d && tutti_model_is_measured(model, list->device[d]) &&
            tutti_model_expect(model, list->device[d]) <= most)
            return list->device[d];
    return NULL;
}

static void unlock_devices(unsigned count) {
    while (count-- > 0)
        pthread_mutex_unlock(&tutti_devices()->device[count]->place.enqueues);
}

/* None of them is given anything meanwhile: the kernel can't be confused with others (pocl.h). */
static bool lock_devices(void) {
    const struct tutti_device_list *list = tutti_devices();
    for (unsigned d = 0; d < list->count; d++)
        if (pthread_mutex_trylock(&list->device[d]->place.enqueues) != 0) {
            unlock_devices(d);
            return false;
        }
    return true;
}

/* By the dispatching thread. */
static bool find_storage(const struct tutti_invocation *call,
                         const struct tutti_real_device *device, bool in_row,
                         const struct tutti_storage **storage) {
    for (unsigned i = 0; i < call->count; i++) {
        if (in_row ? !tutti_version_is_devices(call->mem[i]) : !tutti_version_is_free(call->mem[i]))
            return false;
        storage[i] = tutti_view_storage(call->mem[i]->view, device);
        if (!storage[i]->argument)
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
    bool entered;     /* the caller is the dispatching thread */
    bool unpublished; /* it may be in a row once what is before it is published, */
    cl_event last;    /* and with it this, retained */
};

/* The caller becomes the dispatching thread, if nothing is under way, or only such kernels are. */
static void enter(struct attempt *attempt) {
    cl_command_queue queue = attempt->queue;
    struct tutti_graph *graph = &queue->context->graph;
    pthread_mutex_lock(&graph->lock);
    bool able = attempt->in_row ? tutti_row_may_follow(queue, attempt->list)
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

static void leave(cl_command_queue queue, bool in_row) {
    struct tutti_graph *graph = &queue->context->graph;
    pthread_mutex_lock(&graph->lock);
    graph->dispatching = false;
    if (in_row)
        tutti_row_end_turn();
    tutti_graph_run_and_unlock(graph);
}

/* In the call, with what is learnt of it. */
static bool execute(const struct tutti_invocation *call, struct tutti_real_device *device,
                    const struct tutti_storage *const *storage, struct tutti_model *model,
                    unsigned able, cl_event event) {
    struct tutti_invocation_times times = {0, 0};
    bool timed =
        tutti_model_measures(model, device) != TUTTI_NOT_MEASURED || (event && event->profiled);
    cl_ulong began = tutti_runtime_about_now();
    tutti_log(DEBUG, "%s: a kernel past StarPU, in the call", device->name);
    if (tutti_invocation_enqueue(call, device, device->place.kernels, storage, true, NULL,
                                 timed ? &times : NULL) != CL_SUCCESS)
        return false;
    cl_ulong took = timed ? times.end - times.start : tutti_runtime_about_now() - began;
    if (timed || took >= LATE)
        tutti_model_learn(model, device, (double)took / 1000);
    tutti_statistics_count(model, able, device, timed ? (double)took / 1000 : 0);
    if (event) {
        event->started = times.start;
        event->ended = times.end;
    }
    return true;
}

/* By the dispatching thread, with the devices locked. False: not at all. */
static bool run(const struct tutti_invocation *call, struct tutti_real_device *device, bool in_row,
                struct tutti_model *model, unsigned able, cl_event event) {
    const struct tutti_storage *storage[MOST_ARGUMENTS];
    if (!find_storage(call, device, in_row, storage))
        return false;
    for (unsigned i = 0; i < call->count; i++) {
        tutti_view_take_over(call->mem[i]->view);
        call->mem[i]->view->defined = true;
        call->mem[i]->view->unread = false;
    }
    bool done = in_row ? tutti_row_enqueue(call, device, storage, model, able, event) == CL_SUCCESS
                       : execute(call, device, storage, model, able, event);
    for (unsigned i = 0; i < call->count; i++)
        tutti_view_hand_over(call->mem[i]->view);
    return done;
}

enum outcome { EXECUTED, NOT_ABLE, OTHERS_FIRST };

/* With the kernel's lock held. */
static enum outcome try(struct attempt *attempt, struct tutti_invocation *call) {
    cl_command_queue queue = attempt->queue;
    bool in_row = attempt->in_row;
    unsigned devices = tutti_invocation_devices(call);
    call->count = 0;
    if (!take_arguments(call, queue->context, &devices))
        return NOT_ABLE;
    struct tutti_model *model = tutti_invocation_model(call);
    struct tutti_real_device *device =
        find_device(model, devices, in_row ? tutti_row_longest() : longest());
    if (!device)
        return NOT_ABLE;
    enter(attempt);
    if (!attempt->entered)
        return OTHERS_FIRST;
    if (!lock_devices())
        return in_row ? OTHERS_FIRST : NOT_ABLE;
    cl_event event = attempt->event ? tutti_event_create_outside(queue, attempt->type) : NULL;
    bool done = (event || !attempt->event) && run(call, device, in_row, model, devices, event);
    unlock_devices(tutti_devices()->count);
    if (done && event)
        *attempt->event = event;
    else if (event)
        tutti_object_user_release(event);
    return done ? EXECUTED : NOT_ABLE;
}

static enum outcome lock_and_try(struct attempt *attempt, struct tutti_invocation *call) {
    attempt->entered = attempt->unpublished = false;
    if (attempt->in_row)
        tutti_row_begin_turn();
    pthread_mutex_lock(&call->kernel->lock);
    enum outcome outcome = try(attempt, call);
    pthread_mutex_unlock(&call->kernel->lock);
    /* Without any lock: what others have enqueued meanwhile is dispatched here. */
    if (attempt->entered)
        leave(attempt->queue, attempt->in_row);
    else if (attempt->in_row)
        tutti_row_end_turn();
    return outcome;
}

static enum outcome try_in_row(struct attempt *attempt, struct tutti_invocation *call) {
    enum outcome outcome = lock_and_try(attempt, call);
    if (attempt->unpublished) {
        tutti_row_publish(attempt->last, attempt->list);
        outcome = lock_and_try(attempt, call);
    }
    tutti_object_release(attempt->last);
    tutti_row_keep_close();
    return outcome;
}

static enum outcome try_alone(struct attempt *attempt, struct tutti_invocation *call) {
    enum outcome outcome = lock_and_try(attempt, call);
    if (outcome == OTHERS_FIRST && tutti_crew_assist(longest()))
        outcome = lock_and_try(attempt, call);
    return outcome;
}

bool tutti_launch_at_once(cl_command_queue queue, cl_kernel kernel, const struct tutti_range *range,
                          cl_command_type type, struct tutti_wait_list list, cl_event *event,
                          bool *row) {
    cl_mem mem[MOST_ARGUMENTS];
    unsigned mem_of[MOST_ARGUMENTS];
    struct tutti_invocation call = {
        .kernel = kernel, .range = *range, .mem = mem, .mem_of = mem_of};
    struct attempt attempt = {.queue = queue, .list = list, .type = type, .event = event};
    bool counts = !(event && queue->properties & CL_QUEUE_PROFILING_ENABLE);
    attempt.in_row = counts && tutti_row_goes_on(queue);
    *row = counts && !attempt.in_row;
    if (kernel->prints)
        return false;
    if (attempt.in_row) {
        enum outcome outcome = try_in_row(&attempt, &call);
        *row = outcome == OTHERS_FIRST;
        return outcome == EXECUTED;
    }
    return tutti_crew_serves() && are_complete(list) && try_alone(&attempt, &call) == EXECUTED;
}
