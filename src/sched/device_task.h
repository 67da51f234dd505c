/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_DEVICE_TASK_H
#define TUTTI_DEVICE_TASK_H

#include "memory/view.h"
#include "sched/command.h"
#include "sched/model.h"

struct tutti_batch;

/*
 * µs, a little more than a GPU's driver takes to launch a kernel (4 to 6 on an H200): shorter ones
 * are over soon after the last one was launched, so that nothing is gained by going on.
 */
#define TUTTI_LAUNCH_TIME 8.0

/*
 * A command that a real device executes, by itself or with others (batch.h) as one StarPU task: a
 * kernel, or a copy that should happen where its source is. StarPU chooses the device, brings the
 * data there, and calls `enqueue` in its worker's thread.
 */
struct tutti_device_task {
    struct tutti_command command;
    unsigned devices; /* bit d: real device d may execute it */
    unsigned likely;  /* of them, where a transfer's data is likely to be; 0: it is not known */
    unsigned count;   /* views that it uses, each once, or once for each window on it */
    struct tutti_device_use {
        struct tutti_view *view;
        const struct tutti_view *window; /* of a task: the part of it that it gets; or NULL */
        enum starpu_data_access_mode mode;
        /* Of a task: its place among its batch's. Of a batch: the device's copy. */
        unsigned slot;
        const struct tutti_storage *storage;
        struct tutti_stay *stay; /* a reference, if the batch goes past StarPU (direct.h, crew.h) */
        bool brings;             /* to it, what is at home, before the batch's first command */
        unsigned placed;         /* the view's, as the task finds it */
        cl_mem kept; /* of a batch: retained, as only what was appended uses it (append.h) */
        /* Of a batch of the crew's: among the users of the stay, in their order (crew.c). */
        struct tutti_device_use *before, *after;
        struct tutti_batch *batch;
    } * use;
    double time;     /* µs on the device that was measured to be best at it; 0: not measured */
    unsigned parts;  /* so many such kernels have room on a device at once (lanes.h) */
    bool shares;     /* it is executed beside others, or a transfer for such a kernel */
    unsigned beside; /* a transfer of page-locked memory: the lane of its kind; 0: it has none, */
    bool streams;    /* and so large that it is better there where others are on their way, */
    bool apart;      /* or in any case */
    /* A kernel whose program may be built for more devices later (late_build.h); else all zero. */
    struct {
        cl_program program;
        unsigned devices;         /* bits: those sure to execute it then, too, like others */
        const atomic_uint *built; /* bits: devices that the kernel has by now */
    } late;
    bool prints;                     /* keeps its order among all that print */
    cl_kernel kernel;                /* NULL: it is none */
    const struct tutti_range *range; /* its index space (invocation.h) */

    /*
     * Enqueues the real command on this queue of the device. `storage` holds the device's copy
     * for each use. `event` may be NULL. Returns the driver's error. What is over on return, and
     * all before it, sets its `result` to CL_COMPLETE, its times, and no event.
     */
    cl_int (*enqueue)(struct tutti_device_task *task, struct tutti_real_device *device,
                      cl_command_queue queue, const struct tutti_storage *const *storage,
                      cl_event *event);
    struct tutti_model *model; /* of its times; NULL: a small transfer, `time` is preset */

    struct tutti_device_task *next; /* in its batch */
    bool measured; /* its times are wanted: it has an event on a queue with profiling */
    bool timed;    /* they are, and the enqueue takes them: it executes the command */
    cl_event real; /* until its result is taken; NULL while RUNNING: the last one stands for it */
    cl_int result;
    cl_ulong enqueued;                          /* host's clock */
    cl_ulong real_queued, real_start, real_end; /* device's clock, or the host's; 0: not known */
};

/* Bits of the real devices whose memory can hold all the views together. */
unsigned tutti_device_task_fitting(const struct tutti_device_use *use, unsigned count);

/*
 * Gives the batch to StarPU, which ends it and all its commands. Views must be up to date by then
 * (memory/coherence.h).
 */
void tutti_device_task_submit(struct tutti_batch *batch);

/* For the scheduling policy: the batch of one of StarPU's tasks, all of which are ours. */
struct tutti_batch *tutti_device_task_batch(struct starpu_task *task);
/*
 * Decides whether the worker waits for it, as things are now, on one of these devices (bits);
 * again, when it is known which. Before its implementation is asked for.
 */
void tutti_device_task_decide(struct tutti_batch *batch, unsigned devices);
/* Which of the codelet's implementations executes it on the device. */
unsigned tutti_device_task_implementation(const struct tutti_batch *batch,
                                          const struct tutti_real_device *device);

#endif
