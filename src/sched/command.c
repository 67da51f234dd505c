/* SPDX-License-Identifier: MIT */
#include "sched/command.h"

#include "log.h"
#include "recycler.h"
#include "sched/ahead.h"
#include "sched/append.h"
#include "sched/batch.h"
#include "sched/blocking_write.h"
#include "sched/direct_end.h"
#include "sched/row.h"
#include "sched/runtime.h"

/*
 * A command with host memory is compared with as many others of its queue; beyond, it waits for
 * the last one compared, so that a long queue stays linear.
 */
#define HOST_RANGES_COMPARED 256
#define HOST_RANGES_AT_ONCE 16 /* to find that it need not wait at all */
/* So many commands with host memory after one that waited for another's, the next may do so. */
#define HOST_WAITS 64

static void destroy_empty(struct tutti_command *command) { tutti_recycler_give(command); }

static void start_empty(struct tutti_command *command) { tutti_command_done(command, CL_COMPLETE); }

struct tutti_command *tutti_command_create_empty(void) {
    struct tutti_command *command = tutti_recycler_take_zeroed(sizeof(*command));
    if (command) {
        command->start = start_empty;
        command->destroy = destroy_empty;
    }
    return command;
}

static void dispatch(struct tutti_ready *ready) {
    struct tutti_command *command = (struct tutti_command *)ready;
    cl_event event = command->event;
    struct tutti_graph *graph = &event->context->graph;

    tutti_hold_leave(command);
    if (event->queue->outsider == event)
        event->queue->outsider = NULL;
    struct tutti_edge *followers = tutti_event_dispatched(event); /* they come after this one */
    cl_int error = CL_SUCCESS;
    if (event->failed && !command->regardless)
        error = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    else if (!tutti_runtime_usable())
        error = CL_OUT_OF_RESOURCES;
    if (event->profiled)
        event->submitted = tutti_runtime_now();
    if (error == CL_SUCCESS)
        tutti_event_advance(event, CL_SUBMITTED);
    pthread_mutex_unlock(&graph->lock);
    tutti_event_free_edges(followers);

    tutti_runtime_busy();
    if (!command->in_row || error != CL_SUCCESS)
        tutti_row_break(graph);
    else
        tutti_row_join();
    if (error != CL_SUCCESS) {
        tutti_command_done(command, error);
        return;
    }
    if (!command->joins)
        tutti_batch_flush(graph);
    command->start(command);
}

static bool overlap(const struct tutti_command *a, const struct tutti_command *b) {
    /* Numbers: a native kernel's memory is all that there is. */
    uintptr_t first = (uintptr_t)a->host, second = (uintptr_t)b->host;
    return (a->host_written || b->host_written) && first < second + b->host_size &&
           second < first + a->host_size;
}

/*
 * May a device's queue order it behind that one, which it need not wait for then? Not what reads
 * the memory: NVIDIA's driver (580.159) takes the bytes of a small write when it is enqueued.
 */
static bool comes_behind(struct tutti_command *command, const struct _cl_event *event) {
    bool may = command->joins && command->host_written;
    unsigned place = may ? atomic_load(&event->place) : 0;
    if (place == 0 || (command->follows && command->follows != place))
        return false;
    command->follows = place;
    return true;
}

/* Is all that the command writes among what that one writes, too? */
static bool is_covered(const struct tutti_command *command, const struct tutti_command *by) {
    uintptr_t first = (uintptr_t)command->host, other = (uintptr_t)by->host;
    return by->host_written && first >= other &&
           first + command->host_size <= other + by->host_size;
}

/*
 * The program can observe host memory, which StarPU doesn't know: a command that reads what an
 * earlier one writes, or writes what it uses, waits for it.
 */
