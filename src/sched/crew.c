/* SPDX-License-Identifier: MIT */
#include "sched/crew.h"

#include "clock.h"
#include "context.h"
#include "log.h"
#include "memory/stay.h"
#include "memory/version.h"
#include "sched/direct.h"
#include "sched/direct_end.h"
#include "sched/execution.h"
#include "sched/policy.h"
#include "sched/runtime.h"
#include "virtual_device/late_build.h"

#include <errno.h>
#include <math.h>
#include <sys/prctl.h>

/* µs of work that are worth a thread's waking: the first one's, while the program may still wait */
#define WORTH_FIRST 30.0
#define WORTH_NEXT 50.0 /* and for each that is at work already */
#define UNKNOWN 100.0   /* a kernel that was never measured */
/* ns */
#define LOOK 100000u       /* until the program that does not wait gets a thread nevertheless, */
#define SELDOM 1000000u    /* while there is nothing to do, */
#define DROWSY 10u         /* so many times: then the next batch wakes a thread */
#define LINGER 1000000000u /* then the thread goes */
#define SPIN 20000u        /* the program enqueues, and the next one is about to come */
/* A call that would execute a short kernel executes so many that come first: they get fewer. */
#define ASSISTS 2
/* Who takes one looks through so many that may begin. */
#define MOST_LOOKED_AT 64

/* A thread of the program's that waits for the only device, to help its event come about. */
struct helper {
    struct helper *next;
    cl_event event;
    pthread_cond_t wake;
};

static struct {
    pthread_mutex_t lock; /* guards all below, the order of stays' users, and `missing` */
    pthread_cond_t wake;
    struct tutti_batch *first, *last; /* may begin, in the program's order */
    atomic_uint count;                /* of those; may be read without the lock */
    double work;                      /* µs that they take */
    unsigned free;                    /* bits: devices that execute nothing */
    unsigned at_work;                 /* threads that do */
    atomic_uint longer;               /* batches that keep a device long, begun or to begin */
    unsigned called, resting;         /* threads that are to begin, and those that can */
    bool watched;                     /* one of these looks from time to time */
    struct helper *helpers;           /* the first one first */
    bool asked_for;                   /* one would execute short kernels on the only device */
    bool stopped;
    struct hand {
        struct tutti_job job;
        bool taken;
    } hand[TUTTI_MAX_DEVICES];
} crew = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static bool able; /* do the devices, and the settings, allow it? */

static void look_at_devices(void) {
    const struct tutti_device_list *list = tutti_devices();
    able = tutti_direct_is_wanted() && tutti_batch_goes_by_time();
    for (unsigned d = 0; d < list->count; d++) {
        const struct tutti_real_device *device = list->device[d];
        if (device->spare)
            continue;
        able = able && device->at_home && tutti_device_executes_in_call(device) &&
               device->identity == list->device[0]->identity;
        crew.free |= 1u << d;
    }
}

bool tutti_crew_serves(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!tutti_runtime_usable() || !tutti_policy_is_active())
        return false;
    pthread_once(&once, look_at_devices);
    return able;
}

static double work_of(const struct tutti_batch *batch) {
    return batch->expected > 0 ? batch->expected : UNKNOWN;
}

/* Lock held. */
static bool keeps_long(const struct tutti_batch *batch) {
    return batch->expected >= TUTTI_KEEPS_LONG;
}

static void make_ready(struct tutti_batch *batch) {
    struct tutti_batch **link = &crew.first;
    bool known = batch->expected > 0;
    batch->wait = known ? crew.work : crew.first || !crew.free ? INFINITY : 0;
    bool newest = !crew.last || crew.last->user.order < batch->user.order;
    if (newest && crew.last)
        link = &crew.last->next_direct;
    while (*link && (*link)->user.order < batch->user.order)
        link = &(*link)->next_direct;
    batch->next_direct = *link;
    *link = batch;
    if (newest)
        crew.last = batch;
    crew.work += work_of(batch);
    atomic_fetch_add_explicit(&crew.longer, keeps_long(batch), memory_order_relaxed);
    atomic_fetch_add_explicit(&crew.count, 1, memory_order_relaxed);
}

/* It waits for one thing less. Lock held. */
static void step(struct tutti_batch *batch) {
    if (atomic_fetch_sub_explicit(&batch->missing, 1, memory_order_relaxed) == 1)
        make_ready(batch);
}

