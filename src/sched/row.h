/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_ROW_H
#define TUTTI_ROW_H

#include "sched/invocation.h"
#include "sched/queue.h"
#include "sched/wait_list.h"

/*
 * Kernels in rows, for the one device that executes by itself (tutti_direct_streams). Short ones
 * go to a queue of the device's in the call, behind whatever is there: no command stands for them,
 * and the queue keeps their order. If the program wants an event, the driver's tells how far it is,
 * so nothing of the same queue may be before it that its own event has yet to tell. Whatever else
 * uses memory, or tells the program that they are over, settles them first: it waits for the
 * device, which is never far behind. For the graph they are over, therefore. A few kernels in a row
 * go the usual way, so that programs that do something else in between do not wait each time.
 *
 * While no command is under way each of the program's queues has a row of its own, so that the
 * device executes several kernels at a time: between them nothing is ordered but by events. Else
 * all of them are in the first queue of the device, as the commands are.
 */

/* Is there just that device? Once StarPU has started. */
bool tutti_row_serves(void);

/*
 * The program wants such a kernel enqueued. Is it one of many in a row? Counts it: one of another
 * kind begins them anew (tutti_row_break).
 */
bool tutti_row_goes_on(cl_command_queue queue);

/*
 * Such a kernel can't be in a row, as commands are under way. Waits until they are over, if many
 * came as it does: else each would become a command as long as others do. False: it was not worth
 * it, or in vain; the next time takes more of them then. Without locks.
 */
bool tutti_row_await_others(cl_command_queue queue);

/* µs: longer kernels are commands. */
double tutti_row_longest(void);

/*
 * Has it to wait for what has yet to be given to a device, for as long as the program likes? Else,
 * are only kernels in rows, or of the device's first queue, before it? With the graph's lock.
 */
bool tutti_row_is_held(const struct _cl_command_queue *queue, struct tutti_wait_list list);
bool tutti_row_may_follow(void);

/*
 * If so: are those published that it would have to wait for, as its wait list has them, or its own
 * `event` may not tell its end before theirs? With the graph's lock.
 */
bool tutti_row_is_published(const struct _cl_command_queue *queue, struct tutti_wait_list list,
                            bool event);

/* Waits for that, the queue's last one or NULL, which does not take long. Without locks. */
void tutti_row_publish(cl_event last, struct tutti_wait_list list);

/*
 * Around an attempt to give the device such a kernel: several threads do so one after the other,
 * where they would find each other dispatching. Before the kernel's lock and the graph's.
 */
void tutti_row_begin_turn(void);
void tutti_row_end_turn(void);

/* What else is known of one, as the program wants it enqueued. */
struct tutti_row_kernel {
    cl_command_queue queue;
    struct tutti_wait_list list;
    struct tutti_model *model;
    unsigned able;
    cl_event event; /* gets the driver's, and is kept until its end was seen; may be NULL */
};

/* Gives it to the device. Returns the driver's error. As tutti_invocation_enqueue. */
cl_int tutti_row_enqueue(const struct tutti_invocation *call, struct tutti_real_device *device,
                         const struct tutti_storage *const *storage,
                         const struct tutti_row_kernel *kernel);

/*
 * For an event with `real`: its status, for the program that looks; waits for its end, and returns
 * how it ended; nobody has the event any more.
 */
cl_int tutti_row_look(cl_event event);
cl_int tutti_row_wait(cl_event event);
void tutti_row_forget(cl_event event);

/* Waits for those among them: a command that must not be done if one failed enters the graph. */
void tutti_row_wait_for_list(struct tutti_wait_list list);

/* Waits, after some of the queue, until those before them are over. Without locks. */
void tutti_row_keep_close(const struct _cl_command_queue *queue);

/* Another command is about to start: settles them, and the next few kernels are no row. */
void tutti_row_break(struct tutti_graph *graph);

/*
 * Such a kernel is a command all the same, and about to start: its place is behind those of the
 * device's first queue, and those that have queues of their own are settled.
 */
void tutti_row_join(void);

/* Is one not over, as far as is known? */
bool tutti_row_is_under_way(void);

/* Waits until all are over. In any thread, without locks but the runtime's. */
void tutti_row_settle(void);

/* The same for those of the program's queue. */
void tutti_row_finish(const struct _cl_command_queue *queue);

/* The program wants to see them begin. */
void tutti_row_flush(void);

#endif
