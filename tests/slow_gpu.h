/* SPDX-License-Identifier: MIT */
/*
 * PoCL stands in for a GPU on which a kernel takes a time of its own, however many execute at once:
 * each is held by a user event until the one before it in its queue is over, and so long after
 * that. Tells how many queues had one at the same time.
 */
#ifndef TUTTI_TESTS_SLOW_GPU_H
#define TUTTI_TESTS_SLOW_GPU_H

#include "pocl_gpu.h"

#include <pthread.h>
#include <time.h>

#define SLOW_QUEUES 64
#define SLOW_KERNELS 4096

static struct {
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t more;
    cl_ulong length; /* ns that a kernel takes, and */
    cl_ulong beside; /* one of another device; 0: its own time */
    struct {
        cl_command_queue queue;
        cl_ulong free; /* when its last kernel is over */
        unsigned kernels;
    } queue[SLOW_QUEUES];
    struct {
        cl_event gate; /* NULL: free */
        cl_ulong end;
        unsigned queue;
        unsigned long before; /* so many were enqueued before */
    } kernel[SLOW_KERNELS];
    unsigned busy, most_busy; /* queues with kernels: now, and at most since that was asked */
    unsigned awaited;         /* no kernel is over before so many are busy, */
    cl_ulong patience;        /* or this time has come */
    unsigned long enqueued, enqueued_beside;
} slow;

static cl_ulong slow_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (cl_ulong)now.tv_sec * 1000000000u + (cl_ulong)now.tv_nsec;
}

/* Opens the gates of those whose time has come; returns when the next one's does. Lock held. */
static cl_ulong slow_open(void) {
    cl_ulong now = slow_now(), next = now + 1000000000u;
    if (slow.most_busy < slow.awaited && now < slow.patience)
        return slow.patience;
    for (unsigned i = 0; i < SLOW_KERNELS; i++) {
        cl_event gate = slow.kernel[i].gate;
        if (gate && slow.kernel[i].end <= now) {
            unsigned place = slow.kernel[i].queue;
            slow.kernel[i].gate = NULL;
            slow.busy -= --slow.queue[place].kernels == 0;
            pthread_mutex_unlock(&slow.lock); /* PoCL may execute it in this thread */
            real.clSetUserEventStatus(gate, CL_COMPLETE);
            real.clReleaseEvent(gate);
            pthread_mutex_lock(&slow.lock);
        } else if (gate && slow.kernel[i].end < next) {
            next = slow.kernel[i].end;
        }
    }
    return next;
}

/* How long the next kernels take, ns; returns how many were enqueued before. */
static inline unsigned long slow_set_length(cl_ulong length) {
    pthread_mutex_lock(&slow.lock);
    unsigned long kernels = slow.enqueued;
    slow.length = length;
    pthread_mutex_unlock(&slow.lock);
    return kernels;
}

/*
 * For kernels that are to take until slow_end_all, however slow the machine is: no test waits so
 * long. It is less than the machine has run for, as a START is so much before its END.
 */
#define SLOW_HELD ((cl_ulong)100 * 1000000000u)

/* However slow the machine is: the next kernels end when so many execute at once; 10 s at most. */
static inline void slow_await_busy(unsigned queues) {
    pthread_mutex_lock(&slow.lock);
    slow.most_busy = slow.busy;
    slow.awaited = queues;
    slow.patience = slow_now() + (cl_ulong)10 * 1000000000u;
    pthread_mutex_unlock(&slow.lock);
}

/*
 * The kernels that were enqueued when so many were, and fewer than that, are over now; what is next
 * on their queues begins then.
 */
static inline void slow_end_between(unsigned long from, unsigned long to) {
    pthread_mutex_lock(&slow.lock);
    cl_ulong now = slow_now();
    for (unsigned i = 0; i < SLOW_KERNELS; i++)
        if (slow.kernel[i].gate && slow.kernel[i].before >= from && slow.kernel[i].before < to)
            slow.kernel[i].end = slow.queue[slow.kernel[i].queue].free = now;
    pthread_cond_signal(&slow.more);
    pthread_mutex_unlock(&slow.lock);
}

/* All kernels that were enqueued are over now. */
static inline void slow_end_all(void) { slow_end_between(0, ~0ul); }

/* Waits until so many were enqueued: a worker may have got the last ones. False: they were not. */
static inline bool slow_await(unsigned long kernels) {
    bool there = false;
    for (int ms = 0; ms < 10000 && !there; ms++) {
        pthread_mutex_lock(&slow.lock);
        there = slow.enqueued >= kernels;
        pthread_mutex_unlock(&slow.lock);
        if (!there)
            usleep(1000);
    }
    return there;
}

static void *slow_clock(void *unused) {
    (void)unused;
    pthread_mutex_lock(&slow.lock);
    for (;;) {
        unsigned long seen = slow.enqueued;
        cl_ulong next = slow_open();
        if (seen != slow.enqueued) /* while the lock was open: they may be the next ones */
            continue;
        struct timespec until = {.tv_sec = (time_t)(next / 1000000000u),
                                 .tv_nsec = (long)(next % 1000000000u)};
        pthread_cond_timedwait(&slow.more, &slow.lock, &until);
    }
    return NULL;
}

