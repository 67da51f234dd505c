/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "sched/direct_end.h"

#include "brief_lock.h"
#include "clock.h"
#include "context.h"
#include "log.h"
#include "sched/ahead.h"
#include "sched/crew.h"
#include "sched/direct.h"
#include "sched/execution.h"
#include "sched/lanes.h"
#include "sched/row.h"
#include "sched/runtime.h"
#include "virtual_device/driver.h"

#include <sys/prctl.h>

/* ns */
#define LOOK 100000u     /* between two looks at what nobody waits for, */
#define RARELY 400000u   /* at most, while the program waits for all that there is, */
#define SELDOM 1000000u  /* and while there is nothing */
#define AWAITED 4000000u /* or a thread waits that sees to it afterwards */
#define KEPT 1000000u    /* or the program is close behind, which sees to it again and again */
#define DROWSY 5000000u  /* without anything to look after: the thread goes */

/* One thread at a time for each lane, so that commands end in the order of their execution. */
#define LANES (TUTTI_MAX_DEVICES * TUTTI_ALL_LANES)
static pthread_mutex_t completing[LANES] = {[0 ... LANES - 1] = PTHREAD_MUTEX_INITIALIZER};

static struct {
    pthread_mutex_t lock; /* guards all below, and what the listed batches say of themselves */
    pthread_cond_t wake;
    struct tutti_batch *first, **last; /* to be completed, oldest first */
    atomic_uint count;
    atomic_uint sleepers;            /* see tutti_direct_note_sleeper */
    unsigned count_in[LANES], lanes; /* of each lane; lanes that have some */
    cl_ulong due[LANES];             /* when one aside should have done all that it has, about */
    unsigned look;                   /* counts the thread's looks */
    unsigned awaiting;               /* threads in await_last_before */
    cl_ulong kept;                   /* when the program last saw to what it is too far ahead of */
    struct tutti_job watch;
    bool watched, hurry, stopped;
} direct = {
    .lock = TUTTI_BRIEF_LOCK, .wake = PTHREAD_COND_INITIALIZER, .last = &direct.first, .look = 1};

/*
 * The number of the lane that the batch is on, among those of all devices. Where there are none, a
 * batch that is measured still comes before the next one.
 */
static unsigned lane_of(const struct tutti_batch *batch) {
    unsigned lane = tutti_lanes_are_there(batch->device) ? batch->lane : 0;
    return batch->device->index * TUTTI_ALL_LANES + lane;
}

unsigned tutti_direct_place(const struct tutti_batch *batch) { return lane_of(batch) + 1; }
unsigned tutti_direct_device_of(unsigned place) { return (place - 1) / TUTTI_ALL_LANES; }
unsigned tutti_direct_lane_of(unsigned place) { return (place - 1) % TUTTI_ALL_LANES; }

/* One more is listed, or one less, which other threads read. Lock held. */
static void count(const struct tutti_batch *batch, int more) {
    unsigned now = atomic_load_explicit(&direct.count, memory_order_relaxed);
    unsigned *own = &direct.count_in[lane_of(batch)];
    atomic_store_explicit(&direct.count, now + (unsigned)more, memory_order_release);
    direct.lanes -= *own > 0;
    *own += (unsigned)more;
    direct.lanes += *own > 0;
}

/* Lock held. */
static void take_out(struct tutti_batch **link) {
    *link = (*link)->next_direct;
    if (!*link)
        direct.last = link;
}

/* Lock held. */
static void list(struct tutti_batch *batch) {
    batch->next_direct = NULL;
    *direct.last = batch;
    direct.last = &batch->next_direct;
}

/* Takes the oldest batch of the lane out of the list; NULL: there is none. Lock held. */
static struct tutti_batch *take_next(unsigned lane) {
    struct tutti_batch **link = &direct.first;
    while (*link && lane_of(*link) != lane)
        link = &(*link)->next_direct;
    struct tutti_batch *batch = direct.stopped ? NULL : *link;
    if (batch) {
        take_out(link);
        batch->listed = false;
        count(batch, -1);
    }
    return batch;
}

