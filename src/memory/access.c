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

static cl_int read_device(struct tutti_real_device *device, cl_mem mem,
                          const struct tutti_place *from, void *target,
                          const struct tutti_place *to, const struct tutti_region *region) {
    const cl_icd_dispatch *driver = device->dispatch;
    if (!mem)
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    tutti_traffic_count(device, TUTTI_DOWNLOAD, bytes_of(region));
    if (tutti_region_is_linear(region))
        return driver->clEnqueueReadBuffer(device->place.downloads, mem, CL_TRUE,
                                           tutti_place_first(from), region->size[0],
                                           (char *)target + tutti_place_first(to), 0, NULL, NULL);
    return driver->clEnqueueReadBufferRect(
        device->place.downloads, mem, CL_TRUE, from->origin, to->origin, region->size,
        from->row_pitch, from->slice_pitch, to->row_pitch, to->slice_pitch, target, 0, NULL, NULL);
}

static cl_int write_device(struct tutti_real_device *device, cl_mem mem,
                           const struct tutti_place *to, const void *source,
                           const struct tutti_place *from, const struct tutti_region *region) {
    const cl_icd_dispatch *driver = device->dispatch;
    if (!mem)
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    tutti_traffic_count(device, TUTTI_UPLOAD, bytes_of(region));
    if (tutti_region_is_linear(region))
        return driver->clEnqueueWriteBuffer(
            device->place.uploads, mem, CL_TRUE, tutti_place_first(to), region->size[0],
            (const char *)source + tutti_place_first(from), 0, NULL, NULL);
    return driver->clEnqueueWriteBufferRect(
        device->place.uploads, mem, CL_TRUE, to->origin, from->origin, region->size, to->row_pitch,
        to->slice_pitch, from->row_pitch, from->slice_pitch, source, 0, NULL, NULL);
}

cl_int tutti_access_read(struct tutti_view *view, const struct tutti_place *from, void *target,
                         const struct tutti_place *to, const struct tutti_region *region) {
    struct tutti_copies copies;
    tutti_view_copies(view, &copies);
    if (!copies.home && copies.count)
        return read_device(copies.on[0].device, copies.on[0].mem, from, target, to, region);
    void *home = tutti_view_home(view);
    if (!home)
        return CL_OUT_OF_HOST_MEMORY;
    tutti_region_copy(target, to, home, from, region);
    return CL_SUCCESS;
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
        cl_int error =
            write_device(copies.on[i].device, copies.on[i].mem, to, source, from, region);
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
        struct tutti_real_device *device = copies.on[i].device;
        cl_event event;
        cl_int error = copies.on[i].mem ? CL_SUCCESS : CL_MEM_OBJECT_ALLOCATION_FAILURE;
        if (error == CL_SUCCESS)
            error = device->dispatch->clEnqueueFillBuffer(device->place.uploads, copies.on[i].mem,
                                                          pattern, pattern_size, offset, size, 0,
                                                          NULL, &event);
        if (error == CL_SUCCESS)
            error = wait_for(device->dispatch, event);
        if (error != CL_SUCCESS)
            result = error;
    }
    return result;
}

cl_int tutti_access_enqueue_copy(struct tutti_real_device *device, cl_command_queue queue,
                                 cl_mem source, const struct tutti_place *from, cl_mem target,
                                 const struct tutti_place *to, const struct tutti_region *region,
                                 cl_event *event) {
    if (!source || !target)
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    if (tutti_region_is_linear(region))
        return device->dispatch->clEnqueueCopyBuffer(queue, source, target, tutti_place_first(from),
                                                     tutti_place_first(to), region->size[0], 0,
                                                     NULL, event);
    return device->dispatch->clEnqueueCopyBufferRect(
        queue, source, target, from->origin, to->origin, region->size, from->row_pitch,
        from->slice_pitch, to->row_pitch, to->slice_pitch, 0, NULL, event);
}

static cl_int copy_on_device(struct tutti_real_device *device, cl_mem source,
                             const struct tutti_place *from, cl_mem target,
                             const struct tutti_place *to, const struct tutti_region *region) {
    cl_event event;
    cl_int error = tutti_access_enqueue_copy(device, device->place.uploads, source, from, target,
                                             to, region, &event);
    return error == CL_SUCCESS ? wait_for(device->dispatch, event) : error;
}

static cl_mem copy_on(const struct tutti_copies *copies, const struct tutti_real_device *device) {
    for (unsigned i = 0; i < copies->count; i++)
        if (copies->on[i].device == device)
            return copies->on[i].mem;
    return NULL;
}

/* The source region packed in host memory, made once for all targets that need it. */
struct bounce {
    void *bytes;
    struct tutti_place place;
};

static cl_int fill_bounce(struct bounce *bounce, struct tutti_view *source,
                          const struct tutti_place *from, const struct tutti_region *region) {
    if (bounce->bytes)
        return CL_SUCCESS;
    bounce->place =
        (struct tutti_place){{0, 0, 0}, region->size[0], region->size[0] * region->size[1]};
    bounce->bytes = malloc(bytes_of(region));
    if (!bounce->bytes)
        return CL_OUT_OF_HOST_MEMORY;
    return tutti_access_read(source, from, bounce->bytes, &bounce->place, region);
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

    struct bounce bounce = {NULL, {{0, 0, 0}, 0, 0}};
    cl_int result = CL_SUCCESS;
    for (unsigned i = 0; i < targets.count && result == CL_SUCCESS; i++) {
        struct tutti_real_device *device = targets.on[i].device;
        cl_mem near = copy_on(&sources, device);
        if (near) {
            result = copy_on_device(device, near, from, targets.on[i].mem, to, region);
        } else if (source_home) {
            result = write_device(device, targets.on[i].mem, to, source_home, from, region);
        } else {
            result = fill_bounce(&bounce, source, from, region);
            if (result == CL_SUCCESS)
                result = write_device(device, targets.on[i].mem, to, bounce.bytes, &bounce.place,
                                      region);
        }
    }
    if (target_home && result == CL_SUCCESS) {
        if (source_home)
            tutti_region_copy(target_home, to, source_home, from, region);
        else
            result = tutti_access_read(source, from, target_home, to, region);
    }
    free(bounce.bytes);
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
    return read_device(copies.on[0].device, copies.on[0].mem, &place, home, &place, &region);
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
        cl_int error =
            write_device(copies.on[i].device, copies.on[i].mem, &place, home, &place, &region);
        if (error != CL_SUCCESS)
            result = error;
    }
    return result;
}
