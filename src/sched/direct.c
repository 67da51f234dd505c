/* SPDX-License-Identifier: MIT */
#include "sched/direct.h"

#include "context.h"
#include "env.h"
#include "memory/stay.h"
#include "memory/version.h"
#include "sched/ahead.h"
#include "sched/append.h"
#include "sched/direct_end.h"
#include "sched/execution.h"
#include "sched/lanes.h"
#include "sched/link.h"
#include "sched/policy.h"
#include "sched/policy_task.h"
#include "sched/row.h"
#include "sched/runtime.h"

#include <string.h>

bool tutti_direct_serves_all(void) {
    const struct tutti_device_list *list = tutti_devices();
    return list->serving == 1 && list->device[0]->at_home;
}

bool tutti_direct_streams(const struct tutti_real_device *device) {
    return tutti_direct_serves_all() && tutti_device_has_one_queue(device) &&
           tutti_batch_goes_by_time();
}

bool tutti_direct_is_wanted(void) {
    const char *wanted = tutti_env_string(TUTTI_DIRECT);
    return !wanted || strcmp(wanted, "never") != 0;
}

/* Does the batch write to the device's copy? */
static bool writes_to(const struct tutti_device_use *use) {
    return use->mode != STARPU_R || use->brings;
}

void tutti_direct_note_write(struct tutti_device_use *use) {
    if (!writes_to(use))
        atomic_fetch_add(&use->stay->writers, 1);
    if (use->mode == STARPU_R)
        use->mode = STARPU_RW;
}

void tutti_direct_count_use(const struct tutti_device_use *use) {
    atomic_fetch_add(&use->stay->under_way, 1);
    if (writes_to(use))
        atomic_fetch_add(&use->stay->writers, 1);
}

void tutti_direct_note_lane(const struct tutti_batch *batch, struct tutti_stay *stay, bool writes) {
    tutti_lane_set lane = tutti_lane_bit(batch->lane);
    unsigned slot = tutti_lane_slot(batch->lane);
    stay->lanes = writes ? lane : stay->lanes | lane;
    stay->written = writes ? lane : stay->written;
    if (slot < TUTTI_LANE_SLOTS)
        stay->turn[slot] = batch->turn;
    stay->wrote = writes ? batch->turn : stay->wrote;
    stay->downloaded = tutti_lane_is_of_downloads(batch->lane);
}

static void note_use(const struct tutti_batch *batch) {
    unsigned count = tutti_lanes_are_there(batch->device) ? batch->count : 0;
    for (unsigned i = 0; i < count; i++) {
        const struct tutti_device_use *use = &batch->use[i];
        if (!use->stay)
            continue;
        tutti_direct_count_use(use);
        tutti_direct_note_lane(batch, use->stay, writes_to(use));
    }
}

static void end_use(const struct tutti_batch *batch) {
    unsigned count = tutti_lanes_are_there(batch->device) ? batch->count : 0;
    for (unsigned i = 0; i < count; i++) {
        struct tutti_stay *stay = batch->use[i].stay;
        if (stay && writes_to(&batch->use[i]))
            atomic_fetch_sub(&stay->writers, 1);
        if (stay)
            atomic_fetch_sub(&stay->under_way, 1);
    }
}

/*
 * Where other commands with the same host memory may come behind them, until they are finished:
 * what has ended on the device, and is still to be completed, need not be waited for either.
 */
static void show_place(const struct tutti_batch *batch) {
    bool ordered = tutti_lanes_are_there(batch->device);
    for (struct tutti_device_task *task = batch->first; task && ordered; task = task->next)
        if (task->command.host)
            atomic_store(&task->command.event->place, tutti_direct_place(batch));
}

void tutti_direct_leave(const struct tutti_batch *batch) {
    end_use(batch);
    tutti_ahead_leave(batch);
}

