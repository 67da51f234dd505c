/* SPDX-License-Identifier: MIT */
/* Includes its header by its bare name, as the test of the decisions is made of this file alone. */
#include "policy_choose.h"

/*
 * Ends that differ by less than this, or by this share of the time until then, are the same: then
 * a task goes where its data is.
 */
#define TIE 5.0
#define TIE_SHARE 0.03
/*
 * What is moved also keeps others from the link. To leave a device for another one must win more:
 * what comes after the task wants the data too, and where it was other tasks may.
 */
#define PRICE_FROM_HOME 0.25
#define PRICE_FROM_DEVICE 1.0
/* µs that StarPU needs for data which another device that works in home memory used last. */
#define PRICE_AT_HOME 3.0

/*
 * By how much a device is expected to be slower than its model says, unless it is the fastest one
 * for the task: others can wait for that one only, so an error there costs least. A guess is off by
 * more than the benefit of most tries.
 */
static const double caution[] = {[TUTTI_MEASURED] = 1.1, [TUTTI_RELATED] = 2, [TUTTI_GUESSED] = 4};

/*
 * What a guess promises must be worth its danger: the naive product of matrices takes 370 times as
 * long on 64 cores as on a GPU where 10 times is what other kernels take, or what it takes itself
 * where it is small. So a device is tried only if it would do that share of what those do that were
 * measured.
 */
#define SHARE_TO_TRY 0.1

/*
 * A chain that a far slower device works at is late by all of its time, and by that of the data's
 * ways there and back; the end of all by as much, if it is one of the last; and a CPU's cores also
 * copy what GPUs wait for. It must win so many times what it takes, or have less to do, transfers
 * included.
 */
#define CAUTION_FAR_SLOWER 10.0

/* Launches that take as long as what is brought for one: then another device's link counts. */
#define LAUNCHES_TO_BRING 16

struct outlook {
    double start, evicted;
    double moved; /* time of links */
    double price; /* of that, beside the time until the start */
};

static bool is_one_of(unsigned device, unsigned places) { return places & 1u << device; }

static bool at_home(const struct tutti_plan_device *devices, unsigned count, unsigned places) {
    if (places & TUTTI_PLAN_HOME)
        return true;
    for (unsigned d = 0; d < count; d++)
        if (is_one_of(d, places) && devices[d].at_home)
            return true;
    return false;
}

/* A transfer that may begin at `from`; `free` is when the link is. Returns when it ends. */
static double transfer(const struct tutti_plan_link *link, double *free, double from, size_t bytes,
                       double *moved) {
    double length = link->latency + (double)bytes / link->rate;
    double start = *free > from ? *free : from;
    *moved += length;
    return *free = start + length;
}

struct free_links {
    double up[TUTTI_PLAN_DEVICES], down[TUTTI_PLAN_DEVICES];
};

/*
 * When the data would be on the device. From another one it goes through home memory, in parts, so
 * that both links are at work at once.
 */
static double bring(const struct tutti_plan_device *devices, unsigned count, unsigned device,
                    const struct tutti_plan_data *data, double now, struct free_links *links,
                    struct outlook *outlook) {
    const struct tutti_plan_device *to = &devices[device];
    bool home = at_home(devices, count, data->valid);
    if (!data->reads || is_one_of(device, data->valid) || !data->valid)
        return now;
    if (to->at_home && home) {
        outlook->price += PRICE_AT_HOME;
        return now;
    }
    if (is_one_of(device, data->coming))
        return to->up.free > now ? to->up.free : now;
    double there = now, moved = 0;
    if (!home) {
        unsigned source = (unsigned)__builtin_ctz(data->valid);
        there = transfer(&devices[source].down, &links->down[source], now, data->bytes, &moved);
    }
    if (!to->at_home) {
        double up = transfer(&to->up, &links->up[device], now, data->bytes, &moved);
        double last = home ? now : there + to->up.latency;
        there = links->up[device] = up > last ? up : last;
    }
    outlook->moved += moved;
    outlook->price += moved * (home ? PRICE_FROM_HOME : PRICE_FROM_DEVICE);
    return there;
}

static void take_links(struct free_links *links, const struct tutti_plan_device *devices,
                       unsigned count) {
    for (unsigned d = 0; d < count; d++) {
        links->up[d] = devices[d].up.free;
        links->down[d] = devices[d].down.free;
    }
}