/* Lets those of the stay's users go on that may: the first one, or those that only read. */
static void go_on(struct tutti_stay *stay) {
    while (stay->open && stay->waiting && !stay->writing) {
        struct tutti_device_use *use = stay->waiting;
        if (use->mode != STARPU_R && use != stay->first)
            return;
        stay->writing = use->mode != STARPU_R;
        stay->waiting = use->after;
        step(use->batch);
    }
}

/* Lock held, as for the next one. */
static void enter(struct tutti_device_use *use) {
    struct tutti_stay *stay = use->stay;
    use->after = NULL;
    use->before = stay->last;
    *(stay->last ? &stay->last->after : &stay->first) = use;
    stay->last = use;
    if (!stay->waiting)
        stay->waiting = use;
    go_on(stay);
}

static void leave(struct tutti_device_use *use) {
    struct tutti_stay *stay = use->stay;
    *(use->before ? &use->before->after : &stay->first) = use->after;
    *(use->after ? &use->after->before : &stay->last) = use->before;
    stay->writing = false;
    go_on(stay);
}

/*
 * The oldest batch that may begin, with a device for it; NULL: there is none. For an event, one
 * that comes before that. Lock held.
 */
static struct tutti_batch *take(cl_event event) {
    struct tutti_batch *before = NULL, *batch = crew.stopped || !crew.free ? NULL : crew.first;
    for (unsigned looked = 0; batch && looked < MOST_LOOKED_AT; looked++) {
        unsigned devices = tutti_batch_devices(batch) & crew.free;
        if (devices && (!event || tutti_batch_comes_before(batch, event))) {
            batch->device = tutti_devices()->device[__builtin_ctz(devices)];
            crew.free &= ~(1u << batch->device->index);
            *(before ? &before->next_direct : &crew.first) = batch->next_direct;
            if (crew.last == batch)
                crew.last = before;
            crew.work = crew.first ? crew.work - work_of(batch) : 0;
            atomic_fetch_sub_explicit(&crew.count, 1, memory_order_relaxed);
            return batch;
        }
        before = batch;
        batch = batch->next_direct;
    }
    return NULL;
}

/* The devices that have its kernels are not enough for it? Others may get them by now. */
static void built(const struct tutti_real_device *device) {
    (void)device;
    tutti_crew_hurry();
}

/* That it waits may be worth a build for other devices. */
static void note_waiting(struct tutti_batch *batch) {
    double length = batch->expected > 0 ? batch->expected : INFINITY;
    double wait = batch->wait < length ? batch->wait : length;
    batch->wait = 0;
    for (struct tutti_device_task *task = batch->first; task && wait > 0; task = task->next)
        if (task->late.program && tutti_late_build_note(task->late.program, wait))
            tutti_late_build_start(task->late.program, built);
}

static void serve(struct tutti_job *job);

/* Is it worth while to have one more thread at work? Lock held. */
static bool wants_hand(bool hurry) {
    unsigned begun = crew.at_work + crew.called;
    if (!crew.first || !crew.free || crew.stopped || begun >= tutti_devices()->serving)
        return false;
    if (hurry)
        return crew.called == 0;
    if (begun > 0)
        return crew.work >= WORTH_NEXT * begun;
    return !crew.watched ||
           (!tutti_direct_serves_all() && crew.first != crew.last && crew.work >= WORTH_FIRST);
}

/* Calls one if so, and opens the lock. */
static void call_and_unlock(bool hurry) {
    struct hand *hand = NULL;
    if (wants_hand(hurry)) {
        if (crew.resting > crew.called) {
            crew.called++;
            pthread_cond_signal(&crew.wake);
        } else {
            unsigned h = 0;
            while (h < tutti_devices()->serving && crew.hand[h].taken)
                h++;
            if (h < tutti_devices()->serving) {
                hand = &crew.hand[h];
                hand->taken = true;
                crew.called++;
            }
        }
    }
    pthread_mutex_unlock(&crew.lock);
    if (hand) {
        hand->job.run = serve;
        tutti_pool_run(&hand->job);
    }
}

/* A device is free, or who was to get it does without: is it the next one's? Lock held. */
static void offer_device(void) {
    if (crew.free && crew.helpers)
        pthread_cond_signal(&crew.helpers->wake);
}

