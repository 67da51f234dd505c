/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_VIEW_H
#define TUTTI_VIEW_H

#include "memory/history.h"
#include "memory/region.h"
#include "memory/storage.h"
#include "recycler.h"

#include <pthread.h>
#include <starpu.h>

struct tutti_pinned;
struct tutti_stay;
struct tutti_svm_home;
struct tutti_view;
struct tutti_window;

/* Bytes of a view that another view of the same buffer has written since. Offsets in the buffer. */
struct tutti_stale {
    struct tutti_stale *next;
    size_t begin, end;
    struct tutti_view *source;
};

/* A box of a view's home memory that the program has mapped. */
struct tutti_mapped {
    struct tutti_mapped *next;
    struct tutti_place place; /* in the view */
    struct tutti_region region;
    bool written; /* by the program */
};

/* What the scheduler remembers of the last user of views; the last reference recycles it. */
struct tutti_last_user {
    atomic_uint references;
    unsigned long order; /* of its first command, in the program (command.h) */
};

static inline void tutti_last_user_release(struct tutti_last_user *user) {
    if (user && atomic_fetch_sub(&user->references, 1) == 1)
        tutti_recycler_give(user);
}

/*
 * The storage of a buffer, sub-buffer or image: one StarPU handle, as soon as StarPU is to know of
 * it, with a copy in home memory (host) and copies on devices. A buffer and its sub-buffers are
 * separate storage, so that disjoint sub-buffers are independent; what one of them writes makes the
 * others stale there, and they are brought up to date when they are next used. That bookkeeping
 * follows the order of dispatch (sched/graph.h) and is touched by the dispatching thread alone.
 */
struct tutti_view {
    _Atomic starpu_data_handle_t handle; /* for tutti_view_handle */
    struct tutti_history *history;       /* of the memory object; outlives the view */
    struct tutti_view *root;             /* the buffer's own view; itself for a buffer */
    struct tutti_view *sibling;          /* next view of the same buffer; the root comes first */
    struct tutti_view *windows;          /* of the root: parts that are windows (window.h); they */
    bool open;                           /* all are, or would be: for the dispatching thread */
    size_t origin, size;                 /* bytes; of an image without padding */
    struct tutti_shape shape;            /* of an image; type 0: a buffer */
    size_t row_pitch, slice_pitch; /* of an image's home memory: the program's may have padding */

    struct tutti_view
        *next_version; /* of the same buffer, in a ring (version.h); itself if alone */
    /* Commands that were dispatched and are not over; in the upper half those of devices. */
    atomic_ullong users;
    atomic_uint of_host;  /* those of them that take as long as the host likes (version.h) */
    atomic_uint in_calls; /* those whose bytes move in a call, while others dispatch (version.h) */
    atomic_uint holders;  /* acquisitions (acquisition.h), of commands and of updates */
    atomic_ushort made;   /* bits: devices whose `real` is complete, for good */

    /* For the dispatching thread. */
    bool defined; /* something was written: before that, any content is right */
    bool unread;  /* the last command that took it overwrites it, from the program's memory */
    struct tutti_stale *stale;
    struct tutti_last_user *last_user; /* sched/batch.h: a reference, and if that one writes */
    bool last_writes;
    unsigned long last_writer; /* `order` of the last user that writes, which may be gone; or 0 */
    bool last_alone; /* no other device task uses it, but those which that one comes after; */
    bool all_free;   /* or all of them wait for nothing else than devices (sched/batch.h) */
    unsigned open_users;
    unsigned placed; /* bit of the device that the host put its content on; 0: none */
    struct tutti_real_device *seat; /* where it was used last, at home by short commands */

    struct tutti_stay *stay; /* see stay.h */
    /* An early one that StarPU is told of, until it has that storage: then it is ahead of home. */
    struct tutti_stay *_Atomic announced;
    atomic_bool ahead;

    bool at_home; /* all devices work in the home memory itself: StarPU has no other copy */

    atomic_uint handed; /* see tutti_view_hand_over */
    /* Being destroyed, and used no more: what leaves a device is not evicted. */
    atomic_bool leaving;

    /* relay.h: which device has the bytes that home memory should have, and if they are moving. */
    _Atomic(const struct tutti_real_device *) debtor;
    bool moving;

    struct tutti_window *seen; /* window.c: drivers' sub-buffers of it, the youngest first */

