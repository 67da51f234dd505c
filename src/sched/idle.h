/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_IDLE_H
#define TUTTI_IDLE_H

#include "virtual_device/device.h"

/*
 * StarPU's workers look for work without a pause while a command is in flight anywhere. Where a
 * CPU is a device too, that takes a core from its kernels: its worker, when it found nothing for a
 * while, sleeps between two looks, a part of the time that it has waited. A GPU's worker sleeps
 * while all that is in flight went past StarPU.
 */

/* After StarPU's start. */
void tutti_idle_start(void);

/* There is a task for the device, or it has ended one: its worker need not sleep longer. By any
 * thread. */
void tutti_idle_call(const struct tutti_real_device *device);

/*
 * StarPU is about to get something to do, a task or an acquisition; and has done it, or could not
 * have it. By any thread.
 */
void tutti_idle_begin(void);
void tutti_idle_end(void);

/* By a worker, in its thread: a task was taken, given to its device, or ended there. */
void tutti_idle_worked(void);

#endif
