/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_LOCKED_PAGES_H
#define TUTTI_LOCKED_PAGES_H

#include "virtual_device/device.h"

/*
 * Pages of ordinary pointers, which a program passes to reads and writes again and again, are
 * page-locked once what that saves has come to what it costs: so it never costs more than twice
 * the best. They are unlocked before the program gives them away (page_watch.h): a driver would
 * move the bytes of the old pages for whatever came to that address.
 * TUTTI_LOCK_PAGES turns it off, or has all locked at once. Only NVIDIA's driver is known to move
 * bytes faster so; others' pages are locked with TUTTI_LOCK_PAGES=always alone.
 */

/* These bytes of the program's are about to move to or from the device. By any thread, with no
 * lock. */
void tutti_locked_pages_use(const struct tutti_real_device *device, const void *bytes, size_t size);

/* At exit: drivers are not called any more. */
void tutti_locked_pages_stop(void);

#endif
