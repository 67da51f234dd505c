/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_VIEW_H
#define TUTTI_VIEW_H

#include "memory/region.h"
#include "virtual_device/device.h"

#include <pthread.h>
#include <starpu.h>

struct tutti_view;

/* Bytes of a view that another view of the same buffer has written since. Offsets in the buffer. */
struct tutti_stale {
    struct tutti_stale *next;
    size_t begin, end;
    struct tutti_view *source;
};

/* Bytes of a view's home memory that the program has mapped for writing. Offsets in the view. */
struct tutti_mapped {
    struct tutti_mapped *next;
    size_t begin, end;
};

/*
 * The storage of a buffer or sub-buffer: one StarPU handle, with a copy in home memory (host) and
 * copies on devices. A buffer and its sub-buffers are separate storage, so that disjoint
 * sub-buffers are independent; what one of them writes makes the others stale there, and they are
 * brought up to date when they are next used. That bookkeeping follows the order of dispatch
 * (sched/graph.h) and is touched by the dispatching thread alone.
 */
struct tutti_view {
    starpu_data_handle_t handle;
    struct tutti_view *root;    /* the buffer's own view; itself for a buffer */
    struct tutti_view *sibling; /* next view of the same buffer; the root comes first */
    size_t origin, size;

    /* For the dispatching thread. */
    bool defined; /* something was written: before that, any content is right */
    struct tutti_stale *stale;

    pthread_mutex_t lock; /* guards what follows */
    void *home;           /* host memory; made at first use, and stays where it is */
    bool home_is_users;   /* CL_MEM_USE_HOST_PTR */
    struct tutti_mapped *mapped;
};

/* A device's copy of a view. */
struct tutti_copy {
    struct tutti_real_device *device;
    cl_mem mem;  /* NULL: the device could not allocate it */
    char *bytes; /* the same, where the device shares host memory; else NULL */
};

/* The valid copies of a view while it is acquired. */
struct tutti_copies {
    bool home;
    unsigned count;
    struct tutti_copy on[TUTTI_MAX_DEVICES];
};

/* `users` (may be NULL) becomes the home memory. False when out of memory. */
bool tutti_view_init(struct tutti_view *view, size_t size, void *users);
/* A view of [origin, origin + size) of `root`; joins its siblings: by the dispatching thread. */
bool tutti_view_init_part(struct tutti_view *view, struct tutti_view *root, size_t origin,
                          size_t size);
/*
 * Nothing uses the view any more, and no other view is stale because of it (tutti_view_flush in
 * coherence.h). Waits for StarPU to let go of it: not for StarPU's threads.
 */
void tutti_view_destroy(struct tutti_view *view);

/* The view's host memory, made now if need be; NULL when out of memory. */
void *tutti_view_home(struct tutti_view *view);

/* Which copies are valid; the view must be acquired, so that the answer stays true. */
void tutti_view_copies(struct tutti_view *view, struct tutti_copies *copies);

/* Ranges that fetches to home memory leave alone, as the program writes there. */
bool tutti_view_add_mapped(struct tutti_view *view, size_t begin, size_t end);
void tutti_view_remove_mapped(struct tutti_view *view, size_t begin, size_t end);

/* StarPU's data interface for views (interface.c). */
extern struct starpu_data_interface_ops tutti_interface_ops;

struct tutti_interface {
    int id;
    /*
     * On the main node, the view; on a device, NULL: StarPU keeps freed device memory and gives
     * it, with this structure, to another handle of the same size.
     */
    struct tutti_view *view;
    cl_mem mem;  /* on a device */
    char *bytes; /* its bytes, where the device shares host memory; else NULL */
    size_t size;
    bool failed; /* the device could not allocate: `mem` is NULL and commands that use it fail */
};

void tutti_interface_register(struct tutti_view *view);

#endif
