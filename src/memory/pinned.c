/* SPDX-License-Identifier: MIT */
#include "memory/pinned.h"

#include "env.h"
#include "log.h"
#include "memory/transfer_path.h"
#include "sched/link.h"
#include "virtual_device/driver.h"

#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define WORTH_A_BLOCK 32 /* uses that get none */

struct tutti_pinned {
    struct tutti_pinned *next;
    char *bytes;
    size_t size;   /* its class's */
    cl_mem real;   /* in the context of `device` */
    bool programs; /* the program's memory: never reused */
};

static struct {
    pthread_mutex_t lock;                       /* guards all below */
    struct tutti_pinned *used, *kept;           /* `kept`: the last one freed comes first */
    size_t bytes;                               /* of both */
    unsigned missed[CHAR_BIT * sizeof(size_t)]; /* uses of about a size for which none was kept */
} pins = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Memory that is locked in one context is fast for all devices of the platform: the first GPU's. */
static const struct tutti_real_device *pinning_device(void) {
    const struct tutti_device_list *list = tutti_devices();
    for (unsigned d = 0; d < list->count; d++)
        if (list->device[d]->place.devid >= 0 && tutti_transfer_path_pins(list->device[d]))
            return list->device[d];
    return NULL;
}

size_t tutti_pinned_limit(void) {
    size_t memory = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    return tutti_env_size(TUTTI_PINNED_LIMIT, memory / 2);
}

/* Steps of an eighth of a power of two, so that sizes that differ a little share their blocks. */
static size_t class_of(size_t size) {
    size_t step = (size_t)64 << 10;
    while (step * 16 < size)
        step *= 2;
    return (size + step - 1) / step * step;
}

static void give_back(struct tutti_pinned *pinned) {
    const struct tutti_real_device *device = pinning_device();
    const cl_icd_dispatch *driver = device->dispatch;
    cl_event event;
    tutti_driver_lock(device);
    if (!pinned->programs &&
        driver->clEnqueueUnmapMemObject(device->place.uploads, pinned->real, pinned->bytes, 0, NULL,
                                        &event) == CL_SUCCESS) {
        driver->clFlush(device->place.uploads);
        tutti_driver_wait(device, event);
    }
    driver->clReleaseMemObject(pinned->real);
    tutti_driver_unlock(device);
    free(pinned);
}

static struct tutti_pinned **find(struct tutti_pinned **link, size_t size) {
    while (*link && (*link)->size != size)
        link = &(*link)->next;
    return *link ? link : NULL;
}

/* A kept block of that size, now in use. Lock held. */
static struct tutti_pinned *take_kept(size_t size) {
    struct tutti_pinned **link = find(&pins.kept, size);
    struct tutti_pinned *found = link ? *link : NULL;
    if (found) {
        *link = found->next;
        found->next = pins.used;
        pins.used = found;
    }
    return found;
}

/* So many bytes more, if there is room. Lock held. */
static bool book(size_t size) {
    bool room = size <= tutti_pinned_limit() && pins.bytes <= tutti_pinned_limit() - size;
    if (room)
        pins.bytes += size;
    return room;
}

/* A kept block; if there is none, books `size` bytes. */
static struct tutti_pinned *reuse(size_t size, bool *room) {
    pthread_mutex_lock(&pins.lock);
    struct tutti_pinned *found = take_kept(size);
    *room = !found && book(size);
    pthread_mutex_unlock(&pins.lock);
    return found;
}

static bool take_room(size_t size) {
    pthread_mutex_lock(&pins.lock);
    bool room = book(size);
    pthread_mutex_unlock(&pins.lock);
    return room;
}

static void unbook(size_t size) {
    pthread_mutex_lock(&pins.lock);
    pins.bytes -= size;
    pthread_mutex_unlock(&pins.lock);
}

/*
 * Locks new pages, or those of `memory`; their bytes are booked. The driver's buffer itself is
 * never used. That over the program's pages is not even mapped: NVIDIA's locks them as it is made,
 * and takes as much of the GPU's memory once it is mapped, and half of the time.
 */
