/* SPDX-License-Identifier: MIT */
#include "memory/device_copy.h"

#include "memory/image.h"
#include "memory/locked_pages.h"
#include "memory/pinned.h"
#include "memory/room.h"
#include "memory/staging.h"
#include "memory/transfer_path.h"
#include "sched/link.h"
#include "sched/pool.h"
#include "virtual_device/driver.h"

#define LEAST_WITH_EVENT ((size_t)128 << 10)
#define MOST_BLOCKING ((size_t)8 << 20)

/*
 * NVIDIA's driver counts a whole pitch for the last slice and for the last row, which may reach
 * past the end of a buffer. Without more slices the place can be named by its first byte alone,
 * which it does not add to the rows.
 */
static struct tutti_place without_slices(const struct tutti_place *place,
                                         const struct tutti_region *region) {
    struct tutti_place flat = *place;
    if (region->size[2] > 1)
        return flat;
    flat.origin[0] = tutti_place_first(place);
    flat.origin[1] = flat.origin[2] = 0;
    flat.slice_pitch = place->row_pitch * region->size[1];
    return flat;
}

bool tutti_copy_overhangs(const struct tutti_view *view, const struct tutti_place *place,
                          const struct tutti_region *region) {
    if (tutti_shape_is_boxed(&view->shape) || tutti_region_is_linear(region))
        return false;
    return region->size[2] > 1
               ? (place->origin[2] + region->size[2]) * place->slice_pitch > view->size
               : region->size[1] * place->row_pitch > view->size;
}

/* What overhangs goes in two: its last slice, or row, by itself. */
static int outermost(const struct tutti_region *region) { return region->size[2] > 1 ? 2 : 1; }

static struct tutti_region but_last(const struct tutti_region *region) {
    struct tutti_region most = *region;
    most.size[outermost(region)]--;
    return most;
}

static struct tutti_region only_last(const struct tutti_region *region) {
    struct tutti_region last = *region;
    last.size[outermost(region)] = 1;
    return last;
}

static struct tutti_place at_last(const struct tutti_place *place,
                                  const struct tutti_region *region) {
    struct tutti_place last = *place;
    last.origin[outermost(region)] += region->size[outermost(region)] - 1;
    return last;
}

static cl_int enqueue_read(const struct tutti_copy *copy, cl_command_queue queue,
                           const struct tutti_place *from, void *target,
                           const struct tutti_place *to, const struct tutti_region *region,
                           cl_bool blocking, cl_event *event) {
    const cl_icd_dispatch *driver = copy->device->dispatch;
    if (tutti_region_is_linear(region))
        return driver->clEnqueueReadBuffer(queue, copy->mem, blocking, tutti_place_first(from),
                                           region->size[0], (char *)target + tutti_place_first(to),
                                           0, NULL, event);
    struct tutti_place there = without_slices(from, region);
    return driver->clEnqueueReadBufferRect(queue, copy->mem, blocking, there.origin, to->origin,
                                           region->size, there.row_pitch, there.slice_pitch,
                                           to->row_pitch, to->slice_pitch, target, 0, NULL, event);
}

static cl_int enqueue_write(const struct tutti_copy *copy, cl_command_queue queue,
                            const struct tutti_place *to, const void *source,
                            const struct tutti_place *from, const struct tutti_region *region,
                            cl_bool blocking, cl_event *event) {
    const cl_icd_dispatch *driver = copy->device->dispatch;
    if (tutti_region_is_linear(region))
        return driver->clEnqueueWriteBuffer(
            queue, copy->mem, blocking, tutti_place_first(to), region->size[0],
            (const char *)source + tutti_place_first(from), 0, NULL, event);
    struct tutti_place there = without_slices(to, region);
    return driver->clEnqueueWriteBufferRect(
        queue, copy->mem, blocking, there.origin, from->origin, region->size, there.row_pitch,
        there.slice_pitch, from->row_pitch, from->slice_pitch, source, 0, NULL, event);
}

