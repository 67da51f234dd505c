/* SPDX-License-Identifier: MIT */
#include "sched/graph.h"

void tutti_graph_init(struct tutti_graph *graph) {
    pthread_mutex_init(&graph->lock, NULL);
    graph->first = NULL;
    graph->last = &graph->first;
    graph->dispatching = false;
}

void tutti_graph_destroy(struct tutti_graph *graph) { pthread_mutex_destroy(&graph->lock); }

void tutti_graph_append(struct tutti_graph *graph, struct tutti_ready *ready) {
    ready->next = NULL;
    *graph->last = ready;
    graph->last = &ready->next;
}

void tutti_graph_run(struct tutti_graph *graph) {
    pthread_mutex_lock(&graph->lock);
    /* Dispatching may complete a command and so come back here: the outer call goes on. */
    if (!graph->dispatching) {
        graph->dispatching = true;
        while (graph->first) {
            struct tutti_ready *ready = graph->first;
            graph->first = ready->next;
            if (!graph->first)
                graph->last = &graph->first;
            pthread_mutex_unlock(&graph->lock);
            ready->dispatch(ready);
            pthread_mutex_lock(&graph->lock);
        }
        graph->dispatching = false;
    }
    pthread_mutex_unlock(&graph->lock);
}

void tutti_graph_dispatch(struct tutti_graph *graph, struct tutti_ready *ready) {
    pthread_mutex_lock(&graph->lock);
    tutti_graph_append(graph, ready);
    pthread_mutex_unlock(&graph->lock);
    tutti_graph_run(graph);
}
