/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_FIRST_LAUNCH_H
#define TUTTI_FIRST_LAUNCH_H

#include "virtual_device/device.h"

/*
 * What a device needs before it executes a kernel for the first time. PoCL compiles it to machine
 * code then: 50 to 200 ms, or next to nothing if its cache on disk has that. It does so for each
 * kernel and *shape* of a launch (tutti_model_key), once for all devices of a kind. Other drivers
 * are through with it when the program is built. Times are in µs. All functions accept NULL, for
 * which nothing is needed.
 */
struct tutti_first_launch;

/*
 * That of a shape, among those of a kernel; made if it is new. Lives as long as the process. NULL
 * when out of memory. With the lock of whoever has the list.
 */
struct tutti_first_launch *tutti_first_launch_find(struct tutti_first_launch **list,
                                                   unsigned shape);

/* Does none of the devices (bits) need anything? All that is asked in the steady state. */
bool tutti_first_launch_is_over(const struct tutti_first_launch *first, unsigned devices);

/* Those of the devices that need nothing. */
unsigned tutti_first_launch_ready(const struct tutti_first_launch *first, unsigned devices);

/*
 * How long it is expected to take on the device; 0: it is over. By what others took in this
 * process, and by whether an earlier one had such a kernel executed there.
 */
double tutti_first_launch_delay(const struct tutti_first_launch *first,
                                const struct tutti_real_device *device);
void tutti_first_launch_note_kept(struct tutti_first_launch *first, uint64_t identity);

/*
 * Notes that the device was given a task that begins with it, so that others there come behind
 * that; and takes that back. Is it so?
 */
void tutti_first_launch_plan(struct tutti_first_launch *first,
                             const struct tutti_real_device *device, bool planned);
bool tutti_first_launch_is_planned(const struct tutti_first_launch *first,
                                   const struct tutti_real_device *device);

/*
 * A task takes longer by `loss` since it does not wait for such a device. Those that are planned at
 * the same time do not lose more in all than the time that passes. By one thread at a time.
 */
void tutti_first_launch_miss(struct tutti_first_launch *first,
                             const struct tutti_real_device *device, double loss, double now);
/* And what was lost so far. */
double tutti_first_launch_lost(const struct tutti_first_launch *first,
                               const struct tutti_real_device *device);

/* The device did nothing else for so long, if it is not over there; and now it is. */
void tutti_first_launch_learn(const struct tutti_first_launch *first,
                              const struct tutti_real_device *device, double time);
void tutti_first_launch_end(struct tutti_first_launch *first,
                            const struct tutti_real_device *device);

#endif
