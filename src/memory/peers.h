/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_PEERS_H
#define TUTTI_PEERS_H

#include "memory/device_copy.h"
#include "memory/peer_trial.h"

/*
 * Transfers from one device to another that the driver of both does itself, by one command, where
 * that is faster than through page-locked memory of the host (TUTTI_TRANSFER). Both then have one
 * context. What is faster is measured when Tutti starts for the first time on these devices, for
 * each pair of them and some sizes, and kept on disk.
 */

/*
 * While Tutti starts, by one thread: decides which devices get a common context. `alone` are all of
 * them, with a context of their own each. `directory` is where StarPU keeps its files for this
 * machine, and this one.
 */
void tutti_peers_start(const struct tutti_peer *alone, unsigned count, const char *directory);

/* The context that the device has in common with others; NULL: it has none. */
cl_context tutti_peers_context(const struct tutti_real_device *device);

/* Are so many bytes on the device copied directly to some other one, or to the target? */
bool tutti_peers_reach(const struct tutti_real_device *device, size_t size);
bool tutti_peers_are_near(const struct tutti_real_device *source,
                          const struct tutti_real_device *target, size_t size);

/*
 * Copies so, and waits. False when it is not to be done so, or the driver refuses: then it is to be
 * done otherwise.
 */
bool tutti_peers_copy(const struct tutti_copy_end *source, const struct tutti_copy_end *target,
                      const struct tutti_region *region);

#endif
