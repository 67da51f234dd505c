/* SPDX-License-Identifier: MIT */
#include "virtual_device/program.h"

#include "log.h"
#include "virtual_device/driver.h"
#include "virtual_device/merged.h"

#include <CL/cl_ext.h>
#include <stdlib.h>
#include <string.h>

const struct tutti_real_device *tutti_program_lead(void) {
    const struct tutti_device_list *devices = tutti_devices();
    for (unsigned d = 0; d < devices->count; d++)
        if (tutti_device_is_driven(devices->device[d]))
            return devices->device[d];
    return NULL;
}

static void destroy(void *object) {
    cl_program program = object;
    const struct tutti_device_list *devices = tutti_devices();
    tutti_function_forget_all(program);
    for (unsigned d = 0; d < devices->count; d++)
        if (program->real[d])
            tutti_driver_release_program(devices->device[d], program->real[d]);
    while (program->specializations) {
        struct tutti_specialization *next = program->specializations->next;
        free(program->specializations);
        program->specializations = next;
    }
    tutti_signatures_clear(&program->signatures);
    tutti_signatures_clear(&program->hints);
    tutti_binary_free(program->binary);
    tutti_binary_free(program->loaded);
    free(program->source);
    free(program->il);
    free(program->options);
    free(program->log);
    pthread_mutex_destroy(&program->lock);
    tutti_object_release(program->context);
    free(program);
}

cl_program tutti_program_create(cl_context context, cl_int *error) {
    cl_program program = calloc(1, sizeof(*program));
    char *source = calloc(1, 1);
    if (!program || !source) {
        free(program);
        free(source);
        *error = CL_OUT_OF_HOST_MEMORY;
        return NULL;
    }
    tutti_object_init(&program->object, TUTTI_PROGRAM, destroy);
    program->context = tutti_object_retain(context);
    program->origin = TUTTI_PROGRAM_LINKED;
    program->source = source;
    program->status = CL_BUILD_NONE;
    program->type = CL_PROGRAM_BINARY_TYPE_NONE;
    pthread_mutex_init(&program->lock, NULL);
    return program;
}

/* Bytes of string i; 5.8.1: a length of zero, or no lengths, says that it ends with a zero. */
static size_t string_length(const char **strings, const size_t *lengths, cl_uint i) {
    return lengths && lengths[i] ? lengths[i] : strlen(strings[i]);
}

cl_program tutti_program_create_source(cl_context context, cl_uint count, const char **strings,
                                       const size_t *lengths, cl_int *error) {
    size_t size = 0, end = 0;
    for (cl_uint i = 0; i < count; i++)
        size += string_length(strings, lengths, i);
    cl_program program = tutti_program_create(context, error);
    if (!program)
        return NULL;
    char *source = malloc(size + 1);
    if (!source) {
        tutti_object_release(program);
        *error = CL_OUT_OF_HOST_MEMORY;
        return NULL;
    }
    /* CL_PROGRAM_SOURCE leaves out the zeros that the strings contain. */
    for (cl_uint i = 0; i < count; i++) {
        size_t length = string_length(strings, lengths, i);
        for (size_t k = 0; k < length; k++)
            if (strings[i][k])
                source[end++] = strings[i][k];
    }
    source[end] = '\0';
    free(program->source);
    program->source = source;
    program->origin = TUTTI_PROGRAM_SOURCE;
    return program;
}

static cl_program make_real_il(cl_program program, const struct tutti_real_device *device,
                               cl_int *error) {
    const cl_icd_dispatch *dispatch = device->dispatch;
    clCreateProgramWithILKHR_fn create = NULL;
    /* Tables of older drivers end before this slot. */
    if (device->version >= 210)
        create = dispatch->clCreateProgramWithIL;
    else if (dispatch->clGetExtensionFunctionAddressForPlatform)
        create = (clCreateProgramWithILKHR_fn)dispatch->clGetExtensionFunctionAddressForPlatform(
            device->platform, "clCreateProgramWithILKHR");
    *error = CL_INVALID_OPERATION;
    if (device->ils[strspn(device->ils, " ")] == '\0')
        return NULL;
    cl_program real =
        create ? create(device->place.context, program->il, program->il_size, error) : NULL;
    for (struct tutti_specialization *s = program->specializations; real && s; s = s->next)
        if (device->version >= 220 && dispatch->clSetProgramSpecializationConstant)
            dispatch->clSetProgramSpecializationConstant(real, s->id, s->size, s->value);
    return real;
}

static cl_program make_real_source(const char *source, const struct tutti_real_device *device,
                                   cl_int *error) {
    static const char byte_order_mark[] = "\xef\xbb\xbf";
    const char *prologue = tutti_source_prologue(device);
    const char *texts[] = {prologue, source};
    cl_uint skipped = *prologue ? 0 : 1;
    if (!device->dispatch->clCreateProgramWithSource)
        return NULL;
    /* Compilers pass over it, but at the start only. */
    if (*prologue && strncmp(source, byte_order_mark, strlen(byte_order_mark)) == 0)
        texts[1] += strlen(byte_order_mark);
    return device->dispatch->clCreateProgramWithSource(device->place.context, 2 - skipped,
                                                       texts + skipped, NULL, error);
}

const struct tutti_binary_entry *
tutti_program_source_entry(cl_program program, const struct tutti_real_device *device) {
    const struct tutti_binary_entry *entry =
        program->origin == TUTTI_PROGRAM_BINARY ? tutti_binary_find(program->loaded, device) : NULL;
    return entry && entry->is_source ? entry : NULL;
}