/* Bytes that the device has no memory for yet. */
static size_t find_wanted(const struct tutti_plan_task *task, unsigned device) {
    size_t wanted = 0;
    for (unsigned i = 0; i < task->count; i++)
        if (!is_one_of(device, task->data[i].allocated))
            wanted += task->data[i].bytes;
    return wanted;
}

/* What leaves the device goes home first, and has to come back some time. */
static double eviction(const struct tutti_plan_device *device, unsigned index,
                       const struct tutti_plan_task *task) {
    size_t wanted = find_wanted(task, index);
    if (device->at_home || wanted <= device->room)
        return 0;
    double missing = (double)(wanted - device->room);
    return device->up.latency + missing / device->up.rate + device->down.latency +
           missing / device->down.rate;
}

static struct outlook look(const struct tutti_plan_device *devices, unsigned count, unsigned device,
                           const struct tutti_plan_task *task, double now,
                           struct free_links *links) {
    double ready = devices[device].ready;
    struct outlook outlook = {.start = ready > now ? ready : now};
    take_links(links, devices, count);
    for (unsigned i = 0; i < task->count; i++) {
        double there = bring(devices, count, device, &task->data[i], now, links, &outlook);
        if (there > outlook.start)
            outlook.start = there;
    }
    outlook.evicted = eviction(&devices[device], device, task);
    return outlook;
}

/* Is the device a GPU that executes it in less time than its launch takes, as far as is known? */
static bool is_launched(const struct tutti_plan_device *devices, const struct tutti_plan_task *task,
                        unsigned device) {
    return !devices[device].at_home && task->certainty[device] != TUTTI_GUESSED &&
           task->length[device] <= task->launch;
}

/* Where the driver would not refuse it. Returns the devices that remain. */
static unsigned leave_full(const struct tutti_plan_device *devices, unsigned count,
                           const struct tutti_plan_task *task) {
    unsigned able = task->able;
    for (unsigned d = 0; d < count; d++)
        if (devices[d].full && find_wanted(task, d) > 0)
            able &= ~(1u << d);
    return able ? able : task->able;
}

/*
 * Kernels that a GPU executes faster than they are launched are its driver's work more than its
 * own. A CPU that takes some of them takes cores from the threads that launch, so that all are
 * slower: 16 chains of empty kernels on an H200 took 8.3 µs each beside PoCL on the 16 cores, which
 * got a seventh of them, and 6 without it. Unless it is as fast as a launch, or the data would have
 * to be brought to the GPU. Returns the devices that remain.
 */
static unsigned leave_to_launches(const struct tutti_plan_device *devices, unsigned count,
                                  const struct tutti_plan_task *task, double now) {
    unsigned able = task->able, all = task->able | task->others;
    struct free_links links;
    bool launched = false;
    for (unsigned d = 0; d < count && !launched; d++)
        launched = is_one_of(d, all) && is_launched(devices, task, d) &&
                   task->certainty[d] == TUTTI_MEASURED &&
                   look(devices, count, d, task, now, &links).moved <= 0;
    for (unsigned d = 0; d < count && launched; d++)
        if (devices[d].at_home && task->length[d] > task->launch)
            able &= ~(1u << d);
    return able ? able : task->able;
}

/* Is all of it on GPUs, or on its way to one, or was used by no device yet? */
static bool is_settled(const struct tutti_plan_device *devices, unsigned count,
                       const struct tutti_plan_task *task) {
    unsigned gpus = 0;
    for (unsigned d = 0; d < count; d++)
        gpus |= devices[d].at_home ? 0 : 1u << d;
    bool settled = task->count > 0;
    for (unsigned i = 0; i < task->count && settled; i++)
        settled = task->data[i].fresh || (task->data[i].coming | task->data[i].valid) & gpus;
    return settled;
}

/*
 * One thread launches such kernels for all GPUs, so that nothing is gained where two have some. And
 * what they use is on both then, in turns, for which each launch takes the driver longer for good
 * (16 buffers on two H100: 8 to 9 µs instead of 5). So they stay where most of it is, which is the
 * first GPU to begin with; unless that has other work, or as much must be brought that another
 * device's link counts.
 */
