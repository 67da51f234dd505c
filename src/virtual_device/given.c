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
                          size_t size, const void *value, enum tutti_given_kind kind) {
    struct tutti_given *given = find(kernel, device, index);
    cl_kernel real = kernel->function->real[device->index];
    const cl_icd_dispatch *driver = device->dispatch;
    unsigned epoch =
        kind == TUTTI_GIVEN_MEMORY ? atomic_load(&tutti_given_epochs[device->index]) : 0;
    cl_int error = kind == TUTTI_GIVEN_ADDRESS
                       ? driver->clSetKernelArgSVMPointer(real, index, *(void *const *)value)
                       : driver->clSetKernelArg(real, index, size, value);
    if (given && size <= TUTTI_LARGEST_GIVEN) {
        *given = (struct tutti_given){
            .known = error == CL_SUCCESS, .kind = kind, .epoch = epoch, .size = size};
        memcpy(given->value, value, size);
    }
    return error;
}
