/* SPDX-License-Identifier: MIT */
/* Queries of kernel objects: OpenCL 1.2, section 5.7.3. */
#include "virtual_device/kernel_create.h"

#include "entry_points.h"

#include <stdlib.h>

/* 5.7.3: of a kernel that does not come from source, the attributes are empty. */
static cl_int get_attributes(cl_kernel kernel, size_t param_value_size, void *param_value,
                             size_t *param_value_size_ret) {
    const struct tutti_real_device *lead = tutti_program_lead();
    enum tutti_program_origin origin = kernel->program->origin;
    size_t size = 0;
    if ((origin == TUTTI_PROGRAM_SOURCE || origin == TUTTI_PROGRAM_LINKED) &&
        lead->dispatch->clGetKernelInfo(kernel->function->checker, CL_KERNEL_ATTRIBUTES, 0, NULL,
                                        &size) != CL_SUCCESS)
        size = 0;
    if (!size)
        return tutti_info_return_string("", param_value_size, param_value, param_value_size_ret);
    char *attributes = calloc(1, size + 1);
    if (!attributes)
        return CL_OUT_OF_HOST_MEMORY;
    cl_int error = lead->dispatch->clGetKernelInfo(kernel->function->checker, CL_KERNEL_ATTRIBUTES,
                                                   size, attributes, NULL);
    if (error == CL_SUCCESS)
        error = tutti_info_return_string(attributes, param_value_size, param_value,
                                         param_value_size_ret);
    free(attributes);
    return error;
}

cl_int tutti_clGetKernelInfo(cl_kernel kernel, cl_kernel_info param_name, size_t param_value_size,
                             void *param_value, size_t *param_value_size_ret) {
    if (!TUTTI_IS_KERNEL(kernel))
        return CL_INVALID_KERNEL;
    switch (param_name) {
    case CL_KERNEL_FUNCTION_NAME:
        return tutti_info_return_string(kernel->name, param_value_size, param_value,
                                        param_value_size_ret);
    case CL_KERNEL_NUM_ARGS:
        TUTTI_RETURN_INFO(cl_uint, kernel->argument_count);
    case CL_KERNEL_REFERENCE_COUNT:
        TUTTI_RETURN_INFO(cl_uint, atomic_load(&kernel->object.user_refs));
    case CL_KERNEL_CONTEXT:
        TUTTI_RETURN_INFO(cl_context, kernel->program->context);
    case CL_KERNEL_PROGRAM:
        TUTTI_RETURN_INFO(cl_program, kernel->program);
    case CL_KERNEL_ATTRIBUTES:
        return get_attributes(kernel, param_value_size, param_value, param_value_size_ret);
    default:
        return CL_INVALID_VALUE;
    }
}

cl_int tutti_clGetKernelArgInfo(cl_kernel kernel, cl_uint arg_index, cl_kernel_arg_info param_name,
                                size_t param_value_size, void *param_value,
                                size_t *param_value_size_ret) {
    if (!TUTTI_IS_KERNEL(kernel))
        return CL_INVALID_KERNEL;
    if (arg_index >= kernel->argument_count)
        return CL_INVALID_ARG_INDEX;
    if (!tutti_program_tells_arguments(kernel->program))
        return CL_KERNEL_ARG_INFO_NOT_AVAILABLE;
    const struct tutti_argument_info *info = &kernel->info[arg_index];
    switch (param_name) {
    case CL_KERNEL_ARG_ADDRESS_QUALIFIER:
        TUTTI_RETURN_INFO(cl_kernel_arg_address_qualifier, info->address);
    case CL_KERNEL_ARG_ACCESS_QUALIFIER:
        TUTTI_RETURN_INFO(cl_kernel_arg_access_qualifier, info->access);
    case CL_KERNEL_ARG_TYPE_NAME:
        return tutti_info_return_string(info->type_name, param_value_size, param_value,
                                        param_value_size_ret);
    case CL_KERNEL_ARG_TYPE_QUALIFIER:
        TUTTI_RETURN_INFO(cl_kernel_arg_type_qualifier, info->type_qualifier);
    case CL_KERNEL_ARG_NAME:
        return tutti_info_return_string(info->name, param_value_size, param_value,
                                        param_value_size_ret);
    default:
        return CL_INVALID_VALUE;
    }
}

