/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_COPY_TASK_H
#define TUTTI_COPY_TASK_H

#include "memory/mem.h"
#include "sched/command.h"

/*
 * A copy of the bytes of `source` from `offset` on over all of the buffer `target`, as a task of
 * the device that holds the source: StarPU finds out which. `devices` are bits of those that may.
 */
struct tutti_command *tutti_copy_task_create(cl_mem source, size_t offset, cl_mem target,
                                             unsigned devices);

/* Bits of the devices that should do it; 0: it is better done by the host's side. */
unsigned tutti_copy_task_devices(cl_mem source, cl_mem target);

#endif
