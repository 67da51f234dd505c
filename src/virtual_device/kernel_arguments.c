/* SPDX-License-Identifier: MIT */
#include "virtual_device/kernel_create.h"

#include "memory/mem.h"
#include "recycler.h"

#include <stdlib.h>
#include <string.h>

/* Copies of values lie behind the arguments in one block, aligned for any type of OpenCL C. */
#define VALUE_ALIGNMENT ((size_t)16)

static size_t aligned(size_t size) {
    return (size + VALUE_ALIGNMENT - 1) / VALUE_ALIGNMENT * VALUE_ALIGNMENT;
}

struct tutti_arguments *tutti_kernel_arguments_new(unsigned count) {
    struct tutti_arguments *arguments =
        calloc(1, sizeof(*arguments) + count * sizeof(arguments->argument[0]));
    if (arguments)
        arguments->count = count;
    return arguments;
}

#define LARGEST_INTEGERS ((size_t)16) /* a vector; larger ones are structures */

/* What the argument makes of the hash of all integers. */
static uint64_t hash_integer(const struct tutti_argument_info *info, cl_uint index,
                             const struct tutti_argument *argument) {
    uint64_t hash = (index + 1) * 0xd6e8feb86659fd93u, part;
    if (!info[index].may_be_integer || !argument->value || argument->size > LARGEST_INTEGERS)
        return 0;
    for (size_t at = 0; at < argument->size; at += sizeof(part)) {
        size_t left = argument->size - at;
        part = 0;
        memcpy(&part, (const char *)argument->value + at,
               left < sizeof(part) ? left : sizeof(part));
        hash = (hash ^ part) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
    }
    return hash;
}

/*
 * A kernel does not keep the memory objects that are its arguments (OpenCL 1.2, 5.7.2,
 * clSetKernelArg); it keeps their bytes, to tell whether they are still alive.
 */
static void forget_objects(const struct tutti_argument *argument) {
    tutti_object_free(argument->mem);
    tutti_object_release(argument->sampler);
}

void tutti_kernel_arguments_destroy(struct tutti_arguments *arguments) {
    for (unsigned i = 0; arguments && i < arguments->count; i++) {
        forget_objects(&arguments->argument[i]);
        free(arguments->argument[i].value);
    }
    free(arguments);
}

void tutti_arguments_free(struct tutti_arguments *arguments) {
    for (unsigned i = 0; arguments && i < arguments->count; i++) {
        tutti_object_release(arguments->argument[i].mem);
        tutti_object_release(arguments->argument[i].sampler);
    }
    tutti_recycler_give(arguments);
}

static bool is_gone(const struct tutti_argument *argument) {
    return argument->mem && !TUTTI_IS_MEM(argument->mem);
}

/* Not an argument, but an allocation that it may lead to: when that is freed, it does not. */
static bool is_reached(const struct tutti_argument *argument) { return argument->size == 0; }

/* With the kernel's lock held. */
static cl_int copy_arguments(const struct tutti_arguments *from, struct tutti_arguments **copy) {
    size_t head = aligned(sizeof(*from) + from->count * sizeof(from->argument[0]));
    size_t size = head;
    for (unsigned i = 0; i < from->count; i++) {
        if (!from->argument[i].set)
            return CL_INVALID_KERNEL_ARGS;
        if (is_gone(&from->argument[i]) && !is_reached(&from->argument[i]))
            return CL_INVALID_MEM_OBJECT;
        if (from->argument[i].value)
            size += aligned(from->argument[i].size);
    }
    struct tutti_arguments *to = tutti_recycler_take(size);
    if (!to)
        return CL_OUT_OF_HOST_MEMORY;
    to->count = from->count;
    to->integers = from->integers;
    char *bytes = (char *)to + head;
    for (unsigned i = 0; i < from->count; i++) {
        struct tutti_argument *argument = &to->argument[i];
        *argument = from->argument[i];
        if (is_gone(argument))
            argument->mem = NULL;
        tutti_object_retain(argument->mem);
        tutti_object_retain(argument->sampler);
        if (argument->value) {
            memcpy(bytes, argument->value, argument->size);
            argument->value = bytes;
            bytes += aligned(argument->size);
        }
    }
    *copy = to;
    return CL_SUCCESS;
}