/* One of the batch's stays is acquired, or all were asked for. */
static void step(struct tutti_batch *batch) {
    if (atomic_fetch_sub(&batch->missing, 1) != 1)
        return;
    for (unsigned i = 0; i < batch->count; i++) {
        struct tutti_stay *stay = batch->use[i].stay;
        if (!stay) {
            tutti_direct_leave(batch);
            tutti_ahead_delay(batch->device, false);
            tutti_execution_fail(batch, CL_OUT_OF_HOST_MEMORY);
            return;
        }
        batch->use[i].storage = atomic_load(&stay->storage);
    }
    if (!batch->device->place.synchronous) {
        tutti_direct_start(batch);
        show_place(batch);
    }
    struct tutti_real_device *device = batch->device; /* the batch may be over at once */
    tutti_direct_enter(batch);
    tutti_ahead_delay(device, false);
}

static void granted(struct tutti_stay *stay, void *batch) {
    (void)stay;
    step(batch);
}

/* It fills what it is the first to use. */
static void note_bringing(const struct tutti_batch *batch) {
    for (unsigned i = 0; i < batch->count; i++) {
        struct tutti_device_use *use = &batch->use[i];
        if (!use->stay || !use->stay->early || use->stay->brought)
            continue;
        use->stay->brought = true;
        use->brings = use->mode != STARPU_W;
    }
}

static void arrive(struct tutti_batch *batch) {
    note_bringing(batch);
    note_use(batch);
    if (tutti_ahead_enter(batch))
        tutti_direct_hurry(); /* the program does not wait for the one before it */
}

/* Must who uses that come after others that are on the GPU past StarPU? */
static bool comes_after(const struct tutti_device_use *use, unsigned count,
                        const struct tutti_real_device *device) {
    bool after = false;
    for (unsigned i = 0; i < count && !after && tutti_lanes_are_of_gpu(device); i++)
        after = tutti_stay_orders(use[i].view, device, use[i].mode);
    return after;
}

/*
 * Longer kernels do so behind others, and all kernels if there is one device; on a GPU those and
 * what comes after them.
 */
static bool goes_behind(const struct tutti_batch *batch, const struct tutti_real_device *device) {
    if (tutti_lanes_are_of_gpu(device))
        return (batch->lone || tutti_ahead_busy(device) > 0) &&
               comes_after(batch->use, batch->count, device);
    bool kernels = batch->lone || tutti_direct_serves_all();
    for (const struct tutti_device_task *task = batch->first; task; task = task->next)
        kernels = kernels && task->kernel;
    return kernels;
}

/*
 * Would its end, if an event tells it, be seen late, for transfers that have nothing to do with it
 * (link.h)? What comes after others is told no later than those.
 */
static bool is_delayed(const struct tutti_real_device *device, const struct tutti_device_use *use,
                       unsigned count, const struct tutti_device_task *first) {
    return tutti_link_delays_events(device) && !first->apart && !comes_after(use, count, device);
}

static bool has_room(const struct tutti_real_device *device, const struct tutti_batch *batch) {
    unsigned lanes = tutti_lanes_for(batch, device);
    return lanes > 1 ? tutti_ahead_has_lane(device, lanes, batch->length, batch->devices,
                                            comes_after(batch->use, batch->count, device))
                     : tutti_ahead_has_time(device, batch->first, batch->length,
                                            goes_behind(batch, device));
}

/* Something goes through StarPU: does it wait for longer kernels, or might it be done meanwhile? */
static void hurry_lone(const struct tutti_batch *batch) {
    const struct tutti_device_list *list = tutti_devices();
    bool waits = tutti_ahead_lone_at_home();
    for (unsigned d = 0; d < list->count && !waits; d++)
        waits = tutti_ahead_busy(list->device[d]) > 0 &&
                comes_after(batch->use, batch->count, list->device[d]);
    if (waits)
        tutti_direct_hurry();
}

static void release_stays(struct tutti_batch *batch) {
    for (unsigned i = 0; i < batch->count; i++) {
        tutti_stay_release(batch->use[i].stay);
        batch->use[i].stay = NULL;
    }
}

