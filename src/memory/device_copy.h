/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_DEVICE_COPY_H
#define TUTTI_DEVICE_COPY_H

#include "memory/view.h"

/*
 * Commands of one device on its copy of a view, by the driver or, where the device shares host
 * memory, by us. All wait; errors are the driver's. CL_MEM_OBJECT_ALLOCATION_FAILURE when the
 * device could not allocate the copy. Pitches of places in images do not count.
 */
cl_int tutti_copy_read(const struct tutti_view *view, const struct tutti_copy *copy,
                       const struct tutti_place *from, void *target, const struct tutti_place *to,
                       const struct tutti_region *region);
cl_int tutti_copy_write(const struct tutti_view *view, const struct tutti_copy *copy,
                        const struct tutti_place *to, const void *source,
                        const struct tutti_place *from, const struct tutti_region *region);
/*
 * Starts to move a part by one command of the driver's; `*event` stays NULL when there is nothing
 * to wait for. Counted by the caller. tutti_copy_end waits, if there is an event, and forgets it;
 * an error becomes `*error`, unless that has one.
 */
cl_int tutti_copy_start(const struct tutti_view *view, const struct tutti_copy *copy,
                        bool to_device, const struct tutti_place *there, void *memory,
                        const struct tutti_place *here, const struct tutti_region *region,
                        cl_event *event);
void tutti_copy_end(const struct tutti_copy *copy, cl_event *event, cl_int *error);

/*
 * Would a driver that counts whole pitches see the part of a buffer reach past its end? Then it
 * takes two commands.
 */
bool tutti_copy_overhangs(const struct tutti_view *view, const struct tutti_place *place,
                          const struct tutti_region *region);

/*
 * The same for a buffer, as one command of the caller's queue, with the driver's lock held and
 * nothing counted. Not for more slices than one, nor for what overhangs. `event` may be NULL.
 */
cl_int tutti_copy_enqueue(const struct tutti_copy *copy, cl_command_queue queue, bool to_device,
                          const struct tutti_place *there, void *memory,
                          const struct tutti_place *here, const struct tutti_region *region,
                          bool blocking, cl_event *event);

cl_int tutti_copy_fill(const struct tutti_copy *copy, size_t offset, size_t size,
                       const void *pattern, size_t pattern_size);
/* The same as a command of the caller's queue, likewise. */
cl_int tutti_copy_enqueue_fill(const struct tutti_copy *copy, cl_command_queue queue, size_t offset,
                               size_t size, const void *pattern, size_t pattern_size,
                               cl_event *event);
/* `pixel` is the color in the image's format (memory/color.h). */
cl_int tutti_copy_fill_image(const struct tutti_view *view, const struct tutti_copy *copy,
                             const struct tutti_place *place, const struct tutti_region *region,
                             const void *color, const void *pixel);

/*
 * One end of a copy from a view to another one on the same device, or on two that have one context
 * (peers.h).
 */
struct tutti_copy_end {
    const struct tutti_view *view;
    const struct tutti_copy *copy;
    const struct tutti_place *place;
};
cl_int tutti_copy_copy(const struct tutti_copy_end *source, const struct tutti_copy_end *target,
                       const struct tutti_region *region);
/* The same for two buffers as a command of the caller's queue, likewise, whatever the views. */
cl_int tutti_copy_enqueue_copy(const struct tutti_copy_end *source,
                               const struct tutti_copy_end *target,
                               const struct tutti_region *region, cl_command_queue queue,
                               cl_event *event);

#endif
