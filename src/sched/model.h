/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_MODEL_H
#define TUTTI_MODEL_H

#include "sched/first_launch.h"
#include "sched/policy_choose.h"
#include "virtual_device/device.h"

/*
 * How long a kernel takes on each real device, learnt from the devices' own timestamps. One model
 * for each kernel, index space and sizes of memory, and where the kernel's integer arguments make a
 * difference, one for each of their values as well. Kept on disk from one process to the next.
 */
struct tutti_model_key {
    uint64_t code;  /* identity of the kernel's code */
    uint64_t sizes; /* hash of all sizes, see tutti_model_mix and tutti_model_shape */
    uint64_t items; /* work-items: what the prior goes by */
};

/*
 * Ends the sizes: what a driver may compile the kernel for, as hashed by then, becomes their upper
 * bits. So other sizes of that shape are known as such, on disk too.
 */
#define TUTTI_MODEL_SHAPE 48
static inline void tutti_model_shape(struct tutti_model_key *key, uint64_t shape) {
    key->sizes = key->sizes >> (64 - TUTTI_MODEL_SHAPE) | shape << TUTTI_MODEL_SHAPE;
}

static inline void tutti_model_mix(struct tutti_model_key *key, uint64_t value) {
    key->sizes = (key->sizes ^ value) * 0x9e3779b97f4a7c15u;
    key->sizes ^= key->sizes >> 29;
}

struct tutti_model;

/*
 * The model of the key; made when it is new. Lives as long as the process. NULL when out of
 * memory, which the other functions accept.
 */
struct tutti_model *tutti_model_find(const struct tutti_model_key *key);

/*
 * The model for those integer arguments (a hash of them; 0: there are none) of a kernel with that
 * model, which is what is known for others. The same, if there are too many different ones: of a
 * kernel that takes as long with any, few; those that count its launches tell nothing.
 */
struct tutti_model *tutti_model_of_integers(struct tutti_model *model, uint64_t integers);

/*
 * Expected time on the device, in µs, and how it is known. In this order: measured there; on
 * another device, by how the two compare for the same kernel (related), for other kernels or by
 * what they say of themselves (guessed); by another size of the kernel (related); from the number
 * of work-items (guessed). Never 0.
 */
double tutti_model_estimate(const struct tutti_model *model, const struct tutti_real_device *device,
                            enum tutti_certainty *certainty);
double tutti_model_expect(const struct tutti_model *model, const struct tutti_real_device *device);

/* The least of these over devices (bits, one or more). */
double tutti_model_least(const struct tutti_model *model, unsigned devices);

/* Its work-items. */
uint64_t tutti_model_items(const struct tutti_model *model);

/* What a device needs before it executes such a kernel for the first time. */
struct tutti_first_launch *tutti_model_first_launch(const struct tutti_model *model);

/*
 * Notes that the device will execute it though it was not measured there; and takes that back.
 * Is it so on the device?
 */
void tutti_model_try(struct tutti_model *model, const struct tutti_real_device *device, bool tries);
bool tutti_model_is_tried(const struct tutti_model *model, const struct tutti_real_device *device);

/* Changes when a first measurement makes estimates of other times better. */
unsigned tutti_model_generation(void);

/* What was measured there, in µs; 0: nothing was. */
double tutti_model_time(const struct tutti_model *model, const struct tutti_real_device *device);

static inline bool tutti_model_is_measured(const struct tutti_model *model,
                                           const struct tutti_real_device *device) {
    return tutti_model_time(model, device) > 0;
}

/* By that: does it take at most so many µs? */
static inline bool tutti_model_is_within(const struct tutti_model *model,
                                         const struct tutti_real_device *device, double most) {
    double time = tutti_model_time(model, device);
    return time > 0 && time <= most;
}

/* The least time that was measured on a device, in µs; 0 when none was. */
double tutti_model_measured(const struct tutti_model *model);

/*
 * Asked before each run: should this one be measured, and how? The first ones on a device are, by
 * the driver, and then one of some, which follows a change. A device that executes in the call
 * needs no driver for that, but for the first ones: they are compiled in the call, too.
 */
enum tutti_measuring { TUTTI_NOT_MEASURED, TUTTI_MEASURED_BY_DRIVER, TUTTI_MEASURED_BY_CALL };
enum tutti_measuring tutti_model_measures(struct tutti_model *model,
                                          const struct tutti_real_device *device);

/* A run took `time` µs on the device. */
void tutti_model_learn(struct tutti_model *model, const struct tutti_real_device *device,
                       double time);

/* The runs on the device may take longer by now: the next one is measured. */
void tutti_model_doubt(struct tutti_model *model, const struct tutti_real_device *device);

/* How many there are that were measured on the device, now or by an earlier process. */
unsigned tutti_model_count(const struct tutti_real_device *device);

/* Keeps what was learnt for the next process (model_store.h). At exit. */
void tutti_model_keep(void);

#endif