/* Takes the stays that there are; do all others begin at once? */
static bool take_stays(struct tutti_batch *batch, const struct tutti_real_device *device) {
    for (unsigned i = 0; i < batch->count; i++) {
        struct tutti_device_use *use = &batch->use[i];
        unsigned users = tutti_batch_users(batch, use->view);
        use->stay = tutti_stay_take(use->view, device, use->mode);
        if (use->stay || tutti_stay_is_ready(use->view, device, use->mode, users) ||
            tutti_stay_may_be_early(use->view, device, use->mode, users))
            continue;
        release_stays(batch); /* those from here on have none */
        return false;
    }
    return true;
}

/*
 * How many commands it has to do before that. What a GPU executes in less time than its launch
 * takes is over when the next one comes: to go to another GPU, which one thread launches for as
 * well, gains nothing, and what uses the data later has it in several places.
 */
static unsigned given_before(const struct tutti_plan_task *task,
                             const struct tutti_real_device *device) {
    bool launched = !device->at_home && task->length[device->index] <= task->launch;
    return launched ? 0 : tutti_ahead_commands(device);
}

/*
 * Where all views of the batch are in home memory, the device that would be done first. NULL: none
 * has time, or one may be faster that never executed it, which StarPU tries.
 */
static struct tutti_real_device *choose_by_end(const struct tutti_batch *batch) {
    const struct tutti_device_list *list = tutti_devices();
    if (list->count > 1 && !tutti_policy_is_active())
        return NULL;
    struct tutti_plan_task task;
    tutti_policy_expect(batch, &task);
    struct tutti_real_device *best = NULL;
    double first_end = 0, least = 0;
    bool known = true;
    for (unsigned d = 0; d < list->count; d++) {
        struct tutti_real_device *device = list->device[d];
        if (!(task.able & 1u << d))
            continue;
        bool measured = task.certainty[d] == TUTTI_MEASURED;
        if (least == 0 || task.length[d] < least) {
            least = task.length[d];
            known = measured;
        }
        double end = task.length[d] * (1 + given_before(&task, device));
        if (measured && (!best || end < first_end) && has_room(device, batch)) {
            best = device;
            first_end = end;
        }
    }
    return known ? best : NULL;
}

/*
 * By the models: may another device win though data has to be brought there? What shares a device
 * that executes it beside others is for that.
 */
static bool is_too_slow(const struct tutti_real_device *device, const struct tutti_batch *batch) {
    if (tutti_is_one_device(batch->devices))
        return false;
    unsigned lanes = tutti_lanes_for(batch, device);
    double time = 0;
    for (const struct tutti_device_task *task = batch->first; task; task = task->next)
        time += task->kernel ? tutti_model_expect(task->model, device) : task->time;
    return (batch->shares && lanes == 1) || time / lanes > batch->expected + TUTTI_TOLERATED;
}

/*
 * Where all the views were used last; those that can go with the rest do, as nobody uses them and
 * their content is not wanted. Those that no device used yet may be used anywhere in home memory,
 * as those that different ones did if nothing else is left; or early on a GPU (stay.h).
 */
static struct tutti_real_device *seat_of(const struct tutti_batch *batch) {
    struct tutti_real_device *seat = NULL, *without = NULL; /* any of the rest */
    bool at_home = batch->count > 0, agree = true, agree_without = true, early = false;
    for (unsigned i = 0; i < batch->count; i++) {
        struct tutti_view *view = batch->use[i].view;
        bool follows = batch->use[i].mode == STARPU_W && !view->at_home &&
                       tutti_version_users(view).all == tutti_batch_users(batch, view);
        at_home = at_home && view->at_home;
        if (!view->seat && !view->at_home) {
            early = true;
        } else if (view->seat && follows) {
            agree_without = agree_without && (!without || view->seat == without);
            without = view->seat;
        } else if (view->seat) {
            agree = agree && (!seat || view->seat == seat);
            seat = view->seat;
        }
    }
    if (!seat) {
        seat = without;
        agree = agree_without;
    }
    if (!agree && !at_home)
        return NULL;
    if (seat && agree)
        return batch->devices & 1u << seat->index && !is_too_slow(seat, batch) ? seat : NULL;
    return at_home || early ? choose_by_end(batch) : NULL;
}

