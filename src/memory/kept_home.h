/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_KEPT_HOME_H
#define TUTTI_KEPT_HOME_H

#include "memory/view.h"

/*
 * Home memory of small buffers that are gone, and the devices' objects over it, for the next one of
 * that size: programs that make a buffer for each result, as array libraries do, would wait longer
 * for both than for a small kernel. A few are kept, until nothing was done for two seconds.
 */

/* Gives the view, which has none yet, such home memory; false: there is none. */
bool tutti_kept_home_take(struct tutti_view *view);

/* Takes a view's home memory, which is about to go; false: it is not kept. */
bool tutti_kept_home_give(struct tutti_view *view);

/* Gives all back to the drivers. */
void tutti_kept_home_trim(void);

#endif
