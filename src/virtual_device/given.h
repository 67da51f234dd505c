/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_GIVEN_H
#define TUTTI_GIVEN_H

#include "virtual_device/kernel.h"

/*
 * What the arguments of the real kernels are: a driver is only told what has changed since the last
 * launch on its device. With that device's `enqueues` lock held.
 */

/*
 * Sets an argument of the device's real kernel (clSetKernelArg); the driver's error. `memory`: the
 * value is a real memory object.
 */
cl_int tutti_given_set(cl_kernel kernel, const struct tutti_real_device *device, unsigned index,
                       size_t size, const void *value, bool memory);

/* The argument was set, or is about to be, by other means. */
void tutti_given_forget(cl_kernel kernel, const struct tutti_real_device *device, unsigned index);

/* A real memory object of the device goes: another one may get its handle. In any thread. */
void tutti_given_release(const struct tutti_real_device *device);

#endif