cl_int tutti_copy_enqueue(const struct tutti_copy *copy, cl_command_queue queue, bool to_device,
                          const struct tutti_place *there, void *memory,
                          const struct tutti_place *here, const struct tutti_region *region,
                          bool blocking, cl_event *event) {
    cl_bool block = blocking ? CL_TRUE : CL_FALSE;
    cl_int error;
    tutti_locked_pages_wait_part(memory, here, region);
    do
        error = to_device ? enqueue_write(copy, queue, there, memory, here, region, block, event)
                          : enqueue_read(copy, queue, there, memory, here, region, block, event);
    while (tutti_locked_pages_gave_way(error, memory, here, region));
    return error;
}

static cl_int enqueue_image(const struct tutti_view *view, const struct tutti_copy *copy,
                            bool to_device, const struct tutti_place *there, void *memory,
                            const struct tutti_place *here, const struct tutti_region *region,
                            cl_event *event) {
    return to_device ? tutti_image_write(copy->device, &view->shape, copy->mem, there, memory, here,
                                         region, event)
                     : tutti_image_read(copy->device, &view->shape, copy->mem, there, memory, here,
                                        region, event);
}

/* Starts to move a part by one command of the driver's; without `event`, moves it. */
static cl_int start_move(const struct tutti_view *view, const struct tutti_copy *copy,
                         bool to_device, const struct tutti_place *there, void *memory,
                         const struct tutti_place *here, const struct tutti_region *region,
                         cl_event *event) {
    const struct tutti_real_device *device = copy->device;
    cl_command_queue queue = to_device ? device->place.uploads : device->place.downloads;
    tutti_driver_lock(device);
    cl_int error = tutti_shape_is_boxed(&view->shape)
                       ? enqueue_image(view, copy, to_device, there, memory, here, region, event)
                       : tutti_copy_enqueue(copy, queue, to_device, there, memory, here, region,
                                            !event, event);
    if (error == CL_SUCCESS && event)
        device->dispatch->clFlush(queue);
    tutti_driver_unlock(device);
    return error;
}

/* `expected`: see tutti_driver_await. */
static cl_int end_move(const struct tutti_real_device *device, cl_event event, double expected) {
    tutti_driver_lock(device);
    cl_int error = tutti_driver_await(device, event, expected);
    device->dispatch->clReleaseEvent(event);
    tutti_driver_unlock(device);
    return error;
}

/* µs, if nothing else is under way. */
static double expect(const struct tutti_real_device *device, bool to_device, size_t bytes) {
    struct tutti_link link = tutti_link_expect(device, to_device ? TUTTI_UPLOAD : TUTTI_DOWNLOAD);
    return link.latency + (double)bytes / link.rate;
}

/* What the queue of uploads does without the host's memory. With the driver's lock. */
static cl_int end_upload(const struct tutti_real_device *device, cl_event event) {
    device->dispatch->clFlush(device->place.uploads);
    return tutti_driver_wait(device, event);
}

/* A blocking write may return before its end, once the host's memory may be used again (5.2.2). */
static cl_int finish_uploads(const struct tutti_real_device *device) {
    tutti_driver_lock(device);
    cl_int error = device->dispatch->clFinish(device->place.uploads);
    tutti_driver_unlock(device);
    return error;
}

/*
 * NVIDIA's driver keeps a lock for the length of a blocking command: the two directions would wait
 * for each other, and kernels for both. A small part is over before an event is made. So much as
 * MOST_BLOCKING is only worth it to a program that waits for nothing else: from ordinary memory the
 * driver takes half the time of a command with an event.
 */
static bool may_block(const struct tutti_real_device *device, size_t bytes) {
    return bytes < LEAST_WITH_EVENT ||
           (bytes < MOST_BLOCKING && !tutti_pool_is_here() && tutti_room_working(device) == 0 &&
            !tutti_link_is_shared(device));
}

/* All at once. */
static cl_int move(const struct tutti_view *view, const struct tutti_copy *copy, bool to_device,
                   const struct tutti_place *there, void *memory, const struct tutti_place *here,
                   const struct tutti_region *region) {
    cl_event event;
    if (may_block(copy->device, tutti_region_bytes(region))) {
        cl_int error = start_move(view, copy, to_device, there, memory, here, region, NULL);
        return error == CL_SUCCESS && to_device ? finish_uploads(copy->device) : error;
    }
    cl_int error = start_move(view, copy, to_device, there, memory, here, region, &event);
    return error == CL_SUCCESS
               ? end_move(copy->device, event,
                          expect(copy->device, to_device, tutti_region_bytes(region)))
               : error;
}

