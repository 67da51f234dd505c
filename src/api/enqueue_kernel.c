/* SPDX-License-Identifier: MIT */
/* Executing kernels: OpenCL 1.2, section 5.8. */
#include "api/check.h"
#include "entry_points.h"
#include "sched/at_once.h"
#include "sched/launch.h"
#include "sched/transfer_command.h"
#include "virtual_device/device_info.h"
#include "virtual_device/program.h"

#include <string.h>

/*
 * Global sizes and offsets: what a size_t of the device can hold. Since OpenCL 2.1 a launch without
 * work-items (`empty`) is one that does nothing; before, an error.
 */
static cl_int check_global(struct tutti_range *range, const size_t *offset, const size_t *global,
                           bool *empty) {
    bool overflows = false;
    *empty = !global;
    for (cl_uint d = 0; d < range->dimensions; d++) {
        size_t end;
        range->global[d] = global ? global[d] : 0;
        range->offset[d] = offset ? offset[d] : 0;
        *empty |= range->global[d] == 0;
        overflows |= __builtin_add_overflow(range->offset[d], range->global[d], &end);
    }
    if (*empty)
        return tutti_device_limits()->version >= 210 ? CL_SUCCESS : CL_INVALID_GLOBAL_WORK_SIZE;
    return overflows ? CL_INVALID_GLOBAL_OFFSET : CL_SUCCESS;
}

/* May the last work-groups be smaller (OpenCL 2.0, 5.10)? Where it depends, the device decides. */
static bool may_be_uneven(cl_program program) {
    cl_bool supported = CL_FALSE;
    tutti_device_info(CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT, sizeof(supported), &supported,
                      NULL);
    pthread_mutex_lock(&program->lock);
    const char *options = program->options;
    bool newer = options && (strstr(options, "-cl-std=CL2") || strstr(options, "-cl-std=CL3"));
    bool even = options && strstr(options, "-cl-uniform-work-group-size");
    pthread_mutex_unlock(&program->lock);
    return supported && newer && !even;
}

/* Without a division where it can be: that takes as long as all other checks. */
static bool divides(size_t local, size_t global) {
    return (local & (local - 1)) == 0 ? (global & (local - 1)) == 0 : global % local == 0;
}

static cl_int check_local(struct tutti_range *range, const struct tutti_real_device *lead,
                          cl_kernel kernel, const size_t *local) {
    size_t most = kernel->function->work_group[lead->index].most, items = 1;
    const size_t *required = kernel->function->work_group[lead->index].required;
    /* A size that the source requires needs not be given again (OpenCL 3.0; an error in 1.2). */
    if (!local && required[0])
        local = required;
    range->local_given = local != NULL;
    if (!local)
        return CL_SUCCESS;
    for (cl_uint d = 0; d < range->dimensions; d++) {
        if (local[d] == 0)
            return CL_INVALID_WORK_GROUP_SIZE;
        if (local[d] > lead->max_work_item_sizes[d])
            return CL_INVALID_WORK_ITEM_SIZE;
        if (__builtin_mul_overflow(items, local[d], &items))
            return CL_INVALID_WORK_GROUP_SIZE;
        range->local[d] = local[d];
    }
    if (items > most)
        return CL_INVALID_WORK_GROUP_SIZE;
    bool uneven = false;
    for (cl_uint d = 0; d < range->dimensions; d++) {
        if (required[0] && required[d] != local[d])
            return CL_INVALID_WORK_GROUP_SIZE;
        uneven = uneven || !divides(local[d], range->global[d]);
    }
    return !uneven || may_be_uneven(kernel->program) ? CL_SUCCESS : CL_INVALID_WORK_GROUP_SIZE;
}

