/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_QUEUE_H
#define TUTTI_QUEUE_H

#include "sched/event.h"
#include "virtual_device/device.h"

struct _cl_command_queue {
    struct tutti_object object;
    cl_context context; /* retained */
    cl_command_queue_properties properties;
    cl_queue_properties *property_list; /* as given to …WithProperties, the final 0 included */
    size_t property_bytes;
    cl_uint size; /* of a device queue; we have none: 0 */
    unsigned row; /* its number in the process: where its short kernels go (row.h) */
    bool strict;  /* TUTTI_ORDER=strict: each command waits for the one before it */
    /* Guarded by context->graph.lock. */
    cl_event first, last;   /* commands not yet published, in order; each holds a reference */
    cl_ulong numbers;       /* so many commands ever were there, each of which has its number */
    cl_event last_host;     /* in-order: the last one not done that uses the program's memory */
    unsigned held;          /* in-order: how many commands are held (hold.h) */
    atomic_uint host_waits; /* in-order: not 0: lately some waited for such a one's memory */
    unsigned memory_users;  /* in-order: how many commands use the program's memory, not over yet */
    cl_event behind_users;  /* in-order: blocking writes behind such ones */
    cl_event outsider;      /* in-order: the last held one that waits for others than its queue's */
    cl_event fence;         /* later commands wait for it: barrier, native kernel; retained */
    cl_ulong ended;    /* in-order: when the last one that was profiled did, published ones only */
    atomic_bool holds; /* is there a `first`? Changed with the lock */
    /* The last of its commands that may be appended to (append.h), if it still is `last`; */
    _Atomic(cl_event) latest_event;
    /* and, for the dispatching thread, what was noted of it and of those right before it. */
    struct tutti_latest {
        cl_ulong number;                              /* of that event, and */
        bool seen;                                    /* can the program see it? */
        unsigned device;                              /* where its batch is */
        struct tutti_batch *batch[TUTTI_MAX_DEVICES]; /* of each device the last one; references */
    } latest;
    _Atomic cl_int error; /* of a command of this queue since the last clFinish */
    cl_event sleeper; /* in-order: one on which a thread sleeps that has nothing to do (event.c) */
};

static inline bool tutti_queue_in_order(const struct _cl_command_queue *queue) {
    return !(queue->properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
}

/* Is there nothing in it for whose sake a later command waits to be dispatched? Lock held. */
bool tutti_queue_is_clear(const struct _cl_command_queue *queue);

/* NULL when out of memory; takes over `property_list`. */
cl_command_queue tutti_queue_create(cl_context context, cl_command_queue_properties properties,
                                    cl_queue_properties *property_list, size_t property_bytes);

/* In-order: is a command that uses the program's memory not done, for which such others wait? */
bool tutti_queue_uses_host(cl_command_queue queue);

/*
 * Waits for all commands given so far. Returns CL_SUCCESS, or once what a command of the queue
 * failed with on its own (not through its wait list); CL_OUT_OF_HOST_MEMORY.
 */
cl_int tutti_queue_finish(cl_command_queue queue);

#endif
