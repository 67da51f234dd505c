/* SPDX-License-Identifier: MIT */
#include "sched/idle.h"

#include "sched/runtime.h"

#include <starpu.h>
#include <sys/prctl.h>
#include <time.h>

/*
 * Times in ns. A sleep is an eighth of the wait so far, so that it lengthens no wait by more. A GPU
 * has its cores for itself and its commands are short: its worker starts later, and not at all
 * while a command of its own executes.
 */
#define SPIN_CPU 50000u
#define SPIN_GPU 1000000u
#define SHARE 8
#define LONGEST 200000u
#define LOST 5000000u /* longer than between two looks: the worker was away or at work */

static _Thread_local struct {
    bool known;
    bool gpu;
    unsigned running;
    cl_ulong since, last;
} worker;

static void know(int id) {
    const struct tutti_real_device *device = tutti_runtime_device_of_worker(id);
    if (!device)
        return;
    worker.known = true;
    worker.gpu = !(device->type & CL_DEVICE_TYPE_CPU);
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
    if (!worker.known || waited < (worker.gpu ? SPIN_GPU : SPIN_CPU) ||
        (worker.gpu && worker.running))
        return 1;
    cl_ulong length = waited / SHARE < LONGEST ? waited / SHARE : LONGEST;
    struct timespec sleep = {.tv_nsec = (long)length};
    nanosleep(&sleep, NULL);
    return 1;
}

void tutti_idle_task_begins(void) {
    worker.running++;
    worker.since = tutti_runtime_now();
}

void tutti_idle_task_ends(void) {
    if (worker.running)
        worker.running--;
    worker.since = tutti_runtime_now();
}

void tutti_idle_start(void) { starpu_progression_hook_register(look, NULL); }
