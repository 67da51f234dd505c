/* SPDX-License-Identifier: MIT */
#include "sched/idle.h"

#include "clock.h"
#include "sched/policy.h"
#include "sched/runtime.h"

#include <pthread.h>
#include <starpu.h>
#include <sys/prctl.h>

/*
 * Times in ns. A sleep is an eighth of the wait so far, so that it lengthens no wait by more. A
 * GPU's worker never sleeps: it takes no core from its device, its commands are short, and a
 * transfer that StarPU polls for does not show here: after 2 ms of rest each step of a command met
 * a sleep, and a 4 MiB upload with a kernel took 1 ms instead of 0.2 (H200).
 */
#define SPIN 50000u
#define SHARE 8
#define LONGEST 200000u
/*
 * Of a worker that brings nothing to its device and is told of each task: a look costs some µs of a
 * core that may be the other half of one that executes a kernel. Two workers that looked every 200
 * µs made kernels that go past StarPU a fifth slower, on two cores.
 */
#define LONGEST_AT_HOME 5000000u
#define LOST 5000000u /* longer than between two looks: the worker was away or at work */

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

static unsigned look(void *unused) {
    (void)unused;
    int id = starpu_worker_get_id();
    if (id < 0)
        return 1;
    if (!worker.device)
        know(id);
    if (!worker.device || !(worker.device->type & CL_DEVICE_TYPE_CPU))
        return 1;
    cl_ulong now = tutti_runtime_now();
    bool called = worker.device->at_home && tutti_policy_is_active();
    cl_ulong longest = called ? LONGEST_AT_HOME : LONGEST;
    if (now - worker.last > LOST)
        worker.since = called ? now - SHARE * longest : now;
    worker.last = now;
    cl_ulong waited = now - worker.since;
    if (waited < SPIN)
        return 1;
    sleep_until_called(waited / SHARE < longest ? waited / SHARE : longest);
    worker.last = tutti_runtime_now();
    return 1;
}

void tutti_idle_worked(void) { worker.since = tutti_runtime_now(); }

void tutti_idle_start(void) { starpu_progression_hook_register(look, NULL); }
