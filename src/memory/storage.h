/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_STORAGE_H
#define TUTTI_STORAGE_H

#include "virtual_device/image.h"

/* The real memory objects of one view on one device; shared virtual memory needs none. */
struct tutti_storage {
    cl_mem mem;      /* what transfers work on */
    cl_mem argument; /* what kernels get: `mem`, or the image over it */
    char *bytes;     /* its bytes, where the device shares host memory; else NULL */
    bool at_home;    /* `bytes` is the view's home memory: it is the same copy */
};

/*
 * Has the driver refused memory for it (room.h)? What StarPU takes for the device's copy is in home
 * memory then.
 */
static inline bool tutti_storage_is_missing(const struct tutti_storage *storage) {
    return !storage->argument && !storage->at_home;
}

/*
 * Makes them. `home` is the memory that serves as the bytes of a device that shares host memory;
 * NULL: memory of its own. Errors are the driver's, or CL_OUT_OF_HOST_MEMORY.
 */
cl_int tutti_storage_create(const struct tutti_real_device *device, const struct tutti_shape *shape,
                            size_t size, void *home, struct tutti_storage *storage);

/*
 * May the device, which shares host memory, work in the program's memory though others have their
 * own? It must be aligned as they have theirs. NULL: ours, which is.
 */
bool tutti_storage_may_use(const struct tutti_real_device *device, const void *home);

/*
 * Gives them up. Some that are on a device of its own memory are kept for the next view of that
 * shape and size: a program that makes and releases buffers in a loop does not wait for the driver.
 */
void tutti_storage_release(const struct tutti_real_device *device, const struct tutti_shape *shape,
                           size_t size, struct tutti_storage *storage);

/* Gives all that is kept back to the drivers. */
void tutti_storage_trim(void);

#endif
