/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_HOP_H
#define TUTTI_HOP_H

#include "memory/view.h"

/*
 * All of a view between its home memory and a device's storage, what the program has mapped for
 * writing left alone at home. Returns what StarPU wants: 0, done; -EAGAIN, it polls `event`.
 * Without `event` always done. StarPU can't be told of an error: it is logged.
 */
int tutti_hop_up(struct tutti_view *view, struct tutti_real_device *device,
                 const struct tutti_storage *storage, cl_event *event);
int tutti_hop_down(struct tutti_view *view, struct tutti_real_device *device,
                   const struct tutti_storage *storage, cl_event *event);

/*
 * Enqueues the same for a buffer, all of it, before what comes next on a queue of the device's
 * that is for kernels.
 */
cl_int tutti_hop_before(struct tutti_view *view, struct tutti_real_device *device,
                        const struct tutti_storage *storage, cl_command_queue queue);

#endif
