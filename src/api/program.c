/* SPDX-License-Identifier: MIT */
/* Program objects: OpenCL 1.2, sections 5.6.1, 5.6.2 and 5.6.7 (clGetProgramInfo). */
#include "virtual_device/program.h"

#include "entry_points.h"
#include "virtual_device/merged.h"

#include <stdlib.h>
#include <string.h>

static cl_program result(cl_program program, cl_int error, cl_int *errcode_ret) {
    if (errcode_ret)
        *errcode_ret = program ? CL_SUCCESS : error;
    return program;
}

static bool is_device_list(cl_uint num_devices, const cl_device_id *device_list) {
    for (cl_uint i = 0; i < num_devices; i++)
        if (!device_list[i] || device_list[i] != tutti_device())
            return false;
    return true;
}

cl_program tutti_clCreateProgramWithSource(cl_context context, cl_uint count, const char **strings,
                                           const size_t *lengths, cl_int *errcode_ret) {
    cl_int error = CL_SUCCESS;
    if (!TUTTI_IS_CONTEXT(context))
        return result(NULL, CL_INVALID_CONTEXT, errcode_ret);
    if (count == 0 || !strings)
        return result(NULL, CL_INVALID_VALUE, errcode_ret);
    for (cl_uint i = 0; i < count; i++)
        if (!strings[i])
            return result(NULL, CL_INVALID_VALUE, errcode_ret);
    cl_program program = tutti_program_create_source(context, count, strings, lengths, &error);
    return result(program, error, errcode_ret);
}

cl_program tutti_clCreateProgramWithIL(cl_context context, const void *il, size_t length,
                                       cl_int *errcode_ret) {
    cl_int error = CL_SUCCESS;
    if (!TUTTI_IS_CONTEXT(context))
        return result(NULL, CL_INVALID_CONTEXT, errcode_ret);
    if (!tutti_merged()->ils.count)
        return result(NULL, CL_INVALID_OPERATION, errcode_ret);
    if (!il || length == 0)
        return result(NULL, CL_INVALID_VALUE, errcode_ret);
    cl_program program = tutti_program_create_il(context, il, length, &error);
    return result(program, error, errcode_ret);
}

cl_program tutti_clCreateProgramWithBinary(cl_context context, cl_uint num_devices,
                                           const cl_device_id *device_list, const size_t *lengths,
                                           const unsigned char **binaries, cl_int *binary_status,
                                           cl_int *errcode_ret) {
    if (!TUTTI_IS_CONTEXT(context))
        return result(NULL, CL_INVALID_CONTEXT, errcode_ret);
    if (!device_list || num_devices == 0)
        return result(NULL, CL_INVALID_VALUE, errcode_ret);
    if (!is_device_list(num_devices, device_list))
        return result(NULL, CL_INVALID_DEVICE, errcode_ret);
    if (!lengths || !binaries)
        return result(NULL, CL_INVALID_VALUE, errcode_ret);
    cl_int error = CL_SUCCESS;
    for (cl_uint i = 0; i < num_devices; i++) {
        cl_int status = lengths[i] && binaries[i] ? CL_SUCCESS : CL_INVALID_VALUE;
        if (binary_status)
            binary_status[i] = status;
        if (error == CL_SUCCESS)
            error = status;
    }
    if (error != CL_SUCCESS)
        return result(NULL, error, errcode_ret);
    /* Entries can only name the one device: the first is its binary. */
    cl_program program = tutti_program_create_binary(context, binaries[0], lengths[0], &error);
    for (cl_uint i = 0; binary_status && i < num_devices; i++)
        binary_status[i] = program ? CL_SUCCESS : CL_INVALID_BINARY;
    return result(program, error, errcode_ret);
}

cl_program tutti_clCreateProgramWithBuiltInKernels(cl_context context, cl_uint num_devices,
                                                   const cl_device_id *device_list,
                                                   const char *kernel_names, cl_int *errcode_ret) {
    if (!TUTTI_IS_CONTEXT(context))
        return result(NULL, CL_INVALID_CONTEXT, errcode_ret);
    if (!device_list || num_devices == 0 || !kernel_names)
        return result(NULL, CL_INVALID_VALUE, errcode_ret);
    if (!is_device_list(num_devices, device_list))
        return result(NULL, CL_INVALID_DEVICE, errcode_ret);
    /* The device has no built-in kernel: no name is a supported one. */
    return result(NULL, CL_INVALID_VALUE, errcode_ret);
}

cl_int tutti_clRetainProgram(cl_program program) {
    if (!tutti_program_is_valid(program))
        return CL_INVALID_PROGRAM;
    tutti_object_user_retain(program);
    return CL_SUCCESS;
}

cl_int tutti_clReleaseProgram(cl_program program) {
    if (!TUTTI_IS_PROGRAM(program))
        return CL_INVALID_PROGRAM;
    return tutti_object_user_release(program) ? CL_SUCCESS : CL_INVALID_PROGRAM;
}

