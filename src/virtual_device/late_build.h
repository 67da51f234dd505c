/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_LATE_BUILD_H
#define TUTTI_LATE_BUILD_H

#include "virtual_device/build_device.h"

/*
 * PoCL compiles for one device at a time, and each build costs it 50 ms and more, whatever its
 * cache has: a program that is built for two devices of a kind, and then uses little of them, takes
 * twice as long. So such a device is left out of the build, which is known to succeed there, and
 * the program is built for it once that pays. Not one with memory of its own, where data may be
 * sent before it has the kernels.
 */

/* Can the build wait? Of a device that is to have it, when those before it were asked. */
bool tutti_late_build_can_wait(const struct tutti_build_job *job,
                               const struct tutti_real_device *device,
                               const struct tutti_real_device *lead);

/*
 * The program is given a kernel that takes so many µs. Do its kernels take so long together, or
 * this one, that the builds which wait are worth their time?
 */
bool tutti_late_build_pays(cl_program program, double time);

/*
 * Builds it for those devices before it returns; the program's kernels have them from then on. What
 * fails is logged, and left out. Without the program's lock.
 */
void tutti_late_build_run(cl_program program);

#endif
