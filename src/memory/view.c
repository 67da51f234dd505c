/* SPDX-License-Identifier: MIT */
#include "memory/view.h"

#include "log.h"
#include "memory/block.h"
#include "memory/kept_home.h"
#include "memory/locked_pages.h"
#include "memory/pinned.h"
#include "memory/relay.h"
#include "memory/stay.h"
#include "memory/transfer_path.h"
#include "memory/window.h"
#include "sched/runtime.h"

#include <stdlib.h>
#include <string.h>

/* Drivers have copied smaller transfers before memory could be locked for them. */
#define LEAST_PINNED ((size_t)64 << 10)
/*
 * The program's pages are locked for this view, if not for longer (locked_pages.h). To lock and
 * unlock them costs NVIDIA's driver what it costs to move them, and half a millisecond, in which it
 * moves so much of other memory: it pays when there is more to come.
 */
#define LEAST_LOCKED ((size_t)64 << 10)
#define TO_LOCK ((size_t)4 << 20)
#define WORTH_LOCKING 3 /* times its size, and TO_LOCK */
#define TRIED SIZE_MAX
/* Of smaller ones each takes threads that wake, one after the other (hop.c). */
#define LEAST_FOR_ONCE ((size_t)16 << 20)

struct tutti_region tutti_view_whole(const struct tutti_view *view) {
    const struct tutti_shape *shape = &view->shape;
    if (!tutti_shape_is_boxed(shape))
        return tutti_region_linear(view->size);
    return (struct tutti_region){{shape->size[0] * shape->element, shape->size[1], shape->size[2]}};
}

bool tutti_view_is_whole(const struct tutti_view *view, const struct tutti_place *place,
                         const struct tutti_region *region) {
    struct tutti_region whole = tutti_view_whole(view);
    return tutti_place_first(place) == 0 && memcmp(&whole, region, sizeof(whole)) == 0;
}

static bool init(struct tutti_view *view, struct tutti_history *history, size_t size,
                 const struct tutti_shape *shape, void *users) {
    memset(view, 0, sizeof(*view));
    if (pthread_mutex_init(&view->lock, NULL) != 0)
        return false;
    if (shape)
        view->shape = *shape;
    view->history = history;
    view->root = view;
    view->next_version = view;
    view->size = size;
    view->home = users;
    view->home_is_users = users != NULL;
    view->defined = users != NULL;
    return true;
}

/* Home memory that a device which shares host memory can work in: without padding. */
static bool is_packed(const struct tutti_view *view) {
    static const struct tutti_place start;
    struct tutti_place packed = tutti_view_packed(view, &start);
    struct tutti_place at_home = tutti_view_at_home(view, &start);
    return packed.row_pitch == at_home.row_pitch && packed.slice_pitch == at_home.slice_pitch;
}

/*
 * Where all drivers work in home memory each would take the program's as it is. Kernels may load
 * vectors of four floats from it, as from what malloc returns.
 */
static bool is_aligned(const struct tutti_view *view) {
    return (uintptr_t)view->home % sizeof(cl_float4) == 0;
}

/* The devices are known, and what is the home memory if that is the program's. Is it to be used? */
static void enter(struct tutti_view *view, bool used) {
    const struct tutti_device_list *list = tutti_devices();
    view->at_home = is_packed(view);
    for (unsigned d = 0; d < list->count && view->at_home; d++) {
        const struct tutti_real_device *device = list->device[d];
        view->at_home = device->at_home && is_aligned(view);
    }
    if (used && !view->at_home) /* else StarPU need not know of it yet */
        tutti_interface_register(view);
}

bool tutti_view_init(struct tutti_view *view, struct tutti_history *history, size_t size,
                     void *users) {
    if (!init(view, history, size, NULL, users))
        return false;
    enter(view, true);
    return true;
}

bool tutti_view_init_image(struct tutti_view *view, struct tutti_history *history,
                           const struct tutti_shape *shape, void *users, size_t row_pitch,
                           size_t slice_pitch) {
    static const struct tutti_place start;
    if (!init(view, history, tutti_shape_bytes(shape), shape, users))
        return false;
    struct tutti_place packed = tutti_view_packed(view, &start);
    view->row_pitch = users ? row_pitch : packed.row_pitch;
    view->slice_pitch = users ? slice_pitch : packed.slice_pitch;
    enter(view, true);
    return true;
}