cl_int tutti_kernel_copy_arguments(cl_kernel kernel, struct tutti_arguments **copy) {
    pthread_mutex_lock(&kernel->lock);
    cl_int error = copy_arguments(kernel->arguments, copy);
    pthread_mutex_unlock(&kernel->lock);
    return error;
}

static cl_int check_buffer(cl_kernel kernel, cl_mem mem) {
    if (!mem)
        return CL_SUCCESS;
    if (!TUTTI_IS_MEM(mem) || tutti_mem_is_image(mem))
        return CL_INVALID_MEM_OBJECT;
    return mem->context == kernel->program->context ? CL_SUCCESS : CL_INVALID_CONTEXT;
}

/* Is it an image of the dimensions that the argument's type names? */
static bool image_fits(cl_mem mem, const char *type_name) {
    static const struct {
        const char *prefix;
        cl_mem_object_type type;
    } types[] = {
        {"image1d_array", CL_MEM_OBJECT_IMAGE1D_ARRAY},
        {"image1d_buffer", CL_MEM_OBJECT_IMAGE1D_BUFFER},
        {"image1d", CL_MEM_OBJECT_IMAGE1D},
        {"image2d_array", CL_MEM_OBJECT_IMAGE2D_ARRAY},
        {"image2d", CL_MEM_OBJECT_IMAGE2D},
        {"image3d", CL_MEM_OBJECT_IMAGE3D},
    };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strncmp(type_name, types[i].prefix, strlen(types[i].prefix)) == 0)
            return mem->type == types[i].type;
    return true; /* a name of the program's own */
}

static cl_int check_image(cl_kernel kernel, const struct tutti_argument_info *info, cl_mem mem) {
    if (!TUTTI_IS_MEM(mem) || !tutti_mem_is_image(mem) || !image_fits(mem, info->type_name))
        return CL_INVALID_MEM_OBJECT;
    if (mem->context != kernel->program->context)
        return CL_INVALID_CONTEXT;
    if ((info->reads_only && (mem->flags & CL_MEM_WRITE_ONLY)) ||
        (info->writes_only && (mem->flags & CL_MEM_READ_ONLY)))
        return CL_INVALID_ARG_VALUE;
    return CL_SUCCESS;
}

/* Checks an argument that names an object, and fills it. */
static cl_int take_object(cl_kernel kernel, const struct tutti_argument_info *info, size_t size,
                          const void *value, struct tutti_argument *argument) {
    cl_int error = CL_SUCCESS;
    if (size != sizeof(cl_mem))
        return CL_INVALID_ARG_SIZE;
    if (info->kind == TUTTI_ARGUMENT_SAMPLER) {
        cl_sampler sampler = NULL;
        if (value)
            memcpy(&sampler, value, sizeof(sampler));
        if (!TUTTI_IS_SAMPLER(sampler))
            return CL_INVALID_SAMPLER;
        argument->sampler = sampler;
    } else {
        cl_mem mem = NULL;
        if (value)
            memcpy(&mem, value, sizeof(mem));
        error = info->kind == TUTTI_ARGUMENT_IMAGE ? check_image(kernel, info, mem)
                                                   : check_buffer(kernel, mem);
        argument->mem = mem;
    }
    return error;
}

/* Lets the lead judge size and value. */
static cl_int check_on_lead(cl_kernel kernel, cl_uint index, size_t size, const void *value) {
    const struct tutti_real_device *lead = tutti_program_lead();
    pthread_mutex_lock(&kernel->function->lock);
    cl_int error = lead->dispatch->clSetKernelArg(kernel->function->checker, index, size, value);
    pthread_mutex_unlock(&kernel->function->lock);
    switch (error) {
    case CL_SUCCESS:
    case CL_INVALID_ARG_INDEX:
    case CL_INVALID_ARG_VALUE:
    case CL_INVALID_ARG_SIZE:
    case CL_INVALID_MEM_OBJECT:
    case CL_OUT_OF_RESOURCES:
    case CL_OUT_OF_HOST_MEMORY:
        return error;
    default:
        return CL_INVALID_ARG_VALUE;
    }
}

