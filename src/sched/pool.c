/* SPDX-License-Identifier: MIT */
#include "sched/pool.h"

#include "clock.h"
#include "log.h"
#include "sched/event.h"
#include "sched/runtime.h"
#include "signals.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

/* A safety net against a program whose native kernels never end; far above what work needs. */
#define MOST_THREADS 256
#define LINGER 5000000000u /* ns that a thread waits for another job */

struct pool {
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t wake;
    struct tutti_job *first, **last;
    atomic_uint queued; /* may be read without the lock */
    unsigned kept;      /* of them, by a thread that takes its own when it comes back */
    unsigned waiting, threads, most;
};

static struct pool workers = {.lock = PTHREAD_MUTEX_INITIALIZER,
                              .wake = PTHREAD_COND_INITIALIZER,
                              .last = &workers.first,
                              .most = MOST_THREADS};
static struct pool callbacks = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                .wake = PTHREAD_COND_INITIALIZER,
                                .last = &callbacks.first,
                                .most = 1};

static _Thread_local struct {
    bool here;                   /* it is one of a pool's, */
    const struct tutti_job *job; /* which it has */
    bool ends;                   /* that is all but over */
    tutti_job_keeper next;       /* the job that it keeps since then, if it still does */
    cl_event awaited;            /* what it does the job for; NULL: nothing */
} own;

/* The first job that this thread may take. Lock held. */
static struct tutti_job **find(struct pool *pool) {
    const struct tutti_job *next = atomic_load_explicit(&own.next, memory_order_relaxed);
    struct tutti_job **link = &pool->first;
    while (*link && (next ? *link != next : (*link)->keeper != NULL))
        link = &(*link)->next;
    return link;
}

/* Takes the job at the link, if any, out of the queue. Lock held. */
static struct tutti_job *take(struct pool *pool, struct tutti_job **link) {
    struct tutti_job *job = *link;
    if (!job)
        return NULL;
    *link = job->next;
    if (!*link)
        pool->last = link;
    pool->queued--;
    if (job->keeper) {
        atomic_store_explicit(job->keeper, NULL, memory_order_relaxed);
        pool->kept--;
    }
    return job;
}

static void run(struct tutti_job *job) {
    own.job = job;
    own.ends = false;
    job->run(job);
    own.job = NULL;
    own.ends = false;
}

static void *serve(void *argument) {
    struct pool *pool = argument;
    own.here = true;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        int timed_out = 0;
        struct timespec deadline = tutti_clock_deadline(LINGER);
        pool->waiting++;
        while (!*find(pool) && timed_out != ETIMEDOUT)
            timed_out = pthread_cond_timedwait(&pool->wake, &pool->lock, &deadline);
        pool->waiting--;
        struct tutti_job *job = take(pool, find(pool));
        if (!job)
            break;
        pthread_mutex_unlock(&pool->lock);
        run(job);
        pthread_mutex_lock(&pool->lock);
    }
    pool->threads--;
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/*
 * Starts one more, if so many jobs need it; false: there is none. A thread that is waking up for an
 * earlier job still counts as waiting. With the lock.
 */
static bool have_threads(struct pool *pool, unsigned jobs) {
    if (jobs > pool->waiting && pool->threads < pool->most &&
        tutti_signals_start_thread(serve, pool))
        pool->threads++;
    return pool->threads > 0;
}

/* `kept`: this thread takes it, and no other. */
static void give(struct pool *pool, struct tutti_job *job, bool kept) {
    job->next = NULL;
    job->keeper = kept ? &own.next : NULL;
    pthread_mutex_lock(&pool->lock);
    if (!kept && !have_threads(pool, pool->queued - pool->kept + 1)) {
        pthread_mutex_unlock(&pool->lock);
        tutti_log(WARNING, "no host thread could be started");
        job->run(job);
        return;
    }
    *pool->last = job;
    pool->last = &job->next;
    pool->queued++;
    if (kept) {
        atomic_store_explicit(&own.next, job, memory_order_relaxed);
        pool->kept++;
    } else {
        pthread_cond_signal(&pool->wake);
    }
    pthread_mutex_unlock(&pool->lock);
}

void tutti_pool_run(struct tutti_job *job) { give(&workers, job, false); }

bool tutti_pool_keep(struct tutti_job *job) {
    bool may = own.ends && !tutti_pool_has_next() &&
               (!own.awaited || (job->event && tutti_event_waits_for(own.awaited, job->event)));
    if (may)
        give(&workers, job, true);
    return may;
}

bool tutti_pool_cancel(struct tutti_job *job) {
    pthread_mutex_lock(&workers.lock);
    struct tutti_job **link = &workers.first;
    while (*link && *link != job)
        link = &(*link)->next;
    bool found = take(&workers, link) != NULL;
    pthread_mutex_unlock(&workers.lock);
    return found;
}

void tutti_pool_do(struct tutti_job *job, cl_event event) {
    const struct tutti_job *outer = own.job; /* which waits */
    cl_event awaited = own.awaited;
    own.awaited = event;
    run(job);
    own.awaited = awaited;
    own.job = outer;
}

bool tutti_pool_help(cl_event event) {
    if (atomic_load(&workers.queued) == 0)
        return false;
    pthread_mutex_lock(&workers.lock);
    struct tutti_job **link = find(&workers);
    if (!tutti_pool_has_next())
        while (*link && ((*link)->keeper || !(*link)->event ||
                         !tutti_event_waits_for(event, (*link)->event)))
            link = &(*link)->next;
    struct tutti_job *job = take(&workers, link);
    pthread_mutex_unlock(&workers.lock);
    if (job)
        tutti_pool_do(job, event);
    return job != NULL;
}

bool tutti_pool_is_here(void) { return own.here; }

void tutti_pool_end_job(const struct tutti_job *job) { own.ends |= own.job == job; }

bool tutti_pool_has_next(void) {
    return atomic_load_explicit(&own.next, memory_order_relaxed) != NULL;
}

void tutti_pool_call_back(struct tutti_job *job) { give(&callbacks, job, false); }
