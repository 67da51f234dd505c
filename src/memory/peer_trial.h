/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_PEER_TRIAL_H
#define TUTTI_PEER_TRIAL_H

#include "virtual_device/device.h"

/* The largest size that may be tried, in bytes. */
#define TUTTI_LARGEST_TRIAL ((size_t)8 << 20)

/* A device, and a context of it alone. */
struct tutti_peer {
    const struct tutti_real_device *device;
    cl_context context;
};

/*
 * How long it takes, in ns, until so many bytes are on the target and a command of each device has
 * used its memory object: a driver may put off what a copy needs to have done. `direct` by the
 * driver's copy between memory objects of the context `both`, `through_host` in chunks through
 * page-locked memory, with contexts of their own. 0: the driver refused it.
 */
struct tutti_peer_times {
    cl_ulong direct, through_host;
};
struct tutti_peer_times tutti_peer_try(const struct tutti_peer *source,
                                       const struct tutti_peer *target, cl_context both,
                                       size_t size);

/* Do small commands of the device take longer in the context `both` than in its own? */
bool tutti_peer_pays_toll(const struct tutti_peer *peer, cl_context both);

#endif
