/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_RELAY_H
#define TUTTI_RELAY_H

#include "memory/view.h"

/*
 * From one device to another StarPU asks for two transfers, one after the other: to home memory and
 * from there. The first is only noted: the device *owes* home memory the bytes. The second one then
 * moves them in chunks, so that both links work at once; or the driver of both devices copies them
 * (peers.h), and they stay owed. While they are owed, the home copy is
 * valid for StarPU and not for us (tutti_view_copies): what needs it settles the debt, and what
 * overwrites it cancels it. A copy that owes does not leave its device before.
 */

/* StarPU's transfers of a view; they return what tutti_hop_up and tutti_hop_down do. */
int tutti_relay_down(struct tutti_view *view, struct tutti_real_device *device,
                     const struct tutti_storage *storage, cl_event *event);
int tutti_relay_up(struct tutti_view *view, struct tutti_real_device *device,
                   const struct tutti_storage *storage, cl_event *event);

/* The device that owes home memory the bytes; NULL when they are there. */
static inline const struct tutti_real_device *tutti_relay_debtor(struct tutti_view *view) {
    return atomic_load_explicit(&view->debtor, memory_order_acquire);
}

/* Brings what is owed. Waits for it, as all of these do for a transfer that is under way. */
void tutti_relay_settle(struct tutti_view *view);
/* Home memory was, or will be, written as a whole, or is not valid: nothing is owed. */
void tutti_relay_cancel(struct tutti_view *view);
/* The device's copy goes. By StarPU's thread that holds the view's handle. */
void tutti_relay_leave(struct tutti_view *view, const struct tutti_real_device *device);
void tutti_relay_wait(struct tutti_view *view);

#endif