static cl_int change(cl_kernel kernel, cl_uint index, size_t size, const void *value) {
    const struct tutti_argument_info *info = &kernel->info[index];
    struct tutti_argument argument = {.set = true, .size = size};
    bool checked = false;
    cl_int error = CL_SUCCESS;
    switch (info->kind) {
    case TUTTI_ARGUMENT_BUFFER:
    case TUTTI_ARGUMENT_IMAGE:
    case TUTTI_ARGUMENT_SAMPLER:
        error = take_object(kernel, info, size, value, &argument);
        break;
    case TUTTI_ARGUMENT_LOCAL:
        if (value)
            error = CL_INVALID_ARG_VALUE;
        else if (!size)
            error = CL_INVALID_ARG_SIZE;
        checked = true;
        break;
    case TUTTI_ARGUMENT_VALUE:
        if (!value)
            error = CL_INVALID_ARG_VALUE;
        else if (!size)
            error = CL_INVALID_ARG_SIZE;
        checked = true;
        break;
    }
    if (error != CL_SUCCESS)
        return error;

    pthread_mutex_lock(&kernel->lock);
    struct tutti_argument *own = &kernel->arguments->argument[index];
    struct tutti_argument old = *own;
    /* A device cares for the size of a value, not for its bytes. */
    if (checked && !(old.set && old.size == size))
        error = check_on_lead(kernel, index, size, value);
    if (error == CL_SUCCESS && info->kind == TUTTI_ARGUMENT_VALUE) {
        kernel->arguments->integers ^= hash_integer(kernel->info, index, &old);
        /* The size of a value never changes: its bytes are allocated once. */
        argument.value = old.value && old.size == size ? old.value : malloc(size);
        if (argument.value)
            memcpy(argument.value, value, size);
        else
            error = CL_OUT_OF_HOST_MEMORY;
        kernel->arguments->integers ^=
            hash_integer(kernel->info, index, error == CL_SUCCESS ? &argument : &old);
    }
    if (error == CL_SUCCESS) {
        tutti_object_retain_bytes(argument.mem);
        tutti_object_retain(argument.sampler);
        *own = argument;
    }
    pthread_mutex_unlock(&kernel->lock);
    if (error == CL_SUCCESS) {
        if (old.value != argument.value)
            free(old.value);
        forget_objects(&old);
    }
    return error;
}

/* Without the lock, as only one thread at a time may set arguments (OpenCL 3.0, appendix A.2). */
static bool holds(const struct tutti_argument *own, cl_mem mem) {
    return own->mem == mem && !own->pointer && TUTTI_IS_MEM(mem);
}

/* The memory object that a program sets for a buffer is another one each time in many loops. */
static bool replace_buffer(cl_kernel kernel, cl_uint index, cl_mem mem) {
    struct tutti_argument *own = &kernel->arguments->argument[index];
    if (holds(own, mem))
        return true;
    if (!own->mem || check_buffer(kernel, mem) != CL_SUCCESS)
        return false;
    tutti_object_retain_bytes(mem);
    pthread_mutex_lock(&kernel->lock);
    own = &kernel->arguments->argument[index];
    cl_mem old = own->mem;
    own->mem = mem;
    own->pointer = NULL;
    pthread_mutex_unlock(&kernel->lock);
    tutti_object_free(old);
    return true;
}

cl_int tutti_kernel_set_argument(cl_kernel kernel, cl_uint index, size_t size, const void *value) {
    cl_mem mem = NULL;
    if (kernel->info[index].kind == TUTTI_ARGUMENT_BUFFER && size == sizeof(mem) && value)
        memcpy(&mem, value, sizeof(mem));
    return mem && replace_buffer(kernel, index, mem) ? CL_SUCCESS
                                                     : change(kernel, index, size, value);
}

