/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_COHERENCE_H
#define TUTTI_COHERENCE_H

#include "memory/mem.h"

/*
 * Keeps a buffer and its sub-buffers, which are separate views, telling one story. All of it is
 * called by the dispatching thread, so "since" and "before" are the order of dispatch. Offsets are
 * in the view. Functions return false when out of memory.
 */

/* Is any of [begin, end) newer in another view? */
bool tutti_coherence_is_stale(const struct tutti_view *view, size_t begin, size_t end);

/* A command is about to read [begin, end): brings it up to date with the other views. */
bool tutti_coherence_read(struct tutti_view *view, size_t begin, size_t end);

/*
 * A command is about to write in [begin, end). `all`: every byte of it, so that older bytes of
 * other views are not needed; else the range is brought up to date first.
 */
bool tutti_coherence_write(struct tutti_view *view, size_t begin, size_t end, bool all);

/*
 * The parts of a buffer become windows (window.h): what they have that is newer is brought into it.
 * And they become parts again, with its content.
 */
bool tutti_coherence_open(struct tutti_view *root);
bool tutti_coherence_close(struct tutti_view *root);

/* A new sub-buffer's view: what the others hold is its content. */
bool tutti_coherence_join(struct tutti_view *view);
/*
 * The view goes: what only it holds is given to the others, to the buffer only as long as that is
 * used by others than its parts (mem.h). Best effort when out of memory.
 */
void tutti_coherence_leave(struct tutti_view *view, cl_mem buffer);

#endif