/* The device's end of a staged transfer. */
struct far_end {
    struct tutti_staging staging;
    const struct tutti_view *view;
    const struct tutti_copy *copy;
};

static cl_int start_part(const struct tutti_staging *staging, const struct tutti_place *there,
                         void *pinned, const struct tutti_place *packed,
                         const struct tutti_region *part, cl_event *event) {
    const struct far_end *end = (const struct far_end *)(const void *)staging;
    return start_move(end->view, end->copy, staging->to_device, there, pinned, packed, part, event);
}

static cl_int wait_for_part(const struct tutti_staging *staging, cl_event event) {
    const struct far_end *end = (const struct far_end *)(const void *)staging;
    return end_move(end->copy->device, event, 0);
}

/* Is the memory one that the driver would have to stage? Then done in chunks, with `*error`. */
static bool stage(const struct tutti_view *view, const struct tutti_copy *copy, bool to_device,
                  const struct tutti_place *there, void *memory, const struct tutti_place *here,
                  const struct tutti_region *region, cl_int *error) {
    unsigned threads = tutti_transfer_path_threads(copy->device, tutti_region_bytes(region));
    size_t first = tutti_place_first(here);
    if (!threads ||
        tutti_pinned_covers((char *)memory + first, tutti_place_end(here, region) - first))
        return false;
    struct far_end end = {{start_part, wait_for_part, to_device}, view, copy};
    *error = tutti_staging_run(&end.staging, threads, there, memory, here, region);
    return *error != CL_OUT_OF_HOST_MEMORY;
}

cl_int tutti_copy_read(const struct tutti_view *view, const struct tutti_copy *copy,
                       const struct tutti_place *from, void *target, const struct tutti_place *to,
                       const struct tutti_region *region) {
    cl_int error;
    if (!copy->mem)
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    if (tutti_copy_overhangs(view, from, region) && !copy->bytes) {
        struct tutti_region most = but_last(region), last = only_last(region);
        struct tutti_place last_from = at_last(from, region), last_to = at_last(to, region);
        error = tutti_copy_read(view, copy, from, target, to, &most);
        return error == CL_SUCCESS
                   ? tutti_copy_read(view, copy, &last_from, target, &last_to, &last)
                   : error;
    }
    tutti_history_move(view->history, copy->device, TUTTI_DOWNLOAD, tutti_region_bytes(region));
    tutti_link_begin(copy->device, TUTTI_DOWNLOAD, tutti_region_bytes(region));
    if (copy->bytes) {
        struct tutti_place packed = tutti_view_packed(view, from);
        tutti_staging_copy(target, to, copy->bytes, &packed, region);
        error = CL_SUCCESS;
    } else if (!stage(view, copy, false, from, target, to, region, &error)) {
        error = move(view, copy, false, from, target, to, region);
    }
    tutti_link_end(copy->device, TUTTI_DOWNLOAD, tutti_region_bytes(region));
    return error;
}

cl_int tutti_copy_write(const struct tutti_view *view, const struct tutti_copy *copy,
                        const struct tutti_place *to, const void *source,
                        const struct tutti_place *from, const struct tutti_region *region) {
    cl_int error;
    if (!copy->mem)
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    if (tutti_copy_overhangs(view, to, region) && !copy->bytes) {
        struct tutti_region most = but_last(region), last = only_last(region);
        struct tutti_place last_from = at_last(from, region), last_to = at_last(to, region);
        error = tutti_copy_write(view, copy, to, source, from, &most);
        return error == CL_SUCCESS
                   ? tutti_copy_write(view, copy, &last_to, source, &last_from, &last)
                   : error;
    }
    tutti_history_move(view->history, copy->device, TUTTI_UPLOAD, tutti_region_bytes(region));
    tutti_link_begin(copy->device, TUTTI_UPLOAD, tutti_region_bytes(region));
    if (copy->bytes) {
        struct tutti_place packed = tutti_view_packed(view, to);
        tutti_staging_copy(copy->bytes, &packed, source, from, region);
        error = CL_SUCCESS;
    } else if (!stage(view, copy, true, to, (void *)(uintptr_t)source, from, region, &error)) {
        error = move(view, copy, true, to, (void *)(uintptr_t)source, from, region);
    }
    tutti_link_end(copy->device, TUTTI_UPLOAD, tutti_region_bytes(region));
    return error;
}

