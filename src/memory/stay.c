/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "memory/stay.h"

#include "brief_lock.h"
#include "memory/room.h"
#include "recycler.h"
#include "sched/idle.h"
#include "sched/pool.h"

/*
 * Bytes: of one that is early, whose transfer is short, or that needs none as all of it is written;
 * and of all together on a device, as they can't be evicted.
 */
#define LARGEST_EARLY ((size_t)256 << 10)
#define LARGEST_WRITTEN_EARLY ((size_t)16 << 20)
#define MOST_EARLY ((size_t)64 << 20)

static atomic_size_t early[TUTTI_MAX_DEVICES]; /* bytes */

static pthread_mutex_t lock = TUTTI_BRIEF_LOCK; /* guards all views' `stay` */
static struct tutti_stay *first;

/* Held while other threads than the dispatching one end stays: no view goes meanwhile. */
static pthread_mutex_t leaving = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static bool is_good_for(const struct tutti_stay *stay, const struct tutti_real_device *device,
                        enum starpu_data_access_mode mode) {
    return stay && stay->device == device && (stay->writes || mode == STARPU_R) &&
           atomic_load(&stay->storage);
}

bool tutti_stay_is_there(struct tutti_view *view, const struct tutti_real_device *device,
                         enum starpu_data_access_mode mode) {
    pthread_mutex_lock(&lock);
    bool there = is_good_for(view->stay, device, mode);
    pthread_mutex_unlock(&lock);
    return there;
}

struct tutti_stay *tutti_stay_take(struct tutti_view *view, const struct tutti_real_device *device,
                                   enum starpu_data_access_mode mode) {
    pthread_mutex_lock(&lock);
    struct tutti_stay *stay = view->stay;
    bool good = is_good_for(stay, device, mode);
    if (good)
        atomic_fetch_add(&stay->references, 1);
    else if (is_good_for(stay, device, STARPU_R))
        view->history->takes_turns = true;
    pthread_mutex_unlock(&lock);
    return good ? stay : NULL;
}

bool tutti_stay_goes_on(const struct tutti_stay *stay) {
    pthread_mutex_lock(&lock);
    bool goes_on = stay->view->stay == stay;
    pthread_mutex_unlock(&lock);
    return goes_on;
}

bool tutti_stay_orders(struct tutti_view *view, const struct tutti_real_device *device,
                       enum starpu_data_access_mode mode) {
    pthread_mutex_lock(&lock);
    struct tutti_stay *stay = view->stay;
    bool orders = is_good_for(stay, device, mode) &&
                  atomic_load(mode == STARPU_R ? &stay->writers : &stay->under_way) > 0;
    pthread_mutex_unlock(&lock);
    return orders;
}

bool tutti_stay_is_downloaded(struct tutti_view *view) {
    pthread_mutex_lock(&lock);
    const struct tutti_stay *stay = view->stay;
    bool downloaded = stay && stay->downloaded && atomic_load(&stay->under_way) > 0;
    pthread_mutex_unlock(&lock);
    return downloaded;
}

struct tutti_stay *tutti_stay_join(struct tutti_view *view, enum starpu_data_access_mode mode) {
    pthread_mutex_lock(&lock);
    struct tutti_stay *stay = view->stay;
    if (stay && (stay->writes || stay->silent || mode == STARPU_R)) {
        atomic_fetch_add(&stay->references, 1);
        stay->writes = stay->writes || mode != STARPU_R;
    } else {
        stay = NULL;
    }
    pthread_mutex_unlock(&lock);
    return stay;
}

static bool has_users(const struct tutti_view *view, unsigned users) {
    return (unsigned)atomic_load_explicit(&view->users, memory_order_acquire) == users;
}

bool tutti_stay_is_ready(struct tutti_view *view, const struct tutti_real_device *device,
                         enum starpu_data_access_mode mode, unsigned users) {
    int allocated = 0, valid = 0;
    if (!has_users(view, users))
        return false;
    starpu_data_handle_t handle = atomic_load_explicit(&view->handle, memory_order_acquire);
    if (!handle)
        return view->at_home || !tutti_room_is_full(device);
    starpu_data_query_status(handle, tutti_view_node(view, device), &allocated, &valid, NULL);
    if (allocated && !view->at_home && tutti_interface_is_missing(handle, device))
        return false;
    return mode == STARPU_W ? allocated : valid;
}

