/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_LANES_H
#define TUTTI_LANES_H

#include "sched/batch.h"

/*
 * Kernels of one device at the same time. One with few work-items leaves most of a GPU to others,
 * and one with few work-groups most cores of a CPU, but in an in-order queue the next one waits for
 * its end all the same: an H100 did twelve times as many of 128 work-items and 92 µs in 16 queues.
 * So a GPU has some more queues for kernels, its lanes, made when they are needed, and so has a CPU
 * device that executes by itself what it is given (tutti_direct_streams). On the first one is all
 * that does not share the device. As many more are a GPU's queues with profiling; a CPU's all have
 * it, and are used alike, but for the one with the number of a GPU's first with profiling.
 *
 * And a GPU has a lane for uploads and one for downloads, with profiling and without: of a program
 * that goes on with the next frame while the last one is still read, those of both directions and
 * its kernels are executed at the same time.
 *
 * On a GPU nothing on one lane of kernels waits for what is on another: StarPU has waited for it,
 * or it is the lane of what must come before (direct.c). Between the first ones, with profiling and
 * without, and those of transfers, and on a CPU, the driver waits for other lanes.
 */
#define TUTTI_MOST_LANES 24
#define TUTTI_LANE_MEASURED TUTTI_MOST_LANES /* the first with profiling */
#define TUTTI_LANE_UPLOADS (2 * TUTTI_MOST_LANES)
#define TUTTI_LANE_DOWNLOADS (TUTTI_LANE_UPLOADS + 1)
#define TUTTI_LANE_MEASURED_UPLOADS (TUTTI_LANE_UPLOADS + 2)
#define TUTTI_LANE_MEASURED_DOWNLOADS (TUTTI_LANE_DOWNLOADS + 2)
#define TUTTI_ALL_LANES (TUTTI_LANE_UPLOADS + 4)
#define TUTTI_MOST_LANES_OF_STREAM 29

/* A lane as one of several (stay.h), and the first of those. */
static inline tutti_lane_set tutti_lane_bit(unsigned lane) { return (tutti_lane_set)1 << lane; }
static inline unsigned tutti_lane_first(tutti_lane_set lanes) {
    return (unsigned)__builtin_ctzll(lanes);
}

#define TUTTI_TRANSFER_LANES (tutti_lane_bit(TUTTI_ALL_LANES) - tutti_lane_bit(TUTTI_LANE_UPLOADS))
#define TUTTI_FIRST_LANES (tutti_lane_bit(0) | tutti_lane_bit(TUTTI_LANE_MEASURED))

/* Lane `i`, from 0 on, of a device that streams. */
static inline unsigned tutti_lane_of_stream(unsigned i) { return i + (i >= TUTTI_LANE_MEASURED); }

static inline unsigned tutti_lane_of_transfers(bool uploads, bool measured) {
    return (measured ? TUTTI_LANE_MEASURED_UPLOADS : TUTTI_LANE_UPLOADS) + (uploads ? 0 : 1);
}
static inline bool tutti_lane_is_of_transfers(unsigned lane) { return lane >= TUTTI_LANE_UPLOADS; }
static inline bool tutti_lane_is_of_downloads(unsigned lane) {
    return lane == TUTTI_LANE_DOWNLOADS || lane == TUTTI_LANE_MEASURED_DOWNLOADS;
}

/* Is it one of a GPU's with profiling? */
static inline bool tutti_lane_is_measured(unsigned lane) {
    return tutti_lane_is_of_transfers(lane) ? lane >= TUTTI_LANE_MEASURED_UPLOADS
                                            : lane >= TUTTI_LANE_MEASURED;
}

/* Is it another one of kernels than the first of its kind? */
static inline bool tutti_lane_is_aside(unsigned lane) {
    return !tutti_lane_is_of_transfers(lane) && lane % TUTTI_MOST_LANES > 0;
}

/*
 * Its place among those that wait for each other on a GPU (stay.h, batch.h): the first ones of
 * kernels, and of transfers. TUTTI_LANE_SLOTS: it is none.
 */
static inline unsigned tutti_lane_slot(unsigned lane) {
    return lane == 0                          ? 0
           : lane == TUTTI_LANE_MEASURED      ? 1
           : tutti_lane_is_of_transfers(lane) ? lane - TUTTI_LANE_UPLOADS + 2
                                              : TUTTI_LANE_SLOTS;
}

/* Is it the turn (batch.h) of an earlier one in the same lane? Turns may begin anew. */
static inline bool tutti_turn_is_before(unsigned turn, unsigned other) {
    return (int)(turn - other) < 0;
}

/* Does the device have several queues for kernels at all? */
bool tutti_lanes_are_there(const struct tutti_real_device *device);

/* And is it a GPU? Then its commands past StarPU say which stays they use (direct.c). */
static inline bool tutti_lanes_are_of_gpu(const struct tutti_real_device *device) {
    return tutti_lanes_are_there(device) && !device->at_home;
}

