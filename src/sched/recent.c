/* SPDX-License-Identifier: MIT */
#include "sched/recent.h"

#include "context.h"

#include <string.h>

void tutti_recent_forget(struct tutti_graph *graph) {
    for (unsigned i = 0; i < TUTTI_RECENT_BATCHES; i++) {
        tutti_batch_release(graph->recent[i]);
        graph->recent[i] = NULL;
    }
}

void tutti_recent_note(struct tutti_batch *batch) {
    struct tutti_batch **recent = batch->context->graph.recent;
    if (!batch->brief || batch->apart)
        return;
    tutti_batch_release(recent[TUTTI_RECENT_BATCHES - 1]);
    memmove(recent + 1, recent, (TUTTI_RECENT_BATCHES - 1) * sizeof(*recent));
    atomic_fetch_add(&batch->user.references, 1);
    recent[0] = batch;
}

struct tutti_batch *tutti_recent_ahead(struct tutti_graph *graph, unsigned likely, unsigned count) {
    struct tutti_batch **last = graph->recent;
    struct tutti_batch *found = NULL;
    for (unsigned i = 0; i < TUTTI_RECENT_BATCHES && graph->recent[i]; i++) {
        struct tutti_batch *batch = graph->recent[i];
        graph->recent[i] = NULL;
        if (atomic_load(&batch->state) == TUTTI_BATCH_OVER) {
            tutti_batch_release(batch);
            continue;
        }
        *last++ = batch;
        if (batch->likely == likely && tutti_batch_is_ready(batch) && count > 0 && --count == 0)
            found = batch;
    }
    return found;
}
