/* SPDX-License-Identifier: MIT */
/* Mapping and migrating memory objects: OpenCL 1.2, sections 5.2.3, 5.3.6, 5.4.2 and 5.4.4. */
#include "api/enqueue_map.h"

#include "api/check.h"
#include "entry_points.h"
#include "memory/version.h"
#include "memory/window.h"
#include "sched/transfer_command.h"

cl_int tutti_check_map(cl_command_queue queue, cl_mem mem, cl_map_flags flags,
                       struct tutti_wait_list list) {
    const cl_map_flags known = CL_MAP_READ | CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION;
    cl_int error = CL_SUCCESS;
    if (flags & ~known ||
        (flags & CL_MAP_WRITE_INVALIDATE_REGION && flags & (CL_MAP_READ | CL_MAP_WRITE)))
        error = CL_INVALID_VALUE;
    if (error == CL_SUCCESS)
        error = tutti_wait_list_check(queue->context, list);
    if (error == CL_SUCCESS && flags & CL_MAP_READ)
        error = tutti_check_host_read(mem);
    if (error == CL_SUCCESS && flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION))
        error = tutti_check_host_write(mem);
    return error;
}

cl_int tutti_enqueue_map(cl_command_queue queue, cl_mem mem, bool blocking, struct tutti_map *map,
                         cl_command_type type, struct tutti_wait_list list, cl_event *event) {
    if (mem->parent && !tutti_window_bar(mem))
        return CL_OUT_OF_HOST_MEMORY;
    tutti_transfer_pin(mem, map, queue, list); /* until the end of the unmap */
    char *base = tutti_mem_map_base(mem);
    if (!base) {
        tutti_version_unpin(mem);
        return CL_OUT_OF_HOST_MEMORY;
    }
    struct tutti_place at_home = tutti_view_at_home(mem->view, &map->place);
    map->pointer = base + tutti_place_first(&at_home);
    cl_int error = tutti_mem_add_map(mem, map);
    if (error != CL_SUCCESS) {
        tutti_version_unpin(mem);
        return error;
    }
    error = tutti_enqueue(tutti_transfer_map(mem, map), queue, type, list, blocking, event);
    if (error != CL_SUCCESS) {
        struct tutti_map taken;
        tutti_mem_take_map(mem, map->pointer, &taken);
        tutti_version_unpin(mem);
    }
    return error;
}

CL_API_ENTRY void *CL_API_CALL tutti_clEnqueueMapBuffer(
    cl_command_queue command_queue, cl_mem buffer, cl_bool blocking_map, cl_map_flags map_flags,
    size_t offset, size_t size, cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
    cl_event *event, cl_int *errcode_ret) {
    struct tutti_wait_list list = {num_events_in_wait_list, event_wait_list};
    struct tutti_map map = {.place = tutti_place_linear(offset, size),
                            .region = tutti_region_linear(size),
                            .flags = map_flags};
    cl_int error = tutti_check_buffer(command_queue, buffer);
    if (error == CL_SUCCESS)
        error = tutti_check_range(buffer, offset, size);
    if (error == CL_SUCCESS)
        error = tutti_check_map(command_queue, buffer, map_flags, list);
    if (error == CL_SUCCESS)
        error = tutti_enqueue_map(command_queue, buffer, blocking_map, &map, CL_COMMAND_MAP_BUFFER,
                                  list, event);
    if (errcode_ret)
        *errcode_ret = error;
    return error == CL_SUCCESS ? map.pointer : NULL;
}

/* Gives the pitches of the map: those of the image's home memory. */
static void return_pitches(cl_mem image, size_t *row_pitch, size_t *slice_pitch) {
    const struct tutti_view *view = image->view;
    bool boxed = tutti_shape_is_boxed(&view->shape);
    *row_pitch = boxed ? view->row_pitch : view->size;
    if (!slice_pitch)
        return;
    if (image->type == CL_MEM_OBJECT_IMAGE1D_ARRAY) /* its rows are layers */
        *slice_pitch = view->row_pitch;
    else
        *slice_pitch = tutti_image_dimensions(image->type) > 2 ? view->slice_pitch : 0;
}