static bool may_be_early(struct tutti_view *view, const struct tutti_real_device *device,
                         enum starpu_data_access_mode mode) {
    size_t most = mode == STARPU_W ? LARGEST_WRITTEN_EARLY : LARGEST_EARLY;
    starpu_data_handle_t handle = atomic_load_explicit(&view->handle, memory_order_acquire);
    if (view->at_home || device->at_home || view->size > most || view->home_is_users ||
        view->root != view || view->sibling || view->svm || view->shape.type ||
        atomic_load_explicit(&view->holders, memory_order_acquire) > 0 ||
        (handle && tutti_interface_is_elsewhere(handle)))
        return false;
    pthread_mutex_lock(&lock);
    bool stays = view->stay != NULL;
    pthread_mutex_unlock(&lock);
    return !stays && atomic_load(&early[device->index]) + view->size <= MOST_EARLY &&
           !tutti_room_is_scarce(device) && !tutti_room_is_full(device);
}

bool tutti_stay_may_be_early(struct tutti_view *view, const struct tutti_real_device *device,
                             enum starpu_data_access_mode mode, unsigned users) {
    return has_users(view, users) && may_be_early(view, device, mode);
}

static bool make_early(struct tutti_stay *stay) {
    if (tutti_view_create_storage(stay->view, stay->device, &stay->own) != CL_SUCCESS)
        return false;
    atomic_fetch_add(&early[stay->device->index], stay->view->size);
    return true;
}

/* The view goes. */
static void drop_early(struct tutti_stay *stay) {
    atomic_fetch_sub(&early[stay->device->index], stay->view->size);
    tutti_view_release_storage(stay->view, stay->device, &stay->own);
}

bool tutti_stay_hand_out(struct tutti_view *view, const struct tutti_real_device *device,
                         struct tutti_storage *storage) {
    struct tutti_stay *stay = atomic_load(&view->announced);
    if (!stay || stay->device != device)
        return false;
    atomic_store(&view->announced, NULL);
    atomic_store(&view->ahead, true);
    atomic_fetch_sub(&early[device->index], view->size);
    *storage = stay->own;
    return true;
}

static const struct tutti_storage *find_storage(const struct tutti_stay *stay) {
    if (stay->early)
        return &stay->own;
    if (stay->view->at_home)
        return tutti_view_storage(stay->view, stay->device);
    const struct tutti_interface *interface =
        starpu_data_get_interface_on_node(tutti_view_handle(stay->view), stay->device->place.node);
    return &interface->storage;
}

static void acquired(void *argument) {
    struct tutti_stay *stay = argument;
    tutti_view_take_over(stay->view);
    atomic_store(&stay->storage, find_storage(stay));
    stay->granted(stay, stay->argument);
}

static void acquired_from_starpu(void *argument) {
    tutti_idle_end();
    acquired(argument);
}

/* `then` begins with tutti_idle_end. */
static void acquire(struct tutti_stay *stay, enum starpu_data_access_mode mode,
                    void (*then)(void *argument)) {
    tutti_idle_begin();
    starpu_data_acquire_on_node_cb(tutti_view_handle(stay->view),
                                   tutti_view_node(stay->view, stay->device), mode, then, stay);
}

/* Takes the view's stay away from it, with its reference. Lock held. */
static struct tutti_stay *detach(struct tutti_view *view) {
    struct tutti_stay *stay = view->stay;
    if (stay) {
        view->stay = NULL;
        *stay->link = stay->next;
        if (stay->next)
            stay->next->link = stay->link;
    }
    return stay;
}

static void attach(struct tutti_stay *stay) {
    pthread_mutex_lock(&lock);
    struct tutti_stay *old = detach(stay->view);
    stay->next = first;
    stay->link = &first;
    if (first)
        first->link = &stay->next;
    first = stay;
    stay->view->stay = stay;
    pthread_mutex_unlock(&lock);
    tutti_stay_release(old);
}

/* Has none but this device, and home, the view's content? */
static bool is_on_no_other(struct tutti_view *view, const struct tutti_real_device *device) {
    const struct tutti_device_list *list = tutti_devices();
    starpu_data_handle_t handle = atomic_load_explicit(&view->handle, memory_order_acquire);
    int valid = 0;
    for (unsigned d = 0; d < list->count && handle && !valid; d++)
        if (list->device[d] != device && list->device[d]->place.devid >= 0)
            starpu_data_query_status(handle, tutti_view_node(view, list->device[d]), NULL, &valid,
                                     NULL);
    return !valid;
}

