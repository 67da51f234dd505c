/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "sched/row.h"

#include "brief_lock.h"
#include "context.h"
#include "env.h"
#include "log.h"
#include "sched/ahead.h"
#include "sched/direct.h"
#include "sched/lanes.h"
#include "sched/runtime.h"
#include "sched/statistics.h"
#include "virtual_device/driver.h"

#include <string.h>

/* Kernels that go the usual way first: waiting once, for what is under way, costs as much. */
#define USUAL 64
#define LONGEST 50.0 /* µs */
/* So many kernels, or so long by their models, until one has an event to wait for. */
#define LENGTH 64
#define TIME 250.0 /* µs */
#define MARKS 2

/* A kernel with an event, which is measured: one may take longer than any before. */
struct mark {
    cl_event event;
    struct tutti_model *model;
    unsigned able;
};

static pthread_mutex_t turn = TUTTI_BRIEF_LOCK;

static struct {
    pthread_mutex_t lock; /* held while one is enqueued, so that none is overlooked; guards all */
    atomic_bool under_way, full; /* is there something to wait for; before the next one? */
    struct tutti_real_device *device;
    struct mark mark[MARKS];
    unsigned marks;
    unsigned length; /* since the last mark */
    double time;
} row = {.lock = PTHREAD_MUTEX_INITIALIZER};

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

void tutti_row_begin_turn(void) { pthread_mutex_lock(&turn); }
void tutti_row_end_turn(void) { pthread_mutex_unlock(&turn); }

double tutti_row_longest(void) { return LONGEST; }

static bool has_passed(cl_event fence) {
    return !fence || tutti_event_status(fence) == CL_COMPLETE;
}

bool tutti_row_may_follow(const struct _cl_command_queue *queue, struct tutti_wait_list list) {
    for (cl_uint i = 0; i < list.count; i++) {
        cl_event event = list.events[i];
        if (!(event->dispatched || event->published) || tutti_event_status(event) < 0)
            return false;
    }
    return !queue->strict && queue->held == 0 && !queue->outsider && has_passed(queue->fence) &&
           tutti_ahead_is_all(tutti_devices()->device[0]) &&
           tutti_lanes_busy(tutti_devices()->device[0]) == 0;
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

/* Takes the oldest one, which is over. Lock held. */
static void take_mark(void) {
    const cl_icd_dispatch *driver = row.device->dispatch;
    struct mark mark = row.mark[0];
    cl_ulong start = 0, end = 0;
    double time = 0;
    memmove(row.mark, row.mark + 1, --row.marks * sizeof(mark));
    atomic_store(&row.full, false);
    if (driver->clGetEventProfilingInfo(mark.event, CL_PROFILING_COMMAND_START, sizeof(start),
                                        &start, NULL) == CL_SUCCESS &&
        driver->clGetEventProfilingInfo(mark.event, CL_PROFILING_COMMAND_END, sizeof(end), &end,
                                        NULL) == CL_SUCCESS &&
        end >= start) {
        time = (double)(end - start) / 1000;
        tutti_model_learn(mark.model, row.device, time);
    }
    tutti_statistics_count(mark.model, mark.able, row.device, time);
    driver->clReleaseEvent(mark.event);
}

static void wait_for_mark(void) {
    tutti_driver_await(row.device, row.mark[0].event, 0);
    take_mark();
}

/* Lock held. */
static cl_int enqueue(const struct tutti_invocation *call,
                      const struct tutti_storage *const *storage, struct tutti_model *model,
                      unsigned able, cl_event event) {
    double time = tutti_model_expect(model, row.device);
    bool marks = tutti_model_measures(model, row.device) != TUTTI_NOT_MEASURED ||
                 row.length + 1 >= LENGTH || row.time + time >= TIME;
    cl_event real = NULL;
    if (marks && row.marks == MARKS)
        wait_for_mark();
    tutti_log(DEBUG, "%s: a kernel past StarPU, in a row", row.device->name);
    cl_int error = tutti_invocation_enqueue(call, row.device, row.device->place.kernels, storage,
                                            true, marks || event ? &real : NULL, NULL);
    if (error != CL_SUCCESS)
        return error;
    if (event) {
        event->real = real;
        atomic_store_explicit(&event->status, CL_SUBMITTED, memory_order_release);
    }
    row.length++;
    row.time += time;
    if (!marks) {
        tutti_statistics_count(model, able, row.device, 0);
    } else {
        if (event)
            row.device->dispatch->clRetainEvent(real);
        row.mark[row.marks++] = (struct mark){real, model, able};
        atomic_store(&row.full, row.marks == MARKS);
        row.length = 0;
        row.time = 0;
        tutti_driver_flush(row.device, row.device->place.kernels);
    }
    return CL_SUCCESS;
}

cl_int tutti_row_enqueue(const struct tutti_invocation *call, struct tutti_real_device *device,
                         const struct tutti_storage *const *storage, struct tutti_model *model,
                         unsigned able, cl_event event) {
    pthread_mutex_lock(&row.lock);
    row.device = device;
    atomic_store(&row.under_way, true);
    cl_int error = enqueue(call, storage, model, able, event);
    pthread_mutex_unlock(&row.lock);
    return error;
}

/* At the process's end all of them were settled. */
static cl_int find_status(cl_event event, bool waits) {
    const struct tutti_real_device *device = tutti_devices()->device[0];
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
    if (status <= CL_COMPLETE)
        atomic_store_explicit(&event->status, status, memory_order_release);
    return status;
}

cl_int tutti_row_look(cl_event event) {
    tutti_row_flush();
    return find_status(event, false);
}

cl_int tutti_row_wait(cl_event event) { return find_status(event, true); }

void tutti_row_forget(cl_event event) {
    if (tutti_runtime_usable())
        tutti_devices()->device[0]->dispatch->clReleaseEvent(event->real);
}

void tutti_row_keep_close(void) {
    if (!atomic_load(&row.full))
        return;
    pthread_mutex_lock(&row.lock);
    if (row.marks == MARKS)
        wait_for_mark();
    pthread_mutex_unlock(&row.lock);
}

bool tutti_row_is_under_way(void) { return atomic_load(&row.under_way); }

void tutti_row_settle(void) {
    if (!atomic_load(&row.under_way) || !tutti_runtime_usable())
        return;
    pthread_mutex_lock(&row.lock);
    if (atomic_load(&row.under_way))
        tutti_driver_finish(row.device, row.device->place.kernels);
    while (row.marks > 0)
        take_mark();
    row.length = 0;
    row.time = 0;
    atomic_store(&row.under_way, false);
    pthread_mutex_unlock(&row.lock);
}

void tutti_row_break(struct tutti_graph *graph) {
    atomic_store_explicit(&graph->in_row, 0, memory_order_relaxed);
    tutti_row_settle();
}

void tutti_row_flush(void) {
    if (!atomic_load(&row.under_way))
        return;
    pthread_mutex_lock(&row.lock);
    if (atomic_load(&row.under_way))
        tutti_driver_flush(row.device, row.device->place.kernels);
    pthread_mutex_unlock(&row.lock);
}
