/* SPDX-License-Identifier: MIT */
#include "sched/execution.h"

#include "context.h"
#include "log.h"
#include "memory/hop.h"
#include "memory/room.h"
#include "memory/stay.h"
#include "memory/svm_home.h"
#include "memory/window.h"
#include "sched/direct.h"
#include "sched/elsewhere.h"
#include "sched/lanes.h"
#include "sched/link.h"
#include "sched/runtime.h"
#include "sched/statistics.h"
#include "virtual_device/driver.h"

#include <stdlib.h>

/* µs that a batch may be late without a reason in its kernels, as a clock says that is slow. */
#define TOLERATED 10000.0

bool tutti_execution_choose_measured(struct tutti_batch *batch) {
    const struct tutti_real_device *device = batch->device;
    bool measured = false;
    bool delayed = tutti_link_delays_events(device);
    for (struct tutti_device_task *task = batch->first; task; task = task->next) {
        enum tutti_measuring measures = tutti_model_measures(task->model, device);
        task->measured = task->command.event->profiled ||
                         (measures == TUTTI_MEASURED_BY_DRIVER &&
                          !(delayed && tutti_model_is_measured(task->model, device)));
        task->timed = !task->measured && measures == TUTTI_MEASURED_BY_CALL;
        measured = measured || task->measured;
    }
    return measured;
}

unsigned tutti_execution_choose_lane(struct tutti_batch *batch) {
    const struct tutti_real_device *device = batch->device;
    bool measured = tutti_execution_choose_measured(batch);
    return tutti_device_has_one_queue(device)
               ? 0
               : tutti_lanes_choose(device, tutti_lanes_for(batch, device), measured);
}

/* Brings what is early (stay.h) what it lacks. */
static cl_int bring(const struct tutti_batch *batch) {
    cl_int error = CL_SUCCESS;
    for (unsigned i = 0; i < batch->count; i++) {
        const struct tutti_device_use *use = &batch->use[i];
        if (use->brings && error == CL_SUCCESS)
            error = tutti_hop_before(use->view, batch->device, &use->stay->own, batch->queue);
    }
    if (error != CL_SUCCESS)
        tutti_log(ERROR, "%s: an upload failed with %d", batch->device->name, error);
    return error;
}

static void enqueue(struct tutti_batch *batch, struct tutti_device_task *task,
                    enum tutti_ending ending) {
    struct tutti_real_device *device = batch->device;
    const struct tutti_storage *few[16], **storage = few;
    struct tutti_storage windows[TUTTI_WINDOWS_AT_ONCE];
    /* The queue is in order: the end of the last command is the end of all. */
    bool wants_event =
        task->measured ||
        (!task->next && (ending == TUTTI_ENDS_LATER || tutti_lane_is_of_transfers(batch->lane)));
    /* What ends in the call needs no queue in common with others; profiling costs time. */
    bool in_call = tutti_device_executes_in_call(device);
    cl_command_queue queue = in_call && !task->measured ? device->place.kernels : batch->queue;
    task->real = NULL;
    if (task->command.event->failed) {
        task->result = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
        return;
    }
    if (task->count > 16 && !(storage = malloc(task->count * sizeof(*storage)))) {
        task->result = CL_OUT_OF_HOST_MEMORY;
        return;
    }
    task->result = CL_RUNNING; /* until it is known */
    for (unsigned i = 0; i < task->count; i++)
        if (task->use[i].window)
            tutti_window_make_room(task->use[i].view, device);
    for (unsigned i = 0; i < task->count; i++) {
        const struct tutti_device_use *use = &task->use[i];
        storage[i] = batch->use[use->slot].storage;
        tutti_history_use(use->view->history, device, use->placed);
        cl_int error =
            tutti_svm_home_use(use->view, device, batch->use[use->slot].mode != STARPU_R);
        if (tutti_storage_is_missing(storage[i]))
            error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
        if (use->window && error == CL_SUCCESS) {
            error = tutti_window_find(use->view, use->window, device, storage[i], &windows[i]);
            storage[i] = &windows[i];
        }
        if (error != CL_SUCCESS)
            task->result = error;
    }
    if (task->result == CL_RUNNING) {
        if (task->measured)
            task->enqueued = tutti_runtime_now();
        cl_int error =
            task->enqueue(task, device, queue, storage, wants_event ? &task->real : NULL);
        if (error != CL_SUCCESS) {
            tutti_log(ERROR, "%s: enqueue failed with %d", device->name, error);
            task->result = error;
            task->real = NULL;
        }
        if (tutti_direct_streams(device))
            tutti_lanes_note_tail(batch, task->real);
    }
    if (storage != few)
        free(storage);
}