/* It comes after that one of the lane, of a GPU, where the driver waits for others. */
static void note_turn(struct tutti_batch *batch, unsigned slot, unsigned turn) {
    if (tutti_turn_is_before(batch->after_turn[slot], turn))
        batch->after_turn[slot] = turn;
}

static tutti_lane_set lane_to_follow(struct tutti_batch *batch) {
    if (!batch->follows)
        return 0;
    unsigned lane = tutti_direct_lane_of(batch->follows), slot = tutti_lane_slot(lane);
    if (slot < TUTTI_LANE_SLOTS)
        note_turn(batch, slot, tutti_lanes_turn(batch->device, lane));
    return tutti_lane_bit(lane);
}

/*
 * The lanes of what the batch has to come after; in `next`, without those where others are behind
 * it already that only read what the batch reads.
 */
static tutti_lane_set lanes_before(struct tutti_batch *batch, tutti_lane_set *next) {
    tutti_lane_set lanes = lane_to_follow(batch);
    *next = lanes;
    for (unsigned i = 0; i < batch->count; i++) {
        struct tutti_stay *stay = batch->use[i].stay;
        if (!stay)
            continue;
        unsigned under_way = atomic_load(&stay->under_way), writers = atomic_load(&stay->writers);
        if (under_way == 0)
            stay->lanes = 0;
        if (writers == 0)
            stay->written = 0;
        bool reads = batch->use[i].mode == STARPU_R;
        tutti_lane_set own = reads ? stay->written : stay->lanes;
        lanes |= own;
        if (!reads || under_way <= writers)
            *next |= own;
        for (; own; own &= own - 1) {
            unsigned slot = tutti_lane_slot(tutti_lane_first(own));
            if (slot < TUTTI_LANE_SLOTS)
                note_turn(batch, slot, reads ? stay->wrote : stay->turn[slot]);
        }
    }
    return lanes;
}

/*
 * Of a device that streams, which waits itself for what is on other lanes. A chain stays on its
 * own. Kernels in a row are on the first, while there are commands.
 */
static unsigned choose_lane_of_stream(const struct tutti_batch *batch, tutti_lane_set next) {
    if (next)
        return tutti_lane_first(next);
    return tutti_row_is_under_way()
               ? 0
               : tutti_lanes_choose(batch->device, tutti_lanes_for(batch, batch->device), false);
}

/*
 * Of a GPU with commands under way: the lane of those that the batch must come after; what is on
 * several first ones, and on those of transfers, the driver waits for. TUTTI_ALL_LANES: none will
 * do.
 */
static unsigned choose_lane_behind(const struct tutti_batch *batch, tutti_lane_set kernels,
                                   bool profiled) {
    const struct tutti_real_device *device = batch->device;
    if (!kernels)
        return tutti_lanes_choose(device, tutti_lanes_for(batch, device), profiled);
    if (!(kernels & ~TUTTI_FIRST_LANES))
        return profiled || !(kernels & 1u) ? TUTTI_LANE_MEASURED : 0;
    unsigned lane = tutti_lane_first(kernels);
    bool several = (kernels & (kernels - 1)) != 0;
    return several || (profiled && lane < TUTTI_LANE_MEASURED) ? TUTTI_ALL_LANES : lane;
}

/*
 * Unless the device executes each in the call. Beside others the batch is not measured, as it may
 * take longer than alone.
 */