static bool order_by_host_memory(cl_command_queue queue, struct tutti_command *command) {
    cl_event event = command->event;
    unsigned compared = 0, waits = atomic_load_explicit(&queue->host_waits, memory_order_relaxed);
    if (!command->host)
        return true;
    if (waits > 0)
        atomic_store_explicit(&queue->host_waits, waits - 1, memory_order_relaxed);
    for (cl_event e = queue->last_host; e; e = e->previous_host) {
        if (++compared == HOST_RANGES_COMPARED) /* when it is published, all before it are over */
            return tutti_event_add_dependant(e, event, TUTTI_PUBLISHED, false);
        if (!overlap(e->command, command))
            continue;
        if (!comes_behind(command, e)) {
            if (!tutti_event_add_dependant(e, event, TUTTI_FINISHED, false))
                return false;
            atomic_store_explicit(&queue->host_waits, HOST_WAITS, memory_order_relaxed);
        }
        if (is_covered(command, e->command)) /* it comes after all of them that are before it */
            return true;
    }
    return true;
}

bool tutti_command_may_read_host(const struct tutti_command *command, cl_command_queue queue) {
    unsigned compared = 0;
    cl_event e = queue->last_host;
    while (command->host && e && !overlap(e->command, command) && ++compared < HOST_RANGES_AT_ONCE)
        e = e->previous_host;
    return !command->host || !e;
}

static void enter_host_list(cl_command_queue queue, cl_event event) {
    event->previous_host = queue->last_host;
    if (queue->last_host)
        queue->last_host->next_host = event;
    queue->last_host = event;
}

static void leave_host_list(cl_command_queue queue, cl_event event) {
    if (queue->last_host != event && !event->next_host)
        return;
    if (event->next_host)
        event->next_host->previous_host = event->previous_host;
    else
        queue->last_host = event->previous_host;
    if (event->previous_host)
        event->previous_host->next_host = event->next_host;
    event->previous_host = event->next_host = NULL;
}

/* The edges that the queue itself demands (5.11). Lock held. */
static bool order_in_queue(cl_command_queue queue, struct tutti_command *command) {
    cl_event event = command->event;
    event->after_all = command->waits_for_all;
    if (queue->strict)
        return !queue->last ||
               tutti_event_add_dependant(queue->last, event, TUTTI_PUBLISHED, false);
    if (queue->fence && !tutti_event_add_dependant(queue->fence, event, TUTTI_PUBLISHED, false))
        return false;
    if (!tutti_queue_in_order(queue)) {
        for (cl_event e = queue->last; e && command->waits_for_all; e = e->previous)
            if (!tutti_event_add_dependant(e, event, TUTTI_PUBLISHED, false))
                return false;
        return true;
    }
    /* Its completion is published after all earlier ones', so waiting for the last is enough. */
    if (command->waits_for_all && queue->last &&
        !tutti_event_add_dependant(queue->last, event, TUTTI_PUBLISHED, false))
        return false;
    if (queue->outsider &&
        !tutti_event_add_dependant(queue->outsider, event, TUTTI_DISPATCHED, false))
        return false;
    return order_by_host_memory(queue, command) && tutti_hold_order(command);
}

static void enter_queue(cl_command_queue queue, cl_event event) {
    static atomic_ulong entered;
    event->command->order = atomic_fetch_add_explicit(&entered, 1, memory_order_relaxed) + 1;
    event->previous = queue->last;
    event->next = NULL;
    event->number = queue->numbers++;
    if (queue->last)
        queue->last->next = event;
    else
        queue->first = event;
    queue->last = event;
    atomic_store_explicit(&queue->holds, true, memory_order_relaxed);
}

/* Lock held. On failure the edges made so far stay: the command fails instead of being lost. */
static bool enter_graph(struct tutti_command *command, struct tutti_wait_list list,
                        cl_event *old_fence) {
    cl_event event = command->event;
    cl_command_queue queue = event->queue;
    bool complete = tutti_wait_list_order(list, command);
    complete &= order_in_queue(queue, command);
    if (tutti_queue_in_order(queue) && !queue->strict) {
        if (event->pending > 1)
            complete &= tutti_hold_enter(command);
        if (tutti_wait_list_is_outside(list, queue))
            queue->outsider = event;
        if (command->host)
            enter_host_list(queue, event);
    }
    enter_queue(queue, event);
    if (tutti_queue_in_order(queue))
        tutti_memory_user_enter(event);
    if (command->fence) {
        *old_fence = queue->fence;
        queue->fence = tutti_object_retain(event);
    }
    if (!complete)
        event->failed = true;
    if (--event->pending == 0)
        tutti_graph_append(&event->context->graph, &command->ready);
    return complete;
}

