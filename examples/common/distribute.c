/* SPDX-License-Identifier: MIT */
#include "distribute.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* What the lanes' threads share: `next` is the pull queue, the rest is constant. */
struct shared {
    const struct work *work;
    enum distribution distribution;
    size_t count;
    unsigned lanes;
    size_t depth;
    atomic_size_t next;
};

struct driver {
    struct shared *shared;
    struct lane *lane;
    pthread_t thread;
};

/* A task on its way. */
struct in_flight {
    size_t task;
    cl_event done;
};

static struct in_flight start_task(struct driver *driver, size_t task) {
    const struct work *work = driver->shared->work;
    struct in_flight flight = {.task = task};
    work->enqueue(work->user, driver->lane, task, &flight.done);
    driver->lane->tasks++;
    return flight;
}

/* A wait reports that a command failed, not which way: the event's own status says that. */
static void check_done(cl_event done) {
    cl_int status = CL_QUEUED;
    cl_check(clGetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL),
             "clGetEventInfo");
    if (status < 0)
        die("a command failed: %s (%d)", cl_error_name(status), status);
}

static void end_task(struct driver *driver, const struct in_flight *flight) {
    const struct work *work = driver->shared->work;
    check_done(flight->done);
    cl_check(clReleaseEvent(flight->done), "clReleaseEvent");
    if (work->finish)
        work->finish(work->user, driver->lane, flight->task);
}

/* Enqueues all tasks first, step, 2 step … before `end`, then waits for all. */
static void run_fixed(struct driver *driver, size_t first, size_t end, size_t step) {
    size_t count = 0;
    struct in_flight *flight =
        allocate(sizeof(*flight) * (first < end ? (end - first - 1) / step + 1 : 0));
    for (size_t task = first; task < end; task += step)
        flight[count++] = start_task(driver, task);
    cl_check(clFinish(driver->lane->queue), "clFinish");
    for (size_t i = 0; i < count; i++)
        end_task(driver, &flight[i]);
    free(flight);
}

/* Keeps `depth` tasks in flight, so that the next one's transfers overlap this one's kernel. */
static void run_pulling(struct driver *driver) {
    struct shared *shared = driver->shared;
    struct in_flight *ring = allocate(sizeof(*ring) * shared->depth);
    size_t started = 0, ended = 0;
    bool more = true;
    while (more || ended < started) {
        while (more && started - ended < shared->depth) {
            size_t task = atomic_fetch_add(&shared->next, 1);
            more = task < shared->count;
            if (more)
                ring[started++ % shared->depth] = start_task(driver, task);
        }
        if (ended == started)
            break;
        cl_check(clFlush(driver->lane->queue), "clFlush");
        struct in_flight *oldest = &ring[ended++ % shared->depth];
        cl_check(clWaitForEvents(1, &oldest->done), "clWaitForEvents");
        end_task(driver, oldest);
    }
    free(ring);
}

static void *drive(void *argument) {
    struct driver *driver = argument;
    struct shared *shared = driver->shared;
    const struct work *work = shared->work;
    const size_t count = shared->count, lane = driver->lane->index, lanes = shared->lanes;

    if (work->begin)
        work->begin(work->user, driver->lane);
    switch (shared->distribution) {
    case DISTRIBUTION_BLOCK:
        run_fixed(driver, lane * count / lanes, (lane + 1) * count / lanes, 1);
        break;
    case DISTRIBUTION_CYCLIC:
        run_fixed(driver, lane, count, lanes);
        break;
    case DISTRIBUTION_DYNAMIC:
        run_pulling(driver);
        break;
    default:
        run_fixed(driver, 0, count, 1);
        break;
    }
    if (work->end)
        work->end(work->user, driver->lane);
    cl_check(clFinish(driver->lane->queue), "clFinish");
    return NULL;
}

void distribute(const struct common_options *options, struct lanes *lanes, size_t count,
                const struct work *work) {
    struct shared shared = {.work = work,
                            .distribution = lanes->distribution,
                            .count = count,
                            .lanes = lanes->count,
                            .depth = options->depth};
    struct driver driver[MAX_LANES];
    for (unsigned i = 0; i < lanes->count; i++)
        driver[i] = (struct driver){.shared = &shared, .lane = &lanes->lane[i]};
    if (lanes->count == 1) {
        drive(&driver[0]);
        return;
    }
    for (unsigned i = 0; i < lanes->count; i++)
        if (pthread_create(&driver[i].thread, NULL, drive, &driver[i]) != 0)
            die("cannot start a thread");
    for (unsigned i = 0; i < lanes->count; i++)
        pthread_join(driver[i].thread, NULL);
}
