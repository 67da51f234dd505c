/* SPDX-License-Identifier: MIT */
#include "virtual_device/program.h"

#include "log.h"
#include "virtual_device/driver.h"
#include "virtual_device/include.h"
#include "virtual_device/late_build.h"
#include "virtual_device/pocl.h"

#include <stdlib.h>
#include <string.h>

/* With the lock held. */
static bool is_executable(cl_program program) {
    return program->status == CL_BUILD_SUCCESS &&
           program->type == CL_PROGRAM_BINARY_TYPE_EXECUTABLE;
}

/* With the lock held. */
static cl_int kernel_names(cl_program program, char **names, size_t *count) {
    const struct tutti_real_device *lead = tutti_program_lead();
    if (!lead || !is_executable(program) || !program->real[lead->index])
        return CL_INVALID_PROGRAM_EXECUTABLE;
    cl_program real = program->real[lead->index];
    size_t size = 0;
    cl_int error =
        lead->dispatch->clGetProgramInfo(real, CL_PROGRAM_NUM_KERNELS, sizeof(*count), count, NULL);
    if (error == CL_SUCCESS)
        error = lead->dispatch->clGetProgramInfo(real, CL_PROGRAM_KERNEL_NAMES, 0, NULL, &size);
    if (error != CL_SUCCESS)
        return error;
    char *answer = calloc(1, size + 1);
    if (!answer)
        return CL_OUT_OF_HOST_MEMORY;
    if (size)
        error = lead->dispatch->clGetProgramInfo(real, CL_PROGRAM_KERNEL_NAMES, size, answer, NULL);
    if (error != CL_SUCCESS) {
        free(answer);
        return error;
    }
    *names = answer;
    return CL_SUCCESS;
}

cl_int tutti_program_kernel_names(cl_program program, char **names, size_t *count) {
    pthread_mutex_lock(&program->lock);
    cl_int error = kernel_names(program, names, count);
    pthread_mutex_unlock(&program->lock);
    return error;
}

/* The hints, read from the source when that was not done before. With the lock held. */
static bool read_hints(cl_program program) {
    if (program->origin != TUTTI_PROGRAM_SOURCE || program->hints.count)
        return true;
    return tutti_signatures_read(program->source, &program->hints);
}

bool tutti_program_hints(cl_program program, struct tutti_signatures *hints) {
    pthread_mutex_lock(&program->lock);
    bool done = read_hints(program) && tutti_signatures_append(hints, &program->hints);
    pthread_mutex_unlock(&program->lock);
    return done;
}

/* Falls back on the hints, when their number of arguments is the real kernel's. */
static cl_int signature_from_hints(cl_program program, const char *name,
                                   const struct tutti_real_device *device, cl_kernel kernel,
                                   struct tutti_signatures *found) {
    cl_uint count = 0;
    cl_int error =
        device->dispatch->clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof(count), &count, NULL);
    if (error != CL_SUCCESS)
        return error;
    if (!read_hints(program))
        return CL_OUT_OF_HOST_MEMORY;
    const struct tutti_signature *hint = tutti_signatures_find(&program->hints, name);
    if (!hint || hint->argument_count != count) {
        tutti_log(INFO, "program %p: nothing tells the arguments of kernel %s", (void *)program,
                  name);
        return CL_INVALID_KERNEL_DEFINITION;
    }
    struct tutti_signatures one = {.count = 1, .signature = (struct tutti_signature *)hint};
    return tutti_signatures_append(found, &one) ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
}

cl_int tutti_program_signature(cl_program program, const char *name, const cl_kernel *kernel,
                               const struct tutti_signature **signature) {
    const struct tutti_device_list *devices = tutti_devices();
    *signature = tutti_signatures_find(&program->signatures, name);
    if (*signature)
        return CL_SUCCESS;

    /* The lead is the first that has the kernel. */
    const struct tutti_real_device *first = NULL;
    struct tutti_signature answer = {0};
    cl_int error = CL_KERNEL_ARG_INFO_NOT_AVAILABLE;
    for (unsigned d = 0; d < devices->count && error != CL_SUCCESS; d++) {
        if (!kernel[d])
            continue;
        if (!first)
            first = devices->device[d];
        error = tutti_signature_ask(devices->device[d], kernel[d], name, &answer);
        if (error == CL_OUT_OF_HOST_MEMORY)
            return error;
    }
    if (error == CL_SUCCESS)
        error = tutti_signatures_add(&program->signatures, &answer) ? CL_SUCCESS
                                                                    : CL_OUT_OF_HOST_MEMORY;
    else if (first)
        error =
            signature_from_hints(program, name, first, kernel[first->index], &program->signatures);
    if (error == CL_SUCCESS)
        *signature = tutti_signatures_find(&program->signatures, name);
    return error;
}

bool tutti_program_tells_arguments(cl_program program) {
    pthread_mutex_lock(&program->lock);
    bool tells = program->origin != TUTTI_PROGRAM_SOURCE ||
                 (program->options && strstr(program->options, "-cl-kernel-arg-info"));
    pthread_mutex_unlock(&program->lock);
    return tells;
}

