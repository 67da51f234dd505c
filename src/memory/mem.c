/* SPDX-License-Identifier: MIT */
#include "memory/mem.h"

#include "memory/coherence.h"

#include <stdlib.h>
#include <string.h>

static void call_back(cl_mem mem) {
    while (mem->callbacks) {
        struct tutti_mem_callback *callback = mem->callbacks;
        mem->callbacks = callback->next;
        callback->function(mem, callback->user_data);
        free(callback);
    }
}

static void free_mem(cl_mem mem) {
    while (mem->maps) {
        struct tutti_map *map = mem->maps;
        mem->maps = map->next;
        free(map);
    }
    pthread_mutex_destroy(&mem->lock);
    free(mem->properties);
    free(mem);
}

static void destroy_now(struct tutti_job *job) {
    cl_mem mem = (cl_mem)(void *)((char *)job - offsetof(struct _cl_mem, destroy_job));
    tutti_view_destroy(&mem->view);
    call_back(mem);
    cl_mem parent = mem->parent;
    cl_context context = mem->context;
    free_mem(mem);
    tutti_object_release(parent);
    tutti_object_release(context);
}

/* A sub-buffer leaves its siblings between two dispatches. */
static void destroy_in_order(struct tutti_ready *ready) {
    cl_mem mem = (cl_mem)(void *)((char *)ready - offsetof(struct _cl_mem, destroy));
    tutti_coherence_leave(&mem->view);
    tutti_pool_run(&mem->destroy_job);
}

static void destroy(void *object) {
    cl_mem mem = object;
    mem->destroy_job.run = destroy_now;
    if (mem->parent) {
        cl_context context = tutti_object_retain(mem->context);
        mem->destroy.dispatch = destroy_in_order;
        tutti_graph_dispatch(&context->graph, &mem->destroy);
        tutti_object_release(context);
    } else if (starpu_worker_get_id() >= 0) {
        /* StarPU must be waited for, which its own threads can't. */
        tutti_pool_run(&mem->destroy_job);
    } else {
        destroy_now(&mem->destroy_job);
    }
}

static cl_mem create(cl_context context, cl_mem_flags flags, size_t size) {
    cl_mem mem = calloc(1, sizeof(*mem));
    if (!mem)
        return NULL;
    tutti_object_init(&mem->object, TUTTI_MEM, destroy);
    pthread_mutex_init(&mem->lock, NULL);
    mem->context = context;
    mem->type = CL_MEM_OBJECT_BUFFER;
    mem->flags = flags;
    mem->size = size;
    return mem;
}

cl_mem tutti_mem_create_buffer(cl_context context, cl_mem_flags flags, size_t size, void *host_ptr,
                               cl_mem_properties *properties, size_t property_bytes,
                               cl_int *error) {
    cl_mem mem = create(context, flags, size);
    *error = CL_OUT_OF_HOST_MEMORY;
    if (!mem) {
        free(properties);
        return NULL;
    }
    mem->properties = properties;
    mem->property_bytes = property_bytes;
    mem->host_ptr = flags & CL_MEM_USE_HOST_PTR ? host_ptr : NULL;
    if (!tutti_view_init(&mem->view, size, mem->host_ptr)) {
        free_mem(mem);
        return NULL;
    }
    if (flags & CL_MEM_COPY_HOST_PTR) {
        void *home = tutti_view_home(&mem->view);
        if (!home) {
            tutti_view_destroy(&mem->view);
            free_mem(mem);
            return NULL;
        }
        memcpy(home, host_ptr, size);
        mem->view.defined = true;
    }
    tutti_object_retain(context);
    *error = CL_SUCCESS;
    return mem;
}

/* Joining the siblings must not meet a command of the same buffer that is being dispatched. */
struct join {
    struct tutti_ready ready;
    struct tutti_view *view, *root;
    size_t origin, size;
    bool done, joined;
    pthread_mutex_t lock;
    pthread_cond_t finished;
};

static void join_siblings(struct tutti_ready *ready) {
    struct join *join = (struct join *)ready;
    bool joined = tutti_view_init_part(join->view, join->root, join->origin, join->size);
    if (joined && !tutti_coherence_join(join->view)) {
        tutti_coherence_leave(join->view);
        tutti_view_destroy(join->view);
        joined = false;
    }
    pthread_mutex_lock(&join->lock);
    join->joined = joined;
    join->done = true;
    pthread_cond_signal(&join->finished);
    pthread_mutex_unlock(&join->lock);
}

cl_mem tutti_mem_create_part(cl_mem parent, cl_mem_flags flags, size_t origin, size_t size,
                             cl_int *error) {
    cl_mem mem = create(parent->context, flags, size);
    *error = CL_OUT_OF_HOST_MEMORY;
    if (!mem)
        return NULL;
    struct join join = {.ready.dispatch = join_siblings,
                        .view = &mem->view,
                        .root = &parent->view,
                        .origin = origin,
                        .size = size,
                        .lock = PTHREAD_MUTEX_INITIALIZER,
                        .finished = PTHREAD_COND_INITIALIZER};
    tutti_graph_dispatch(&parent->context->graph, &join.ready);
    pthread_mutex_lock(&join.lock);
    while (!join.done)
        pthread_cond_wait(&join.finished, &join.lock);
    pthread_mutex_unlock(&join.lock);
    if (!join.joined) {
        free_mem(mem);
        return NULL;
    }
    mem->origin = origin;
    if (parent->host_ptr)
        mem->host_ptr = (char *)parent->host_ptr + origin;
    mem->parent = tutti_object_retain(parent);
    tutti_object_retain(parent->context);
    *error = CL_SUCCESS;
    return mem;
}

char *tutti_mem_map_base(cl_mem mem) {
    return mem->host_ptr ? mem->host_ptr : tutti_view_home(&mem->view);
}

bool tutti_mem_add_map(cl_mem mem, void *pointer, size_t offset, size_t size, cl_map_flags flags) {
    struct tutti_map *map = malloc(sizeof(*map));
    if (!map)
        return false;
    *map = (struct tutti_map){.pointer = pointer, .offset = offset, .size = size, .flags = flags};
    pthread_mutex_lock(&mem->lock);
    map->next = mem->maps;
    mem->maps = map;
    mem->map_count++;
    pthread_mutex_unlock(&mem->lock);
    return true;
}

bool tutti_mem_take_map(cl_mem mem, void *pointer, struct tutti_map *found) {
    pthread_mutex_lock(&mem->lock);
    struct tutti_map **link = &mem->maps;
    while (*link && (*link)->pointer != pointer)
        link = &(*link)->next;
    struct tutti_map *map = *link;
    if (map) {
        *link = map->next;
        *found = *map;
        mem->map_count--;
    }
    pthread_mutex_unlock(&mem->lock);
    free(map);
    return map != NULL;
}