/* How many may execute kernels (TUTTI_LANES), and the queue of one; NULL: it can't be made. */
unsigned tutti_lanes_most(const struct tutti_real_device *device);
cl_command_queue tutti_lanes_queue(const struct tutti_real_device *device, unsigned lane);

/* How many commands are on others than the first of each kind. */
unsigned tutti_lanes_busy(const struct tutti_real_device *device);

/* May what comes behind others on the first lanes wait long, for a kernel that shares the device?
 */
bool tutti_lanes_are_slow(const struct tutti_real_device *device);

/*
 * Finds how many such tasks have room on a device at once, by the kernel's work-items or
 * work-groups alone, and whether it is worth that. A transfer goes where the kernel can go that
 * will use what it brings. For the dispatching thread.
 */
void tutti_lanes_look_at(struct tutti_device_task *task);

/*
 * Is it better beside others than behind them with these? If it goes past StarPU, as its data stays
 * on a device, or takes so long that StarPU's price for a task of its own counts little.
 */
bool tutti_lanes_are_best_for(const struct tutti_device_task *task);

/*
 * Do so many kernels in one lane take long enough, in µs, that others gain by not waiting for them?
 * What is over as soon as the next one is launched does not.
 */
static inline bool tutti_lanes_are_worth(double time, unsigned kernels) {
    return time >= (kernels + 1) * TUTTI_LAUNCH_TIME;
}

/* Is it of such kernels? Then what the device does beside it may be over before. */
static inline bool tutti_lanes_are_for(const struct tutti_batch *batch) {
    return batch->parts > 1 &&
           (batch->shares || tutti_lanes_are_worth(batch->expected, batch->length));
}

/*
 * Does it share a GPU with others, and does nobody ask for the end of any of its commands? Then it
 * has no event: NVIDIA's driver (580.159) has at most eight kernels with events under way, and as
 * many with a marker behind each, but 24 and more without.
 */
bool tutti_lanes_are_quiet_for(const struct tutti_batch *batch);

/* On how many lanes of its device batches like this one may be; 1: on lane 0. */
unsigned tutti_lanes_for(const struct tutti_batch *batch, const struct tutti_real_device *device);

/* The lane with the fewest commands among the first `count`, with profiling or without. */
unsigned tutti_lanes_choose(const struct tutti_real_device *device, unsigned count, bool measured);

/* Is there a larger download under way, so that an upload would be better beside it? */
bool tutti_lanes_download(const struct tutti_real_device *device);

/* How many commands past StarPU are on lanes of transfers. */
unsigned tutti_lanes_transfers(const struct tutti_real_device *device);

/* Is it a GPU with longer kernels past StarPU, which go each by itself? */
bool tutti_lanes_are_long(const struct tutti_real_device *device);

/* Is the task a transfer for a lane of its kind there, where it does not wait for all of those? */
bool tutti_lanes_pass(const struct tutti_real_device *device, const struct tutti_device_task *task);

/*
 * The lane of transfers where the batch is better, as it passes others there or is a larger one
 * that the program does not wait for; 0: none. For the dispatching thread, once for each batch.
 */
unsigned tutti_lanes_choose_for_transfer(const struct tutti_batch *batch,
                                         const struct tutti_real_device *device);

/* The turn of the last one past StarPU on that lane. For the dispatching thread. */
unsigned tutti_lanes_turn(const struct tutti_real_device *device, unsigned lane);

/*
 * Before the batch's commands are enqueued: they come after those of the lanes in `after`, and, on
 * PoCL, after those of others that must not be executed at the same time (pocl.h). Returns the
 * driver's error. With the device's `enqueues` lock, as the next three.
 */
cl_int tutti_lanes_join(struct tutti_batch *batch);

/*
 * The batch's commands are enqueued: others may come after them. Notes the end for those, if the
 * last command has an event; that of a transfer's lane the batch has no more if it ends `unseen`
 * and is not measured.
 */
void tutti_lanes_note_enqueued(struct tutti_batch *batch, bool unseen);
/*
 * One more kernel of the batch was enqueued, which is not in its length yet: it has a new turn if
 * the lane counts those. With the device's `enqueues` lock.
 */
void tutti_lanes_append(struct tutti_batch *batch);

/* The end of the last command on the batch's lane of a device that streams; NULL: nothing tells. */
void tutti_lanes_note_tail(const struct tutti_batch *batch, cl_event end);

/* That, by the lane's queue. */
cl_event tutti_lanes_tail(const struct tutti_real_device *device, cl_command_queue queue);

/* Sets the batch's queue: to that lane of its device, or lane 0 if that can't be made. */
void tutti_lanes_enter(struct tutti_batch *batch, unsigned lane);
/* The batch is over, or will not begin; if it has a queue. */
void tutti_lanes_leave(struct tutti_batch *batch);

#endif
