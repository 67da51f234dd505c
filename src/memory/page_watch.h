/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_PAGE_WATCH_H
#define TUTTI_PAGE_WATCH_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Tells when the program gives pages away: unmaps them, drops what is in them, or moves them
 * (munmap, madvise, mremap, and what calls these, as free does). Linux holds whoever does that
 * until it was told (userfaultfd(2), which needs no privilege for the program's own faults
 * since 5.11), so no hook into the program's allocator is needed.
 */

/*
 * From now on `gone(watch)` is called, by one thread at a time, when that happens to one of the
 * pages with these bytes, and before the thread that does it goes on; once, then the watch is over.
 * Such a thread waits for no longer than a second: it may have what `gone` needs. Returns the
 * watch's number, or 0 if these pages can't be watched: they are not the process's own alone, a
 * part of the C library's heap, watched already, or Linux does not let us.
 */
unsigned long tutti_page_watch_begin(const void *bytes, size_t size,
                                     void (*gone)(unsigned long watch));

/*
 * Calls `run` in the thread that calls `gone`, and returns after it; false: not at all, as
 * nothing can be watched any more. free() gives pages of a heap back with that heap's lock, which
 * `gone` must not need: what it frees should have been allocated in the same thread, which has a
 * heap of its own.
 */
bool tutti_page_watch_run(void (*run)(void *argument), void *argument);

/* Ends it. `gone` may be under way still. */
void tutti_page_watch_end(unsigned long watch);

#endif