struct tutti_stay *tutti_stay_begin(struct tutti_view *view, struct tutti_real_device *device,
                                    enum starpu_data_access_mode mode, bool alone,
                                    void (*granted)(struct tutti_stay *stay, void *argument),
                                    void *argument) {
    struct tutti_stay *stay = tutti_recycler_take(sizeof(*stay));
    if (!stay)
        return NULL;
    *stay = (struct tutti_stay){0};
    atomic_init(&stay->references, 2); /* the view's and the caller's */
    atomic_init(&stay->storage, NULL);
    stay->view = view;
    stay->device = device;
    if (mode == STARPU_R && view->history->takes_turns && is_on_no_other(view, device))
        mode = STARPU_RW;
    stay->writes = mode != STARPU_R;
    stay->early = alone && may_be_early(view, device, mode) && make_early(stay);
    stay->silent = stay->early || (alone && tutti_view_is_just_home(view));
    if (stay->early || (stay->silent && tutti_devices()->serving == 1))
        stay->writes = true; /* no other device would read at the same time */
    stay->granted = granted;
    stay->argument = argument;
    attach(stay);
    if (stay->silent)
        acquired(stay);
    else
        acquire(stay, mode, acquired_from_starpu);
    return stay;
}

void tutti_stay_release(struct tutti_stay *stay) {
    if (!stay || atomic_fetch_sub(&stay->references, 1) != 1)
        return;
    tutti_view_hand_over(stay->view);
    if (!stay->silent)
        starpu_data_release_on_node(tutti_view_handle(stay->view),
                                    tutti_view_node(stay->view, stay->device));
    else if (stay->early)
        drop_early(stay);
    tutti_recycler_give(stay);
}

static void release(void *argument) {
    struct tutti_stay *stay = argument;
    tutti_idle_end();
    if (stay->early)
        atomic_store(&stay->view->ahead, false);
    tutti_stay_release(stay);
}

/* Lets StarPU know of it, which has not ended: it is granted as soon as nothing is before it. */
static void announce(struct tutti_stay *stay) {
    stay->silent = false;
    if (stay->early)
        atomic_store(&stay->view->announced, stay);
    atomic_fetch_add(&stay->references, 1);
    acquire(stay, stay->writes ? STARPU_RW : STARPU_R, release);
}

void tutti_stay_make_way(struct tutti_view *view, bool writes) {
    pthread_mutex_lock(&lock);
    struct tutti_stay *stay = NULL;
    /* Readers may share it; but one that StarPU does not know of may come to write (join). */
    if (view->stay && (writes || view->stay->writes || view->stay->silent))
        stay = detach(view);
    pthread_mutex_unlock(&lock);
    /* An early one is more than home has, unless the view goes. */
    bool more = stay && stay->early && !atomic_load(&view->leaving);
    if (stay && stay->silent && (more || atomic_load(&stay->references) > 1))
        announce(stay);
    tutti_stay_release(stay);
}

void tutti_stay_end(struct tutti_view *view) {
    tutti_stay_make_way(view, true);
    pthread_mutex_lock(&leaving);
    pthread_mutex_unlock(&leaving);
}

static void leave(const struct tutti_real_device *device) {
    struct tutti_stay *stay;
    pthread_mutex_lock(&leaving);
    do {
        pthread_mutex_lock(&lock);
        stay = first;
        /* What is at home needs no memory. */
        while (stay && (stay->device != device || stay->view->at_home || stay->early))
            stay = stay->next;
        if (stay)
            detach(stay->view);
        pthread_mutex_unlock(&lock);
        tutti_stay_release(stay);
    } while (stay);
    pthread_mutex_unlock(&leaving);
}

static struct request {
    struct tutti_job job;
    atomic_bool made;
} requests[TUTTI_MAX_DEVICES];

static void grant_request(struct tutti_job *job) {
    struct request *request = (struct request *)job;
    atomic_store(&request->made, false);
    leave(tutti_devices()->device[request - requests]);
}

void tutti_stay_leave(const struct tutti_real_device *device) {
    struct request *request = &requests[device->index];
    pthread_mutex_lock(&lock);
    bool any = first != NULL;
    pthread_mutex_unlock(&lock);
    if (!any || atomic_exchange(&request->made, true))
        return;
    request->job.run = grant_request;
    tutti_pool_run(&request->job);
}