bool tutti_view_init_part(struct tutti_view *view, struct tutti_history *history,
                          struct tutti_view *root, size_t origin, size_t size,
                          const struct tutti_shape *shape) {
    if (!init(view, history, size, shape, NULL))
        return false;
    enter(view, !root->open);
    view->root = root;
    view->origin = origin;
    struct tutti_view **list = root->open ? &root->windows : &root->sibling;
    view->sibling = *list;
    *list = view;
    return true;
}

/* `home`: NULL if the device can't work there. */
static cl_int create_storage(struct tutti_view *view, const struct tutti_real_device *device,
                             void *home, struct tutti_storage *storage) {
    if (!view->svm)
        return tutti_storage_create(device, &view->shape, view->size, home, storage);
    /* Kernels get its address. */
    storage->bytes = home;
    storage->at_home = true;
    return CL_SUCCESS;
}

cl_int tutti_view_create_storage(struct tutti_view *view, const struct tutti_real_device *device,
                                 struct tutti_storage *storage) {
    memset(storage, 0, sizeof(*storage));
    if (view->at_home) {
        *storage = *tutti_view_storage(view, device);
        return storage->at_home ? CL_SUCCESS : CL_MEM_OBJECT_ALLOCATION_FAILURE;
    }
    bool at_home = view->svm || (device->at_home && is_packed(view));
    void *home = at_home ? tutti_view_home(view) : NULL;
    /*
     * The program's memory, and what a driver locked, lie as they happen to. Without `home`,
     * another thread may be making it.
     */
    if (home && (view->home_is_users || view->pinned) && !view->svm &&
        !tutti_storage_may_use(device, home))
        home = NULL;
    return create_storage(view, device, home, storage);
}

void tutti_view_release_storage(struct tutti_view *view, const struct tutti_real_device *device,
                                struct tutti_storage *storage) {
    tutti_window_forget(view, device);
    if (!view->at_home)
        tutti_storage_release(device, &view->shape, view->size, storage);
}

/* Do bytes of a buffer go to and from all memory nearly as fast as from what is page-locked? */
static bool needs_no_lock(const struct tutti_view *view) {
    const struct tutti_device_list *list = tutti_devices();
    bool none = !tutti_shape_is_boxed(&view->shape) && view->size >= LEAST_FOR_ONCE;
    for (unsigned d = 0; d < list->count && none; d++)
        none = list->device[d]->place.devid < 0 || list->device[d]->shares_host ||
               tutti_transfer_path_threads(list->device[d], view->size) > 0;
    return none;
}

/* With the view's lock held. */
static void *make_home(struct tutti_view *view, bool once) {
    if (view->home || tutti_kept_home_take(view))
        return view->home;
    if (view->size >= LEAST_PINNED)
        view->pinned = once && needs_no_lock(view) ? tutti_pinned_allocate_for_once(view->size)
                                                   : tutti_pinned_allocate(view->size);
    if (view->pinned)
        view->home = tutti_pinned_bytes(view->pinned);
    if (!view->home)
        view->home = tutti_block_allocate(view->size);
    return view->home;
}

const struct tutti_storage *tutti_view_make_storage(struct tutti_view *view,
                                                    const struct tutti_real_device *device) {
    static const struct tutti_storage none;
    pthread_mutex_lock(&view->lock);
    void *home = make_home(view, false);
    if (!view->real)
        view->real = calloc(tutti_devices()->count, sizeof(*view->real));
    struct tutti_storage *storage = view->real ? &view->real[device->index] : NULL;
    if (storage && home && !storage->at_home) {
        cl_int error = create_storage(view, device, home, storage);
        if (error != CL_SUCCESS)
            tutti_log(ERROR, "%s: no memory object for %zu bytes (error %d)", device->name,
                      view->size, error);
    }
    if (storage && storage->at_home)
        atomic_fetch_or_explicit(&view->made, 1u << device->index, memory_order_release);
    pthread_mutex_unlock(&view->lock);
    return storage ? storage : &none;
}