cl_int tutti_clSetProgramReleaseCallback(cl_program program,
                                         void(CL_CALLBACK *pfn_notify)(cl_program, void *),
                                         void *user_data) {
    (void)user_data;
    if (!tutti_program_is_valid(program))
        return CL_INVALID_PROGRAM;
    if (!pfn_notify)
        return CL_INVALID_VALUE;
    /* No destructors of variables in program scope: the specification's error. */
    return CL_INVALID_OPERATION;
}

cl_int tutti_clSetProgramSpecializationConstant(cl_program program, cl_uint spec_id,
                                                size_t spec_size, const void *spec_value) {
    if (!tutti_program_is_valid(program))
        return CL_INVALID_PROGRAM;
    if (!tutti_merged()->ils.count)
        return CL_INVALID_OPERATION;
    if (program->origin != TUTTI_PROGRAM_IL)
        return CL_INVALID_PROGRAM;
    if (!spec_value || spec_size == 0)
        return CL_INVALID_VALUE;
    return tutti_program_specialize(program, spec_id, spec_size, spec_value);
}

static cl_int get_binary_size(cl_program program, size_t param_value_size, void *param_value,
                              size_t *param_value_size_ret) {
    const struct tutti_binary *binary;
    cl_int error = tutti_program_binary(program, &binary);
    if (error != CL_SUCCESS)
        return error;
    TUTTI_RETURN_INFO(size_t, binary ? binary->size : 0);
}

static cl_int get_binary(cl_program program, size_t param_value_size, void *param_value,
                         size_t *param_value_size_ret) {
    unsigned char *where;
    if (param_value && param_value_size < sizeof(where))
        return CL_INVALID_VALUE;
    if (param_value) {
        const struct tutti_binary *binary;
        cl_int error = tutti_program_binary(program, &binary);
        if (error != CL_SUCCESS)
            return error;
        memcpy(&where, param_value, sizeof(where));
        if (binary && where)
            memcpy(where, binary->bytes, binary->size);
    }
    if (param_value_size_ret)
        *param_value_size_ret = sizeof(where);
    return CL_SUCCESS;
}

static cl_int get_kernels(cl_program program, cl_program_info param_name, size_t param_value_size,
                          void *param_value, size_t *param_value_size_ret) {
    char *names;
    size_t count;
    cl_int error = tutti_program_kernel_names(program, &names, &count);
    if (error != CL_SUCCESS)
        return error;
    if (param_name == CL_PROGRAM_NUM_KERNELS) {
        error = tutti_info_return(&count, sizeof(count), param_value_size, param_value,
                                  param_value_size_ret);
    } else if (param_name == CL_PROGRAM_KERNEL_NAMES) {
        error =
            tutti_info_return_string(names, param_value_size, param_value, param_value_size_ret);
    } else {
        cl_bool none = CL_FALSE;
        error = tutti_info_return(&none, sizeof(none), param_value_size, param_value,
                                  param_value_size_ret);
    }
    free(names);
    return error;
}

cl_int tutti_clGetProgramInfo(cl_program program, cl_program_info param_name,
                              size_t param_value_size, void *param_value,
                              size_t *param_value_size_ret) {
    if (!tutti_program_is_valid(program))
        return CL_INVALID_PROGRAM;
    switch (param_name) {
    case CL_PROGRAM_REFERENCE_COUNT:
        TUTTI_RETURN_INFO(cl_uint, atomic_load(&program->object.user_refs));
    case CL_PROGRAM_CONTEXT:
        TUTTI_RETURN_INFO(cl_context, program->context);
    case CL_PROGRAM_NUM_DEVICES:
        TUTTI_RETURN_INFO(cl_uint, 1);
    case CL_PROGRAM_DEVICES:
        TUTTI_RETURN_INFO(cl_device_id, tutti_device());
    case CL_PROGRAM_SOURCE:
        return tutti_info_return_string(program->source, param_value_size, param_value,
                                        param_value_size_ret);
    case CL_PROGRAM_IL:
        return tutti_info_return(program->il, program->il_size, param_value_size, param_value,
                                 param_value_size_ret);
    case CL_PROGRAM_BINARY_SIZES:
        return get_binary_size(program, param_value_size, param_value, param_value_size_ret);
    case CL_PROGRAM_BINARIES:
        return get_binary(program, param_value_size, param_value, param_value_size_ret);
    case CL_PROGRAM_NUM_KERNELS:
    case CL_PROGRAM_KERNEL_NAMES:
    case CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT:
    case CL_PROGRAM_SCOPE_GLOBAL_DTORS_PRESENT:
        return get_kernels(program, param_name, param_value_size, param_value,
                           param_value_size_ret);
    default:
        return CL_INVALID_VALUE;
    }
}
