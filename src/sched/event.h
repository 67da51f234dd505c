/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_EVENT_H
#define TUTTI_EVENT_H

#include "context.h"

struct tutti_command;

/* What a dependant waits for: that the command of an event is … */
enum tutti_moment {
    TUTTI_DISPATCHED, /* given to StarPU or to the host's side */
    TUTTI_FINISHED,   /* over */
    TUTTI_PUBLISHED,  /* seen by the program to be over, and so are those before it in its queue */
    TUTTI_MOMENTS
};

/* "`dependant` waits for this event." */
struct tutti_edge {
    struct tutti_edge *next;
    cl_event dependant; /* retained */
    bool strict;        /* from a wait list: an error of this event fails the dependant */
    bool late;          /* what waits is not the dependant's dispatch, only its end */
};

struct tutti_event_callback {
    struct tutti_event_callback *next;
    struct tutti_job job;
    cl_event event; /* retained while the callback waits to be called */
    cl_int type;    /* CL_SUBMITTED, CL_RUNNING or CL_COMPLETE */
    cl_int status;  /* what to call it with */
    void(CL_CALLBACK *function)(cl_event, cl_int, void *);
    void *user_data;
};

/*
 * An event, and the node of its command in the graph. Two statuses: `reached` is what the command
 * did, `status` what the program sees, which follows the order of an in-order queue.
 * All but `status` and the constants is guarded by context->graph.lock.
 */
struct _cl_event {
    struct tutti_object object;
    cl_context context;
    cl_command_queue queue; /* retained, and with it the context; NULL: a user event, which
                               retains that itself */
    cl_command_type type;
    _Atomic cl_int status;
    atomic_uint waiters; /* threads that sleep until `status` is final */
    cl_int reached;
    bool profiled; /* its times are kept: the program has it, and its queue is with profiling */
    bool dispatched;
    bool published;      /* `status` is final and dependants were told */
    unsigned pending;    /* predecessors that its dispatch waits for */
    unsigned unresolved; /* those that only its end waits for */
    bool over;           /* its work is, with `outcome`, while some are unresolved */
    cl_int outcome;
    atomic_bool failed; /* one of the wait list ended with an error */
    bool broken;        /* its work failed, which is not told yet */
    cl_ulong earliest;  /* when the last of those that its end waits for ended */
    struct tutti_edge *dependants[TUTTI_MOMENTS];
    struct tutti_event_callback *callbacks; /* in the order of registration */
    cl_event previous, next;                /* in its queue, until it is published */
    cl_ulong number;                        /* constant; those before it there have lower ones */
    bool after_all;                         /* constant; it waits for all of them */
    cl_event previous_host, next_host;      /* in its queue, those that use the program's memory */
    /* Not 0: its command is, or was, on this queue of a device past StarPU (direct_end.h). */
    atomic_uint place;
    struct tutti_command *command;              /* until it is done */
    cl_ulong queued, submitted, started, ended; /* profiling, ns of the host's clock */
    cl_event real; /* constant; of a kernel in a row (row.h): the driver's event; NULL: of none */
    /* A blocking call runs its own command's job: no thread in between. */
    bool caller_runs;
    /* blocking_write.h */
    bool frees;            /* constant: who enqueued it waits for its memory alone, */
    _Atomic cl_int freed;  /* which the program may use again: how it ended; CL_QUEUED: not yet */
    bool uses_memory;      /* constant: of the program, and its queue is in-order */
    unsigned users_before; /* of `frees`: those that do, before it in the queue, and are not over */
    cl_event next_behind;  /* of `frees`, of the same queue, behind such ones */
    struct tutti_job *_Atomic job; /* the first one for a thread that waits; changed with a lock */
};

/* User events (clCreateUserEvent, 5.9). NULL when out of memory. */
cl_event tutti_event_create_user(cl_context context);

/*
 * An event for a command; `pending` is 1 until the command is in the graph. The graph has a
 * reference until it is published, the caller has one if it is going to wait (`caller_runs`), and
 * the program if it gets the event.
 */
cl_event tutti_event_create(cl_command_queue queue, cl_command_type type, bool caller_runs,
                            bool programs);

/*
 * For the program: the event of a command that the graph need not know, as it is over already, or
 * `real` (row.h) tells when it is. In an in-order queue there is no other one.
 */
cl_event tutti_event_create_outside(cl_command_queue queue, cl_command_type type);

/*
 * The ends in an in-order queue are told in its order, though devices' clocks differ, and an unmap
 * that moves nothing may be beside the next command. With the graph's lock held.
 */
void tutti_event_order_end(cl_event event);

/* Can the program see the event? If not, only its end matters. */
static inline bool tutti_event_is_seen(const struct _cl_event *event) {
    return atomic_load_explicit(&event->object.user_refs, memory_order_acquire) > 0;
}

/* The command reached CL_SUBMITTED or CL_RUNNING. With the graph's lock held. */
void tutti_event_advance(cl_event event, cl_int status);

/*
 * Commands of one context are over, in this order: CL_COMPLETE or negative errors. Publishes them
 * and what becomes publishable, and dispatches commands that waited for them. The caller must hold
 * references.
 */
void tutti_event_finish(unsigned count, const cl_event *events, const cl_int *statuses);

/*
 * Makes `dependant` wait for that moment of `event`; false when out of memory. With the graph's
 * lock held. An event that is past it adds no edge; with an error it fails a strict dependant.
 */
bool tutti_event_add_dependant(cl_event event, cl_event dependant, enum tutti_moment moment,
                               bool strict);

/*
 * For a wait list's event that the dependant comes after anyway, by StarPU's order: only the
 * dependant's end waits for it.
 */
bool tutti_event_add_late_dependant(cl_event event, cl_event dependant);

/*
 * The work of the event's command failed: those that it was done before, by StarPU's order, must
 * not do theirs, though the end is not told yet. Before StarPU may begin them.
 */
void tutti_event_break(cl_event event);

/*
 * The command is being dispatched: dispatches those that waited for that after it. With the lock
 * held; returns edges to be given to tutti_event_free_edges once it is open.
 */
struct tutti_edge *tutti_event_dispatched(cl_event event);
void tutti_event_free_edges(struct tutti_edge *edges);

/* Threads that wait for it look again. */
void tutti_event_wake(cl_event event);

/* Waits until the event is final; returns its status. Does jobs that it waits for meanwhile. */
cl_int tutti_event_wait(cl_event event);

/* The same for who enqueued a command that `frees` the program's memory: until it has. */
cl_int tutti_event_wait_for_memory(cl_event event);

/* For the program, which looks at the status: what is over by now is published first. */
cl_int tutti_event_look(cl_event event);

/* Is it the other one, or does it wait for that, as far as is seen without the graph? */
bool tutti_event_waits_for(cl_event event, cl_event other);

/* For a caller that waits (`caller_runs`): here is the job. */
void tutti_event_give_job(cl_event event, struct tutti_job *job);

/*
 * Gives the job, of the event's command, to a thread that sleeps until a command behind it in its
 * queue is over; false: none does.
 */
bool tutti_event_hand_over_job(cl_event event, struct tutti_job *job);

/* clSetEventCallback; CL_OUT_OF_HOST_MEMORY. */
cl_int tutti_event_add_callback(cl_event event, cl_int type,
                                void(CL_CALLBACK *function)(cl_event, cl_int, void *),
                                void *user_data);

/* Of a kernel in a row: CL_SUBMITTED until somebody waited or looked. */
static inline cl_int tutti_event_status(cl_event event) {
    return atomic_load_explicit(&event->status, memory_order_acquire);
}

#endif
