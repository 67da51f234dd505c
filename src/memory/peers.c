/* SPDX-License-Identifier: MIT */
#include "memory/peers.h"

#include "log.h"
#include "memory/transfer_path.h"
#include "virtual_device/binary.h"
#include "virtual_device/uuid.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The sizes that are measured; others go by the nearest one. */
static const size_t sizes[] = {(size_t)4 << 10, (size_t)64 << 10, (size_t)1 << 20,
                               TUTTI_LARGEST_TRIAL};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/* What is not so much faster is not worth a common context. */
#define WORTH 0.8

#define HEADER "tutti peers 1 %llx\n"
#define FILE_NAME "tutti-peers"

/* Bits of sizes: what goes directly from a device to another one. Written while Tutti starts. */
static unsigned direct[TUTTI_MAX_DEVICES][TUTTI_MAX_DEVICES];
static cl_context contexts[TUTTI_MAX_DEVICES];

/* Devices of one driver, each with memory of its own, and what was measured of each pair of them.
 */
struct group {
    unsigned count;
    struct tutti_peer peer[TUTTI_MAX_DEVICES];
    cl_context context; /* of all */
    struct tutti_peer_times times[TUTTI_MAX_DEVICES][TUTTI_MAX_DEVICES][SIZES];
};

static unsigned nearest(size_t size) {
    unsigned i = 0;
    while (i + 1 < SIZES && (double)size * (double)size > (double)sizes[i] * (double)sizes[i + 1])
        i++;
    return i;
}

bool tutti_peers_are_near(const struct tutti_real_device *source,
                          const struct tutti_real_device *target, size_t size) {
    return direct[source->index][target->index] & 1u << nearest(size);
}

bool tutti_peers_reach(const struct tutti_real_device *device, size_t size) {
    unsigned reached = 0;
    for (unsigned d = 0; d < TUTTI_MAX_DEVICES; d++)
        reached |= direct[device->index][d];
    return reached & 1u << nearest(size);
}

cl_context tutti_peers_context(const struct tutti_real_device *device) {
    return contexts[device->index];
}

bool tutti_peers_copy(const struct tutti_copy_end *source, const struct tutti_copy_end *target,
                      const struct tutti_region *region) {
    const struct tutti_real_device *from = source->copy->device, *to = target->copy->device;
    size_t bytes = tutti_region_bytes(region);
    if (!tutti_peers_are_near(from, to, bytes))
        return false;
    cl_int error = tutti_copy_copy(source, target, region);
    if (error != CL_SUCCESS) {
        tutti_log(WARNING, "%s: a copy to %s failed with %d: it goes through host memory",
                  from->name, to->name, error);
        return false;
    }
    tutti_log(DEBUG, "%s: %zu bytes straight to %s", from->name, bytes, to->name);
    tutti_history_move(source->view->history, from, TUTTI_DOWNLOAD, bytes);
    tutti_history_move(target->view->history, to, TUTTI_UPLOAD, bytes);
    return true;
}

/* Of the group: two GPUs of one name may be linked otherwise than two others. */
static uint64_t key_of(const struct group *group) {
    uint64_t key = 0;
    for (unsigned i = 0; i < group->count; i++) {
        const struct tutti_real_device *device = group->peer[i].device;
        cl_uchar uuid[CL_UUID_SIZE_KHR];
        key = tutti_hash(key + 1, &device->identity, sizeof(device->identity));
        if (tutti_real_device_uuid(device, uuid))
            key = tutti_hash(key, uuid, sizeof(uuid));
    }
    return key;
}

/* Each driver has a file of its own. */
static bool find_path(char path[PATH_MAX], const struct group *group, const char *directory) {
    return directory && snprintf(path, PATH_MAX, "%s/" FILE_NAME "-%016llx", directory,
                                 (unsigned long long)key_of(group)) < PATH_MAX - 32;
}

/* Each pair in turn, with each size; false once `visit` returns that. */
static bool visit_all(struct group *group, void *argument,
                      bool (*visit)(struct group *group, unsigned source, unsigned target,
                                    unsigned size, void *argument)) {
    for (unsigned s = 0; s < group->count; s++)
        for (unsigned t = 0; t < group->count; t++)
            for (unsigned i = 0; i < SIZES && s != t; i++)
                if (!visit(group, s, t, i, argument))
                    return false;
    return true;
}

static bool read_one(struct group *group, unsigned source, unsigned target, unsigned size,
                     void *file) {
    unsigned s, t;
    size_t bytes;
    unsigned long long through_host, by_driver;
    if (fscanf(file, "%u %u %zu %llu %llu\n", &s, &t, &bytes, &through_host, &by_driver) != 5 ||
        s != source || t != target || bytes != sizes[size])
        return false;
    group->times[s][t][size] = (struct tutti_peer_times){by_driver, through_host};
    return true;
}

static bool write_one(struct group *group, unsigned source, unsigned target, unsigned size,
                      void *file) {
    const struct tutti_peer_times *times = &group->times[source][target][size];
    return fprintf(file, "%u %u %zu %llu %llu\n", source, target, sizes[size],
                   (unsigned long long)times->through_host, (unsigned long long)times->direct) > 0;
}

