/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_PINNED_H
#define TUTTI_PINNED_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Page-locked host memory, which a GPU reaches at the full speed of its link: on NVIDIA 55 GB/s
 * where pageable memory gets 10 to 18. OpenCL has no function for it; drivers lock the pages of
 * buffers made with CL_MEM_ALLOC_HOST_PTR. Blocks are kept for reuse, as locking pages costs as
 * much as copying them, within TUTTI_PINNED_LIMIT, and returned when the program is idle.
 */
struct tutti_pinned;

/* NULL when there is no GPU, the limit is reached, or the driver refuses: any memory serves then.
 */
struct tutti_pinned *tutti_pinned_allocate(size_t size);
/*
 * The same for one use: mostly only of what is kept. To lock a block takes as long as some thirty
 * such uses lose without one, so each thirty-second of about a size does.
 */
struct tutti_pinned *tutti_pinned_allocate_for_once(size_t size);
void *tutti_pinned_bytes(const struct tutti_pinned *pinned);

/* Locks the program's pages, until tutti_pinned_free. NULL as above. */
struct tutti_pinned *tutti_pinned_lock(void *memory, size_t size);

void tutti_pinned_free(struct tutti_pinned *pinned); /* NULL is allowed */

/* Does all of that memory lie in one such block in use? */
bool tutti_pinned_covers(const void *memory, size_t size);

/* Bytes of such memory that there may be: TUTTI_PINNED_LIMIT. */
size_t tutti_pinned_limit(void);

/* Gives back to the drivers what is not in use. */
void tutti_pinned_trim(void);

#endif
