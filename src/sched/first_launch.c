/* SPDX-License-Identifier: MIT */
#include "sched/first_launch.h"

#include "virtual_device/pocl.h"

#include <pthread.h>
#include <stdlib.h>

/* µs, each counted as if one had taken so long: to compile a kernel, and to load it from disk. */
#define COMPILED 100000.0
#define LOADED 2000.0

struct tutti_first_launch {
    struct tutti_first_launch *next; /* of the kernel */
    unsigned shape;
    /* Bits of devices: */
    atomic_uint over;                       /* they need nothing, */
    atomic_uint kept;                       /* an earlier process had such a kernel there, */
    atomic_uint planned;                    /* it is in their line */
    _Atomic double lost[TUTTI_MAX_DEVICES]; /* by kind */
    double missed[TUTTI_MAX_DEVICES];       /* when that was added to; 0: never */
};

/* What they took, by kind of device and by whether an earlier process had it. */
static struct {
    pthread_mutex_t lock; /* for adding */
    _Atomic double sum[TUTTI_MAX_DEVICES][2];
    atomic_uint count[TUTTI_MAX_DEVICES][2];
} took = {.lock = PTHREAD_MUTEX_INITIALIZER};

static unsigned devices_like(uint64_t identity) {
    const struct tutti_device_list *list = tutti_devices();
    unsigned devices = 0;
    for (unsigned d = 0; d < list->count; d++)
        devices |= list->device[d]->identity == identity ? 1u << d : 0;
    return devices;
}

static unsigned load(const atomic_uint *bits) {
    return atomic_load_explicit(bits, memory_order_relaxed);
}

static bool has(const atomic_uint *bits, const struct tutti_real_device *device) {
    return load(bits) & 1u << device->index;
}

struct tutti_first_launch *tutti_first_launch_find(struct tutti_first_launch **list,
                                                   unsigned shape) {
    const struct tutti_device_list *devices = tutti_devices();
    while (*list && (*list)->shape != shape)
        list = &(*list)->next;
    if (*list || !(*list = calloc(1, sizeof(**list))))
        return *list;
    (*list)->shape = shape;
    for (unsigned d = 0; d < devices->count; d++)
        if (!tutti_pocl_is(devices->device[d]))
            (*list)->over |= 1u << d;
    return *list;
}

bool tutti_first_launch_is_over(const struct tutti_first_launch *first, unsigned devices) {
    return !first || (devices & ~load(&first->over)) == 0;
}

unsigned tutti_first_launch_ready(const struct tutti_first_launch *first, unsigned devices) {
    return first ? devices & load(&first->over) : devices;
}

double tutti_first_launch_delay(const struct tutti_first_launch *first,
                                const struct tutti_real_device *device) {
    if (!first || has(&first->over, device))
        return 0;
    unsigned kind = device->kind;
    bool kept = has(&first->kept, device);
    double sum = atomic_load_explicit(&took.sum[kind][kept], memory_order_relaxed);
    return ((kept ? LOADED : COMPILED) + sum) / (1 + load(&took.count[kind][kept]));
}

void tutti_first_launch_note_kept(struct tutti_first_launch *first, uint64_t identity) {
    if (first)
        atomic_fetch_or_explicit(&first->kept, devices_like(identity), memory_order_relaxed);
}

void tutti_first_launch_plan(struct tutti_first_launch *first,
                             const struct tutti_real_device *device, bool planned) {
    if (first && planned)
        atomic_fetch_or_explicit(&first->planned, 1u << device->index, memory_order_relaxed);
    else if (first)
        atomic_fetch_and_explicit(&first->planned, ~(1u << device->index), memory_order_relaxed);
}

bool tutti_first_launch_is_planned(const struct tutti_first_launch *first,
                                   const struct tutti_real_device *device) {
    return first && has(&first->planned, device);
}

void tutti_first_launch_miss(struct tutti_first_launch *first,
                             const struct tutti_real_device *device, double loss, double now) {
    if (!first || has(&first->over, device))
        return;
    unsigned kind = device->kind;
    double passed = first->missed[kind] > 0 ? now - first->missed[kind] : 0;
    double lost = atomic_load_explicit(&first->lost[kind], memory_order_relaxed);
    first->missed[kind] = now;
    atomic_store_explicit(&first->lost[kind], lost + (loss < passed ? loss : passed),
                          memory_order_relaxed);
}

double tutti_first_launch_lost(const struct tutti_first_launch *first,
                               const struct tutti_real_device *device) {
    return first ? atomic_load_explicit(&first->lost[device->kind], memory_order_relaxed) : 0;
}

void tutti_first_launch_learn(const struct tutti_first_launch *first,
                              const struct tutti_real_device *device, double time) {
    if (!first || has(&first->over, device))
        return;
    unsigned kind = device->kind;
    bool kept = has(&first->kept, device);
    pthread_mutex_lock(&took.lock);
    took.sum[kind][kept] = took.sum[kind][kept] + time;
    took.count[kind][kept]++;
    pthread_mutex_unlock(&took.lock);
}

void tutti_first_launch_end(struct tutti_first_launch *first,
                            const struct tutti_real_device *device) {
    if (first && !has(&first->over, device))
        atomic_fetch_or_explicit(&first->over, devices_like(device->identity),
                                 memory_order_relaxed);
}
