/* SPDX-License-Identifier: MIT */
#include "memory/storage.h"

#include "memory/block.h"
#include "memory/room.h"
#include "virtual_device/driver.h"
#include "virtual_device/given.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

/*
 * Of a device's memory at most this part is kept though no view uses it, in so many objects. To
 * make and to release one costs NVIDIA's driver up to a millisecond, which waits for what the
 * device does.
 */
#define KEPT_PART 8
#define KEPT_OBJECTS 1024

struct kept {
    TAILQ_ENTRY(kept) link;
    struct tutti_storage storage;
    struct tutti_shape shape;
    size_t size;
};

TAILQ_HEAD(kept_list, kept);

/* Per device. */
static struct keep {
    struct kept_list list; /* the last one kept comes first; zeroed, it is empty */
    unsigned count;
    size_t bytes;
} keeps[TUTTI_MAX_DEVICES];
static pthread_mutex_t keeps_lock = PTHREAD_MUTEX_INITIALIZER; /* guards `keeps` */

/* Takes the entry out. Lock held. */
static void take(struct keep *keep, struct kept *entry) {
    TAILQ_REMOVE(&keep->list, entry, link);
    keep->count--;
    keep->bytes -= entry->size;
}

static bool reuse(const struct tutti_real_device *device, const struct tutti_shape *shape,
                  size_t size, struct tutti_storage *storage) {
    struct keep *keep = &keeps[device->index];
    pthread_mutex_lock(&keeps_lock);
    struct kept *entry = TAILQ_FIRST(&keep->list);
    while (entry && !(entry->size == size && tutti_shape_equal(&entry->shape, shape)))
        entry = TAILQ_NEXT(entry, link);
    if (entry)
        take(keep, entry);
    pthread_mutex_unlock(&keeps_lock);
    if (!entry)
        return false;
    *storage = entry->storage;
    free(entry);
    return true;
}

static void destroy(const struct tutti_real_device *device, size_t size,
                    struct tutti_storage *storage) {
    tutti_given_release(device);
    tutti_driver_lock(device);
    if (storage->argument && storage->argument != storage->mem)
        device->dispatch->clReleaseMemObject(storage->argument);
    if (storage->mem)
        device->dispatch->clReleaseMemObject(storage->mem);
    tutti_driver_unlock(device);
    if (!storage->at_home)
        tutti_block_free(storage->bytes, size);
    memset(storage, 0, sizeof(*storage));
}

/* Gives the oldest that is kept back to the driver, if there is one. */
static bool forget_oldest(const struct tutti_real_device *device) {
    struct keep *keep = &keeps[device->index];
    pthread_mutex_lock(&keeps_lock);
    struct kept *entry = keep->count ? TAILQ_LAST(&keep->list, kept_list) : NULL;
    if (entry)
        take(keep, entry);
    pthread_mutex_unlock(&keeps_lock);
    if (!entry)
        return false;
    destroy(device, entry->size, &entry->storage);
    free(entry);
    return true;
}

void tutti_storage_trim(void) {
    const struct tutti_device_list *list = tutti_devices();
    for (unsigned d = 0; d < list->count; d++)
        while (forget_oldest(list->device[d]))
            ;
}

/* What is kept must not take the room of what is to be made: drivers find out late. */
static void make_room(const struct tutti_real_device *device) {
    struct keep *keep = &keeps[device->index];
    size_t left = tutti_room_left(device);
    for (;;) {
        pthread_mutex_lock(&keeps_lock);
        bool fits = keep->bytes <= left;
        pthread_mutex_unlock(&keeps_lock);
        if (fits || !forget_oldest(device))
            return;
    }
}

/*
 * NVIDIA's driver (580) takes the memory at the first use, and a command fails if there is none:
 * this is one that needs no content, and tells. That driver keeps no copy of the list. It reads it
 * again when it ends the command, after the call if others are under way: the list stays until
 * then, which is soon, as nothing else is on that queue.
 */
