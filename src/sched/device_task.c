/* SPDX-License-Identifier: MIT */
#include "sched/device_task.h"

#include "context.h"
#include "memory/peers.h"
#include "memory/room.h"
#include "sched/direct_end.h"
#include "sched/execution.h"
#include "sched/idle.h"
#include "sched/lanes.h"
#include "sched/link.h"
#include "sched/runtime.h"
#include "virtual_device/driver.h"

#include <starpu_opencl.h>
#include <stdlib.h>

/*
 * µs: to wait for so little in the worker costs less than to have StarPU poll for it, which takes
 * an event: for so much where events are delayed (link.h).
 */
#define WORTH_WAITING 100.0
#define WORTH_WAITING_IF_DELAYED 2000.0

#define MOST_AT_HOME 256 /* views of one batch */

/* The codelet's implementations: StarPU's worker goes on while the device works, or waits. */
enum { GOES_ON, WAITS };

static bool waits(const struct tutti_batch *batch, const struct tutti_real_device *device) {
    return device->place.synchronous || atomic_load(&batch->waits);
}

void tutti_device_task_decide(struct tutti_batch *batch, unsigned devices) {
    const struct tutti_device_list *list = tutti_devices();
    double launches = TUTTI_LAUNCH_TIME * batch->length;
    bool worth = batch->brief && !tutti_lanes_are_for(batch) &&
                 batch->expected <= (launches > WORTH_WAITING ? launches : WORTH_WAITING);
    if (batch->expected > 0 && batch->expected <= WORTH_WAITING_IF_DELAYED)
        for (unsigned d = 0; d < list->count && !worth; d++)
            worth = devices & 1u << d && tutti_link_delays_events(list->device[d]);
    atomic_store(&batch->waits, worth);
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
    return device && (tutti_batch_devices(batch) & 1u << device->index) &&
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

/*
 * StarPU's task is over; in a worker's thread. What StarPU did not call can't happen: a submitted
 * task is always executed.
 */
static void finished(void *argument) {
    tutti_idle_worked();
    tutti_idle_end();
    tutti_execution_collect(argument);
    tutti_execution_end(argument);
}

static bool bar_starpu(const struct tutti_real_device *device, cl_event event) {
    cl_command_queue starpu_queue;
    starpu_opencl_get_queue(device->place.devid, &starpu_queue);
    return device->dispatch->clEnqueueBarrierWithWaitList(starpu_queue, 1, &event, NULL) ==
           CL_SUCCESS;
}

/* A command that failed is over as well: its batch knows. */
struct message {
    const cl_icd_dispatch *driver;
    cl_event over; /* StarPU's queue waits for it */
};

static void CL_CALLBACK pass_on(cl_event last, cl_int status, void *argument) {
    struct message *message = argument;
    (void)last;
    (void)status;
    message->driver->clSetUserEventStatus(message->over, CL_COMPLETE);
    message->driver->clReleaseEvent(message->over);
    free(message);
}

/* Where the command is of another context than StarPU's queue. */
static bool send_message(const struct tutti_real_device *device, cl_event last) {
    cl_int error;
    cl_context context;
    struct message *message = malloc(sizeof(*message));
    if (!message)
        return false;
    starpu_opencl_get_context(device->place.devid, &context);
    message->driver = device->dispatch;
    message->over = message->driver->clCreateUserEvent(context, &error);
    if (message->over && bar_starpu(device, message->over) &&
        message->driver->clSetEventCallback(last, CL_COMPLETE, pass_on, message) == CL_SUCCESS)
        return true;
    if (message->over)
        pass_on(last, CL_COMPLETE, message);
    else
        free(message);
    return false;
}

/*
 * Lets StarPU's worker go on while the real command executes: StarPU polls a marker in its own
 * queue, which gets a barrier on the command. A user event between the two, completed by a
 * callback, would also hide a failing command from StarPU; it was measured at five times the time
 * per command on NVIDIA's driver, where a command that fails has taken the whole context with it.
 */
static bool tell_starpu(const struct tutti_real_device *device, cl_event last) {
    return tutti_peers_context(device) ? send_message(device, last) : bar_starpu(device, last);
}

/*
 * StarPU's marker is a command as well: PoCL's threads, which are at the next kernel by then, would
 * execute it behind that. So what is next waits for it.
 */
static void come_after_starpu(const struct tutti_real_device *device, cl_command_queue queue) {
    const cl_icd_dispatch *driver = device->dispatch;
    cl_command_queue starpu_queue;
    cl_event seen;
    starpu_opencl_get_queue(device->place.devid, &starpu_queue);
    if (driver->clEnqueueMarkerWithWaitList(starpu_queue, 0, NULL, &seen) != CL_SUCCESS)
        return;
    driver->clEnqueueBarrierWithWaitList(queue, 1, &seen, NULL);
    driver->clReleaseEvent(seen);
}

/* StarPU does not look all the time for what a CPU executes (idle.h). */
static void CL_CALLBACK call_worker(cl_event event, cl_int status, void *device) {
    (void)event;
    (void)status;
    tutti_idle_call(device);
}

static void execute(void *buffers[], void *argument) {
    struct tutti_batch *batch = argument;
    struct tutti_real_device *device = tutti_runtime_device_of_worker(starpu_worker_get_id());
    batch->device = device;
    tutti_batch_note_ready(batch);
    tutti_idle_worked();
    tutti_lanes_enter(batch, tutti_execution_choose_lane(batch));
    tutti_direct_mark(batch);
    if (tutti_device_has_one_queue(device) && tutti_room_working(device) > 0)
        come_after_starpu(device, batch->queue);
    for (unsigned i = 0; i < batch->count; i++)
        batch->use[i].storage = batch->at_home
                                    ? tutti_view_storage(batch->use[i].view, device)
                                    : &((const struct tutti_interface *)buffers[i])->storage;
    tutti_execution_start(batch, waits(batch, device) ? TUTTI_ENDS_HERE : TUTTI_ENDS_LATER);
    if (batch->end && !tell_starpu(device, batch->end))
        batch->outcome = tutti_driver_finish(device, batch->queue);
    if (batch->end && device->type & CL_DEVICE_TYPE_CPU)
        device->dispatch->clSetEventCallback(batch->end, CL_COMPLETE, call_worker, device);
}

static struct starpu_perfmodel model = {
    .type = STARPU_PER_ARCH, .arch_cost_function = cost, .symbol = "tutti"};

#define CODELET                                                                                    \
    .where = STARPU_OPENCL, .can_execute = can_execute,                                            \
    .opencl_funcs = {[GOES_ON] = execute, [WAITS] = execute},                                      \
    .opencl_flags = {[GOES_ON] = STARPU_OPENCL_ASYNC}, .nbuffers = STARPU_VARIABLE_NBUFFERS,       \
    .model = &model, .name = "tutti"

static struct starpu_codelet codelet = {CODELET};

/*
 * Where all devices work in home memory there is one copy, and StarPU has nothing to bring. With a
 * copy for each it would ask the worker of the device that has it, which may be at a long kernel.
 */
static int home_nodes[MOST_AT_HOME];
_Static_assert(STARPU_MAIN_RAM == 0, "the home nodes are zeroed");
static struct starpu_codelet codelet_at_home = {CODELET, .specific_nodes = 1,
                                                .dyn_nodes = home_nodes};

static pthread_once_t driven_once = PTHREAD_ONCE_INIT;
static unsigned driven;   /* bits of the real devices that StarPU drives, but for spare ones */
static cl_ulong anywhere; /* bytes that fit on each of them */

static void find_driven(void) {
    const struct tutti_device_list *list = tutti_devices();
    anywhere = ~(cl_ulong)0;
    for (unsigned d = 0; d < list->count; d++) {
        const struct tutti_real_device *device = list->device[d];
        if (device->place.devid < 0 || device->spare)
            continue;
        driven |= 1u << d;
        cl_ulong total = tutti_room_total(device), most = device->max_mem_alloc_size;
        anywhere = total < anywhere ? total : anywhere;
        anywhere = most < anywhere ? most : anywhere;
    }
}

/* Not again for another window. */
static size_t size_of(const struct tutti_device_use *use, unsigned i) {
    for (unsigned before = 0; before < i && use[i].window; before++)
        if (use[before].view == use[i].view)
            return 0;
    return use[i].view->size;
}

unsigned tutti_device_task_fitting(const struct tutti_device_use *use, unsigned count) {
    const struct tutti_device_list *list = tutti_devices();
    unsigned fitting = 0;
    cl_ulong bytes = 0;
    pthread_once(&driven_once, find_driven);
    for (unsigned i = 0; i < count && bytes <= anywhere; i++)
        bytes += size_of(use, i);
    if (bytes <= anywhere)
        return driven;
    for (unsigned d = 0; d < list->count; d++) {
        const struct tutti_real_device *device = list->device[d];
        if (!(driven & 1u << d))
            continue;
        cl_ulong left = tutti_room_total(device);
        bool fits = true;
        for (unsigned i = 0; i < count && fits; i++) {
            size_t size = size_of(use, i);
            fits = size <= left && size <= device->max_mem_alloc_size;
            left -= size;
        }
        if (fits)
            fitting |= 1u << d;
    }
    return fitting;
}

/* Then so are the devices. */
static bool is_at_home(const struct tutti_batch *batch, unsigned count) {
    bool at_home = count <= MOST_AT_HOME;
    for (unsigned i = 0; i < batch->count && at_home; i++)
        at_home = batch->use[i].view->at_home;
    return at_home;
}

void tutti_device_task_submit(struct tutti_batch *batch) {
    bool prints = batch->first->prints; /* then it is alone */
    unsigned count = batch->count + (prints ? 1 : 0);
    batch->at_home = is_at_home(batch, count);
    struct starpu_task *starpu_task = starpu_task_create();
    starpu_task->cl = batch->at_home ? &codelet_at_home : &codelet;
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
            tutti_execution_fail(batch, CL_OUT_OF_HOST_MEMORY);
            return;
        }
    }
    for (unsigned i = 0; i < batch->count; i++) {
        handles[i] = tutti_view_handle(batch->use[i].view);
        modes[i] = batch->use[i].mode;
    }
    if (prints) {
        handles[batch->count] = batch->context->console;
        modes[batch->count] = STARPU_RW;
    }
    tutti_device_task_decide(batch, batch->devices);
    __atomic_store_n(&starpu_task->cl_arg, batch, __ATOMIC_RELEASE);
    tutti_idle_begin();
    if (starpu_task_submit(starpu_task) != 0) {
        tutti_idle_end();
        starpu_task_destroy(starpu_task);
        tutti_execution_fail(batch, CL_OUT_OF_RESOURCES);
    }
}
