/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_LAUNCH_H
#define TUTTI_LAUNCH_H

#include "sched/device_task.h"
#include "virtual_device/kernel.h"

/* The index space of clEnqueueNDRangeKernel (5.8). */
struct tutti_range {
    cl_uint dimensions;
    size_t offset[3], global[3], local[3];
    bool local_given;
};

/*
 * A kernel launch as a command, ready to be enqueued. Takes the arguments over, also on failure
 * (NULL: out of memory); retains the kernel.
 */
struct tutti_command *tutti_launch_create(cl_kernel kernel, struct tutti_arguments *arguments,
                                          const struct tutti_range *range);

#endif
