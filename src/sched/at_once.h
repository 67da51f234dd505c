/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_AT_ONCE_H
#define TUTTI_AT_ONCE_H

#include "sched/invocation.h"
#include "sched/wait_list.h"

/*
 * Where all devices execute kernels in the call that enqueues them, in home memory, as PoCL's basic
 * ones do, a very short one that need not wait for anything is executed in clEnqueueNDRangeKernel
 * itself, while nothing else is under way: what all else costs would be more than what another
 * device, or thread, could take off the caller. So is a longer one if there is no other device, or
 * the program has waited for each of the last ones. Of what the crew still has to do, and is as
 * short, the call executes some first. One device that executes by itself is given such kernels in
 * a row (row.h), and a GPU behind the command before it (append.h). The rest of the arguments are
 * checked. False: it is to be enqueued the usual way, which also has the answer to any error, with
 * `row` for tutti_command's `in_row`. Else `event` (may be NULL) is set, to one of
 * tutti_event_create_outside.
 */
bool tutti_launch_at_once(cl_command_queue queue, cl_kernel kernel, const struct tutti_range *range,
                          cl_command_type type, struct tutti_wait_list list, cl_event *event,
                          bool *row);

#endif
