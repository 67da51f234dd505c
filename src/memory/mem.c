/* SPDX-License-Identifier: MIT */
#include "memory/mem.h"

#include "memory/coherence.h"
#include "memory/staging.h"
#include "memory/version.h"
#include "memory/window.h"
#include "recycler.h"
#include "sched/command.h"
#include "sched/row.h"
#include "sched/runtime.h"

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
        tutti_recycler_give(map);
    }
    pthread_mutex_destroy(&mem->lock);
    free(mem->properties);
    tutti_object_free(mem);
}

static void leave_siblings(void *argument) {
    cl_mem mem = argument;
    tutti_coherence_leave(mem->view, tutti_mem_whole(mem));
}

static void retain_as_part(cl_mem parent) {
    if (atomic_fetch_add(&parent->parts, 1) == 0)
        tutti_object_retain(parent);
}

static void release_as_part(cl_mem parent) {
    if (parent && atomic_fetch_sub(&parent->parts, 1) == 1)
        tutti_object_release(parent);
}

/* Held for reading while any buffer's memory, which may be the program's, is written for a part. */
static pthread_rwlock_t memory_in_use = PTHREAD_RWLOCK_INITIALIZER;

bool tutti_mem_keep_in_use(cl_mem buffer) {
    pthread_rwlock_rdlock(&memory_in_use);
    /* All parts together have one reference. */
    if (atomic_load(&buffer->object.refs) > 1)
        return true;
    pthread_rwlock_unlock(&memory_in_use);
    return false;
}

void tutti_mem_end_use(void) { pthread_rwlock_unlock(&memory_in_use); }

bool tutti_mem_release(cl_mem mem) {
    bool is_programs = mem->host_ptr != NULL;
    if (!tutti_object_user_release(mem))
        return false;
    if (is_programs) {
        pthread_rwlock_wrlock(&memory_in_use);
        pthread_rwlock_unlock(&memory_in_use);
    }
    return true;
}

/* The process ends, and nobody will wait for those who bring its content elsewhere. */
static bool is_left_behind(cl_mem mem) {
    return !tutti_runtime_usable() && atomic_load(&mem->view->holders) > 0;
}

static void destroy_now(struct tutti_job *job) {
    cl_mem mem = (cl_mem)(void *)((char *)job - offsetof(struct _cl_mem, destroy_job));
    cl_mem parent = mem->parent;
    cl_context context = mem->context;
    if (tutti_row_is_under_way())
        tutti_row_break(&context->graph);
    if (parent)
        tutti_graph_call(&context->graph, leave_siblings, mem);
    if (!is_left_behind(mem)) {
        tutti_version_destroy_all(mem);
        call_back(mem);
        free_mem(mem);
        release_as_part(parent);
        tutti_object_release(context);
    }
}

static void destroy_in_time(struct tutti_job *job) {
    destroy_now(job);
    tutti_runtime_idle(1);
}

/* Does it go without waiting for anything? */
static bool goes_at_once(cl_mem mem) {
    if (mem->parent || mem->callbacks)
        return false;
    struct tutti_view *view = mem->view;
    bool at_once = true;
    for (unsigned i = 0; i < mem->versions && at_once; i++) {
        at_once = tutti_view_is_just_home(view);
        view = view->next_version;
    }
    return at_once;
}

/* A driver would move the bytes of the old pages for whatever came to that address. */
static void unlock_programs_pages(cl_mem mem) {
    cl_mem parent = mem->parent;
    if (!parent)
        tutti_view_unlock_home(mem->view);
    else if (atomic_load(&parent->parts) == 1 && atomic_load(&parent->object.refs) == 1)
        tutti_view_unlock_home(parent->view); /* it goes with its last part */
}

/*
 * At once if the program releases it, which may free what it gave with CL_MEM_USE_HOST_PTR then.
 * But StarPU may have to be waited for, and all that it does before: the end of a command, which
 * what is waited for may come after, does not wait for it, but for the program's pages.
 */
static void destroy(void *object) {
    cl_mem mem = object;
    bool usable = tutti_runtime_usable();
    if (usable)
        tutti_runtime_busy(); /* the end of the process waits for it, begun or not */
    mem->destroy_job.run = usable ? destroy_in_time : destroy_now;
    if (!tutti_command_is_destroyed_here() || goes_at_once(mem)) {
        mem->destroy_job.run(&mem->destroy_job);
        return;
    }
    unlock_programs_pages(mem);
    tutti_pool_run(&mem->destroy_job);
}

