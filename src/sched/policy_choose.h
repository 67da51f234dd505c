/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_POLICY_CHOOSE_H
#define TUTTI_POLICY_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The decisions of the scheduling policy (policy.h), and nothing else: what is expected goes in,
 * a device comes out. No clock, no StarPU, no driver. Times are in µs, moments on one clock.
 */
#define TUTTI_PLAN_DEVICES 8
#define TUTTI_FAR_SLOWER 10.0 /* a device that takes so many times as long adds little */
#define TUTTI_PLAN_HOME (1u << TUTTI_PLAN_DEVICES) /* among places: home memory */

/* How an expected time is known, from the best to the worst. */
enum tutti_certainty {
    TUTTI_MEASURED, /* there */
    TUTTI_RELATED,  /* by other sizes of the kernel, or by how other kernels do on two devices */
    TUTTI_GUESSED,  /* from what the devices say of themselves */
};

/* One direction of the way between home memory and a device. */
struct tutti_plan_link {
    double latency;
    double rate; /* bytes per µs */
    double free; /* when what is planned on it ends */
};

struct tutti_plan_device {
    bool at_home;  /* works in home memory */
    double ready;  /* when what was given to it ends */
    double longer; /* what it has to do but what ends before the next launch */
    size_t room;   /* free bytes of its memory */
    bool full;     /* its driver refuses more */
    struct tutti_plan_link up, down;
};

/* Something that a task uses. Places are bits: d for device d, TUTTI_PLAN_HOME. */
struct tutti_plan_data {
    size_t bytes;
    bool reads;         /* its content must be there */
    bool fresh;         /* no device has used it yet */
    unsigned valid;     /* where the content is */
    unsigned coming;    /* where it is on its way to */
    unsigned allocated; /* devices that have memory for it */
};

struct tutti_plan_task {
    unsigned able;   /* bits of the devices that may execute it; not 0 */
    unsigned others; /* more that may execute such tasks, though not this one now */
    unsigned tried;  /* devices where it was not measured yet, but soon will be */
    double length[TUTTI_PLAN_DEVICES];
    double beside[TUTTI_PLAN_DEVICES]; /* as much of it the device does others at the same time */
    enum tutti_certainty certainty[TUTTI_PLAN_DEVICES];
    double launch; /* what a GPU's driver takes to begin it */
    /* What a device takes before it can execute it for the first time, when its turn has come; */
    double delay[TUTTI_PLAN_DEVICES];
    double lost[TUTTI_PLAN_DEVICES]; /* and what others took longer so far because of that. */
    unsigned count;
    const struct tutti_plan_data *data;
};

struct tutti_plan {
    unsigned device;
    double start, end; /* expected */
    double free;       /* when the device may be at the next one: the end, or before */
    double delay;      /* the device's, from the start on */
    bool moves;        /* some data must be brought */
    bool evicts;       /* something must leave the device's memory */
    bool launched;     /* a GPU executes it in less time than its launch takes */
    bool probes;       /* where it was not measured, nor on a device of that kind that leads */
    double loss;       /* µs that the task takes longer than if no device had a delay */
    unsigned missed;   /* if that is not 0: the device where it would be then */
};

/* The device on which the task is expected to end first, but for reasons given in the .c file. */
struct tutti_plan tutti_policy_choose(const struct tutti_plan_device *devices, unsigned count,
                                      const struct tutti_plan_task *task, double now);

/* Does the plan: the device and the links are occupied by the task from now on. */
void tutti_policy_book(struct tutti_plan_device *devices, unsigned count,
                       const struct tutti_plan_task *task, const struct tutti_plan *plan,
                       double now);

/*
 * On which of the reader's devices the host best puts `bytes`. The `reader` is a task like the one
 * that will use them, without data; its lengths are 0 if it is not known. `before` is the device
 * that had the earlier content, if it is one of them. Books the link.
 */
unsigned tutti_policy_place(struct tutti_plan_device *devices, unsigned count,
                            const struct tutti_plan_task *reader, unsigned before, size_t bytes,
                            double now);

#endif