/* The commands run, for who can see it. */
static void show_running(struct tutti_batch *batch) {
    struct tutti_graph *graph = NULL;
    for (struct tutti_device_task *task = batch->first; task; task = task->next) {
        cl_event event = task->command.event;
        if (!tutti_event_is_seen(event))
            continue;
        if (!graph) {
            graph = &batch->context->graph;
            pthread_mutex_lock(&graph->lock);
        }
        tutti_event_advance(event, CL_RUNNING);
    }
    if (graph)
        pthread_mutex_unlock(&graph->lock);
}

/* The same, with the device's locks, which are open meanwhile. */
static bool execute_elsewhere(struct tutti_batch *batch) {
    struct tutti_real_device *device = batch->device;
    if (!tutti_elsewhere_is_wanted(batch))
        return false;
    tutti_driver_finish(device, batch->queue); /* what it comes after is over then */
    tutti_driver_unlock(device);
    pthread_mutex_unlock(&device->place.enqueues);
    bool done = tutti_elsewhere_execute(batch);
    pthread_mutex_lock(&device->place.enqueues);
    tutti_driver_lock(device);
    return done;
}

void tutti_execution_start(struct tutti_batch *batch, enum tutti_ending ending) {
    struct tutti_real_device *device = batch->device;
    batch->began = tutti_runtime_about_now();
    if (!batch->direct)
        tutti_room_begin_work(device);
    for (unsigned i = 0; i < batch->count; i++)
        tutti_view_take_over(batch->use[i].view);
    if (batch->length > 1)
        tutti_log(DEBUG, "%s: %u kernels as one task", device->name, batch->length);
    show_running(batch);

    if (!batch->queue)
        tutti_lanes_enter(batch, tutti_execution_choose_lane(batch));
    pthread_mutex_lock(&device->place.enqueues);
    tutti_driver_lock(device);
    cl_int brought = tutti_lanes_join(batch);
    if (brought == CL_SUCCESS)
        brought = bring(batch);
    bool elsewhere = brought == CL_SUCCESS && execute_elsewhere(batch);
    for (struct tutti_device_task *task = batch->first; task; task = task->next) {
        task->real = NULL;
        if (!elsewhere)
            task->result = brought;
        if (!elsewhere && brought == CL_SUCCESS)
            enqueue(batch, task, ending);
        if (task->result < 0)
            tutti_event_break(task->command.event);
        batch->end = task->real;
        batch->over = task->result == CL_COMPLETE;
    }
    tutti_lanes_note_enqueued(batch, ending == TUTTI_ENDS_UNSEEN);
    batch->outcome = CL_COMPLETE;
    batch->flushed = ending == TUTTI_ENDS_LATER && batch->end;
    if (batch->flushed)
        tutti_driver_flush(device, batch->queue);
    else if (!batch->over && ending != TUTTI_ENDS_UNSEEN) /* the last one may have failed */
        batch->outcome = tutti_driver_finish(device, batch->queue);
    tutti_driver_unlock(device);
    pthread_mutex_unlock(&device->place.enqueues);
    for (unsigned i = 0; i < batch->count; i++)
        tutti_view_hand_over(batch->use[i].view);
}

/* With the queue taken (driver.h), like the next two. */
static void flush(struct tutti_batch *batch) {
    if (!batch->flushed)
        batch->device->dispatch->clFlush(batch->queue);
    batch->flushed = true;
}

static void mark(struct tutti_batch *batch) {
    if (batch->end || batch->marker || batch->over)
        return;
    if (batch->device->dispatch->clEnqueueMarkerWithWaitList(batch->queue, 0, NULL,
                                                             &batch->marker) != CL_SUCCESS)
        batch->marker = NULL;
    batch->flushed = false;
}

