/* SPDX-License-Identifier: MIT */
#include "memory/acquisition.h"

#include "memory/relay.h"
#include "memory/stay.h"
#include "sched/idle.h"

static const struct {
    int node;
    enum starpu_data_access_mode mode;
} uses[] = {
    [TUTTI_READS] = {STARPU_ACQUIRE_NO_NODE_LOCK_ALL, STARPU_R},
    [TUTTI_WRITES] = {STARPU_ACQUIRE_NO_NODE_LOCK_ALL, STARPU_RW},
    [TUTTI_OVERWRITES] = {STARPU_MAIN_RAM, STARPU_W},
    [TUTTI_HOME_READS] = {STARPU_MAIN_RAM, STARPU_R},
    [TUTTI_HOME_WRITES] = {STARPU_MAIN_RAM, STARPU_RW},
};

static struct tutti_acquired *items(struct tutti_acquisition *acquisition) {
    return acquisition->more ? acquisition->more : acquisition->item;
}

void tutti_acquisition_add(struct tutti_acquisition *acquisition, struct tutti_view *view,
                           enum tutti_use use) {
    struct tutti_acquired *item = items(acquisition);
    for (unsigned i = 0; i < acquisition->count; i++) {
        if (item[i].view != view)
            continue;
        if (item[i].use != use) { /* one of them reads, one writes, or both are in home memory */
            item[i].use = use >= TUTTI_HOME_READS ? TUTTI_HOME_WRITES : TUTTI_WRITES;
            item[i].node = uses[item[i].use].node;
        }
        return;
    }
    item[acquisition->count++] = (struct tutti_acquired){view, use, uses[use].node};
}

void tutti_acquisition_add_on(struct tutti_acquisition *acquisition, struct tutti_view *view,
                              const struct tutti_real_device *device) {
    acquisition->item[acquisition->count++] =
        (struct tutti_acquired){view, TUTTI_OVERWRITES, (int)device->place.node};
}

static void one_granted(void *argument) {
    struct tutti_acquisition *acquisition = argument;
    if (atomic_fetch_sub(&acquisition->remaining, 1) != 1)
        return;
    for (unsigned i = 0; i < acquisition->count; i++) {
        const struct tutti_acquired *item = &items(acquisition)[i];
        tutti_view_take_over(item->view);
        if (item->use == TUTTI_OVERWRITES)
            tutti_relay_cancel(item->view);
    }
    acquisition->granted(acquisition);
}

static void granted_by_starpu(void *argument) {
    tutti_idle_end();
    one_granted(argument);
}

void tutti_acquisition_take(struct tutti_acquisition *acquisition) {
    /* The last grant may free the acquisition: the loop keeps what it needs and one count. */
    unsigned count = acquisition->count;
    atomic_store(&acquisition->remaining, count + 1);
    for (unsigned i = 0; i < count; i++) {
        struct tutti_acquired *item = &items(acquisition)[i];
        atomic_fetch_add_explicit(&item->view->holders, 1, memory_order_relaxed);
        tutti_stay_make_way(item->view, uses[item->use].mode != STARPU_R);
        tutti_idle_begin();
        starpu_data_acquire_on_node_cb(tutti_view_handle(item->view), item->node,
                                       uses[item->use].mode, granted_by_starpu, acquisition);
    }
    one_granted(acquisition);
}

void tutti_acquisition_release(struct tutti_acquisition *acquisition) {
    for (unsigned i = 0; i < acquisition->count; i++) {
        struct tutti_acquired *item = &items(acquisition)[i];
        starpu_data_handle_t handle = tutti_view_handle(item->view);
        tutti_view_hand_over(item->view);
        atomic_fetch_sub_explicit(&item->view->holders, 1, memory_order_release); /* it may go */
        starpu_data_release_on_node(handle, item->node);
    }
}
