/* SPDX-License-Identifier: MIT */
#include "memory/transfer_path.h"

#include "env.h"
#include "log.h"
#include "memory/room.h"

#include <pthread.h>
#include <starpu.h>
#include <string.h>
#include <unistd.h>

/* A command of a driver costs what copying as much in host memory does. */
#define LEAST_STRAIGHT ((size_t)1 << 20)
/* Two commands of drivers, one after the other, are as fast. */
#define LEAST_RELAYED ((size_t)1 << 20)
/* With fewer threads a driver's own staging is as fast. */
#define LEAST_THREADS 3
/* Waking threads costs what one copies in that time. */
#define LEAST_COPIED ((size_t)4 << 20)

/*
 * With more threads the link is the limit. Of 16 cores, with both directions at it, two are left
 * for whoever waits, and the driver.
 */
#define MOST_SPARE 7
static struct tutti_staging_shape shape = {
    .chunk = (size_t)2 << 20,
    .slots = 2, /* more bytes of both directions at once leave the caches before they are copied */
    .from = (size_t)4 << 20, /* waking threads costs some hundred microseconds */
    .stream = (size_t)16 << 20,
};

static enum tutti_transfer_choice wanted;
static unsigned cores;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* "name=bytes" of one field; false when it is not that. */
static bool set_field(const char *text, const char *name, size_t least, size_t most,
                      size_t *field) {
    size_t length = strlen(name), value;
    if (strncmp(text, name, length) != 0 || text[length] != '=' ||
        !tutti_env_bytes(text + length + 1, &value) || value < least || value > most)
        return false;
    *field = value;
    return true;
}

static void read_shape(void) {
    const char *list = tutti_env_string(TUTTI_STAGING);
    while (list && *list) {
        if (!set_field(list, "threads", 1, TUTTI_MOST_STAGING_THREADS, &shape.threads) &&
            !set_field(list, "chunk", (size_t)64 << 10, (size_t)64 << 20, &shape.chunk) &&
            !set_field(list, "slots", 2, TUTTI_MOST_STAGING_SLOTS, &shape.slots) &&
            !set_field(list, "from", 1, SIZE_MAX, &shape.from) &&
            !set_field(list, "stream", 1, SIZE_MAX, &shape.stream))
            tutti_log(WARNING, "TUTTI_STAGING: \"%s\" is not understood", list);
        list = strchr(list, ',');
        list = list ? list + 1 : NULL;
    }
    shape.chunk -= shape.chunk % ((size_t)64 << 10); /* so that no pixel is cut */
}

static void read_environment(void) {
    read_shape();
    long online = sysconf(_SC_NPROCESSORS_ONLN); /* reads files: 3 µs */
    cores = online > 1 ? (unsigned)online : 1;
    wanted = (enum tutti_transfer_choice)tutti_env_choice(TUTTI_TRANSFER);
}

enum tutti_transfer_choice tutti_transfer_path_choice(void) {
    pthread_once(&once, read_environment);
    return wanted;
}

const struct tutti_staging_shape *tutti_transfer_path_shape(void) {
    pthread_once(&once, read_environment);
    return &shape;
}

bool tutti_transfer_path_pins(const struct tutti_real_device *device) {
    pthread_once(&once, read_environment);
    if (device->shares_host || wanted == TUTTI_TRANSFER_DIRECT)
        return false;
    /* Oclgrind says that it is of every type, and runs on the CPU. */
    const cl_device_type processor = CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_CPU;
    return wanted == TUTTI_TRANSFER_STAGED || (device->type & processor) == CL_DEVICE_TYPE_GPU;
}

/* Bits of the devices that have memory of their own. */
static unsigned distant(void) {
    const struct tutti_device_list *list = tutti_devices();
    unsigned found = 0;
    for (unsigned d = 0; d < list->count; d++)
        if (list->device[d]->place.devid >= 0 && !list->device[d]->at_home)
            found |= 1u << d;
    return found;
}

unsigned tutti_transfer_path_near(unsigned users, size_t size) {
    pthread_once(&once, read_environment);
    unsigned far = distant();
    if (users)
        return users & ~far ? 0 : users;
    return tutti_is_one_device(far) && (wanted == TUTTI_TRANSFER_STAGED || size >= LEAST_STRAIGHT)
               ? far
               : 0;
}

bool tutti_transfer_path_is_home(unsigned users) { return users && !(users & distant()); }

bool tutti_transfer_path_relays(const struct tutti_real_device *device, size_t size) {
    pthread_once(&once, read_environment);
    if (device->at_home || wanted == TUTTI_TRANSFER_DIRECT || tutti_is_one_device(distant()))
        return false;
    return wanted == TUTTI_TRANSFER_STAGED || size >= LEAST_RELAYED;
}

bool tutti_transfer_path_has_room(const struct tutti_real_device *device, size_t size) {
    return size <= device->max_mem_alloc_size && size <= tutti_room_total(device);
}

unsigned tutti_transfer_path_straight(unsigned users, unsigned able, size_t size) {
    const struct tutti_device_list *list = tutti_devices();
    pthread_once(&once, read_environment);
    unsigned far = distant(), found = 0;
    if (users & ~far || (wanted != TUTTI_TRANSFER_STAGED && size < LEAST_STRAIGHT))
        return 0;
    for (unsigned d = 0; d < list->count; d++)
        if (far & able & 1u << d && tutti_transfer_path_has_room(list->device[d], size))
            found |= 1u << d;
    return found;
}

unsigned tutti_transfer_path_cores(void) {
    pthread_once(&once, read_environment);
    return cores;
}

/* Half of the cores: the others are the program's, and CPU devices'. */
static unsigned spare_threads(void) {
    size_t threads = tutti_transfer_path_shape()->threads;
    return threads ? (unsigned)threads : cores > 2 * MOST_SPARE ? MOST_SPARE : cores / 2;
}

unsigned tutti_transfer_path_threads(const struct tutti_real_device *device, size_t size) {
    if (!tutti_transfer_path_pins(device))
        return 0;
    unsigned threads = spare_threads();
    if (wanted == TUTTI_TRANSFER_STAGED)
        return threads < 2 ? 2 : threads;
    return size >= shape.from && (threads >= LEAST_THREADS || shape.threads) ? threads : 0;
}

unsigned tutti_transfer_path_copy_threads(size_t size) {
    unsigned threads = size >= LEAST_COPIED ? spare_threads() : 0;
    return threads >= LEAST_THREADS ? threads : 0;
}