static void release_marker(struct tutti_batch *batch) {
    if (batch->marker)
        batch->device->dispatch->clReleaseEvent(batch->marker);
    batch->marker = NULL;
}

/* Then a look at an event tells the end. */
static void show_end(struct tutti_batch *batch) {
    mark(batch);
    flush(batch);
}

void tutti_execution_flush(struct tutti_batch *batch) {
    if (batch->flushed || !tutti_driver_try(batch->device))
        return;
    flush(batch);
    tutti_driver_give(batch->device);
}

void tutti_execution_mark(struct tutti_batch *batch) {
    tutti_driver_take(batch->device);
    mark(batch);
    tutti_driver_give(batch->device);
}

bool tutti_execution_is_over(struct tutti_batch *batch) {
    cl_int status = CL_COMPLETE;
    if (batch->over)
        return true;
    if (!batch->flushed || !(batch->end || batch->marker)) {
        if (!tutti_driver_try(batch->device))
            return false;
        show_end(batch);
        tutti_driver_give(batch->device);
    }
    cl_event last = batch->end ? batch->end : batch->marker;
    if (last)
        batch->device->dispatch->clGetEventInfo(last, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                                sizeof(status), &status, NULL);
    batch->over = last && status == CL_COMPLETE;
    return status <= CL_COMPLETE;
}

void tutti_execution_forget_end(struct tutti_batch *batch) {
    struct tutti_device_task *last = batch->first;
    while (last->next)
        last = last->next;
    if (batch->end) {
        batch->device->dispatch->clReleaseEvent(batch->end);
        last->real = batch->end = NULL;
    }
    release_marker(batch);
    batch->over = batch->flushed = false;
}

/*
 * Is the end of a GPU's batch looked for by an event? A call that waits for the queue is cheaper
 * than a marker, but StarPU's worker, or who has something for another lane, may want the device
 * meanwhile.
 */
static bool is_looked_for(const struct tutti_batch *batch) {
    return batch->device->type & CL_DEVICE_TYPE_GPU &&
           (batch->end || batch->marker || tutti_room_working(batch->device) ||
            (tutti_lanes_are_for(batch) &&
             (tutti_lanes_busy(batch->device) || tutti_driver_is_wanted(batch->device))));
}

bool tutti_execution_wait(struct tutti_batch *batch) {
    const struct tutti_real_device *device = batch->device;
    bool nothing_yet = !batch->end && !batch->marker;
    if (batch->over) {
        release_marker(batch);
        return false;
    }
    if (is_looked_for(batch)) { /* nothing else flushes what is only looked at */
        tutti_driver_take(device);
        show_end(batch);
        tutti_driver_give(device);
    }
    if (batch->end) {
        /* Its command's result is asked for anyway. */
        tutti_driver_await(device, batch->end, batch->expected);
        return false;
    }
    cl_int error = batch->marker ? tutti_driver_wait(device, batch->marker)
                                 : tutti_driver_finish(device, batch->queue);
    batch->marker = NULL;
    if (error != CL_SUCCESS)
        batch->outcome = error;
    return nothing_yet && error == CL_SUCCESS;
}

static cl_ulong profile(const cl_icd_dispatch *driver, cl_event event, cl_profiling_info what) {
    cl_ulong value = 0;
    return driver->clGetEventProfilingInfo(event, what, sizeof(value), &value, NULL) == CL_SUCCESS
               ? value
               : 0;
}

/* Waits for the real command if it must, and takes its result and times. */
static void take_result(struct tutti_device_task *task, const struct tutti_real_device *device) {
    const cl_icd_dispatch *driver = device->dispatch;
    cl_int status = CL_QUEUED, error = CL_SUCCESS;
    driver->clGetEventInfo(task->real, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
                           NULL);
    if (status > CL_COMPLETE) {
        error = driver->clWaitForEvents(1, &task->real);
        if (driver->clGetEventInfo(task->real, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
                                   &status, NULL) != CL_SUCCESS ||
            status > CL_COMPLETE)
            status = error == CL_SUCCESS ? CL_COMPLETE : error;
    }
    if (status == CL_COMPLETE && task->measured) {
        task->real_queued = profile(driver, task->real, CL_PROFILING_COMMAND_QUEUED);
        task->real_start = profile(driver, task->real, CL_PROFILING_COMMAND_START);
        task->real_end = profile(driver, task->real, CL_PROFILING_COMMAND_END);
    }
    task->result = status;
    driver->clReleaseEvent(task->real);
    task->real = NULL;
}

