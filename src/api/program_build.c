/* SPDX-License-Identifier: MIT */
/* Building programs: OpenCL 1.2, sections 5.6.3 to 5.6.7. */
#include "virtual_device/build.h"

#include "entry_points.h"
#include "sched/runtime.h"

#include <string.h>

/* What the three building calls have in common (5.6.3). */
static cl_int check_lists(cl_uint num_devices, const cl_device_id *device_list, bool notify,
                          const void *user_data) {
    if ((!device_list && num_devices > 0) || (device_list && num_devices == 0))
        return CL_INVALID_VALUE;
    if (!notify && user_data)
        return CL_INVALID_VALUE;
    for (cl_uint i = 0; i < num_devices; i++)
        if (!device_list[i] || device_list[i] != tutti_device())
            return CL_INVALID_DEVICE;
    return CL_SUCCESS;
}

cl_int tutti_clBuildProgram(cl_program program, cl_uint num_devices,
                            const cl_device_id *device_list, const char *options,
                            void(CL_CALLBACK *pfn_notify)(cl_program, void *), void *user_data) {
    if (!tutti_program_is_valid(program))
        return CL_INVALID_PROGRAM;
    cl_int error = check_lists(num_devices, device_list, pfn_notify != NULL, user_data);
    if (error != CL_SUCCESS)
        return error;
    if (program->origin == TUTTI_PROGRAM_LINKED)
        return CL_INVALID_OPERATION;
    if (program->origin == TUTTI_PROGRAM_BINARY &&
        program->loaded->type != CL_PROGRAM_BINARY_TYPE_EXECUTABLE)
        return CL_INVALID_BINARY;
    if (!tutti_runtime_usable())
        return CL_OUT_OF_RESOURCES;
    struct tutti_build_request request = {
        .operation = TUTTI_BUILD,
        .program = program,
        .options = options,
        .notify = pfn_notify,
        .user_data = user_data,
    };
    return tutti_build(&request);
}

cl_int tutti_clCompileProgram(cl_program program, cl_uint num_devices,
                              const cl_device_id *device_list, const char *options,
                              cl_uint num_input_headers, const cl_program *input_headers,
                              const char **header_include_names,
                              void(CL_CALLBACK *pfn_notify)(cl_program, void *), void *user_data) {
    if (!tutti_program_is_valid(program))
        return CL_INVALID_PROGRAM;
    if (num_input_headers ? !input_headers || !header_include_names
                          : input_headers || header_include_names)
        return CL_INVALID_VALUE;
    cl_int error = check_lists(num_devices, device_list, pfn_notify != NULL, user_data);
    if (error != CL_SUCCESS)
        return error;
    if (program->origin != TUTTI_PROGRAM_SOURCE && program->origin != TUTTI_PROGRAM_IL)
        return CL_INVALID_OPERATION;
    if (program->origin == TUTTI_PROGRAM_IL)
        num_input_headers = 0; /* "are ignored" */
    for (cl_uint i = 0; i < num_input_headers; i++) {
        if (!tutti_program_is_valid(input_headers[i]))
            return CL_INVALID_PROGRAM;
        if (!header_include_names[i])
            return CL_INVALID_VALUE;
        if (input_headers[i]->context != program->context)
            return CL_INVALID_CONTEXT;
        if (input_headers[i]->origin != TUTTI_PROGRAM_SOURCE)
            return CL_INVALID_OPERATION;
    }
    if (!tutti_runtime_usable())
        return CL_OUT_OF_RESOURCES;
    struct tutti_build_request request = {
        .operation = TUTTI_COMPILE,
        .program = program,
        .options = options,
        .input_count = num_input_headers,
        .inputs = num_input_headers ? input_headers : NULL,
        .names = num_input_headers ? header_include_names : NULL,
        .notify = pfn_notify,
        .user_data = user_data,
    };
    return tutti_build(&request);
}

static cl_int check_link(cl_context context, cl_uint num_input_programs,
                         const cl_program *input_programs) {
    for (cl_uint i = 0; i < num_input_programs; i++) {
        if (!tutti_program_is_valid(input_programs[i]))
            return CL_INVALID_PROGRAM;
        if (input_programs[i]->context != context)
            return CL_INVALID_CONTEXT;
    }
    return tutti_runtime_usable() ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
}

