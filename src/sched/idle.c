/* SPDX-License-Identifier: MIT */
#include "sched/idle.h"

#include "clock.h"
#include "sched/policy.h"
#include "sched/runtime.h"

#include <pthread.h>
#include <starpu.h>
#include <sys/prctl.h>

/* Times in ns. A sleep is an eighth of the wait so far, so that it lengthens no wait by more. */
#define SPIN 50000u
#define SHORTEST 20000u
#define SHARE 8
/*
 * Linux has an idle core take a thread that waits for another one only if it was idle for half a
 * millisecond lately: an Oclgrind's worker that looked every 0.2 ms, for nothing, left both threads
 * of a kernel of PoCL's on one of two cores.
 */
#define LONGEST 2000000u
/*
 * Of a worker that brings nothing to its device, and is called for each task, and as each ends:
 * looks disturb kernels.
 */
#define LONGEST_IF_CALLED 5000000u
#define SHARE_AT_WORK 2 /* instead of SHARE, while its device executes */
#define LOST 5000000u   /* longer than between two looks: the worker was away or at work */
/*
 * A GPU's worker does not sleep while StarPU has anything to do: a transfer that it polls for does
 * not show here, and when each step of a command met a sleep a 4 MiB upload with a kernel took 1 ms
 * instead of 0.2 (H200). But after so long without, as what follows will go past StarPU as well:
 * while the workers look, kernels of 7 µs take longer, by 3 to 16 % with one GPU and by up to 7
 * with two (H200).
 */
#define REST 10000000u

static _Thread_local struct {
    const struct tutti_real_device *device; /* NULL: not known yet */
    cl_ulong since, last;
    unsigned calls; /* that it has seen */
} worker;

static struct bed {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    atomic_bool used; /* the worker sleeps, or is about to */
    atomic_uint calls;
} beds[TUTTI_MAX_DEVICES] = {[0 ... TUTTI_MAX_DEVICES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                                              .wake = PTHREAD_COND_INITIALIZER}};

static atomic_uint given; /* tasks and acquisitions that StarPU has not done */

static void know(int id) {
    worker.device = tutti_runtime_device_of_worker(id);
    /* Else Linux adds up to 50 µs to each sleep. */
    prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
}

/* Not if it was called since its last sleep. */
static void sleep_until_called(cl_ulong length) {
    struct bed *bed = &beds[worker.device->index];
    struct timespec deadline = tutti_clock_deadline(length);
    int error = 0;
    pthread_mutex_lock(&bed->lock);
    atomic_store(&bed->used, true);
    while (atomic_load(&bed->calls) == worker.calls && !error)
        error = pthread_cond_timedwait(&bed->wake, &bed->lock, &deadline);
    atomic_store(&bed->used, false);
    pthread_mutex_unlock(&bed->lock);
    worker.calls = atomic_load(&bed->calls);
    worker.last = tutti_runtime_now();
    if (!error)
        worker.since = worker.last;
}

void tutti_idle_call(const struct tutti_real_device *device) {
    struct bed *bed = &beds[device->index];
    atomic_fetch_add(&bed->calls, 1);
    if (!atomic_load(&bed->used))
        return;
    pthread_mutex_lock(&bed->lock);
    pthread_cond_signal(&bed->wake);
    pthread_mutex_unlock(&bed->lock);
}

static bool is_gpu(const struct tutti_real_device *device) {
    return !(device->type & CL_DEVICE_TYPE_CPU);
}

void tutti_idle_begin(void) {
    const struct tutti_device_list *list = tutti_devices();
    if (atomic_fetch_add(&given, 1) > 0)
        return;
    for (unsigned d = 0; d < list->count; d++)
        if (is_gpu(list->device[d]))
            tutti_idle_call(list->device[d]);
}

void tutti_idle_end(void) { atomic_fetch_sub(&given, 1); }

static void rest_while_none_is_given(void) {
    worker.calls = atomic_load(&beds[worker.device->index].calls);
    cl_ulong now = tutti_runtime_now();
    if (atomic_load(&given) > 0 || now - worker.last > LOST)
        worker.since = now;
    worker.last = now;
    if (now - worker.since > REST)
        sleep_until_called(LONGEST_IF_CALLED);
}

/* While the device executes, all that matters calls the worker, but the time for its next task. */
static cl_ulong choose_length(cl_ulong waited, bool called) {
    double next = called ? tutti_policy_next_look(worker.device) * 1000 : 0;
    cl_ulong longest = called ? LONGEST_IF_CALLED : LONGEST;
    cl_ulong length = waited / (next > 0 ? SHARE_AT_WORK : SHARE);
    length = length < longest ? length : longest;
    if (next > 0 && next < (double)length)
        length = next > SHORTEST ? (cl_ulong)next : SHORTEST;
    return length;
}

static unsigned look(void *unused) {
    (void)unused;
    int id = starpu_worker_get_id();
    if (id < 0)
        return 1;
    if (!worker.device)
        know(id);
    if (!worker.device)
        return 1;
    if (is_gpu(worker.device)) {
        rest_while_none_is_given();
        return 1;
    }
    cl_ulong now = tutti_runtime_now();
    bool called = worker.device->at_home && tutti_policy_is_active();
    if (now - worker.last > LOST)
        worker.since = called ? now - SHARE * LONGEST_IF_CALLED : now;
    worker.last = now;
    cl_ulong waited = now - worker.since;
    if (waited < SPIN)
        return 1;
    sleep_until_called(choose_length(waited, called));
    return 1;
}

void tutti_idle_worked(void) { worker.since = tutti_runtime_now(); }

void tutti_idle_start(void) { starpu_progression_hook_register(look, NULL); }
