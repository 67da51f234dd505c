/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_CHECK_H
#define TUTTI_CHECK_H

#include "memory/mem.h"
#include "sched/command.h"

/* Leaves the function with the error of a check. */
#define RETURN_IF(expression)                                                                      \
    do {                                                                                           \
        cl_int return_if_error = (expression);                                                     \
        if (return_if_error != CL_SUCCESS)                                                         \
            return return_if_error;                                                                \
    } while (0)

/* Checks that entry points share; each returns what the specification names. */

/* What cl_mem_flags are made of (5.3.1, table of memory flags); at most one of each first two. */
#define TUTTI_ACCESS_FLAGS (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY)
#define TUTTI_HOST_ACCESS_FLAGS                                                                    \
    (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS)
#define TUTTI_HOST_PTR_FLAGS (CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR)

/* CL_INVALID_VALUE when the flags exclude each other or are unknown. */
cl_int tutti_check_mem_flags(cl_mem_flags flags);

/* Complete flags of a part of a memory object: what they don't say is the whole's. 0: conflict. */
cl_mem_flags tutti_inherit_mem_flags(cl_mem_flags whole, cl_mem_flags flags);

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

/* A queue and an image of one context. */
cl_int tutti_check_image(cl_command_queue queue, cl_mem image);

/*
 * `origin` and `region`, in pixels, name a box in the image that is not empty. Fills in place and
 * region in bytes.
 */
cl_int tutti_check_image_box(cl_mem image, const size_t *origin, const size_t *region,
                             struct tutti_place *place, struct tutti_region *box);

/* May the host read, or write, the object (CL_MEM_HOST_*)? CL_INVALID_OPERATION if not. */
cl_int tutti_check_host_read(cl_mem mem);
cl_int tutti_check_host_write(cl_mem mem);

/* Takes a new command to the queue; NULL means that it could not be made. */
cl_int tutti_enqueue(struct tutti_command *command, cl_command_queue queue, cl_command_type type,
                     struct tutti_wait_list list, bool blocking, cl_event *event);

#endif
