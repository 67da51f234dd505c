/* SPDX-License-Identifier: MIT */
#include "sched/device_task.h"

#include "log.h"
#include "sched/idle.h"
#include "sched/runtime.h"
#include "sched/statistics.h"
#include "virtual_device/driver.h"

#include <starpu_opencl.h>
#include <stdlib.h>

static int can_execute(unsigned workerid, struct starpu_task *starpu_task, unsigned nimpl) {
    (void)nimpl;
    const struct tutti_device_task *task = starpu_task->cl_arg;
    const struct tutti_real_device *device = tutti_runtime_device_of_worker((int)workerid);
    return device && (task->devices & 1u << device->index);
}

static double cost(struct starpu_task *starpu_task, struct starpu_perfmodel_arch *arch,
                   unsigned nimpl) {
    (void)nimpl;
    struct tutti_device_task *task = starpu_task->cl_arg;
    const struct tutti_device_list *list = tutti_devices();
    for (unsigned d = 0; d < list->count; d++)
        if (list->device[d]->place.devid == arch->devices[0].devid)
            return task->expect(task, list->device[d]);
    return 1;
}

static cl_ulong profile(const cl_icd_dispatch *driver, cl_event event, cl_profiling_info what) {
    cl_ulong value = 0;
    return driver->clGetEventProfilingInfo(event, what, sizeof(value), &value, NULL) == CL_SUCCESS
               ? value
               : 0;
}

/* Waits for the real command if it must, and takes its result and times. */
static void take_result(struct tutti_device_task *task) {
    const cl_icd_dispatch *driver = task->device->dispatch;
    cl_int status = CL_COMPLETE;
    cl_int error = driver->clWaitForEvents(1, &task->real);
    if (driver->clGetEventInfo(task->real, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
                               &status, NULL) != CL_SUCCESS ||
        status > CL_COMPLETE)
        status = error == CL_SUCCESS ? CL_COMPLETE : error;
    if (status == CL_COMPLETE) {
        task->real_queued = profile(driver, task->real, CL_PROFILING_COMMAND_QUEUED);
        task->real_start = profile(driver, task->real, CL_PROFILING_COMMAND_START);
        task->real_end = profile(driver, task->real, CL_PROFILING_COMMAND_END);
    }
    task->result = status;
    driver->clReleaseEvent(task->real);
    task->real = NULL;
}

/*
 * StarPU's task is over; in a worker's thread. What StarPU did not call (`device` is NULL) can't
 * happen: a submitted task is always executed.
 */
static void finished(void *argument) {
    struct tutti_device_task *task = argument;
    cl_event event = task->command.event;
    tutti_idle_worked();
    if (task->real)
        take_result(task);
    if (task->real_end) {
        /* The device's clock is not the host's: the moment of the enqueue is known in both. */
        cl_ulong wait =
            task->real_start > task->real_queued ? task->real_start - task->real_queued : 0;
        cl_ulong length = task->real_end > task->real_start ? task->real_end - task->real_start : 0;
        event->started = task->enqueued + wait;
        event->ended = event->started + length;
        if (task->learn && task->result == CL_COMPLETE)
            task->learn(task, task->device, (double)length / 1000);
    }
    if (task->result == CL_COMPLETE)
        tutti_statistics_count(task->device);
    tutti_command_done(&task->command, task->result);
}

/*
 * Lets StarPU's worker go on while the real command executes: StarPU polls a marker in its own
 * queue, which gets a barrier on the command. A user event between the two, completed by a
 * callback, would also hide a failing command from StarPU; it was measured at five times the time
 * per command on NVIDIA's driver, where a command that fails has taken the whole context with it.
 */
static bool tell_starpu(struct tutti_device_task *task) {
    struct tutti_real_device *device = task->device;
    cl_command_queue starpu_queue;
    if (device->place.synchronous)
        return false;
    starpu_opencl_get_queue(device->place.devid, &starpu_queue);
    if (device->dispatch->clEnqueueBarrierWithWaitList(starpu_queue, 1, &task->real, NULL) !=
        CL_SUCCESS)
        return false;
    device->dispatch->clFlush(device->place.kernels);
    return true;
}

