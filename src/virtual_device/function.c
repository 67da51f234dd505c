/* SPDX-License-Identifier: MIT */
#include "virtual_device/kernel_create.h"

#include "log.h"
#include "virtual_device/driver.h"
#include "virtual_device/overwrite.h"

#include <stdlib.h>
#include <string.h>

void tutti_function_release(struct tutti_function *function) {
    const struct tutti_device_list *devices = tutti_devices();
    if (!function || atomic_fetch_sub(&function->references, 1) != 1)
        return;
    for (unsigned d = 0; d < devices->count; d++) {
        if (function->real[d])
            tutti_driver_release_kernel(devices->device[d], function->real[d]);
        free(function->given[d]);
    }
    if (function->checker)
        tutti_driver_release_kernel(tutti_program_lead(), function->checker);
    tutti_argument_info_free(function->info, function->argument_count);
    free(function->overwrites);
    free(function->name);
    pthread_mutex_destroy(&function->lock);
    free(function);
}

void tutti_function_forget_all(cl_program program) {
    while (program->functions) {
        struct tutti_function *function = program->functions;
        program->functions = function->next;
        tutti_function_release(function);
    }
}

static cl_int creation_error(cl_int error) {
    switch (error) {
    case CL_INVALID_PROGRAM_EXECUTABLE:
    case CL_INVALID_KERNEL_NAME:
    case CL_INVALID_KERNEL_DEFINITION:
    case CL_OUT_OF_HOST_MEMORY:
        return error;
    default:
        return CL_OUT_OF_RESOURCES;
    }
}

/* Keeps a device off a kernel that another compiler declares in another way. */
static bool agrees(const struct tutti_real_device *device, cl_kernel real,
                   const struct tutti_signature *signature) {
    struct tutti_signature other = {0};
    cl_uint count = 0;
    if (device->dispatch->clGetKernelInfo(real, CL_KERNEL_NUM_ARGS, sizeof(count), &count, NULL) !=
            CL_SUCCESS ||
        count != signature->argument_count)
        return false;
    if (tutti_signature_ask(device, real, signature->name, &other) != CL_SUCCESS)
        return true;
    bool same = true;
    for (unsigned i = 0; i < count; i++)
        same = same && other.info[i].kind == signature->info[i].kind;
    tutti_signature_clear(&other);
    return same;
}

/* Creates the real kernels and finds the signature. */
static cl_int create_real(cl_program program, const char *name, cl_kernel *real, cl_kernel *checker,
                          const struct tutti_signature **signature) {
    const struct tutti_device_list *devices = tutti_devices();
    const struct tutti_real_device *lead = tutti_program_lead();
    cl_int error = CL_OUT_OF_RESOURCES;
    *checker = tutti_driver_create_kernel(lead, program->real[lead->index], name, &error);
    if (!*checker)
        return creation_error(error);
    for (unsigned d = 0; d < devices->count; d++)
        if (program->real[d])
            real[d] =
                tutti_driver_create_kernel(devices->device[d], program->real[d], name, &error);
    if (!real[lead->index])
        return creation_error(error);
    error = tutti_program_signature(program, name, real, signature);
    if (error != CL_SUCCESS)
        return creation_error(error);
    for (unsigned d = 0; d < devices->count; d++) {
        const struct tutti_real_device *device = devices->device[d];
        if (!real[d] || agrees(device, real[d], *signature))
            continue;
        if (device == lead)
            return CL_INVALID_KERNEL_DEFINITION;
        tutti_log(INFO, "kernel %s: not on %s: its arguments are others there", name, device->name);
        tutti_driver_release_kernel(device, real[d]);
        real[d] = NULL;
    }
    return CL_SUCCESS;
}

/*
 * How many work-items a work-group of the kernel may have. NVIDIA's driver (580) says 256 of each
 * kernel, whatever it is, and yet takes as many as the device has room for: programs that ask the
 * device alone do so. Where a kernel needs too much for that, the driver fails its launch.
 */
static size_t largest_group(const struct tutti_real_device *device, cl_kernel real) {
    size_t most = 0;
    device->dispatch->clGetKernelWorkGroupInfo(real, device->id, CL_KERNEL_WORK_GROUP_SIZE,
                                               sizeof(most), &most, NULL);
    bool says_less = strcmp(device->platform_name, "NVIDIA CUDA") == 0;
    return says_less && most < device->max_work_group_size ? device->max_work_group_size : most;
}

/* The real kernel is there and agrees. */
static void add_device(struct tutti_function *function, const struct tutti_real_device *device) {
    unsigned d = device->index;
    function->work_group[d].most = largest_group(device, function->real[d]);
    device->dispatch->clGetKernelWorkGroupInfo(
        function->real[d], device->id, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
        sizeof(function->work_group[d].required), function->work_group[d].required, NULL);
    atomic_fetch_or(&function->devices, 1u << d);
}

void tutti_function_extend(struct tutti_function *function, cl_program program,
                           const struct tutti_real_device *device) {
    const struct tutti_signature *signature =
        tutti_signatures_find(&program->signatures, function->name);
    cl_kernel real =
        tutti_driver_create_kernel(device, program->real[device->index], function->name, NULL);
    if (real && signature && agrees(device, real, signature)) {
        function->real[device->index] = real;
        add_device(function, device);
    } else if (real) {
        tutti_driver_release_kernel(device, real);
    }
}

static cl_int fill(struct tutti_function *function, cl_program program, const char *name) {
    const struct tutti_signature *signature = NULL;
    cl_int error = create_real(program, name, function->real, &function->checker, &signature);
    if (error != CL_SUCCESS)
        return error;
    unsigned count = signature->argument_count;
    function->name = strdup(name);
    function->info = tutti_argument_info_copy(signature->info, count);
    function->argument_count = function->info ? count : 0;
    for (unsigned i = 0; i < function->argument_count; i++)
        function->takes_images |= function->info[i].kind == TUTTI_ARGUMENT_IMAGE;
    function->overwrites = calloc(count + 1, sizeof(*function->overwrites));
    if (!function->name || (count && !function->info) || !function->overwrites)
        return CL_OUT_OF_HOST_MEMORY;
    tutti_overwrite_prove(program->source, program->options, name, function->info, count,
                          function->overwrites);
    const struct tutti_device_list *devices = tutti_devices();
    for (unsigned d = 0; d < devices->count; d++)
        if (function->real[d])
            add_device(function, devices->device[d]);
    return CL_SUCCESS;
}

struct tutti_function *tutti_function_take(cl_program program, const char *name, cl_int *error) {
    const struct tutti_real_device *lead = tutti_program_lead();
    *error = CL_INVALID_PROGRAM_EXECUTABLE;
    if (!lead || program->status != CL_BUILD_SUCCESS ||
        program->type != CL_PROGRAM_BINARY_TYPE_EXECUTABLE || !program->real[lead->index])
        return NULL;
    struct tutti_function *function = program->functions;
    while (function && strcmp(function->name, name) != 0)
        function = function->next;
    *error = CL_SUCCESS;
    if (!function) {
        function = calloc(1, sizeof(*function));
        *error = CL_OUT_OF_HOST_MEMORY;
        if (!function)
            return NULL;
        atomic_init(&function->references, 1);
        pthread_mutex_init(&function->lock, NULL);
        *error = fill(function, program, name);
        if (*error != CL_SUCCESS) {
            tutti_function_release(function);
            return NULL;
        }
        function->next = program->functions;
        program->functions = function;
    }
    atomic_fetch_add(&function->references, 1);
    return function;
}
