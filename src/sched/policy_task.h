/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_POLICY_TASK_H
#define TUTTI_POLICY_TASK_H

#include "sched/batch.h"
#include "sched/policy_choose.h"

#define TUTTI_MOST_DATA 64 /* of one task that are looked at */

/* What the model (NULL: nothing is known) says of a kernel on the devices of `able`. */
void tutti_policy_expect_kernel(const struct tutti_model *model, unsigned able,
                                struct tutti_plan_task *task);

/* Which devices may execute the batch, and what the models say of it there. */
void tutti_policy_expect(const struct tutti_batch *batch, struct tutti_plan_task *task);

/*
 * The batch is in the device's line, where so much of its time is for first launches of kernels
 * (first_launch.h): those behind it there need none. It is in no other line any more.
 */
void tutti_policy_delay(struct tutti_batch *batch, unsigned device, double delay);

/* The batch was planned where it takes longer than it would on a device that has a delay. */
void tutti_policy_miss(const struct tutti_batch *batch, const struct tutti_plan *plan, double now);

/*
 * After that: where its data is, which for what only moves bytes leaves the devices that have them.
 * It is not locked: StarPU may move some meanwhile. The task refers to `data`.
 */
void tutti_policy_locate(const struct tutti_batch *batch, struct tutti_plan_task *task,
                         struct tutti_plan_data data[TUTTI_MOST_DATA]);

#endif