void tutti_direct_start(struct tutti_batch *batch) {
    struct tutti_real_device *device = batch->device;
    /* A marker would come behind longer kernels that are not before the batch. */
    bool longer = !device->at_home && tutti_ahead_busy(device) > 0,
         quiet = tutti_lanes_are_quiet_for(batch);
    bool later = tutti_direct_streams(device) || batch->marked ||
                 (!quiet && (tutti_lane_is_aside(batch->lane) || longer));
    if (longer && batch->lone && !quiet)
        tutti_direct_mark(batch);
    tutti_log(DEBUG, "%s: %u commands past StarPU", device->name, batch->length);
    tutti_execution_start(batch, device->place.synchronous ? TUTTI_ENDS_HERE
                                 : later                   ? TUTTI_ENDS_LATER
                                                           : TUTTI_ENDS_UNSEEN);
}

/* The last one that is listed for the lane; NULL: there is none. */
static const struct tutti_batch *find_last(unsigned lane) {
    const struct tutti_batch *last = NULL;
    pthread_mutex_lock(&direct.lock);
    for (const struct tutti_batch *batch = direct.first; batch; batch = batch->next_direct)
        last = lane_of(batch) == lane ? batch : last;
    pthread_mutex_unlock(&direct.lock);
    return last;
}

/* All of the queue up to that one are over; whose end is seen by an event has its result there. */
static void note_over(cl_command_queue queue, const struct tutti_batch *last) {
    bool listed = last != NULL;
    pthread_mutex_lock(&direct.lock);
    for (struct tutti_batch *batch = direct.first; batch && listed; batch = batch->next_direct) {
        if (batch->queue == queue && !batch->end && !batch->marker)
            batch->over = true;
        listed = batch != last;
    }
    pthread_mutex_unlock(&direct.lock);
}

/*
 * Was it given to their device before that one? The list may have them the other way round, where
 * several contexts give it something at the same time.
 */
static bool is_before(const struct tutti_batch *batch, const struct tutti_batch *other) {
    return tutti_turn_is_before(atomic_load_explicit(&batch->order, memory_order_relaxed),
                                atomic_load_explicit(&other->order, memory_order_relaxed));
}

/* Notes that what is before the one with that end, on its queue, is over. Lock held. */
static void note_over_before(cl_event end) {
    const struct tutti_batch *last = direct.first;
    while (last && last->end != end)
        last = last->next_direct;
    for (struct tutti_batch *batch = direct.first; last && batch; batch = batch->next_direct)
        if (batch->queue == last->queue && is_before(batch, last) && !batch->end && !batch->marker)
            batch->over = true;
}

/*
 * The first marked one of a lane that is listed, and comes after that batch if there is one; NULL:
 * there is none. Lock held.
 */
static struct tutti_batch *find_marked(unsigned lane, const struct tutti_batch *before) {
    struct tutti_batch *batch = direct.first;
    while (batch && !(batch->marked && batch->end && lane_of(batch) == lane &&
                      (!before || is_before(before, batch))))
        batch = batch->next_direct;
    return batch;
}

/* Its end, retained; NULL: there is none. */
static cl_event end_of_marked(unsigned lane, const struct tutti_batch *before) {
    pthread_mutex_lock(&direct.lock);
    const struct tutti_batch *batch = direct.stopped ? NULL : find_marked(lane, before);
    cl_event end = batch ? batch->end : NULL;
    if (end && batch->device->dispatch->clRetainEvent(end) != CL_SUCCESS)
        end = NULL;
    pthread_mutex_unlock(&direct.lock);
    return end;
}

/* Waits for that, which this gives back, and notes what is over then. */
static void await_marked(const struct tutti_real_device *device, cl_event end) {
    tutti_driver_await(device, end, 0);
    pthread_mutex_lock(&direct.lock);
    note_over_before(end);
    pthread_mutex_unlock(&direct.lock);
    device->dispatch->clReleaseEvent(end);
}

