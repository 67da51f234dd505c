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
    size_t offset, size; /* in the memory object */
    cl_map_flags flags;
};

/* A memory object: a buffer or a sub-buffer. */
struct _cl_mem {
    struct tutti_object object;
    cl_context context; /* retained */
    cl_mem_object_type type;
    cl_mem_flags flags;
    size_t size;
    void *host_ptr;                /* CL_MEM_USE_HOST_PTR: the program's memory */
    cl_mem_properties *properties; /* as given to …WithProperties, the final 0 included */
    size_t property_bytes;
    cl_mem parent; /* a sub-buffer's buffer, retained; else NULL */
    size_t origin; /* in the parent */
    struct tutti_view view;
    pthread_mutex_t lock;                 /* guards what follows */
    struct tutti_mem_callback *callbacks; /* last registered first */
    struct tutti_map *maps;
    cl_uint map_count;
    struct tutti_job destroy_job;
};

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
 * Where a map of the object points: the program's own memory with CL_MEM_USE_HOST_PTR, else the
 * home memory. NULL when out of memory.
 */
char *tutti_mem_map_base(cl_mem mem);

/*
 * Books a map. CL_INVALID_OPERATION when it would overlap another one and both are for writing;
 * CL_OUT_OF_HOST_MEMORY.
 */
cl_int tutti_mem_add_map(cl_mem mem, void *pointer, size_t offset, size_t size, cl_map_flags flags);
/* Takes the map that `pointer` belongs to; false when there is none. */
bool tutti_mem_take_map(cl_mem mem, void *pointer, struct tutti_map *map);

#endif
