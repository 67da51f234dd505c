/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_BATCH_USERS_H
#define TUTTI_BATCH_USERS_H

#include "sched/batch.h"

/*
 * Which batch used a view last, and what those that use it wait for. All by the dispatching thread.
 */

/* Makes the batch the last user of the view. */
void tutti_batch_take_over(struct tutti_view *view, struct tutti_batch *batch, bool writes);

/*
 * The batch that used the view last and is not over, or NULL. Of one that is over the device is the
 * view's seat; the crew has none, as it takes any device.
 */
struct tutti_batch *tutti_batch_last_of(struct tutti_view *view);

/*
 * Has a device yet to do for long with its content at home, as far as is known? Then what
 * overwrites it all is the host's, in fresh storage (memory/version.h): a device would have to wait
 * for that.
 */
bool tutti_batch_is_kept_long(struct tutti_view *view);

/* Notes the seats of all versions of a buffer that nobody uses any more, if devices have theirs. */
void tutti_batch_note_seats(cl_mem mem);

/* Does it wait for nothing else than devices, by now or from the start? */
static inline bool tutti_batch_goes_freely(const struct tutti_batch *batch) {
    return batch->free || tutti_batch_is_ready(batch);
}

/*
 * All of a batch wait for what any of its commands waits for. May the task join those of `batch`,
 * or others if that is NULL, so that they wait for nothing else than devices? What the host does
 * with a view may take as long as the program likes (version.h), and so does what is behind that.
 */
bool tutti_batch_joins_freely(const struct tutti_batch *batch,
                              const struct tutti_device_task *task);

#endif