/* Makes sure that the signatures of all kernels are known, as far as they can be. */
static void complete_signatures(cl_program program) {
    const struct tutti_device_list *devices = tutti_devices();
    char *names, *rest = NULL;
    size_t count;
    if (kernel_names(program, &names, &count) != CL_SUCCESS)
        return;
    for (char *name = strtok_r(names, ";", &rest); name; name = strtok_r(NULL, ";", &rest)) {
        cl_kernel kernel[TUTTI_MAX_DEVICES] = {NULL};
        const struct tutti_signature *signature;
        if (tutti_signatures_find(&program->signatures, name))
            continue;
        for (unsigned d = 0; d < devices->count; d++)
            if (program->real[d])
                kernel[d] =
                    tutti_driver_create_kernel(devices->device[d], program->real[d], name, NULL);
        tutti_program_signature(program, name, kernel, &signature);
        for (unsigned d = 0; d < devices->count; d++)
            if (kernel[d])
                tutti_driver_release_kernel(devices->device[d], kernel[d]);
    }
    free(names);
}

/*
 * The binary of one real program (free); NULL when it has none. There may be other devices in the
 * program's context, for which it was not built.
 */
static void *real_binary(cl_program real, const struct tutti_real_device *device, size_t *size) {
    const cl_icd_dispatch *dispatch = device->dispatch;
    cl_device_id ids[TUTTI_MAX_DEVICES];
    size_t sizes[TUTTI_MAX_DEVICES] = {0}, of_ids = 0, own = 0;
    unsigned char *binaries[TUTTI_MAX_DEVICES] = {NULL};
    *size = 0;
    if (dispatch->clGetProgramInfo(real, CL_PROGRAM_DEVICES, sizeof(ids), ids, &of_ids) !=
            CL_SUCCESS ||
        dispatch->clGetProgramInfo(real, CL_PROGRAM_BINARY_SIZES, sizeof(sizes), sizes, NULL) !=
            CL_SUCCESS)
        return NULL;
    size_t count = of_ids / sizeof(*ids);
    while (own < count && ids[own] != device->id)
        own++;
    if (own == count || sizes[own] == 0 || !(binaries[own] = malloc(sizes[own])))
        return NULL;
    *size = sizes[own];
    if (dispatch->clGetProgramInfo(real, CL_PROGRAM_BINARIES, count * sizeof(*binaries), binaries,
                                   NULL) != CL_SUCCESS) {
        free(binaries[own]);
        return NULL;
    }
    return binaries[own];
}

/*
 * To give a binary out, PoCL compiles each kernel once more, for any size of work-group: that can
 * take a hundred times as long as the build. It has a cache of its own for sources, with kernels
 * for the sizes in use. So the source stands for its binary, unless files belong to it. With the
 * lock.
 */
static bool source_will_do(cl_program program, const struct tutti_real_device *device) {
    return tutti_pocl_is(device) && program->origin == TUTTI_PROGRAM_SOURCE &&
           is_executable(program) && !tutti_source_reads_files(program->source, program->options);
}

/* With the lock held. */
static cl_int make_binary(cl_program program) {
    const struct tutti_device_list *devices = tutti_devices();
    struct tutti_binary *binary = calloc(1, sizeof(*binary));
    void *bytes[TUTTI_MAX_DEVICES];
    if (!binary)
        return CL_OUT_OF_HOST_MEMORY;
    for (unsigned d = 0; d < devices->count; d++) {
        const struct tutti_real_device *device = devices->device[d];
        struct tutti_binary_entry *entry = &binary->entry[binary->count];
        bool late = tutti_late_build_devices(program) & 1u << d;
        if ((!program->real[d] && !late) || tutti_binary_find(binary, device))
            continue;
        entry->identity = device->identity;
        entry->device_name = device->name;
        entry->is_source = source_will_do(program, device);
        if (entry->is_source) {
            entry->bytes = bytes[binary->count] = strdup(program->source);
            entry->size = strlen(program->source) + 1;
        } else {
            tutti_driver_lock(device);
            entry->bytes = bytes[binary->count] =
                real_binary(program->real[d], device, &entry->size);
            tutti_driver_unlock(device);
        }
        if (entry->bytes)
            binary->count++;
    }
    binary->type = program->type;
    binary->prints = program->prints;
    binary->identity = program->identity;
    binary->options = program->options ? program->options : "";
    const struct tutti_real_device *lead = tutti_program_lead();
    if (!lead || !tutti_binary_find(binary, lead)) {
        for (unsigned i = 0; i < binary->count; i++)
            free(bytes[i]);
        tutti_binary_free(binary);
        return CL_SUCCESS; /* "If a binary is not available, a size of zero is returned" */
    }
    bool executable = is_executable(program);
    if (executable)
        complete_signatures(program);
    bool done = executable || read_hints(program);
    const struct tutti_signatures known = executable ? program->signatures : program->hints;
    binary->signatures = known;
    done = done && tutti_binary_encode(binary);
    binary->signatures = (struct tutti_signatures){0};
    for (unsigned i = 0; i < binary->count; i++)
        free(bytes[i]);
    binary->count = 0;
    if (!done) {
        tutti_binary_free(binary);
        return CL_OUT_OF_HOST_MEMORY;
    }
    program->binary = binary;
    return CL_SUCCESS;
}

cl_int tutti_program_binary(cl_program program, const struct tutti_binary **binary) {
    cl_int error = CL_SUCCESS;
    *binary = NULL;
    pthread_mutex_lock(&program->lock);
    if (program->origin == TUTTI_PROGRAM_BINARY) {
        *binary = program->loaded;
    } else if (program->status == CL_BUILD_SUCCESS) {
        if (!program->binary)
            error = make_binary(program);
        *binary = program->binary;
    }
    pthread_mutex_unlock(&program->lock);
    return error;
}
