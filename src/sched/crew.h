/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_CREW_H
#define TUTTI_CREW_H

#include "sched/batch.h"

/*
 * Where all devices are of one kind, work in home memory and execute in the call, as PoCL's basic
 * ones: nothing has to be brought, and a device is what calls it. Batches go past StarPU there,
 * which takes 50 to 70 µs for a task and its threads' waking: a thread of the crew, or of the
 * program that waits anyway, takes the oldest batch that may begin, and any device that is free.
 * Views stay (memory/stay.h), whose users begin in the order of dispatch, readers together.
 */

/* Is it such a machine, and do settings allow it? */
bool tutti_crew_serves(void);

/*
 * Takes the batch, and sees to its end; false if it is of another kind: it prints, or uses part of
 * a buffer. By the dispatching thread.
 */
bool tutti_crew_submit(struct tutti_batch *batch);

/*
 * Does the crew do it best, as no other thread need wake for it, and the host holds none of what it
 * uses? Not a transfer of what no device uses while all are kept long. By the dispatching thread.
 */
bool tutti_crew_would_take(const struct tutti_device_task *task);

/* For a thread that is about to wait for the event: executes what comes before it. */
void tutti_crew_help(cl_event event);

/*
 * For a thread that would rather execute a short kernel than enqueue it: executes a few that come
 * first, if none takes longer (µs). False: there were none.
 */
bool tutti_crew_assist(double longest);

/* The program wants to see its commands begin. */
void tutti_crew_hurry(void);

/* The process ends: drivers may be gone. */
void tutti_crew_stop(void);

#endif
