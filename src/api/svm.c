/* SPDX-License-Identifier: MIT */
/*
 * Shared virtual memory: OpenCL 3.0, sections 5.6 and 5.9.2. Commands on it are those of the buffer
 * that an allocation is (memory/svm.h).
 */
#include "memory/svm.h"

#include "api/check.h"
#include "api/enqueue_map.h"
#include "entry_points.h"
#include "memory/version.h"
#include "sched/runtime.h"
#include "sched/transfer_command.h"
#include "virtual_device/device.h"
#include "virtual_device/kernel_create.h"

#include <stdlib.h>
#include <string.h>

#define LARGEST_TYPE 128 /* long16 */

static bool is_power_of_two(size_t number) { return number && (number & (number - 1)) == 0; }

CL_API_ENTRY void *CL_API_CALL tutti_clSVMAlloc(cl_context context, cl_svm_mem_flags flags,
                                                size_t size, cl_uint alignment) {
    const struct tutti_limits *limits = tutti_device_limits();
    if (!TUTTI_IS_CONTEXT(context) || !limits->svm || flags & ~TUTTI_ACCESS_FLAGS ||
        tutti_check_mem_flags(flags) != CL_SUCCESS || size == 0 ||
        size > limits->max_mem_alloc_size ||
        (alignment && (!is_power_of_two(alignment) || alignment > LARGEST_TYPE)) ||
        !tutti_runtime_usable())
        return NULL;
    return tutti_svm_allocate(context, flags ? flags : CL_MEM_READ_WRITE, size);
}

CL_API_ENTRY void CL_API_CALL tutti_clSVMFree(cl_context context, void *pointer) {
    if (TUTTI_IS_CONTEXT(context) && pointer)
        tutti_svm_free(context, pointer);
}

static cl_int check_queue(cl_command_queue queue) {
    if (!TUTTI_IS_QUEUE(queue))
        return CL_INVALID_COMMAND_QUEUE;
    return tutti_device_limits()->svm ? CL_SUCCESS : CL_INVALID_OPERATION;
}

/*
 * The part of an allocation that [pointer, pointer + size) is. Other memory of the program has no
 * `mem`. CL_INVALID_VALUE where it is both.
 */
struct part {
    cl_mem mem;
    size_t offset;
};

static cl_int find(cl_context context, const void *pointer, size_t size, struct part *part) {
    size_t end = 0;
    part->mem = tutti_svm_find(context, pointer, &part->offset);
    if (part->mem)
        return size <= part->mem->size - part->offset ? CL_SUCCESS : CL_INVALID_VALUE;
    return size && tutti_svm_find(context, (const char *)pointer + size - 1, &end)
               ? CL_INVALID_VALUE
               : CL_SUCCESS;
}

