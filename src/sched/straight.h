/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_STRAIGHT_H
#define TUTTI_STRAIGHT_H

#include "memory/mem.h"

/*
 * The host is about to overwrite all of the view: the device where that goes straight, so that its
 * copy becomes the only valid one; NULL for home memory. By the dispatching thread.
 */
const struct tutti_real_device *tutti_straight_device(const struct tutti_view *view, cl_mem mem);

#endif
