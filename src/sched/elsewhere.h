/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_ELSEWHERE_H
#define TUTTI_ELSEWHERE_H

#include "sched/batch.h"

/*
 * A device was chosen, and its driver refuses memory that StarPU believes is there (memory/room.h),
 * as another process has it. Then another device that can executes the batch, with copies of its
 * own for as long as that takes, and the caller waits: what StarPU takes for the first device's
 * copies is in home memory where that device has none.
 */

/* Lacks its device some of the memory? */
bool tutti_elsewhere_is_wanted(const struct tutti_batch *batch);

/*
 * For such a batch: false if its device has got the memory by now, or no other device can execute
 * it. Else the tasks have their results. By who has acquired what the batch uses, when all is over
 * on the device that it comes after; without the device's locks.
 */
bool tutti_elsewhere_execute(struct tutti_batch *batch);

#endif
