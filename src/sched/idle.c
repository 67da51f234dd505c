/* SPDX-License-Identifier: MIT */
#include "sched/idle.h"

#include "sched/runtime.h"

#include <starpu.h>
#include <sys/prctl.h>
#include <time.h>

/*
 * Times in ns. A sleep is an eighth of the wait so far, so that it lengthens no wait by more. A
 * GPU's worker never sleeps: it takes no core from its device, its commands are short, and a
 * transfer that StarPU polls for does not show here: after 2 ms of rest each step of a command met
 * a sleep, and a 4 MiB upload with a kernel took 1 ms instead of 0.2 (H200).
 */
#define SPIN 50000u
#define SHARE 8
#define LONGEST 200000u
#define LOST 5000000u /* longer than between two looks: the worker was away or at work */

static _Thread_local struct {
    bool known, sleeps;
    cl_ulong since, last;
} worker;

static void know(int id) {
    const struct tutti_real_device *device = tutti_runtime_device_of_worker(id);
    if (!device)
        return;
    worker.known = true;
    worker.sleeps = device->type & CL_DEVICE_TYPE_CPU;
    /* Else Linux adds up to 50 µs to each sleep. */
    prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
}

static unsigned look(void *unused) {
    (void)unused;
    int id = starpu_worker_get_id();
    if (id < 0)
        return 1;
    if (!worker.known)
        know(id);
    cl_ulong now = tutti_runtime_now();
    if (now - worker.last > LOST)
        worker.since = now;
    worker.last = now;
    cl_ulong waited = now - worker.since;
    if (!worker.sleeps || waited < SPIN)
        return 1;
    cl_ulong length = waited / SHARE < LONGEST ? waited / SHARE : LONGEST;
    struct timespec sleep = {.tv_nsec = (long)length};
    nanosleep(&sleep, NULL);
    return 1;
}

void tutti_idle_worked(void) { worker.since = tutti_runtime_now(); }

void tutti_idle_start(void) { starpu_progression_hook_register(look, NULL); }
