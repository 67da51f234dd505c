/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_STAY_H
#define TUTTI_STAY_H

#include "memory/view.h"

struct tutti_device_use;

/* Lanes of a device (lanes.h), a bit for each. */
typedef uint64_t tutti_lane_set;

/* Lanes of a GPU whose batches wait for those of the others. */
#define TUTTI_LANE_SLOTS 6

/*
 * A view that stays on a device from one command to the next: it is acquired there, so that
 * commands can use it without asking StarPU for each. Others are ordered behind by StarPU, and get
 * it when the stay ends: with the last reference to it. The view has one, and gives it up as soon
 * as something else wants the view, or the device is short of memory. What is at home, and used by
 * nobody, is acquired only then, if commands still use it: StarPU need not know of it before.
 */
struct tutti_stay {
    atomic_uint references;
    struct tutti_view *view;
    struct tutti_real_device *device;
    bool writes; /* acquired for writing as well */
    bool silent; /* StarPU does not know of it; for who takes the view's reference */
    /*
     * It is early: StarPU has no copy on the device, which works in this one. StarPU gets it, as if
     * it had been brought there, when anything else wants the view. Nobody need wait for StarPU's
     * threads to make and to fill it: what is at home is brought by the first batch.
     */
    bool early, brought;
    struct tutti_storage own;
    const struct tutti_storage *_Atomic storage; /* the device's copy; NULL until acquired */
    void (*granted)(struct tutti_stay *stay, void *argument);
    void *argument;
    /* Who uses it, where the crew keeps their order (crew.c); those from `waiting` on don't yet. */
    struct tutti_device_use *first, *last, *waiting;
    bool open, writing; /* it is acquired; the first one writes */
    /*
     * Batches past StarPU (direct.c) that are not over, and those of them that write; and their
     * lanes, for the dispatching thread: of all since there were none, and of the last one
     * that writes.
     */
    atomic_uint under_way, writers;
    tutti_lane_set lanes, written;
    /* The turns (batch.h) of the last one in each slot (lanes.h), and of the last one that writes.
     */
    unsigned turn[TUTTI_LANE_SLOTS], wrote;
    bool downloaded; /* the last one is a transfer on a lane of its own, which reads it */
    struct tutti_stay *next, **link; /* among all that views refer to */
};

/* Is there a stay for tutti_stay_take? */
bool tutti_stay_is_there(struct tutti_view *view, const struct tutti_real_device *device,
                         enum starpu_data_access_mode mode);

/*
 * The view's stay on that device, good for that mode and acquired: a reference. Else NULL. By the
 * dispatching thread.
 */
struct tutti_stay *tutti_stay_take(struct tutti_view *view, const struct tutti_real_device *device,
                                   enum starpu_data_access_mode mode);

/*
 * Is it still the view's? Else what wants the view waits for its end, and comes before all that is
 * next. By the dispatching thread.
 */
bool tutti_stay_goes_on(const struct tutti_stay *stay);

/*
 * The view's stay, if it is good for that mode once it is acquired, on any device: a reference.
 * Else NULL. One that StarPU does not know of is good for any. By the dispatching thread.
 */
struct tutti_stay *tutti_stay_join(struct tutti_view *view, enum starpu_data_access_mode mode);

/*
 * Must a command with that mode come after batches past StarPU that are not over, and use the stay
 * that the view has there? By the dispatching thread.
 */
bool tutti_stay_orders(struct tutti_view *view, const struct tutti_real_device *device,
                       enum starpu_data_access_mode mode);

/* Is it downloaded on a lane of its own, beside kernels? By the dispatching thread. */
bool tutti_stay_is_downloaded(struct tutti_view *view);

/*
 * Can the view be acquired there at once, without any transfer or allocation? `users`: how many
 * commands of the caller use it.
 */
bool tutti_stay_is_ready(struct tutti_view *view, const struct tutti_real_device *device,
                         enum starpu_data_access_mode mode, unsigned users);

/*
 * May it be an early one? Only buffers that are just home, small ones if they are not overwritten.
 * `users` as above.
 */
bool tutti_stay_may_be_early(struct tutti_view *view, const struct tutti_real_device *device,
                             enum starpu_data_access_mode mode, unsigned users);

/*
 * StarPU allocates the view's copy on the device: is there an early one? Then it is StarPU's, with
 * all that is in it.
 */
bool tutti_stay_hand_out(struct tutti_view *view, const struct tutti_real_device *device,
                         struct tutti_storage *storage);

/*
 * Begins a stay, in place of another one, and returns a reference; NULL when out of memory. Calls
 * `granted` once it is acquired: maybe at once, maybe from one of StarPU's threads. `alone`: no
 * commands use the view but the caller's. By the dispatching thread.
 */
struct tutti_stay *tutti_stay_begin(struct tutti_view *view, struct tutti_real_device *device,
                                    enum starpu_data_access_mode mode, bool alone,
                                    void (*granted)(struct tutti_stay *stay, void *argument),
                                    void *argument);

void tutti_stay_release(struct tutti_stay *stay); /* NULL is allowed */

/* Something else is about to use the view. By the dispatching thread. */
void tutti_stay_make_way(struct tutti_view *view, bool writes);

/* The view goes. In any thread, but nobody uses it any more. */
void tutti_stay_end(struct tutti_view *view);

/* The device needs memory: has all stays there ended soon, but the early ones. In any thread. */
void tutti_stay_leave(const struct tutti_real_device *device);

#endif