CL_API_ENTRY void *CL_API_CALL tutti_clEnqueueMapImage(
    cl_command_queue command_queue, cl_mem image, cl_bool blocking_map, cl_map_flags map_flags,
    const size_t *origin, const size_t *region, size_t *image_row_pitch, size_t *image_slice_pitch,
    cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event,
    cl_int *errcode_ret) {
    struct tutti_wait_list list = {num_events_in_wait_list, event_wait_list};
    struct tutti_map map = {.flags = map_flags};
    cl_int error = tutti_check_image(command_queue, image);
    if (error == CL_SUCCESS)
        error = tutti_check_image_box(image, origin, region, &map.place, &map.region);
    if (error == CL_SUCCESS &&
        (!image_row_pitch || (!image_slice_pitch && (tutti_image_dimensions(image->type) > 2 ||
                                                     image->type == CL_MEM_OBJECT_IMAGE1D_ARRAY))))
        error = CL_INVALID_VALUE;
    if (error == CL_SUCCESS)
        error = tutti_check_map(command_queue, image, map_flags, list);
    if (error == CL_SUCCESS)
        error = tutti_enqueue_map(command_queue, image, blocking_map, &map, CL_COMMAND_MAP_IMAGE,
                                  list, event);
    if (error == CL_SUCCESS)
        return_pitches(image, image_row_pitch, image_slice_pitch);
    if (errcode_ret)
        *errcode_ret = error;
    return error == CL_SUCCESS ? map.pointer : NULL;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clEnqueueUnmapMemObject(cl_command_queue command_queue,
                                                              cl_mem memobj, void *mapped_ptr,
                                                              cl_uint num_events_in_wait_list,
                                                              const cl_event *event_wait_list,
                                                              cl_event *event) {
    struct tutti_wait_list list = {num_events_in_wait_list, event_wait_list};
    if (!TUTTI_IS_QUEUE(command_queue))
        return CL_INVALID_COMMAND_QUEUE;
    if (!TUTTI_IS_MEM(memobj))
        return CL_INVALID_MEM_OBJECT;
    if (memobj->context != command_queue->context)
        return CL_INVALID_CONTEXT;
    cl_int error = tutti_wait_list_check(command_queue->context, list);
    if (error != CL_SUCCESS)
        return error;
    struct tutti_map map;
    if (!tutti_mem_take_map(memobj, mapped_ptr, &map))
        return CL_INVALID_VALUE;
    return tutti_enqueue(tutti_transfer_unmap(memobj, &map), command_queue,
                         CL_COMMAND_UNMAP_MEM_OBJECT, list, false, event);
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clEnqueueMigrateMemObjects(
    cl_command_queue command_queue, cl_uint num_mem_objects, const cl_mem *mem_objects,
    cl_mem_migration_flags flags, cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
    cl_event *event) {
    const cl_mem_migration_flags known =
        CL_MIGRATE_MEM_OBJECT_HOST | CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED;
    struct tutti_wait_list list = {num_events_in_wait_list, event_wait_list};
    if (!TUTTI_IS_QUEUE(command_queue))
        return CL_INVALID_COMMAND_QUEUE;
    if (num_mem_objects == 0 || !mem_objects)
        return CL_INVALID_VALUE;
    for (cl_uint i = 0; i < num_mem_objects; i++) {
        if (!TUTTI_IS_MEM(mem_objects[i]))
            return CL_INVALID_MEM_OBJECT;
        if (mem_objects[i]->context != command_queue->context)
            return CL_INVALID_CONTEXT;
    }
    if (flags & ~known)
        return CL_INVALID_VALUE;
    cl_int error = tutti_wait_list_check(command_queue->context, list);
    if (error != CL_SUCCESS)
        return error;
    /* The one device is all of them: only the host is a place to go to. */
    bool to_host =
        (flags & CL_MIGRATE_MEM_OBJECT_HOST) && !(flags & CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED);
    return tutti_enqueue(tutti_transfer_migrate(num_mem_objects, mem_objects, to_host),
                         command_queue, CL_COMMAND_MIGRATE_MEM_OBJECTS, list, false, event);
}
