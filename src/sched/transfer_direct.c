/* SPDX-License-Identifier: MIT */
/*
 * Small reads, writes, maps and unmaps of a buffer that short kernels use: as commands of the
 * device, among its kernels. A loop that sets a parameter, runs a kernel and reads a residual has
 * no other delay then than the driver's.
 */
#include "sched/transfer.h"

#include "memory/pinned.h"
#include "memory/version.h"
#include "sched/batch.h"
#include "sched/runtime.h"

#include <string.h>

/*
 * Larger ones go on queues of their own, at the same time as kernels. Home memory gets an overwrite
 * sooner than a device, and page-locked memory moves without the processor.
 */
#define LARGEST ((size_t)64 << 10)
#define LARGEST_OVERWRITE ((size_t)16 << 10)
#define LARGEST_PINNED ((size_t)1 << 20)
#define TIME 5.0     /* µs */
#define RATE 25000.0 /* bytes per µs */

static char *host_bytes(const struct tutti_transfer *transfer) {
    char *base = transfer->mapping ? transfer->map.pointer : transfer->target;
    return base + tutti_transfer_first(transfer, 1);
}

/*
 * A read that the program waits for is a blocking one: NVIDIA's driver takes half the time for it.
 */
static cl_int move(struct tutti_transfer *transfer, const struct tutti_real_device *device,
                   cl_command_queue queue, cl_mem mem, cl_event *event) {
    const cl_icd_dispatch *driver = device->dispatch;
    struct tutti_device_task *task = &transfer->task;
    size_t there = tutti_transfer_first(transfer, 0), size = transfer->region.size[0];
    if (transfer->mapping == TUTTI_UNMAP && !transfer->writes) /* only its order counts */
        return event ? driver->clEnqueueMarkerWithWaitList(queue, 0, NULL, event) : CL_SUCCESS;
    if (transfer->writes)
        return driver->clEnqueueWriteBuffer(queue, mem, CL_FALSE, there, size, host_bytes(transfer),
                                            0, NULL, event);
    bool blocking = task->command.event->caller_runs && !task->next && !task->measured;
    cl_int error =
        driver->clEnqueueReadBuffer(queue, mem, blocking ? CL_TRUE : CL_FALSE, there, size,
                                    host_bytes(transfer), 0, NULL, blocking ? NULL : event);
    if (blocking)
        task->result = CL_COMPLETE;
    return error;
}

/* After what is on the device's queue already. What is mapped may be the same memory. */
static cl_int move_by_host(const struct tutti_transfer *transfer,
                           const struct tutti_real_device *device, cl_command_queue queue,
                           char *bytes) {
    cl_event event = transfer->command.event;
    char *there = bytes + tutti_transfer_first(transfer, 0), *here = host_bytes(transfer);
    size_t size = transfer->region.size[0];
    cl_int error = device->dispatch->clFinish(queue);
    event->started = tutti_runtime_now();
    if (transfer->writes && here != there)
        memcpy(there, here, size);
    else if (transfer->mapping != TUTTI_UNMAP && here != there)
        memcpy(here, there, size);
    event->ended = tutti_runtime_now();
    return error;
}

static cl_int enqueue(struct tutti_device_task *task, struct tutti_real_device *device,
                      cl_command_queue queue, const struct tutti_storage *const *storage,
                      cl_event *event) {
    struct tutti_transfer *transfer = (struct tutti_transfer *)task;
    if (!storage[0]->at_home && (transfer->writes || transfer->mapping != TUTTI_UNMAP))
        tutti_history_move(task->use->view->history, device,
                           transfer->writes ? TUTTI_UPLOAD : TUTTI_DOWNLOAD,
                           transfer->region.size[0]);
    cl_int error;
    if (storage[0]->bytes) {
        task->result = CL_COMPLETE;
        error = move_by_host(transfer, device, queue, storage[0]->bytes);
    } else {
        error = move(transfer, device, queue, storage[0]->mem, event);
    }
    if (transfer->mapping == TUTTI_UNMAP) /* nobody can bring anything there before it is over */
        tutti_transfer_end_map(transfer);
    return error;
}

void tutti_transfer_offer(struct tutti_transfer *transfer) {
    cl_mem mem = transfer->mem[0];
    struct tutti_device_task *task = &transfer->task;
    if (!tutti_region_is_linear(&transfer->region) || mem->type != CL_MEM_OBJECT_BUFFER ||
        mem->parent || (mem->host_ptr && !transfer->mapping))
        return;
    task->enqueue = enqueue;
    task->command.joins = true;
    task->devices = mem->devices;
    task->use = &transfer->direct;
    task->count = 1;
}

/* The bytes that have to move, or SIZE_MAX if they are too many. */
static size_t small_bytes(const struct tutti_transfer *transfer, const struct tutti_view *view,
                          bool whole) {
    size_t size = transfer->region.size[0];
    bool at_home = view->seat && view->seat->at_home;
    if (transfer->mapping && (at_home || (transfer->mapping == TUTTI_UNMAP && !transfer->writes)))
        return 0;
    size_t most = whole && !transfer->mapping && !at_home ? LARGEST_OVERWRITE : LARGEST;
    bool small = size <= most || (most == LARGEST && size <= LARGEST_PINNED &&
                                  tutti_pinned_covers(host_bytes(transfer), size));
    return small ? size : SIZE_MAX;
}

/*
 * An unmap is done even if a command failed that it waits for, which is not known yet of those that
 * only its end waits for. It gives back what a map that did not fail noted.
 */
static bool is_doubtful(const struct tutti_transfer *transfer) {
    cl_event event = transfer->command.event;
    pthread_mutex_lock(&event->context->graph.lock);
    bool doubtful = event->unresolved > 0 || event->failed;
    pthread_mutex_unlock(&event->context->graph.lock);
    return doubtful || (transfer->writes && !tutti_transfer_is_mapped(transfer));
}

bool tutti_transfer_go_direct(struct tutti_transfer *transfer) {
    cl_mem mem = transfer->mem[0];
    struct tutti_device_task *task = &transfer->task;
    struct tutti_view *view = mem->view;
    bool whole = transfer->writes && transfer->region.size[0] == mem->size;
    size_t bytes = small_bytes(transfer, view, whole);
    if (view->sibling || !view->defined || bytes == SIZE_MAX ||
        tutti_version_pins(mem) > (transfer->mapping ? 1 : 0))
        return false;
    task->time = TIME + (double)bytes / RATE;
    transfer->direct = (struct tutti_device_use){
        .view = view,
        .mode = whole              ? STARPU_W
                : transfer->writes ? STARPU_RW
                                   : STARPU_R,
    };
    if (!tutti_batch_would_take(task))
        return false;
    transfer->view[0] = tutti_version_take(mem, false);
    if (transfer->mapping == TUTTI_UNMAP && is_doubtful(transfer)) {
        tutti_version_give_back(transfer->view[0]);
        transfer->view[0] = NULL;
        return false;
    }
    if (whole && !transfer->mapping)
        tutti_history_overwrite(&mem->history);
    tutti_batch_add(task);
    return true;
}
