/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_BLOCK_H
#define TUTTI_BLOCK_H

#include <stddef.h>

/*
 * Host memory for the contents of memory objects: aligned for any OpenCL type, large blocks on
 * pages of their own, each at another place of its first one. NULL when out of memory. Large blocks
 * do not come from malloc: a block is often made by one thread and freed by another, which leaves
 * memory behind in each thread's arena. A few freed ones are kept for the next object of the same
 * size.
 */
void *tutti_block_allocate(size_t size);
void tutti_block_free(void *block, size_t size); /* NULL is allowed */

#endif
