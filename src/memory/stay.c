/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "memory/stay.h"

#include "sched/pool.h"

#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all views' `stay` */
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
    if (is_good_for(stay, device, mode))
        atomic_fetch_add(&stay->references, 1);
    else
        stay = NULL;
    pthread_mutex_unlock(&lock);
    return stay;
}

bool tutti_stay_is_ready(struct tutti_view *view, const struct tutti_real_device *device,
                         enum starpu_data_access_mode mode, unsigned users) {
    int allocated = 0, valid = 0;
    if ((unsigned)atomic_load_explicit(&view->users, memory_order_acquire) != users)
        return false;
    starpu_data_query_status(view->handle, tutti_view_node(view, device), &allocated, &valid, NULL);
    return mode == STARPU_W ? allocated : valid;
}

static void acquired(void *argument) {
    struct tutti_stay *stay = argument;
    tutti_view_take_over(stay->view);
    const struct tutti_interface *interface =
        starpu_data_get_interface_on_node(stay->view->handle, stay->device->place.node);
    atomic_store(&stay->storage, stay->view->at_home ? tutti_view_storage(stay->view, stay->device)
                                                     : &interface->storage);
    stay->granted(stay->argument);
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

struct tutti_stay *tutti_stay_begin(struct tutti_view *view, struct tutti_real_device *device,
                                    enum starpu_data_access_mode mode,
                                    void (*granted)(void *argument), void *argument) {
    struct tutti_stay *stay = malloc(sizeof(*stay));
    if (!stay)
        return NULL;
    atomic_init(&stay->references, 2); /* the view's and the caller's */
    atomic_init(&stay->storage, NULL);
    stay->view = view;
    stay->device = device;
    stay->writes = mode != STARPU_R;
    stay->granted = granted;
    stay->argument = argument;
    attach(stay);
    starpu_data_acquire_on_node_cb(view->handle, tutti_view_node(view, device), mode, acquired,
                                   stay);
    return stay;
}

void tutti_stay_release(struct tutti_stay *stay) {
    if (!stay || atomic_fetch_sub(&stay->references, 1) != 1)
        return;
    tutti_view_hand_over(stay->view);
    starpu_data_release_on_node(stay->view->handle, tutti_view_node(stay->view, stay->device));
    free(stay);
}

void tutti_stay_make_way(struct tutti_view *view, bool writes) {
    pthread_mutex_lock(&lock);
    struct tutti_stay *stay = NULL;
    if (view->stay && (writes || view->stay->writes))
        stay = detach(view);
    pthread_mutex_unlock(&lock);
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
        for (stay = first; stay && stay->device != device; stay = stay->next)
            ;
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
