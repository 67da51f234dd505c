/* SPDX-License-Identifier: MIT */
#include "memory/history.h"

static atomic_ullong total[TUTTI_MAX_DEVICES][TUTTI_DIRECTIONS]; /* bytes */

void tutti_history_use(struct tutti_history *history, const struct tutti_real_device *device,
                       unsigned placed) {
    unsigned bit = 1u << device->index;
    if (placed)
        atomic_fetch_add_explicit(placed & bit ? &history->hits : &history->strays, 1,
                                  memory_order_relaxed);
    if (!(atomic_load_explicit(&history->users, memory_order_relaxed) & bit))
        atomic_fetch_or_explicit(&history->users, bit, memory_order_relaxed);
}

unsigned tutti_history_users(const struct tutti_history *history) {
    unsigned users = atomic_load_explicit(&history->users, memory_order_relaxed);
    return users ? users : atomic_load_explicit(&history->earlier, memory_order_relaxed);
}

unsigned tutti_history_overwrite(struct tutti_history *history) {
    unsigned users = tutti_history_users(history);
    atomic_store_explicit(&history->users, 0, memory_order_relaxed);
    atomic_store_explicit(&history->earlier, users, memory_order_relaxed);
    return users;
}

void tutti_history_join(struct tutti_history *history, const struct tutti_history *part) {
    atomic_fetch_or_explicit(&history->users, tutti_history_users(part), memory_order_relaxed);
}

static void add(atomic_ullong *counter, size_t amount) {
    atomic_fetch_add_explicit(counter, amount, memory_order_relaxed);
}

void tutti_history_move(struct tutti_history *history, const struct tutti_real_device *device,
                        enum tutti_direction direction, size_t bytes) {
    add(&history->on[device->index].bytes[direction], bytes);
    add(&history->on[device->index].transfers[direction], 1);
    add(&total[device->index][direction], bytes);
}

bool tutti_history_is_taken(const struct tutti_history *history) {
    unsigned long long taken = 0;
    for (unsigned d = 0; d < TUTTI_MAX_DEVICES; d++)
        taken +=
            atomic_load_explicit(&history->on[d].transfers[TUTTI_DOWNLOAD], memory_order_relaxed);
    return 2 * taken >= history->written && taken > 0;
}

cl_ulong tutti_history_total(const struct tutti_real_device *device,
                             enum tutti_direction direction) {
    return atomic_load_explicit(&total[device->index][direction], memory_order_relaxed);
}

void tutti_history_evict(struct tutti_history *history, const struct tutti_real_device *device) {
    add(&history->on[device->index].evictions, 1);
}
