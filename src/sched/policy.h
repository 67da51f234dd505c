/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_POLICY_H
#define TUTTI_POLICY_H

#include "virtual_device/device.h"

#include <starpu.h>

struct tutti_model;

/*
 * The scheduling policy of our own (TUTTI_SCHED=tutti): each task goes to the queue of the device
 * on which it is expected to end first, by our models of kernels and links (policy_choose.h), and
 * its data is brought there at once. A device without work takes what it would end sooner than the
 * device that has it.
 */
extern struct starpu_sched_policy tutti_policy;

/* Before starpu_init: this policy, or the one of StarPU's that TUTTI_SCHED names. */
void tutti_policy_select(struct starpu_conf *conf);

/* Does TUTTI_SCHED want it, and not one of StarPU's? Without StarPU. */
bool tutti_policy_is_wanted(void);

/* Does it decide, and not another policy? */
bool tutti_policy_is_active(void);

/*
 * The device executes tasks: µs until its worker may take the next one; HUGE_VAL: not before one of
 * them ends. 0: it executes none. By any thread.
 */
double tutti_policy_next_look(const struct tutti_real_device *device);

/* Has the device's worker look for a task, if there is any: more of them are for it than before. */
void tutti_policy_look_again(const struct tutti_real_device *device);

/*
 * The device on which the host best puts new content of `bytes` bytes, among those of `able` (bits,
 * not 0), if a kernel like that of the model `reader` (may be NULL) is to read it; `before` (may be
 * NULL) had the earlier content. NULL with another policy, which would not know. By any thread.
 */
const struct tutti_real_device *tutti_policy_place_content(unsigned able,
                                                           const struct tutti_model *reader,
                                                           const struct tutti_real_device *before,
                                                           size_t bytes);

/*
 * Of the devices (bits), those to which the kernel may go wherever its data is: none that takes far
 * longer than another one by the models. All of them with another policy, without a model, or where
 * all work in home memory. By any thread.
 */
unsigned tutti_policy_likely(const struct tutti_model *model, unsigned devices);

#endif
