/* SPDX-License-Identifier: MIT */
#include "memory/relay.h"

#include "log.h"
#include "memory/carry.h"
#include "memory/device_copy.h"
#include "memory/hop.h"
#include "memory/peers.h"
#include "memory/room.h"
#include "memory/stream.h"
#include "memory/transfer_path.h"
#include "virtual_device/driver.h"

#include <errno.h>

/* What a driver copies at once is over before another thread has begun. */
#define LEAST_CARRIED ((size_t)256 << 10)

/* Guards `moving` of all views, and with it who changes `debtor`. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;

/* Takes over the debt, so that others wait for its end; NULL when there is none. */
static const struct tutti_real_device *take(struct tutti_view *view) {
    if (!tutti_relay_debtor(view))
        return NULL;
    pthread_mutex_lock(&lock);
    while (view->moving)
        pthread_cond_wait(&moved, &lock);
    const struct tutti_real_device *debtor = tutti_relay_debtor(view);
    view->moving = debtor != NULL;
    pthread_mutex_unlock(&lock);
    return debtor;
}

/* Ends what `take` began: is the debt paid? */
static void finish(struct tutti_view *view, bool paid) {
    pthread_mutex_lock(&lock);
    view->moving = false;
    if (paid)
        atomic_store_explicit(&view->debtor, NULL, memory_order_release);
    pthread_cond_broadcast(&moved);
    pthread_mutex_unlock(&lock);
}

void tutti_relay_cancel(struct tutti_view *view) {
    if (take(view))
        finish(view, true);
}

void tutti_relay_wait(struct tutti_view *view) {
    if (!tutti_relay_debtor(view))
        return;
    pthread_mutex_lock(&lock);
    while (view->moving)
        pthread_cond_wait(&moved, &lock);
    pthread_mutex_unlock(&lock);
}

static struct tutti_real_device *device_at(const struct tutti_real_device *device) {
    return tutti_devices()->device[device->index];
}

static const struct tutti_storage *storage_on(struct tutti_view *view,
                                              const struct tutti_real_device *device) {
    const struct tutti_interface *interface =
        starpu_data_get_interface_on_node(tutti_view_handle(view), device->place.node);
    return &interface->storage;
}

static void bring_home(struct tutti_view *view, const struct tutti_real_device *debtor) {
    tutti_hop_down(view, device_at(debtor), storage_on(view, debtor), NULL);
}

void tutti_relay_settle(struct tutti_view *view) {
    const struct tutti_real_device *debtor = take(view);
    if (!debtor)
        return;
    bring_home(view, debtor);
    finish(view, true);
}

void tutti_relay_leave(struct tutti_view *view, const struct tutti_real_device *device) {
    int wanted = 0;
    if (tutti_relay_debtor(view) != device)
        return;
    starpu_data_query_status(tutti_view_handle(view), STARPU_MAIN_RAM, NULL, &wanted, NULL);
    if (wanted)
        tutti_relay_settle(view);
    else
        tutti_relay_cancel(view);
}

int tutti_relay_down(struct tutti_view *view, struct tutti_real_device *device,
                     const struct tutti_storage *storage, cl_event *event) {
    tutti_relay_cancel(view); /* of earlier bytes */
    bool may =
        tutti_transfer_path_relays(device, view->size) || tutti_peers_reach(device, view->size);
    if (!may || !event || !storage->mem || storage->at_home || tutti_room_is_scarce(device))
        return tutti_hop_down(view, device, storage, event);
    atomic_store_explicit(&view->debtor, device, memory_order_release);
    return 0;
}

struct relay {
    struct tutti_carry carry;
    struct tutti_view *view;
    struct tutti_real_device *target;
    const struct tutti_storage *storage; /* there */
};

static struct tutti_copy copy_of(struct tutti_real_device *device,
                                 const struct tutti_storage *storage) {
    return (struct tutti_copy){.device = device, .mem = storage->mem, .bytes = storage->bytes};
}

