/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_LINK_H
#define TUTTI_LINK_H

#include "memory/history.h"

/*
 * How fast bytes go between home memory and each device, learnt from the transfers that are made,
 * as they are made: StarPU's own measurement at its start is of other memory and other commands.
 */

/*
 * Around a transfer that the calling thread waits for. Several at once share the link. What StarPU
 * waits for itself teaches nothing: its event would have to be one of a queue with profiling, which
 * costs small transfers more than they take.
 */
void tutti_link_begin(const struct tutti_real_device *device, enum tutti_direction direction,
                      size_t bytes);
void tutti_link_end(const struct tutti_real_device *device, enum tutti_direction direction,
                    size_t bytes);

/*
 * Something begins, or ends, that makes transfers wait as they will not again: as locking pages
 * does in the driver and in the kernel. What is under way meanwhile teaches nothing.
 */
void tutti_link_disturb(bool begins);

/* A transfer that StarPU waits for itself begins. */
void tutti_link_begin_unseen(const struct tutti_real_device *device, enum tutti_direction direction,
                             size_t bytes);

/* A long one that the driver's queues order begins, or is over. */
void tutti_link_note_long(const struct tutti_real_device *device, enum tutti_direction direction,
                          bool begins);

/*
 * Would a command with an event wait there for other things than its own? NVIDIA's driver begins it
 * when all transfers are over that were enqueued before it, in whatever queue; one without event at
 * once. True while a long transfer is on its way to or from a GPU, as far as is known.
 */
bool tutti_link_delays_events(const struct tutti_real_device *device);

/* Does more than one transfer of our threads use the device's link, in either direction? */
bool tutti_link_is_shared(const struct tutti_real_device *device);

struct tutti_link {
    double latency; /* µs */
    double rate;    /* bytes per µs */
};
struct tutti_link tutti_link_expect(const struct tutti_real_device *device,
                                    enum tutti_direction direction);

#endif