static unsigned keep_together(const struct tutti_plan_device *devices, unsigned count,
                              const struct tutti_plan_task *task, double now) {
    double most = LAUNCHES_TO_BRING * task->launch, least = 0;
    unsigned gpus = 0, best = count;
    bool best_is_free = false;
    struct free_links links;
    if (!is_settled(devices, count, task))
        return task->able;
    for (unsigned d = 0; d < count; d++) {
        if (!is_one_of(d, task->able) || devices[d].at_home)
            continue;
        if (!is_launched(devices, task, d))
            return task->able;
        const struct outlook outlook = look(devices, count, d, task, now, &links);
        bool is_free = devices[d].longer <= most && outlook.evicted <= 0;
        bool as_near = outlook.moved <= 2 * least;
        if (best == count || outlook.moved < least / 2 || (as_near && is_free && !best_is_free)) {
            best = d;
            least = outlook.moved;
            best_is_free = is_free;
        }
        gpus |= 1u << d;
    }
    return best_is_free && least <= most ? (task->able & ~gpus) | 1u << best : task->able;
}

/* The device that executes it fastest, once it does. */
static unsigned fastest(unsigned count, const struct tutti_plan_task *task) {
    unsigned best = (unsigned)__builtin_ctz(task->able);
    for (unsigned d = best + 1; d < count; d++)
        if (is_one_of(d, task->able) && task->length[d] < task->length[best])
            best = d;
    return best;
}

/*
 * Was the kernel measured nowhere? Then guesses compare devices, but not kernels with transfers.
 */
static bool is_cold(unsigned count, const struct tutti_plan_task *task) {
    for (unsigned d = 0; d < count; d++)
        if (is_one_of(d, task->able) && task->certainty[d] != TUTTI_GUESSED)
            return false;
    return true;
}

/* Would the device, where the kernel was not measured, add anything that counts? */
static bool is_worth_a_try(unsigned count, const struct tutti_plan_task *task, unsigned device) {
    double known = 0; /* tasks per µs */
    for (unsigned d = 0; d < count; d++)
        if (is_one_of(d, task->able | task->others) && task->certainty[d] == TUTTI_MEASURED)
            known += 1 / task->length[d];
    return 1 / task->length[device] >= SHARE_TO_TRY * known;
}

/*
 * What is left of the delay once others took longer by so much for want of the device. Each time by
 * itself they may be sooner done than its first launch, and all together take longer for good: so
 * it costs at most twice what would have been best.
 */
static double delay_left(const struct tutti_plan_task *task, unsigned device) {
    double left = task->delay[device] - task->lost[device];
    return left > 0 ? left : 0;
}

/*
 * How bad the device is for the task, in µs from now. `leading` is the outlook of the fastest. The
 * delay is as long however long the kernel is, and no multiple of it.
 */
static double weigh(const struct tutti_plan_task *task, unsigned device, unsigned lead,
                    const struct outlook *outlook, const struct outlook *leading, double now) {
    double length = task->length[device], least = task->length[lead];
    enum tutti_certainty certainty = task->certainty[device];
    double wait =
        outlook->start - now + outlook->evicted + outlook->price + delay_left(task, device);
    if (length <= least)
        return wait + length;
    bool far_slower = certainty == TUTTI_MEASURED && length > TUTTI_FAR_SLOWER * least &&
                      length + outlook->moved > least + leading->moved;
    return wait + length * (far_slower ? CAUTION_FAR_SLOWER : caution[certainty]);
}

/* Of a kernel that was measured nowhere: is the device sooner done, and not far slower? */
static bool is_sooner(const struct tutti_plan_task *task, unsigned device, unsigned lead) {
    double length = task->length[device], least = task->length[lead];
    return length + task->delay[device] < least + task->delay[lead] &&
           length <= TUTTI_FAR_SLOWER * least;
}

/* May the task go to the device? `lead` is the fastest. */
static bool is_candidate(unsigned count, const struct tutti_plan_task *task, unsigned device,
                         unsigned lead, bool cold) {
    bool leads =
        task->length[device] <= task->length[lead] || (cold && is_sooner(task, device, lead));
    return is_one_of(device, task->able) && (leads || (!cold && !is_one_of(device, task->tried))) &&
           (device == lead || task->certainty[device] == TUTTI_MEASURED ||
            is_worth_a_try(count, task, device));
}

/* Which device would have the task if none had a delay? */
static void find_loss(struct tutti_plan *plan, const struct tutti_plan_device *devices,
                      unsigned count, const struct tutti_plan_task *task, unsigned candidates,
                      const double *cost, const struct outlook *outlook) {
    unsigned best = plan->device, missed = best;
    double least = cost[best] - delay_left(task, best);
    for (unsigned d = 0; d < count; d++)
        if (is_one_of(d, candidates) && task->delay[d] > 0 &&
            cost[d] - delay_left(task, d) < least) {
            least = cost[d] - delay_left(task, d);
            missed = d;
        }
    if (missed == best)
        return;
    /*
     * What is before the task is there for all the others, which count it, too. A GPU is at it for
     * no less than its driver takes to begin it.
     */
    double busy = task->length[best];
    if (!devices[best].at_home && busy < task->launch)
        busy = task->launch;
    double own = busy + outlook[best].moved, loss = cost[best] - least;
    plan->missed = missed;
    plan->loss = loss < own ? loss : own;
}