static struct tutti_pinned *create(const struct tutti_real_device *device, void *memory,
                                   size_t size) {
    const cl_icd_dispatch *driver = device->dispatch;
    struct tutti_pinned *pinned = calloc(1, sizeof(*pinned));
    cl_int error = CL_OUT_OF_HOST_MEMORY;
    tutti_link_disturb(true);
    tutti_driver_lock(device);
    if (pinned) {
        pinned->size = size;
        pinned->bytes = memory;
        pinned->programs = memory != NULL;
        pinned->real = driver->clCreateBuffer(
            device->place.context,
            CL_MEM_READ_WRITE | (memory ? CL_MEM_USE_HOST_PTR : CL_MEM_ALLOC_HOST_PTR), size,
            memory, &error);
    }
    /* Mapped for reading, it is not written back. */
    if (error == CL_SUCCESS && !memory)
        pinned->bytes = driver->clEnqueueMapBuffer(device->place.uploads, pinned->real, CL_TRUE,
                                                   CL_MAP_READ, 0, size, 0, NULL, NULL, &error);
    tutti_driver_unlock(device);
    tutti_link_disturb(false);
    if (error == CL_SUCCESS) {
        tutti_log(DEBUG, "%s: page-locked %zu bytes%s", device->name, size,
                  memory ? " of the program" : "");
        pthread_mutex_lock(&pins.lock);
        pinned->next = pins.used;
        pins.used = pinned;
        pthread_mutex_unlock(&pins.lock);
        return pinned;
    }
    tutti_log(INFO, "%s: %zu bytes could not be page-locked (error %d)", device->name, size, error);
    if (pinned && pinned->real)
        driver->clReleaseMemObject(pinned->real);
    free(pinned);
    unbook(size);
    return NULL;
}

struct tutti_pinned *tutti_pinned_allocate(size_t size) {
    const struct tutti_real_device *device = pinning_device();
    bool room;
    size = class_of(size);
    if (!device)
        return NULL;
    struct tutti_pinned *pinned = reuse(size, &room);
    if (!pinned && !room) {
        tutti_pinned_trim();
        pinned = reuse(size, &room);
    }
    return room ? create(device, NULL, size) : pinned;
}

struct tutti_pinned *tutti_pinned_allocate_for_once(size_t size) {
    unsigned *missed = &pins.missed[__builtin_clzl(size | 1)];
    pthread_mutex_lock(&pins.lock);
    struct tutti_pinned *found = take_kept(class_of(size));
    bool often = !found && ++*missed % WORTH_A_BLOCK == 0;
    pthread_mutex_unlock(&pins.lock);
    return often ? tutti_pinned_allocate(size) : found;
}

void *tutti_pinned_bytes(const struct tutti_pinned *pinned) { return pinned->bytes; }

struct tutti_pinned *tutti_pinned_lock(void *memory, size_t size) {
    const struct tutti_real_device *device = pinning_device();
    if (!device)
        return NULL;
    bool room = take_room(size);
    if (!room) {
        tutti_pinned_trim();
        room = take_room(size);
    }
    return room ? create(device, memory, size) : NULL;
}

void tutti_pinned_free(struct tutti_pinned *pinned) {
    if (!pinned)
        return;
    pthread_mutex_lock(&pins.lock);
    struct tutti_pinned **link = &pins.used;
    while (*link != pinned)
        link = &(*link)->next;
    *link = pinned->next;
    bool programs = pinned->programs;
    size_t size = pinned->size;
    if (!programs) {
        pinned->next = pins.kept;
        pins.kept = pinned;
    }
    pthread_mutex_unlock(&pins.lock);
    if (programs) {
        give_back(pinned);
        unbook(size);
    }
}

bool tutti_pinned_covers(const void *memory, size_t size) {
    uintptr_t begin = (uintptr_t)memory;
    bool covers = false;
    pthread_mutex_lock(&pins.lock);
    for (const struct tutti_pinned *p = pins.used; p && !covers; p = p->next) {
        uintptr_t first = (uintptr_t)p->bytes;
        covers = begin >= first && begin + size <= first + p->size;
    }
    pthread_mutex_unlock(&pins.lock);
    return covers;
}

void tutti_pinned_trim(void) {
    pthread_mutex_lock(&pins.lock);
    struct tutti_pinned *kept = pins.kept;
    pins.kept = NULL;
    pthread_mutex_unlock(&pins.lock);
    while (kept) {
        struct tutti_pinned *next = kept->next;
        size_t size = kept->size;
        give_back(kept);
        unbook(size); /* now: others may lock as much */
        kept = next;
    }
}