static bool choose_lane_beside(struct tutti_batch *batch, tutti_lane_set before,
                               unsigned for_transfer, unsigned *lane) {
    tutti_lane_set kernels = before & ~TUTTI_TRANSFER_LANES;
    bool profiled = false;
    for (struct tutti_device_task *task = batch->first; task; task = task->next) {
        task->measured = task->command.event->profiled;
        task->timed = false;
        profiled = profiled || task->measured;
    }
    *lane = for_transfer && !(kernels & ~TUTTI_FIRST_LANES)
                ? for_transfer
                : choose_lane_behind(batch, kernels, profiled);
    if (*lane == TUTTI_ALL_LANES)
        return false;
    batch->after = before & ~tutti_lane_bit(*lane);
    return true;
}

static bool choose_lane(struct tutti_batch *batch) {
    const struct tutti_real_device *device = batch->device;
    tutti_lane_set next, before = lanes_before(batch, &next);
    unsigned lane, for_transfer = tutti_lanes_choose_for_transfer(batch, device);
    if (tutti_direct_streams(device)) {
        tutti_execution_choose_measured(batch);
        lane = choose_lane_of_stream(batch, next);
        batch->after = before;
    } else if ((tutti_ahead_commands(device) == 0 && !for_transfer) || device->place.synchronous) {
        lane = tutti_execution_choose_lane(batch);
    } else if (!choose_lane_beside(batch, before, for_transfer, &lane)) {
        return false;
    }
    batch->direct = true;
    tutti_lanes_enter(batch, lane);
    return true;
}

/*
 * The device with longer kernels under way that the batch has to come after, as it writes what they
 * use, and after nothing else.
 */
static struct tutti_real_device *find_before(const struct tutti_batch *batch) {
    const struct tutti_device_list *list = tutti_devices();
    struct tutti_real_device *before = NULL;
    for (unsigned d = 0; d < list->count && !before; d++)
        if (batch->devices & 1u << d && tutti_ahead_busy(list->device[d]) > 0)
            before = list->device[d];
    bool after = false;
    for (unsigned i = 0; i < batch->count && before; i++) {
        const struct tutti_device_use *use = &batch->use[i];
        if (tutti_version_users(use->view).all <= tutti_batch_users(batch, use->view))
            continue;
        after = after || use->mode != STARPU_R;
        if (!tutti_stay_is_there(use->view, before, use->mode))
            before = NULL;
    }
    return after ? before : NULL;
}

/*
 * The GPU where all that the batch uses was used last, if none is better at it by the models: then
 * it stays there, if that has no kernels past StarPU, or some that it must come after.
 */
static struct tutti_real_device *find_gpu(const struct tutti_batch *batch) {
    const struct tutti_device_list *list = tutti_devices();
    struct tutti_real_device *seat = batch->use->view->seat;
    for (unsigned i = 0; i < batch->count && seat; i++)
        if (batch->use[i].view->seat != seat)
            seat = NULL;
    if (!seat || !tutti_lanes_are_of_gpu(seat) || (list->count > 1 && !tutti_policy_is_active()) ||
        (tutti_ahead_commands(seat) > tutti_lanes_transfers(seat) &&
         !comes_after(batch->use, batch->count, seat)))
        return NULL;
    struct tutti_plan_task task;
    tutti_policy_expect(batch, &task);
    double least = task.length[seat->index] - TUTTI_TOLERATED;
    bool best = task.able & 1u << seat->index && task.certainty[seat->index] == TUTTI_MEASURED;
    for (unsigned d = 0; d < list->count && best; d++)
        best = !(task.able & 1u << d) || task.length[d] >= least;
    return best ? seat : NULL;
}

/*
 * A longer kernel goes so if nothing else is under way, which mostly is waited for next: then it
 * need not wait for the threads of StarPU to wake, nor the program for theirs to tell it, which
 * takes 50 to 200 µs (PoCL, 2 cores). So it does behind another one that it has to wait for, or if
 * there is one device: its queue keeps the order.
 */
