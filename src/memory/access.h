/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_ACCESS_H
#define TUTTI_ACCESS_H

#include "memory/view.h"

/*
 * Reading and writing parts of a view on the host's side, while the view is acquired: a read takes
 * the nearest valid copy, a write goes to every valid copy, so that their validity does not change
 * and nothing else moves. All wait for the drivers; errors are the drivers'. CL_SUCCESS if none.
 * The pitches of a place in an image do not count: each copy has its own.
 */
cl_int tutti_access_read(struct tutti_view *view, const struct tutti_place *from, void *target,
                         const struct tutti_place *to, const struct tutti_region *region);
cl_int tutti_access_write(struct tutti_view *view, const struct tutti_place *to, const void *source,
                          const struct tutti_place *from, const struct tutti_region *region);
cl_int tutti_access_fill(struct tutti_view *view, size_t offset, size_t size, const void *pattern,
                         size_t pattern_size);
/* An image with a color as clEnqueueFillImage takes it (5.3.4). */
cl_int tutti_access_fill_image(struct tutti_view *view, const struct tutti_place *place,
                               const struct tutti_region *region, const void *color);
/* `source` and `target` may be the same view. */
cl_int tutti_access_copy(struct tutti_view *source, const struct tutti_place *from,
                         struct tutti_view *target, const struct tutti_place *to,
                         const struct tutti_region *region);

/*
 * Makes that part of the home memory hold the view's bytes, whether or not the home copy as a whole
 * is valid; and the other way: home memory to all valid device copies.
 */
cl_int tutti_access_pull(struct tutti_view *view, const struct tutti_place *place,
                         const struct tutti_region *region);
cl_int tutti_access_push(struct tutti_view *view, const struct tutti_place *place,
                         const struct tutti_region *region);

#endif
