/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_DIRECT_END_H
#define TUTTI_DIRECT_END_H

#include "sched/batch.h"

/*
 * The end of what went past StarPU (direct.h): a thread that waits for one sees to its end itself;
 * a host thread looks after the others. On each device they end in the order of their execution.
 * Those that wait, look, or want to see something begin come by here to the crew (crew.h), too.
 */

/* Gives the batch to its device, which has all that it needs; a synchronous one executes it. */
void tutti_direct_start(struct tutti_batch *batch);

/* From now on the batch is completed here. It was started, unless its device is synchronous. */
void tutti_direct_enter(struct tutti_batch *batch);

/*
 * Waits for the oldest marked batch of the device, and completes it and what is before it. False:
 * there is none.
 */
bool tutti_direct_await_marked(struct tutti_real_device *device);

/*
 * The place of a batch that was started: which queue of which device keeps it in order with others
 * there; not 0. And which device's and which lane of it that is.
 */
unsigned tutti_direct_place(const struct tutti_batch *batch);
unsigned tutti_direct_device_of(unsigned place);
unsigned tutti_direct_lane_of(unsigned place);

/*
 * For who may append to a batch (append.h): is it still to be completed, and is its end not to be
 * seen while others are behind it? Then nobody completes it, nor others of its lane, until
 * tutti_direct_close. `longer`: what told its end is given up, as that is behind that of all others
 * of its queue now, so many µs later. By the dispatching thread.
 */
bool tutti_direct_reopen(struct tutti_batch *batch);
void tutti_direct_close(struct tutti_batch *batch, bool longer, double time);

/* Waits for all that is at the place now; 0: nothing. By the dispatching thread. */
void tutti_direct_drain(unsigned place);

/* Does the device execute such a batch, or may it do so? */
bool tutti_direct_is_at_work(const struct tutti_real_device *device);

/* Something waits for the end of a direct batch, though no thread does. */
void tutti_direct_hurry(void);

/* For a thread that is about to wait for the event: completes what it waits for, as far as here. */
void tutti_direct_help(cl_event event);

/*
 * A thread sleeps from now on until an event is over, or does so no more: what comes past StarPU
 * meanwhile is looked after as if something waited for it.
 */
void tutti_direct_note_sleeper(bool sleeps);

/* Does any thread sleep so? */
bool tutti_direct_has_sleepers(void);

/* For who only looks at the event's status: completes what is over. */
void tutti_direct_look(cl_event event);

/* The program wants to see its commands begin, or others are about to come behind them. */
void tutti_direct_flush(void);
void tutti_direct_mark(const struct tutti_batch *others);

/* The process ends: drivers may be gone. */
void tutti_direct_stop(void);

#endif
