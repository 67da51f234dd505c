/* SPDX-License-Identifier: MIT */
#include "memory/room.h"

#include "log.h"
#include "memory/stay.h"
#include "sched/runtime.h"

#include <starpu.h>
#include <time.h>

/* ns without any change on an idle device. Transfers of other devices may take so long, but hardly
 * for all copies at once. */
#define STUCK ((cl_ulong)20 * 1000 * 1000)
#define HOPELESS ((cl_ulong)1000 * 1000 * 1000)
#define PAUSE 200000                         /* ns, until StarPU may ask again */
#define TRIED_AGAIN ((cl_ulong)2 * HOPELESS) /* after so long it may have room again */

static struct {
    atomic_uint working;   /* tasks */
    atomic_ullong refused; /* when the first of the refusals in a row was; 0: none */
    atomic_ullong full;    /* when it was time to do without; 0: there was memory since then */
} state[TUTTI_MAX_DEVICES];

void tutti_room_changed(const struct tutti_real_device *device) {
    atomic_store_explicit(&state[device->index].refused, 0, memory_order_relaxed);
}

/* Was memory refused for so long? */
static bool waited(const struct tutti_real_device *device, cl_ulong time) {
    cl_ulong now = tutti_runtime_now();
    unsigned long long first = 0;
    if (atomic_load(&state[device->index].working))
        tutti_room_changed(device);
    return !atomic_compare_exchange_strong(&state[device->index].refused, &first, now) &&
           now - first >= time;
}

bool tutti_room_is_scarce(const struct tutti_real_device *device) {
    starpu_ssize_t total = starpu_memory_get_total(device->place.node);
    return total > 0 && starpu_memory_get_available(device->place.node) < total / 4;
}

size_t tutti_room_total(const struct tutti_real_device *device) {
    starpu_ssize_t total = starpu_memory_get_total(device->place.node);
    return total < 0 ? (size_t)device->global_mem_size : (size_t)total;
}

bool tutti_room_is_full(const struct tutti_real_device *device) {
    cl_ulong since = atomic_load_explicit(&state[device->index].full, memory_order_relaxed);
    return since && tutti_runtime_now() - since < TRIED_AGAIN;
}

size_t tutti_room_left(const struct tutti_real_device *device) {
    if (tutti_room_is_full(device))
        return 0;
    starpu_ssize_t left = starpu_memory_get_available(device->place.node);
    return left < 0 ? (size_t)device->global_mem_size : (size_t)left;
}

bool tutti_room_take(const struct tutti_real_device *device, size_t size) {
    if (starpu_memory_allocate(device->place.node, size, 0) == 0)
        return true;
    tutti_stay_leave(device);
    if (!waited(device, STUCK))
        return false;
    tutti_log(INFO, "%s: %zu bytes more than its share, as it waits for others", device->name,
              size);
    return starpu_memory_allocate(device->place.node, size, STARPU_MEMORY_OVERFLOW) == 0;
}

void tutti_room_give_back(const struct tutti_real_device *device, size_t size) {
    starpu_memory_deallocate(device->place.node, size);
    tutti_room_changed(device);
}

void tutti_room_filled(const struct tutti_real_device *device) {
    atomic_store_explicit(&state[device->index].full, 0, memory_order_relaxed);
    tutti_room_changed(device);
}

bool tutti_room_refused(const struct tutti_real_device *device) {
    if (waited(device, tutti_room_is_full(device) ? STUCK : HOPELESS)) {
        atomic_store_explicit(&state[device->index].full, tutti_runtime_now(),
                              memory_order_relaxed);
        return true;
    }
    nanosleep(&(struct timespec){.tv_nsec = PAUSE}, NULL);
    return false;
}

void tutti_room_begin_work(const struct tutti_real_device *device) {
    atomic_fetch_add(&state[device->index].working, 1);
}

unsigned tutti_room_working(const struct tutti_real_device *device) {
    return atomic_load(&state[device->index].working);
}

void tutti_room_end_work(const struct tutti_real_device *device) {
    tutti_room_changed(device);
    atomic_fetch_sub(&state[device->index].working, 1);
}