/* All of the file, or nothing. */
static bool read_times(struct group *group, const char *path) {
    unsigned long long key = 0;
    char end[8] = "";
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool good = fscanf(file, HEADER, &key) == 1 && key == key_of(group) &&
                visit_all(group, file, read_one) && fscanf(file, "%7s", end) == 1 &&
                strcmp(end, "end") == 0;
    fclose(file);
    if (!good)
        tutti_log(WARNING, "%s is damaged, or of other devices: ignored", path);
    return good;
}

/* Replaced as a whole: other processes see the old or the new one. */
static void write_times(struct group *group, const char *path) {
    char name[PATH_MAX];
    snprintf(name, sizeof(name), "%.*s.%ld", PATH_MAX - 32, path, (long)getpid());
    FILE *file = fopen(name, "we");
    bool good = file && fprintf(file, HEADER, (unsigned long long)key_of(group)) > 0 &&
                visit_all(group, file, write_one) && fprintf(file, "end\n") > 0;
    if (file)
        good = fclose(file) == 0 && good && rename(name, path) == 0;
    if (good)
        return;
    tutti_log(WARNING, "%s can't be written: transfers are measured again", path);
    unlink(name);
}

static bool measure_one(struct group *group, unsigned source, unsigned target, unsigned size,
                        void *unused) {
    (void)unused;
    const struct tutti_peer *from = &group->peer[source], *to = &group->peer[target];
    struct tutti_peer_times *times = &group->times[source][target][size];
    *times = tutti_peer_try(from, to, group->context, sizes[size]);
    tutti_log(INFO, "device %u to %u, %zu bytes: %.0f µs through host memory, %.0f by the driver",
              from->device->index, to->device->index, sizes[size],
              (double)times->through_host / 1000, (double)times->direct / 1000);
    return true;
}

/* A device for which all becomes slower is a reason against it: then nothing goes directly. */
static void measure(struct group *group) {
    visit_all(group, NULL, measure_one);
    for (unsigned i = 0; i < group->count; i++)
        if (tutti_peer_pays_toll(&group->peer[i], group->context)) {
            tutti_log(INFO, "device %u: small commands take longer in a common context",
                      group->peer[i].device->index);
            memset(group->times, 0, sizeof(group->times));
        }
}

static void open_context(struct group *group) {
    cl_device_id ids[TUTTI_MAX_DEVICES];
    const struct tutti_real_device *first = group->peer[0].device;
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                (cl_context_properties)first->platform, 0};
    cl_int error;
    for (unsigned i = 0; i < group->count; i++)
        ids[i] = group->peer[i].device->id;
    if (!group->context)
        group->context =
            first->dispatch->clCreateContext(properties, group->count, ids, NULL, NULL, &error);
}

static bool choose_one(struct group *group, unsigned source, unsigned target, unsigned size,
                       void *chosen) {
    const struct tutti_peer_times *times = &group->times[source][target][size];
    bool faster = times->direct && (!times->through_host ||
                                    (double)times->direct < WORTH * (double)times->through_host);
    if (faster)
        direct[group->peer[source].device->index][group->peer[target].device->index] |= 1u << size;
    *(bool *)chosen = *(bool *)chosen || faster;
    return true;
}

static bool force_one(struct group *group, unsigned source, unsigned target, unsigned size,
                      void *unused) {
    (void)unused;
    group->times[source][target][size] = (struct tutti_peer_times){1, 0};
    return true;
}

static void decide(struct group *group, const char *directory) {
    char path[PATH_MAX];
    bool chosen = false, kept = find_path(path, group, directory);
    if (tutti_transfer_path_choice() == TUTTI_TRANSFER_PEER) {
        visit_all(group, NULL, force_one);
    } else if (!kept) { /* it would be measured by each process */
        return;
    } else if (!read_times(group, path)) {
        open_context(group);
        if (!group->context)
            return;
        measure(group);
        write_times(group, path);
    }
    visit_all(group, &chosen, choose_one);
    if (chosen)
        open_context(group);
    for (unsigned i = 0; i < group->count && chosen; i++)
        contexts[group->peer[i].device->index] = group->context;
    if (group->context && !chosen)
        group->peer[0].device->dispatch->clReleaseContext(group->context);
    if (chosen && !group->context) /* no context, no copies */
        memset(direct, 0, sizeof(direct));
}

void tutti_peers_start(const struct tutti_peer *alone, unsigned count, const char *directory) {
    enum tutti_transfer_choice choice = tutti_transfer_path_choice();
    unsigned done = 0; /* bits of `alone` */
    if (choice != TUTTI_TRANSFER_AUTO && choice != TUTTI_TRANSFER_PEER)
        return;
    for (unsigned i = 0; i < count; i++) {
        struct group *group = done & 1u << i ? NULL : calloc(1, sizeof(*group));
        if (!group)
            continue;
        for (unsigned j = i; j < count; j++) {
            const struct tutti_real_device *device = alone[j].device;
            if (device->platform != alone[i].device->platform || device->at_home ||
                device->shares_host)
                continue;
            group->peer[group->count++] = alone[j];
            done |= 1u << j;
        }
        if (group->count > 1)
            decide(group, directory);
        free(group);
    }
}
