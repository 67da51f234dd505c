/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_BUILT_H
#define TUTTI_BUILT_H

#include "virtual_device/device.h"

/*
 * Real programs that were built from a source lately, for programs with the same source and
 * options, such as those of a context made anew: a driver's compiler takes some 20 ms to read a
 * source, if it has a cache, too. A real program does not change once it was built, and has no
 * state where a device has no variables of a program's scope: several programs may have it.
 */

/* Retained, and the ns that its build took; NULL: there is none. */
cl_program tutti_built_find(const struct tutti_real_device *device, const char *source,
                            const char *options, uint64_t *build_time);

/* Retains it, maybe, and lets go of the one that was not used for longest. */
void tutti_built_keep(const struct tutti_real_device *device, const char *source,
                      const char *options, cl_program real, uint64_t build_time);

#endif
