/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "sched/row.h"

#include "brief_lock.h"
#include "context.h"
#include "env.h"
#include "log.h"
#include "sched/ahead.h"
#include "sched/direct.h"
#include "sched/direct_end.h"
#include "sched/lanes.h"
#include "sched/runtime.h"
#include "sched/statistics.h"
#include "virtual_device/driver.h"
#include "virtual_device/pocl.h"

#include <string.h>

/* Kernels that go the usual way first: waiting once, for what is under way, costs as much. */
#define USUAL 64
#define LONGEST 50.0 /* µs */
/* So many until one waits for commands to be over, in ns at most: some may wait for the program. */
#define BEFORE_WAITING (2 * USUAL)
#define LONGEST_WAIT 20000000ul
/* So many kernels, or so long by their models, until one has an event to wait for. */
#define LENGTH 64
#define TIME 250.0 /* µs */
#define MARKS 2
#define WAITED 16 /* events of others that one may wait for */

/* A kernel with an event, which is measured: one may take longer than any before. */
struct mark {
    cl_event event;
    struct tutti_model *model;
    unsigned able;
    bool alone; /* of all rows there was only its own */
};

static pthread_mutex_t turn = TUTTI_BRIEF_LOCK;

static struct {
    pthread_mutex_t lock;  /* held while one is enqueued, so that none is overlooked; guards all */
    atomic_bool under_way; /* is there something to wait for? */
    struct tutti_real_device *device;
    bool apart;             /* each of the program's queues has its own, */
    cl_event before;        /* whose kernels come after this; NULL: after nothing. Retained */
    bool together;          /* none ever is apart again, as PoCL would confuse them (pocl.h) */
    _Atomic(cl_event) told; /* events that ended, chained by `next`: to be released unlocked */
    struct row {
        cl_command_queue queue; /* NULL: nothing is under way there */
        atomic_bool full;       /* is there something to wait for before the next one? */
        struct mark mark[MARKS];
        unsigned marks;
        cl_event first;  /* kernels' events that have yet to end, chained by `next`; retained */
        cl_event *last;  /* where the next one goes, if there is a first one */
        unsigned length; /* since the last mark */
        double time;
        unsigned kernels; /* counts them all */
    } row[TUTTI_MOST_LANES_OF_STREAM];
} rows = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static unsigned usual = USUAL;

static void read_usual(void) {
    const char *wanted = tutti_env_string(TUTTI_DIRECT);
    if (wanted && strcmp(wanted, "row") == 0)
        usual = 0;
}

bool tutti_row_serves(void) {
    return tutti_direct_serves_all() && tutti_direct_is_wanted() &&
           tutti_direct_streams(tutti_devices()->device[0]);
}

bool tutti_row_goes_on(cl_command_queue queue) {
    pthread_once(&once, read_usual);
    return atomic_fetch_add_explicit(&queue->context->graph.in_row, 1, memory_order_relaxed) >=
           usual;
}

bool tutti_row_await_others(cl_command_queue queue) {
    struct tutti_graph *graph = &queue->context->graph;
    unsigned kernels = atomic_load_explicit(&graph->in_row, memory_order_relaxed);
    unsigned before = atomic_load_explicit(&graph->before_waiting, memory_order_relaxed);
    if (kernels < (before ? before : BEFORE_WAITING))
        return false;
    tutti_direct_flush();
    tutti_direct_note_sleeper(true);
    bool over = tutti_runtime_await_idle(LONGEST_WAIT);
    tutti_direct_note_sleeper(false);
    atomic_store_explicit(&graph->before_waiting, over ? BEFORE_WAITING : 2 * kernels,
                          memory_order_relaxed);
    return over;
}

void tutti_row_begin_turn(void) { pthread_mutex_lock(&turn); }
void tutti_row_end_turn(void) { pthread_mutex_unlock(&turn); }

double tutti_row_longest(void) { return LONGEST; }

bool tutti_row_is_held(const struct _cl_command_queue *queue, struct tutti_wait_list list) {
    for (cl_uint i = 0; i < list.count; i++) {
        cl_event event = list.events[i];
        if (!(event->dispatched || event->published) || tutti_event_status(event) < 0)
            return true;
    }
    return !tutti_queue_is_clear(queue);
}

bool tutti_row_may_follow(void) {
    const struct tutti_real_device *device = tutti_devices()->device[0];
    return tutti_ahead_is_all(device) && tutti_lanes_busy(device) == 0;
}

/* Events of kernels in a row are: whatever the graph has behind them settles them. */
bool tutti_row_is_published(const struct _cl_command_queue *queue, struct tutti_wait_list list,
                            bool event) {
    bool published = !event || !queue->first || !tutti_queue_in_order(queue);
    for (cl_uint i = 0; i < list.count && published; i++)
        published = list.events[i]->published;
    return published;
}