static cl_int launch(cl_command_queue queue, cl_kernel kernel, cl_uint work_dim,
                     const size_t *offset, const size_t *global, const size_t *local,
                     cl_command_type type, struct tutti_wait_list list, cl_event *event) {
    if (!TUTTI_IS_QUEUE(queue))
        return CL_INVALID_COMMAND_QUEUE;
    if (!TUTTI_IS_KERNEL(kernel))
        return CL_INVALID_KERNEL;
    if (kernel->program->context != queue->context)
        return CL_INVALID_CONTEXT;
    const struct tutti_real_device *lead = tutti_devices()->device[0];
    if (!kernel->function->real[lead->index])
        return CL_INVALID_PROGRAM_EXECUTABLE;
    struct tutti_range range;
    bool empty = false, row = false;
    range.dimensions = work_dim;
    cl_int error = work_dim < 1 || work_dim > 3 ? CL_INVALID_WORK_DIMENSION
                                                : check_global(&range, offset, global, &empty);
    if (error == CL_SUCCESS)
        error = check_local(&range, lead, kernel, local);
    if (error == CL_SUCCESS)
        error = tutti_wait_list_check(queue->context, list);
    if (error == CL_SUCCESS && !empty &&
        tutti_launch_at_once(queue, kernel, &range, type, list, event, &row))
        return CL_SUCCESS;
    struct tutti_arguments *arguments;
    if (error == CL_SUCCESS)
        error = tutti_kernel_copy_arguments(kernel, &arguments);
    if (error != CL_SUCCESS)
        return error;
    for (unsigned i = 0; error == CL_SUCCESS && i < arguments->count; i++)
        if (arguments->argument[i].mem && arguments->argument[i].mem->context != queue->context)
            error = CL_INVALID_CONTEXT;
    if (error != CL_SUCCESS || empty) {
        tutti_arguments_free(arguments);
        return error != CL_SUCCESS
                   ? error
                   : tutti_enqueue(tutti_command_create_empty(), queue, type, list, false, event);
    }
    struct tutti_command *command = tutti_launch_create(kernel, arguments, &range);
    if (command)
        command->in_row = row;
    return tutti_enqueue(command, queue, type, list, false, event);
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clEnqueueNDRangeKernel(
    cl_command_queue command_queue, cl_kernel kernel, cl_uint work_dim,
    const size_t *global_work_offset, const size_t *global_work_size, const size_t *local_work_size,
    cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event) {
    struct tutti_wait_list list = {num_events_in_wait_list, event_wait_list};
    return launch(command_queue, kernel, work_dim, global_work_offset, global_work_size,
                  local_work_size, CL_COMMAND_NDRANGE_KERNEL, list, event);
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clEnqueueTask(cl_command_queue command_queue,
                                                    cl_kernel kernel,
                                                    cl_uint num_events_in_wait_list,
                                                    const cl_event *event_wait_list,
                                                    cl_event *event) {
    static const size_t one = 1;
    struct tutti_wait_list list = {num_events_in_wait_list, event_wait_list};
    return launch(command_queue, kernel, 1, NULL, &one, &one, CL_COMMAND_TASK, list, event);
}

static cl_int check_native(cl_command_queue queue, const struct tutti_native *native) {
    if (!TUTTI_IS_QUEUE(queue))
        return CL_INVALID_COMMAND_QUEUE;
    if (!native->function)
        return CL_INVALID_VALUE;
    if ((native->arguments == NULL) != (native->argument_bytes == 0) ||
        (!native->arguments && native->mem_count > 0))
        return CL_INVALID_VALUE;
    if ((native->mem_count > 0) != (native->mems != NULL) ||
        (native->mem_count > 0) != (native->places != NULL))
        return CL_INVALID_VALUE;
    for (cl_uint i = 0; i < native->mem_count; i++) {
        const char *first = native->arguments, *place = native->places[i];
        if (place < first || native->argument_bytes < sizeof(cl_mem) ||
            (size_t)(place - first) > native->argument_bytes - sizeof(cl_mem))
            return CL_INVALID_VALUE;
        if (!TUTTI_IS_MEM(native->mems[i]) || tutti_mem_is_image(native->mems[i]))
            return CL_INVALID_MEM_OBJECT;
        if (native->mems[i]->context != queue->context)
            return CL_INVALID_CONTEXT;
    }
    return CL_SUCCESS;
}

/*
 * What a native kernel works on comes home while others, for which it waits, are still at it. If
 * that fails, so will the kernel.
 */
static void bring_home(cl_command_queue queue, const struct tutti_native *native,
                       struct tutti_wait_list list) {
    if (native->mem_count > 0 && !tutti_devices_are_at_home(~0u) && tutti_queue_uses_host(queue))
        tutti_enqueue(tutti_transfer_migrate(native->mem_count, native->mems, true), queue,
                      CL_COMMAND_MIGRATE_MEM_OBJECTS, list, false, NULL);
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clEnqueueNativeKernel(
    cl_command_queue command_queue, void(CL_CALLBACK *user_func)(void *), void *args,
    size_t cb_args, cl_uint num_mem_objects, const cl_mem *mem_list, const void **args_mem_loc,
    cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event) {
    struct tutti_wait_list list = {num_events_in_wait_list, event_wait_list};
    struct tutti_native native = {user_func,       args,     cb_args,
                                  num_mem_objects, mem_list, args_mem_loc};
    cl_int error = check_native(command_queue, &native);
    if (error == CL_SUCCESS)
        error = tutti_wait_list_check(command_queue->context, list);
    if (error != CL_SUCCESS)
        return error;
    bring_home(command_queue, &native, list);
    return tutti_enqueue(tutti_transfer_native(&native), command_queue, CL_COMMAND_NATIVE_KERNEL,
                         list, false, event);
}