/* Is its command over, or what is left of it its own to do? */
static bool is_helped(cl_event event) {
    return tutti_event_status(event) <= CL_COMPLETE || atomic_load(&event->job);
}

/* Lock held. */
static void let_helped_go(void) {
    for (struct helper *helper = crew.helpers; helper; helper = helper->next)
        if (is_helped(helper->event))
            pthread_cond_signal(&helper->wake);
}

/* With the lock held, which it opens and takes again. */
static void execute(struct tutti_batch *batch) {
    const struct tutti_real_device *device = batch->device;
    crew.at_work++;
    call_and_unlock(false);
    tutti_log(DEBUG, "%s: %u commands past StarPU", device->name, batch->length);
    tutti_batch_note_ready(batch);
    note_waiting(batch);
    for (unsigned i = 0; i < batch->count; i++)
        batch->use[i].storage = tutti_view_storage(batch->use[i].view, device);
    tutti_execution_start(batch, TUTTI_ENDS_HERE);
    pthread_mutex_lock(&crew.lock);
    for (unsigned i = 0; i < batch->count; i++)
        leave(&batch->use[i]);
    crew.free |= 1u << device->index;
    atomic_fetch_sub_explicit(&crew.longer, keeps_long(batch), memory_order_relaxed);
    offer_device();
    call_and_unlock(false);
    tutti_execution_collect(batch);
    tutti_execution_end(batch);
    pthread_mutex_lock(&crew.lock);
    crew.at_work--;
    let_helped_go();
}

static void work_off(void) {
    struct tutti_batch *batch;
    while (!crew.helpers && !crew.asked_for && (batch = take(NULL)))
        execute(batch);
}

/* Looks for more for a while, if no other thread would. With the lock held, which it opens. */
static bool is_worth_staying(void) {
    if (crew.at_work > 0 || crew.helpers || crew.asked_for || crew.stopped)
        return false;
    pthread_mutex_unlock(&crew.lock);
    cl_ulong until = tutti_clock_now() + SPIN;
    while (atomic_load_explicit(&crew.count, memory_order_relaxed) == 0 &&
           tutti_clock_now() < until)
        ;
    pthread_mutex_lock(&crew.lock);
    return crew.first && crew.free && !crew.helpers;
}

/* For the one thread that watches: did it find what nobody began for so long? */
static bool is_overdue(void) {
    bool overdue = crew.first && crew.first->looked;
    if (crew.first)
        crew.first->looked = 1;
    return overdue;
}

/* Waits to be called; false: it is not, and goes. With the lock held. */
static bool rest(void) {
    bool watches = !crew.watched;
    crew.watched = true;
    crew.resting++;
    for (unsigned quiet = 0; crew.called == 0 && !crew.stopped;) {
        if (watches && !crew.free) /* those at work see to the rest */
            watches = crew.watched = false;
        cl_ulong length = !watches ? LINGER : crew.first ? LOOK : SELDOM;
        struct timespec deadline = tutti_clock_deadline(length);
        if (pthread_cond_timedwait(&crew.wake, &crew.lock, &deadline) != ETIMEDOUT)
            continue;
        if (!watches)
            break;
        if (is_overdue() && crew.free)
            crew.called++;
        else if (crew.first)
            quiet = 0;
        else if (++quiet > DROWSY)
            watches = crew.watched = false;
    }
    if (watches)
        crew.watched = false;
    crew.resting--;
    return crew.called > 0 && !crew.stopped;
}

static void serve(struct tutti_job *job) {
    struct hand *hand = (struct hand *)job;
    prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0); /* else Linux adds up to 50 µs to each sleep */
    pthread_mutex_lock(&crew.lock);
    do {
        if (crew.called > 0) /* else one that rested came first */
            crew.called--;
        crew.asked_for = false;
        do
            work_off();
        while (is_worth_staying());
    } while (rest());
    hand->taken = false;
    pthread_mutex_unlock(&crew.lock);
}

static void granted(struct tutti_stay *stay, void *argument) {
    (void)argument;
    pthread_mutex_lock(&crew.lock);
    stay->open = true;
    go_on(stay);
    call_and_unlock(tutti_direct_has_sleepers()); /* they looked here before it was ready */
}

static bool serves(const struct tutti_view *view) { return view->at_home && !view->svm; }

