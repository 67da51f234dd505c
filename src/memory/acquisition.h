/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_ACQUISITION_H
#define TUTTI_ACQUISITION_H

#include "memory/view.h"

/* How the host's side uses a view. */
enum tutti_use {
    TUTTI_READS,
    TUTTI_WRITES,      /* a part, or all in place: every valid copy is written */
    TUTTI_OVERWRITES,  /* all: one copy becomes the only valid one, in home memory or on a device */
    TUTTI_HOME_READS,  /* needs the whole in home memory */
    TUTTI_HOME_WRITES, /* the same, and changes it there */
};

/*
 * Up to two views, or more with `more`, held for the host's side. StarPU orders it among all uses
 * of the views by the order of the calls; nothing blocks.
 */
struct tutti_acquisition {
    unsigned count;
    struct tutti_acquired {
        struct tutti_view *view;
        enum tutti_use use;
        int node;     /* StarPU's */
    } item[2], *more; /* `more` when count > 2 */
    atomic_uint remaining;
    void (*granted)(struct tutti_acquisition *acquisition);
};

/*
 * Adds a view; one that is there already is held once, for both uses. What is overwritten is so in
 * home memory.
 */
void tutti_acquisition_add(struct tutti_acquisition *acquisition, struct tutti_view *view,
                           enum tutti_use use);
/*
 * Adds a view that is overwritten on the device. It must be the only one of the acquisition: to
 * hold one view and wait for a device's memory to hold another can last for ever.
 */
void tutti_acquisition_add_on(struct tutti_acquisition *acquisition, struct tutti_view *view,
                              const struct tutti_real_device *device);

/* Calls `granted` once all views are held; maybe at once, maybe from one of StarPU's threads. */
void tutti_acquisition_take(struct tutti_acquisition *acquisition);
/* After it the views may be gone. */
void tutti_acquisition_release(struct tutti_acquisition *acquisition);

#endif
