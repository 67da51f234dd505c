/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_GRAPH_H
#define TUTTI_GRAPH_H

#include "object.h"
#include "sched/pool.h"

#include <pthread.h>

struct tutti_batch;
#define TUTTI_RECENT_BATCHES 16

/*
 * Our own half of the dependency graph: what StarPU can't order. Events of wait lists, user
 * events, barriers, queue order that the host can observe. A command whose predecessors are not
 * all complete is held here; StarPU gets it once it can make progress without the program's help,
 * and orders it by the memory objects that it uses.
 *
 * One graph per context, as wait lists never cross contexts.
 */
struct tutti_graph {
    pthread_mutex_t lock; /* guards all edges, queues' lists and publication in the context */
    struct tutti_ready *first, **last; /* may be dispatched, in this order */
    bool dispatching; /* one thread at a time dispatches, so that the order holds */
    bool left;        /* that one has gone: who comes next dispatches, */
    bool rest_given;  /* or a thread of the pool, which has this to do: */
    struct tutti_job rest;
    atomic_uint in_row;         /* kernels without an event since another command began (row.h) */
    atomic_uint before_waiting; /* so many until one of them waits for others to be over */
    atomic_bool waited;         /* the program has, since it enqueued a kernel (at_once.c), */
    atomic_int lone;            /* after each of so many; below 0: until that counts again */
    /* For the dispatching thread: what it has yet to give to StarPU (batch.h). */
    struct tutti_batch *open;
    unsigned open_count;
    /* Of short kernels, submitted, the last one first: references, or NULL. */
    struct tutti_batch *recent[TUTTI_RECENT_BATCHES];
};

/* Something to do in the order of dispatch: a command, or housekeeping of memory objects. */
struct tutti_ready {
    struct tutti_ready *next;
    void (*dispatch)(struct tutti_ready *ready); /* called with the lock held; opens it */
};

void tutti_graph_init(struct tutti_graph *graph);
void tutti_graph_destroy(struct tutti_graph *graph);

/* The program waits for what it has enqueued, or its results: a hint, by any thread. */
static inline void tutti_graph_note_wait(struct tutti_graph *graph) {
    atomic_store_explicit(&graph->waited, true, memory_order_relaxed);
}

/*
 * Calls the function between two dispatches, and returns after it. Not for StarPU's threads: the
 * dispatching thread may be waiting for them.
 */
void tutti_graph_call(struct tutti_graph *graph, void (*function)(void *), void *argument);

/*
 * For callers that hold `lock`: append something; dispatch all that is ready, unless another thread
 * does, and open the lock. A thread of the pool that has got its next job meanwhile leaves the rest
 * to others: that job may be what all wait for.
 */
void tutti_graph_append(struct tutti_graph *graph, struct tutti_ready *ready);

/*
 * The caller becomes the dispatching thread, if nothing waits for being dispatched, nor collects
 * (batch.h). It ends that by clearing `dispatching` and calling tutti_graph_run_and_unlock. With
 * the lock held, both times.
 */
static inline bool tutti_graph_begin(struct tutti_graph *graph) {
    if (graph->dispatching || graph->first || graph->open)
        return false;
    graph->dispatching = true;
    return true;
}

void tutti_graph_run_and_unlock(struct tutti_graph *graph);

#endif
