/* SPDX-License-Identifier: MIT */
#include "memory/access.h"

#include "memory/color.h"
#include "memory/image.h"
#include "memory/traffic.h"

#include <stdlib.h>
#include <string.h>

/* Waits for a real command and gives its event back. */
static cl_int wait_for(const cl_icd_dispatch *driver, cl_event event) {
    cl_int error = driver->clWaitForEvents(1, &event);
    cl_int status = CL_COMPLETE;
    if (error == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST &&
        driver->clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
                               NULL) == CL_SUCCESS &&
        status < 0)
        error = status;
    driver->clReleaseEvent(event);
    return error;
}

static size_t bytes_of(const struct tutti_region *region) {
    return region->size[0] * region->size[1] * region->size[2];
}

static cl_int read_device(const struct tutti_view *view, const struct tutti_copy *copy,
                          const struct tutti_place *from, void *target,
                          const struct tutti_place *to, const struct tutti_region *region) {
    const struct tutti_real_device *device = copy->device;
    if (!copy->mem)
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    tutti_traffic_count(device, TUTTI_DOWNLOAD, bytes_of(region));
    if (copy->bytes) {
        struct tutti_place packed = tutti_view_packed(view, from);
        tutti_region_copy(target, to, copy->bytes, &packed, region);
        return CL_SUCCESS;
    }
    if (tutti_shape_is_boxed(&view->shape))
        return tutti_image_read(device, &view->shape, copy->mem, from, target, to, region, NULL);
    if (tutti_region_is_linear(region))
        return device->dispatch->clEnqueueReadBuffer(
            device->place.downloads, copy->mem, CL_TRUE, tutti_place_first(from), region->size[0],
            (char *)target + tutti_place_first(to), 0, NULL, NULL);
    return device->dispatch->clEnqueueReadBufferRect(
        device->place.downloads, copy->mem, CL_TRUE, from->origin, to->origin, region->size,
        from->row_pitch, from->slice_pitch, to->row_pitch, to->slice_pitch, target, 0, NULL, NULL);
}

static cl_int write_device(const struct tutti_view *view, const struct tutti_copy *copy,
                           const struct tutti_place *to, const void *source,
                           const struct tutti_place *from, const struct tutti_region *region) {
    const struct tutti_real_device *device = copy->device;
    if (!copy->mem)
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    tutti_traffic_count(device, TUTTI_UPLOAD, bytes_of(region));
    if (copy->bytes) {
        struct tutti_place packed = tutti_view_packed(view, to);
        tutti_region_copy(copy->bytes, &packed, source, from, region);
        return CL_SUCCESS;
    }
    if (tutti_shape_is_boxed(&view->shape))
        return tutti_image_write(device, &view->shape, copy->mem, to, source, from, region, NULL);
    if (tutti_region_is_linear(region))
        return device->dispatch->clEnqueueWriteBuffer(
            device->place.uploads, copy->mem, CL_TRUE, tutti_place_first(to), region->size[0],
            (const char *)source + tutti_place_first(from), 0, NULL, NULL);
    return device->dispatch->clEnqueueWriteBufferRect(
        device->place.uploads, copy->mem, CL_TRUE, to->origin, from->origin, region->size,
        to->row_pitch, to->slice_pitch, from->row_pitch, from->slice_pitch, source, 0, NULL, NULL);
}

static cl_int fill_device(const struct tutti_copy *copy, size_t offset, size_t size,
                          const void *pattern, size_t pattern_size) {
    const struct tutti_real_device *device = copy->device;
    if (!copy->mem)
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    if (copy->bytes) {
        tutti_region_fill(copy->bytes + offset, size, pattern, pattern_size);
        return CL_SUCCESS;
    }
    cl_event event;
    cl_int error = device->dispatch->clEnqueueFillBuffer(
        device->place.uploads, copy->mem, pattern, pattern_size, offset, size, 0, NULL, &event);
    return error == CL_SUCCESS ? wait_for(device->dispatch, event) : error;
}

static cl_int fill_image_device(const struct tutti_view *view, const struct tutti_copy *copy,
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
    cl_int error = device->dispatch->clEnqueueFillImage(device->place.uploads, copy->mem, color,
                                                        box.origin, box.region, 0, NULL, &event);
    return error == CL_SUCCESS ? wait_for(device->dispatch, event) : error;
}

/* One end of a copy on a device. */
struct end {
    const struct tutti_view *view;
    const struct tutti_copy *copy;
    const struct tutti_place *place;
};

