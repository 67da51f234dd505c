/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_POOL_H
#define TUTTI_POOL_H

#include <CL/cl.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Of a thread: the job that it keeps for itself (pool.c). */
struct tutti_job;
typedef _Atomic(struct tutti_job *) tutti_job_keeper;

/*
 * Host threads for what commands do on the host: transfers, native kernels. The pool grows when
 * all its threads are busy, so that a job that waits for another one never blocks it; threads
 * without work for a while end.
 */
struct tutti_job {
    struct tutti_job *next;
    tutti_job_keeper *keeper;           /* of the thread that keeps this one; NULL: none does */
    void (*run)(struct tutti_job *job); /* may free the job */
    cl_event event;                     /* it is the work of this one's command; or NULL */
};

/* Hands the job to a thread; when none can be started, runs it in the calling thread. */
void tutti_pool_run(struct tutti_job *job);

/* Takes the job back, if no thread has begun it. */
bool tutti_pool_cancel(struct tutti_job *job);

/*
 * For a thread that waits for `event`: does the job, which no thread has begun; finds one that the
 * event waits for, and no other thread keeps, and does it. False: there is none.
 */
void tutti_pool_do(struct tutti_job *job, cl_event event);
bool tutti_pool_help(cl_event event);

/* Is the calling thread one of the pool's? */
bool tutti_pool_is_here(void);

/*
 * The job is all but over. If it is the calling thread's own, the next one that it gives is kept
 * for it, and no other thread is woken: it should return soon. A thread that waits for an event
 * keeps only what that waits for.
 */
void tutti_pool_end_job(const struct tutti_job *job);
/* Keeps the job for the calling thread, if it may. */
bool tutti_pool_keep(struct tutti_job *job);
/* Is one kept for the calling thread? */
bool tutti_pool_has_next(void);

/*
 * The same for the program's callbacks: one thread, so that they run one after the other in the
 * order in which they were given.
 */
void tutti_pool_call_back(struct tutti_job *job);

#endif