/* Neither maps, nor pages of the program that a driver would have to copy. */
static bool streams(struct tutti_view *view) {
    pthread_mutex_lock(&view->lock);
    bool clear = !view->mapped && (!view->home_is_users || view->pinned);
    pthread_mutex_unlock(&view->lock);
    return clear;
}

/*
 * Through home memory, which has the bytes then, if that is page-locked: to lock it takes longer
 * than such copies, and keeps the driver from all else. False: home memory is still owed them.
 */
static bool stream(struct tutti_view *view, const struct tutti_copy *source,
                   const struct tutti_copy *target) {
    struct tutti_region whole = tutti_view_whole(view);
    struct tutti_place start = tutti_place_linear(0, view->size);
    struct tutti_place at_home = tutti_view_at_home(view, &start);
    struct tutti_copy_end from = {view, source, &start}, to = {view, target, &start};
    cl_int error = CL_SUCCESS;
    bool by_home = tutti_shape_is_boxed(&view->shape) || tutti_view_has_locked_home(view) ||
                   !tutti_stream_pass(&from, &to, &whole, &error);
    char *home = by_home ? tutti_view_home(view) : NULL;
    if (by_home)
        error =
            home ? tutti_stream_copy(&from, &to, home, &at_home, &whole) : CL_OUT_OF_HOST_MEMORY;
    if (error != CL_SUCCESS)
        tutti_log(ERROR, "%s: a transfer to %s failed with %d", source->device->name,
                  target->device->name, error);
    return by_home;
}

/* By the driver of both devices: home memory is owed the bytes still. */
static bool copy_directly(struct tutti_view *view, const struct tutti_copy *source,
                          const struct tutti_copy *target) {
    struct tutti_region whole = tutti_view_whole(view);
    struct tutti_place start = tutti_place_linear(0, view->size);
    struct tutti_place packed = tutti_view_packed(view, &start);
    struct tutti_copy_end from = {view, source, &packed}, to = {view, target, &packed};
    return tutti_peers_copy(&from, &to, &whole);
}

static void relay(struct tutti_view *view, struct tutti_real_device *target,
                  const struct tutti_storage *storage) {
    const struct tutti_real_device *debtor = take(view);
    if (!debtor) { /* another transfer has paid */
        tutti_hop_up(view, target, storage, NULL);
        return;
    }
    tutti_view_take_over(view);
    struct tutti_copy from = copy_of(device_at(debtor), storage_on(view, debtor));
    struct tutti_copy to = copy_of(target, storage);
    bool both = from.mem && to.mem && !storage->at_home, paid = true;
    if (both && copy_directly(view, &from, &to)) {
        paid = false;
    } else if (both && streams(view)) {
        tutti_log(DEBUG, "%s: %zu bytes on to %s", debtor->name, view->size, target->name);
        paid = stream(view, &from, &to);
    } else {
        bring_home(view, debtor);
        tutti_hop_up(view, target, storage, NULL);
    }
    tutti_view_hand_over(view);
    finish(view, paid);
}

static void run(struct tutti_carry *carry) {
    const struct relay *job = (const struct relay *)(const void *)carry;
    relay(job->view, job->target, job->storage);
}

int tutti_relay_up(struct tutti_view *view, struct tutti_real_device *device,
                   const struct tutti_storage *storage, cl_event *event) {
    const struct tutti_real_device *debtor = tutti_relay_debtor(view);
    if (!debtor)
        return tutti_hop_up(view, device, storage, event);
    const struct tutti_real_device *carrier = tutti_carry_possible(debtor) ? debtor : device;
    bool brief = view->size < LEAST_CARRIED && tutti_peers_are_near(debtor, device, view->size);
    struct relay *job =
        event && !brief && tutti_carry_possible(carrier) ? malloc(sizeof(*job)) : NULL;
    if (job) {
        *job = (struct relay){.carry.run = run, .view = view, .target = device, .storage = storage};
        if (tutti_carry_start(&job->carry, carrier, event))
            return -EAGAIN;
        free(job);
    }
    relay(view, device, storage);
    return 0;
}