cl_int tutti_clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device,
                                      cl_kernel_work_group_info param_name, size_t param_value_size,
                                      void *param_value, size_t *param_value_size_ret) {
    if (!TUTTI_IS_KERNEL(kernel))
        return CL_INVALID_KERNEL;
    if (device && device != tutti_device())
        return CL_INVALID_DEVICE;
    switch (param_name) {
    case CL_KERNEL_WORK_GROUP_SIZE:
    case CL_KERNEL_COMPILE_WORK_GROUP_SIZE:
    case CL_KERNEL_LOCAL_MEM_SIZE:
    case CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE:
    case CL_KERNEL_PRIVATE_MEM_SIZE:
        break;
    default: /* CL_KERNEL_GLOBAL_WORK_SIZE too: there are no built-in kernels */
        return CL_INVALID_VALUE;
    }
    const struct tutti_real_device *lead = tutti_program_lead();
    pthread_mutex_lock(&kernel->function->lock);
    cl_int error = lead->dispatch->clGetKernelWorkGroupInfo(kernel->function->checker, lead->id,
                                                            param_name, param_value_size,
                                                            param_value, param_value_size_ret);
    pthread_mutex_unlock(&kernel->function->lock);
    return error;
}

/* Does the lead have sub-groups, and its table the slot of clGetKernelSubGroupInfo? */
static bool lead_has_sub_groups(const struct tutti_real_device *lead) {
    cl_uint most = 0;
    return lead->version >= 210 && lead->dispatch->clGetKernelSubGroupInfo &&
           lead->dispatch->clGetDeviceInfo(lead->id, CL_DEVICE_MAX_NUM_SUB_GROUPS, sizeof(most),
                                           &most, NULL) == CL_SUCCESS &&
           most > 0;
}

static cl_int check_sub_group_input(cl_kernel_sub_group_info param_name, size_t size,
                                    const void *value) {
    switch (param_name) {
    case CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE:
    case CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE:
        return value && size && size % sizeof(size_t) == 0 && size <= 3 * sizeof(size_t)
                   ? CL_SUCCESS
                   : CL_INVALID_VALUE;
    case CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT:
        return value && size == sizeof(size_t) ? CL_SUCCESS : CL_INVALID_VALUE;
    case CL_KERNEL_MAX_NUM_SUB_GROUPS:
    case CL_KERNEL_COMPILE_NUM_SUB_GROUPS:
        return CL_SUCCESS;
    default:
        return CL_INVALID_VALUE;
    }
}

cl_int tutti_clGetKernelSubGroupInfo(cl_kernel kernel, cl_device_id device,
                                     cl_kernel_sub_group_info param_name, size_t input_value_size,
                                     const void *input_value, size_t param_value_size,
                                     void *param_value, size_t *param_value_size_ret) {
    if (!TUTTI_IS_KERNEL(kernel))
        return CL_INVALID_KERNEL;
    if (device && device != tutti_device())
        return CL_INVALID_DEVICE;
    const struct tutti_real_device *lead = tutti_program_lead();
    if (!lead_has_sub_groups(lead))
        return CL_INVALID_OPERATION;
    cl_int error = check_sub_group_input(param_name, input_value_size, input_value);
    if (error != CL_SUCCESS)
        return error;
    pthread_mutex_lock(&kernel->function->lock);
    error = lead->dispatch->clGetKernelSubGroupInfo(kernel->function->checker, lead->id, param_name,
                                                    input_value_size, input_value, param_value_size,
                                                    param_value, param_value_size_ret);
    pthread_mutex_unlock(&kernel->function->lock);
    return error;
}

cl_int tutti_clGetKernelSubGroupInfoKHR(cl_kernel kernel, cl_device_id device,
                                        cl_kernel_sub_group_info param_name,
                                        size_t input_value_size, const void *input_value,
                                        size_t param_value_size, void *param_value,
                                        size_t *param_value_size_ret) {
    return tutti_clGetKernelSubGroupInfo(kernel, device, param_name, input_value_size, input_value,
                                         param_value_size, param_value, param_value_size_ret);
}
