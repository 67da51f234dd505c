/* SPDX-License-Identifier: MIT */
#include "sched/ahead.h"

#include "memory/room.h"
#include "sched/direct.h"
#include "sched/direct_end.h"
#include "sched/lanes.h"
#include "sched/policy.h"
#include "sched/runtime.h"

/*
 * Commands that are under way: more are worth a StarPU task, in which the device's own thread
 * enqueues them. PoCL may execute them in the thread that waits, which may be the program's.
 */
#define MOST 32
/*
 * Of those that have no other GPU to go to, or that take so little that StarPU's task would cost
 * more than another GPU gained: by themselves, or what is between two of their transfers, each of
 * which is a task (frames of 4 MiB took two H100 longer than one, those of 8 MiB less). At CLOSE
 * the program waits, as it would in the driver, for the oldest one that is marked: whose end is
 * seen while others are behind it, one in so many.
 */
#define MOST_OF_STREAM 128
#define BETWEEN_TRANSFERS 100.0 /* µs */
#define CLOSE 96
#define MARKED 32
#define MARKED_TRANSFERS 8 /* on the lanes of transfers, where fewer are */
/*
 * Not of kernels with no transfer among them that are commands, not appended (append.h), as their
 * events are wanted, or as several threads get in each other's way: a StarPU task for many, which
 * its worker enqueues meanwhile, costs less than to enqueue each here. How many more such ones
 * there were lately; and no more than so many count.
 */
#define MOSTLY_PLAIN 8
#define MOST_PLAIN 12
/*
 * Kernels whose times their driver is asked for, one by one, by who waits. But with a transfer
 * after so many of them at the most, StarPU's tasks, of which that is one as well, would cost more.
 */
#define MOST_PROFILED 4
#define MOST_UNMOVED 16
#define MOST_AT_HOME 4
/* Of those that could not begin earlier elsewhere; the rest is collected. */
#define MOST_LONGER 64
/*
 * Of one device that has all, or with what was collected: the program runs so far ahead of it
 * before its commands wait here. Or of one GPU with transfers beside longer kernels: once StarPU
 * had one of them, it would have all others, as the link is never free meanwhile (link.h).
 */
#define MOST_STREAMED 1024
/* The same for each lane that may be used, where some other device might be free for the next. */
#define MOST_AHEAD_IN_LANE 4

static atomic_uint commands[TUTTI_MAX_DEVICES]; /* of direct batches that are not over */
/* Those of them without a kernel, and µs that the others take. */
static atomic_uint transfers[TUTTI_MAX_DEVICES], computing[TUTTI_MAX_DEVICES];
static atomic_uint unmoved[TUTTI_MAX_DEVICES]; /* with a kernel, since the last one without */
/* Since the last one whose end is to be seen, of kernels' lanes, uploads and downloads. */
static atomic_uint unmarked[TUTTI_MAX_DEVICES][TUTTI_LANE_SLOTS];
static atomic_bool far; /* one may have CLOSE of them */
/* One more for each short kernel that is a command, one less for each that was appended. */
static atomic_int plain[TUTTI_MAX_DEVICES];
static atomic_uint delayed[TUTTI_MAX_DEVICES]; /* direct batches that lack a stay yet */

/* µs that those of longer kernels take the device, and how many there are at home. */
static atomic_uint lone[TUTTI_MAX_DEVICES];
static atomic_uint lone_at_home;

static bool is_delayed(const struct tutti_real_device *device) {
    return atomic_load(&delayed[device->index]) > 0;
}

bool tutti_ahead_is_all(const struct tutti_real_device *device) {
    unsigned d = device->index, given = atomic_load(&commands[d]);
    /* Twice, as they end, and others' begin, meanwhile. */
    return tutti_runtime_in_flight() == given && atomic_load(&commands[d]) == given &&
           !atomic_load(&lone[d]) && !is_delayed(device) && !tutti_room_working(device);
}

double tutti_ahead_busy(const struct tutti_real_device *device) {
    return atomic_load_explicit(&lone[device->index], memory_order_relaxed);
}

unsigned tutti_ahead_commands(const struct tutti_real_device *device) {
    return atomic_load(&commands[device->index]);
}

bool tutti_ahead_lone_at_home(void) { return atomic_load(&lone_at_home) > 0; }