cl_int tutti_copy_start(const struct tutti_view *view, const struct tutti_copy *copy,
                        bool to_device, const struct tutti_place *there, void *memory,
                        const struct tutti_place *here, const struct tutti_region *region,
                        cl_event *event) {
    *event = NULL;
    if (!copy->bytes) {
        cl_int error = start_move(view, copy, to_device, there, memory, here, region, event);
        if (error != CL_SUCCESS)
            *event = NULL;
        return error;
    }
    if (to_device)
        tutti_region_copy(copy->bytes, there, memory, here, region);
    else
        tutti_region_copy(memory, here, copy->bytes, there, region);
    return CL_SUCCESS;
}

void tutti_copy_end(const struct tutti_copy *copy, cl_event *event, cl_int *error) {
    cl_int result = *event ? end_move(copy->device, *event, 0) : CL_SUCCESS;
    *event = NULL;
    if (*error == CL_SUCCESS)
        *error = result;
}

cl_int tutti_copy_enqueue_fill(const struct tutti_copy *copy, cl_command_queue queue, size_t offset,
                               size_t size, const void *pattern, size_t pattern_size,
                               cl_event *event) {
    return copy->device->dispatch->clEnqueueFillBuffer(queue, copy->mem, pattern, pattern_size,
                                                       offset, size, 0, NULL, event);
}

cl_int tutti_copy_fill(const struct tutti_copy *copy, size_t offset, size_t size,
                       const void *pattern, size_t pattern_size) {
    const struct tutti_real_device *device = copy->device;
    if (!copy->mem)
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    if (copy->bytes) {
        tutti_region_fill(copy->bytes + offset, size, pattern, pattern_size);
        return CL_SUCCESS;
    }
    cl_event event;
    tutti_driver_lock(device);
    cl_int error = tutti_copy_enqueue_fill(copy, device->place.uploads, offset, size, pattern,
                                           pattern_size, &event);
    if (error == CL_SUCCESS)
        error = end_upload(device, event);
    tutti_driver_unlock(device);
    return error;
}

cl_int tutti_copy_fill_image(const struct tutti_view *view, const struct tutti_copy *copy,
                             const struct tutti_place *place, const struct tutti_region *region,
                             const void *color, const void *pixel) {
    const struct tutti_real_device *device = copy->device;
    if (!copy->mem)
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    if (copy->bytes) {
        struct tutti_place packed = tutti_view_packed(view, place);
        tutti_region_fill_box(copy->bytes, &packed, region, pixel, view->shape.element);
        return CL_SUCCESS;
    }
    struct tutti_box box = tutti_box_of(&view->shape, place, region);
    cl_event event;
    tutti_driver_lock(device);
    cl_int error = device->dispatch->clEnqueueFillImage(device->place.uploads, copy->mem, color,
                                                        box.origin, box.region, 0, NULL, &event);
    if (error == CL_SUCCESS)
        error = end_upload(device, event);
    tutti_driver_unlock(device);
    return error;
}

/* Enqueues a copy of which one end is an image, or both are. A buffer's part has no padding. */
static cl_int enqueue_image_copy(const struct tutti_copy_end *source,
                                 const struct tutti_copy_end *target,
                                 const struct tutti_region *region, cl_event *event) {
    const struct tutti_real_device *device = target->copy->device;
    const cl_icd_dispatch *driver = device->dispatch;
    cl_command_queue queue = device->place.uploads;
    const struct tutti_shape *from = &source->view->shape, *to = &target->view->shape;
    struct tutti_box source_box, target_box;
    if (tutti_shape_is_boxed(from))
        source_box = tutti_box_of(from, source->place, region);
    if (tutti_shape_is_boxed(to))
        target_box = tutti_box_of(to, target->place, region);
    if (!tutti_shape_is_boxed(to))
        return driver->clEnqueueCopyImageToBuffer(queue, source->copy->mem, target->copy->mem,
                                                  source_box.origin, source_box.region,
                                                  tutti_place_first(target->place), 0, NULL, event);
    if (!tutti_shape_is_boxed(from))
        return driver->clEnqueueCopyBufferToImage(
            queue, source->copy->mem, target->copy->mem, tutti_place_first(source->place),
            target_box.origin, target_box.region, 0, NULL, event);
    return driver->clEnqueueCopyImage(queue, source->copy->mem, target->copy->mem,
                                      source_box.origin, target_box.origin, source_box.region, 0,
                                      NULL, event);
}