static void forget_windows(struct tutti_view *view) {
    const struct tutti_device_list *list = tutti_devices();
    for (unsigned d = 0; d < list->count; d++)
        tutti_window_forget(view, list->device[d]);
}

static void release_storage(struct tutti_view *view) {
    const struct tutti_device_list *list = tutti_devices();
    for (unsigned d = 0; d < list->count && view->real; d++)
        tutti_storage_release(list->device[d], &view->shape, view->size, &view->real[d]);
}

void tutti_view_forget_stale(struct tutti_view *view) {
    while (view->stale) {
        struct tutti_stale *stale = view->stale;
        view->stale = stale->next;
        free(stale);
    }
}

void tutti_view_destroy(struct tutti_view *view) {
    if (tutti_runtime_usable()) {
        view->leaving = true;
        tutti_runtime_busy();
        tutti_stay_end(view);
        tutti_interface_unregister(view, !tutti_view_is_just_home(view));
        tutti_view_take_over(view);
        forget_windows(view);
        if (!tutti_kept_home_give(view))
            release_storage(view);
        tutti_runtime_idle(1);
        if (!view->home_is_users && !view->pinned)
            tutti_block_free(view->home, view->size);
        tutti_pinned_free(view->pinned);
    }
    tutti_view_forget_stale(view);
    while (view->mapped) {
        struct tutti_mapped *mapped = view->mapped;
        view->mapped = mapped->next;
        tutti_recycler_give(mapped);
    }
    tutti_last_user_release(view->last_user);
    free(view->real);
    pthread_mutex_destroy(&view->lock);
}

static void *find_home(struct tutti_view *view, bool once) {
    pthread_mutex_lock(&view->lock);
    void *home = make_home(view, once);
    pthread_mutex_unlock(&view->lock);
    return home;
}

void *tutti_view_home(struct tutti_view *view) { return find_home(view, false); }

void *tutti_view_home_for_once(struct tutti_view *view) { return find_home(view, true); }

bool tutti_view_has_locked_home(struct tutti_view *view) {
    pthread_mutex_lock(&view->lock);
    bool locked = view->home && view->pinned;
    pthread_mutex_unlock(&view->lock);
    return locked;
}

/* From the first byte of the home memory to the last, padding between included. */
static size_t home_bytes(const struct tutti_view *view) {
    static const struct tutti_place start;
    struct tutti_place at_home = tutti_view_at_home(view, &start);
    struct tutti_region whole = tutti_view_whole(view);
    return tutti_place_end(&at_home, &whole);
}

void tutti_view_lock_home(struct tutti_view *view, const struct tutti_real_device *device,
                          size_t bytes) {
    if (!view->home_is_users || view->svm || view->size < LEAST_LOCKED || device->at_home)
        return;
    size_t worth = WORTH_LOCKING * view->size + TO_LOCK, size = home_bytes(view);
    tutti_locked_pages_use(device, view->home, size, bytes);
    tutti_locked_pages_wait(view->home, size);
    pthread_mutex_lock(&view->lock);
    if (view->moved != TRIED && (view->moved += bytes) >= worth) {
        view->moved = TRIED; /* once */
        if (!tutti_pinned_covers(view->home, size))
            view->pinned = tutti_pinned_lock(view->home, size);
    }
    pthread_mutex_unlock(&view->lock);
}

void tutti_view_unlock_home(struct tutti_view *view) {
    struct tutti_pinned *pinned = NULL;
    pthread_mutex_lock(&view->lock);
    if (view->home_is_users) {
        pinned = view->pinned;
        view->pinned = NULL;
        view->moved = TRIED;
    }
    pthread_mutex_unlock(&view->lock);
    tutti_pinned_free(pinned);
}

/* Is home memory owed bytes by a copy that stands for them? If that one is not valid, it pays. */
static bool owed(struct tutti_view *view) {
    const struct tutti_real_device *debtor = tutti_relay_debtor(view);
    int valid = 0;
    if (debtor)
        starpu_data_query_status(tutti_view_handle(view), (int)debtor->place.node, NULL, &valid,
                                 NULL);
    if (debtor && !valid)
        tutti_relay_settle(view);
    return valid;
}

