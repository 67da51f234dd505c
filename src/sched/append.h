/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_APPEND_H
#define TUTTI_APPEND_H

#include "sched/batch.h"
#include "sched/invocation.h"
#include "sched/queue.h"

/*
 * Short kernels of one queue behind each other, on a GPU: what a command costs, an event, its place
 * in the graph, what it is told at its end, is half of what the driver takes to launch one. So one
 * whose event nobody wants is given to the driver in the call, as a part of the command before it:
 * the batch of that is over when the kernel is. It has the batch's stays, which it may add to; what
 * else wants the memory waits for those. A longer one that shares the GPU with others is given so,
 * too, if it comes after the batch anyway. Each few kernels one is a command again, which is
 * measured if need be, and whose end shows how far the device is. Small writes, fills and copies
 * among them go the same way.
 */

/* The batch went past StarPU: may it be appended to, later? By the dispatching thread. */
void tutti_append_note(struct tutti_batch *batch);

/* Nothing more is appended to what was noted of the queue. By that thread, or the queue's end. */
void tutti_append_forget(cl_command_queue queue);

/*
 * The program wants the kernel enqueued, with nothing to wait for, and no event. False: it is to be
 * a command. The kernel does not print; the rest of `call` is filled in here.
 */
bool tutti_append_kernel(cl_command_queue queue, struct tutti_invocation *call);

/* What a command other than a kernel would do to a device's copies of buffers. */
struct tutti_append_move {
    cl_mem mem[2];     /* the last one is written; one before it read */
    unsigned count;    /* of those */
    bool whole;        /* every byte is written */
    double time;       /* µs */
    const char *bytes; /* of the program's memory, which are copied in the call; NULL: none */
    size_t size;       /* of those */
    /*
     * Enqueues a write of the copy, which is there until that is over. Where there are no bytes the
     * task's own `enqueue` serves, without an event.
     */
    cl_int (*write)(const struct tutti_device_task *task, struct tutti_real_device *device,
                    cl_command_queue queue, const struct tutti_storage *to, const char *bytes);
};

/*
 * The same for a command that `moves` (command.h): a fill, a copy, or a small write, whose bytes
 * are copied in the call. The command stays the caller's.
 */
bool tutti_append_transfer(cl_command_queue queue, struct tutti_device_task *task);

#endif
