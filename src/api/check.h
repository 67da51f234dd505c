/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_CHECK_H
#define TUTTI_CHECK_H

#include "memory/mem.h"
#include "sched/command.h"

/* Checks that the clEnqueue* functions share; each returns what the specification names. */

/* A queue and a buffer of one context. */
cl_int tutti_check_buffer(cl_command_queue queue, cl_mem buffer);

/* [offset, offset + size) lies in the buffer and is not empty. */
cl_int tutti_check_range(cl_mem buffer, size_t offset, size_t size);

/*
 * A box of the Rect functions: fills in pitches that are 0 and checks them. `limit` is the size of
 * the memory, SIZE_MAX where it is not known.
 */
cl_int tutti_check_rect(struct tutti_place *place, const size_t origin[3], size_t row_pitch,
                        size_t slice_pitch, const size_t region[3], size_t limit);

/* May the host read, or write, the object (CL_MEM_HOST_*)? CL_INVALID_OPERATION if not. */
cl_int tutti_check_host_read(cl_mem mem);
cl_int tutti_check_host_write(cl_mem mem);

/* Takes a new command to the queue; NULL means that it could not be made. */
cl_int tutti_enqueue(struct tutti_command *command, cl_command_queue queue, cl_command_type type,
                     struct tutti_wait_list list, bool blocking, cl_event *event);

#endif