void tutti_view_copies(struct tutti_view *view, struct tutti_copies *copies) {
    const struct tutti_device_list *list = tutti_devices();
    starpu_data_handle_t handle = atomic_load_explicit(&view->handle, memory_order_acquire);
    int valid = 0;
    copies->count = 0;
    copies->home = true;
    if (!handle) /* StarPU has no other, as it does not know of the view */
        return;
    starpu_data_query_status(handle, STARPU_MAIN_RAM, NULL, &valid, NULL);
    copies->home = valid && !owed(view);
    for (unsigned d = 0; d < list->count; d++) {
        struct tutti_real_device *device = list->device[d];
        if (device->place.devid < 0)
            continue;
        starpu_data_query_status(handle, (int)device->place.node, NULL, &valid, NULL);
        if (!valid)
            continue;
        struct tutti_interface *interface =
            starpu_data_get_interface_on_node(handle, device->place.node);
        if (interface->storage.at_home || tutti_storage_is_missing(&interface->storage)) {
            copies->home = true;
            continue;
        }
        copies->on[copies->count].device = device;
        copies->on[copies->count].mem = interface->storage.mem;
        copies->on[copies->count].bytes = interface->storage.bytes;
        copies->count++;
    }
}

bool tutti_view_add_mapped(struct tutti_view *view, const struct tutti_mapped *box) {
    struct tutti_mapped *mapped = tutti_recycler_take(sizeof(*mapped));
    if (!mapped)
        return false;
    *mapped = *box;
    pthread_mutex_lock(&view->lock);
    mapped->next = view->mapped;
    view->mapped = mapped;
    pthread_mutex_unlock(&view->lock);
    tutti_relay_wait(view);
    return true;
}

/* The link to that box in the list, or to its end. With the view's lock held. */
static struct tutti_mapped **find_mapped(struct tutti_view *view, const struct tutti_mapped *box) {
    struct tutti_mapped **link = &view->mapped;
    while (*link && ((*link)->written != box->written ||
                     memcmp((*link)->place.origin, box->place.origin, sizeof(box->place.origin)) ||
                     memcmp(&(*link)->region, &box->region, sizeof(box->region))))
        link = &(*link)->next;
    return link;
}

bool tutti_view_is_mapped(struct tutti_view *view, const struct tutti_mapped *box) {
    pthread_mutex_lock(&view->lock);
    bool found = *find_mapped(view, box) != NULL;
    pthread_mutex_unlock(&view->lock);
    return found;
}

void tutti_view_remove_mapped(struct tutti_view *view, const struct tutti_mapped *box) {
    pthread_mutex_lock(&view->lock);
    struct tutti_mapped **link = find_mapped(view, box);
    struct tutti_mapped *mapped = *link;
    if (mapped)
        *link = mapped->next;
    pthread_mutex_unlock(&view->lock);
    tutti_recycler_give(mapped);
}

/* Does a mapped box reach into row y of slice z? Then which of its bytes. */
static bool mapped_in_row(const struct tutti_mapped *mapped, size_t y, size_t z, size_t *begin,
                          size_t *end) {
    const size_t *origin = mapped->place.origin, *size = mapped->region.size;
    *begin = origin[0];
    *end = origin[0] + size[0];
    return y - origin[1] < size[1] && z - origin[2] < size[2];
}

size_t tutti_view_next_unmapped(const struct tutti_view *view, bool written, size_t y, size_t z,
                                size_t at, size_t width, size_t *begin) {
    size_t from, to, end = width;
    const struct tutti_mapped *m = view->mapped;
    while (m) { /* past all that covers `at` */
        if (m->written >= written && mapped_in_row(m, y, z, &from, &to) && from <= at && at < to) {
            at = to;
            m = view->mapped;
        } else {
            m = m->next;
        }
    }
    for (m = view->mapped; m; m = m->next)
        if (m->written >= written && mapped_in_row(m, y, z, &from, &to) && from > at && from < end)
            end = from;
    *begin = at;
    return end;
}
