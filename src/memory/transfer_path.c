/* SPDX-License-Identifier: MIT */
#include "memory/transfer_path.h"

#include "env.h"
#include "log.h"

#include <pthread.h>
#include <starpu.h>
#include <string.h>
#include <unistd.h>

/*
 * Below this a driver's command, or a single thread, is as fast: waking threads that have slept
 * costs some hundred microseconds on the virtual machines that this was measured on.
 */
#define LEAST_STAGED ((size_t)8 << 20)
#define LEAST_COPIED ((size_t)16 << 20)
/* A command of a driver costs what copying as much in host memory does. */
#define LEAST_STRAIGHT ((size_t)1 << 20)
/* Two commands of drivers, one after the other, are as fast. */
#define LEAST_RELAYED ((size_t)1 << 20)
/* With fewer threads a driver's own staging is as fast, with more the link is the limit. */
#define LEAST_THREADS 3
#define MOST_THREADS 8

static enum { AUTOMATIC, DIRECT, STAGED } wanted;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void read_environment(void) {
    const char *name = tutti_env_string(TUTTI_TRANSFER);
    if (!name || !*name || strcmp(name, "auto") == 0)
        wanted = AUTOMATIC;
    else if (strcmp(name, "direct") == 0)
        wanted = DIRECT;
    else if (strcmp(name, "staged") == 0)
        wanted = STAGED;
    else
        tutti_log(WARNING, "TUTTI_TRANSFER=%s is not auto, direct or staged", name);
}

bool tutti_transfer_path_pins(const struct tutti_real_device *device) {
    pthread_once(&once, read_environment);
    if (device->shares_host || wanted == DIRECT)
        return false;
    return wanted == STAGED || device->type & CL_DEVICE_TYPE_GPU;
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

static bool is_one(unsigned bits) { return bits && (bits & (bits - 1)) == 0; }

unsigned tutti_transfer_path_near(unsigned users, size_t size) {
    pthread_once(&once, read_environment);
    unsigned far = distant();
    if (users)
        return users & ~far ? 0 : users;
    return is_one(far) && (wanted == STAGED || size >= LEAST_STRAIGHT) ? far : 0;
}

bool tutti_transfer_path_relays(const struct tutti_real_device *device, size_t size) {
    pthread_once(&once, read_environment);
    if (device->at_home || wanted == DIRECT || is_one(distant()))
        return false;
    return wanted == STAGED || size >= LEAST_RELAYED;
}

bool tutti_transfer_path_has_room(const struct tutti_real_device *device, size_t size) {
    starpu_ssize_t total = starpu_memory_get_total(device->place.node);
    return size <= device->max_mem_alloc_size && (total < 0 || size <= (size_t)total);
}

const struct tutti_real_device *tutti_transfer_path_straight(unsigned users, unsigned able,
                                                             size_t size) {
    unsigned near = tutti_transfer_path_near(users, size) & able;
    if (!near || !is_one(distant()) || (wanted != STAGED && size < LEAST_STRAIGHT))
        return NULL;
    const struct tutti_real_device *device = tutti_devices()->device[__builtin_ctz(near)];
    return tutti_transfer_path_has_room(device, size) ? device : NULL;
}

/* Half of the cores: the others are the program's, and CPU devices'. */
static unsigned spare_threads(void) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores > 2 * MOST_THREADS ? MOST_THREADS : (unsigned)cores / 2;
}

unsigned tutti_transfer_path_threads(const struct tutti_real_device *device, size_t size) {
    if (!tutti_transfer_path_pins(device))
        return 0;
    unsigned threads = spare_threads();
    if (wanted == STAGED)
        return threads < 2 ? 2 : threads;
    return size >= LEAST_STAGED && threads >= LEAST_THREADS ? threads : 0;
}

unsigned tutti_transfer_path_copy_threads(size_t size) {
    unsigned threads = spare_threads();
    return size >= LEAST_COPIED && threads >= LEAST_THREADS ? threads : 0;
}
