/* SPDX-License-Identifier: MIT */
#include "memory/traffic.h"

static struct { atomic_ullong bytes, transfers; } counters[TUTTI_MAX_DEVICES][TUTTI_DIRECTIONS];

void tutti_traffic_count(const struct tutti_real_device *device, enum tutti_direction direction,
                         size_t bytes) {
    atomic_fetch_add_explicit(&counters[device->index][direction].bytes, bytes,
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&counters[device->index][direction].transfers, 1,
                              memory_order_relaxed);
}

struct tutti_traffic tutti_traffic_of(const struct tutti_real_device *device,
                                      enum tutti_direction direction) {
    return (struct tutti_traffic){
        atomic_load_explicit(&counters[device->index][direction].bytes, memory_order_relaxed),
        atomic_load_explicit(&counters[device->index][direction].transfers, memory_order_relaxed)};
}
