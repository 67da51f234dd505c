/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_AHEAD_H
#define TUTTI_AHEAD_H

#include "sched/batch.h"

/*
 * How much of what went past StarPU (direct.h) each device has still to do, and how far ahead of it
 * the program may be. For the dispatching thread, where nothing else is said.
 */

/*
 * Has it time, on its first lane, for so many commands, of which this is the first? `behind`: they
 * would come behind longer kernels anyway, or behind what else there is.
 */
bool tutti_ahead_has_time(const struct tutti_real_device *device,
                          const struct tutti_device_task *first, unsigned length, bool behind);

/*
 * Have `count` lanes time for so many commands, which may execute on those devices (bits)?
 * `behind`: they come after others there, so that no other device could begin them sooner.
 */
bool tutti_ahead_has_lane(const struct tutti_real_device *device, unsigned count, unsigned length,
                          unsigned devices, bool behind);

/*
 * The device of the batch has that to do, too; says if its end is to be seen while others are
 * behind it (`marked`). True: of longer kernels at home there was one before.
 */
bool tutti_ahead_enter(struct tutti_batch *batch);
/* And not any more. By any thread. */
void tutti_ahead_leave(const struct tutti_batch *batch);

/* Has the batch's device time for a short kernel behind what it has, in that batch? */
bool tutti_ahead_may_append(const struct tutti_batch *batch);
/* The batch has one more, which takes so many µs. */
void tutti_ahead_append(struct tutti_batch *batch, double time);

/* One of its batches lacks a stay, or has it now, by any thread: nothing may pass it. */
void tutti_ahead_delay(const struct tutti_real_device *device, bool begins);

/* How many commands it has to do; and does any device at home have longer kernels? */
unsigned tutti_ahead_commands(const struct tutti_real_device *device);
bool tutti_ahead_lone_at_home(void);

/* Does it have all that is under way, each command short? */
bool tutti_ahead_is_all(const struct tutti_real_device *device);

/* How many µs it has to do that count for StarPU's tasks. By any thread. */
double tutti_ahead_busy(const struct tutti_real_device *device);

/*
 * For the program's thread, behind an enqueue: waits, as the driver would, where a GPU has more
 * short commands to do than are worth it to run ahead.
 */
void tutti_ahead_keep_close(void);

#endif
