/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_BLOCK_H
#define TUTTI_BLOCK_H

#include <stddef.h>

/*
 * Host memory for the contents of memory objects: aligned for any OpenCL type, large blocks on
 * pages of their own, each at another place of its first one. NULL when out of memory. Large blocks
 * do not come from malloc: a block is often made by one thread and freed by another, which leaves
 * memory behind in each thread's arena. Freed ones are kept for the next objects of the same size:
 * fresh pages cost a page fault each, which took a tenth of the time of a kernel that fills 5 MB,
 * and half of it where the machine is virtual and its host has to find the memory. Kept and used
 * ones are together no more than were used at once, or 64 MiB, and the kept ones no more than a
 * sixteenth of the machine's memory.
 */
void *tutti_block_allocate(size_t size);
void tutti_block_free(void *block, size_t size); /* NULL is allowed */

/* Gives back what is kept. */
void tutti_block_trim(void);

#endif
