/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_MEMORY_IMAGE_H
#define TUTTI_MEMORY_IMAGE_H

#include "memory/region.h"
#include "virtual_device/image.h"

/* Places and regions are in bytes, as those of buffers; real images count in pixels. */
struct tutti_box {
    size_t origin[3], region[3];
};
struct tutti_box tutti_box_of(const struct tutti_shape *shape, const struct tutti_place *place,
                              const struct tutti_region *region);

/*
 * Transfers between host memory and a real image that is none over a buffer, on the device's queues
 * for that. With `event` they do not block. Errors are the driver's.
 */
cl_int tutti_image_read(const struct tutti_real_device *device, const struct tutti_shape *shape,
                        cl_mem image, const struct tutti_place *from, void *target,
                        const struct tutti_place *to, const struct tutti_region *region,
                        cl_event *event);
cl_int tutti_image_write(const struct tutti_real_device *device, const struct tutti_shape *shape,
                         cl_mem image, const struct tutti_place *to, const void *source,
                         const struct tutti_place *from, const struct tutti_region *region,
                         cl_event *event);

#endif