    pthread_mutex_t lock;        /* guards what follows */
    void *home;                  /* host memory; made at first use, and stays where it is */
    bool home_is_users;          /* CL_MEM_USE_HOST_PTR */
    struct tutti_pinned *pinned; /* the home memory's, if it is page-locked */
    struct tutti_svm_home *svm;  /* svm_home.h: the home memory's; written before the first use */
    size_t moved;                /* bytes from and to the program's memory, until it is locked */
    struct tutti_mapped *mapped;
    struct tutti_storage *real; /* each device's objects over the home memory, where `at_home` */
};

/*
 * StarPU alone orders those who use a view's content, by locks that no tool sees which is not told
 * of them. So each user hands the view over before StarPU may give it to the next, who takes it
 * over: the order holds by the language's own rules too.
 */
static inline void tutti_view_hand_over(struct tutti_view *view) {
    atomic_fetch_add_explicit(&view->handed, 1, memory_order_release);
}

/* The same where nobody else hands it over meanwhile. */
static inline void tutti_view_hand_over_alone(struct tutti_view *view) {
    unsigned handed = atomic_load_explicit(&view->handed, memory_order_relaxed);
    atomic_store_explicit(&view->handed, handed + 1, memory_order_release);
}

static inline void tutti_view_take_over(struct tutti_view *view) {
    (void)atomic_load_explicit(&view->handed, memory_order_acquire);
}

/* A device's copy of a view. */
struct tutti_copy {
    struct tutti_real_device *device;
    cl_mem mem;  /* NULL: the device could not allocate it */
    char *bytes; /* the same, where the device shares host memory; else NULL. Without padding */
};

/* The valid copies of a view while it is acquired. */
struct tutti_copies {
    bool home;
    unsigned count;
    struct tutti_copy on[TUTTI_MAX_DEVICES];
};

/* The place with the pitches of an image without padding; of plain bytes, with its own. */
static inline struct tutti_place tutti_view_packed(const struct tutti_view *view,
                                                   const struct tutti_place *place) {
    struct tutti_place packed = *place;
    if (tutti_shape_is_boxed(&view->shape)) {
        packed.row_pitch = view->shape.size[0] * view->shape.element;
        packed.slice_pitch = packed.row_pitch * view->shape.size[1];
    }
    return packed;
}

/* The place in home memory. */
static inline struct tutti_place tutti_view_at_home(const struct tutti_view *view,
                                                    const struct tutti_place *place) {
    struct tutti_place at_home = *place;
    if (tutti_shape_is_boxed(&view->shape)) {
        at_home.row_pitch = view->row_pitch;
        at_home.slice_pitch = view->slice_pitch;
    }
    return at_home;
}

/* All of the view. */
struct tutti_region tutti_view_whole(const struct tutti_view *view);
bool tutti_view_is_whole(const struct tutti_view *view, const struct tutti_place *place,
                         const struct tutti_region *region);

/* `users` (may be NULL) becomes the home memory. False when out of memory. */
bool tutti_view_init(struct tutti_view *view, struct tutti_history *history, size_t size,
                     void *users);
/* The same for an image; the pitches are those of `users`. Not for an image over a buffer. */
bool tutti_view_init_image(struct tutti_view *view, struct tutti_history *history,
                           const struct tutti_shape *shape, void *users, size_t row_pitch,
                           size_t slice_pitch);
/*
 * A view of [origin, origin + size) of `root`, a sub-buffer or with a shape an image over a buffer;
 * joins its siblings: by the dispatching thread.
 */
bool tutti_view_init_part(struct tutti_view *view, struct tutti_history *history,
                          struct tutti_view *root, size_t origin, size_t size,
                          const struct tutti_shape *shape);
/* No other view of the buffer has newer bytes of it, or nobody will ask. */
void tutti_view_forget_stale(struct tutti_view *view);
/*
 * Nothing uses the view any more, and no other view is stale because of it (tutti_view_flush in
 * coherence.h). Unless it is just home, waits for StarPU to let go of it: not for StarPU's threads.
 */
void tutti_view_destroy(struct tutti_view *view);

/*
 * The view's host memory, made now if need be; NULL when out of memory. Page-locked where that
 * helps and can be; the program's own once that pays: tutti_view_lock_home is told before so many
 * bytes move between it and a device.
 */
void *tutti_view_home(struct tutti_view *view);
/*
 * The same, for content that may go to devices only once: what is made now for a larger buffer is
 * mostly not page-locked (pinned.h).
 */
