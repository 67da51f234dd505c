/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_COMMAND_H
#define TUTTI_COMMAND_H

#include "sched/hold.h"
#include "sched/queue.h"
#include "sched/wait_list.h"

struct tutti_append_move;

/*
 * A command between its enqueue and its end. Kinds embed this: kernel launches (launch.c),
 * transfers (transfer_command.c), commands without work (markers, barriers).
 */
struct tutti_command {
    struct tutti_ready ready;
    struct tutti_job job;
    cl_event event;      /* retained until the command is done */
    unsigned long order; /* of the program's commands, whatever queue they are in: from 1 on */

    /*
     * All that the graph orders is complete. Starts the work and, now or later, ends in one
     * tutti_command_done. Called by one thread of the context at a time, in dispatch order.
     */
    void (*start)(struct tutti_command *command);
    void (*destroy)(struct tutti_command *command); /* frees it */
    /*
     * NULL: it never is done so. Can it be where nothing is before it, without waiting for
     * anything, and soon? Begins that, and does it, or returns an error. All by the dispatching
     * thread; but if it is `apart` once begun, others may dispatch while it is done.
     */
    bool (*is_done_at_once)(const struct tutti_command *command, bool blocking);
    cl_int (*begin_at_once)(struct tutti_command *command);
    cl_int (*do_at_once)(struct tutti_command *command);
    bool apart;
    /*
     * NULL: it is never a part of the command before it (append.h). Of a device task: says what it
     * moves; false: no one command of a device can. By the dispatching thread.
     */
    bool (*moves)(struct tutti_command *command, struct tutti_append_move *move);

    /* Its use number i of what orders it in its queue; false past the last. NULL: none. */
    bool (*use)(const struct tutti_command *command, unsigned i, struct tutti_resource_use *use);
    bool regardless;    /* does its work even if a command that it waits for failed */
    bool keeps_storage; /* overwrites in place: the order of its wait list depends on that */
    bool joins;         /* a device task: may be dispatched while others are collected (batch.h) */
    bool awaits;        /* something of its wait list to be over, before it is dispatched */
    bool in_row;        /* a kernel that may be behind others of which no command knows (row.h) */
    bool held;
    struct tutti_hold *holds; /* [hold_count], see hold.c */
    unsigned hold_count;

    /* What orders it in its queue besides these. */
    bool waits_for_all; /* marker or barrier without a wait list */
    bool fence;         /* later commands of the queue wait for it */
    const char *host;   /* memory of the program that it reads or writes; NULL: none */
    size_t host_size;
    bool host_written;
    /*
     * Not 0: the place (direct_end.h) of those before it that use the memory that it writes. If it
     * does not come behind them there, it waits for them as it starts.
     */
    unsigned follows;
};

/*
 * Gives the command, which the caller filled, to the queue; the command belongs to the graph from
 * then on. With `blocking`, waits for its end and returns its error, if any. `event` (may be
 * NULL) receives a reference. On failure before the command was taken, it is destroyed:
 * CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES (after fork, at exit).
 */
cl_int tutti_command_enqueue(struct tutti_command *command, cl_command_queue queue,
                             cl_command_type type, struct tutti_wait_list list, bool blocking,
                             cl_event *event);

/*
 * Is the program's memory that the command reads, if it does, known to be what none before it in
 * the in-order queue writes? With the graph's lock held.
 */
bool tutti_command_may_read_host(const struct tutti_command *command, cl_command_queue queue);

/* The work begins: CL_RUNNING. */
void tutti_command_running(struct tutti_command *command);

#define TUTTI_COMMANDS_AT_ONCE 128

/*
 * The work is over (CL_COMPLETE or an error); destroys the command. The same for up to
 * TUTTI_COMMANDS_AT_ONCE commands of one context, in this order.
 */
void tutti_command_done(struct tutti_command *command, cl_int status);
void tutti_commands_done(unsigned count, struct tutti_command **commands, const cl_int *statuses);

/*
 * Runs `command->job` on the host: in a thread that waits for the command, or, a native kernel, for
 * a later one of its queue, if there is one; else in the pool.
 */
void tutti_command_run_on_host(struct tutti_command *command);

/* Does this thread let go what a command used, whose end it has still to tell? */
bool tutti_command_is_destroyed_here(void);

/* A command without work, for markers, barriers and waits. NULL when out of memory. */
struct tutti_command *tutti_command_create_empty(void);

#endif
