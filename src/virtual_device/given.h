/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_GIVEN_H
#define TUTTI_GIVEN_H

#include "virtual_device/kernel.h"

#include <string.h>

/*
 * What the arguments of the real kernels are: a driver is only told what has changed since the last
 * launch on its device. With that device's `enqueues` lock held.
 */

#define TUTTI_LARGEST_GIVEN 16 /* larger values are set each time */

enum tutti_given_kind {
    TUTTI_GIVEN_VALUE,
    TUTTI_GIVEN_MEMORY, /* a real memory object's handle */
    TUTTI_GIVEN_ADDRESS /* of its bytes, where kernels take those (device.h) */
};

struct tutti_given {
    bool known;
    enum tutti_given_kind kind;
    unsigned epoch; /* of a memory object */
    size_t size;    /* of what is known; at most TUTTI_LARGEST_GIVEN */
    _Alignas(void *) unsigned char value[TUTTI_LARGEST_GIVEN];
};

extern atomic_uint tutti_given_epochs[TUTTI_MAX_DEVICES]; /* count the memory objects that went */

/*
 * Sets an argument of the device's real kernel (clSetKernelArg, clSetKernelArgSVMPointer); the
 * driver's error.
 */
cl_int tutti_given_change(cl_kernel kernel, const struct tutti_real_device *device, unsigned index,
                          size_t size, const void *value, enum tutti_given_kind kind);

/* The same, if it has changed. */
static inline cl_int tutti_given_set(cl_kernel kernel, const struct tutti_real_device *device,
                                     unsigned index, size_t size, const void *value,
                                     enum tutti_given_kind kind) {
    const struct tutti_given *given = kernel->function->given[device->index];
    if (given && given[index].known && given[index].kind == kind && given[index].size == size &&
        memcmp(given[index].value, value, size) == 0 &&
        (kind != TUTTI_GIVEN_MEMORY ||
         given[index].epoch == atomic_load(&tutti_given_epochs[device->index])))
        return CL_SUCCESS;
    return tutti_given_change(kernel, device, index, size, value, kind);
}

/* The argument was set, or is about to be, by other means. */
void tutti_given_forget(cl_kernel kernel, const struct tutti_real_device *device, unsigned index);

/* A real memory object of the device goes: another one may get its handle. In any thread. */
void tutti_given_release(const struct tutti_real_device *device);

#endif
