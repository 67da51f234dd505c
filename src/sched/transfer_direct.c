/* SPDX-License-Identifier: MIT */
/*
 * Small reads and writes of a buffer that short kernels use: as commands of the device, among its
 * kernels. A loop that sets a parameter, runs a kernel and reads a residual has no other delay then
 * than the driver's.
 */
#include "sched/transfer.h"

#include "memory/version.h"
#include "sched/batch.h"
#include "sched/runtime.h"

#include <string.h>

/* Larger ones go on queues of their own, at the same time as kernels. */
#define LARGEST ((size_t)16 << 10)
#define TIME 5.0 /* µs */

/*
 * A read that the program waits for is a blocking one: NVIDIA's driver takes half the time for it.
 */
static cl_int move(struct tutti_transfer *transfer, const struct tutti_real_device *device,
                   cl_command_queue queue, cl_mem mem, cl_event *event) {
    const cl_icd_dispatch *driver = device->dispatch;
    struct tutti_device_task *task = &transfer->task;
    size_t there = tutti_transfer_first(transfer, 0), here = tutti_transfer_first(transfer, 1);
    size_t size = transfer->region.size[0];
    if (transfer->writes)
        return driver->clEnqueueWriteBuffer(queue, mem, CL_FALSE, there, size,
                                            (const char *)transfer->source + here, 0, NULL, event);
    bool blocking = task->command.event->caller_runs && !task->next && !task->measured;
    cl_int error = driver->clEnqueueReadBuffer(queue, mem, blocking ? CL_TRUE : CL_FALSE, there,
                                               size, (char *)transfer->target + here, 0, NULL,
                                               blocking ? NULL : event);
    if (blocking)
        task->result = CL_COMPLETE;
    return error;
}

/* After what is on the device's queue already. */
static cl_int move_by_host(const struct tutti_transfer *transfer,
                           const struct tutti_real_device *device, cl_command_queue queue,
                           char *bytes) {
    cl_event event = transfer->command.event;
    size_t there = tutti_transfer_first(transfer, 0), here = tutti_transfer_first(transfer, 1);
    size_t size = transfer->region.size[0];
    cl_int error = device->dispatch->clFinish(queue);
    event->started = tutti_runtime_now();
    if (transfer->writes)
        memcpy(bytes + there, (const char *)transfer->source + here, size);
    else
        memcpy((char *)transfer->target + here, bytes + there, size);
    event->ended = tutti_runtime_now();
    return error;
}

static cl_int enqueue(struct tutti_device_task *task, struct tutti_real_device *device,
                      cl_command_queue queue, const struct tutti_storage *const *storage,
                      cl_event *event) {
    struct tutti_transfer *transfer = (struct tutti_transfer *)task;
    if (!storage[0]->at_home)
        tutti_history_move(task->use->view->history, device,
                           transfer->writes ? TUTTI_UPLOAD : TUTTI_DOWNLOAD,
                           transfer->region.size[0]);
    if (!storage[0]->bytes)
        return move(transfer, device, queue, storage[0]->mem, event);
    task->result = CL_COMPLETE;
    return move_by_host(transfer, device, queue, storage[0]->bytes);
}

void tutti_transfer_offer(struct tutti_transfer *transfer) {
    cl_mem mem = transfer->mem[0];
    struct tutti_device_task *task = &transfer->task;
    if (!tutti_region_is_linear(&transfer->region) || transfer->region.size[0] > LARGEST ||
        mem->type != CL_MEM_OBJECT_BUFFER || mem->parent || mem->host_ptr)
        return;
    task->enqueue = enqueue;
    task->command.joins = true;
    task->devices = mem->devices;
    task->time = TIME;
    task->use = &transfer->direct;
    task->count = 1;
}

bool tutti_transfer_go_direct(struct tutti_transfer *transfer) {
    cl_mem mem = transfer->mem[0];
    struct tutti_device_task *task = &transfer->task;
    struct tutti_view *view = mem->view;
    bool whole = transfer->writes && transfer->region.size[0] == mem->size;
    if (view->sibling || !view->defined || tutti_version_is_pinned(mem))
        return false;
    transfer->direct = (struct tutti_device_use){
        .view = view,
        .mode = whole              ? STARPU_W
                : transfer->writes ? STARPU_RW
                                   : STARPU_R,
    };
    if (!tutti_batch_would_take(task))
        return false;
    transfer->view[0] = tutti_version_take(mem, false);
    if (whole)
        tutti_history_overwrite(&mem->history);
    tutti_batch_add(task);
    return true;
}
