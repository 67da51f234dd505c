/* SPDX-License-Identifier: MIT */
/* Kernel objects: OpenCL 1.2, section 5.7. */
#include "virtual_device/kernel_create.h"

#include "entry_points.h"

#include <stdlib.h>
#include <string.h>

cl_kernel tutti_clCreateKernel(cl_program program, const char *kernel_name, cl_int *errcode_ret) {
    cl_kernel kernel = NULL;
    cl_int error = CL_SUCCESS;
    if (!tutti_program_is_valid(program))
        error = CL_INVALID_PROGRAM;
    else if (!kernel_name)
        error = CL_INVALID_VALUE;
    else
        kernel = tutti_kernel_create(program, kernel_name, &error);
    if (errcode_ret)
        *errcode_ret = error;
    return kernel;
}

/* Creates one kernel per name; sets the number of those that could be created. */
static cl_int create_named(cl_program program, char *names, cl_kernel *kernels, cl_uint *created) {
    char *rest = NULL;
    cl_int error = CL_SUCCESS;
    cl_uint count = 0;
    for (char *name = strtok_r(names, ";", &rest); name && error == CL_SUCCESS;
         name = strtok_r(NULL, ";", &rest)) {
        kernels[count] = tutti_kernel_create(program, name, &error);
        if (kernels[count])
            count++;
        else if (error == CL_INVALID_KERNEL_DEFINITION)
            error = CL_SUCCESS; /* 5.7.1: no kernel object is created for such a function */
    }
    while (error != CL_SUCCESS && count)
        tutti_object_user_release(kernels[--count]);
    *created = count;
    return error;
}

cl_int tutti_clCreateKernelsInProgram(cl_program program, cl_uint num_kernels, cl_kernel *kernels,
                                      cl_uint *num_kernels_ret) {
    char *names;
    size_t count;
    if (!tutti_program_is_valid(program))
        return CL_INVALID_PROGRAM;
    cl_int error = tutti_program_kernel_names(program, &names, &count);
    if (error != CL_SUCCESS)
        return error;
    cl_uint created = (cl_uint)count;
    if (kernels && num_kernels < count)
        error = CL_INVALID_VALUE;
    else if (kernels)
        error = create_named(program, names, kernels, &created);
    free(names);
    if (error == CL_SUCCESS && num_kernels_ret)
        *num_kernels_ret = created;
    return error;
}

cl_int tutti_clRetainKernel(cl_kernel kernel) {
    if (!TUTTI_IS_KERNEL(kernel))
        return CL_INVALID_KERNEL;
    tutti_object_user_retain(kernel);
    return CL_SUCCESS;
}

cl_int tutti_clReleaseKernel(cl_kernel kernel) {
    if (!TUTTI_IS_KERNEL(kernel))
        return CL_INVALID_KERNEL;
    return tutti_object_user_release(kernel) ? CL_SUCCESS : CL_INVALID_KERNEL;
}

cl_kernel tutti_clCloneKernel(cl_kernel source_kernel, cl_int *errcode_ret) {
    cl_kernel kernel = NULL;
    cl_int error = CL_INVALID_KERNEL;
    if (TUTTI_IS_KERNEL(source_kernel))
        kernel = tutti_kernel_clone(source_kernel, &error);
    if (errcode_ret)
        *errcode_ret = kernel ? CL_SUCCESS : error;
    return kernel;
}

cl_int tutti_clSetKernelArg(cl_kernel kernel, cl_uint arg_index, size_t arg_size,
                            const void *arg_value) {
    if (!TUTTI_IS_KERNEL(kernel))
        return CL_INVALID_KERNEL;
    if (arg_index >= kernel->argument_count)
        return CL_INVALID_ARG_INDEX;
    return tutti_kernel_set_argument(kernel, arg_index, arg_size, arg_value);
}