/* Waits for the batch, which was taken. With its lane's lock: nobody else takes one. */
static void wait_for(struct tutti_batch *batch) {
    cl_command_queue queue = batch->queue;
    bool unseen = !batch->end && !batch->marker && !batch->over;
    cl_event marked = unseen ? end_of_marked(lane_of(batch), batch) : NULL;
    if (marked) { /* others go on while what is behind that is executed */
        await_marked(batch->device, marked);
        batch->over = true;
        return;
    }
    const struct tutti_batch *last = unseen ? find_last(lane_of(batch)) : NULL;
    if (tutti_execution_wait(batch))
        note_over(queue, last);
}

/* Completes a batch that was taken, when it is over. With its lane's lock, which this opens. */
static void complete(struct tutti_batch *batch) {
    unsigned lane = lane_of(batch);
    if (batch->device->place.synchronous)
        tutti_direct_start(batch);
    else
        wait_for(batch);
    tutti_direct_leave(batch);
    tutti_execution_collect(batch);
    pthread_mutex_unlock(&completing[lane]);
    tutti_execution_end(batch);
}

/*
 * The oldest batch that comes before the event, as far as is known here; NULL: there is none, or it
 * was taken to be completed. Lock held.
 */
static struct tutti_batch *find_before_event(const struct _cl_event *event) {
    struct tutti_batch *batch = direct.stopped ? NULL : direct.first;
    while (batch && !tutti_batch_comes_before(batch, event))
        batch = batch->next_direct;
    return batch;
}

/* Completes the lane's oldest batch; for an event, unless none comes before that any more. */
static void complete_next(unsigned lane, const struct _cl_event *event) {
    pthread_mutex_lock(&completing[lane]);
    pthread_mutex_lock(&direct.lock);
    const struct tutti_batch *before = event ? find_before_event(event) : NULL;
    struct tutti_batch *batch =
        !event || (before && lane_of(before) == lane) ? take_next(lane) : NULL;
    pthread_mutex_unlock(&direct.lock);
    if (batch)
        complete(batch);
    else
        pthread_mutex_unlock(&completing[lane]);
}

static bool is_over(struct tutti_batch *batch) {
    return batch->device->place.synchronous || tutti_execution_is_over(batch);
}

/* The end of a marked one tells it of all that is before. Lock held. */
static bool is_known_over(struct tutti_batch *batch) {
    bool unseen = !batch->end && !batch->marker && !batch->over;
    struct tutti_batch *marked = unseen ? find_marked(lane_of(batch), batch) : NULL;
    if (!marked)
        return is_over(batch);
    if (tutti_execution_is_over(marked))
        note_over_before(marked->end);
    return batch->over;
}

/* The batch's lane has so many µs more to do. Lock held. */
static void put_off(const struct tutti_batch *batch, double time) {
    cl_ulong now = tutti_runtime_about_now(), *due = &direct.due[lane_of(batch)];
    *due = (*due > now ? *due : now) + (cl_ulong)(time * 1000);
}

/*
 * May the batch's end be looked for though nobody waits for it? A marker keeps others from the
 * device (lanes.h) until all is over that is before it in its lane. Lock held.
 */
static bool is_due(const struct tutti_batch *batch, cl_ulong now) {
    return batch->end || batch->marker || !tutti_lanes_are_quiet_for(batch) ||
           now > direct.due[lane_of(batch)];
}

/*
 * The first batch of a lane which can be completed without delay, in a thread that has time: one
 * that was there at the look before this one. If one lane of one device has some and something
 * depends on it, a wait for it is no delay. Lock held.
 */
