/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_STREAM_H
#define TUTTI_STREAM_H

#include "memory/device_copy.h"

/*
 * Moves a region from one device to another, in chunks through `memory` of the host: one link
 * brings a chunk while the other one takes what came before. All of it is at `here` afterwards.
 * Returns the first error of the drivers.
 */
cl_int tutti_stream_copy(const struct tutti_copy_end *source, const struct tutti_copy_end *target,
                         char *memory, const struct tutti_place *here,
                         const struct tutti_region *region);

/*
 * The same for bytes in a row, through a few chunks of page-locked memory, which are used again and
 * again: no copy of them is left there. False: there is no such memory, and nothing was done.
 */
bool tutti_stream_pass(const struct tutti_copy_end *source, const struct tutti_copy_end *target,
                       const struct tutti_region *region, cl_int *error);

/* Not for rows of a buffer, nor between a buffer and an image. */
static inline bool tutti_stream_can(const struct tutti_copy_end *source,
                                    const struct tutti_copy_end *target,
                                    const struct tutti_region *region) {
    bool boxed = tutti_shape_is_boxed(&source->view->shape);
    return boxed == tutti_shape_is_boxed(&target->view->shape) &&
           (boxed || tutti_region_is_linear(region));
}

#endif
