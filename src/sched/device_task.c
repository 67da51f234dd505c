/* SPDX-License-Identifier: MIT */
#include "sched/device_task.h"

#include "context.h"
#include "log.h"
#include "memory/room.h"
#include "sched/batch.h"
#include "sched/idle.h"
#include "sched/runtime.h"
#include "sched/statistics.h"
#include "virtual_device/driver.h"

#include <starpu_opencl.h>
#include <stdlib.h>

/* µs: to wait for so little in the worker costs less than to have StarPU poll for it. */
#define WORTH_WAITING 100.0

/* µs that a batch may be late without a reason in its kernels. */
#define TOLERATED 5000.0

/* The codelet's implementations: StarPU's worker goes on while the device works, or waits. */
enum { GOES_ON, WAITS };

static bool waits(const struct tutti_batch *batch, const struct tutti_real_device *device) {
    return device->place.synchronous || (batch->brief && batch->expected <= WORTH_WAITING);
}

/* StarPU may call in another thread than the one that submitted: see tutti_view_hand_over. */
struct tutti_batch *tutti_device_task_batch(struct starpu_task *starpu_task) {
    return __atomic_load_n(&starpu_task->cl_arg, __ATOMIC_ACQUIRE);
}

unsigned tutti_device_task_implementation(const struct tutti_batch *batch,
                                          const struct tutti_real_device *device) {
    return waits(batch, device) ? WAITS : GOES_ON;
}

static int can_execute(unsigned workerid, struct starpu_task *starpu_task, unsigned nimpl) {
    const struct tutti_batch *batch = tutti_device_task_batch(starpu_task);
    const struct tutti_real_device *device = tutti_runtime_device_of_worker((int)workerid);
    return device && (batch->devices & 1u << device->index) &&
           nimpl == tutti_device_task_implementation(batch, device);
}

static double cost(struct starpu_task *starpu_task, struct starpu_perfmodel_arch *arch,
                   unsigned nimpl) {
    (void)nimpl;
    const struct tutti_batch *batch = tutti_device_task_batch(starpu_task);
    const struct tutti_device_list *list = tutti_devices();
    for (unsigned d = 0; d < list->count; d++) {
        if (list->device[d]->place.devid != arch->devices[0].devid)
            continue;
        double time = 0;
        for (struct tutti_device_task *task = batch->first; task; task = task->next)
            time += tutti_model_expect(task->model, list->device[d]);
        return time;
    }
    return 1;
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
    if (status == CL_COMPLETE) {
        task->real_queued = profile(driver, task->real, CL_PROFILING_COMMAND_QUEUED);
        task->real_start = profile(driver, task->real, CL_PROFILING_COMMAND_START);
        task->real_end = profile(driver, task->real, CL_PROFILING_COMMAND_END);
    }
    task->result = status;
    driver->clReleaseEvent(task->real);
    task->real = NULL;
}

static void take_times(struct tutti_device_task *task, struct tutti_real_device *device) {
    cl_event event = task->command.event;
    double time = 0;
    if (task->real_end) {
        /* The device's clock is not the host's: the moment of the enqueue is known in both. */
        cl_ulong wait =
            task->real_start > task->real_queued ? task->real_start - task->real_queued : 0;
        cl_ulong length = task->real_end > task->real_start ? task->real_end - task->real_start : 0;
        event->started = task->enqueued + wait;
        event->ended = event->started + length;
        time = (double)length / 1000;
        if (task->result == CL_COMPLETE)
            tutti_model_learn(task->model, device, time);
    }
    if (task->result == CL_COMPLETE)
        tutti_statistics_count(task, device, time);
}

/*
 * A kernel's arguments may make it longer than it ever was. A batch that took far longer than its
 * models said tells so, though its commands were not measured: the next ones are no batch.
 */
static void notice_delay(const struct tutti_batch *batch) {
    double took = (double)(tutti_runtime_now() - batch->began) / 1000;
    if (batch->length == 1 || took < TOLERATED + 4 * batch->expected)
        return;
    for (struct tutti_device_task *task = batch->first; task; task = task->next)
        if (!task->real_end)
            tutti_model_learn(task->model, batch->device, took / batch->length);
}

/* Ends all commands of the batch, in order. */
static void end_all(struct tutti_batch *batch) {
    struct tutti_command *commands[TUTTI_COMMANDS_AT_ONCE];
    cl_int results[TUTTI_COMMANDS_AT_ONCE];
    unsigned count = 0;
    for (struct tutti_device_task *task = batch->first; task; task = task->next) {
        take_times(task, batch->device);
        commands[count] = &task->command;
        results[count++] = task->result;
    }
    tutti_batch_end(batch);
    tutti_commands_done(count, commands, results);
}

/*
 * StarPU's task is over; in a worker's thread. What StarPU did not call (`device` is NULL) can't
 * happen: a submitted task is always executed.
 */
static void finished(void *argument) {
    struct tutti_batch *batch = argument;
    tutti_idle_worked();
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
    if (batch->outcome == CL_COMPLETE)
        notice_delay(batch);
    end_all(batch);
}

/*
 * Lets StarPU's worker go on while the real command executes: StarPU polls a marker in its own
 * queue, which gets a barrier on the command. A user event between the two, completed by a
 * callback, would also hide a failing command from StarPU; it was measured at five times the time
 * per command on NVIDIA's driver, where a command that fails has taken the whole context with it.
 */
static bool tell_starpu(const struct tutti_real_device *device, cl_event last) {
    cl_command_queue starpu_queue;
    starpu_opencl_get_queue(device->place.devid, &starpu_queue);
    if (device->dispatch->clEnqueueBarrierWithWaitList(starpu_queue, 1, &last, NULL) != CL_SUCCESS)
        return false;
    device->dispatch->clFlush(device->place.kernels);
    return true;
}

