/* SPDX-License-Identifier: MIT */
#include "sched/lanes.h"

#include "env.h"
#include "log.h"
#include "sched/ahead.h"
#include "sched/direct.h"
#include "sched/invocation.h"
#include "sched/link.h"
#include "virtual_device/driver.h"
#include "virtual_device/pocl.h"

#include <stdlib.h>

/*
 * Work-items that keep a compute unit busy, as far as is known of a kernel: on an H100, whose units
 * have room for 2048, 512 that do nothing but multiply and add.
 */
#define ITEMS_PER_UNIT 512
/* With room for fewer kernels at once, one that is measured meanwhile would seem longer. */
#define LEAST_PARTS 4
#define MOST_ENDS 8 /* of a lane, that are known; of earlier ones a later one serves */

static struct lanes {
    pthread_mutex_t lock; /* held while a queue is made */
    cl_command_queue _Atomic queue[TUTTI_ALL_LANES];
    atomic_uint commands[TUTTI_ALL_LANES]; /* on each, */
    atomic_uint aside;                     /* on all that are aside, */
    atomic_uint slow;                      /* and of what shares the device on the others */
    atomic_uint downloads;                 /* larger ones, on any */
    /* For the dispatching threads, of which each context may have one. */
    atomic_bool streams;                /* the last larger upload was beside one of those */
    atomic_uint turn[TUTTI_LANE_SLOTS]; /* of the last batch past StarPU */
    unsigned order; /* counts batches, and what was appended; guarded by the device's `enqueues` */
    /* Of a GPU, guarded likewise. */
    unsigned enqueued[TUTTI_LANE_SLOTS]; /* the last turn of those that are on its queue */
    struct end {
        unsigned turn;
        cl_event event; /* retained; NULL: there is none */
        bool flushed;
    } end[TUTTI_LANE_SLOTS][MOST_ENDS];
    unsigned next_end[TUTTI_LANE_SLOTS];
    /* The rest is for devices that stream, and guarded by their `enqueues`. */
    cl_event tail[TUTTI_LANE_UPLOADS]; /* of each lane, retained; NULL: not known */
    unsigned alone, lane_of_alone;     /* counts batches that are to be alone, and where one is */
    unsigned alone_before[TUTTI_LANE_UPLOADS]; /* so many were when the lane had its last one */
} lanes[TUTTI_MAX_DEVICES] = {[0 ... TUTTI_MAX_DEVICES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static unsigned most = TUTTI_MOST_LANES_OF_STREAM;

static void read_most(void) {
    const char *wanted = tutti_env_string(TUTTI_LANES);
    if (!wanted || !*wanted)
        return;
    char *end;
    unsigned long number = strtoul(wanted, &end, 10);
    if (*end || number < 1)
        tutti_log(WARNING, "TUTTI_LANES is no number from 1 on: %s", wanted);
    else if (number < most)
        most = (unsigned)number;
}

unsigned tutti_lanes_most(const struct tutti_real_device *device) {
    pthread_once(&once, read_most);
    return tutti_direct_streams(device) || most < TUTTI_MOST_LANES ? most : TUTTI_MOST_LANES;
}

bool tutti_lanes_are_there(const struct tutti_real_device *device) {
    return (device->type & CL_DEVICE_TYPE_GPU && !device->place.synchronous) ||
           tutti_direct_streams(device);
}

unsigned tutti_lanes_busy(const struct tutti_real_device *device) {
    return atomic_load(&lanes[device->index].aside);
}

bool tutti_lanes_are_slow(const struct tutti_real_device *device) {
    return atomic_load(&lanes[device->index].slow) > 0;
}

/* 0: the driver chooses. */
static uint64_t groups_of(const struct tutti_range *range) {
    uint64_t groups = range->local_given;
    for (cl_uint d = 0; d < range->dimensions && groups; d++)
        groups *= range->global[d] / range->local[d];
    return groups;
}

/*
 * A core executes a work-group at a time; with twice as many lanes none is idle between two of one.
 * Shorter kernels go in a row (row.h).
 */
static uint64_t parts_of_cpu(const struct tutti_real_device *device,
                             const struct tutti_device_task *task) {
    if (!task->kernel || task->prints || tutti_model_measured(task->model) <= TUTTI_BRIEF)
        return 1;
    uint64_t groups = groups_of(task->range);
    return groups && 2 * groups <= device->compute_units ? 2 * device->compute_units / groups : 1;
}

static uint64_t parts_of_gpu(const struct tutti_real_device *device,
                             const struct tutti_model *model) {
    uint64_t items = tutti_model_items(model),
             room = (uint64_t)device->compute_units * ITEMS_PER_UNIT;
    uint64_t parts = items ? room / items : 1;
    return parts < LEAST_PARTS ? 1 : parts;
}

/*
 * How many such kernels have room on the device, or those with that model that a transfer is for;
 * 1: no more, or too few to gain anything.
 */
static unsigned parts_on(const struct tutti_real_device *device,
                         const struct tutti_device_task *task, const struct tutti_model *model) {
    unsigned most_lanes = tutti_lanes_most(device);
    if (!model || most_lanes == 1 || !tutti_lanes_are_there(device))
        return 1;
    uint64_t parts =
        tutti_direct_streams(device) ? parts_of_cpu(device, task) : parts_of_gpu(device, model);
    return parts > most_lanes ? most_lanes : parts > 1 ? (unsigned)parts : 1;
}

/* Of those that may execute it, by the one with room for most where it was measured. */
void tutti_lanes_look_at(struct tutti_device_task *task) {
    const struct tutti_device_list *list = tutti_devices();
    const struct tutti_model *model = task->kernel       ? task->model
                                      : task->count == 1 ? task->use->view->history->reader
                                                         : NULL;
    task->parts = 1;
    for (unsigned d = 0; d < list->count; d++)
        if (task->devices & 1u << d && tutti_model_is_measured(model, list->device[d])) {
            unsigned parts = parts_on(list->device[d], task, model);
            task->parts = parts > task->parts ? parts : task->parts;
        }
    task->shares = task->parts > 1 && tutti_lanes_are_worth(tutti_model_measured(model), 1);
}

bool tutti_lanes_are_best_for(const struct tutti_device_task *task) {
    bool stays = true;
    for (unsigned i = 0; i < task->count && stays; i++)
        stays = task->use[i].view->seat && !task->use[i].view->at_home;
    return task->shares && (stays || task->time > TUTTI_BRIEF);
}

bool tutti_lanes_are_quiet_for(const struct tutti_batch *batch) {
    bool quiet = tutti_lanes_are_of_gpu(batch->device) &&
                 (batch->shares || tutti_lane_is_aside(batch->lane));
    for (const struct tutti_device_task *task = batch->first; task && quiet; task = task->next)
        quiet = !tutti_event_is_seen(task->command.event) && !task->command.event->caller_runs;
    return quiet;
}

unsigned tutti_lanes_for(const struct tutti_batch *batch, const struct tutti_real_device *device) {
    bool may = tutti_lanes_are_there(device) && tutti_lanes_are_for(batch);
    unsigned parts = may ? batch->parts : 1;
    for (const struct tutti_device_task *task = batch->first; task && parts > 1;
         task = task->next) {
        unsigned there = task->kernel ? parts_on(device, task, task->model) : parts;
        parts = there < parts ? there : parts;
    }
    return parts;
}

unsigned tutti_lanes_choose(const struct tutti_real_device *device, unsigned count, bool measured) {
    const atomic_uint *commands = lanes[device->index].commands;
    unsigned first = measured ? TUTTI_LANE_MEASURED : 0, best = first;
    unsigned least = atomic_load_explicit(&commands[first], memory_order_relaxed);
    for (unsigned i = 1; i < count && least > 0; i++) {
        unsigned lane = measured ? first + i : tutti_lane_of_stream(i);
        unsigned there = atomic_load_explicit(&commands[lane], memory_order_relaxed);
        if (there < least) {
            best = lane;
            least = there;
        }
    }
    return best;
}

bool tutti_lanes_download(const struct tutti_real_device *device) {
    return atomic_load(&lanes[device->index].downloads) > 0;
}

unsigned tutti_lanes_transfers(const struct tutti_real_device *device) {
    const atomic_uint *commands = lanes[device->index].commands;
    unsigned transfers = 0;
    for (unsigned lane = TUTTI_LANE_UPLOADS; lane < TUTTI_ALL_LANES; lane++)
        transfers += atomic_load(&commands[lane]);
    return transfers;
}

bool tutti_lanes_are_long(const struct tutti_real_device *device) {
    return tutti_lanes_are_of_gpu(device) && tutti_ahead_busy(device) > 0;
}

bool tutti_lanes_pass(const struct tutti_real_device *device,
                      const struct tutti_device_task *task) {
    return task->beside && tutti_lanes_are_long(device);
}

/*
 * The driver's waits between queues cost a program of one frame more than it gains. It has several
 * under way if it uploads while it still reads.
 */
unsigned tutti_lanes_choose_for_transfer(const struct tutti_batch *batch,
                                         const struct tutti_real_device *device) {
    const struct tutti_device_task *task = batch->first;
    struct lanes *own = &lanes[device->index];
    if (batch->length > 1)
        return 0;
    if (task->apart || tutti_lanes_pass(device, task))
        return task->beside;
    if (!task->streams || task->command.event->caller_runs)
        return 0;
    if (!tutti_lane_is_of_downloads(task->beside))
        atomic_store(&own->streams, tutti_lanes_download(device));
    return atomic_load(&own->streams) ? task->beside : 0;
}

unsigned tutti_lanes_turn(const struct tutti_real_device *device, unsigned lane) {
    return atomic_load(&lanes[device->index].turn[tutti_lane_slot(lane)]);
}

/* NULL: it can't be made. */
static cl_command_queue make_queue(const struct tutti_real_device *device, unsigned lane) {
    cl_int error;
    bool profiles = tutti_lane_is_measured(lane) || tutti_device_has_one_queue(device);
    cl_command_queue queue = device->dispatch->clCreateCommandQueue(
        device->place.context, device->id, profiles ? CL_QUEUE_PROFILING_ENABLE : 0, &error);
    if (error == CL_SUCCESS)
        return queue;
    tutti_log(ERROR, "%s: clCreateCommandQueue failed with %d", device->name, error);
    return NULL;
}

cl_command_queue tutti_lanes_queue(const struct tutti_real_device *device, unsigned lane) {
    if (lane == 0)
        return device->place.kernels;
    if (lane == TUTTI_LANE_MEASURED)
        return device->place.measured;
    struct lanes *own = &lanes[device->index];
    cl_command_queue queue = atomic_load_explicit(&own->queue[lane], memory_order_acquire);
    if (queue)
        return queue;
    pthread_mutex_lock(&own->lock);
    queue = own->queue[lane];
    if (!queue) {
        queue = make_queue(device, lane);
        atomic_store_explicit(&own->queue[lane], queue, memory_order_release);
    }
    pthread_mutex_unlock(&own->lock);
    return queue;
}

/* Where such a batch on that lane is counted, or NULL. */
static atomic_uint *counter_of(const struct tutti_batch *batch, unsigned lane) {
    struct lanes *own = &lanes[batch->device->index];
    return tutti_lane_is_aside(lane)                                         ? &own->aside
           : !tutti_lane_is_of_transfers(lane) && tutti_lanes_are_for(batch) ? &own->slow
                                                                             : NULL;
}

static bool downloads(const struct tutti_batch *batch) {
    return batch->first->streams && tutti_lane_is_of_downloads(batch->first->beside);
}

static void note_apart(const struct tutti_batch *batch, bool begins) {
    if (batch->first->apart)
        tutti_link_note_long(batch->device,
                             tutti_lane_is_of_downloads(batch->first->beside) ? TUTTI_DOWNLOAD
                                                                              : TUTTI_UPLOAD,
                             begins);
}

static unsigned next_turn(struct lanes *own, unsigned slot) {
    return atomic_fetch_add(&own->turn[slot], 1) + 1;
}

void tutti_lanes_enter(struct tutti_batch *batch, unsigned lane) {
    const struct tutti_real_device *device = batch->device;
    batch->queue = tutti_lanes_queue(device, lane);
    if (!batch->queue) {
        bool measured = tutti_lane_is_measured(lane) && !tutti_device_has_one_queue(device);
        lane = measured ? TUTTI_LANE_MEASURED : 0;
        batch->queue = tutti_lanes_queue(device, lane);
    }
    batch->lane = lane;
    if (batch->direct && tutti_lane_slot(lane) < TUTTI_LANE_SLOTS)
        batch->turn = next_turn(&lanes[device->index], tutti_lane_slot(lane));
    atomic_fetch_add_explicit(&lanes[device->index].commands[lane], batch->length,
                              memory_order_relaxed);
    batch->counter = counter_of(batch, lane);
    if (batch->counter)
        atomic_fetch_add(batch->counter, batch->length);
    if (downloads(batch))
        atomic_fetch_add(&lanes[device->index].downloads, 1);
    note_apart(batch, true);
    if (lane != 0 && lane != TUTTI_LANE_MEASURED)
        tutti_log(DEBUG, "%s: %u commands in lane %u", device->name, batch->length, lane);
}

void tutti_lanes_leave(struct tutti_batch *batch) {
    if (!batch->queue)
        return;
    atomic_fetch_sub_explicit(&lanes[batch->device->index].commands[batch->lane], batch->length,
                              memory_order_relaxed);
    if (batch->counter)
        atomic_fetch_sub(batch->counter, batch->length);
    if (downloads(batch))
        atomic_fetch_sub(&lanes[batch->device->index].downloads, 1);
    note_apart(batch, false);
    batch->queue = NULL;
}

void tutti_lanes_note_tail(const struct tutti_batch *batch, cl_event end) {
    const cl_icd_dispatch *driver = batch->device->dispatch;
    cl_event *tail = &lanes[batch->device->index].tail[batch->lane];
    if (*tail)
        driver->clReleaseEvent(*tail);
    *tail = end && driver->clRetainEvent(end) == CL_SUCCESS ? end : NULL;
}

cl_event tutti_lanes_tail(const struct tutti_real_device *device, cl_command_queue queue) {
    const struct lanes *own = &lanes[device->index];
    for (unsigned i = 0; i < TUTTI_LANE_UPLOADS; i++)
        if (queue == (i ? atomic_load(&own->queue[i]) : device->place.kernels))
            return own->tail[i];
    return NULL;
}

/* Is there a kernel in it that PoCL must not execute beside others? */
static bool is_confusing(const struct tutti_batch *batch) {
    bool confusing = false;
    for (const struct tutti_device_task *task = batch->first; task; task = task->next) {
        if (!task->kernel)
            continue;
        struct tutti_pocl_launch launch = tutti_range_for_pocl(task->range, task->kernel->name);
        confusing |= tutti_pocl_confuses(&launch);
    }
    return confusing;
}

/* The other lanes that it must wait for, so that PoCL does not confuse kernels. */
static tutti_lane_set apart_from(struct lanes *own, const struct tutti_batch *batch) {
    tutti_lane_set others = 0;
    unsigned lane = batch->lane;
    if (!tutti_pocl_is(batch->device))
        return 0;
    if (is_confusing(batch)) {
        for (unsigned i = 0; i < TUTTI_LANE_UPLOADS; i++)
            others |= atomic_load(&own->commands[i]) > 0 ? tutti_lane_bit(i) : 0;
        own->alone++;
        own->lane_of_alone = lane;
    } else if (own->alone_before[lane] != own->alone) {
        others = tutti_lane_bit(own->lane_of_alone);
    }
    own->alone_before[lane] = own->alone;
    return others;
}

/* Takes the reference. */
static struct end *add_end(struct lanes *own, unsigned slot, unsigned turn, cl_event event,
                           const cl_icd_dispatch *driver) {
    struct end *end = &own->end[slot][own->next_end[slot]++ % MOST_ENDS];
    if (end->event)
        driver->clReleaseEvent(end->event);
    *end = (struct end){.turn = turn, .event = event};
    return end;
}

/*
 * Another context's thread may have taken a later turn and been here before: what ended such a one
 * tells nothing of this.
 */
static void note_turn(struct lanes *own, unsigned slot, unsigned turn,
                      const cl_icd_dispatch *driver) {
    if (!tutti_turn_is_before(turn, own->enqueued[slot])) {
        own->enqueued[slot] = turn;
        return;
    }
    for (struct end *end = own->end[slot]; end < own->end[slot] + MOST_ENDS; end++) {
        if (!end->event || !tutti_turn_is_before(turn, end->turn))
            continue;
        driver->clReleaseEvent(end->event);
        end->event = NULL;
    }
}

static void note_order(struct lanes *own, struct tutti_batch *batch) {
    atomic_store_explicit(&batch->order, ++own->order, memory_order_relaxed);
}

void tutti_lanes_note_enqueued(struct tutti_batch *batch, bool unseen) {
    const struct tutti_real_device *device = batch->device;
    struct lanes *own = &lanes[device->index];
    unsigned slot = tutti_lane_slot(batch->lane);
    note_order(own, batch);
    if (!batch->direct || slot == TUTTI_LANE_SLOTS || !tutti_lanes_are_of_gpu(device))
        return;
    note_turn(own, slot, batch->turn, device->dispatch);
    if (!batch->end)
        return;
    bool given = unseen && tutti_lane_is_of_transfers(batch->lane) && !batch->first->measured;
    if (!given && device->dispatch->clRetainEvent(batch->end) != CL_SUCCESS)
        return;
    add_end(own, slot, batch->turn, batch->end, device->dispatch);
    if (given) /* a transfer is alone in its batch */
        batch->end = batch->first->real = NULL;
}

void tutti_lanes_append(struct tutti_batch *batch) {
    struct lanes *own = &lanes[batch->device->index];
    unsigned slot = tutti_lane_slot(batch->lane);
    note_order(own, batch);
    if (slot < TUTTI_LANE_SLOTS)
        own->enqueued[slot] = batch->turn = next_turn(own, slot);
    atomic_fetch_add_explicit(&own->commands[batch->lane], 1, memory_order_relaxed);
    if (batch->counter)
        atomic_fetch_add(batch->counter, 1);
}

/*
 * The earliest known end on a GPU's lane of all that the batch must come after there; NULL: its
 * queue must be empty.
 */
static cl_event find_end(const struct tutti_batch *batch, unsigned lane) {
    const struct tutti_real_device *device = batch->device;
    struct lanes *own = &lanes[device->index];
    unsigned slot = tutti_lane_slot(lane);
    struct end *found = NULL;
    if (slot == TUTTI_LANE_SLOTS)
        return NULL;
    cl_command_queue queue = tutti_lanes_queue(device, lane);
    cl_event marker = NULL;
    for (struct end *end = own->end[slot]; end < own->end[slot] + MOST_ENDS; end++)
        if (end->event && !tutti_turn_is_before(end->turn, batch->after_turn[slot]) &&
            (!found || tutti_turn_is_before(end->turn, found->turn)))
            found = end;
    if (!found) {
        if (device->dispatch->clEnqueueMarkerWithWaitList(queue, 0, NULL, &marker) != CL_SUCCESS)
            return NULL;
        found = add_end(own, slot, own->enqueued[slot], marker, device->dispatch);
    }
    if (!found->flushed)
        device->dispatch->clFlush(queue); /* else other queues may wait for ever (5.13) */
    found->flushed = true;
    return found->event;
}

cl_int tutti_lanes_join(struct tutti_batch *batch) {
    const struct tutti_real_device *device = batch->device;
    cl_event end[TUTTI_ALL_LANES];
    cl_uint count = 0;
    cl_int error = CL_SUCCESS;
    tutti_lane_set after =
        batch->after |
        (tutti_direct_streams(device) ? apart_from(&lanes[device->index], batch) : 0);
    after &= ~tutti_lane_bit(batch->lane);
    if (!after)
        return CL_SUCCESS;
    tutti_driver_take(device); /* so not tutti_driver_finish, which takes it as well */
    for (; after && error == CL_SUCCESS; after &= after - 1) {
        unsigned lane = tutti_lane_first(after);
        end[count] =
            tutti_direct_streams(device) ? lanes[device->index].tail[lane] : find_end(batch, lane);
        if (end[count])
            count++;
        else if (device->dispatch->clFinish(tutti_lanes_queue(device, lane)) != CL_SUCCESS)
            error = CL_OUT_OF_RESOURCES;
    }
    if (count && error == CL_SUCCESS)
        error = device->dispatch->clEnqueueBarrierWithWaitList(batch->queue, count, end, NULL);
    tutti_driver_give(device);
    return error;
}