static struct tutti_batch *find_ripe(void) {
    tutti_lane_set seen[TUTTI_MAX_DEVICES] = {0};
    unsigned lanes_left = direct.lanes;
    cl_ulong now = tutti_runtime_about_now();
    for (struct tutti_batch *batch = direct.first; batch && lanes_left > 0;
         batch = batch->next_direct) {
        tutti_lane_set *lanes = &seen[batch->device->index],
                       bit = tutti_lane_bit(lane_of(batch) % TUTTI_ALL_LANES);
        if (*lanes & bit)
            continue;
        *lanes |= bit;
        lanes_left--;
        if (direct.hurry && direct.lanes == 1 && tutti_devices()->serving == 1)
            return batch;
        if (!batch->looked && !batch->device->place.synchronous)
            tutti_execution_flush(batch);
        if (!batch->looked)
            batch->looked = direct.look;
        bool ripe = direct.hurry || (batch->looked != direct.look && is_due(batch, now));
        if (ripe && is_known_over(batch))
            return batch;
    }
    return NULL;
}

/*
 * In a hurry more often, unless a CPU device needs the cores itself; less so if it is for a longer
 * kernel.
 */
static void doze(unsigned length) {
    bool longer = direct.first && direct.first->lone;
    if (direct.hurry && !tutti_direct_serves_all())
        length = longer ? LOOK / 3 : LOOK / 10;
    struct timespec deadline = tutti_clock_deadline(length);
    pthread_cond_timedwait(&direct.wake, &direct.lock, &deadline);
    if (++direct.look == 0)
        direct.look = 1;
}

static void watch(struct tutti_job *job) {
    (void)job;
    prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0); /* else Linux adds up to 50 µs to each sleep */
    cl_ulong worked = tutti_runtime_now();
    unsigned length = LOOK;
    pthread_mutex_lock(&direct.lock);
    while (!direct.stopped && (direct.first || tutti_runtime_now() - worked < DROWSY)) {
        /* A look takes a core from the kernels, for some 10 µs. */
        bool kept = tutti_runtime_now() - direct.kept < KEPT;
        bool awaited = (direct.awaiting > 0 || kept) && !direct.hurry;
        struct tutti_batch *batch = awaited ? NULL : find_ripe();
        if (batch) {
            unsigned lane = lane_of(batch);
            pthread_mutex_unlock(&direct.lock);
            complete_next(lane, NULL);
            worked = tutti_runtime_now();
            length = LOOK;
            pthread_mutex_lock(&direct.lock);
        } else {
            if (!direct.first)
                direct.hurry = false;
            doze(kept ? KEPT : awaited ? AWAITED : direct.first ? length : SELDOM);
            length = 2 * length < RARELY ? 2 * length : RARELY;
        }
    }
    direct.watched = false;
    pthread_mutex_unlock(&direct.lock);
}

/* Lock held. */
static void begin_to_hurry(void) {
    if (!direct.hurry)
        pthread_cond_signal(&direct.wake);
    direct.hurry = true;
}

void tutti_direct_enter(struct tutti_batch *batch) {
    pthread_mutex_lock(&direct.lock);
    list(batch);
    batch->listed = true;
    count(batch, 1);
    put_off(batch, batch->expected);
    if (atomic_load(&direct.sleepers) > 0)
        begin_to_hurry();
    bool watched = direct.watched || direct.stopped;
    direct.watched = true;
    pthread_mutex_unlock(&direct.lock);
    if (!watched) {
        direct.watch.run = watch;
        tutti_pool_run(&direct.watch);
    }
}

bool tutti_direct_reopen(struct tutti_batch *batch) {
    pthread_mutex_t *own = &completing[lane_of(batch)];
    if (pthread_mutex_trylock(own) != 0)
        return false;
    pthread_mutex_lock(&direct.lock);
    bool open = batch->listed && !direct.stopped && !batch->marked && !batch->over;
    pthread_mutex_unlock(&direct.lock);
    if (!open)
        pthread_mutex_unlock(own);
    return open;
}

/* What tells the end of the others of its lane, now before it, tells nothing of its own. */
static void put_last(struct tutti_batch *batch) {
    struct tutti_batch **link = &direct.first;
    if (direct.last == &batch->next_direct)
        return;
    while (*link != batch)
        link = &(*link)->next_direct;
    take_out(link);
    list(batch);
}

