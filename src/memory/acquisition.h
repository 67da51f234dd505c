/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_ACQUISITION_H
#define TUTTI_ACQUISITION_H

#include "memory/view.h"

/* How the host's side uses a view. */
enum tutti_use {
    TUTTI_READS,
    TUTTI_WRITES,      /* a part, or all in place: every valid copy is written */
    TUTTI_OVERWRITES,  /* all: home memory becomes the only valid copy */
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
    } item[2], *more; /* `more` when count > 2 */
    atomic_uint remaining;
    void (*granted)(struct tutti_acquisition *acquisition);
};

/* Adds a view; one that is there already is held once, for both uses. */
void tutti_acquisition_add(struct tutti_acquisition *acquisition, struct tutti_view *view,
                           enum tutti_use use);

/* Calls `granted` once all views are held; maybe at once, maybe from one of StarPU's threads. */
void tutti_acquisition_take(struct tutti_acquisition *acquisition);
/* After it the views may be gone. */
void tutti_acquisition_release(struct tutti_acquisition *acquisition);

#endif