void tutti_ahead_delay(const struct tutti_real_device *device, bool begins) {
    atomic_fetch_add(&delayed[device->index], begins ? 1u : -1u);
}

static unsigned on_first_lanes(const struct tutti_real_device *device) {
    unsigned all = atomic_load(&commands[device->index]), aside = tutti_lanes_busy(device);
    return all > aside ? all - aside : 0;
}

/* Could no other GPU take it? */
static bool is_only_there(const struct tutti_device_task *task) {
    return tutti_devices_apart(task->devices) <= 1;
}

/* MOST_OF_STREAM says of which. */
static bool is_of_stream(const struct tutti_real_device *device,
                         const struct tutti_device_task *task) {
    unsigned moves = atomic_load(&transfers[device->index]);
    if (!task->model)
        return true;
    if (moves == 0 && atomic_load(&plain[device->index]) >= MOSTLY_PLAIN)
        return false;
    return is_only_there(task) || task->time <= 2 * TUTTI_LAUNCH_TIME ||
           (moves > 0 && atomic_load(&computing[device->index]) <= BETWEEN_TRANSFERS * moves);
}

/*
 * What still waits for a stay, as an image of a buffer may, is on no queue: nothing may come after
 * it that would have to follow it there. A device that works for StarPU may have long kernels
 * before it. What moves bytes by memcpy waits for all that is on the queue (transfer_direct.c): in
 * the dispatching thread, unless the device executes nothing before somebody waits. Behind longer
 * kernels nothing goes that may find another device free, but transfers that pass them (lanes.h),
 * and what goes `behind` them anyway.
 */
bool tutti_ahead_has_time(const struct tutti_real_device *device,
                          const struct tutti_device_task *first, unsigned length, bool behind) {
    unsigned under_way = atomic_load(&commands[device->index]);
    if (tutti_room_working(device) || is_delayed(device))
        return false;
    if (length == 1 && tutti_lanes_pass(device, first))
        return under_way < (is_only_there(first) ? MOST_STREAMED : MOST_OF_STREAM);
    if (tutti_direct_streams(device) || (behind && length > 1))
        return under_way + length <= MOST_STREAMED;
    if (behind)
        return under_way < (is_only_there(first) && tutti_lanes_transfers(device) > 0
                                ? MOST_STREAMED
                                : MOST_LONGER);
    if (atomic_load(&lone[device->index]))
        return false;
    if (device->shares_host && !device->place.synchronous && under_way &&
        tutti_direct_is_at_work(device))
        return false;
    bool profiled = under_way && first->command.event->profiled && first->model &&
                    atomic_load(&unmoved[device->index]) > MOST_UNMOVED;
    unsigned most = device->shares_host           ? MOST_AT_HOME
                    : profiled                    ? MOST_PROFILED
                    : is_of_stream(device, first) ? MOST_OF_STREAM
                                                  : MOST;
    return on_first_lanes(device) + length <= most;
}

bool tutti_ahead_has_lane(const struct tutti_real_device *device, unsigned count, unsigned length,
                          unsigned devices, bool behind) {
    unsigned most =
        behind || tutti_is_one_device(devices) ? MOST_STREAMED : count * MOST_AHEAD_IN_LANE;
    return !is_delayed(device) && atomic_load(&commands[device->index]) + length <= most;
}

bool tutti_ahead_may_append(const struct tutti_batch *batch) {
    const struct tutti_real_device *device = batch->device;
    unsigned d = device->index, under_way = atomic_load(&commands[d]);
    bool aside = tutti_lane_is_aside(batch->lane);
    bool marks = !aside && under_way >= MARKED && atomic_load(&unmarked[d][0]) >= MARKED - 1;
    unsigned most = aside ? MOST_STREAMED : MOST_OF_STREAM;
    return !tutti_room_working(device) && !is_delayed(device) &&
           (batch->shares || !atomic_load(&lone[d])) && under_way < most &&
           !marks; /* a command is, then */
}

static void count_plain(unsigned device, int more) {
    int now = atomic_load_explicit(&plain[device], memory_order_relaxed) + more;
    now = now < 0 ? 0 : now > MOST_PLAIN ? MOST_PLAIN : now;
    atomic_store_explicit(&plain[device], now, memory_order_relaxed);
}

