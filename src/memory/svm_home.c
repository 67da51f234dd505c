/* SPDX-License-Identifier: MIT */
#include "memory/svm_home.h"

#include "log.h"
#include "memory/block.h"
#include "sched/runtime.h"
#include "virtual_device/driver.h"

#include <stdlib.h>

#define LARGEST_TYPE 128 /* long16 */

struct tutti_svm_home {
    const struct tutti_real_device *owner; /* NULL: memory of ours, which nobody needs to map */
    void *bytes;
    size_t size;
    pthread_mutex_t lock; /* guards `mapped`, held while the driver changes it */
    cl_map_flags mapped;  /* by us; 0: the owner may use it */
};

/* The device that has memory of its own. */
static const struct tutti_real_device *distant_device(void) {
    const struct tutti_device_list *list = tutti_devices();
    for (unsigned d = 0; d < list->count; d++)
        if (!list->device[d]->at_home)
            return list->device[d];
    return NULL;
}

struct tutti_svm_home *tutti_svm_home_create(size_t size) {
    struct tutti_svm_home *home = calloc(1, sizeof(*home));
    if (!home)
        return NULL;
    const struct tutti_real_device *owner = home->owner = distant_device();
    home->size = size;
    home->bytes = owner ? owner->dispatch->clSVMAlloc(owner->place.context, CL_MEM_READ_WRITE, size,
                                                      LARGEST_TYPE)
                        : tutti_block_allocate(size);
    if (!home->bytes || pthread_mutex_init(&home->lock, NULL) != 0) {
        free(home);
        return NULL;
    }
    return home;
}

void *tutti_svm_home_bytes(const struct tutti_svm_home *home) { return home->bytes; }

/* With the lock held. Waits: the next command may be on another queue, or another device. */
static cl_int change(struct tutti_svm_home *home, cl_map_flags wanted) {
    const cl_icd_dispatch *driver = home->owner->dispatch;
    cl_command_queue queue = home->owner->place.downloads;
    cl_int error = CL_SUCCESS;
    if (home->mapped == wanted)
        return CL_SUCCESS;
    if (home->mapped) {
        error = driver->clEnqueueSVMUnmap(queue, home->bytes, 0, NULL, NULL);
        if (error == CL_SUCCESS)
            error = driver->clFinish(queue);
        home->mapped = 0;
    }
    if (error == CL_SUCCESS && wanted) {
        error =
            driver->clEnqueueSVMMap(queue, CL_TRUE, wanted, home->bytes, home->size, 0, NULL, NULL);
        home->mapped = error == CL_SUCCESS ? wanted : 0;
    }
    if (error != CL_SUCCESS)
        tutti_log(ERROR, "%s: mapping shared virtual memory failed with %d", home->owner->name,
                  error);
    return error;
}

void tutti_svm_home_destroy(struct tutti_svm_home *home) {
    if (!home)
        return;
    if (!home->owner)
        tutti_block_free(home->bytes, home->size);
    else if (tutti_runtime_usable() && change(home, 0) == CL_SUCCESS)
        home->owner->dispatch->clSVMFree(home->owner->place.context, home->bytes);
    pthread_mutex_destroy(&home->lock);
    free(home);
}

/* What the program has mapped; for reading if for nothing else. */
static cl_map_flags maps_of(struct tutti_view *view) {
    cl_map_flags flags = 0;
    pthread_mutex_lock(&view->lock);
    for (const struct tutti_mapped *mapped = view->mapped; mapped; mapped = mapped->next)
        flags |= mapped->written ? CL_MAP_READ | CL_MAP_WRITE : CL_MAP_READ;
    pthread_mutex_unlock(&view->lock);
    return flags;
}

/*
 * StarPU lets one writer, or several readers, have the view. The first reader after a writer finds
 * it mapped for writing, and changes that before another one comes: readers of both sides share
 * what is mapped for reading.
 */
static cl_map_flags wanted_for(struct tutti_view *view, bool there, bool writes) {
    cl_map_flags mapped = view->svm->mapped, program = maps_of(view);
    if (writes)
        return there ? 0 : CL_MAP_READ | CL_MAP_WRITE;
    if (there)
        return mapped & CL_MAP_WRITE ? program & ~(cl_map_flags)CL_MAP_WRITE : mapped;
    return CL_MAP_READ | (mapped & program & CL_MAP_WRITE);
}

cl_int tutti_svm_home_use(struct tutti_view *view, const struct tutti_real_device *device,
                          bool writes) {
    struct tutti_svm_home *home = view->svm;
    if (!home || !home->owner)
        return CL_SUCCESS;
    pthread_mutex_lock(&home->lock);
    cl_map_flags wanted = wanted_for(view, device == home->owner, writes);
    /* What a CPU device was given before, in the same batch or past StarPU, may not be over. */
    if (device && device != home->owner && home->mapped != wanted)
        tutti_driver_finish(device, device->place.kernels);
    cl_int error = change(home, wanted);
    pthread_mutex_unlock(&home->lock);
    return error;
}