void tutti_direct_close(struct tutti_batch *batch, bool longer, double time) {
    pthread_mutex_lock(&direct.lock);
    if (longer) {
        put_last(batch);
        tutti_execution_forget_end(batch);
        if (!tutti_lane_is_aside(batch->lane))
            batch->looked = 0;
        put_off(batch, time);
    }
    pthread_mutex_unlock(&direct.lock);
    pthread_mutex_unlock(&completing[lane_of(batch)]);
}

bool tutti_direct_is_at_work(const struct tutti_real_device *device) {
    bool at_work = false;
    pthread_mutex_lock(&direct.lock);
    for (const struct tutti_batch *batch = direct.first; batch && !at_work;
         batch = batch->next_direct)
        at_work = batch->device == device && !batch->over;
    pthread_mutex_unlock(&direct.lock);
    return at_work;
}

static void hurry(void) {
    if (atomic_load(&direct.count) == 0)
        return;
    pthread_mutex_lock(&direct.lock);
    begin_to_hurry();
    pthread_mutex_unlock(&direct.lock);
}

void tutti_direct_hurry(void) {
    hurry();
    tutti_crew_hurry();
}

/* The oldest short one whose end lets others go, as the event's command may be. Lock held. */
static struct tutti_batch *find_followed(const struct _cl_event *event) {
    struct tutti_batch *batch = direct.stopped ? NULL : direct.first;
    while (batch && !(batch->brief && batch->context == event->context &&
                      atomic_load(&batch->state) == TUTTI_BATCH_FOLLOWED))
        batch = batch->next_direct;
    return batch;
}

/*
 * Completes a batch that comes before the event, or one for which that may wait; false: there is
 * none any more.
 */
static bool complete_before(cl_event event, bool only_if_over) {
    pthread_mutex_lock(&direct.lock);
    struct tutti_batch *batch = find_before_event(event);
    bool known = batch != NULL;
    if (!known)
        batch = find_followed(event);
    bool may = batch && (!only_if_over || is_over(batch));
    unsigned lane = batch ? lane_of(batch) : 0;
    pthread_mutex_unlock(&direct.lock);
    if (may)
        complete_next(lane, known ? event : NULL);
    return may;
}

/*
 * Where each has an event, waits for the last one that comes before this one, without any lock: the
 * thread wakes once, not at the end of each.
 */
static void await_last_before(cl_event event) {
    struct tutti_real_device *device = tutti_devices()->device[0];
    cl_event last = NULL;
    if (!tutti_direct_streams(device))
        return;
    pthread_mutex_lock(&direct.lock);
    for (struct tutti_batch *batch = direct.first; batch && !direct.stopped;
         batch = batch->next_direct)
        if (batch->end && tutti_batch_comes_before(batch, event))
            last = batch->end;
    if (last && device->dispatch->clRetainEvent(last) != CL_SUCCESS)
        last = NULL;
    direct.awaiting += last != NULL;
    pthread_mutex_unlock(&direct.lock);
    if (!last)
        return;
    tutti_driver_wait(device, last);
    pthread_mutex_lock(&direct.lock);
    direct.awaiting--;
    pthread_mutex_unlock(&direct.lock);
}

/* Completes the lane's oldest batch if an event that there is tells that it is over. */
static bool complete_over(unsigned lane) {
    pthread_mutex_lock(&completing[lane]);
    pthread_mutex_lock(&direct.lock);
    struct tutti_batch *first = direct.first;
    while (first && lane_of(first) != lane)
        first = first->next_direct;
    bool told = first && (first->over || first->end || find_marked(lane, first));
    struct tutti_batch *batch = told && is_known_over(first) ? take_next(lane) : NULL;
    pthread_mutex_unlock(&direct.lock);
    if (batch)
        complete(batch);
    else
        pthread_mutex_unlock(&completing[lane]);
    return batch != NULL;
}

