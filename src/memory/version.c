/* SPDX-License-Identifier: MIT */
#include "memory/version.h"

#include "env.h"
#include "memory/room.h"
#include "memory/window.h"
#include "recycler.h"

#include <sched.h>
#include <unistd.h>

/* As many commands of a loop can be under way at once on one buffer; more is no faster. */
#define MOST_VERSIONS 8
/*
 * Of a large buffer the host or a device uses one, one is on its way and one is computed: with two
 * they wait for each other, more would only take memory.
 */
#define MOST_LARGE 3
#define LARGE ((size_t)64 << 20)
#define LIMIT_AT_HOME ((size_t)1 << 30)

static size_t limit;
static atomic_size_t used; /* bytes of all versions but the first of each buffer */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/*
 * Beside a device with memory of its own a second storage lets the next transfer begin, whatever
 * the size: as much as leaves most of the host's memory, and of each such device's, to the program.
 */
static size_t default_limit(void) {
    const struct tutti_device_list *list = tutti_devices();
    size_t most = (size_t)sysconf(_SC_PHYS_PAGES) / 4 * (size_t)sysconf(_SC_PAGESIZE);
    if (tutti_devices_are_at_home(~0u))
        return least(most, LIMIT_AT_HOME);
    for (unsigned d = 0; d < list->count; d++)
        if (!list->device[d]->at_home)
            most = least(most, tutti_room_total(list->device[d]) / 4);
    return most;
}

static void read_limit(void) { limit = tutti_env_size(TUTTI_RENAME_LIMIT, default_limit()); }

static bool reserve(size_t size) {
    size_t before = atomic_load(&used);
    do {
        if (before >= limit || size > limit - before)
            return false;
    } while (!atomic_compare_exchange_weak(&used, &before, before + size));
    return true;
}

static struct tutti_view *create(cl_mem mem) {
    size_t size = mem->size;
    if (!reserve(size))
        return NULL;
    struct tutti_view *view = tutti_recycler_take(sizeof(*view));
    if (view && tutti_view_init(view, &mem->history, size, NULL))
        return view;
    tutti_recycler_give(view);
    atomic_fetch_sub(&used, size);
    return NULL;
}

static bool in_use(struct tutti_view *view) {
    return atomic_load_explicit(&view->users, memory_order_acquire) > 0;
}

/* Was it used last on that device, if it was on any? NULL: any will do. */
static bool is_seated(const struct tutti_view *view, const struct tutti_real_device *seat) {
    return !seat || !view->seat || view->seat == seat;
}

/* What is before a view in the ring, for `seat`; of any device if that is NULL. */
struct candidates {
    struct tutti_view *before_idle;   /* the youngest that nobody uses, which caches may have */
    struct tutti_view *before_oldest; /* but for the present one; NULL: none is of the device */
    unsigned count;                   /* of the device, with the present one */
};

static struct candidates find_candidates(cl_mem mem, const struct tutti_real_device *seat) {
    struct candidates found = {NULL, NULL, is_seated(mem->view, seat)};
    struct tutti_view *before = mem->view;
    for (unsigned i = 1; i < mem->versions; i++) {
        struct tutti_view *view = before->next_version;
        bool seated = is_seated(view, seat);
        found.count += seated;
        if (seated && !found.before_oldest)
            found.before_oldest = before;
        if (seated && !in_use(view))
            found.before_idle = before;
        before = view;
    }
    return found;
}

/* Puts one behind the present one in the ring, whose next is the oldest then. */
static struct tutti_view *make_next(cl_mem mem, struct tutti_view *view) {
    view->next_version = mem->view->next_version;
    mem->view->next_version = view;
    return view;
}

static struct tutti_view *take_out(struct tutti_view *before) {
    struct tutti_view *view = before->next_version;
    before->next_version = view->next_version;
    return view;
}

/*
 * The storage for an overwrite; with `mem->lock` held. `again`: of what nobody reads. Then two
 * copies at once are all that is gained, and memory that was never touched costs more than that:
 * twenty writes of 256 MiB went at 4.6 GB/s instead of 10.
 */
static struct tutti_view *next_version(cl_mem mem, bool again,
                                       const struct tutti_real_device *seat) {
    struct candidates found = find_candidates(mem, seat);
    if (found.before_idle)
        return make_next(mem, take_out(found.before_idle));
    if (again && mem->view->at_home)
        return mem->view;
    if (found.count < (mem->size < LARGE ? MOST_VERSIONS : MOST_LARGE)) {
        struct tutti_view *fresh = create(mem);
        mem->versions += fresh != NULL;
        if (fresh)
            return make_next(mem, fresh);
    }
    bool oldest = found.before_oldest && in_use(mem->view);
    return oldest ? make_next(mem, take_out(found.before_oldest)) : mem->view;
}

/* Parts of a buffer, and pointers that the program has, belong to the storage that there is. */
static bool may_rename(cl_mem mem) {
    return mem->type == CL_MEM_OBJECT_BUFFER && !mem->parent && !mem->host_ptr &&
           !mem->view->sibling && !mem->view->windows && limit > 0;
}

#define OF_DEVICES 32 /* where their number begins in `users` */

static unsigned long long one(enum tutti_user user) {
    return user == TUTTI_USER_DEVICE ? (1ull << OF_DEVICES) + 1 : 1;
}

