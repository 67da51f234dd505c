/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "sched/event.h"

#include "brief_lock.h"
#include "recycler.h"
#include "sched/blocking_write.h"
#include "sched/command.h"
#include "sched/direct_end.h"
#include "sched/row.h"
#include "sched/runtime.h"

#define LONGEST_SPIN 30000u /* ns */

/* Waiting threads are few: they share these by a hash of the event. */
#define BUCKETS 64
static struct bucket {
    pthread_mutex_t lock;
    pthread_cond_t changed;
} buckets[BUCKETS];
static pthread_once_t buckets_once = PTHREAD_ONCE_INIT;

static void init_buckets(void) {
    for (int i = 0; i < BUCKETS; i++) {
        tutti_brief_lock_init(&buckets[i].lock);
        pthread_cond_init(&buckets[i].changed, NULL);
    }
}

static struct bucket *bucket_of(cl_event event) {
    return &buckets[(uintptr_t)event / sizeof(struct _cl_event) % BUCKETS];
}

static void destroy(void *object) {
    cl_event event = object;
    while (event->callbacks) {
        struct tutti_event_callback *callback = event->callbacks;
        event->callbacks = callback->next;
        tutti_recycler_give(callback);
    }
    if (event->real)
        tutti_row_forget(event);
    tutti_object_release(event->queue ? (void *)event->queue : (void *)event->context);
    tutti_recycler_give(event);
}

static cl_event create(cl_command_type type, cl_int status) {
    pthread_once(&buckets_once, init_buckets);
    cl_event event = tutti_recycler_take(sizeof(*event));
    if (!event)
        return NULL;
    *event = (struct _cl_event){.type = type, .reached = status, .pending = 1};
    tutti_object_init(&event->object, TUTTI_EVENT, destroy);
    atomic_init(&event->status, status);
    return event;
}

cl_event tutti_event_create_user(cl_context context) {
    cl_event event = create(CL_COMMAND_USER, CL_SUBMITTED);
    if (event)
        event->context = tutti_object_retain(context);
    return event;
}

cl_event tutti_event_create(cl_command_queue queue, cl_command_type type, bool caller_runs,
                            bool programs) {
    cl_event event = create(type, CL_QUEUED);
    if (!event)
        return NULL;
    atomic_init(&event->object.user_refs, programs ? 1 : 0);
    atomic_init(&event->object.refs, 1u + caller_runs + programs);
    event->caller_runs = caller_runs;
    atomic_init(&event->freed, CL_QUEUED);
    event->context = queue->context;
    event->queue = tutti_object_retain(queue);
    event->profiled = programs && queue->properties & CL_QUEUE_PROFILING_ENABLE;
    if (event->profiled)
        event->queued = tutti_runtime_now();
    return event;
}

cl_event tutti_event_create_outside(cl_command_queue queue, cl_command_type type) {
    cl_event event = tutti_event_create(queue, type, false, true);
    if (!event)
        return NULL;
    atomic_init(&event->object.refs, 1);
    atomic_init(&event->status, CL_COMPLETE);
    event->reached = CL_COMPLETE;
    event->dispatched = event->published = true;
    event->submitted = event->queued;
    return event;
}

static void run_callback(struct tutti_job *job) {
    struct tutti_event_callback *callback =
        (void *)((char *)job - offsetof(struct tutti_event_callback, job));
    cl_int status = callback->status;
    if (callback->event->real && callback->type < CL_SUBMITTED) {
        cl_int end = tutti_event_wait(callback->event);
        status = end < 0 ? end : status;
    }
    callback->function(callback->event, status, callback->user_data);
    tutti_object_release(callback->event);
    tutti_recycler_give(callback);
}

static void call(cl_event event, struct tutti_event_callback *callback, cl_int status) {
    callback->event = tutti_object_retain(event);
    callback->status = status < 0 ? status : callback->type;
    callback->job.run = run_callback;
    tutti_pool_call_back(&callback->job);
}

