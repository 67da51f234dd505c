/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_TRANSFER_PATH_H
#define TUTTI_TRANSFER_PATH_H

#include "virtual_device/device.h"

/*
 * Which way bytes go between the program's memory and a device (TUTTI_TRANSFER): by one command of
 * the driver on the program's pages, or in chunks through page-locked memory, copied there by
 * several threads while the link is busy with other chunks.
 */

/* TUTTI_TRANSFER, in the order of env.def. */
enum tutti_transfer_choice {
    TUTTI_TRANSFER_AUTO,
    TUTTI_TRANSFER_DIRECT,
    TUTTI_TRANSFER_STAGED,
    TUTTI_TRANSFER_PEER,
};
enum tutti_transfer_choice tutti_transfer_path_choice(void);

/*
 * Bits of the devices in whose own memory a memory object of `size` bytes most likely is, or will
 * be wanted, going by those that used it last (`users`): if none did, the only device with memory
 * of its own. 0: home memory.
 */
unsigned tutti_transfer_path_near(unsigned users, size_t size);

/*
 * May that much of the device's wait with its way home until it is known whether another device
 * wants it (relay.h)? Where several have memory of their own, from a size on that is worth it.
 */
bool tutti_transfer_path_relays(const struct tutti_real_device *device, size_t size);

/* Can the device hold that much? */
bool tutti_transfer_path_has_room(const struct tutti_real_device *device, size_t size);

/*
 * Where bytes of the host may go that overwrite all of a memory object: bits of the devices with
 * memory of their own where that is as good as home memory, or better. 0: home memory, where small
 * objects get sooner, and which CPU devices (among `users`, those that used it last) work in.
 * `able`: bits of the devices that can hold the object.
 */
unsigned tutti_transfer_path_straight(unsigned users, unsigned able, size_t size);

/* Are there users, and do all of them work in home memory itself? */
bool tutti_transfer_path_is_home(unsigned users);

/* Do transfers of the device gain by page-locked memory? GPUs; if "staged", all with their own. */
bool tutti_transfer_path_pins(const struct tutti_real_device *device);

/* Of the machine. */
unsigned tutti_transfer_path_cores(void);

/*
 * How many threads copy for a transfer of that many bytes; 0: the driver's own command is better,
 * or was asked for.
 */
unsigned tutti_transfer_path_threads(const struct tutti_real_device *device, size_t size);

#define TUTTI_MOST_STAGING_THREADS 32
#define TUTTI_MOST_STAGING_SLOTS 8
/* How transfers are staged; TUTTI_STAGING changes it, to measure. */
struct tutti_staging_shape {
    size_t threads; /* that copy, the caller's among them; 0: by the machine's cores */
    size_t chunk;   /* bytes, at most */
    size_t slots;   /* chunks' page-locked memory for each thread */
    size_t from;    /* bytes of a transfer from which on it is staged */
    size_t stream;  /* bytes from which on host memory is written past the caches */
};
const struct tutti_staging_shape *tutti_transfer_path_shape(void);

/* The same for copying that many bytes between two pieces of host memory; 0: one thread does it. */
unsigned tutti_transfer_path_copy_threads(size_t size);

#endif
