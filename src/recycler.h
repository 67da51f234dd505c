/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_RECYCLER_H
#define TUTTI_RECYCLER_H

#include <stddef.h>

/*
 * Memory for what each command needs, such as its event: blocks that were given back are taken
 * again, by threads' own lists and, many at a time, between them. A program's thread takes what
 * another gives back when the command is over, which costs malloc a lock each time, and more where
 * both are at it. What waits to be taken again is bounded; the rest is given back to malloc.
 */

/* AddressSanitizer must see what is freed: nothing is kept then. */
#define TUTTI_RECYCLES 1
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#undef TUTTI_RECYCLES
#define TUTTI_RECYCLES 0
#endif
#endif

/* Bytes as malloc's: of any content, aligned for any type; NULL when there are none. */
void *tutti_recycler_take(size_t size);
void *tutti_recycler_take_zeroed(size_t size);

/* By any thread; NULL is allowed. The bytes stay as they are until they are taken again. */
void tutti_recycler_give(void *bytes);

#endif
