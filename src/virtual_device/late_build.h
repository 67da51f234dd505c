/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_LATE_BUILD_H
#define TUTTI_LATE_BUILD_H

#include "virtual_device/build_device.h"

/*
 * PoCL compiles for one device at a time, and each build costs it 50 ms and more, whatever its
 * cache has: a program that is built for two devices of a kind, and then uses little of them, takes
 * twice as long. So such a device is left out of the build, which is known to succeed there, and
 * the program is built for it once that pays. Not one with memory of its own, where data may be
 * sent before it has the kernels. So is PoCL's CPU beside a GPU, which is through with many
 * programs before PoCL has compiled them; the build may fail there, or the kernels not agree.
 */

/*
 * Can the build wait? Of a device that is to have it, when those before it were asked. Not that of
 * a program for which it has paid before, in this process or, by the models that are kept, another.
 */
bool tutti_late_build_can_wait(const struct tutti_build_job *job,
                               const struct tutti_real_device *device);

/* Those of `devices` that can do whatever one of `able` can (bits). */
unsigned tutti_late_build_like(unsigned devices, unsigned able);

/* For which the program's build waits, as bits. */
static inline unsigned tutti_late_build_devices(cl_program program) {
    return atomic_load_explicit(&program->late, memory_order_acquire);
}

/*
 * One of its kernels could begin, but waits for so many µs until its device has ended others. Did
 * they wait so long together that the builds which wait are worth their time, and does no thread
 * work at them? INFINITY: nobody knows, they are to be built, but for a CPU beside a GPU. A chain's
 * never do, however long it is: each is ready when the one before has ended.
 */
bool tutti_late_build_note(cl_program program, double waited);

/*
 * Builds it for those devices, in the background, and calls `built` for each that has it then; the
 * program's kernels have them from then on, those that were enqueued before too. What fails is
 * logged, and left out. Takes the program's lock, later.
 */
void tutti_late_build_start(cl_program program,
                            void (*built)(const struct tutti_real_device *device));
/* Or before it returns, unless another thread is at it. */
void tutti_late_build_run(cl_program program);

#endif
