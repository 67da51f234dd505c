/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_ROOM_H
#define TUTTI_ROOM_H

#include "virtual_device/device.h"

/*
 * Room in a device's memory, as StarPU counts it. When there is none, StarPU evicts what nothing
 * uses and asks again, for ever. Two waits would not end:
 *
 * - prefetches that wait for room hold their sources, on other devices too, and StarPU's workers do
 *   not go on with them while they wait for room themselves. What is stuck so on a device without
 *   work gets room beyond the limit: StarPU's is nine tenths of a device's memory;
 * - a driver may refuse memory that StarPU believes is there, as another process has it. After a
 *   second the copy is left without memory, and another device executes what wants it
 *   (sched/elsewhere.h). For the next two, unless the driver gives some, the device is *full*: what
 *   needs more memory there goes to others, and if there is none does not wait as long.
 */
/* Is so much of it in use that copies will have to leave soon? */
bool tutti_room_is_scarce(const struct tutti_real_device *device);

/* Bytes that may be taken in all, and those that still may. */
size_t tutti_room_total(const struct tutti_real_device *device);
size_t tutti_room_left(const struct tutti_real_device *device);

/* Did the driver refuse memory lately, and has given none since? */
bool tutti_room_is_full(const struct tutti_real_device *device);

bool tutti_room_take(const struct tutti_real_device *device, size_t size);
void tutti_room_give_back(const struct tutti_real_device *device, size_t size);

/* The driver gave the memory; or refused it: then, is it time to do without? Else sleeps a bit. */
void tutti_room_filled(const struct tutti_real_device *device);
bool tutti_room_refused(const struct tutti_real_device *device);

/* The device begins a task of StarPU's, or has ended one. */
void tutti_room_begin_work(const struct tutti_real_device *device);
void tutti_room_end_work(const struct tutti_real_device *device);

/* It has done something else, after which there may be more room. */
void tutti_room_changed(const struct tutti_real_device *device);

/* How many of StarPU's tasks execute there. */
unsigned tutti_room_working(const struct tutti_real_device *device);

#endif