static cl_int take_memory(const struct tutti_real_device *device, cl_mem mem) {
    if (!device->place.takes)
        return CL_SUCCESS;
    cl_int error = device->dispatch->clEnqueueMigrateMemObjects(
        device->place.takes, 1, &mem, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0, NULL, NULL);
    if (error == CL_SUCCESS)
        device->dispatch->clFinish(device->place.takes);
    return error == CL_MEM_OBJECT_ALLOCATION_FAILURE ? error : CL_SUCCESS;
}

static cl_int create(const struct tutti_real_device *device, const struct tutti_shape *shape,
                     size_t size, struct tutti_storage *storage) {
    cl_int error = CL_SUCCESS;
    if (tutti_shape_is_boxed(shape))
        storage->mem = tutti_image_create_real(device, shape, NULL, storage->bytes, &error);
    else
        storage->mem = device->dispatch->clCreateBuffer(
            device->place.context, CL_MEM_READ_WRITE | (storage->bytes ? CL_MEM_USE_HOST_PTR : 0),
            size, storage->bytes, &error);
    if (storage->mem && (error = take_memory(device, storage->mem)) != CL_SUCCESS) {
        device->dispatch->clReleaseMemObject(storage->mem);
        storage->mem = NULL;
    }
    if (!storage->mem)
        return error;
    storage->argument = shape->type == CL_MEM_OBJECT_IMAGE1D_BUFFER
                            ? tutti_image_create_real(device, shape, storage->mem, NULL, &error)
                            : storage->mem;
    return storage->argument ? CL_SUCCESS : error;
}

static cl_int create_locked(const struct tutti_real_device *device, const struct tutti_shape *shape,
                            size_t size, struct tutti_storage *storage) {
    tutti_driver_lock(device);
    cl_int error = create(device, shape, size, storage);
    tutti_driver_unlock(device);
    return error;
}

bool tutti_storage_may_use(const struct tutti_real_device *device, const void *home) {
    return (uintptr_t)home % (device->mem_base_addr_align / 8) == 0;
}

cl_int tutti_storage_create(const struct tutti_real_device *device, const struct tutti_shape *shape,
                            size_t size, void *home, struct tutti_storage *storage) {
    memset(storage, 0, sizeof(*storage));
    if (reuse(device, shape, size, storage))
        return CL_SUCCESS;
    if (device->shares_host) {
        storage->at_home = home != NULL;
        storage->bytes = storage->at_home ? home : tutti_block_allocate(size);
        if (!storage->bytes)
            return CL_OUT_OF_HOST_MEMORY;
    }
    make_room(device);
    cl_int error = create_locked(device, shape, size, storage);
    while (error != CL_SUCCESS && forget_oldest(device))
        error = create_locked(device, shape, size, storage);
    if (error != CL_SUCCESS)
        destroy(device, size, storage);
    return error;
}

static bool keep_one(const struct tutti_real_device *device, const struct tutti_shape *shape,
                     size_t size, const struct tutti_storage *storage) {
    struct keep *keep = &keeps[device->index];
    size_t most = device->global_mem_size / KEPT_PART;
    struct kept *entry =
        device->shares_host || size > most ? NULL : (struct kept *)malloc(sizeof(*entry));
    if (!entry)
        return false;
    *entry = (struct kept){.storage = *storage, .shape = *shape, .size = size};
    pthread_mutex_lock(&keeps_lock);
    if (!keep->list.tqh_last)
        TAILQ_INIT(&keep->list);
    TAILQ_INSERT_HEAD(&keep->list, entry, link);
    keep->count++;
    keep->bytes += size;
    pthread_mutex_unlock(&keeps_lock);
    bool many = true;
    while (many) {
        pthread_mutex_lock(&keeps_lock);
        many = keep->count > KEPT_OBJECTS || keep->bytes > most;
        pthread_mutex_unlock(&keeps_lock);
        many = many && forget_oldest(device);
    }
    return true;
}

void tutti_storage_release(const struct tutti_real_device *device, const struct tutti_shape *shape,
                           size_t size, struct tutti_storage *storage) {
    if (!storage->mem || !keep_one(device, shape, size, storage))
        destroy(device, size, storage);
    memset(storage, 0, sizeof(*storage));
}
