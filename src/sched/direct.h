/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_DIRECT_H
#define TUTTI_DIRECT_H

#include "sched/batch.h"

/*
 * Short commands on data that lies on one device already, or in home memory where all devices work
 * in that, with nothing else to order them: they go straight to a device, as they would without
 * Tutti, and their views stay there (memory/stay.h). So do longer kernels on data in home memory
 * while nothing else is under way, or behind others that they wait for, or if there is one device;
 * and on the data of a GPU that is idle or at what they wait for.
 * direct_end.h sees to their end. Where devices execute in the call, the crew (crew.h) takes all.
 */

/* Does TUTTI_DIRECT let commands go past StarPU at all? */
bool tutti_direct_is_wanted(void);

/*
 * Takes the batch, if it is of that kind, and sees to its end; else false. By the dispatching
 * thread.
 */
bool tutti_direct_submit(struct tutti_batch *batch);

/* Would it take a batch of this task alone, as things are? By the dispatching thread. */
bool tutti_direct_would_take(const struct tutti_device_task *task);

/* May the task go right behind the batch, which is not over, or beside it? */
bool tutti_direct_goes_on(const struct tutti_batch *batch, const struct tutti_device_task *task);

/* Is there but one device, and does it work in home memory? Then nothing is to be placed. */
bool tutti_direct_serves_all(void);

/*
 * Is it that one, which executes by itself what is on a queue, measured or not? Then it gets what
 * it is to do at once, each batch with an event, which costs such drivers nothing.
 */
bool tutti_direct_streams(const struct tutti_real_device *device);

/*
 * The batch has one more use, with a stay; a use that it has is for writing, too, from now on; and
 * on which lane, in which turn, the stay is used last, by such a batch. By the dispatching thread.
 */
void tutti_direct_count_use(const struct tutti_device_use *use);
void tutti_direct_note_write(struct tutti_device_use *use);
void tutti_direct_note_lane(const struct tutti_batch *batch, struct tutti_stay *stay, bool writes);

/* The batch is over, or will not begin: the device has less to do. */
void tutti_direct_leave(const struct tutti_batch *batch);

#endif
