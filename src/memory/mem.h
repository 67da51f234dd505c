/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_MEM_H
#define TUTTI_MEM_H

#include "context.h"
#include "memory/view.h"

struct tutti_mem_callback {
    struct tutti_mem_callback *next;
    void(CL_CALLBACK *function)(cl_mem, void *);
    void *user_data;
};

/* One map of the program (clEnqueueMapBuffer, 5.4.3). */
struct tutti_map {
    struct tutti_map *next;
    void *pointer;
    struct tutti_place place; /* in the memory object */
    struct tutti_region region;
    cl_map_flags flags;
    bool overlaps; /* may be for writing where others are: of shared virtual memory (5.6.1) */
};

/* A memory object: a buffer, a sub-buffer or an image. */
struct _cl_mem {
    struct tutti_object object;
    cl_context context; /* retained */
    cl_mem_object_type type;
    cl_mem_flags flags;
    size_t size;                   /* CL_MEM_SIZE */
    void *host_ptr;                /* CL_MEM_USE_HOST_PTR: the program's memory */
    cl_mem_properties *properties; /* as given to …WithProperties, the final 0 included */
    size_t property_bytes;
    bool is_svm;   /* shared virtual memory: the program has its address, not the object */
    cl_mem parent; /* what a sub-buffer, or an image over a buffer, is a part of */
    size_t origin; /* in the parent */
    struct tutti_view *view;        /* its storage now; may change with each dispatch (version.h) */
    struct tutti_resource resource; /* of a buffer: with its parts. By the graph's lock */
    cl_image_desc desc;             /* of an image, as given, pitches filled in */
    unsigned devices;               /* bit d: real device d can hold it */
    struct tutti_history history;
    atomic_uint ahead;                    /* commands that use it and are not dispatched yet */
    atomic_uint parts;                    /* that retain it, once together */
    atomic_bool barred;                   /* its parts are no windows any more (window.h), */
    unsigned exchanges, apart;            /* for the dispatching thread: and are they better so? */
    pthread_mutex_t lock;                 /* guards what follows */
    struct tutti_mem_callback *callbacks; /* last registered first */
    struct tutti_map *maps;
    cl_uint map_count;
    unsigned pins, versions; /* of the storage, see version.h */
    struct tutti_job destroy_job;
};

/* What it is, in the end, a part of; itself if it is none. */
static inline cl_mem tutti_mem_whole(cl_mem mem) {
    while (mem->parent)
        mem = mem->parent;
    return mem;
}

/* Are there other views of its buffer: is it a part, or has parts? For the dispatching thread. */
static inline bool tutti_mem_has_siblings(cl_mem mem) {
    return mem->parent || mem->view->sibling || mem->view->windows;
}

/* What commands that use the object have in common with those that use its buffer or its parts. */
static inline struct tutti_resource *tutti_mem_resource(cl_mem mem) {
    return &tutti_mem_whole(mem)->resource;
}

/* Bytes of its storage. */
static inline size_t tutti_mem_bytes(cl_mem mem) {
    return mem->type == CL_MEM_OBJECT_BUFFER ? mem->size : mem->view->size;
}

/* The same as the program sees it: a buffer over shared virtual memory is a part of it, too. */
static inline cl_mem tutti_mem_seen_parent(cl_mem mem) {
    return mem->parent && mem->parent->is_svm ? NULL : mem->parent;
}

static inline bool tutti_mem_is_image(cl_mem mem) { return mem->type != CL_MEM_OBJECT_BUFFER; }

/*
 * Creates a buffer of `size` bytes (5.2.1); flags are checked and complete. `host_ptr` is copied or
 * used as `flags` say. Takes over `properties`. On failure NULL and an error.
 */
cl_mem tutti_mem_create_buffer(cl_context context, cl_mem_flags flags, size_t size, void *host_ptr,
                               cl_mem_properties *properties, size_t property_bytes, cl_int *error);
cl_mem tutti_mem_create_part(cl_mem parent, cl_mem_flags flags, size_t origin, size_t size,
                             cl_int *error);

/*
 * Creates an image (5.3.1). `desc` is checked, and its pitches say how `host_ptr` lies, or are
 * those of an image without padding. With desc->buffer it is an image over that buffer.
 */
cl_mem tutti_mem_create_image(cl_context context, cl_mem_flags flags,
                              const struct tutti_shape *shape, const cl_image_desc *desc,
                              void *host_ptr, cl_mem_properties *properties, size_t property_bytes,
                              cl_int *error);

/*
 * What a part that goes leaves to its buffer matters only to commands and to the program: with
 * CL_MEM_USE_HOST_PTR the program may free its memory once it has released the buffer and all
 * commands are over, whatever its parts wait for. False if nobody but parts uses it; else its
 * memory stays until `end_use`, which has to follow soon.
 */
bool tutti_mem_keep_in_use(cl_mem buffer);
void tutti_mem_end_use(void);

/* The program releases it (clReleaseMemObject, 5.5.1); false if it had no reference left. */
bool tutti_mem_release(cl_mem mem);

/*
 * Where a map of the object points: the program's own memory with CL_MEM_USE_HOST_PTR, else the
 * home memory. NULL when out of memory.
 */
char *tutti_mem_map_base(cl_mem mem);

/*
 * Books a map. CL_INVALID_OPERATION when it would overlap another one, and may not, and both are
 * for writing; CL_OUT_OF_HOST_MEMORY.
 */
cl_int tutti_mem_add_map(cl_mem mem, const struct tutti_map *map);
/* Takes the map that `pointer` belongs to; false when there is none. */
bool tutti_mem_take_map(cl_mem mem, void *pointer, struct tutti_map *map);

#endif
