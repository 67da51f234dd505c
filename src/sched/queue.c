/* SPDX-License-Identifier: MIT */
#include "sched/queue.h"

#include "env.h"
#include "log.h"
#include "sched/append.h"
#include "sched/command.h"
#include "sched/row.h"

#include <stdlib.h>
#include <string.h>

static bool strict_order;

static void read_order(void) {
    const char *order = tutti_env_string(TUTTI_ORDER);
    strict_order = order && strcmp(order, "strict") == 0;
    if (order && *order && !strict_order && strcmp(order, "relaxed") != 0)
        tutti_log(WARNING, "TUTTI_ORDER is neither relaxed nor strict: %s", order);
}

static void destroy(void *object) {
    cl_command_queue queue = object;
    tutti_object_release(queue->fence);
    tutti_append_forget(queue);
    tutti_object_release(queue->context);
    free(queue->property_list);
    free(queue);
}

bool tutti_queue_is_clear(const struct _cl_command_queue *queue) {
    return !queue->strict && queue->held == 0 && !queue->outsider &&
           (!queue->fence || tutti_event_status(queue->fence) == CL_COMPLETE);
}

cl_command_queue tutti_queue_create(cl_context context, cl_command_queue_properties properties,
                                    cl_queue_properties *property_list, size_t property_bytes) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static atomic_uint created;
    pthread_once(&once, read_order);
    cl_command_queue queue = calloc(1, sizeof(*queue));
    if (!queue) {
        free(property_list);
        return NULL;
    }
    tutti_object_init(&queue->object, TUTTI_QUEUE, destroy);
    queue->context = tutti_object_retain(context);
    queue->properties = properties;
    queue->row = atomic_fetch_add(&created, 1);
    queue->strict = strict_order;
    queue->property_list = property_list;
    queue->property_bytes = property_bytes;
    return queue;
}

bool tutti_queue_uses_host(cl_command_queue queue) {
    pthread_mutex_lock(&queue->context->graph.lock);
    bool uses = queue->last_host != NULL;
    pthread_mutex_unlock(&queue->context->graph.lock);
    return uses;
}

/* Waits for all that is in the queue; CL_OUT_OF_HOST_MEMORY. */
static cl_int wait_for_all(cl_command_queue queue) {
    if (!atomic_load_explicit(&queue->holds, memory_order_acquire))
        return CL_SUCCESS;
    pthread_mutex_lock(&queue->context->graph.lock);
    bool empty = !queue->first;
    /* The last command of an in-order queue is published after all others. */
    cl_event last = tutti_queue_in_order(queue) ? tutti_object_retain(queue->last) : NULL;
    pthread_mutex_unlock(&queue->context->graph.lock);
    if (empty)
        return CL_SUCCESS;
    if (last) {
        tutti_event_wait(last);
        tutti_object_release(last);
        return CL_SUCCESS;
    }
    struct tutti_command *marker = tutti_command_create_empty();
    if (!marker)
        return CL_OUT_OF_HOST_MEMORY;
    marker->waits_for_all = true;
    return tutti_command_enqueue(marker, queue, CL_COMMAND_MARKER,
                                 (struct tutti_wait_list){0, NULL}, true, NULL);
}

cl_int tutti_queue_finish(cl_command_queue queue) {
    tutti_graph_note_wait(&queue->context->graph);
    cl_int result = wait_for_all(queue);
    tutti_row_finish(queue);
    if (result == CL_SUCCESS && atomic_load_explicit(&queue->error, memory_order_relaxed))
        result = atomic_exchange(&queue->error, CL_SUCCESS);
    return result;
}
