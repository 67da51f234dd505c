/* SPDX-License-Identifier: MIT */
#include "sched/elsewhere.h"

#include "log.h"
#include "memory/hop.h"
#include "memory/relay.h"
#include "memory/room.h"
#include "memory/window.h"
#include "sched/runtime.h"
#include "virtual_device/driver.h"

#include <stdlib.h>

/* The batch on another device. */
struct elsewhere {
    struct tutti_batch *batch;
    struct tutti_real_device *device;
    struct tutti_storage *storage; /* there, of each of its uses */
};

static bool lacks(const struct tutti_device_use *use) {
    return tutti_storage_is_missing(use->storage);
}

/* Shared virtual memory is no copy. */
bool tutti_elsewhere_is_wanted(const struct tutti_batch *batch) {
    bool some = false, svm = false;
    for (unsigned i = 0; i < batch->count; i++) {
        some = some || lacks(&batch->use[i]);
        svm = svm || batch->use[i].view->svm;
    }
    return some && !svm;
}

/*
 * Has the device memory by now, which StarPU does not ask for again? What others may look at, as
 * they read it as well, stays as it is.
 */
static bool mend(const struct tutti_batch *batch) {
    struct tutti_real_device *device = batch->device;
    bool mended = true;
    for (unsigned i = 0; i < batch->count && mended; i++) {
        const struct tutti_device_use *use = &batch->use[i];
        struct tutti_interface *interface =
            starpu_data_get_interface_on_node(tutti_view_handle(use->view), device->place.node);
        if (!lacks(use))
            continue;
        mended = use->mode != STARPU_R &&
                 tutti_view_create_storage(use->view, device, &interface->storage) == CL_SUCCESS;
        if (mended)
            tutti_room_filled(device);
        if (mended && use->mode != STARPU_W)
            tutti_hop_up(use->view, device, use->storage, NULL);
    }
    return mended;
}

static bool allocate(const struct elsewhere *to) {
    const struct tutti_batch *batch = to->batch;
    cl_int error = CL_SUCCESS;
    for (unsigned i = 0; i < batch->count && error == CL_SUCCESS; i++)
        error = tutti_view_create_storage(batch->use[i].view, to->device, &to->storage[i]);
    if (error == CL_SUCCESS)
        tutti_room_filled(to->device);
    return error == CL_SUCCESS;
}

static void release(const struct elsewhere *to) {
    const struct tutti_batch *batch = to->batch;
    for (unsigned i = 0; i < batch->count; i++) {
        const struct tutti_view *view = batch->use[i].view;
        if (!view->at_home)
            tutti_storage_release(to->device, &view->shape, view->size, &to->storage[i]);
    }
}

/* StarPU does not know of all that was written to what stays there (memory/stay.h). */
static bool is_at_home(const struct tutti_device_use *use) {
    int valid = 0;
    if (!lacks(use) && use->stay && (use->stay->early || use->stay->silent))
        return false;
    starpu_data_query_status(tutti_view_handle(use->view), STARPU_MAIN_RAM, NULL, &valid, NULL);
    return valid;
}

/* Through home memory, where is what the first device has no memory for. */
static void bring(const struct elsewhere *to) {
    const struct tutti_batch *batch = to->batch;
    for (unsigned i = 0; i < batch->count; i++) {
        const struct tutti_device_use *use = &batch->use[i];
        if (use->mode == STARPU_W)
            continue;
        if (is_at_home(use))
            tutti_relay_settle(use->view);
        else if (!lacks(use))
            tutti_hop_down(use->view, batch->device, use->storage, NULL);
        tutti_hop_up(use->view, to->device, &to->storage[i], NULL);
    }
}

static void bring_back(const struct elsewhere *to) {
    const struct tutti_batch *batch = to->batch;
    for (unsigned i = 0; i < batch->count; i++) {
        const struct tutti_device_use *use = &batch->use[i];
        if (use->mode == STARPU_R)
            continue;
        tutti_hop_down(use->view, to->device, &to->storage[i], NULL);
        if (!lacks(use))
            tutti_hop_up(use->view, batch->device, use->storage, NULL);
    }
}

/* With the device's locks. */
static cl_int enqueue(const struct elsewhere *to, struct tutti_device_task *task,
                      const struct tutti_storage **storage, cl_event *real) {
    struct tutti_storage windows[TUTTI_WINDOWS_AT_ONCE];
    cl_int error = CL_SUCCESS;
    for (unsigned i = 0; i < task->count && error == CL_SUCCESS; i++) {
        const struct tutti_device_use *use = &task->use[i];
        storage[i] = &to->storage[use->slot];
        if (!use->window)
            continue;
        error = tutti_window_find(use->view, use->window, to->device, storage[i], &windows[i]);
        storage[i] = &windows[i];
    }
    return error == CL_SUCCESS
               ? task->enqueue(task, to->device, to->device->place.kernels, storage, real)
               : error;
}

/* The same. Those of other copies of the views, if the device has some, are made again. */
static void forget_windows(const struct elsewhere *to) {
    for (unsigned i = 0; i < to->batch->count; i++)
        tutti_window_forget(to->batch->use[i].view, to->device);
}

static cl_int execute(const struct elsewhere *to, struct tutti_device_task *task) {
    const struct tutti_real_device *device = to->device;
    const struct tutti_storage **storage = malloc((task->count + 1) * sizeof(*storage));
    cl_event real = NULL, event = task->command.event;
    if (!storage)
        return CL_OUT_OF_HOST_MEMORY;
    pthread_mutex_lock(&to->device->place.enqueues);
    tutti_driver_lock(device);
    event->started = tutti_runtime_now();
    cl_int result = enqueue(to, task, storage, &real);
    if (real) {
        tutti_driver_flush(device, device->place.kernels);
        result = tutti_driver_wait(device, real);
    }
    event->ended = tutti_runtime_now();
    forget_windows(to);
    tutti_driver_unlock(device);
    pthread_mutex_unlock(&to->device->place.enqueues);
    free(storage);
    return result;
}

static void execute_all(const struct elsewhere *to) {
    tutti_log(INFO, "%s: has no memory for what %s executes instead", to->batch->device->name,
              to->device->name);
    bring(to);
    for (struct tutti_device_task *task = to->batch->first; task; task = task->next) {
        task->measured = false;
        task->result = task->command.event->failed ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
                                                   : execute(to, task);
    }
    bring_back(to);
    to->batch->elsewhere = to->device;
}

bool tutti_elsewhere_execute(struct tutti_batch *batch) {
    const struct tutti_device_list *list = tutti_devices();
    if (mend(batch))
        return false;
    struct elsewhere to = {.batch = batch, .storage = calloc(batch->count, sizeof(*to.storage))};
    unsigned able = to.storage ? tutti_batch_devices(batch) : 0;
    bool done = false;
    for (unsigned d = 0; d < list->count && !done; d++) {
        to.device = list->device[d];
        if (!(able & 1u << d) || to.device == batch->device || to.device->place.devid < 0)
            continue;
        done = allocate(&to);
        if (done)
            execute_all(&to);
        release(&to);
    }
    free(to.storage);
    return done;
}