cl_int tutti_kernel_set_pointer(cl_kernel kernel, cl_uint index, cl_mem mem, void *pointer) {
    if (kernel->info[index].kind != TUTTI_ARGUMENT_BUFFER)
        return CL_INVALID_ARG_VALUE;
    struct tutti_argument argument = {
        .set = true, .size = sizeof(pointer), .mem = mem, .pointer = pointer};
    tutti_object_retain_bytes(mem);
    pthread_mutex_lock(&kernel->lock);
    struct tutti_argument old = kernel->arguments->argument[index];
    kernel->arguments->argument[index] = argument;
    pthread_mutex_unlock(&kernel->lock);
    forget_objects(&old);
    return CL_SUCCESS;
}

cl_int tutti_kernel_set_reached(cl_kernel kernel, const cl_mem *mem, unsigned count) {
    unsigned declared = kernel->argument_count;
    struct tutti_arguments *arguments = tutti_kernel_arguments_new(declared + count);
    if (!arguments)
        return CL_OUT_OF_HOST_MEMORY;
    for (unsigned i = 0; i < count; i++) {
        tutti_object_retain_bytes(mem[i]);
        arguments->argument[declared + i] = (struct tutti_argument){.set = true, .mem = mem[i]};
    }
    pthread_mutex_lock(&kernel->lock);
    struct tutti_arguments *old = kernel->arguments;
    arguments->integers = old->integers;
    memcpy(arguments->argument, old->argument, declared * sizeof(old->argument[0]));
    kernel->arguments = arguments;
    pthread_mutex_unlock(&kernel->lock);
    for (unsigned i = declared; i < old->count; i++)
        forget_objects(&old->argument[i]);
    free(old);
    return CL_SUCCESS;
}

/* Sets the clone's argument as that of the original; no other thread has the clone yet. */
static cl_int clone_argument(cl_kernel clone, cl_uint index, const struct tutti_argument *from) {
    struct tutti_argument *to = &clone->arguments->argument[index];
    enum tutti_argument_kind kind = clone->info[index].kind;
    cl_int error = CL_SUCCESS;
    if (!from->set)
        return CL_SUCCESS;
    if (kind == TUTTI_ARGUMENT_VALUE || kind == TUTTI_ARGUMENT_LOCAL)
        error = check_on_lead(clone, index, from->size, from->value);
    void *value = NULL;
    if (error == CL_SUCCESS && from->value) {
        value = malloc(from->size);
        if (value)
            memcpy(value, from->value, from->size);
        else
            error = CL_OUT_OF_HOST_MEMORY;
    }
    if (error == CL_SUCCESS) {
        *to = *from;
        to->value = value;
        clone->arguments->integers ^= hash_integer(clone->info, index, to);
        tutti_object_retain_bytes(to->mem);
        tutti_object_retain(to->sampler);
    }
    return error;
}

static cl_int clone_reached(cl_kernel clone, const struct tutti_arguments *from) {
    unsigned declared = clone->argument_count, count = from->count - declared;
    cl_mem *mem = count ? malloc(count * sizeof(cl_mem)) : NULL;
    if (!mem)
        return count ? CL_OUT_OF_HOST_MEMORY : CL_SUCCESS;
    for (unsigned i = 0; i < count; i++)
        mem[i] = from->argument[declared + i].mem;
    cl_int error = tutti_kernel_set_reached(clone, mem, count);
    free(mem);
    return error;
}

cl_kernel tutti_kernel_clone(cl_kernel kernel, cl_int *error) {
    cl_kernel clone = tutti_kernel_create(kernel->program, kernel->name, error);
    if (!clone)
        return NULL;
    pthread_mutex_lock(&kernel->lock);
    for (cl_uint i = 0; i < kernel->argument_count && *error == CL_SUCCESS; i++)
        *error = clone_argument(clone, i, &kernel->arguments->argument[i]);
    if (*error == CL_SUCCESS)
        *error = clone_reached(clone, kernel->arguments);
    pthread_mutex_unlock(&kernel->lock);
    if (*error != CL_SUCCESS) {
        tutti_object_release(clone);
        return NULL;
    }
    return clone;
}