struct tutti_plan tutti_policy_choose(const struct tutti_plan_device *devices, unsigned count,
                                      const struct tutti_plan_task *given, double now) {
    struct tutti_plan_task left = *given, *task = &left;
    left.able = leave_full(devices, count, given);
    left.able = leave_to_launches(devices, count, task, now);
    left.able = keep_together(devices, count, task, now);
    struct free_links links;
    struct outlook outlook[TUTTI_PLAN_DEVICES];
    double cost[TUTTI_PLAN_DEVICES];
    unsigned lead = fastest(count, task), candidates = 1u << lead, best = lead;
    bool cold = is_cold(count, task);
    outlook[lead] = look(devices, count, lead, task, now, &links);
    cost[lead] = weigh(task, lead, lead, &outlook[lead], &outlook[lead], now);
    for (unsigned d = 0; d < count; d++) {
        if (d == lead || !is_candidate(count, task, d, lead, cold))
            continue;
        outlook[d] = look(devices, count, d, task, now, &links);
        cost[d] = weigh(task, d, lead, &outlook[d], &outlook[lead], now);
        candidates |= 1u << d;
        if (cost[d] < cost[best])
            best = d;
    }
    double same = TIE_SHARE * cost[best] > TIE ? TIE_SHARE * cost[best] : TIE;
    double limit = cost[best] + same;
    for (unsigned d = 0; d < count; d++)
        if (is_one_of(d, candidates) && cost[d] <= limit && outlook[d].moved < outlook[best].moved)
            best = d;
    struct tutti_plan plan = {
        .device = best,
        .start = outlook[best].start,
        .end = outlook[best].start + task->delay[best] + task->length[best],
        .free = outlook[best].start + task->delay[best] + task->length[best] - task->beside[best],
        .delay = task->delay[best],
        .moves = outlook[best].moved > 0,
        .evicts = outlook[best].evicted > 0,
        .launched = is_launched(devices, task, best),
        .probes =
            task->certainty[best] != TUTTI_MEASURED && task->length[best] > task->length[lead],
    };
    find_loss(&plan, devices, count, task, candidates, cost, outlook);
    return plan;
}

void tutti_policy_book(struct tutti_plan_device *devices, unsigned count,
                       const struct tutti_plan_task *task, const struct tutti_plan *plan,
                       double now) {
    struct free_links links;
    look(devices, count, plan->device, task, now, &links);
    for (unsigned d = 0; d < count; d++) {
        devices[d].up.free = links.up[d];
        devices[d].down.free = links.down[d];
    }
    devices[plan->device].ready = plan->free;
}

unsigned tutti_policy_place(struct tutti_plan_device *devices, unsigned count,
                            const struct tutti_plan_task *reader, unsigned before, size_t bytes,
                            double now) {
    struct outlook outlook[TUTTI_PLAN_DEVICES];
    double cost[TUTTI_PLAN_DEVICES];
    unsigned lead = fastest(count, reader), best = lead;
    bool cold = is_cold(count, reader);
    for (unsigned d = 0; d < count; d++) {
        double free = devices[d].up.free, moved = 0;
        double there = transfer(&devices[d].up, &free, now, bytes, &moved);
        outlook[d] = (struct outlook){.start = devices[d].ready > there ? devices[d].ready : there,
                                      .moved = moved};
    }
    cost[lead] = weigh(reader, lead, lead, &outlook[lead], &outlook[lead], now);
    for (unsigned d = 0; d < count; d++) {
        if (d == lead || !is_candidate(count, reader, d, lead, cold))
            continue;
        cost[d] = weigh(reader, d, lead, &outlook[d], &outlook[lead], now);
        if (cost[d] < cost[best])
            best = d;
    }
    /* Whatever else its users use is where they were: to leave that must win something. */
    if (before < count && is_candidate(count, reader, before, lead, cold) &&
        cost[before] - cost[best] < outlook[best].moved / 2)
        best = before;
    double moved = 0;
    transfer(&devices[best].up, &devices[best].up.free, now, bytes, &moved);
    return best;
}