static cl_mem create(cl_context context, cl_mem_object_type type, cl_mem_flags flags, size_t size) {
    cl_mem mem = tutti_recycler_take_zeroed(sizeof(*mem));
    struct tutti_view *view = tutti_recycler_take(sizeof(*view));
    if (!mem || !view) {
        tutti_recycler_give(mem);
        tutti_recycler_give(view);
        return NULL;
    }
    tutti_object_init(&mem->object, TUTTI_MEM, destroy);
    pthread_mutex_init(&mem->lock, NULL);
    mem->context = context;
    mem->type = type;
    mem->flags = flags;
    mem->size = size;
    mem->devices = ~0u;
    mem->view = view;
    mem->versions = 1;
    return mem;
}

/* Fills the home memory of a new object from the program's memory. */
static bool copy_in(cl_mem mem, const void *host_ptr, const struct tutti_place *from) {
    static const struct tutti_place start;
    void *home = mem->flags & CL_MEM_ALLOC_HOST_PTR ? tutti_view_home(mem->view)
                                                    : tutti_view_home_for_once(mem->view);
    if (!home)
        return false;
    struct tutti_place to = tutti_view_at_home(mem->view, &start);
    struct tutti_region whole = tutti_view_whole(mem->view);
    tutti_staging_copy(home, &to, host_ptr, from, &whole);
    mem->view->defined = true;
    return true;
}

cl_mem tutti_mem_create_buffer(cl_context context, cl_mem_flags flags, size_t size, void *host_ptr,
                               cl_mem_properties *properties, size_t property_bytes,
                               cl_int *error) {
    cl_mem mem = create(context, CL_MEM_OBJECT_BUFFER, flags, size);
    *error = CL_OUT_OF_HOST_MEMORY;
    if (!mem) {
        free(properties);
        return NULL;
    }
    mem->properties = properties;
    mem->property_bytes = property_bytes;
    mem->host_ptr = flags & CL_MEM_USE_HOST_PTR ? host_ptr : NULL;
    if (!tutti_view_init(mem->view, &mem->history, size, mem->host_ptr)) {
        tutti_recycler_give(mem->view);
        free_mem(mem);
        return NULL;
    }
    struct tutti_place start = tutti_place_linear(0, size);
    if (flags & CL_MEM_COPY_HOST_PTR && !copy_in(mem, host_ptr, &start)) {
        tutti_version_destroy_all(mem);
        free_mem(mem);
        return NULL;
    }
    tutti_object_retain(context);
    *error = CL_SUCCESS;
    return mem;
}

/* Joining the siblings must not meet a command of the same buffer that is being dispatched. */
struct join {
    cl_mem mem, parent;
    size_t origin, size;             /* in the parent */
    const struct tutti_shape *shape; /* of an image; NULL: a sub-buffer */
    bool joined;
};

static void join_siblings(void *argument) {
    struct join *join = argument;
    const struct tutti_view *parent = join->parent->view;
    struct tutti_view *view = join->mem->view;
    tutti_version_await_calls(parent); /* a part has no bytes to wait for */
    join->joined = (!join->shape || tutti_window_bar(join->parent)) &&
                   tutti_view_init_part(view, &join->mem->history, parent->root,
                                        parent->origin + join->origin, join->size, join->shape);
    if (join->joined && !tutti_coherence_join(view)) {
        tutti_coherence_leave(view, tutti_mem_whole(join->parent));
        tutti_view_destroy(view);
        join->joined = false;
    }
}

/* Makes a new object a part of another one; false when out of memory. */
static bool become_part(cl_mem mem, cl_mem parent, size_t origin, const struct tutti_shape *shape) {
    struct join join = {
        .mem = mem,
        .parent = parent,
        .origin = origin,
        .size = shape ? tutti_shape_bytes(shape) : mem->size,
        .shape = shape,
    };
    tutti_graph_call(&parent->context->graph, join_siblings, &join);
    if (!join.joined)
        return false;
    mem->origin = origin;
    if (parent->host_ptr)
        mem->host_ptr = (char *)parent->host_ptr + origin;
    mem->parent = parent;
    retain_as_part(parent);
    tutti_object_retain(parent->context);
    return true;
}