cl_int tutti_copy_enqueue_copy(const struct tutti_copy_end *source,
                               const struct tutti_copy_end *target,
                               const struct tutti_region *region, cl_command_queue queue,
                               cl_event *event) {
    const cl_icd_dispatch *driver = source->copy->device->dispatch;
    const struct tutti_place *from = source->place, *to = target->place;
    if (tutti_region_is_linear(region))
        return driver->clEnqueueCopyBuffer(queue, source->copy->mem, target->copy->mem,
                                           tutti_place_first(from), tutti_place_first(to),
                                           region->size[0], 0, NULL, event);
    struct tutti_place flat_from = without_slices(from, region);
    struct tutti_place flat_to = without_slices(to, region);
    return driver->clEnqueueCopyBufferRect(queue, source->copy->mem, target->copy->mem,
                                           flat_from.origin, flat_to.origin, region->size,
                                           flat_from.row_pitch, flat_from.slice_pitch,
                                           flat_to.row_pitch, flat_to.slice_pitch, 0, NULL, event);
}

/* The same row by row; `event` is the last one's. */
static cl_int enqueue_rows(const struct tutti_copy_end *source, const struct tutti_copy_end *target,
                           const struct tutti_region *region, cl_event *event) {
    const struct tutti_real_device *device = target->copy->device;
    const struct tutti_place *from = source->place, *to = target->place;
    size_t rows = region->size[1] * region->size[2];
    cl_int error = CL_SUCCESS;
    for (size_t row = 0; row < rows && error == CL_SUCCESS; row++) {
        size_t y = row % region->size[1], z = row / region->size[1];
        error = device->dispatch->clEnqueueCopyBuffer(
            device->place.uploads, source->copy->mem, target->copy->mem,
            tutti_place_first(from) + z * from->slice_pitch + y * from->row_pitch,
            tutti_place_first(to) + z * to->slice_pitch + y * to->row_pitch, region->size[0], 0,
            NULL, row == rows - 1 ? event : NULL);
    }
    return error;
}

cl_int tutti_copy_copy(const struct tutti_copy_end *source, const struct tutti_copy_end *target,
                       const struct tutti_region *region) {
    const struct tutti_real_device *device = target->copy->device;
    if (!source->copy->mem || !target->copy->mem)
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    if (source->copy->bytes && target->copy->bytes) {
        struct tutti_place from = tutti_view_packed(source->view, source->place);
        struct tutti_place to = tutti_view_packed(target->view, target->place);
        tutti_staging_copy(target->copy->bytes, &to, source->copy->bytes, &from, region);
        return CL_SUCCESS;
    }
    if (tutti_copy_overhangs(source->view, source->place, region) ||
        tutti_copy_overhangs(target->view, target->place, region)) {
        struct tutti_region most = but_last(region), last = only_last(region);
        struct tutti_place from = at_last(source->place, region);
        struct tutti_place to = at_last(target->place, region);
        struct tutti_copy_end last_source = {source->view, source->copy, &from};
        struct tutti_copy_end last_target = {target->view, target->copy, &to};
        cl_int error = tutti_copy_copy(source, target, &most);
        return error == CL_SUCCESS ? tutti_copy_copy(&last_source, &last_target, &last) : error;
    }
    bool image =
        tutti_shape_is_boxed(&source->view->shape) || tutti_shape_is_boxed(&target->view->shape);
    cl_event event;
    tutti_driver_lock(device);
    cl_int error =
        image ? enqueue_image_copy(source, target, region, &event)
              : tutti_copy_enqueue_copy(source, target, region, device->place.uploads, &event);
    /* PoCL 3.1 takes boxes of one buffer for overlapping that do not: who asked was told before. */
    if (error == CL_MEM_COPY_OVERLAP)
        error = enqueue_rows(source, target, region, &event);
    if (error == CL_SUCCESS)
        error = end_upload(device, event);
    tutti_driver_unlock(device);
    return error;
}
