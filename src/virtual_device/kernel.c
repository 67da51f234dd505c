/* SPDX-License-Identifier: MIT */
#include "virtual_device/kernel_create.h"

#include <stdlib.h>

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

static void destroy(void *object) {
    struct kernel *own = object;
    cl_kernel kernel = &own->kernel;
    detach(kernel->program, own);
    tutti_function_release(kernel->function);
    tutti_kernel_arguments_destroy(kernel->arguments);
    free(kernel->recent);
    pthread_mutex_destroy(&kernel->lock);
    tutti_object_release(kernel->program);
    free(own);
}

cl_kernel tutti_kernel_create(cl_program program, const char *name, cl_int *error) {
    struct kernel *own = calloc(1, sizeof(*own));
    if (!own) {
        *error = CL_OUT_OF_HOST_MEMORY;
        return NULL;
    }
    cl_kernel kernel = &own->kernel;
    pthread_mutex_lock(&program->lock);
    struct tutti_function *function = tutti_function_take(program, name, error);
    if (function)
        kernel->arguments = tutti_kernel_arguments_new(function->argument_count);
    if (!kernel->arguments) {
        pthread_mutex_unlock(&program->lock);
        if (function)
            *error = CL_OUT_OF_HOST_MEMORY;
        tutti_function_release(function);
        free(own);
        return NULL;
    }
    kernel->function = function;
    kernel->name = function->name;
    kernel->argument_count = function->argument_count;
    kernel->info = function->info;
    kernel->overwrites = function->overwrites;
    pthread_mutex_init(&kernel->lock, NULL);
    kernel->program = tutti_object_retain(program);
    kernel->prints = program->prints;
    own->identity = tutti_hash_string(program->identity, name);
    tutti_object_init(&kernel->object, TUTTI_KERNEL, destroy);
    attach(program, own);
    pthread_mutex_unlock(&program->lock);
    return kernel;
}

uint64_t tutti_kernel_identity(cl_kernel kernel) {
    return ((const struct kernel *)kernel)->identity;
}
