/* SPDX-License-Identifier: MIT */
#include "memory/window.h"

#include "log.h"
#include "memory/coherence.h"
#include "memory/room.h"
#include "sched/batch_users.h"
#include "virtual_device/driver.h"
#include "virtual_device/given.h"

#include <stdlib.h>

/* Exchanges between a part and the whole count so much, other uses of parts less: */
#define EXCHANGE 4
#define TRANSFER 4 /* which could go beside kernels, */
#define SHARED 4   /* as these beside others; any other kernel counts one */
#define ENOUGH 16
#define MOST 32
/* Uses of windows, none of the whole between them, until they are parts again. */
#define MOST_APART 64
/* Of a buffer with more parts only so many are asked who used them. */
#define PARTS_ASKED 64
/* Of a device's memory such a buffer takes this part at most. */
#define ROOM 4

/* A device's sub-buffers of one view, those of one more command apart. */
#define MOST_SEEN 64

/*
 * A driver's sub-buffer. NVIDIA's (580.159) ends the process when one is released that overlaps
 * with a younger one that is there: so all of a device are released at once, the last one first.
 */
struct tutti_window {
    struct tutti_window *next;
    const struct tutti_real_device *device;
    cl_mem whole, mem; /* the buffer it is of, and itself */
    size_t origin, size;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all views' `seen`; innermost */

/* Is the device's memory large enough for all of it, and more? Parts alone might leave it. */
static bool has_room(const struct tutti_view *root, const struct tutti_real_device *device) {
    return root->at_home || (root->size <= device->max_mem_alloc_size &&
                             root->size <= tutti_room_total(device) / ROOM);
}

/* Bits of the devices that used it; the last one, where not all work in home memory. */
static unsigned users_of(struct tutti_view *view) {
    tutti_batch_last_of(view); /* makes it known */
    return view->seat && !view->at_home ? 1u << view->seat->index
                                        : tutti_history_users(view->history);
}

/*
 * Does one device alone use the buffer and its parts, as far as is known, or as only this `able`
 * one can? Then nothing would be gained by more storage.
 */
static bool has_one_user(struct tutti_view *root, unsigned able) {
    unsigned users = 0, asked = 0;
    for (struct tutti_view *view = root; view && asked++ < PARTS_ASKED; view = view->sibling)
        users |= users_of(view);
    users = users ? users : able;
    return tutti_is_one_device(users) &&
           has_room(root, tutti_devices()->device[__builtin_ctz(users)]);
}

static bool may_open(cl_mem whole) {
    return !whole->is_svm && !whole->host_ptr && whole->type == CL_MEM_OBJECT_BUFFER &&
           !atomic_load_explicit(&whole->barred, memory_order_relaxed);
}

static void add(cl_mem whole, unsigned more) {
    unsigned sum = whole->exchanges + more;
    whole->exchanges = sum < MOST ? sum : MOST;
}

static void take(cl_mem whole, unsigned less) {
    whole->exchanges -= whole->exchanges < less ? whole->exchanges : less;
}

static bool open_all(cl_mem whole) {
    tutti_batch_flush(&whole->context->graph);
    if (!tutti_coherence_open(whole->view))
        return false;
    whole->apart = whole->exchanges = 0;
    tutti_log(DEBUG, "the parts of a buffer of %zu bytes become windows", whole->size);
    return true;
}

static bool close_all(cl_mem whole) {
    if (!whole->view->open)
        return true;
    tutti_batch_flush(&whole->context->graph);
    tutti_log(DEBUG, "the windows of a buffer of %zu bytes become parts", whole->size);
    return tutti_coherence_close(whole->view);
}

/* Windows were used, the whole was not. */
static bool note_apart(cl_mem whole, unsigned uses) {
    whole->apart += uses;
    return whole->apart <= MOST_APART || close_all(whole);
}

bool tutti_window_note_kernel(cl_mem mem, unsigned able, bool shares) {
    cl_mem whole = tutti_mem_whole(mem);
    struct tutti_view *root = whole->view;
    if (root->open) {
        if (mem != whole)
            return note_apart(whole, shares ? SHARED : 1);
        whole->apart = 0;
        return true;
    }
    if (!root->sibling)
        return true;
    if (!tutti_coherence_is_stale(mem->view, 0, mem->view->size)) {
        take(whole, 1);
        return true;
    }
    if (shares || !may_open(whole) || !has_one_user(root, able))
        whole->exchanges = 0;
    else
        add(whole, EXCHANGE);
    return whole->exchanges < ENOUGH || open_all(whole);
}

bool tutti_window_note_transfer(cl_mem mem) {
    cl_mem whole = tutti_mem_whole(mem);
    if (mem == whole)
        return true;
    if (whole->view->open)
        return note_apart(whole, TRANSFER);
    take(whole, TRANSFER);
    return true;
}

bool tutti_window_close(cl_mem mem) { return close_all(tutti_mem_whole(mem)); }

struct bar {
    cl_mem whole;
    bool done;
};

static void bar(void *argument) {
    struct bar *bar = argument;
    bar->done = close_all(bar->whole);
    if (bar->done)
        atomic_store(&bar->whole->barred, true);
}

bool tutti_window_bar(cl_mem mem) {
    struct bar call = {tutti_mem_whole(mem), true};
    if (!atomic_load(&call.whole->barred))
        tutti_graph_call(&mem->context->graph, bar, &call);
    return call.done;
}

static void release(struct tutti_window *window) {
    tutti_given_release(window->device);
    tutti_driver_lock(window->device);
    window->device->dispatch->clReleaseMemObject(window->mem);
    tutti_driver_unlock(window->device);
    free(window);
}

static struct tutti_window *create(const struct tutti_real_device *device, cl_mem whole,
                                   const struct tutti_view *part, cl_int *error) {
    struct tutti_window *window = malloc(sizeof(*window));
    cl_buffer_region region = {part->origin, part->size};
    *error = CL_OUT_OF_HOST_MEMORY;
    if (!window)
        return NULL;
    tutti_driver_lock(device);
    cl_mem mem = device->dispatch->clCreateSubBuffer(whole, CL_MEM_READ_WRITE,
                                                     CL_BUFFER_CREATE_TYPE_REGION, &region, error);
    tutti_driver_unlock(device);
    if (*error != CL_SUCCESS) {
        free(window);
        return NULL;
    }
    *window = (struct tutti_window){NULL, device, whole, mem, part->origin, part->size};
    return window;
}

/* Takes those of the device out of the list, in their order. Lock held. */
static struct tutti_window *take_all(struct tutti_view *view,
                                     const struct tutti_real_device *device) {
    struct tutti_window *taken = NULL, **last = &taken, **link = &view->seen;
    while (*link) {
        struct tutti_window *window = *link;
        if (window->device != device) {
            link = &window->next;
            continue;
        }
        *link = window->next;
        window->next = NULL;
        *last = window;
        last = &window->next;
    }
    return taken;
}

static void release_all(struct tutti_window *window) {
    while (window) {
        struct tutti_window *next = window->next;
        release(window);
        window = next;
    }
}

void tutti_window_forget(struct tutti_view *view, const struct tutti_real_device *device) {
    pthread_mutex_lock(&lock);
    struct tutti_window *gone = take_all(view, device);
    pthread_mutex_unlock(&lock);
    release_all(gone);
}

void tutti_window_make_room(struct tutti_view *view, const struct tutti_real_device *device) {
    unsigned count = 0;
    pthread_mutex_lock(&lock);
    for (const struct tutti_window *window = view->seen; window; window = window->next)
        count += window->device == device;
    pthread_mutex_unlock(&lock);
    if (count > MOST_SEEN)
        tutti_window_forget(view, device);
}

static struct tutti_window *find(struct tutti_view *view, const struct tutti_real_device *device,
                                 cl_mem whole, const struct tutti_view *part) {
    pthread_mutex_lock(&lock);
    struct tutti_window *window = view->seen;
    while (window && !(window->device == device && window->whole == whole &&
                       window->origin == part->origin && window->size == part->size))
        window = window->next;
    pthread_mutex_unlock(&lock);
    return window;
}

static struct tutti_window *make(struct tutti_view *view, const struct tutti_real_device *device,
                                 cl_mem whole, const struct tutti_view *part, cl_int *error) {
    struct tutti_window *window = create(device, whole, part, error);
    if (window) {
        pthread_mutex_lock(&lock);
        window->next = view->seen;
        view->seen = window;
        pthread_mutex_unlock(&lock);
    }
    return window;
}

cl_int tutti_window_find(struct tutti_view *view, const struct tutti_view *part,
                         const struct tutti_real_device *device, const struct tutti_storage *whole,
                         struct tutti_storage *storage) {
    cl_int error = CL_SUCCESS;
    struct tutti_window *window = find(view, device, whole->mem, part);
    if (!window && !(window = make(view, device, whole->mem, part, &error)))
        return error;
    *storage = (struct tutti_storage){.mem = window->mem,
                                      .argument = window->mem,
                                      .bytes = whole->bytes ? whole->bytes + part->origin : NULL,
                                      .at_home = whole->at_home};
    return CL_SUCCESS;
}
