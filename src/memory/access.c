/* SPDX-License-Identifier: MIT */
#include "memory/access.h"

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

static cl_int read_device(const struct tutti_copy *copy, const struct tutti_place *from,
                          void *target, const struct tutti_place *to,
                          const struct tutti_region *region) {
    const struct tutti_real_device *device = copy->device;
    if (!copy->mem)
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    tutti_traffic_count(device, TUTTI_DOWNLOAD, bytes_of(region));
    if (copy->bytes) {
        tutti_region_copy(target, to, copy->bytes, from, region);
        return CL_SUCCESS;
    }
    if (tutti_region_is_linear(region))
        return device->dispatch->clEnqueueReadBuffer(
            device->place.downloads, copy->mem, CL_TRUE, tutti_place_first(from), region->size[0],
            (char *)target + tutti_place_first(to), 0, NULL, NULL);
    return device->dispatch->clEnqueueReadBufferRect(
        device->place.downloads, copy->mem, CL_TRUE, from->origin, to->origin, region->size,
        from->row_pitch, from->slice_pitch, to->row_pitch, to->slice_pitch, target, 0, NULL, NULL);
}

static cl_int write_device(const struct tutti_copy *copy, const struct tutti_place *to,
                           const void *source, const struct tutti_place *from,
                           const struct tutti_region *region) {
    const struct tutti_real_device *device = copy->device;
    if (!copy->mem)
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    tutti_traffic_count(device, TUTTI_UPLOAD, bytes_of(region));
    if (copy->bytes) {
        tutti_region_copy(copy->bytes, to, source, from, region);
        return CL_SUCCESS;
    }
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

/* Both copies are on one device. */
static cl_int copy_on_device(const struct tutti_copy *source, const struct tutti_place *from,
                             const struct tutti_copy *target, const struct tutti_place *to,
                             const struct tutti_region *region) {
    const struct tutti_real_device *device = source->device;
    const cl_icd_dispatch *driver = device->dispatch;
    if (!source->mem || !target->mem)
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    if (source->bytes && target->bytes) {
        tutti_region_copy(target->bytes, to, source->bytes, from, region);
        return CL_SUCCESS;
    }
    cl_event event;
    cl_int error =
        tutti_region_is_linear(region)
            ? driver->clEnqueueCopyBuffer(device->place.uploads, source->mem, target->mem,
                                          tutti_place_first(from), tutti_place_first(to),
                                          region->size[0], 0, NULL, &event)
            : driver->clEnqueueCopyBufferRect(device->place.uploads, source->mem, target->mem,
                                              from->origin, to->origin, region->size,
                                              from->row_pitch, from->slice_pitch, to->row_pitch,
                                              to->slice_pitch, 0, NULL, &event);
    return error == CL_SUCCESS ? wait_for(driver, event) : error;
}

/* What a part of a view is read from: home memory if it is valid, else a device. */
static cl_int read_copies(struct tutti_view *view, const struct tutti_copies *copies,
                          const struct tutti_place *from, void *target,
                          const struct tutti_place *to, const struct tutti_region *region) {
    if (!copies->home && copies->count)
        return read_device(&copies->on[0], from, target, to, region);
    void *home = tutti_view_home(view);
    if (!home)
        return CL_OUT_OF_HOST_MEMORY;
    tutti_region_copy(target, to, home, from, region);
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
        tutti_region_copy(home, to, source, from, region);
    }
    cl_int result = CL_SUCCESS;
    for (unsigned i = 0; i < copies.count; i++) {
        cl_int error = write_device(&copies.on[i], to, source, from, region);
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
            result = copy_on_device(near, from, &targets.on[i], to, region);
        } else if (source_home) {
            result = write_device(&targets.on[i], to, source_home, from, region);
        } else {
            if (!bounce && (bounce = malloc(bytes_of(region))))
                result = read_copies(source, &sources, from, bounce, &bounced, region);
            if (!bounce)
                result = CL_OUT_OF_HOST_MEMORY;
            if (result == CL_SUCCESS)
                result = write_device(&targets.on[i], to, bounce, &bounced, region);
        }
    }
    free(bounce);
    if (target_home && result == CL_SUCCESS)
        result = read_copies(source, &sources, from, target_home, to, region);
    return result;
}

cl_int tutti_access_pull(struct tutti_view *view, size_t offset, size_t size) {
    struct tutti_copies copies;
    tutti_view_copies(view, &copies);
    if (copies.home || !copies.count)
        return CL_SUCCESS;
    char *home = tutti_view_home(view);
    if (!home)
        return CL_OUT_OF_HOST_MEMORY;
    struct tutti_place place = tutti_place_linear(offset, size);
    struct tutti_region region = tutti_region_linear(size);
    return read_device(&copies.on[0], &place, home, &place, &region);
}

cl_int tutti_access_push(struct tutti_view *view, size_t offset, size_t size) {
    struct tutti_copies copies;
    tutti_view_copies(view, &copies);
    char *home = tutti_view_home(view);
    if (!home)
        return CL_OUT_OF_HOST_MEMORY;
    struct tutti_place place = tutti_place_linear(offset, size);
    struct tutti_region region = tutti_region_linear(size);
    cl_int result = CL_SUCCESS;
    for (unsigned i = 0; i < copies.count; i++) {
        cl_int error = write_device(&copies.on[i], &place, home, &place, &region);
        if (error != CL_SUCCESS)
            result = error;
    }
    return result;
}