cl_program tutti_clLinkProgram(cl_context context, cl_uint num_devices,
                               const cl_device_id *device_list, const char *options,
                               cl_uint num_input_programs, const cl_program *input_programs,
                               void(CL_CALLBACK *pfn_notify)(cl_program, void *), void *user_data,
                               cl_int *errcode_ret) {
    cl_program program = NULL;
    cl_int error = CL_SUCCESS;
    if (!TUTTI_IS_CONTEXT(context))
        error = CL_INVALID_CONTEXT;
    else if (num_input_programs == 0 || !input_programs)
        error = CL_INVALID_VALUE;
    if (error == CL_SUCCESS)
        error = check_lists(num_devices, device_list, pfn_notify != NULL, user_data);
    if (error == CL_SUCCESS)
        error = check_link(context, num_input_programs, input_programs);
    if (error == CL_SUCCESS)
        program = tutti_program_create(context, &error);
    if (program) {
        struct tutti_build_request request = {
            .operation = TUTTI_LINK,
            .program = program,
            .options = options,
            .input_count = num_input_programs,
            .inputs = input_programs,
            .notify = pfn_notify,
            .user_data = user_data,
        };
        error = tutti_build(&request);
        /* A link that began and failed leaves a program, whose log says why (5.6.3). */
        if (error != CL_SUCCESS && error != CL_LINK_PROGRAM_FAILURE) {
            tutti_object_release(program);
            program = NULL;
        }
    }
    if (errcode_ret)
        *errcode_ret = error;
    return program;
}

cl_int tutti_clUnloadPlatformCompiler(cl_platform_id platform) {
    return platform && platform == tutti_platform() ? CL_SUCCESS : CL_INVALID_PLATFORM;
}

cl_int tutti_clUnloadCompiler(void) { return CL_SUCCESS; }

/* With the program's lock held. */
static size_t global_variable_size(cl_program program) {
    const struct tutti_real_device *lead = tutti_program_lead();
    cl_program real = lead ? program->real[lead->index] : NULL;
    size_t size = 0;
    if (!real || program->status != CL_BUILD_SUCCESS ||
        lead->dispatch->clGetProgramBuildInfo(real, lead->id,
                                              CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE,
                                              sizeof(size), &size, NULL) != CL_SUCCESS)
        return 0;
    return size;
}

static cl_int get_build_info(cl_program program, cl_program_build_info param_name,
                             size_t param_value_size, void *param_value,
                             size_t *param_value_size_ret) {
    bool finished = program->status == CL_BUILD_SUCCESS || program->status == CL_BUILD_ERROR;
    switch (param_name) {
    case CL_PROGRAM_BUILD_STATUS:
        TUTTI_RETURN_INFO(cl_build_status, program->status);
    case CL_PROGRAM_BUILD_OPTIONS:
        return tutti_info_return_string(finished && program->options ? program->options : "",
                                        param_value_size, param_value, param_value_size_ret);
    case CL_PROGRAM_BUILD_LOG:
        return tutti_info_return_string(finished && program->log ? program->log : "",
                                        param_value_size, param_value, param_value_size_ret);
    case CL_PROGRAM_BINARY_TYPE:
        TUTTI_RETURN_INFO(cl_program_binary_type, program->type);
    case CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE:
        TUTTI_RETURN_INFO(size_t, global_variable_size(program));
    default:
        return CL_INVALID_VALUE;
    }
}

cl_int tutti_clGetProgramBuildInfo(cl_program program, cl_device_id device,
                                   cl_program_build_info param_name, size_t param_value_size,
                                   void *param_value, size_t *param_value_size_ret) {
    if (!tutti_program_is_valid(program))
        return CL_INVALID_PROGRAM;
    if (!device || device != tutti_device())
        return CL_INVALID_DEVICE;
    pthread_mutex_lock(&program->lock);
    cl_int error =
        get_build_info(program, param_name, param_value_size, param_value, param_value_size_ret);
    pthread_mutex_unlock(&program->lock);
    return error;
}
