/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_CARRY_H
#define TUTTI_CARRY_H

#include "sched/pool.h"
#include "virtual_device/device.h"

/*
 * A transfer that StarPU asked for, made by a thread of ours while StarPU's worker goes on and
 * polls an event for its end. The first member of an allocated structure.
 */
struct tutti_carry {
    struct tutti_job job;
    void (*run)(struct tutti_carry *carry); /* makes it; the structure is freed after it */
    const cl_icd_dispatch *driver;          /* of the event */
    cl_event done;
};

/* Can StarPU poll an event of that device's driver for it? */
bool tutti_carry_possible(const struct tutti_real_device *device);

/* With an event of that device's driver; false, and nothing is freed, if that can't be. */
bool tutti_carry_start(struct tutti_carry *carry, const struct tutti_real_device *device,
                       cl_event *event);

#endif