void tutti_row_publish(cl_event last, struct tutti_wait_list list) {
    if (last)
        tutti_event_wait(last);
    for (cl_uint i = 0; i < list.count; i++)
        if (!list.events[i]->real)
            tutti_event_wait(list.events[i]);
}

/*
 * How the kernel ended; at the process's end all of them were settled. An error is told to its
 * queue by the one that sees it first.
 */
static cl_int find_status(cl_event event, bool waits) {
    const struct tutti_real_device *device = tutti_devices()->device[0];
    static pthread_mutex_t telling = PTHREAD_MUTEX_INITIALIZER;
    cl_int status = tutti_event_status(event);
    if (status <= CL_COMPLETE)
        return status;
    if (!tutti_runtime_usable())
        status = CL_COMPLETE;
    else if (waits)
        status = tutti_driver_await(device, event->real, 0);
    else
        status = tutti_driver_status(device, event->real);
    if (status > CL_SUBMITTED)
        status = CL_SUBMITTED;
    if (status == CL_COMPLETE)
        atomic_store_explicit(&event->status, status, memory_order_release);
    if (status >= 0)
        return status;
    pthread_mutex_lock(&telling);
    if (tutti_event_status(event) >= 0) {
        if (status != CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
            atomic_store_explicit(&event->queue->error, status, memory_order_relaxed);
        atomic_store_explicit(&event->status, status, memory_order_release);
    }
    pthread_mutex_unlock(&telling);
    return status;
}

/* Looks at the events of those that are over, of which the program may never ask. Lock held. */
static void look_at_events(struct row *row) {
    while (row->first && find_status(row->first, false) <= CL_COMPLETE) {
        cl_event event = row->first;
        row->first = event->next;
        event->next = rows.told;
        rows.told = event;
    }
}

/* Without other locks: an event may be the last one to hold its queue, and that its context. */
static void unlock_and_release(void) {
    cl_event event = rows.told;
    rows.told = NULL;
    pthread_mutex_unlock(&rows.lock);
    while (event) {
        cl_event next = event->next;
        event->next = NULL;
        tutti_object_release(event);
        event = next;
    }
}

/* Takes the oldest one, which is over. Lock held. */
static void take_mark(struct row *row) {
    const cl_icd_dispatch *driver = rows.device->dispatch;
    struct mark mark = row->mark[0];
    cl_ulong start = 0, end = 0;
    double time = 0;
    memmove(row->mark, row->mark + 1, --row->marks * sizeof(mark));
    atomic_store(&row->full, false);
    if (driver->clGetEventProfilingInfo(mark.event, CL_PROFILING_COMMAND_START, sizeof(start),
                                        &start, NULL) == CL_SUCCESS &&
        driver->clGetEventProfilingInfo(mark.event, CL_PROFILING_COMMAND_END, sizeof(end), &end,
                                        NULL) == CL_SUCCESS &&
        end >= start) {
        time = (double)(end - start) / 1000;
        if (mark.alone || time < tutti_model_expect(mark.model, rows.device))
            tutti_model_learn(mark.model, rows.device, time);
    }
    tutti_statistics_count(mark.model, mark.able, rows.device, time);
    driver->clReleaseEvent(mark.event);
    look_at_events(row);
}

/* All of it is over. Lock held. */
static void end_row(struct row *row) {
    row->queue = NULL;
    while (row->marks > 0)
        take_mark(row);
    look_at_events(row);
    row->length = 0;
    row->time = 0;
}

/* So are all rows. Lock held. */
static void end_all(void) {
    if (rows.before)
        rows.device->dispatch->clReleaseEvent(rows.before);
    rows.before = NULL;
    rows.apart = false;
    atomic_store(&rows.under_way, false);
}

/* Waits until all are over. Lock held. */
static void settle(void) {
    for (struct row *row = rows.row; row < rows.row + TUTTI_MOST_LANES_OF_STREAM; row++) {
        if (row->queue)
            tutti_driver_finish(rows.device, row->queue);
        end_row(row);
    }
    end_all();
}

static bool is_confusing(const struct tutti_invocation *call) {
    struct tutti_pocl_launch launch = tutti_range_for_pocl(call->range, call->kernel->name);
    return tutti_pocl_is(rows.device) && tutti_pocl_confuses(&launch);
}

/*
 * May the next one be beside others? If those before it are together, as commands were under way,
 * all that follow come after them. Lock held.
 */
static void look_for_others(const struct tutti_invocation *call) {
    rows.together = rows.together || is_confusing(call) || tutti_lanes_most(rows.device) == 1;
    bool apart = !rows.together && tutti_runtime_in_flight() == 0;
    if (rows.apart && !apart)
        settle();
    if (!rows.apart && apart)
        rows.apart = !rows.row[0].queue ||
                     rows.device->dispatch->clEnqueueMarkerWithWaitList(rows.row[0].queue, 0, NULL,
                                                                        &rows.before) == CL_SUCCESS;
    atomic_store(&rows.under_way, true);
}

static struct row *own_row(const struct _cl_command_queue *queue) {
    return &rows.row[queue->row % tutti_lanes_most(tutti_devices()->device[0])];
}

static struct row *row_of(const struct _cl_command_queue *queue) {
    return rows.apart ? own_row(queue) : rows.row;
}

/* Begins a row, behind what was before all of them. Lock held. */
static cl_int begin(struct row *row) {
    const cl_icd_dispatch *driver = rows.device->dispatch;
    row->queue = tutti_lanes_queue(rows.device, tutti_lane_of_stream((unsigned)(row - rows.row)));
    if (!row->queue)
        return CL_OUT_OF_RESOURCES;
    if (!rows.before)
        return CL_SUCCESS;
    tutti_driver_flush(rows.device, rows.row[0].queue);
    return driver->clEnqueueBarrierWithWaitList(row->queue, 1, &rows.before, NULL);
}

/*
 * The driver's wait list, of WAITED at most: those of its own row come first anyway, but if one
 * fails the kernel must not be executed. Lock held.
 */
static cl_int find_waited(const struct row *row, struct tutti_wait_list list, cl_event *waited,
                          cl_uint *count) {
    for (cl_uint i = 0; i < list.count; i++) {
        cl_event event = list.events[i];
        if (tutti_event_status(event) == CL_COMPLETE)
            continue;
        if (!event->real && !rows.apart) /* a command, before it in the device's first queue */
            continue;
        /* It failed; or a command is under way after all. */
        if (tutti_event_status(event) < 0 || !event->real || *count == WAITED)
            return CL_INVALID_OPERATION;
        const struct row *other = row_of(event->queue);
        if (other != row && other->queue)
            tutti_driver_flush(rows.device, other->queue);
        waited[(*count)++] = event->real;
    }
    return CL_SUCCESS;
}

/* Else it seems to take longer than it does. Lock held. */
static bool is_alone(const struct row *row) {
    bool alone = true;
    for (const struct row *other = rows.row; other < rows.row + TUTTI_MOST_LANES_OF_STREAM; other++)
        alone = alone && (other == row || !other->queue);
    return alone;
}

/* Lock held. */
static cl_int enqueue(const struct tutti_invocation *call,
                      const struct tutti_storage *const *storage,
                      const struct tutti_row_kernel *kernel) {
    struct row *row = row_of(kernel->queue);
    struct tutti_model *model = kernel->model;
    cl_event real = NULL, event = kernel->event, waited[WAITED];
    cl_uint count = 0;
    cl_int error = row->queue ? CL_SUCCESS : begin(row);
    if (error == CL_SUCCESS)
        error = find_waited(row, kernel->list, waited, &count);
    if (error != CL_SUCCESS)
        return error;
    double time = tutti_model_expect(model, rows.device);
    bool marks = tutti_model_measures(model, rows.device) != TUTTI_NOT_MEASURED ||
                 row->length + 1 >= LENGTH || row->time + time >= TIME;
    if (marks && row->marks == MARKS) {
        tutti_driver_await(rows.device, row->mark[0].event, 0);
        take_mark(row);
    }
    tutti_log(DEBUG, "%s: a kernel past StarPU, in a row: %u", rows.device->name,
              (unsigned)(row - rows.row));
    error = tutti_invocation_enqueue(call, rows.device, row->queue, storage, true, count, waited,
                                     marks || event ? &real : NULL, NULL);
    if (error != CL_SUCCESS)
        return error;
    if (event) {
        event->real = real;
        atomic_store_explicit(&event->status, CL_SUBMITTED, memory_order_release);
        *(row->first ? row->last : &row->first) = tutti_object_retain(event);
        row->last = &event->next;
    }
    row->kernels++;
    row->length++;
    row->time += time;
    if (!marks) {
        tutti_statistics_count(model, kernel->able, rows.device, 0);
    } else {
        if (event)
            rows.device->dispatch->clRetainEvent(real);
        row->mark[row->marks++] = (struct mark){real, model, kernel->able, is_alone(row)};
        atomic_store(&row->full, row->marks == MARKS);
        row->length = 0;
        row->time = 0;
        tutti_driver_flush(rows.device, row->queue);
    }
    return CL_SUCCESS;
}

cl_int tutti_row_enqueue(const struct tutti_invocation *call, struct tutti_real_device *device,
                         const struct tutti_storage *const *storage,
                         const struct tutti_row_kernel *kernel) {
    pthread_mutex_lock(&rows.lock);
    rows.device = device;
    look_for_others(call);
    cl_int error = enqueue(call, storage, kernel);
    pthread_mutex_unlock(&rows.lock);
    return error;
}

cl_int tutti_row_look(cl_event event) {
    tutti_row_flush();
    return find_status(event, false);
}

cl_int tutti_row_wait(cl_event event) { return find_status(event, true); }

void tutti_row_wait_for_list(struct tutti_wait_list list) {
    for (cl_uint i = 0; i < list.count; i++)
        if (list.events[i]->real)
            find_status(list.events[i], true);
}

void tutti_row_forget(cl_event event) {
    if (tutti_runtime_usable())
        tutti_devices()->device[0]->dispatch->clReleaseEvent(event->real);
}

void tutti_row_keep_close(const struct _cl_command_queue *queue) {
    struct row *row = own_row(queue);
    cl_event oldest = NULL;
    if (!atomic_load(&row->full))
        row = rows.row;
    if (!atomic_load(&row->full))
        return;
    pthread_mutex_lock(&rows.lock);
    const struct tutti_real_device *device = rows.device;
    const cl_icd_dispatch *driver = device->dispatch;
    if (row->marks == MARKS && driver->clRetainEvent(row->mark[0].event) == CL_SUCCESS)
        oldest = row->mark[0].event;
    pthread_mutex_unlock(&rows.lock);
    if (!oldest)
        return;
    tutti_driver_await(device, oldest, 0); /* other rows go on meanwhile */
    pthread_mutex_lock(&rows.lock);
    if (row->marks > 0 && row->mark[0].event == oldest)
        take_mark(row);
    driver->clReleaseEvent(oldest);
    unlock_and_release();
}

bool tutti_row_is_under_way(void) { return atomic_load(&rows.under_way); }

void tutti_row_settle(void) {
    if (!atomic_load(&rows.under_way) || !tutti_runtime_usable())
        return;
    pthread_mutex_lock(&rows.lock);
    if (atomic_load(&rows.under_way))
        settle();
    pthread_mutex_unlock(&rows.lock);
}

void tutti_row_join(void) {
    if (!atomic_load(&rows.under_way) || !tutti_runtime_usable())
        return;
    pthread_mutex_lock(&rows.lock);
    if (rows.apart)
        settle();
    pthread_mutex_unlock(&rows.lock);
}

/* Under way, or to be released. */
static bool is_anything_left(void) {
    return (atomic_load(&rows.under_way) || atomic_load(&rows.told)) && tutti_runtime_usable();
}

void tutti_row_finish(const struct _cl_command_queue *queue) {
    if (!is_anything_left())
        return;
    pthread_mutex_lock(&rows.lock);
    struct row *row = row_of(queue);
    cl_command_queue real = rows.apart ? row->queue : NULL;
    const struct tutti_real_device *device = rows.device;
    unsigned kernels = row->kernels;
    /* Those that are together, or were so far; what has its own row and is not there is over. */
    if (!rows.apart || (!real && rows.before))
        settle();
    unlock_and_release();
    if (!real)
        return;
    tutti_driver_finish(device, real); /* other rows go on meanwhile */
    pthread_mutex_lock(&rows.lock);
    if (row->queue == real && row->kernels == kernels) {
        end_row(row);
        bool idle = true;
        for (unsigned i = 0; i < TUTTI_MOST_LANES_OF_STREAM; i++)
            idle = idle && !rows.row[i].queue;
        if (idle)
            end_all();
    }
    for (row = rows.row; row < rows.row + TUTTI_MOST_LANES_OF_STREAM; row++)
        look_at_events(row); /* some of the queue's may have been together with others */
    unlock_and_release();
}

void tutti_row_break(struct tutti_graph *graph) {
    atomic_store_explicit(&graph->in_row, 0, memory_order_relaxed);
    if (!is_anything_left())
        return;
    pthread_mutex_lock(&rows.lock);
    if (atomic_load(&rows.under_way))
        settle();
    unlock_and_release();
}

void tutti_row_flush(void) {
    if (!atomic_load(&rows.under_way))
        return;
    pthread_mutex_lock(&rows.lock);
    for (struct row *row = rows.row; row < rows.row + TUTTI_MOST_LANES_OF_STREAM; row++)
        if (row->queue)
            tutti_driver_flush(rows.device, row->queue);
    pthread_mutex_unlock(&rows.lock);
}
