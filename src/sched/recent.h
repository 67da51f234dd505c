/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_RECENT_H
#define TUTTI_RECENT_H

#include "sched/batch.h"

/*
 * The batches that were submitted last in a context, which others may be collected behind. By the
 * dispatching thread.
 */
void tutti_recent_note(struct tutti_batch *batch);

/*
 * The oldest of as many recent batches as keep the devices at work, which are those where they are
 * `likely` to be (batch.h): its end leaves one of them with little to do. NULL: there are fewer.
 */
struct tutti_batch *tutti_recent_ahead(struct tutti_graph *graph, unsigned likely, unsigned count);

/* The graph goes. */
void tutti_recent_forget(struct tutti_graph *graph);

#endif
