/* SPDX-License-Identifier: MIT */
#include "memory/storage.h"

#include "memory/block.h"
#include "virtual_device/driver.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Of a device's memory at most this part is kept though no view uses it. */
#define KEPT_PART 32
#define KEPT_OBJECTS 64

struct kept {
    struct tutti_storage storage;
    struct tutti_shape shape;
    size_t size;
};

/* Per device, the oldest first. */
static struct {
    unsigned count;
    size_t bytes;
    struct kept entry[KEPT_OBJECTS];
} keeps[TUTTI_MAX_DEVICES];
static pthread_mutex_t keeps_lock = PTHREAD_MUTEX_INITIALIZER; /* guards `keeps` */

/* Takes entry i out. Lock held. */
static struct tutti_storage take(unsigned device, unsigned i) {
    struct kept *entry = keeps[device].entry;
    struct tutti_storage storage = entry[i].storage;
    keeps[device].bytes -= entry[i].size;
    keeps[device].count--;
    memmove(&entry[i], &entry[i + 1], (keeps[device].count - i) * sizeof(*entry));
    return storage;
}

static bool reuse(const struct tutti_real_device *device, const struct tutti_shape *shape,
                  size_t size, struct tutti_storage *storage) {
    bool found = false;
    pthread_mutex_lock(&keeps_lock);
    for (unsigned i = keeps[device->index].count; i > 0 && !found; i--) {
        const struct kept *entry = &keeps[device->index].entry[i - 1];
        found = entry->size == size && tutti_shape_equal(&entry->shape, shape);
        if (found)
            *storage = take(device->index, i - 1);
    }
    pthread_mutex_unlock(&keeps_lock);
    return found;
}

static void destroy(const struct tutti_real_device *device, size_t size,
                    struct tutti_storage *storage) {
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

/* The oldest that is kept, if any. */
static bool forget_oldest(const struct tutti_real_device *device) {
    struct tutti_storage storage;
    pthread_mutex_lock(&keeps_lock);
    bool found = keeps[device->index].count > 0;
    size_t size = keeps[device->index].entry[0].size;
    if (found)
        storage = take(device->index, 0);
    pthread_mutex_unlock(&keeps_lock);
    if (found)
        destroy(device, size, &storage);
    return found;
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

cl_int tutti_storage_create(const struct tutti_real_device *device, const struct tutti_shape *shape,
                            size_t size, void *home, struct tutti_storage *storage) {
    memset(storage, 0, sizeof(*storage));
    if (reuse(device, shape, size, storage))
        return CL_SUCCESS;
    if (device->shares_host) {
        storage->at_home = home && (uintptr_t)home % (device->mem_base_addr_align / 8) == 0;
        storage->bytes = storage->at_home ? home : tutti_block_allocate(size);
        if (!storage->bytes)
            return CL_OUT_OF_HOST_MEMORY;
    }
    cl_int error = create_locked(device, shape, size, storage);
    while (error != CL_SUCCESS && forget_oldest(device))
        error = create_locked(device, shape, size, storage);
    if (error != CL_SUCCESS)
        destroy(device, size, storage);
    return error;
}

static bool keep(const struct tutti_real_device *device, const struct tutti_shape *shape,
                 size_t size, const struct tutti_storage *storage) {
    size_t most = device->global_mem_size / KEPT_PART;
    if (device->shares_host || size > most)
        return false;
    for (;;) {
        pthread_mutex_lock(&keeps_lock);
        unsigned count = keeps[device->index].count;
        bool room = count < KEPT_OBJECTS && keeps[device->index].bytes + size <= most;
        if (room) {
            keeps[device->index].entry[count] = (struct kept){*storage, *shape, size};
            keeps[device->index].count++;
            keeps[device->index].bytes += size;
        }
        pthread_mutex_unlock(&keeps_lock);
        if (room || !forget_oldest(device))
            return room;
    }
}

void tutti_storage_release(const struct tutti_real_device *device, const struct tutti_shape *shape,
                           size_t size, struct tutti_storage *storage) {
    if (!storage->mem || !keep(device, shape, size, storage))
        destroy(device, size, storage);
    memset(storage, 0, sizeof(*storage));
}
