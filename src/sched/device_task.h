/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_DEVICE_TASK_H
#define TUTTI_DEVICE_TASK_H

#include "memory/view.h"
#include "sched/command.h"

/*
 * A command that a real device executes, as one StarPU task: a kernel, or a fill or copy that
 * should happen where it is cheap. StarPU chooses the device, brings the data there, and calls
 * `enqueue` in its worker's thread.
 */
struct tutti_device_task {
    struct tutti_command command;
    unsigned devices; /* bit d: real device d may execute it */
    unsigned count;   /* views that it uses, each once */
    struct tutti_device_use {
        struct tutti_view *view;
        enum starpu_data_access_mode mode;
    } * use;
    bool prints; /* keeps its order among all that print */

    /*
     * Enqueues the real command on the device's `place.kernels`. `mem` holds one cl_mem for each
     * use, none NULL. Returns the driver's error.
     */
    cl_int (*enqueue)(struct tutti_device_task *task, struct tutti_real_device *device,
                      const cl_mem *mem, cl_event *event);
    /* Expected time on the device, in µs. */
    double (*expect)(struct tutti_device_task *task, struct tutti_real_device *device);
    /* It took so long there, in µs; may be NULL. */
    void (*learn)(struct tutti_device_task *task, struct tutti_real_device *device, double time);

    /* While it executes. */
    struct tutti_real_device *device;
    cl_event real; /* the device's; until its result is taken */
    cl_int result;
    cl_ulong enqueued;                          /* host's clock */
    cl_ulong real_queued, real_start, real_end; /* device's clock; 0: not known */
};

/*
 * `start` of such a command: gives it to StarPU. Views must be up to date by then
 * (memory/coherence.h).
 */
void tutti_device_task_submit(struct tutti_device_task *task);

/* Bits of the real devices whose memory can hold all the views together. */
unsigned tutti_device_task_fitting(const struct tutti_device_task *task);

#endif
