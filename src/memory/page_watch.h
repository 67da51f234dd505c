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
 * From now on `gone(argument)` is called when that happens to one of the pages with these bytes,
 * by one thread for all watches, and before the thread that does it goes on; once, then the watch
 * is over. That thread may have any lock of the C library's allocator, so `gone` must neither
 * allocate memory nor wait for one that may, or not for long. Returns the watch's number, or 0 if
 * these pages can't be watched: they are not the process's own alone, watched already, or Linux
 * does not let us.
 */
unsigned long tutti_page_watch_begin(const void *bytes, size_t size, void (*gone)(void *argument),
                                     void *argument);

/*
 * Did the program begin to give some of the pages away, and `gone` has not returned yet? As early as
 * another thread can get memory at that address. Of a watch that is not over.
 */
bool tutti_page_watch_is_changing(unsigned long watch);

/* Ends it. `gone` may be under way still. */
void tutti_page_watch_end(unsigned long watch);

#endif
