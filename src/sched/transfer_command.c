/* SPDX-License-Identifier: MIT */
/* Read, write, copy and fill. */
#include "memory/access.h"
#include "memory/coherence.h"
#include "memory/transfer_path.h"
#include "memory/version.h"
#include "sched/copy_task.h"
#include "sched/straight.h"
#include "sched/transfer.h"

#include <string.h>

static bool covers(const struct tutti_region *region, cl_mem buffer) {
    return tutti_region_is_linear(region) && region->size[0] == buffer->size &&
           !tutti_mem_is_image(buffer);
}

/* Before a write of mem[i]'s part that `transfer` names: what it makes of the views. */
static bool prepare_write(struct tutti_transfer *transfer, int i) {
    const struct tutti_region *region = &transfer->region;
    bool linear = tutti_region_is_linear(region);
    cl_mem mem = transfer->mem[i];
    bool whole = covers(region, mem);
    struct tutti_view *view = transfer->view[i] =
        tutti_version_take(mem, whole && !transfer->command.keeps_storage, transfer->user);
    size_t begin = tutti_transfer_first(transfer, i), end = tutti_transfer_end(transfer, i);
    if (!tutti_coherence_write(view, begin, end, linear))
        return false;
    whole = tutti_view_is_whole(view, &transfer->place[i], region);
    view->defined = true;
    const struct tutti_real_device *device =
        whole && i == 0 ? tutti_straight_device(view, mem) : NULL;
    if (whole)
        view->placed = device ? 1u << device->index : 0;
    /* Where all is in home memory it stays valid for the devices that work there. */
    bool in_place = !whole || tutti_transfer_path_is_home(tutti_history_users(&mem->history));
    if (device)
        tutti_acquisition_add_on(&transfer->acquisition, view, device);
    else
        tutti_acquisition_add(&transfer->acquisition, view,
                              in_place ? TUTTI_WRITES : TUTTI_OVERWRITES);
    return true;
}

static cl_int execute_read(struct tutti_transfer *transfer) {
    return tutti_access_read(transfer->view[0], &transfer->place[0], transfer->target,
                             &transfer->place[1], &transfer->region);
}

struct tutti_command *tutti_transfer_read(cl_mem mem, const struct tutti_place *from, void *target,
                                          const struct tutti_place *to,
                                          const struct tutti_region *region) {
    struct tutti_transfer *transfer =
        tutti_transfer_create(execute_read, tutti_transfer_prepare_read, mem, NULL);
    if (!transfer)
        return NULL;
    transfer->place[0] = *from;
    transfer->place[1] = *to;
    transfer->region = *region;
    transfer->target = target;
    tutti_transfer_note_host(transfer, target, true);
    tutti_transfer_offer(transfer);
    return &transfer->command;
}

static bool prepare_host_write(struct tutti_transfer *transfer) {
    return prepare_write(transfer, 0);
}

static cl_int execute_write(struct tutti_transfer *transfer) {
    return tutti_access_write(transfer->view[0], &transfer->place[0], transfer->source,
                              &transfer->place[1], &transfer->region);
}

struct tutti_command *tutti_transfer_write(cl_mem mem, const struct tutti_place *to,
                                           const void *source, const struct tutti_place *from,
                                           const struct tutti_region *region) {
    struct tutti_transfer *transfer =
        tutti_transfer_create(execute_write, prepare_host_write, mem, NULL);
    if (!transfer)
        return NULL;
    transfer->writes = true;
    transfer->place[0] = *to;
    transfer->place[1] = *from;
    transfer->region = *region;
    transfer->source = source;
    tutti_transfer_note_host(transfer, source, false);
    tutti_transfer_offer(transfer);
    return &transfer->command;
}

static bool prepare_copy(struct tutti_transfer *transfer) {
    struct tutti_view *source = tutti_transfer_take(transfer);
    if (!tutti_coherence_read(source, tutti_transfer_first(transfer, 0),
                              tutti_transfer_end(transfer, 0)))
        return false;
    tutti_acquisition_add(&transfer->acquisition, source, TUTTI_READS);
    return prepare_write(transfer, 1);
}

static cl_int execute_copy(struct tutti_transfer *transfer) {
    return tutti_access_copy(transfer->view[0], &transfer->place[0], transfer->view[1],
                             &transfer->place[1], &transfer->region);
}

struct tutti_command *tutti_transfer_copy(cl_mem source, const struct tutti_place *from,
                                          cl_mem target, const struct tutti_place *to,
                                          const struct tutti_region *region) {
    if (covers(region, target) && !tutti_mem_is_image(source) && source != target &&
        !source->is_svm && !target->is_svm) {
        unsigned devices = tutti_copy_task_devices(source, target);
        if (devices)
            return tutti_copy_task_create(source, tutti_place_first(from), target, devices);
    }
    struct tutti_transfer *transfer =
        tutti_transfer_create(execute_copy, prepare_copy, source, target);
    if (!transfer)
        return NULL;
    transfer->place[0] = *from;
    transfer->place[1] = *to;
    transfer->region = *region;
    tutti_transfer_offer_within(transfer);
    return &transfer->command;
}

static cl_int execute_fill(struct tutti_transfer *transfer) {
    return tutti_access_fill(transfer->view[0], tutti_transfer_first(transfer, 0),
                             transfer->region.size[0], transfer->pattern.bytes,
                             transfer->pattern.size);
}

struct tutti_command *tutti_transfer_fill(cl_mem mem, size_t offset, size_t size,
                                          const void *pattern, size_t pattern_size) {
    struct tutti_transfer *transfer =
        tutti_transfer_create(execute_fill, prepare_host_write, mem, NULL);
    if (!transfer)
        return NULL;
    transfer->writes = true;
    transfer->place[0] = tutti_place_linear(offset, size);
    transfer->region = tutti_region_linear(size);
    memcpy(transfer->pattern.bytes, pattern, pattern_size);
    transfer->pattern.size = pattern_size;
    tutti_transfer_offer_within(transfer);
    return &transfer->command;
}

static cl_int execute_fill_image(struct tutti_transfer *transfer) {
    return tutti_access_fill_image(transfer->view[0], &transfer->place[0], &transfer->region,
                                   transfer->pattern.bytes);
}

struct tutti_command *tutti_transfer_fill_image(cl_mem mem, const struct tutti_place *place,
                                                const struct tutti_region *region,
                                                const void *color, size_t color_size) {
    struct tutti_transfer *transfer =
        tutti_transfer_create(execute_fill_image, prepare_host_write, mem, NULL);
    if (!transfer)
        return NULL;
    transfer->writes = true;
    transfer->place[0] = *place;
    transfer->region = *region;
    memcpy(transfer->pattern.bytes, color, color_size);
    return &transfer->command;
}