void tutti_event_wake(cl_event event) {
    struct bucket *bucket = bucket_of(event);
    pthread_mutex_lock(&bucket->lock);
    pthread_cond_broadcast(&bucket->changed);
    pthread_mutex_unlock(&bucket->lock);
}

/* Shows `status` to the program and calls the callbacks that waited for it. Lock held. */
static void show(cl_event event, cl_int status) {
    for (cl_int type = CL_SUBMITTED; event->callbacks && type >= CL_COMPLETE && type >= status;
         type--) {
        struct tutti_event_callback **link = &event->callbacks;
        while (*link) {
            struct tutti_event_callback *callback = *link;
            if (callback->type == type) {
                *link = callback->next;
                call(event, callback, status);
            } else {
                link = &callback->next;
            }
        }
    }
    if (status > CL_COMPLETE) {
        atomic_store_explicit(&event->status, status, memory_order_release);
        return;
    }
    /* A waiter counts itself before it looks. */
    atomic_store(&event->status, status);
    if (atomic_load(&event->waiters) > 0)
        tutti_event_wake(event);
}

/*
 * An in-order queue shows the progress of its first command only, and no command runs for the
 * program before those of its wait list are complete. Lock held.
 */
static bool may_show(cl_event event) {
    if (event->unresolved > 0)
        return false;
    return !event->queue || !tutti_queue_in_order(event->queue) || event->queue->first == event;
}

void tutti_event_advance(cl_event event, cl_int status) {
    if (status < event->reached) {
        event->reached = status;
        if (may_show(event))
            show(event, status);
    }
}

/* One predecessor less. Lock held. */
static void satisfy(struct tutti_edge *edge, cl_event event) {
    cl_event dependant = edge->dependant;
    if (edge->strict && event->reached < 0)
        dependant->failed = true;
    if (!edge->late) {
        if (--dependant->pending == 0)
            tutti_graph_append(&dependant->context->graph, &dependant->command->ready);
        return;
    }
    if (dependant->earliest < event->ended)
        dependant->earliest = event->ended;
    dependant->unresolved--;
}

/* Takes the event out of its queue. Lock held. */
static void leave_queue(cl_event event) {
    cl_command_queue queue = event->queue;
    if (event->previous)
        event->previous->next = event->next;
    else
        queue->first = event->next;
    if (event->next)
        event->next->previous = event->previous;
    else
        queue->last = event->previous;
    if (!queue->first)
        atomic_store_explicit(&queue->holds, false, memory_order_release);
    event->previous = event->next = NULL;
}

/*
 * What publication leaves to be released once the lock is open, since releasing may destroy
 * queues and contexts.
 */
struct garbage {
    struct tutti_edge *edges;
    struct tutti_edge *satisfied; /* the same, before their dependants were looked at (settle) */
    cl_event events;              /* linked by `next` */
};

/* Those that waited for that moment wait no more; their edges go to `edges`. Lock held. */
static void satisfy_all(cl_event event, enum tutti_moment moment, struct tutti_edge **edges) {
    while (event->dependants[moment]) {
        struct tutti_edge *edge = event->dependants[moment];
        event->dependants[moment] = edge->next;
        satisfy(edge, event);
        edge->next = *edges;
        *edges = edge;
    }
}

struct tutti_edge *tutti_event_dispatched(cl_event event) {
    struct tutti_edge *edges = NULL;
    event->dispatched = true;
    satisfy_all(event, TUTTI_DISPATCHED, &edges);
    return edges;
}

static bool is_of_kernel(const struct _cl_event *event) {
    return event->type == CL_COMMAND_NDRANGE_KERNEL || event->type == CL_COMMAND_TASK ||
           event->type == CL_COMMAND_NATIVE_KERNEL;
}

void tutti_event_order_end(cl_event event) {
    cl_command_queue queue = event->queue;
    if (!queue || !event->profiled || !tutti_queue_in_order(queue))
        return;
    if (event->ended < queue->ended) {
        /* Of a transfer beside a kernel the time that it took counts: a program knows its bytes. */
        if (event->started && !is_of_kernel(event))
            event->started += queue->ended - event->ended;
        event->ended = queue->ended;
    }
    queue->ended = event->ended;
}

