/* SPDX-License-Identifier: MIT */
#ifndef EXAMPLES_DISTRIBUTE_H
#define EXAMPLES_DISTRIBUTE_H

#include "lanes.h"

/*
 * What a program does with its lanes. Over several lanes each function is called by the lane's
 * own thread, so it may use what belongs to that lane without a lock. NULL: nothing to do.
 */
struct work {
    void *user; /* handed to each function */

    /* Before the lane's first task. */
    void (*begin)(void *user, struct lane *lane);

    /*
     * Enqueues one task without waiting. *done receives the event of its last command, a
     * reference of which the caller takes over.
     */
    void (*enqueue)(void *user, struct lane *lane, size_t task, cl_event *done);

    /* The task's event has completed: unmap and release what the task alone needed. */
    void (*finish)(void *user, struct lane *lane, size_t task);

    /* After the lane's last task. */
    void (*end)(void *user, struct lane *lane);
};

/*
 * Runs tasks 0 to count - 1 on the lanes as lanes->distribution says, and returns when all queues
 * have finished. Counts each lane's tasks. Exits if a command failed.
 *
 * With several lanes, one thread drives each: drivers that execute in the enqueuing thread
 * (PoCL's "basic") would otherwise take turns, and no lane's submission delays another's. With
 * one lane there is no thread and no limit on what is enqueued: that is the plain OpenCL program.
 */
void distribute(const struct common_options *options, struct lanes *lanes, size_t count,
                const struct work *work);

#endif
