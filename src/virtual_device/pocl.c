/* SPDX-License-Identifier: MIT */
#include "virtual_device/pocl.h"

#include "clock.h"
#include "directory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ns: a process that was stopped while it built must not stop others for good. */
#define LONGEST_BUILD 60000000000u

static struct {
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t left;
    struct tutti_pocl_launch on[TUTTI_MAX_DEVICES]; /* `kernel` is NULL on an idle device */
} running = {.lock = PTHREAD_MUTEX_INITIALIZER, .left = PTHREAD_COND_INITIALIZER};

bool tutti_pocl_is(const struct tutti_real_device *device) {
    return strcmp(device->platform_name, "Portable Computing Language") == 0;
}

bool tutti_pocl_is_basic(const struct tutti_real_device *device) {
    static const char *const names[] = {"basic", "cpu-minimal"}; /* the latter since PoCL 4 */
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (device->shares_host && strncmp(device->name, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

bool tutti_pocl_is_safe(const struct tutti_real_device *device) {
    const struct tutti_device_list *list = tutti_devices();
    unsigned others = 0;
    for (unsigned d = 0; d < list->count; d++)
        others += list->device[d] != device && tutti_device_executes_in_call(list->device[d]);
    return others == 0 || !tutti_device_executes_in_call(device);
}

static size_t width(const struct tutti_pocl_launch *launch) {
    return launch->global[0] > launch->global[1] ? launch->global[0] : launch->global[1];
}

static bool confused(const struct tutti_pocl_launch *a, const struct tutti_pocl_launch *b) {
    if (!a->kernel || strcmp(a->kernel, b->kernel) != 0)
        return false;
    bool same_local = memcmp(a->local, b->local, sizeof(a->local)) == 0;
    if (a->local[0] && b->local[0])
        return same_local &&
               (width(a) != width(b) || a->global[2] != b->global[2] || a->offset != b->offset);
    /* What PoCL chooses depends on the index space. */
    return !same_local || memcmp(a->global, b->global, sizeof(a->global)) != 0 ||
           a->offset != b->offset;
}

static bool must_wait(const struct tutti_pocl_launch *launch) {
    for (unsigned d = 0; d < TUTTI_MAX_DEVICES; d++)
        if (confused(&running.on[d], launch))
            return true;
    return false;
}

void tutti_pocl_enter(const struct tutti_real_device *device,
                      const struct tutti_pocl_launch *launch) {
    pthread_mutex_lock(&running.lock);
    while (must_wait(launch))
        pthread_cond_wait(&running.left, &running.lock);
    running.on[device->index] = *launch;
    pthread_mutex_unlock(&running.lock);
}

void tutti_pocl_leave(const struct tutti_real_device *device) {
    pthread_mutex_lock(&running.lock);
    running.on[device->index].kernel = NULL;
    pthread_cond_broadcast(&running.left);
    pthread_mutex_unlock(&running.lock);
}

/* Of all launches with a name, or with others of the same hash: how they were, if all were alike.
 */
#define NAMES 1024u
#define SEVERAL_WAYS 1u

static uint64_t mix(uint64_t hash, size_t value) { return (hash ^ value) * 0x100000001b3u; }

/* What PoCL chooses may be any work-group size, but the same one for the same index space. */
static uint64_t way_of(const struct tutti_pocl_launch *launch) {
    uint64_t way = mix(mix(launch->offset, width(launch)), launch->global[2]);
    for (unsigned d = 0; d < 3; d++)
        way = mix(way, launch->local[0] ? launch->local[d] : ~launch->global[d]);
    return way | SEVERAL_WAYS << 1;
}

bool tutti_pocl_confuses(const struct tutti_pocl_launch *launch) {
    static uint64_t ways[NAMES]; /* 0: none was launched */
    uint64_t name = 0, now = way_of(launch);
    for (const char *c = launch->kernel; *c; c++)
        name = mix(name, (unsigned char)*c);
    uint64_t *way = &ways[(name ^ name >> 32) % NAMES];
    *way = *way && *way != now ? SEVERAL_WAYS : now;
    return *way == SEVERAL_WAYS;
}

/* For a byte of a file, or for all of it. Belongs to the open file: it excludes threads as well. */
static bool set_lock(int file, short type, off_t start, off_t length) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
    return fcntl(file, F_OFD_SETLK, &lock) == 0;
}

int tutti_pocl_begin_build(uint64_t identity) {
    char path[PATH_MAX];
    int length = tutti_directory_cached(path, "builds.lock");
    if (length < 0 || length >= PATH_MAX || !tutti_directory_make_for(path))
        return -1;
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0)
        return -1;
    /* Each program has its byte. */
    const off_t byte = (off_t)(identity >> 2);
    const struct timespec pause = {.tv_nsec = 1000000};
    cl_ulong begin = tutti_clock_now();
    while (!set_lock(file, F_WRLCK, byte, 1) && (errno == EAGAIN || errno == EACCES) &&
           tutti_clock_now() - begin < LONGEST_BUILD)
        nanosleep(&pause, NULL);
    return file;
}

void tutti_pocl_end_build(int lock) {
    if (lock < 0)
        return;
    /* Closing is not enough: a process that was forked meanwhile has it open too. */
    set_lock(lock, F_UNLCK, 0, 0);
    close(lock);
}