static void rename_to(cl_mem mem, struct tutti_view *view) {
    view->open = mem->view->open;
    mem->view = view;
}

/* The storage for a command, where it is used on that device if `seat` is not NULL. */
static struct tutti_view *take(cl_mem mem, bool overwrites, enum tutti_user user,
                               const struct tutti_real_device *seat) {
    pthread_once(&once, read_limit);
    mem = tutti_window_storage_of(mem);
    bool unread = overwrites && user == TUTTI_USER_TRANSFER;
    if (overwrites && (in_use(mem->view) || !is_seated(mem->view, seat)) && may_rename(mem)) {
        pthread_mutex_lock(&mem->lock);
        if (mem->pins == 0)
            rename_to(mem, next_version(mem, unread && mem->view->unread, seat));
        pthread_mutex_unlock(&mem->lock);
    }
    mem->view->unread = unread;
    atomic_fetch_add_explicit(&mem->view->users, one(user), memory_order_relaxed);
    if (user == TUTTI_USER_HOST)
        atomic_fetch_add_explicit(&mem->view->of_host, 1, memory_order_relaxed);
    tutti_version_await_calls(mem->view);
    return mem->view;
}

struct tutti_view *tutti_version_take(cl_mem mem, bool overwrites, enum tutti_user user) {
    return take(mem, overwrites, user, NULL);
}

struct tutti_view *tutti_version_take_there(cl_mem mem, bool overwrites) {
    return take(mem, overwrites, TUTTI_USER_DEVICE, tutti_window_storage_of(mem)->view->seat);
}

struct tutti_view *tutti_version_take_for_launch(cl_mem mem, bool overwrites, bool elsewhere,
                                                 const struct tutti_real_device *seat) {
    mem = tutti_window_storage_of(mem);
    struct tutti_version_users users = tutti_version_users(mem->view);
    if (!elsewhere)
        overwrites = overwrites && (users.all > users.of_devices || !is_seated(mem->view, seat));
    return take(mem, overwrites, TUTTI_USER_DEVICE, seat);
}

struct tutti_version_users tutti_version_users(const struct tutti_view *view) {
    unsigned long long users = atomic_load_explicit(&view->users, memory_order_relaxed);
    return (struct tutti_version_users){
        .all = (unsigned)users,
        .of_devices = (unsigned)(users >> OF_DEVICES),
        .of_host = atomic_load_explicit(&view->of_host, memory_order_relaxed),
    };
}

void tutti_version_enter_call(struct tutti_view *view) {
    tutti_view_take_over(view);
    atomic_fetch_add_explicit(&view->in_calls, 1, memory_order_relaxed);
}

void tutti_version_leave_call(struct tutti_view *view) {
    tutti_view_hand_over(view);
    atomic_fetch_sub_explicit(&view->in_calls, 1, memory_order_release);
}

void tutti_version_await_calls(const struct tutti_view *view) {
    while (atomic_load_explicit(&view->in_calls, memory_order_acquire) > 0)
        sched_yield();
}

bool tutti_version_is_idle(cl_mem mem, bool but_devices) {
    const struct tutti_view *view = tutti_window_storage_of(mem)->view;
    struct tutti_version_users users = tutti_version_users(view);
    return view->at_home && !view->svm && users.all == (but_devices ? users.of_devices : 0) &&
           tutti_view_is_just_home(view);
}

bool tutti_version_is_free(cl_mem mem) {
    return mem->view->root == mem->view && !mem->view->sibling && tutti_version_is_idle(mem, false);
}

void tutti_version_give_back(struct tutti_view *view, enum tutti_user user) {
    if (!view)
        return;
    if (user == TUTTI_USER_HOST)
        atomic_fetch_sub_explicit(&view->of_host, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&view->users, one(user), memory_order_release);
}

void tutti_version_pin(cl_mem mem, bool overwrites) {
    pthread_once(&once, read_limit);
    pthread_mutex_lock(&mem->lock);
    if (overwrites && mem->pins == 0 && in_use(mem->view) && may_rename(mem)) {
        struct tutti_view *next = next_version(mem, false, NULL);
        /* Nothing would make the program wait for users of that. */
        if (!in_use(next) && tutti_view_home(next))
            rename_to(mem, next);
    }
    mem->pins++;
    pthread_mutex_unlock(&mem->lock);
}

bool tutti_version_pin_unused(cl_mem mem) {
    pthread_mutex_lock(&mem->lock);
    bool unused = !in_use(mem->view);
    mem->pins += unused;
    pthread_mutex_unlock(&mem->lock);
    return unused;
}

void tutti_version_unpin(cl_mem mem) {
    pthread_mutex_lock(&mem->lock);
    mem->pins--;
    pthread_mutex_unlock(&mem->lock);
}

unsigned tutti_version_pins(cl_mem mem) {
    pthread_mutex_lock(&mem->lock);
    unsigned pins = mem->pins;
    pthread_mutex_unlock(&mem->lock);
    return pins;
}

void tutti_version_destroy_all(cl_mem mem) {
    struct tutti_view *view = mem->view->next_version;
    for (; mem->versions > 1; mem->versions--) {
        struct tutti_view *next = view->next_version;
        atomic_fetch_sub(&used, view->size);
        tutti_view_destroy(view);
        tutti_recycler_give(view);
        view = next;
    }
    tutti_view_destroy(view);
    tutti_recycler_give(view);
}