/* The same where nothing but an allocation will do. */
static cl_int find_allocation(cl_context context, const void *pointer, size_t size,
                              struct part *part) {
    cl_int error = find(context, pointer, size, part);
    return error == CL_SUCCESS && !part->mem ? CL_INVALID_VALUE : error;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clEnqueueSVMMap(cl_command_queue command_queue,
                                                      cl_bool blocking_map, cl_map_flags flags,
                                                      void *svm_ptr, size_t size,
                                                      cl_uint num_events_in_wait_list,
                                                      const cl_event *event_wait_list,
                                                      cl_event *event) {
    struct tutti_wait_list list = {num_events_in_wait_list, event_wait_list};
    struct part part;
    RETURN_IF(check_queue(command_queue));
    if (!svm_ptr || !size)
        return CL_INVALID_VALUE;
    RETURN_IF(find_allocation(command_queue->context, svm_ptr, size, &part));
    RETURN_IF(tutti_check_map(command_queue, part.mem, flags, list));
    struct tutti_map map = {.place = tutti_place_linear(part.offset, size),
                            .region = tutti_region_linear(size),
                            .flags = flags,
                            .overlaps = true};
    return tutti_enqueue_map(command_queue, part.mem, blocking_map, &map, CL_COMMAND_SVM_MAP, list,
                             event);
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clEnqueueSVMUnmap(cl_command_queue command_queue,
                                                        void *svm_ptr,
                                                        cl_uint num_events_in_wait_list,
                                                        const cl_event *event_wait_list,
                                                        cl_event *event) {
    struct tutti_wait_list list = {num_events_in_wait_list, event_wait_list};
    struct part part;
    struct tutti_map map;
    RETURN_IF(check_queue(command_queue));
    if (!svm_ptr)
        return CL_INVALID_VALUE;
    RETURN_IF(find_allocation(command_queue->context, svm_ptr, 1, &part));
    RETURN_IF(tutti_wait_list_check(command_queue->context, list));
    if (!tutti_mem_take_map(part.mem, svm_ptr, &map))
        return CL_INVALID_VALUE;
    return tutti_enqueue(tutti_transfer_unmap(part.mem, &map), command_queue, CL_COMMAND_SVM_UNMAP,
                         list, false, event);
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clEnqueueSVMMemFill(cl_command_queue command_queue,
                                                          void *svm_ptr, const void *pattern,
                                                          size_t pattern_size, size_t size,
                                                          cl_uint num_events_in_wait_list,
                                                          const cl_event *event_wait_list,
                                                          cl_event *event) {
    struct tutti_wait_list list = {num_events_in_wait_list, event_wait_list};
    struct part part;
    RETURN_IF(check_queue(command_queue));
    if (!svm_ptr || !pattern || !is_power_of_two(pattern_size) || pattern_size > LARGEST_TYPE ||
        (uintptr_t)svm_ptr % pattern_size || size % pattern_size)
        return CL_INVALID_VALUE;
    RETURN_IF(find_allocation(command_queue->context, svm_ptr, size, &part));
    RETURN_IF(tutti_wait_list_check(command_queue->context, list));
    struct tutti_command *command =
        size ? tutti_transfer_fill(part.mem, part.offset, size, pattern, pattern_size)
             : tutti_command_create_empty();
    return tutti_enqueue(command, command_queue, CL_COMMAND_SVM_MEMFILL, list, false, event);
}

/* A copy of memory that no device has to do with. */
struct host_copy {
    void *target;
    const void *source;
    size_t size;
};

static void CL_CALLBACK copy_on_host(void *argument) {
    const struct host_copy *copy = argument;
    memcpy(copy->target, copy->source, copy->size);
}

static struct tutti_command *make_copy(void *target, const struct part *to, const void *source,
                                       const struct part *from, size_t size) {
    struct tutti_place to_place = tutti_place_linear(to->mem ? to->offset : 0, size);
    struct tutti_place from_place = tutti_place_linear(from->mem ? from->offset : 0, size);
    struct tutti_region region = tutti_region_linear(size);
    if (!size)
        return tutti_command_create_empty();
    if (from->mem && to->mem)
        return tutti_transfer_copy(from->mem, &from_place, to->mem, &to_place, &region);
    if (from->mem)
        return tutti_transfer_read(from->mem, &from_place, target, &to_place, &region);
    if (to->mem)
        return tutti_transfer_write(to->mem, &to_place, source, &from_place, &region);
    struct host_copy copy = {target, source, size};
    struct tutti_native native = {
        .function = copy_on_host, .arguments = &copy, .argument_bytes = sizeof(copy)};
    return tutti_transfer_native(&native);
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clEnqueueSVMMemcpy(cl_command_queue command_queue,
                                                         cl_bool blocking_copy, void *dst_ptr,
                                                         const void *src_ptr, size_t size,
                                                         cl_uint num_events_in_wait_list,
                                                         const cl_event *event_wait_list,
                                                         cl_event *event) {
    struct tutti_wait_list list = {num_events_in_wait_list, event_wait_list};
    struct part to, from;
    RETURN_IF(check_queue(command_queue));
    if (!dst_ptr || !src_ptr)
        return CL_INVALID_VALUE;
    RETURN_IF(find(command_queue->context, dst_ptr, size, &to));
    RETURN_IF(find(command_queue->context, src_ptr, size, &from));
    RETURN_IF(tutti_wait_list_check(command_queue->context, list));
    uintptr_t target = (uintptr_t)dst_ptr, source = (uintptr_t)src_ptr;
    if (target < source + size && source < target + size)
        return CL_MEM_COPY_OVERLAP;
    return tutti_enqueue(make_copy(dst_ptr, &to, src_ptr, &from, size), command_queue,
                         CL_COMMAND_SVM_MEMCPY, list, blocking_copy, event);
}

struct release {
    cl_command_queue queue; /* the command's event retains it */
    void(CL_CALLBACK *function)(cl_command_queue, cl_uint, void **, void *);
    void *user_data;
    cl_uint count;
    void *pointers[];
};

static void CL_CALLBACK release_pointers(void *argument) {
    struct release *release = argument;
    if (release->function) {
        release->function(release->queue, release->count, release->pointers, release->user_data);
        return;
    }
    for (cl_uint i = 0; i < release->count; i++)
        tutti_svm_free(release->queue->context, release->pointers[i]);
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clEnqueueSVMFree(
    cl_command_queue command_queue, cl_uint num_svm_pointers, void *svm_pointers[],
    void(CL_CALLBACK *pfn_free_func)(cl_command_queue, cl_uint, void *[], void *), void *user_data,
    cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event) {
    struct tutti_wait_list list = {num_events_in_wait_list, event_wait_list};
    RETURN_IF(check_queue(command_queue));
    if ((num_svm_pointers == 0) != (svm_pointers == NULL))
        return CL_INVALID_VALUE;
    RETURN_IF(tutti_wait_list_check(command_queue->context, list));
    size_t bytes = num_svm_pointers * sizeof(*svm_pointers);
    struct release *release = malloc(sizeof(*release) + bytes);
    if (!release)
        return CL_OUT_OF_HOST_MEMORY;
    *release = (struct release){command_queue, pfn_free_func, user_data, num_svm_pointers};
    if (bytes)
        memcpy(release->pointers, svm_pointers, bytes);
    struct tutti_native native = {.function = release_pointers,
                                  .arguments = release,
                                  .argument_bytes = sizeof(*release) + bytes};
    struct tutti_command *command = tutti_transfer_native(&native);
    free(release);
    /* It names no memory objects that would order it behind kernels. */
    if (command)
        command->waits_for_all = tutti_queue_in_order(command_queue);
    return tutti_enqueue(command, command_queue, CL_COMMAND_SVM_FREE, list, false, event);
}

/* Finds the allocations of many pointers; `sizes` may be NULL. Free the result. */
static cl_int find_all(cl_context context, cl_uint count, const void *const *pointers,
                       const size_t *sizes, cl_mem **mems) {
    cl_int error = CL_SUCCESS;
    *mems = calloc(count + 1, sizeof(**mems));
    if (!*mems)
        return CL_OUT_OF_HOST_MEMORY;
    for (cl_uint i = 0; i < count && error == CL_SUCCESS; i++) {
        struct part part;
        error = find_allocation(context, pointers[i], sizes ? sizes[i] : 0, &part);
        (*mems)[i] = part.mem;
    }
    if (error != CL_SUCCESS)
        free(*mems);
    return error;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clEnqueueSVMMigrateMem(
    cl_command_queue command_queue, cl_uint num_svm_pointers, const void **svm_pointers,
    const size_t *sizes, cl_mem_migration_flags flags, cl_uint num_events_in_wait_list,
    const cl_event *event_wait_list, cl_event *event) {
    const cl_mem_migration_flags known =
        CL_MIGRATE_MEM_OBJECT_HOST | CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED;
    struct tutti_wait_list list = {num_events_in_wait_list, event_wait_list};
    cl_mem *mems;
    RETURN_IF(check_queue(command_queue));
    if (num_svm_pointers == 0 || !svm_pointers || flags & ~known)
        return CL_INVALID_VALUE;
    RETURN_IF(tutti_wait_list_check(command_queue->context, list));
    RETURN_IF(find_all(command_queue->context, num_svm_pointers, svm_pointers, sizes, &mems));
    /* It follows its uses by itself. */
    struct tutti_command *command = tutti_transfer_migrate(num_svm_pointers, mems, false);
    free(mems);
    return tutti_enqueue(command, command_queue, CL_COMMAND_SVM_MIGRATE_MEM, list, false, event);
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clSetKernelArgSVMPointer(cl_kernel kernel, cl_uint arg_index,
                                                               const void *arg_value) {
    struct part part = {0};
    if (!TUTTI_IS_KERNEL(kernel))
        return CL_INVALID_KERNEL;
    if (!tutti_device_limits()->svm)
        return CL_INVALID_OPERATION;
    if (arg_index >= kernel->argument_count)
        return CL_INVALID_ARG_INDEX;
    if (arg_value && find_allocation(kernel->program->context, arg_value, 1, &part) != CL_SUCCESS)
        return CL_INVALID_ARG_VALUE;
    return tutti_kernel_set_pointer(kernel, arg_index, part.mem, (void *)arg_value);
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clSetKernelExecInfo(cl_kernel kernel,
                                                          cl_kernel_exec_info param_name,
                                                          size_t param_value_size,
                                                          const void *param_value) {
    cl_mem *mems;
    if (!TUTTI_IS_KERNEL(kernel))
        return CL_INVALID_KERNEL;
    if (!tutti_device_limits()->svm)
        return CL_INVALID_OPERATION;
    if (!param_value && param_value_size)
        return CL_INVALID_VALUE;
    if (param_name == CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM) {
        if (param_value_size != sizeof(cl_bool))
            return CL_INVALID_VALUE;
        return *(const cl_bool *)param_value ? CL_INVALID_OPERATION : CL_SUCCESS;
    }
    if (param_name != CL_KERNEL_EXEC_INFO_SVM_PTRS || param_value_size % sizeof(void *))
        return CL_INVALID_VALUE;
    cl_uint count = (cl_uint)(param_value_size / sizeof(void *));
    RETURN_IF(find_all(kernel->program->context, count, param_value, NULL, &mems));
    cl_int error = tutti_kernel_set_reached(kernel, mems, count);
    free(mems);
    return error;
}