static void execute(void *buffers[], void *argument) {
    struct tutti_device_task *task = argument;
    struct tutti_real_device *device = tutti_runtime_device_of_worker(starpu_worker_get_id());
    cl_mem few[16], *mem = few;
    tutti_idle_worked();
    if (task->count > 16 && !(mem = malloc(task->count * sizeof(*mem)))) {
        task->result = CL_OUT_OF_HOST_MEMORY;
        return;
    }
    task->device = device;
    task->result = CL_COMPLETE;
    for (unsigned i = 0; i < task->count; i++) {
        const struct tutti_interface *interface = buffers[i];
        mem[i] = interface->storage.argument;
        if (!mem[i])
            task->result = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    }
    if (task->result == CL_COMPLETE) {
        tutti_event_advance(task->command.event, CL_RUNNING);
        task->enqueued = tutti_runtime_now();
        tutti_driver_lock(device);
        cl_int error = task->enqueue(task, device, mem, &task->real);
        if (error != CL_SUCCESS) {
            tutti_log(ERROR, "%s: enqueue failed with %d", device->name, error);
            task->result = error;
            task->real = NULL;
        } else if (!tell_starpu(task)) {
            take_result(task);
        }
        tutti_driver_unlock(device);
    }
    if (mem != few)
        free(mem);
}

static struct starpu_perfmodel model = {
    .type = STARPU_PER_ARCH, .arch_cost_function = cost, .symbol = "tutti"};

static struct starpu_codelet codelet = {
    .where = STARPU_OPENCL,
    .can_execute = can_execute,
    .opencl_funcs = {execute},
    .opencl_flags = {STARPU_OPENCL_ASYNC},
    .nbuffers = STARPU_VARIABLE_NBUFFERS,
    .model = &model,
    .name = "tutti",
};

unsigned tutti_device_task_fitting(const struct tutti_device_task *task) {
    const struct tutti_device_list *list = tutti_devices();
    unsigned fitting = 0;
    for (unsigned d = 0; d < list->count; d++) {
        const struct tutti_real_device *device = list->device[d];
        if (device->place.devid < 0)
            continue;
        starpu_ssize_t total = starpu_memory_get_total(device->place.node);
        cl_ulong left = total >= 0 ? (cl_ulong)total : device->global_mem_size;
        bool fits = true;
        for (unsigned i = 0; i < task->count && fits; i++) {
            size_t size = task->use[i].view->size;
            fits = size <= left && size <= device->max_mem_alloc_size;
            left -= size;
        }
        if (fits)
            fitting |= 1u << d;
    }
    return fitting;
}

void tutti_device_task_submit(struct tutti_device_task *task) {
    unsigned fitting = tutti_device_task_fitting(task);
    if (!(task->devices & fitting)) {
        tutti_command_done(&task->command, task->devices ? CL_MEM_OBJECT_ALLOCATION_FAILURE
                                                         : CL_INVALID_PROGRAM_EXECUTABLE);
        return;
    }
    task->devices &= fitting;
    task->result = CL_OUT_OF_RESOURCES; /* until it is executed */

    cl_context context = task->command.event->context;
    unsigned count = task->count + (task->prints ? 1 : 0);
    struct starpu_task *starpu_task = starpu_task_create();
    starpu_task->cl = &codelet;
    starpu_task->cl_arg = task;
    starpu_task->callback_func = finished;
    starpu_task->callback_arg = task;
    starpu_task->nbuffers = (int)count;
    starpu_data_handle_t *handles = starpu_task->handles;
    enum starpu_data_access_mode *modes = starpu_task->modes;
    if (count > STARPU_NMAXBUFS) { /* StarPU frees them with the task */
        starpu_task->dyn_handles = handles = malloc(count * sizeof(*handles));
        starpu_task->dyn_modes = modes = malloc(count * sizeof(*modes));
        if (!handles || !modes) {
            starpu_task_destroy(starpu_task);
            tutti_command_done(&task->command, CL_OUT_OF_HOST_MEMORY);
            return;
        }
    }
    for (unsigned i = 0; i < task->count; i++) {
        handles[i] = task->use[i].view->handle;
        modes[i] = task->use[i].mode;
    }
    if (task->prints) {
        handles[task->count] = context->console;
        modes[task->count] = STARPU_RW;
    }
    if (starpu_task_submit(starpu_task) != 0) {
        starpu_task_destroy(starpu_task);
        tutti_command_done(&task->command, CL_OUT_OF_RESOURCES);
    }
}
