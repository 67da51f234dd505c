/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_BLOCKING_WRITE_H
#define TUTTI_BLOCKING_WRITE_H

#include "sched/event.h"

/*
 * A blocking write returns once its memory may be used again (5.2.2), in an in-order queue as well:
 * kernels before it need not be over. But what else there uses the program's memory, reads, other
 * writes, maps, native kernels, must be: programs make the last one of several calls block and take
 * all for done, as the drivers of GPUs, and PoCL, wait for the queue. For the same reason one whose
 * times the program wants returns when it is over.
 */

static inline bool tutti_is_write(cl_command_type type) {
    return type == CL_COMMAND_WRITE_BUFFER || type == CL_COMMAND_WRITE_BUFFER_RECT ||
           type == CL_COMMAND_WRITE_IMAGE;
}

/* The event has entered its in-order queue, has its number there. Lock held, as for the others. */
void tutti_memory_user_enter(cl_event event);

/* One that `uses_memory` is over. */
void tutti_memory_user_leave(cl_event event);

/* Its command is over, which can't be shown yet: if it `frees`, its caller may return now. */
void tutti_blocking_write_free(cl_event event);

#endif
