/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_EXECUTION_H
#define TUTTI_EXECUTION_H

#include "sched/batch.h"

/*
 * What becomes of a batch on a real device, whoever brought its data there: StarPU (device_task.c)
 * or nobody, as it stays there (direct.c).
 */

/* Which of its commands are measured on its device; true: some are. */
bool tutti_execution_choose_measured(struct tutti_batch *batch);

/*
 * That, and the lane that it leaves to a batch that comes after nothing on its device. The start
 * enters that, if the batch was not given one before.
 */
unsigned tutti_execution_choose_lane(struct tutti_batch *batch);

/* How the end of a batch is seen. */
enum tutti_ending {
    TUTTI_ENDS_HERE,  /* tutti_execution_start returns after it */
    TUTTI_ENDS_LATER, /* with the event `batch->end`; NULL: it has ended, or failed, already */
    TUTTI_ENDS_UNSEEN /* the next three functions tell */
};

/*
 * Enqueues all commands of the batch on its device, where `use[].mem` is each view's memory; NULL:
 * there is none for it.
 */
void tutti_execution_start(struct tutti_batch *batch, enum tutti_ending ending);

/*
 * For a batch that ends unseen, as an event costs drivers more than a wait for all of the queue.
 * What is asked for its end, and not waited for, gets a marker; so do batches before others that
 * may take long come to the queue. With one lock for all of them. Who flushes or looks does not
 * wait for another thread's call with the queue: it looks again later.
 */
void tutti_execution_flush(struct tutti_batch *batch);
void tutti_execution_mark(struct tutti_batch *batch);
bool tutti_execution_is_over(struct tutti_batch *batch);
/*
 * By who took the batch, so that no other thread asks for it. True: all is over that was on its
 * queue when this was called.
 */
bool tutti_execution_wait(struct tutti_batch *batch);

/* More was enqueued behind it, as a part of it: what told its end tells that no more. */
void tutti_execution_forget_end(struct tutti_batch *batch);

/* The device is done with the batch, or about to be: takes results and times. */
void tutti_execution_collect(struct tutti_batch *batch);

/* Ends the batch and all its commands. It, and the views, may be gone then. */
void tutti_execution_end(struct tutti_batch *batch);

/* The same for what was never started. */
void tutti_execution_fail(struct tutti_batch *batch, cl_int error);

#endif
