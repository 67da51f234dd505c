/* SPDX-License-Identifier: MIT */
#include "virtual_device/given.h"

#include <stdlib.h>

atomic_uint tutti_given_epochs[TUTTI_MAX_DEVICES];

void tutti_given_release(const struct tutti_real_device *device) {
    atomic_fetch_add(&tutti_given_epochs[device->index], 1);
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

cl_int tutti_given_change(cl_kernel kernel, const struct tutti_real_device *device, unsigned index,
                          size_t size, const void *value, bool memory) {
    struct tutti_given *given = find(kernel, device, index);
    unsigned epoch = memory ? atomic_load(&tutti_given_epochs[device->index]) : 0;
    cl_int error =
        device->dispatch->clSetKernelArg(kernel->function->real[device->index], index, size, value);
    if (given && size <= TUTTI_LARGEST_GIVEN) {
        *given = (struct tutti_given){
            .known = error == CL_SUCCESS, .memory = memory, .epoch = epoch, .size = size};
        memcpy(given->value, value, size);
    }
    return error;
}
