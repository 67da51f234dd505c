/* SPDX-License-Identifier: MIT */
/* Mapping and migrating memory objects: OpenCL 1.2, sections 5.2.3 (map), 5.4.2 and 5.4.4. */
#include "api/check.h"
#include "entry_points.h"
#include "sched/transfer_command.h"

static cl_int check_map(cl_command_queue queue, cl_mem buffer, cl_map_flags flags, size_t offset,
                        size_t size, struct tutti_wait_list list) {
    const cl_map_flags known = CL_MAP_READ | CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION;
    cl_int error = tutti_check_buffer(queue, buffer);
    if (error == CL_SUCCESS)
        error = tutti_check_range(buffer, offset, size);
    if (error == CL_SUCCESS && (flags & ~known || (flags & CL_MAP_WRITE_INVALIDATE_REGION &&
                                                   flags & (CL_MAP_READ | CL_MAP_WRITE))))
        error = CL_INVALID_VALUE;
    if (error == CL_SUCCESS)
        error = tutti_wait_list_check(queue->context, list);
    if (error == CL_SUCCESS && flags & CL_MAP_READ)
        error = tutti_check_host_read(buffer);
    if (error == CL_SUCCESS && flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION))
        error = tutti_check_host_write(buffer);
    return error;
}

static cl_int map(cl_command_queue queue, cl_mem buffer, bool blocking, cl_map_flags flags,
                  size_t offset, size_t size, struct tutti_wait_list list, cl_event *event,
                  void **pointer) {
    char *base = tutti_mem_map_base(buffer);
    if (!base)
        return CL_OUT_OF_HOST_MEMORY;
    *pointer = base + offset;
    cl_int error = tutti_mem_add_map(buffer, *pointer, offset, size, flags);
    if (error != CL_SUCCESS)
        return error;
    error = tutti_enqueue(tutti_transfer_map(buffer, offset, size, *pointer, flags), queue,
                          CL_COMMAND_MAP_BUFFER, list, blocking, event);
    if (error != CL_SUCCESS) {
        struct tutti_map taken;
        tutti_mem_take_map(buffer, *pointer, &taken);
    }
    return error;
}

CL_API_ENTRY void *CL_API_CALL tutti_clEnqueueMapBuffer(
    cl_command_queue command_queue, cl_mem buffer, cl_bool blocking_map, cl_map_flags map_flags,
    size_t offset, size_t size, cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
    cl_event *event, cl_int *errcode_ret) {
    struct tutti_wait_list list = {num_events_in_wait_list, event_wait_list};
    void *pointer = NULL;
    cl_int error = check_map(command_queue, buffer, map_flags, offset, size, list);
    if (error == CL_SUCCESS)
        error = map(command_queue, buffer, blocking_map, map_flags, offset, size, list, event,
                    &pointer);
    if (errcode_ret)
        *errcode_ret = error;
    return error == CL_SUCCESS ? pointer : NULL;
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