static _Thread_local bool destroying;

bool tutti_command_is_destroyed_here(void) { return destroying; }

/* What is destroyed with it may want to be dispatched, which this thread keeps from being done. */
static void let_go(struct tutti_command *command) {
    destroying = true;
    command->destroy(command);
    destroying = false;
}

static void end_turn(struct tutti_graph *graph) {
    pthread_mutex_lock(&graph->lock);
    graph->dispatching = false;
    tutti_graph_run_and_unlock(graph);
}

/* False: others are to be dispatched already, and might wait for what this thread is to do. */
static bool leave_turn(struct tutti_graph *graph) {
    pthread_mutex_lock(&graph->lock);
    graph->dispatching = graph->first != NULL;
    bool left = !graph->dispatching;
    pthread_mutex_unlock(&graph->lock);
    return left;
}

/* In the call, with its times. */
static cl_int do_at_once(struct tutti_command *command, cl_command_queue queue,
                         cl_command_type type, cl_event *event_ret) {
    cl_event event = event_ret ? tutti_event_create_outside(queue, type) : NULL;
    if (event_ret && !event)
        return CL_OUT_OF_HOST_MEMORY;
    if (event && event->profiled)
        event->started = tutti_runtime_now();
    tutti_log(DEBUG, "the host's work at once");
    cl_int error = command->do_at_once(command);
    if (event && event->profiled) {
        event->ended = tutti_runtime_now();
        pthread_mutex_lock(&queue->context->graph.lock);
        tutti_event_order_end(event);
        pthread_mutex_unlock(&queue->context->graph.lock);
    }
    if (error == CL_SUCCESS && event)
        *event_ret = event;
    else if (event)
        tutti_object_user_release(event);
    return error;
}

/*
 * What the host does soon, where the queue has nothing, nor is anything dispatched: an event, and
 * its way through the graph, cost more than the work. False: it is to be enqueued.
 */
static bool try_at_once(struct tutti_command *command, cl_command_queue queue, cl_command_type type,
                        struct tutti_wait_list list, bool blocking, cl_event *event_ret,
                        cl_int *error) {
    struct tutti_graph *graph = &queue->context->graph;
    if (!command->do_at_once || atomic_load_explicit(&queue->holds, memory_order_relaxed) ||
        tutti_row_is_under_way() || !tutti_wait_list_is_complete(list))
        return false;
    pthread_mutex_lock(&graph->lock);
    bool entered = !queue->first && tutti_graph_begin(graph);
    pthread_mutex_unlock(&graph->lock);
    if (!entered)
        return false;
    if (!command->is_done_at_once(command, blocking)) {
        end_turn(graph);
        return false;
    }
    *error = command->begin_at_once(command);
    bool apart = command->apart && leave_turn(graph);
    if (*error == CL_SUCCESS)
        *error = do_at_once(command, queue, type, event_ret);
    if (apart) {
        command->destroy(command);
    } else {
        let_go(command);
        end_turn(graph);
    }
    return true;
}