bool tutti_crew_would_take(const struct tutti_device_task *task) {
    bool may = true, waits = false;
    for (unsigned i = 0; i < task->count && may; i++) {
        struct tutti_version_users users = tutti_version_users(task->use[i].view);
        may = serves(task->use[i].view) && users.of_host == 0;
        waits = waits || users.of_devices > 0;
    }
    bool kept = atomic_load_explicit(&crew.longer, memory_order_relaxed) >=
                tutti_devices()->serving; /* the host need not wait for those */
    return may && (waits || task->kernel || !kept);
}

static bool takes(const struct tutti_batch *batch) {
    for (const struct tutti_device_task *task = batch->first; task; task = task->next)
        if (task->prints)
            return false;
    for (unsigned i = 0; i < batch->count; i++)
        if (!serves(batch->use[i].view))
            return false;
    return true;
}

/* False when out of memory. */
static bool find_stays(struct tutti_batch *batch) {
    for (unsigned i = 0; i < batch->count; i++) {
        struct tutti_device_use *use = &batch->use[i];
        use->stay = tutti_stay_join(use->view, use->mode);
        if (use->stay)
            continue;
        bool alone = tutti_version_users(use->view).all <= tutti_batch_users(batch, use->view);
        /* In home memory any device stands for all. */
        use->stay = tutti_stay_begin(use->view, tutti_devices()->device[0], use->mode, alone,
                                     granted, NULL);
        if (!use->stay)
            return false;
    }
    return true;
}

bool tutti_crew_submit(struct tutti_batch *batch) {
    if (!takes(batch))
        return false;
    batch->direct = true;
    if (!find_stays(batch)) {
        tutti_execution_fail(batch, CL_OUT_OF_HOST_MEMORY);
        return true;
    }
    batch->wait = 0;
    atomic_init(&batch->missing, batch->count + 1);
    pthread_mutex_lock(&crew.lock);
    for (unsigned i = 0; i < batch->count; i++) {
        batch->use[i].batch = batch;
        enter(&batch->use[i]);
    }
    step(batch);
    note_waiting(batch);
    call_and_unlock(false);
    return true;
}

/*
 * The only device is at work for a thread of the crew: waits until that gives it up, as the caller
 * has in its cache what it enqueued kernels for, or needs it no more. False: that would be for
 * nothing. Lock held.
 */
static bool get_device(cl_event event) {
    if (!tutti_direct_serves_all() || crew.free || crew.stopped || !crew.first ||
        !tutti_batch_comes_before(crew.first, event))
        return false;
    struct helper helper = {.event = event, .wake = PTHREAD_COND_INITIALIZER};
    struct helper **link = &crew.helpers;
    while (*link)
        link = &(*link)->next;
    *link = &helper;
    while (!crew.free && !crew.stopped && !is_helped(event))
        pthread_cond_wait(&helper.wake, &crew.lock);
    for (link = &crew.helpers; *link != &helper; link = &(*link)->next)
        ;
    *link = helper.next;
    return !is_helped(event);
}

void tutti_crew_help(cl_event event) {
    if (!tutti_crew_serves())
        return;
    pthread_mutex_lock(&crew.lock);
    while (tutti_event_status(event) > CL_COMPLETE) {
        struct tutti_batch *batch = take(event);
        if (batch)
            execute(batch);
        else if (!get_device(event))
            break;
    }
    offer_device();
    call_and_unlock(true);
}

bool tutti_crew_assist(double longest) {
    unsigned done = 0;
    pthread_mutex_lock(&crew.lock);
    while (done < ASSISTS && crew.first && work_of(crew.first) <= longest) {
        struct tutti_batch *batch = take(NULL);
        crew.asked_for = !batch && tutti_direct_serves_all();
        if (!batch)
            break;
        execute(batch);
        done++;
    }
    call_and_unlock(false);
    return done > 0;
}

void tutti_crew_hurry(void) {
    if (atomic_load_explicit(&crew.count, memory_order_relaxed) == 0)
        return;
    pthread_mutex_lock(&crew.lock);
    call_and_unlock(true);
}

void tutti_crew_stop(void) {
    pthread_mutex_lock(&crew.lock);
    crew.stopped = true;
    for (struct helper *helper = crew.helpers; helper; helper = helper->next)
        pthread_cond_signal(&helper->wake);
    pthread_mutex_unlock(&crew.lock);
}