/*
 * The device's queue is in order, so that the end of the last command is the end of all. Others
 * need an event for their times, if the model or the program may want them: asking for those takes
 * the driver as long as a short kernel.
 */
static bool wants_event(const struct tutti_batch *batch, struct tutti_device_task *task) {
    return task->command.event->queue->properties & CL_QUEUE_PROFILING_ENABLE ||
           (!task->next && !waits(batch, batch->device)) ||
           tutti_model_is_curious(task->model, batch->device);
}

static void enqueue(struct tutti_batch *batch, struct tutti_device_task *task, void *buffers[]) {
    struct tutti_real_device *device = batch->device;
    cl_mem few[16], *mem = few;
    task->real = NULL;
    if (task->command.event->failed) {
        task->result = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
        return;
    }
    if (task->count > 16 && !(mem = malloc(task->count * sizeof(*mem)))) {
        task->result = CL_OUT_OF_HOST_MEMORY;
        return;
    }
    task->result = CL_RUNNING; /* until it is known */
    for (unsigned i = 0; i < task->count; i++) {
        const struct tutti_interface *interface = buffers[task->use[i].slot];
        mem[i] = interface->storage.argument;
        tutti_history_use(task->use[i].view->history, device, task->use[i].placed);
        if (!mem[i])
            task->result = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    }
    if (task->result == CL_RUNNING) {
        task->enqueued = tutti_runtime_now();
        cl_int error =
            task->enqueue(task, device, mem, wants_event(batch, task) ? &task->real : NULL);
        if (error != CL_SUCCESS) {
            tutti_log(ERROR, "%s: enqueue failed with %d", device->name, error);
            task->result = error;
            task->real = NULL;
        }
    }
    if (mem != few)
        free(mem);
}

static void execute(void *buffers[], void *argument) {
    struct tutti_batch *batch = argument;
    struct tutti_real_device *device = tutti_runtime_device_of_worker(starpu_worker_get_id());
    tutti_idle_worked();
    batch->device = device;
    batch->began = tutti_runtime_now();
    tutti_room_begin_work(device);
    for (unsigned i = 0; i < batch->count; i++)
        tutti_view_take_over(batch->use[i].view);
    if (batch->length > 1)
        tutti_log(DEBUG, "%s: %u kernels as one task", device->name, batch->length);
    pthread_mutex_lock(&batch->context->graph.lock);
    for (struct tutti_device_task *task = batch->first; task; task = task->next)
        tutti_event_advance(task->command.event, CL_RUNNING);
    pthread_mutex_unlock(&batch->context->graph.lock);
    tutti_driver_lock(device);
    cl_event last = NULL; /* the end of all */
    for (struct tutti_device_task *task = batch->first; task; task = task->next) {
        enqueue(batch, task, buffers);
        if (task->result != CL_RUNNING)
            tutti_event_break(task->command.event);
        last = task->real;
    }
    /* The last one may have failed, and the others need no event. */
    batch->outcome = CL_COMPLETE;
    if (waits(batch, device) || !last || !tell_starpu(device, last))
        batch->outcome = device->dispatch->clFinish(device->place.kernels);
    tutti_driver_unlock(device);
    for (unsigned i = 0; i < batch->count; i++)
        tutti_view_hand_over(batch->use[i].view);
}

static struct starpu_perfmodel model = {
    .type = STARPU_PER_ARCH, .arch_cost_function = cost, .symbol = "tutti"};

static struct starpu_codelet codelet = {
    .where = STARPU_OPENCL,
    .can_execute = can_execute,
    .opencl_funcs = {[GOES_ON] = execute, [WAITS] = execute},
    .opencl_flags = {[GOES_ON] = STARPU_OPENCL_ASYNC},
    .nbuffers = STARPU_VARIABLE_NBUFFERS,
    .model = &model,
    .name = "tutti",
};

static void fail(struct tutti_batch *batch, cl_int error) {
    for (struct tutti_device_task *task = batch->first; task; task = task->next)
        task->result = error;
    end_all(batch);
}

void tutti_device_task_submit(struct tutti_batch *batch) {
    bool prints = batch->first->prints; /* then it is alone */
    unsigned count = batch->count + (prints ? 1 : 0);
    struct starpu_task *starpu_task = starpu_task_create();
    starpu_task->cl = &codelet;
    starpu_task->callback_func = finished;
    starpu_task->callback_arg = batch;
    starpu_task->nbuffers = (int)count;
    starpu_data_handle_t *handles = starpu_task->handles;
    enum starpu_data_access_mode *modes = starpu_task->modes;
    if (count > STARPU_NMAXBUFS) { /* StarPU frees them with the task */
        starpu_task->dyn_handles = handles = malloc(count * sizeof(*handles));
        starpu_task->dyn_modes = modes = malloc(count * sizeof(*modes));
        if (!handles || !modes) {
            starpu_task_destroy(starpu_task);
            fail(batch, CL_OUT_OF_HOST_MEMORY);
            return;
        }
    }
    for (unsigned i = 0; i < batch->count; i++) {
        handles[i] = batch->use[i].view->handle;
        modes[i] = batch->use[i].mode;
    }
    if (prints) {
        handles[batch->count] = batch->context->console;
        modes[batch->count] = STARPU_RW;
    }
    __atomic_store_n(&starpu_task->cl_arg, batch, __ATOMIC_RELEASE);
    if (starpu_task_submit(starpu_task) != 0) {
        starpu_task_destroy(starpu_task);
        fail(batch, CL_OUT_OF_RESOURCES);
    }
}
