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
 * After that: where its data is. It is not locked: StarPU may move some meanwhile. The task refers
 * to `data`.
 */
void tutti_policy_locate(const struct tutti_batch *batch, struct tutti_plan_task *task,
                         struct tutti_plan_data data[TUTTI_MOST_DATA]);

#endif