/* The place of a queue, and of a kernel that is to end then. Lock held. */
static unsigned slow_place(cl_command_queue on) {
    unsigned i = 0;
    while (i < SLOW_QUEUES - 1 && slow.queue[i].queue && slow.queue[i].queue != on)
        i++;
    slow.queue[i].queue = on;
    return i;
}

static bool slow_put(cl_command_queue on, cl_event gate) {
    unsigned place = slow_place(on), i = 0;
    while (i < SLOW_KERNELS && slow.kernel[i].gate)
        i++;
    if (i == SLOW_KERNELS)
        return false;
    cl_ulong now = slow_now(), start = slow.queue[place].free;
    if (slow.queue[place].kernels++ == 0) {
        start = now;
        slow.most_busy = ++slow.busy > slow.most_busy ? slow.busy : slow.most_busy;
    }
    slow.queue[place].free = start + slow.length;
    slow.kernel[i].gate = gate;
    slow.kernel[i].end = start + slow.length;
    slow.kernel[i].queue = place;
    slow.kernel[i].before = slow.enqueued++;
    pthread_cond_signal(&slow.more);
    return true;
}

/* Another device takes its time in the call, as PoCL's `basic` device executes it there. */
static cl_int slow_enqueue_beside(cl_command_queue on, cl_kernel kernel, cl_uint dimensions,
                                  const size_t *offset, const size_t *global, const size_t *local,
                                  cl_uint count, const cl_event *list, cl_event *event) {
    usleep((useconds_t)(slow.beside / 1000));
    pthread_mutex_lock(&slow.lock);
    slow.enqueued_beside++;
    pthread_mutex_unlock(&slow.lock);
    return real.clEnqueueNDRangeKernel(on, kernel, dimensions, offset, global, local, count, list,
                                       event);
}

static cl_int CL_API_CALL slow_enqueue(cl_command_queue on, cl_kernel kernel, cl_uint dimensions,
                                       const size_t *offset, const size_t *global,
                                       const size_t *local, cl_uint count, const cl_event *list,
                                       cl_event *event) {
    cl_context in;
    cl_device_id of;
    cl_int result;
    real.clGetCommandQueueInfo(on, CL_QUEUE_CONTEXT, sizeof(in), &in, NULL);
    real.clGetCommandQueueInfo(on, CL_QUEUE_DEVICE, sizeof(of), &of, NULL);
    if (!is_gpu(of))
        return slow_enqueue_beside(on, kernel, dimensions, offset, global, local, count, list,
                                   event);
    cl_event gate = count == 0 ? real.clCreateUserEvent(in, &result) : NULL;
    if (!gate)
        return real.clEnqueueNDRangeKernel(on, kernel, dimensions, offset, global, local, count,
                                           list, event);
    real.clRetainEvent(gate); /* the clock's reference, and this one's */
    result =
        real.clEnqueueNDRangeKernel(on, kernel, dimensions, offset, global, local, 1, &gate, event);
    pthread_mutex_lock(&slow.lock);
    bool put = slow_put(on, gate);
    pthread_mutex_unlock(&slow.lock);
    if (!put) {
        real.clSetUserEventStatus(gate, CL_COMPLETE);
        real.clReleaseEvent(gate);
    }
    real.clReleaseEvent(gate);
    return result;
}

/* As the device's timestamps of a kernel are those of what PoCL executes at the end. */
static cl_int CL_API_CALL slow_profile(cl_event event, cl_profiling_info what, size_t size,
                                       void *value, size_t *size_ret) {
    cl_command_queue on;
    cl_device_id of;
    cl_command_type type;
    real.clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, NULL);
    real.clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof(on), &on, NULL);
    real.clGetCommandQueueInfo(on, CL_QUEUE_DEVICE, sizeof(of), &of, NULL);
    pthread_mutex_lock(&slow.lock);
    cl_ulong length = is_gpu(of) ? slow.length : slow.beside;
    pthread_mutex_unlock(&slow.lock);
    if (what != CL_PROFILING_COMMAND_START || length == 0 || type != CL_COMMAND_NDRANGE_KERNEL)
        return real.clGetEventProfilingInfo(event, what, size, value, size_ret);
    cl_int result =
        real.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, size, value, size_ret);
    if (result == CL_SUCCESS && value)
        *(cl_ulong *)value -= length;
    return result;
}

/* A forked child, too, as it has none of its parent's threads. */
static void slow_start(void) {
    pthread_t thread;
    pthread_mutex_init(&slow.lock, NULL);
    pthread_cond_init(&slow.more, NULL);
    if (pthread_create(&thread, NULL, slow_clock, NULL) == 0)
        pthread_detach(thread);
}

/* For test_main_gpu. */
static void slow_change(cl_icd_dispatch *driver) {
    slow.length = 300000;
    driver->clEnqueueNDRangeKernel = slow_enqueue;
    driver->clGetEventProfilingInfo = slow_profile;
    pthread_atfork(NULL, NULL, slow_start);
    slow_start();
}

#endif