static void count_lone(struct tutti_batch *batch, double time) {
    batch->lone_time += (unsigned)time;
    atomic_fetch_add(&lone[batch->device->index], (unsigned)time);
}

void tutti_ahead_append(struct tutti_batch *batch, double time) {
    unsigned d = batch->device->index;
    count_plain(d, -1);
    if (batch->lone)
        count_lone(batch, time);
    if (!tutti_lane_is_aside(batch->lane))
        atomic_fetch_add(&unmarked[d][0], 1);
    if (!batch->computes)
        atomic_fetch_add(&transfers[d], 1);
    if (atomic_fetch_add(&commands[d], 1) + 1 >= CLOSE)
        atomic_store(&far, true);
}

/* Does it read to memory for which others of its queue waited lately? */
static bool lets_others_go(const struct tutti_batch *batch) {
    bool lets = false;
    for (const struct tutti_device_task *task = batch->first; task && !lets; task = task->next) {
        const struct _cl_command_queue *queue = task->command.event->queue;
        lets = task->command.host_written && queue &&
               atomic_load_explicit(&queue->host_waits, memory_order_relaxed) > 0;
    }
    return lets;
}

/* The device has one more batch; if it is a GPU, is its end to be seen while others are behind it?
 */
static void count_commands(struct tutti_batch *batch) {
    unsigned d = batch->device->index;
    unsigned before = atomic_fetch_add(&commands[d], batch->length);
    if (batch->computes) {
        atomic_fetch_add(&computing[d], (unsigned)batch->expected);
        atomic_fetch_add(&unmoved[d], batch->length);
        if (batch->expected <= 2 * TUTTI_LAUNCH_TIME)
            count_plain(d, 1);
    } else {
        atomic_fetch_add(&transfers[d], batch->length);
        atomic_store(&unmoved[d], 0);
    }
    if (!tutti_lanes_are_of_gpu(batch->device))
        return;
    batch->marked = lets_others_go(batch);
    if (tutti_lane_is_aside(batch->lane))
        return;
    bool transfer = tutti_lane_is_of_transfers(batch->lane);
    atomic_uint *unmarked_here = &unmarked[d][transfer ? tutti_lane_slot(batch->lane) : 0];
    unsigned since = atomic_fetch_add(unmarked_here, batch->length) + batch->length;
    batch->marked |= before >= MARKED && since >= (transfer ? MARKED_TRANSFERS : MARKED);
    if (batch->marked)
        atomic_store(unmarked_here, 0);
    if (before + batch->length >= CLOSE)
        atomic_store(&far, true);
}

bool tutti_ahead_enter(struct tutti_batch *batch) {
    count_commands(batch);
    batch->wait = tutti_ahead_busy(batch->device);
    if (!batch->lone)
        return false;
    count_lone(batch, batch->expected);
    return batch->device->at_home && atomic_fetch_add(&lone_at_home, 1) > 0;
}

void tutti_ahead_leave(const struct tutti_batch *batch) {
    if (batch->lone) {
        atomic_fetch_sub(&lone[batch->device->index], batch->lone_time);
        if (batch->device->at_home)
            atomic_fetch_sub(&lone_at_home, 1);
        tutti_policy_look_again(batch->device);
    }
    unsigned d = batch->device->index;
    if (batch->computes)
        atomic_fetch_sub(&computing[d], (unsigned)batch->expected);
    else
        atomic_fetch_sub(&transfers[d], batch->length);
    atomic_fetch_sub(&commands[d], batch->length);
}

/* Of longer kernels a hundred may take longer than the program likes to wait. */
static bool is_long_stream(unsigned d) {
    return atomic_load(&lone[d]) > 0 && tutti_devices_apart(~0u) <= 1;
}

void tutti_ahead_keep_close(void) {
    const struct tutti_device_list *list = tutti_devices();
    if (!atomic_load_explicit(&far, memory_order_relaxed))
        return;
    atomic_store(&far, false);
    for (unsigned d = 0; d < list->count; d++)
        while (tutti_lanes_are_of_gpu(list->device[d]) && !is_long_stream(d) &&
               on_first_lanes(list->device[d]) >= CLOSE &&
               tutti_direct_await_marked(list->device[d]))
            ;
}