static void take_times(struct tutti_device_task *task, struct tutti_real_device *device,
                       unsigned lane) {
    cl_event event = task->command.event;
    double time = 0;
    if (task->real_end) {
        /* The device's clock is not the host's: the moment of the enqueue is known in both. */
        cl_ulong wait =
            task->real_start > task->real_queued ? task->real_start - task->real_queued : 0;
        cl_ulong length = task->real_end > task->real_start ? task->real_end - task->real_start : 0;
        cl_ulong started = task->enqueued + wait;
        pthread_mutex_lock(&device->place.ends);
        cl_ulong free = device->place.last_end;
        free = free > task->enqueued ? free : task->enqueued;
        double idle = started > free ? (double)(started - free) / 1000 : 0;
        /* Between the two moments of an enqueue this thread may have slept. */
        bool beside = tutti_lane_is_of_transfers(lane);
        if (started < device->place.last_end && !beside && !tutti_lane_is_aside(lane))
            started = device->place.last_end;
        event->started = started;
        event->ended = started + length;
        if (event->ended > device->place.last_end && !beside)
            device->place.last_end = event->ended;
        pthread_mutex_unlock(&device->place.ends);
        time = (double)length / 1000;
        if (task->result == CL_COMPLETE && task->measured)
            tutti_first_launch_learn(tutti_model_first_launch(task->model), device, idle);
        if (task->result == CL_COMPLETE)
            tutti_model_learn(task->model, device, time);
    }
    if (task->result == CL_COMPLETE && task->model)
        tutti_statistics_count(task->model, task->devices, device, time);
}

/*
 * A kernel's arguments may make it longer than it ever was. A batch whose end was seen far later
 * than its models said may have been so, or nobody looked at it: its commands were not measured,
 * but the next ones are. Of a stream they wait for transfers.
 */
static void notice_delay(const struct tutti_batch *batch) {
    double took = (double)(tutti_runtime_about_now() - batch->began) / 1000;
    double expected = batch->expected + batch->appended_time + (batch->direct ? batch->wait : 0);
    bool alone = batch->length == 1 && !batch->direct;
    if (alone || took < TOLERATED + 4 * expected || tutti_lanes_transfers(batch->device) > 0)
        return;
    for (struct tutti_device_task *task = batch->first; task; task = task->next)
        if (!task->real_end)
            tutti_model_doubt(task->model, batch->device);
}

void tutti_execution_collect(struct tutti_batch *batch) {
    if (batch->direct)
        tutti_room_changed(batch->device);
    else
        tutti_room_end_work(batch->device);
    cl_int last = batch->outcome;
    for (struct tutti_device_task *task = batch->first; task; task = task->next)
        if (task->real) {
            take_result(task, batch->device);
            last = task->result;
        }
    for (struct tutti_device_task *task = batch->first; task; task = task->next)
        if (task->result == CL_RUNNING)
            task->result = last;
    for (struct tutti_device_task *task = batch->first; task; task = task->next)
        take_times(task, batch->elsewhere ? batch->elsewhere : batch->device, batch->lane);
    if (batch->outcome == CL_COMPLETE)
        notice_delay(batch);
}

void tutti_execution_end(struct tutti_batch *batch) {
    struct tutti_command *commands[TUTTI_COMMANDS_AT_ONCE];
    cl_int results[TUTTI_COMMANDS_AT_ONCE];
    unsigned count = 0;
    for (struct tutti_device_task *task = batch->first; task; task = task->next) {
        commands[count] = &task->command;
        results[count++] = task->result;
    }
    tutti_batch_end(batch);
    tutti_commands_done(count, commands, results);
}

void tutti_execution_fail(struct tutti_batch *batch, cl_int error) {
    bring(batch); /* others may use it, too */
    for (struct tutti_device_task *task = batch->first; task; task = task->next)
        task->result = error;
    tutti_execution_end(batch);
}