static struct tutti_real_device *choose_for_lone(const struct tutti_batch *batch) {
    bool at_home = true;
    for (unsigned i = 0; i < batch->count; i++)
        at_home = at_home && batch->use[i].view->at_home;
    if (!batch->lone || batch->count == 0)
        return NULL;
    if (!at_home)
        return find_gpu(batch);
    return tutti_runtime_in_flight() == 1 || tutti_direct_serves_all() ? choose_by_end(batch)
                                                                       : find_before(batch);
}

static struct tutti_real_device *choose(struct tutti_batch *batch) {
    return !tutti_direct_is_wanted() ? NULL
           : batch->brief            ? seat_of(batch)
                                     : choose_for_lone(batch);
}

static bool submit(struct tutti_batch *batch) {
    struct tutti_real_device *device = choose(batch);
    if (!device || is_delayed(device, batch->use, batch->count, batch->first) ||
        (batch->follows && tutti_direct_device_of(batch->follows) != device->index))
        return false;
    if (!has_room(device, batch) || !take_stays(batch, device))
        return false;
    batch->device = device;
    if (!choose_lane(batch)) {
        release_stays(batch);
        batch->device = NULL;
        return false;
    }
    tutti_batch_note_ready(batch);
    tutti_ahead_delay(device, true);
    atomic_init(&batch->missing, 1);
    for (unsigned i = 0; i < batch->count; i++) {
        struct tutti_device_use *use = &batch->use[i];
        if (!use->stay) {
            atomic_fetch_add(&batch->missing, 1);
            use->stay = tutti_stay_begin(use->view, device, use->mode, true, granted, batch);
            if (!use->stay)
                atomic_fetch_sub(&batch->missing, 1);
        }
        if (!use->view->seat)
            use->view->seat = device;
    }
    arrive(batch);
    tutti_append_note(batch);
    step(batch);
    return true;
}

bool tutti_direct_submit(struct tutti_batch *batch) {
    bool submitted = submit(batch);
    if (!submitted)
        hurry_lone(batch); /* the program does not wait for it yet */
    return submitted;
}

static bool has_time_for(const struct tutti_real_device *device,
                         const struct tutti_device_task *task) {
    bool longer = task->time > TUTTI_BRIEF || tutti_ahead_busy(device) > 0;
    return task->shares && tutti_lanes_are_there(device)
               ? tutti_ahead_has_lane(device, task->parts, 1, task->devices,
                                      comes_after(task->use, task->count, device))
               : tutti_ahead_has_time(device, task, 1,
                                      longer && comes_after(task->use, task->count, device));
}

bool tutti_direct_goes_on(const struct tutti_batch *batch, const struct tutti_device_task *task) {
    return batch->direct && has_time_for(batch->device, task);
}

/* Has a device time for one more command, and may it execute it? Any, if `seat` is NULL. */
static bool has_one_time(const struct tutti_real_device *seat,
                         const struct tutti_device_task *task) {
    const struct tutti_device_list *list = tutti_devices();
    for (unsigned d = 0; d < list->count; d++)
        if (task->devices & 1u << d && (!seat || seat == list->device[d]) &&
            has_time_for(list->device[d], task))
            return true;
    return false;
}

bool tutti_direct_would_take(const struct tutti_device_task *task) {
    const struct tutti_real_device *seat = NULL;
    bool at_home = true, takes = tutti_direct_is_wanted();
    for (unsigned i = 0; i < task->count; i++) {
        const struct tutti_view *view = task->use[i].view;
        at_home = at_home && view->at_home;
        seat = view->seat ? view->seat : seat;
    }
    if (!takes || (!seat && !at_home) || (seat && is_delayed(seat, task->use, task->count, task)) ||
        !has_one_time(seat, task))
        return false;
    /* At home any device stands for all. */
    const struct tutti_real_device *device = seat ? seat : tutti_devices()->device[0];
    for (unsigned i = 0; i < task->count && takes; i++) {
        const struct tutti_device_use *use = &task->use[i];
        takes = tutti_stay_is_there(use->view, device, use->mode) ||
                tutti_stay_is_ready(use->view, device, use->mode, 0);
    }
    return takes;
}
