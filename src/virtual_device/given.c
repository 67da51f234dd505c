/* SPDX-License-Identifier: MIT */
#include "virtual_device/given.h"

#include <stdlib.h>
#include <string.h>

/* Larger values are set each time. */
#define LARGEST 16

struct tutti_given {
    bool known, memory;
    unsigned epoch; /* of a memory object */
    size_t size;
    unsigned char value[LARGEST];
};

static atomic_uint epochs[TUTTI_MAX_DEVICES]; /* counts the memory objects that went */

void tutti_given_release(const struct tutti_real_device *device) {
    atomic_fetch_add(&epochs[device->index], 1);
}

static struct tutti_given *find(cl_kernel kernel, const struct tutti_real_device *device,
                                unsigned index) {
    struct tutti_given **given = &kernel->function->given[device->index];
    if (!*given) /* NULL when out of memory: then nothing is known */
        *given = calloc(kernel->argument_count, sizeof(**given));
    return *given ? &(*given)[index] : NULL;
}

void tutti_given_forget(cl_kernel kernel, const struct tutti_real_device *device, unsigned index) {
    struct tutti_given *given = find(kernel, device, index);
    if (given)
        given->known = false;
}

cl_int tutti_given_set(cl_kernel kernel, const struct tutti_real_device *device, unsigned index,
                       size_t size, const void *value, bool memory) {
    struct tutti_given *given = size <= LARGEST ? find(kernel, device, index) : NULL;
    unsigned epoch = memory ? atomic_load(&epochs[device->index]) : 0;
    if (given && given->known && given->memory == memory && given->epoch == epoch &&
        given->size == size && memcmp(given->value, value, size) == 0)
        return CL_SUCCESS;
    cl_int error =
        device->dispatch->clSetKernelArg(kernel->function->real[device->index], index, size, value);
    if (given) {
        *given = (struct tutti_given){
            .known = error == CL_SUCCESS, .memory = memory, .epoch = epoch, .size = size};
        memcpy(given->value, value, size);
    }
    return error;
}
