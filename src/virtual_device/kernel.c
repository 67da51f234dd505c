/* SPDX-License-Identifier: MIT */
#include "virtual_device/kernel_create.h"

#include "log.h"
#include "virtual_device/driver.h"
#include "virtual_device/overwrite.h"

#include <stdlib.h>
#include <string.h>

/* What only this file needs of a kernel. */
struct kernel {
    struct _cl_kernel kernel;
    struct tutti_kernel_link link; /* in its program; guarded by the program's lock */
    uint64_t identity;
};

static void attach(cl_program program, struct kernel *own) {
    own->link = (struct tutti_kernel_link){
        .next = program->kernels, .from = &program->kernels, .kernel = &own->kernel};
    if (program->kernels)
        program->kernels->from = &own->link.next;
    program->kernels = &own->link;
}

static void detach(cl_program program, struct kernel *own) {
    pthread_mutex_lock(&program->lock);
    *own->link.from = own->link.next;
    if (own->link.next)
        own->link.next->from = own->link.from;
    pthread_mutex_unlock(&program->lock);
}

static void release_real(cl_kernel *real) {
    const struct tutti_device_list *devices = tutti_devices();
    for (unsigned d = 0; d < devices->count; d++)
        if (real[d])
            tutti_driver_release_kernel(devices->device[d], real[d]);
}

static void destroy(void *object) {
    struct kernel *own = object;
    cl_kernel kernel = &own->kernel;
    detach(kernel->program, own);
    release_real(kernel->real);
    if (kernel->checker)
        tutti_driver_release_kernel(tutti_program_lead(), kernel->checker);
    tutti_kernel_arguments_destroy(kernel->arguments);
    for (unsigned d = 0; d < TUTTI_MAX_DEVICES; d++)
        free(kernel->given[d]);
    tutti_argument_info_free(kernel->info, kernel->argument_count);
    free(kernel->overwrites);
    pthread_mutex_destroy(&kernel->lock);
    free(kernel->name);
    tutti_object_release(kernel->program);
    free(own);
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

/* Creates the real kernels and finds the signature. With the program's lock held. */
static cl_int create_real(cl_program program, const char *name, cl_kernel *real, cl_kernel *checker,
                          const struct tutti_signature **signature) {
    const struct tutti_device_list *devices = tutti_devices();
    const struct tutti_real_device *lead = tutti_program_lead();
    if (!lead || program->status != CL_BUILD_SUCCESS ||
        program->type != CL_PROGRAM_BINARY_TYPE_EXECUTABLE || !program->real[lead->index])
        return CL_INVALID_PROGRAM_EXECUTABLE;
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

static void ask_work_groups(cl_kernel kernel) {
    const struct tutti_device_list *devices = tutti_devices();
    for (unsigned d = 0; d < devices->count; d++) {
        const struct tutti_real_device *device = devices->device[d];
        if (!kernel->real[d])
            continue;
        device->dispatch->clGetKernelWorkGroupInfo(
            kernel->real[d], device->id, CL_KERNEL_WORK_GROUP_SIZE,
            sizeof(kernel->work_group[d].most), &kernel->work_group[d].most, NULL);
        device->dispatch->clGetKernelWorkGroupInfo(
            kernel->real[d], device->id, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
            sizeof(kernel->work_group[d].required), kernel->work_group[d].required, NULL);
    }
}

cl_kernel tutti_kernel_create(cl_program program, const char *name, cl_int *error) {
    struct kernel *own = calloc(1, sizeof(*own));
    const struct tutti_signature *signature = NULL;
    if (!own) {
        *error = CL_OUT_OF_HOST_MEMORY;
        return NULL;
    }
    cl_kernel kernel = &own->kernel;
    pthread_mutex_lock(&program->lock);
    *error = create_real(program, name, kernel->real, &kernel->checker, &signature);
    if (*error == CL_SUCCESS) {
        unsigned count = signature->argument_count;
        kernel->name = strdup(name);
        kernel->info = tutti_argument_info_copy(signature->info, count);
        kernel->argument_count = kernel->info ? count : 0;
        kernel->arguments = tutti_kernel_arguments_new(count);
        kernel->overwrites = calloc(count + 1, sizeof(*kernel->overwrites));
        if (!kernel->name || !kernel->arguments || (count && !kernel->info) || !kernel->overwrites)
            *error = CL_OUT_OF_HOST_MEMORY;
        else
            tutti_overwrite_prove(program->source, program->options, name, kernel->info, count,
                                  kernel->overwrites);
        ask_work_groups(kernel);
    }
    for (unsigned d = 0; d < TUTTI_MAX_DEVICES; d++)
        kernel->devices |= kernel->real[d] ? 1u << d : 0;
    pthread_mutex_init(&kernel->lock, NULL);
    kernel->program = tutti_object_retain(program);
    kernel->prints = program->prints;
    own->identity = tutti_hash_string(program->identity, name);
    tutti_object_init(&kernel->object, TUTTI_KERNEL, destroy);
    attach(program, own);
    pthread_mutex_unlock(&program->lock);
    if (*error != CL_SUCCESS) {
        tutti_object_release(kernel);
        return NULL;
    }
    return kernel;
}

uint64_t tutti_kernel_identity(cl_kernel kernel) {
    return ((const struct kernel *)kernel)->identity;
}