cl_int tutti_command_enqueue(struct tutti_command *command, cl_command_queue queue,
                             cl_command_type type, struct tutti_wait_list list, bool blocking,
                             cl_event *event_ret) {
    if (!tutti_runtime_usable()) {
        command->destroy(command);
        return CL_OUT_OF_RESOURCES;
    }
    cl_int error;
    if (blocking && !tutti_is_write(type))
        tutti_graph_note_wait(&queue->context->graph);
    if (try_at_once(command, queue, type, list, blocking, event_ret, &error))
        return error;
    if (command->moves && !blocking && !event_ret && tutti_wait_list_is_complete(list) &&
        tutti_append_transfer(queue, (struct tutti_device_task *)command)) {
        command->destroy(command);
        return CL_SUCCESS;
    }
    cl_event event = tutti_event_create(queue, type, blocking, event_ret != NULL);
    if (!event) {
        command->destroy(command);
        return CL_OUT_OF_HOST_MEMORY;
    }
    cl_context context = queue->context;
    event->frees = blocking && tutti_is_write(type) && !event->profiled;
    event->command = command;
    command->event = event;
    command->ready.dispatch = dispatch;

    cl_event old_fence = NULL;
    tutti_row_wait_for_list(list);
    pthread_mutex_lock(&context->graph.lock);
    bool complete = enter_graph(command, list, &old_fence);
    bool awaits = command->awaits && event->pending > 0;
    tutti_graph_run_and_unlock(&context->graph);
    tutti_object_release(old_fence);
    if (awaits)
        tutti_direct_hurry(); /* else that is seen late */
    if (!blocking)
        tutti_ahead_keep_close();

    cl_int result = complete ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
    if (blocking) {
        cl_int status = event->frees ? tutti_event_wait_for_memory(event) : tutti_event_wait(event);
        if (status < 0)
            result = status;
        tutti_object_release(event);
    }
    if (event_ret && result == CL_SUCCESS)
        *event_ret = event;
    else if (event_ret)
        tutti_object_user_release(event);
    return result;
}

void tutti_command_running(struct tutti_command *command) {
    struct tutti_graph *graph = &command->event->context->graph;
    pthread_mutex_lock(&graph->lock);
    tutti_event_advance(command->event, CL_RUNNING);
    pthread_mutex_unlock(&graph->lock);
}

/* What the command used is free to go before the program can see that it is over. */
static cl_event destroy(struct tutti_command *command, cl_int status) {
    cl_event event = command->event;
    if (status < 0 && status != CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
        tutti_log(ERROR, "a command of type 0x%x failed with %d", event->type, status);
    let_go(command);
    return event;
}

/* Who looks at the command of an event: a wait list that it is in, or the queue's host list. */
static bool is_looked_at(const struct tutti_command *command) {
    return command->host || tutti_event_is_seen(command->event);
}

/* Nobody looks at the commands any more. */
static void retire(unsigned count, struct tutti_command **commands) {
    struct tutti_graph *graph = NULL;
    for (unsigned i = 0; i < count; i++) {
        cl_event event = commands[i]->event;
        if (!graph && is_looked_at(commands[i])) {
            graph = &event->context->graph;
            pthread_mutex_lock(&graph->lock);
        }
        event->command = NULL;
        if (commands[i]->host)
            leave_host_list(event->queue, event);
    }
    if (graph)
        pthread_mutex_unlock(&graph->lock);
}

void tutti_command_done(struct tutti_command *command, cl_int status) {
    tutti_commands_done(1, &command, &status);
}

void tutti_commands_done(unsigned count, struct tutti_command **commands, const cl_int *statuses) {
    cl_event events[TUTTI_COMMANDS_AT_ONCE];
    retire(count, commands);
    for (unsigned i = 0; i < count; i++)
        events[i] = destroy(commands[i], statuses[i]);
    tutti_event_finish(count, events, statuses);
    tutti_runtime_idle(count);
}

void tutti_command_run_on_host(struct tutti_command *command) {
    cl_event event = command->event;
    struct tutti_job *job = &command->job;
    if (event->caller_runs || atomic_load(&event->waiters) > 0) {
        tutti_event_give_job(event, job);
        return;
    }
    job->event = event;
    bool native = event->type == CL_COMMAND_NATIVE_KERNEL;
    if (!tutti_pool_keep(job) && !(native && tutti_event_hand_over_job(event, job)))
        tutti_pool_run(job);
}
