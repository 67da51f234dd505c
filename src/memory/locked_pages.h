/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_LOCKED_PAGES_H
#define TUTTI_LOCKED_PAGES_H

#include "memory/region.h"
#include "virtual_device/device.h"

/*
 * Pages of the program's own memory, which it passes to reads and writes, or makes buffers over,
 * again and again, are page-locked once what that saves has come to what it costs: so it never
 * costs more than twice the best. They are unlocked when the program gives them away
 * (page_watch.h): a driver would move the bytes of the old pages for whatever came to that address,
 * so it moves none there before they are.
 * TUTTI_LOCK_PAGES turns it off, or has all locked at once. Only NVIDIA's driver is known to move
 * bytes faster so; others' pages are locked with TUTTI_LOCK_PAGES=always alone.
 */

/*
 * So many bytes of these, which are the program's, are about to move to or from the device. By any
 * thread, with no lock but a view's.
 */
void tutti_locked_pages_use(const struct tutti_real_device *device, const void *bytes, size_t size,
                            size_t moved);
/* The same for a region of memory. */
void tutti_locked_pages_use_part(const struct tutti_real_device *device, const void *memory,
                                 const struct tutti_place *place,
                                 const struct tutti_region *region);

/*
 * Before a driver moves any host memory, or locks it: what was locked there, and the program gave
 * away, is not any more. By any thread.
 */
void tutti_locked_pages_wait(const void *bytes, size_t size);
void tutti_locked_pages_wait_part(const void *memory, const struct tutti_place *place,
                                  const struct tutti_region *region);

/*
 * A driver answered `error` as it was to move a region of memory. NVIDIA's refuses rows and images
 * (CL_INVALID_VALUE, 580.159) whose first byte is in locked pages that have not all of them, be it
 * the last page of a neighbour. Unlocks those; true: it did, and is to be asked again.
 */
bool tutti_locked_pages_gave_way(cl_int error, const void *memory, const struct tutti_place *place,
                                 const struct tutti_region *region);

/* At exit: drivers are not called any more. */
void tutti_locked_pages_stop(void);

#endif
