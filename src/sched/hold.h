/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_HOLD_H
#define TUTTI_HOLD_H

#include <stdbool.h>

struct tutti_command;

/*
 * A command of an in-order queue that can't be dispatched yet is *held*. Commands behind one that
 * waits for its own queue only go on when they have no resource in common with it that one of them
 * writes; else they are dispatched after it, and held until then. So a command costs nothing here
 * while nothing of its queue is held, and then as much as it has uses. All with the graph's lock
 * held.
 */

/* A buffer with all its parts, an image, or the console. Zero at first. */
struct tutti_resource {
    struct tutti_line *lines; /* of its held users, one for each queue that has some */
};

struct tutti_resource_use {
    struct tutti_resource *resource;
    bool writes;
    const void *storage; /* StarPU orders those who use the same, if one of them writes, by their
                            dispatch; NULL: it does not */
    bool replaces;       /* … unless this one gets other storage for what it writes (version.h) */
};

/* Makes the command follow held ones of its queue, where it must. False when out of memory. */
bool tutti_hold_order(struct tutti_command *command);

/* The command is held itself. False when out of memory: then nothing can follow it. */
bool tutti_hold_enter(struct tutti_command *command);

/* It is held no more, as it is being dispatched; commands that were not held are ignored. */
void tutti_hold_leave(struct tutti_command *command);

#endif