cl_mem tutti_mem_create_part(cl_mem parent, cl_mem_flags flags, size_t origin, size_t size,
                             cl_int *error) {
    cl_mem mem = create(parent->context, CL_MEM_OBJECT_BUFFER, flags, size);
    *error = CL_OUT_OF_HOST_MEMORY;
    if (!mem)
        return NULL;
    if (!become_part(mem, parent, origin, NULL)) {
        tutti_recycler_give(mem->view);
        free_mem(mem);
        return NULL;
    }
    *error = CL_SUCCESS;
    return mem;
}

static bool init_image(cl_mem mem, const struct tutti_shape *shape, const cl_image_desc *desc,
                       void *host_ptr) {
    if (desc->buffer)
        return become_part(mem, desc->buffer, 0, shape);
    /* Layers of a 1D array are rows. */
    bool rows_are_layers = desc->image_type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
    size_t row_pitch = rows_are_layers ? desc->image_slice_pitch : desc->image_row_pitch;
    size_t slice_pitch =
        desc->image_slice_pitch ? desc->image_slice_pitch : row_pitch * shape->size[1];
    mem->host_ptr = mem->flags & CL_MEM_USE_HOST_PTR ? host_ptr : NULL;
    if (!tutti_view_init_image(mem->view, &mem->history, shape, mem->host_ptr, row_pitch,
                               slice_pitch))
        return false;
    struct tutti_place from = {{0}, row_pitch, slice_pitch};
    if (mem->flags & CL_MEM_COPY_HOST_PTR && !copy_in(mem, host_ptr, &from)) {
        tutti_view_destroy(mem->view);
        return false;
    }
    tutti_object_retain(mem->context);
    return true;
}

cl_mem tutti_mem_create_image(cl_context context, cl_mem_flags flags,
                              const struct tutti_shape *shape, const cl_image_desc *desc,
                              void *host_ptr, cl_mem_properties *properties, size_t property_bytes,
                              cl_int *error) {
    size_t pitch = tutti_image_dimensions(desc->image_type) == 1 ? desc->image_row_pitch
                   : desc->image_slice_pitch                     ? desc->image_slice_pitch
                                                                 : desc->image_row_pitch;
    size_t count = desc->image_type == CL_MEM_OBJECT_IMAGE1D_ARRAY || !desc->image_slice_pitch
                       ? shape->size[1]
                       : shape->size[2];
    cl_mem mem = create(context, desc->image_type, flags, pitch * count);
    *error = CL_OUT_OF_HOST_MEMORY;
    if (!mem) {
        free(properties);
        return NULL;
    }
    mem->properties = properties;
    mem->property_bytes = property_bytes;
    mem->desc = *desc;
    mem->devices = tutti_image_devices(shape);
    if (!init_image(mem, shape, desc, host_ptr)) {
        tutti_recycler_give(mem->view);
        free_mem(mem);
        return NULL;
    }
    *error = CL_SUCCESS;
    return mem;
}

char *tutti_mem_map_base(cl_mem mem) {
    return mem->host_ptr ? mem->host_ptr : tutti_view_home(mem->view);
}

static bool both_write(const struct tutti_map *a, const struct tutti_map *b) {
    const cl_map_flags write = CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION;
    return (a->flags & write) && (b->flags & write);
}

static bool overlap(const struct tutti_map *a, const struct tutti_map *b) {
    const size_t *a_at = a->place.origin, *b_at = b->place.origin;
    for (int i = 0; i < 3; i++)
        if (a_at[i] >= b_at[i] + b->region.size[i] || b_at[i] >= a_at[i] + a->region.size[i])
            return false;
    return true;
}

cl_int tutti_mem_add_map(cl_mem mem, const struct tutti_map *given) {
    struct tutti_map *map = tutti_recycler_take(sizeof(*map));
    if (!map)
        return CL_OUT_OF_HOST_MEMORY;
    *map = *given;
    cl_int error = CL_SUCCESS;
    pthread_mutex_lock(&mem->lock);
    for (struct tutti_map *other = mem->maps; other; other = other->next)
        if (!map->overlaps && both_write(map, other) && overlap(map, other))
            error = CL_INVALID_OPERATION;
    if (error == CL_SUCCESS) {
        map->next = mem->maps;
        mem->maps = map;
        mem->map_count++;
    }
    pthread_mutex_unlock(&mem->lock);
    if (error != CL_SUCCESS)
        tutti_recycler_give(map);
    return error;
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
    tutti_recycler_give(map);
    return map != NULL;
}
