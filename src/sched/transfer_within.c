/* SPDX-License-Identifier: MIT */
/*
 * Fills and copies of buffers that kernels use, as commands of the device among its kernels: the
 * host would wait for the kernel before, and the next one for the host.
 */
#include "sched/transfer.h"

#include "memory/device_copy.h"
#include "memory/version.h"
#include "sched/append.h"
#include "sched/batch.h"
#include "sched/batch_users.h"
#include "sched/direct.h"
#include "virtual_device/driver.h"

static bool copies(const struct tutti_transfer *transfer) { return transfer->mem[1]; }

/* Which of a copy's two ends; a fill, and a copy within one buffer, have one. */
static unsigned target_of(const struct tutti_transfer *transfer) {
    return transfer->task.count - 1;
}

static void fill_by_host(const struct tutti_transfer *transfer,
                         const struct tutti_storage *const *storage) {
    tutti_region_fill((char *)storage[0]->bytes + tutti_transfer_first(transfer, 0),
                      transfer->region.size[0], transfer->pattern.bytes, transfer->pattern.size);
}

static void copy_by_host(const struct tutti_transfer *transfer,
                         const struct tutti_storage *const *storage) {
    tutti_region_copy(storage[target_of(transfer)]->bytes, &transfer->place[1], storage[0]->bytes,
                      &transfer->place[0], &transfer->region);
}

static cl_int enqueue(struct tutti_device_task *task, struct tutti_real_device *device,
                      cl_command_queue queue, const struct tutti_storage *const *storage,
                      cl_event *event) {
    struct tutti_transfer *transfer = (struct tutti_transfer *)task;
    if (storage[0]->bytes && !tutti_direct_streams(device))
        return tutti_transfer_by_host(transfer, device, queue,
                                      copies(transfer) ? copy_by_host : fill_by_host, storage);
    struct tutti_copy source = {.device = device, .mem = storage[0]->mem};
    struct tutti_copy target = {.device = device, .mem = storage[target_of(transfer)]->mem};
    struct tutti_copy_end from = {.copy = &source, .place = &transfer->place[0]};
    struct tutti_copy_end to = {.copy = &target, .place = &transfer->place[1]};
    tutti_driver_take(device);
    cl_int error = copies(transfer)
                       ? tutti_copy_enqueue_copy(&from, &to, &transfer->region, queue, event)
                       : tutti_copy_enqueue_fill(&source, queue, tutti_transfer_first(transfer, 0),
                                                 transfer->region.size[0], transfer->pattern.bytes,
                                                 transfer->pattern.size, event);
    tutti_driver_give(device);
    return error;
}

/* All of it, without padding, is written. */
static bool is_whole(const struct tutti_transfer *transfer, cl_mem target) {
    return tutti_region_is_linear(&transfer->region) && transfer->region.size[0] == target->size;
}

/* 0: the host does it sooner, or it is too long for its neighbours. */
static double time_of(const struct tutti_transfer *transfer, bool at_home) {
    size_t size = tutti_region_bytes(&transfer->region);
    if (!at_home)
        return tutti_transfer_time_within(size);
    if (tutti_transfer_is_streamed(transfer))
        return TUTTI_TRANSFER_TIME; /* it waits for nothing else */
    return tutti_transfer_is_crews(transfer) ? tutti_transfer_time_at_home(size) : 0;
}

/* A box is one command where drivers take it for what it is (device_copy.h). */
static bool is_one_command(const struct tutti_transfer *transfer) {
    if (tutti_region_is_linear(&transfer->region))
        return true;
    return transfer->region.size[2] == 1 && transfer->mem[0] != transfer->mem[1] &&
           !tutti_copy_overhangs(transfer->mem[0]->view, &transfer->place[0], &transfer->region) &&
           !tutti_copy_overhangs(transfer->mem[1]->view, &transfer->place[1], &transfer->region);
}

static bool may_use(cl_mem mem, bool reads) {
    const struct tutti_view *view = mem->view;
    return !mem->parent && !view->sibling && !view->svm && (view->defined || !reads) &&
           (view->at_home || tutti_version_pins(mem) == 0);
}

/* Where kernels used the bytes last, for both ends; at home anywhere. 0: the host does it. */
static unsigned find_devices(const struct tutti_view *source, const struct tutti_view *target) {
    if (source->at_home && target->at_home)
        return ~0u;
    bool apart = target->seat && target->seat != source->seat;
    return source->seat && !apart ? 1u << source->seat->index : 0;
}

static bool go_direct(struct tutti_transfer *transfer) {
    struct tutti_device_task *task = &transfer->task;
    cl_mem source = transfer->mem[0], target = copies(transfer) ? transfer->mem[1] : source;
    bool whole = is_whole(transfer, target), apart = source != target;
    enum starpu_data_access_mode mode = whole ? STARPU_W : STARPU_RW;
    if (!may_use(source, copies(transfer) || !whole) || !may_use(target, !whole) ||
        (whole && tutti_batch_is_kept_long(target->view)) || !is_one_command(transfer))
        return false;
    task->time = time_of(transfer, source->view->at_home && target->view->at_home);
    task->devices = source->devices & target->devices & find_devices(source->view, target->view);
    task->count = apart ? 2 : 1;
    transfer->direct[0] =
        (struct tutti_device_use){.view = source->view, .mode = apart ? STARPU_R : mode};
    transfer->direct[1] = (struct tutti_device_use){.view = target->view, .mode = mode};
    if (task->time == 0 || !task->devices || !tutti_batch_would_take(task))
        return false;
    for (unsigned i = 0; i < task->count; i++)
        transfer->view[i] = tutti_version_take(transfer->mem[i], false, TUTTI_USER_DEVICE);
    transfer->user = TUTTI_USER_DEVICE;
    target->view->defined = true;
    if (whole)
        tutti_history_overwrite(&target->history);
    tutti_batch_add(task);
    return true;
}

static bool moves(struct tutti_command *command, struct tutti_append_move *move) {
    struct tutti_transfer *transfer = (struct tutti_transfer *)command;
    cl_mem source = transfer->mem[0], target = copies(transfer) ? transfer->mem[1] : source;
    if ((copies(transfer) && source == target) || !is_one_command(transfer))
        return false;
    transfer->task.count = copies(transfer) ? 2 : 1;
    *move = (struct tutti_append_move){
        .mem = {source, target},
        .count = transfer->task.count,
        .whole = is_whole(transfer, target),
        .time = tutti_transfer_time_within(tutti_region_bytes(&transfer->region)),
    };
    return true;
}

void tutti_transfer_offer_within(struct tutti_transfer *transfer) {
    struct tutti_device_task *task = &transfer->task;
    for (int i = 0; i < 2; i++)
        if (transfer->mem[i] && transfer->mem[i]->type != CL_MEM_OBJECT_BUFFER)
            return;
    transfer->go_direct = go_direct;
    task->enqueue = enqueue;
    task->command.joins = true;
    task->command.moves = moves;
    task->use = transfer->direct;
}
