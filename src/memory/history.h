/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_HISTORY_H
#define TUTTI_HISTORY_H

#include "virtual_device/device.h"

struct tutti_model;

/*
 * What became of a memory object so far: which real devices used it, and what went between host
 * memory and each of them. All storage that the object ever has shares it (version.h). Any thread.
 */
enum tutti_direction { TUTTI_UPLOAD, TUTTI_DOWNLOAD, TUTTI_DIRECTIONS };

struct tutti_history {
    atomic_uint users;   /* bit d: a kernel on real device d used it since its last overwrite */
    atomic_uint earlier; /* the same between the last two overwrites after which any did */
    /*
     * Where the host put content straight on a device: how often kernels used it there, and how
     * often elsewhere.
     */
    atomic_uint hits, strays;
    /* For the dispatching thread. */
    unsigned overwrites;              /* by the host */
    unsigned written;                 /* how often devices' commands did */
    bool takes_turns;                 /* it was to be written where it stayed to be read (stay.h) */
    const struct tutti_model *reader; /* of the last kernel that read it, as the next one may do */
    struct {
        atomic_ullong bytes[TUTTI_DIRECTIONS], transfers[TUTTI_DIRECTIONS], evictions;
    } on[TUTTI_MAX_DEVICES];
};

/*
 * A kernel on the device uses the object. `placed` is the bit of the device that the host put what
 * it reads on; 0: none.
 */
void tutti_history_use(struct tutti_history *history, const struct tutti_real_device *device,
                       unsigned placed);

/* Bits of the devices that used it last. They are the best guess of who uses it next. */
unsigned tutti_history_users(const struct tutti_history *history);
/* The same; the object is about to be overwritten. */
unsigned tutti_history_overwrite(struct tutti_history *history);

/* Who used a part used what it was a part of. */
void tutti_history_join(struct tutti_history *history, const struct tutti_history *part);

void tutti_history_move(struct tutti_history *history, const struct tutti_real_device *device,
                        enum tutti_direction direction, size_t bytes);
/* Does the host mostly take what devices write? For the dispatching thread. */
bool tutti_history_is_taken(const struct tutti_history *history);
/* Bytes that went that way of all memory objects so far. */
cl_ulong tutti_history_total(const struct tutti_real_device *device,
                             enum tutti_direction direction);
/* A copy had to leave the device's memory to make room. */
void tutti_history_evict(struct tutti_history *history, const struct tutti_real_device *device);

#endif
