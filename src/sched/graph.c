/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "sched/graph.h"

#include "brief_lock.h"
#include "context.h"
#include "sched/recent.h"
#include "sched/row.h"
#include "sched/runtime.h"

#include <stddef.h>
#include <string.h>

/* What this thread dispatches now. */
static _Thread_local const struct tutti_graph *dispatching;

static cl_context context_of(struct tutti_graph *graph) {
    return (void *)((char *)graph - offsetof(struct _cl_context, graph));
}

static void dispatch_rest(struct tutti_job *job) {
    struct tutti_graph *graph = (void *)((char *)job - offsetof(struct tutti_graph, rest));
    pthread_mutex_lock(&graph->lock);
    graph->rest_given = false;
    tutti_graph_run_and_unlock(graph);
    tutti_object_release(context_of(graph));
    tutti_runtime_idle(1);
}

void tutti_graph_init(struct tutti_graph *graph) {
    tutti_brief_lock_init(&graph->lock);
    graph->first = NULL;
    graph->last = &graph->first;
    graph->dispatching = graph->left = graph->rest_given = false;
    graph->rest = (struct tutti_job){.run = dispatch_rest};
    atomic_init(&graph->in_row, 0);
    graph->open = NULL;
    graph->open_count = 0;
    memset(graph->recent, 0, sizeof(graph->recent));
}

void tutti_graph_destroy(struct tutti_graph *graph) {
    tutti_recent_forget(graph);
    pthread_mutex_destroy(&graph->lock);
}

void tutti_graph_append(struct tutti_graph *graph, struct tutti_ready *ready) {
    ready->next = NULL;
    *graph->last = ready;
    graph->last = &ready->next;
}

/* Until this thread has another job to begin; true: nothing is left. With the lock. */
static bool dispatch_all(struct tutti_graph *graph) {
    while (graph->first && !tutti_pool_has_next()) {
        struct tutti_ready *ready = graph->first;
        graph->first = ready->next;
        if (!graph->first)
            graph->last = &graph->first;
        ready->dispatch(ready);
        pthread_mutex_lock(&graph->lock);
    }
    return !graph->first;
}

void tutti_graph_run_and_unlock(struct tutti_graph *graph) {
    bool gives = false;
    /* Dispatching may complete a command and so come back here: the outer call goes on. */
    if (graph->first && (!graph->dispatching || graph->left)) {
        const struct tutti_graph *outer = dispatching;
        graph->dispatching = true;
        graph->left = false;
        dispatching = graph;
        graph->left = graph->dispatching = !dispatch_all(graph);
        gives = graph->left && !graph->rest_given;
        dispatching = outer;
    }
    if (gives) {
        graph->rest_given = true;
        tutti_object_retain(context_of(graph));
    }
    pthread_mutex_unlock(&graph->lock);
    if (!gives)
        return;
    tutti_runtime_busy(); /* as this thread's next job is: no exit comes between */
    tutti_pool_run(&graph->rest);
}

struct call {
    struct tutti_ready ready;
    struct tutti_graph *graph;
    void (*function)(void *);
    void *argument;
    bool done;
    pthread_mutex_t lock;
    pthread_cond_t finished;
};

static void make_call(struct tutti_ready *ready) {
    struct call *call = (struct call *)ready;
    pthread_mutex_unlock(&call->graph->lock);
    tutti_row_break(call->graph);
    tutti_batch_flush(call->graph);
    call->function(call->argument);
    pthread_mutex_lock(&call->lock);
    call->done = true;
    pthread_cond_signal(&call->finished);
    pthread_mutex_unlock(&call->lock);
}

void tutti_graph_call(struct tutti_graph *graph, void (*function)(void *), void *argument) {
    if (dispatching == graph) { /* it would wait for itself */
        tutti_row_break(graph);
        tutti_batch_flush(graph);
        function(argument);
        return;
    }
    struct call call = {.ready.dispatch = make_call,
                        .graph = graph,
                        .function = function,
                        .argument = argument,
                        .lock = PTHREAD_MUTEX_INITIALIZER,
                        .finished = PTHREAD_COND_INITIALIZER};
    pthread_mutex_lock(&graph->lock);
    tutti_graph_append(graph, &call.ready);
    tutti_graph_run_and_unlock(graph);
    pthread_mutex_lock(&call.lock);
    while (!call.done)
        pthread_cond_wait(&call.finished, &call.lock);
    pthread_mutex_unlock(&call.lock);
}