/* Those of the device that have batches. Lock held. */
static tutti_lane_set lanes_of(const struct tutti_real_device *device) {
    tutti_lane_set lanes = 0;
    for (unsigned i = 0; i < TUTTI_ALL_LANES; i++)
        lanes |= direct.count_in[device->index * TUTTI_ALL_LANES + i] ? tutti_lane_bit(i) : 0;
    return lanes;
}

bool tutti_direct_await_marked(struct tutti_real_device *device) {
    pthread_mutex_lock(&direct.lock);
    const struct tutti_batch *batch = direct.stopped ? NULL : direct.first;
    while (batch && !(batch->device == device && batch->marked && batch->end))
        batch = batch->next_direct;
    unsigned lane = batch ? lane_of(batch) : 0;
    pthread_mutex_unlock(&direct.lock);
    cl_event end = batch ? end_of_marked(lane, NULL) : NULL;
    if (!end)
        return false;
    await_marked(device, end);
    pthread_mutex_lock(&direct.lock);
    direct.kept = tutti_runtime_now();
    tutti_lane_set lanes = lanes_of(device);
    pthread_mutex_unlock(&direct.lock);
    for (; lanes; lanes &= lanes - 1)
        while (complete_over(device->index * TUTTI_ALL_LANES + tutti_lane_first(lanes)))
            ;
    return true;
}

void tutti_direct_drain(unsigned place) {
    if (place == 0)
        return;
    pthread_mutex_lock(&direct.lock);
    unsigned count = direct.count_in[place - 1];
    pthread_mutex_unlock(&direct.lock);
    do /* once more, for one that another thread is waiting for */
        complete_next(place - 1, NULL);
    while (count-- > 0);
}

void tutti_direct_help(cl_event event) {
    if (atomic_load(&direct.count) > 0 && tutti_event_status(event) > CL_COMPLETE)
        await_last_before(event);
    while (atomic_load(&direct.count) > 0 && tutti_event_status(event) > CL_COMPLETE)
        if (!complete_before(event, false)) {
            hurry(); /* it may wait for another queue */
            break;
        }
    tutti_crew_help(event);
}

void tutti_direct_note_sleeper(bool sleeps) {
    if (!sleeps) {
        atomic_fetch_sub(&direct.sleepers, 1);
        return;
    }
    atomic_fetch_add(&direct.sleepers, 1);
    tutti_direct_hurry();
}

bool tutti_direct_has_sleepers(void) { return atomic_load(&direct.sleepers) > 0; }

void tutti_direct_look(cl_event event) {
    if (atomic_load(&direct.count) > 0 && tutti_event_status(event) > CL_COMPLETE)
        complete_before(event, true);
    tutti_crew_hurry();
}

void tutti_direct_flush(void) {
    tutti_crew_hurry();
    tutti_row_flush();
    if (atomic_load(&direct.count) == 0)
        return;
    bool unstarted = false;
    pthread_mutex_lock(&direct.lock);
    for (struct tutti_batch *batch = direct.first; batch && !direct.stopped;
         batch = batch->next_direct) {
        unstarted = unstarted || (batch->lone && batch->device->place.synchronous);
        if (!batch->device->place.synchronous)
            tutti_execution_flush(batch);
    }
    pthread_mutex_unlock(&direct.lock);
    if (unstarted)
        hurry();
}

void tutti_direct_mark(const struct tutti_batch *others) {
    if (atomic_load(&direct.count) == 0)
        return;
    pthread_mutex_lock(&direct.lock);
    for (struct tutti_batch *batch = direct.first; batch && !direct.stopped;
         batch = batch->next_direct)
        if (lane_of(batch) == lane_of(others) && !batch->device->place.synchronous)
            tutti_execution_mark(batch);
    pthread_mutex_unlock(&direct.lock);
}

void tutti_direct_stop(void) {
    pthread_mutex_lock(&direct.lock);
    direct.stopped = true;
    pthread_mutex_unlock(&direct.lock);
    tutti_crew_stop();
}
