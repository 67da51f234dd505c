/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_SELECTION_H
#define TUTTI_SELECTION_H

#include "virtual_device/device.h"

/* All usable real devices of the machine, before the user's wishes. */
#define TUTTI_MAX_CANDIDATES 64
struct tutti_candidates {
    unsigned count;
    struct tutti_real_device *device[TUTTI_MAX_CANDIDATES];
};

/* Is it a GPU that is there already, seen through another platform? */
bool tutti_candidates_has_same(const struct tutti_candidates *candidates,
                               const struct tutti_real_device *device);
bool tutti_candidates_add(struct tutti_candidates *candidates, struct tutti_real_device *device);

/* The most capable first: GPU before accelerator before CPU, then compute units × clock. */
void tutti_candidates_sort(struct tutti_candidates *candidates);

/*
 * Moves those that TUTTI_DEVICES and TUTTI_DEVICE_TYPE want into the list, in the order that they
 * ask for; those left behind stay in `candidates`, among NULLs.
 */
void tutti_candidates_select(struct tutti_candidates *candidates, struct tutti_device_list *list);

/* Finds those of the list that are spare, where our own policy decides; never the lead. */
void tutti_selection_find_spare(struct tutti_device_list *list, bool decides);

#endif