/* Enqueues a copy of which one end is an image, or both are. A buffer's part has no padding. */
static cl_int enqueue_image_copy(const struct end *source, const struct end *target,
                                 const struct tutti_region *region, cl_event *event) {
    const struct tutti_real_device *device = source->copy->device;
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

static cl_int enqueue_buffer_copy(const struct end *source, const struct end *target,
                                  const struct tutti_region *region, cl_event *event) {
    const struct tutti_real_device *device = source->copy->device;
    const cl_icd_dispatch *driver = device->dispatch;
    const struct tutti_place *from = source->place, *to = target->place;
    if (tutti_region_is_linear(region))
        return driver->clEnqueueCopyBuffer(device->place.uploads, source->copy->mem,
                                           target->copy->mem, tutti_place_first(from),
                                           tutti_place_first(to), region->size[0], 0, NULL, event);
    return driver->clEnqueueCopyBufferRect(device->place.uploads, source->copy->mem,
                                           target->copy->mem, from->origin, to->origin,
                                           region->size, from->row_pitch, from->slice_pitch,
                                           to->row_pitch, to->slice_pitch, 0, NULL, event);
}

/* Both copies are on one device. */
static cl_int copy_on_device(const struct end *source, const struct end *target,
                             const struct tutti_region *region) {
    if (!source->copy->mem || !target->copy->mem)
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    if (source->copy->bytes && target->copy->bytes) {
        struct tutti_place from = tutti_view_packed(source->view, source->place);
        struct tutti_place to = tutti_view_packed(target->view, target->place);
        tutti_region_copy(target->copy->bytes, &to, source->copy->bytes, &from, region);
        return CL_SUCCESS;
    }
    bool image =
        tutti_shape_is_boxed(&source->view->shape) || tutti_shape_is_boxed(&target->view->shape);
    cl_event event;
    cl_int error = image ? enqueue_image_copy(source, target, region, &event)
                         : enqueue_buffer_copy(source, target, region, &event);
    return error == CL_SUCCESS ? wait_for(source->copy->device->dispatch, event) : error;
}

/* What a part of a view is read from: home memory if it is valid, else a device. */
static cl_int read_copies(struct tutti_view *view, const struct tutti_copies *copies,
                          const struct tutti_place *from, void *target,
                          const struct tutti_place *to, const struct tutti_region *region) {
    if (!copies->home && copies->count)
        return read_device(view, &copies->on[0], from, target, to, region);
    void *home = tutti_view_home(view);
    if (!home)
        return CL_OUT_OF_HOST_MEMORY;
    struct tutti_place at_home = tutti_view_at_home(view, from);
    tutti_region_copy(target, to, home, &at_home, region);
    return CL_SUCCESS;
}

cl_int tutti_access_read(struct tutti_view *view, const struct tutti_place *from, void *target,
                         const struct tutti_place *to, const struct tutti_region *region) {
    struct tutti_copies copies;
    tutti_view_copies(view, &copies);
    return read_copies(view, &copies, from, target, to, region);
}

cl_int tutti_access_write(struct tutti_view *view, const struct tutti_place *to, const void *source,
                          const struct tutti_place *from, const struct tutti_region *region) {
    struct tutti_copies copies;
    tutti_view_copies(view, &copies);
    if (copies.home) {
        void *home = tutti_view_home(view);
        if (!home)
            return CL_OUT_OF_HOST_MEMORY;
        struct tutti_place at_home = tutti_view_at_home(view, to);
        tutti_region_copy(home, &at_home, source, from, region);
    }
    cl_int result = CL_SUCCESS;
    for (unsigned i = 0; i < copies.count; i++) {
        cl_int error = write_device(view, &copies.on[i], to, source, from, region);
        if (error != CL_SUCCESS)
            result = error;
    }
    return result;
}

cl_int tutti_access_fill(struct tutti_view *view, size_t offset, size_t size, const void *pattern,
                         size_t pattern_size) {
    struct tutti_copies copies;
    tutti_view_copies(view, &copies);
    if (copies.home) {
        char *home = tutti_view_home(view);
        if (!home)
            return CL_OUT_OF_HOST_MEMORY;
        tutti_region_fill(home + offset, size, pattern, pattern_size);
    }
    cl_int result = CL_SUCCESS;
    for (unsigned i = 0; i < copies.count; i++) {
        cl_int error = fill_device(&copies.on[i], offset, size, pattern, pattern_size);
        if (error != CL_SUCCESS)
            result = error;
    }
    return result;
}

cl_int tutti_access_fill_image(struct tutti_view *view, const struct tutti_place *place,
                               const struct tutti_region *region, const void *color) {
    unsigned char pixel[TUTTI_LARGEST_PIXEL];
    tutti_color_pack(&view->shape.format, color, pixel);
    if (!tutti_shape_is_boxed(&view->shape)) /* over a buffer */
        return tutti_access_fill(view, tutti_place_first(place), region->size[0], pixel,
                                 view->shape.element);
    struct tutti_copies copies;
    tutti_view_copies(view, &copies);
    if (copies.home) {
        char *home = tutti_view_home(view);
        if (!home)
            return CL_OUT_OF_HOST_MEMORY;
        struct tutti_place at_home = tutti_view_at_home(view, place);
        tutti_region_fill_box(home, &at_home, region, pixel, view->shape.element);
    }
    cl_int result = CL_SUCCESS;
    for (unsigned i = 0; i < copies.count; i++) {
        cl_int error = fill_image_device(view, &copies.on[i], place, region, color, pixel);
        if (error != CL_SUCCESS)
            result = error;
    }
    return result;
}

static const struct tutti_copy *copy_on(const struct tutti_copies *copies,
                                        const struct tutti_real_device *device) {
    for (unsigned i = 0; i < copies->count; i++)
        if (copies->on[i].device == device)
            return &copies->on[i];
    return NULL;
}

/* A packed region of host memory. */
static struct tutti_place packed(const struct tutti_region *region) {
    return (struct tutti_place){{0, 0, 0}, region->size[0], region->size[0] * region->size[1]};
}

cl_int tutti_access_copy(struct tutti_view *source, const struct tutti_place *from,
                         struct tutti_view *target, const struct tutti_place *to,
                         const struct tutti_region *region) {
    struct tutti_copies sources, targets;
    tutti_view_copies(source, &sources);
    tutti_view_copies(target, &targets);
    char *source_home = sources.home ? tutti_view_home(source) : NULL;
    char *target_home = targets.home ? tutti_view_home(target) : NULL;
    if ((sources.home && !source_home) || (targets.home && !target_home))
        return CL_OUT_OF_HOST_MEMORY;

    void *bounce = NULL; /* the source's region, when it is neither near nor in home memory */
    struct tutti_place bounced = packed(region);
    cl_int result = CL_SUCCESS;
    for (unsigned i = 0; i < targets.count && result == CL_SUCCESS; i++) {
        const struct tutti_copy *near = copy_on(&sources, targets.on[i].device);
        if (near) {
            struct end near_end = {source, near, from}, far_end = {target, &targets.on[i], to};
            result = copy_on_device(&near_end, &far_end, region);
        } else if (source_home) {
            struct tutti_place at_home = tutti_view_at_home(source, from);
            result = write_device(target, &targets.on[i], to, source_home, &at_home, region);
        } else {
            if (!bounce && (bounce = malloc(bytes_of(region))))
                result = read_copies(source, &sources, from, bounce, &bounced, region);
            if (!bounce)
                result = CL_OUT_OF_HOST_MEMORY;
            if (result == CL_SUCCESS)
                result = write_device(target, &targets.on[i], to, bounce, &bounced, region);
        }
    }
    free(bounce);
    if (target_home && result == CL_SUCCESS) {
        struct tutti_place at_home = tutti_view_at_home(target, to);
        result = read_copies(source, &sources, from, target_home, &at_home, region);
    }
    return result;
}

cl_int tutti_access_pull(struct tutti_view *view, const struct tutti_place *place,
                         const struct tutti_region *region) {
    struct tutti_copies copies;
    tutti_view_copies(view, &copies);
    if (copies.home || !copies.count)
        return CL_SUCCESS;
    char *home = tutti_view_home(view);
    if (!home)
        return CL_OUT_OF_HOST_MEMORY;
    struct tutti_place at_home = tutti_view_at_home(view, place);
    return read_device(view, &copies.on[0], place, home, &at_home, region);
}

cl_int tutti_access_push(struct tutti_view *view, const struct tutti_place *place,
                         const struct tutti_region *region) {
    struct tutti_copies copies;
    tutti_view_copies(view, &copies);
    char *home = tutti_view_home(view);
    if (!home)
        return CL_OUT_OF_HOST_MEMORY;
    struct tutti_place at_home = tutti_view_at_home(view, place);
    cl_int result = CL_SUCCESS;
    for (unsigned i = 0; i < copies.count; i++) {
        cl_int error = write_device(view, &copies.on[i], place, home, &at_home, region);
        if (error != CL_SUCCESS)
            result = error;
    }
    return result;
}
