/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_TRAFFIC_H
#define TUTTI_TRAFFIC_H

#include "virtual_device/device.h"

/* Bytes and transfers between host memory and each real device, since the process started. */
enum tutti_direction { TUTTI_UPLOAD, TUTTI_DOWNLOAD, TUTTI_DIRECTIONS };

struct tutti_traffic {
    cl_ulong bytes, transfers;
};

void tutti_traffic_count(const struct tutti_real_device *device, enum tutti_direction direction,
                         size_t bytes);
struct tutti_traffic tutti_traffic_of(const struct tutti_real_device *device,
                                      enum tutti_direction direction);

#endif
