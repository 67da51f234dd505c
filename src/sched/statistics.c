/* SPDX-License-Identifier: MIT */
#include "sched/statistics.h"

#include "env.h"
#include "memory/history.h"
#include "sched/runtime.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static atomic_ullong executed[TUTTI_MAX_DEVICES];

/* Only with TUTTI_STATS. */
static struct {
    pthread_mutex_t lock;
    cl_ulong first, last;                /* ends of commands, host's clock */
    double busy[TUTTI_MAX_DEVICES];      /* µs */
    double by_itself[TUTTI_MAX_DEVICES]; /* µs that all commands would take there, by the models */
    bool not_all[TUTTI_MAX_DEVICES];     /* some can't run there */
} times = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool wanted(void) {
    const char *stats = tutti_env_string(TUTTI_STATS);
    return stats && *stats && strcmp(stats, "0") != 0;
}

void tutti_statistics_count(const struct tutti_model *model, unsigned able,
                            const struct tutti_real_device *device, double time) {
    atomic_fetch_add_explicit(&executed[device->index], 1, memory_order_relaxed);
    if (!wanted())
        return;
    const struct tutti_device_list *list = tutti_devices();
    cl_ulong now = tutti_runtime_now();
    pthread_mutex_lock(&times.lock);
    times.busy[device->index] += time > 0 ? time : tutti_model_expect(model, device);
    for (unsigned d = 0; d < list->count; d++) {
        if (able & 1u << d)
            times.by_itself[d] += tutti_model_expect(model, list->device[d]);
        else
            times.not_all[d] = true;
    }
    if (times.first == 0)
        times.first = now;
    times.last = now;
    pthread_mutex_unlock(&times.lock);
}

static double mebibytes(const struct tutti_real_device *device, enum tutti_direction direction) {
    return (double)tutti_history_total(device, direction) / (1 << 20);
}

static void print(FILE *file) {
    const struct tutti_device_list *list = tutti_devices();
    double length = (double)(times.last - times.first) * 1e-9;
    int best = -1;
    fprintf(file, "tutti: %.3f s from the end of the first kernel to that of the last\n", length);
    fprintf(file, "tutti: %8s %9s %9s %10s %10s %7s  %s\n", "kernels", "busy s", "idle s", "in MiB",
            "out MiB", "models", "device");
    for (unsigned d = 0; d < list->count; d++) {
        const struct tutti_real_device *device = list->device[d];
        double busy = times.busy[d] * 1e-6;
        fprintf(file, "tutti: %8llu %9.3f %9.3f %10.1f %10.1f %7u  %s\n",
                (unsigned long long)executed[d], busy, length > busy ? length - busy : 0,
                mebibytes(device, TUTTI_UPLOAD), mebibytes(device, TUTTI_DOWNLOAD),
                tutti_model_count(device), device->name);
        if (!times.not_all[d] && (best < 0 || times.by_itself[d] < times.by_itself[best]))
            best = (int)d;
    }
    if (best >= 0)
        fprintf(file, "tutti: by the models, all kernels take %.3f s on device %d by itself: %s\n",
                times.by_itself[best] * 1e-6, best, list->device[best]->name);
}

void tutti_statistics_print(void) {
    const char *stats = tutti_env_string(TUTTI_STATS);
    if (!wanted())
        return;
    FILE *file = strcmp(stats, "1") == 0 ? stderr : fopen(stats, "ae");
    pthread_mutex_lock(&times.lock);
    if (file)
        print(file);
    pthread_mutex_unlock(&times.lock);
    if (file && file != stderr)
        fclose(file);
}

cl_int CL_API_CALL tutti_clGetDeviceTaskCountsTUTTI(cl_device_id device, cl_uint num_entries,
                                                    cl_ulong *counts, char (*names)[64],
                                                    cl_uint *num_devices) {
    if (!device || device != tutti_device())
        return CL_INVALID_DEVICE;
    if ((counts || names) && num_entries == 0)
        return CL_INVALID_VALUE;
    const struct tutti_device_list *list = tutti_devices();
    for (cl_uint d = 0; d < list->count && d < num_entries; d++) {
        if (counts)
            counts[d] = atomic_load_explicit(&executed[d], memory_order_relaxed);
        if (names)
            snprintf(names[d], sizeof(names[d]), "%s", list->device[d]->name);
    }
    if (num_devices)
        *num_devices = list->count;
    return CL_SUCCESS;
}