void *tutti_view_home_for_once(struct tutti_view *view);
bool tutti_view_has_locked_home(struct tutti_view *view); /* is it made, and page-locked? */
void tutti_view_lock_home(struct tutti_view *view, const struct tutti_real_device *device,
                          size_t bytes);
/* Nothing uses the view any more. The program may free its memory before the view is destroyed. */
void tutti_view_unlock_home(struct tutti_view *view);

/*
 * A device's objects over the home memory of a view that is `at_home`, made now if need be. Empty
 * when they can't be: then commands that use them fail.
 */
const struct tutti_storage *tutti_view_make_storage(struct tutti_view *view,
                                                    const struct tutti_real_device *device);

static inline const struct tutti_storage *
tutti_view_storage(struct tutti_view *view, const struct tutti_real_device *device) {
    unsigned made = atomic_load_explicit(&view->made, memory_order_acquire);
    return made & 1u << device->index ? &view->real[device->index]
                                      : tutti_view_make_storage(view, device);
}

/* The same for what StarPU keeps on the device's memory node. Errors as tutti_storage_create's. */
cl_int tutti_view_create_storage(struct tutti_view *view, const struct tutti_real_device *device,
                                 struct tutti_storage *storage);
void tutti_view_release_storage(struct tutti_view *view, const struct tutti_real_device *device,
                                struct tutti_storage *storage);

/* Where StarPU keeps the copy that the device works on. */
static inline int tutti_view_node(const struct tutti_view *view,
                                  const struct tutti_real_device *device) {
    return view->at_home ? STARPU_MAIN_RAM : (int)device->place.node;
}

/*
 * Which copies are valid; the view must be acquired, so that the answer stays true. A device's copy
 * that is the home memory counts as that.
 */
void tutti_view_copies(struct tutti_view *view, struct tutti_copies *copies);

/*
 * Boxes that fetches to home memory leave alone, as the program writes there, or sees what another
 * view of the buffer has written since. Waits for a fetch that is under way.
 */
bool tutti_view_add_mapped(struct tutti_view *view, const struct tutti_mapped *box);
bool tutti_view_is_mapped(struct tutti_view *view, const struct tutti_mapped *box);
void tutti_view_remove_mapped(struct tutti_view *view, const struct tutti_mapped *box);

/*
 * The next bytes of row y of slice z, from `at` on, that are not mapped, or with `written` not
 * mapped for writing: from *begin to the end that is returned; both are `width` when there are
 * none. With the view's lock held, or while no map or unmap can be executed.
 */
size_t tutti_view_next_unmapped(const struct tutti_view *view, bool written, size_t y, size_t z,
                                size_t at, size_t width, size_t *begin);

/* StarPU's data interface for views (interface.c). */
extern struct starpu_data_interface_ops tutti_interface_ops;

struct tutti_interface {
    int id;
    struct tutti_view *view;
    atomic_size_t size;           /* the view's, which StarPU asks for when that may be gone */
    struct tutti_storage storage; /* on a device; `mem` is NULL when it could not allocate: then
                                     commands that use the copy fail */
};

/* Makes the view known to StarPU: who must be, as it orders its users. */
starpu_data_handle_t tutti_interface_register(struct tutti_view *view);

static inline starpu_data_handle_t tutti_view_handle(struct tutti_view *view) {
    starpu_data_handle_t handle = atomic_load_explicit(&view->handle, memory_order_acquire);
    return handle ? handle : tutti_interface_register(view);
}

/* Nothing uses it any more. With `wait`, waits for StarPU to let go of it. */
void tutti_interface_unregister(struct tutti_view *view, bool wait);
/* Has StarPU, which knows of it, a copy of its own on a device? */
bool tutti_interface_is_elsewhere(starpu_data_handle_t handle);
/* Has the device no memory for what StarPU takes for its copy? */
bool tutti_interface_is_missing(starpu_data_handle_t handle,
                                const struct tutti_real_device *device);

/*
 * Is home memory all that there is of it, and nobody holds it by an acquisition? Then it may go, or
 * be used by the host if no command uses it, without asking StarPU.
 */
static inline bool tutti_view_is_just_home(const struct tutti_view *view) {
    starpu_data_handle_t handle = atomic_load_explicit(&view->handle, memory_order_acquire);
    return view->at_home && atomic_load_explicit(&view->holders, memory_order_acquire) == 0 &&
           !(handle && tutti_interface_is_elsewhere(handle));
}

#endif
