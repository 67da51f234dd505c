/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_LAUNCH_H
#define TUTTI_LAUNCH_H

#include "sched/device_task.h"
#include "sched/invocation.h"

/*
 * A kernel launch as a command, ready to be enqueued. Takes the arguments over, also on failure
 * (NULL: out of memory); retains the kernel.
 */
struct tutti_command *tutti_launch_create(cl_kernel kernel, struct tutti_arguments *arguments,
                                          const struct tutti_range *range);

#endif