cl_program tutti_program_make_real(cl_program program, const struct tutti_real_device *device,
                                   cl_int *error) {
    const cl_icd_dispatch *dispatch = device->dispatch;
    cl_context context = device->place.context;
    cl_program real = NULL;
    *error = CL_INVALID_OPERATION;
    tutti_driver_lock(device);
    if (program->origin == TUTTI_PROGRAM_SOURCE) {
        real = make_real_source(program->source, device, error);
    } else if (tutti_program_source_entry(program, device)) {
        real = make_real_source(tutti_program_source_entry(program, device)->bytes, device, error);
    } else if (program->origin == TUTTI_PROGRAM_BINARY && dispatch->clCreateProgramWithBinary) {
        const struct tutti_binary_entry *entry = tutti_binary_find(program->loaded, device);
        const unsigned char *bytes = entry ? entry->bytes : NULL;
        *error = CL_INVALID_BINARY;
        if (entry)
            real = dispatch->clCreateProgramWithBinary(context, 1, &device->id, &entry->size,
                                                       &bytes, NULL, error);
    } else if (program->origin == TUTTI_PROGRAM_IL) {
        real = make_real_il(program, device, error);
    }
    tutti_driver_unlock(device);
    if (real && *error != CL_SUCCESS) {
        tutti_driver_release_program(device, real);
        real = NULL;
    }
    return real;
}

/* Makes the real programs; only the lead's error counts. */
static cl_int make_all_real(cl_program program) {
    const struct tutti_device_list *devices = tutti_devices();
    const struct tutti_real_device *lead = tutti_program_lead();
    if (!lead)
        return CL_OUT_OF_RESOURCES;
    for (unsigned d = 0; d < devices->count; d++) {
        const struct tutti_real_device *device = devices->device[d];
        cl_int error;
        if (!tutti_device_is_driven(device))
            continue;
        program->real[d] = tutti_program_make_real(program, device, &error);
        if (!program->real[d] && device == lead)
            return error;
        if (!program->real[d])
            tutti_log(INFO, "program %p: not on %s: it does not load (%d)", (void *)program,
                      device->name, error);
    }
    return CL_SUCCESS;
}

cl_program tutti_program_create_binary(cl_context context, const void *bytes, size_t size,
                                       cl_int *error) {
    cl_program program = tutti_program_create(context, error);
    if (!program)
        return NULL;
    program->origin = TUTTI_PROGRAM_BINARY;
    *error = tutti_binary_decode(bytes, size, &program->loaded);
    if (*error == CL_SUCCESS)
        *error = make_all_real(program);
    if (*error == CL_SUCCESS) {
        struct tutti_signatures *known = program->loaded->type == CL_PROGRAM_BINARY_TYPE_EXECUTABLE
                                             ? &program->signatures
                                             : &program->hints;
        if (!tutti_signatures_append(known, &program->loaded->signatures))
            *error = CL_OUT_OF_HOST_MEMORY;
    }
    if (*error != CL_SUCCESS) {
        tutti_object_release(program);
        return NULL;
    }
    program->type = program->loaded->type;
    program->prints = program->loaded->prints;
    program->identity = program->loaded->identity;
    return program;
}

/* SPIR-V says printf with instruction 184 of OpenCL.std; the same number in another set is rare. */
static bool il_prints(const unsigned char *il, size_t size) {
    uint32_t word[5];
    size_t at = 5 * sizeof(word[0]);
    while (at + sizeof(word) <= size) {
        memcpy(word, il + at, sizeof(word));
        uint32_t length = word[0] >> 16;
        if ((word[0] & 0xffff) == 12 && length >= 5 && word[4] == 184)
            return true;
        if (!length)
            return true; /* not SPIR-V of this byte order: nothing is known */
        at += length * sizeof(word[0]);
    }
    return false;
}

cl_program tutti_program_create_il(cl_context context, const void *il, size_t size, cl_int *error) {
    cl_program program = tutti_program_create(context, error);
    if (!program)
        return NULL;
    program->origin = TUTTI_PROGRAM_IL;
    program->il = malloc(size);
    program->il_size = size;
    *error = CL_OUT_OF_HOST_MEMORY;
    if (program->il) {
        memcpy(program->il, il, size);
        program->prints = il_prints(il, size);
        *error = make_all_real(program);
    }
    if (*error != CL_SUCCESS) {
        tutti_object_release(program);
        return NULL;
    }
    return program;
}

cl_int tutti_program_specialize(cl_program program, cl_uint id, size_t size, const void *value) {
    const struct tutti_real_device *lead = tutti_program_lead();
    if (program->origin != TUTTI_PROGRAM_IL)
        return CL_INVALID_PROGRAM;
    if (!lead || lead->version < 220 || !lead->dispatch->clSetProgramSpecializationConstant)
        return CL_INVALID_OPERATION;
    struct tutti_specialization *one = malloc(sizeof(*one) + size);
    if (!one)
        return CL_OUT_OF_HOST_MEMORY;
    one->id = id;
    one->size = size;
    memcpy(one->value, value, size);

    pthread_mutex_lock(&program->lock);
    cl_int error = program->status == CL_BUILD_IN_PROGRESS ? CL_INVALID_OPERATION : CL_SUCCESS;
    if (error == CL_SUCCESS && !program->real[lead->index]) /* the last build failed */
        program->real[lead->index] = tutti_program_make_real(program, lead, &error);
    if (error == CL_SUCCESS)
        error = lead->dispatch->clSetProgramSpecializationConstant(program->real[lead->index], id,
                                                                   size, value);
    if (error == CL_SUCCESS) {
        /* Appended: the last value of an id is the last one set on each new real program. */
        struct tutti_specialization **end = &program->specializations;
        while (*end)
            end = &(*end)->next;
        one->next = NULL;
        *end = one;
    }
    pthread_mutex_unlock(&program->lock);
    if (error != CL_SUCCESS)
        free(one);
    return error;
}