static void publish(cl_event event, struct garbage *garbage) {
    event->published = true;
    tutti_event_order_end(event);
    /* Before who waits for the event looks there. */
    if (event->queue && event->reached < 0 &&
        event->reached != CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
        atomic_store_explicit(&event->queue->error, event->reached, memory_order_relaxed);
    show(event, event->reached);
    satisfy_all(event, TUTTI_PUBLISHED, &garbage->satisfied);
    if (!event->queue)
        return;
    if (event->queue->fence == event) { /* else the queue and its event would keep each other */
        event->queue->fence = NULL;
        tutti_object_release(event); /* not the last reference: the queue's list has one */
    }
    leave_queue(event);
    event->next = garbage->events;
    garbage->events = event;
}

void tutti_event_free_edges(struct tutti_edge *edges) {
    while (edges) {
        struct tutti_edge *edge = edges;
        edges = edge->next;
        tutti_object_release(edge->dependant);
        tutti_recycler_give(edge);
    }
}

static void release_garbage(struct garbage *garbage) {
    tutti_event_free_edges(garbage->edges);
    while (garbage->events) {
        cl_event event = garbage->events;
        garbage->events = event->next;
        event->next = NULL;
        tutti_object_release(event);
    }
}

/* Lock held. */
static void finish(cl_event event, cl_int status, struct garbage *garbage) {
    event->outcome = status;
    event->over = event->unresolved > 0;
    if (event->over) /* to be continued */
        return;
    if (event->failed && status == CL_COMPLETE)
        status = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    event->reached = status;
    if (!event->ended && (event->profiled || event->dependants[TUTTI_FINISHED]))
        event->ended = tutti_runtime_now();
    if (event->ended < event->earliest)
        event->ended = event->earliest;
    satisfy_all(event, TUTTI_FINISHED, &garbage->satisfied);
    if (event->uses_memory)
        tutti_memory_user_leave(event);
    if (!may_show(event)) {
        tutti_blocking_write_free(event);
        return;
    }
    cl_command_queue queue = event->queue;
    publish(event, garbage);
    while (queue && tutti_queue_in_order(queue) && queue->first) {
        cl_event first = queue->first;
        if (first->reached > CL_COMPLETE) {
            if (first->reached < tutti_event_status(first))
                show(first, first->reached);
            break;
        }
        publish(first, garbage);
    }
}

/*
 * After the end of an event was shown, goes on with those whose own end waited for nothing else:
 * they are over already, or run. Lock held.
 */
static void settle(struct garbage *garbage) {
    while (garbage->satisfied) {
        struct tutti_edge *edge = garbage->satisfied;
        cl_event dependant = edge->dependant;
        garbage->satisfied = edge->next;
        edge->next = garbage->edges;
        garbage->edges = edge;
        if (!edge->late || dependant->unresolved > 0)
            continue;
        if (dependant->over)
            finish(dependant, dependant->outcome, garbage);
        else if (dependant->reached < tutti_event_status(dependant) && may_show(dependant))
            show(dependant, dependant->reached);
    }
}

void tutti_event_finish(unsigned count, const cl_event *events, const cl_int *statuses) {
    cl_context context = events[0]->context;
    struct tutti_graph *graph = &context->graph;
    struct garbage garbage = {NULL, NULL, NULL};
    pthread_mutex_lock(&graph->lock);
    for (unsigned i = 0; i < count; i++) {
        finish(events[i], statuses[i], &garbage);
        settle(&garbage);
    }
    /* What was published keeps the context until here; the rest may be published elsewhere. */
    cl_context kept = garbage.events ? NULL : tutti_object_retain(context);
    tutti_graph_run_and_unlock(graph);
    release_garbage(&garbage);
    tutti_object_release(kept);
}

static bool is_past(cl_event event, enum tutti_moment moment) {
    return event->published || (moment == TUTTI_FINISHED && event->reached <= CL_COMPLETE) ||
           (moment == TUTTI_DISPATCHED && event->dispatched);
}

static struct tutti_edge *add_edge(cl_event event, cl_event dependant, enum tutti_moment moment) {
    struct tutti_edge *edge = tutti_recycler_take_zeroed(sizeof(*edge));
    if (!edge)
        return NULL;
    edge->dependant = tutti_object_retain(dependant);
    edge->next = event->dependants[moment];
    event->dependants[moment] = edge;
    return edge;
}

bool tutti_event_add_dependant(cl_event event, cl_event dependant, enum tutti_moment moment,
                               bool strict) {
    if (is_past(event, moment)) {
        /* `reached` is no kernel's in a row, but those are published. */
        if (strict && (event->published ? tutti_event_status(event) : event->reached) < 0)
            dependant->failed = true;
        return true;
    }
    struct tutti_edge *edge = add_edge(event, dependant, moment);
    if (!edge)
        return false;
    edge->strict = strict;
    dependant->pending++;
    return true;
}

bool tutti_event_add_late_dependant(cl_event event, cl_event dependant) {
    if (event->broken || event->reached < 0)
        dependant->failed = true;
    if (is_past(event, TUTTI_FINISHED))
        return true;
    struct tutti_edge *edge = add_edge(event, dependant, TUTTI_FINISHED);
    if (!edge)
        return false;
    edge->strict = edge->late = true;
    dependant->unresolved++;
    return true;
}

void tutti_event_break(cl_event event) {
    pthread_mutex_lock(&event->context->graph.lock);
    event->broken = true;
    for (struct tutti_edge *edge = event->dependants[TUTTI_FINISHED]; edge; edge = edge->next)
        if (edge->late)
            edge->dependant->failed = true;
    pthread_mutex_unlock(&event->context->graph.lock);
}

/*
 * For a thread that waits for it, or for the program's memory alone, which it frees: above
 * CL_COMPLETE there is still something to wait for.
 */
enum awaited { ITS_END, ITS_MEMORY };

static cl_int find_end(cl_event event, enum awaited awaited) {
    cl_int status = tutti_event_status(event);
    return status > CL_COMPLETE && awaited == ITS_MEMORY ? atomic_load(&event->freed) : status;
}

/*
 * To wake a thread takes as long as a small command does. Looks for its end first, for a while,
 * where cores are left for that beside StarPU's workers and the devices on the CPU.
 */
static void spin(cl_event event, enum awaited awaited) {
    if (!tutti_runtime_has_spare_cores())
        return;
    cl_ulong until = tutti_runtime_now() + LONGEST_SPIN;
    while (find_end(event, awaited) > CL_COMPLETE && !event->job && tutti_runtime_now() < until)
        ;
}

bool tutti_event_waits_for(cl_event event, cl_event other) {
    return event == other || (event->queue && event->queue == other->queue &&
                              tutti_queue_in_order(event->queue) && other->number <= event->number);
}

/* What no host thread has begun this one does sooner: it is awake. True: it did something. */
static bool work(cl_event event, enum awaited awaited) {
    bool worked = false;
    while (find_end(event, awaited) > CL_COMPLETE && tutti_pool_help(event))
        worked = true;
    return worked;
}

/* Guards the sleepers of all queues; taken before a bucket's. */
static pthread_mutex_t sleepers = TUTTI_BRIEF_LOCK;

/*
 * The calling thread is about to sleep until the event is over, and so what is before it, which it
 * may be given; not if it sleeps for the memory alone.
 */
static void note_sleeper(cl_event event, enum awaited awaited) {
    cl_command_queue queue = event->queue;
    if (!queue || !tutti_queue_in_order(queue) || awaited == ITS_MEMORY)
        return;
    pthread_mutex_lock(&sleepers);
    if (!queue->sleeper || queue->sleeper->number < event->number)
        queue->sleeper = event;
    pthread_mutex_unlock(&sleepers);
}

static void forget_sleeper(cl_event event) {
    cl_command_queue queue = event->queue;
    if (!queue || !tutti_queue_in_order(queue))
        return;
    pthread_mutex_lock(&sleepers);
    if (queue->sleeper == event)
        queue->sleeper = NULL;
    pthread_mutex_unlock(&sleepers);
}

cl_int tutti_event_look(cl_event event) {
    if (event->real)
        return tutti_row_look(event);
    tutti_direct_look(event);
    return tutti_event_status(event);
}

static cl_int wait_for(cl_event event, enum awaited awaited) {
    do
        tutti_direct_help(event);
    while (work(event, awaited)); /* what waited for that may be a device's */
    spin(event, awaited);
    while (work(event, awaited))
        tutti_direct_help(event);
    struct bucket *bucket = bucket_of(event);
    cl_int status = find_end(event, awaited);
    if (status <= CL_COMPLETE)
        return status;
    atomic_fetch_add(&event->waiters, 1);
    tutti_direct_note_sleeper(true);
    note_sleeper(event, awaited);
    pthread_mutex_lock(&bucket->lock);
    while ((status = find_end(event, awaited)) > CL_COMPLETE) {
        struct tutti_job *job = event->job;
        if (!job) {
            pthread_cond_wait(&bucket->changed, &bucket->lock);
            continue;
        }
        event->job = job->next;
        pthread_mutex_unlock(&bucket->lock);
        tutti_pool_do(job, event);
        work(event, awaited);
        note_sleeper(event, awaited);
        pthread_mutex_lock(&bucket->lock);
    }
    pthread_mutex_unlock(&bucket->lock);
    forget_sleeper(event);
    tutti_direct_note_sleeper(false);
    atomic_fetch_sub(&event->waiters, 1);
    return status;
}

cl_int tutti_event_wait(cl_event event) {
    return event->real ? tutti_row_wait(event) : wait_for(event, ITS_END);
}

cl_int tutti_event_wait_for_memory(cl_event event) {
    work(event, ITS_MEMORY); /* its own work first: what is before it may take longer */
    cl_int status = find_end(event, ITS_MEMORY);
    return status <= CL_COMPLETE ? status : wait_for(event, ITS_MEMORY);
}

void tutti_event_give_job(cl_event event, struct tutti_job *job) {
    struct bucket *bucket = bucket_of(event);
    pthread_mutex_lock(&bucket->lock); /* no waiter takes the job, and is through with it, before */
    job->next = event->job;
    event->job = job;
    pthread_cond_broadcast(&bucket->changed);
    pthread_mutex_unlock(&bucket->lock);
}

bool tutti_event_hand_over_job(cl_event event, struct tutti_job *job) {
    cl_command_queue queue = event->queue;
    pthread_mutex_lock(&sleepers);
    cl_event sleeper = queue->sleeper;
    bool found = sleeper && tutti_event_waits_for(sleeper, event);
    if (found) { /* which is not over before that */
        queue->sleeper = NULL;
        tutti_event_give_job(sleeper, job);
    }
    pthread_mutex_unlock(&sleepers);
    return found;
}

cl_int tutti_event_add_callback(cl_event event, cl_int type,
                                void(CL_CALLBACK *function)(cl_event, cl_int, void *),
                                void *user_data) {
    struct tutti_event_callback *callback = tutti_recycler_take_zeroed(sizeof(*callback));
    if (!callback)
        return CL_OUT_OF_HOST_MEMORY;
    callback->type = type;
    callback->function = function;
    callback->user_data = user_data;
    pthread_mutex_lock(&event->context->graph.lock);
    cl_int status = tutti_event_status(event);
    if (status <= type || event->real) {
        call(event, callback, status);
    } else {
        struct tutti_event_callback **last = &event->callbacks;
        while (*last)
            last = &(*last)->next;
        *last = callback;
    }
    pthread_mutex_unlock(&event->context->graph.lock);
    if (status > type && !event->real)
        tutti_direct_hurry();
    return CL_SUCCESS;
}
