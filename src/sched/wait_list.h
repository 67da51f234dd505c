/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_WAIT_LIST_H
#define TUTTI_WAIT_LIST_H

#include "sched/queue.h"

struct tutti_command;

/* The events that the program gives a command to wait for. */
struct tutti_wait_list {
    cl_uint count;
    const cl_event *events;
};

/*
 * CL_INVALID_EVENT_WAIT_LIST, CL_INVALID_CONTEXT, as every clEnqueue* specifies (5.2.2 and on).
 */
cl_int tutti_wait_list_look(cl_context context, struct tutti_wait_list list);

static inline cl_int tutti_wait_list_check(cl_context context, struct tutti_wait_list list) {
    return list.count > 0 || list.events ? tutti_wait_list_look(context, list) : CL_SUCCESS;
}

/* Is all of it over, without an error? */
static inline bool tutti_wait_list_is_complete(struct tutti_wait_list list) {
    for (cl_uint i = 0; i < list.count; i++)
        if (tutti_event_status(list.events[i]) != CL_COMPLETE)
            return false;
    return true;
}

/*
 * Makes a command that is being enqueued wait for the events (5.11). Where StarPU executes it after
 * one of them anyway, it is dispatched without waiting for that. False when out of memory. With the
 * graph's lock held.
 */
bool tutti_wait_list_order(struct tutti_wait_list list, struct tutti_command *command);

/*
 * Does it have events of others than the queue that are not over? With the graph's lock held.
 */
bool tutti_wait_list_is_outside(struct tutti_wait_list list, cl_command_queue queue);

#endif
