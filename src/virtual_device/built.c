/* SPDX-License-Identifier: MIT */
#include "virtual_device/built.h"

#include "virtual_device/binary.h"
#include "virtual_device/driver.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MOST 64               /* programs */
#define LONGEST (1024 * 1024) /* bytes of source and options of each */

static struct {
    pthread_mutex_t lock;
    unsigned long uses;
    struct entry {
        const struct tutti_real_device *device;
        uint64_t hash;
        char *source, *options;
        cl_program real; /* NULL: free */
        uint64_t build_time;
        unsigned long used;
    } entry[MOST];
} built = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t hash(const char *source, const char *options) {
    return tutti_hash_string(tutti_hash_string(TUTTI_HASH_START, source), options);
}

/* Lock held. */
static struct entry *find(const struct tutti_real_device *device, uint64_t hash, const char *source,
                          const char *options) {
    for (struct entry *entry = built.entry; entry < built.entry + MOST; entry++)
        if (entry->real && entry->device == device && entry->hash == hash &&
            strcmp(entry->source, source) == 0 && strcmp(entry->options, options) == 0)
            return entry;
    return NULL;
}

cl_program tutti_built_find(const struct tutti_real_device *device, const char *source,
                            const char *options, uint64_t *build_time) {
    cl_program real = NULL;
    pthread_mutex_lock(&built.lock);
    struct entry *entry = find(device, hash(source, options), source, options);
    if (entry && device->dispatch->clRetainProgram(entry->real) == CL_SUCCESS) {
        real = entry->real;
        *build_time = entry->build_time;
        entry->used = ++built.uses;
    }
    pthread_mutex_unlock(&built.lock);
    return real;
}

static bool has_variables(const struct tutti_real_device *device) {
    size_t size = 0; /* where the driver is too old to know the question */
    device->dispatch->clGetDeviceInfo(device->id, CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE, sizeof(size),
                                      &size, NULL);
    return size > 0;
}

/* A free one, or the one that was not used for longest. Lock held. */
static struct entry *find_room(void) {
    struct entry *oldest = built.entry;
    for (struct entry *entry = built.entry; entry < built.entry + MOST; entry++) {
        if (!entry->real)
            return entry;
        if (entry->used < oldest->used)
            oldest = entry;
    }
    return oldest;
}

static void let_go(struct entry *entry) {
    free(entry->source);
    free(entry->options);
    if (entry->real)
        tutti_driver_release_program(entry->device, entry->real);
}

void tutti_built_keep(const struct tutti_real_device *device, const char *source,
                      const char *options, cl_program real, uint64_t build_time) {
    struct entry entry = {
        .device = device,
        .hash = hash(source, options),
        .build_time = build_time,
    };
    if (has_variables(device) || strlen(source) + strlen(options) > LONGEST)
        return;
    entry.source = strdup(source);
    entry.options = strdup(options);
    if (entry.source && entry.options && device->dispatch->clRetainProgram(real) == CL_SUCCESS) {
        entry.real = real;
        pthread_mutex_lock(&built.lock);
        struct entry *place = find(device, entry.hash, source, options);
        if (!place) /* no other thread has built it meanwhile */
            place = find_room();
        struct entry old = *place;
        entry.used = ++built.uses;
        *place = entry;
        pthread_mutex_unlock(&built.lock);
        let_go(&old);
    } else {
        let_go(&entry);
    }
}
