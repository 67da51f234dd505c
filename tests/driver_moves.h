/* SPDX-License-Identifier: MIT */
/*
 * Which commands that move bytes a driver was given, in the order of the calls. PoCL stands in for
 * GPUs; a test may look at each call before the driver gets it.
 */
#ifndef TUTTI_TESTS_DRIVER_MOVES_H
#define TUTTI_TESTS_DRIVER_MOVES_H

#include "pocl_gpu.h"

#include <pthread.h>

enum driver_way { WRITE, READ, COPY, WRITE_RECT, READ_RECT, COPY_RECT, WAYS };

struct driver_move {
    enum driver_way way;
    cl_command_queue on;
    cl_device_id device;
    size_t bytes;
    const void *host; /* where it begins; NULL: within the driver */
    pthread_t thread;
};

static struct {
    pthread_mutex_t lock; /* guards what follows */
    struct driver_move move[4096];
    unsigned count;
    cl_event gate[64]; /* of those that are held */
    unsigned gates, to_hold, awaited;
} driver_moves = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void driver_note(enum driver_way way, cl_command_queue on, size_t bytes, const void *host) {
    struct driver_move move = {way, on, NULL, bytes, host, pthread_self()};
    real.clGetCommandQueueInfo(on, CL_QUEUE_DEVICE, sizeof(move.device), &move.device, NULL);
    pthread_mutex_lock(&driver_moves.lock);
    if (driver_moves.count < COUNT(driver_moves.move))
        driver_moves.move[driver_moves.count++] = move;
    pthread_mutex_unlock(&driver_moves.lock);
}

/*
 * The next non-blocking reads and writes, so many of them, do not begin before driver_let_go, and
 * none of them is in its queue before so many threads had one: what these have to do before, as
 * with the queue of such a command, is over then. Ten seconds at most.
 */
static inline void driver_hold(unsigned commands, unsigned threads) {
    pthread_mutex_lock(&driver_moves.lock);
    ck_assert_uint_le(commands, COUNT(driver_moves.gate));
    driver_moves.to_hold = commands;
    driver_moves.awaited = threads;
    pthread_mutex_unlock(&driver_moves.lock);
}

/* How many threads gave the commands that are noted. Lock held. */
static unsigned driver_threads(void) {
    unsigned threads = 0;
    for (unsigned i = 0; i < driver_moves.count; i++) {
        unsigned j = 0;
        while (!pthread_equal(driver_moves.move[j].thread, driver_moves.move[i].thread))
            j++;
        threads += j == i;
    }
    return threads;
}

/* In the call of one of them. Lock held. */
static void driver_meet(void) {
    for (int ms = 0; driver_threads() < driver_moves.awaited; ms++) {
        pthread_mutex_unlock(&driver_moves.lock);
        usleep(1000);
        pthread_mutex_lock(&driver_moves.lock);
        if (ms == 10000)
            driver_moves.awaited = 0;
    }
}

static inline void driver_let_go(void) {
    pthread_mutex_lock(&driver_moves.lock);
    unsigned gates = driver_moves.gates;
    driver_moves.gates = driver_moves.to_hold = driver_moves.awaited = 0;
    pthread_mutex_unlock(&driver_moves.lock);
    for (unsigned i = 0; i < gates; i++) { /* PoCL may execute it in this thread */
        real.clSetUserEventStatus(driver_moves.gate[i], CL_COMPLETE);
        real.clReleaseEvent(driver_moves.gate[i]);
    }
}

/* What a command is to wait for, which the caller releases; NULL: nothing. */
static cl_event driver_gate(cl_command_queue on, cl_bool blocking, cl_uint count,
                            const cl_event *event) {
    cl_event gate = NULL;
    cl_context in;
    real.clGetCommandQueueInfo(on, CL_QUEUE_CONTEXT, sizeof(in), &in, NULL);
    pthread_mutex_lock(&driver_moves.lock);
    if (driver_moves.to_hold > 0 && !blocking && count == 0 && event)
        driver_meet();
    if (driver_moves.to_hold > 0 && !blocking && count == 0 && event &&
        (gate = real.clCreateUserEvent(in, NULL)) != NULL) {
        driver_moves.to_hold--;
        real.clRetainEvent(gate); /* its own reference, and the caller's */
        driver_moves.gate[driver_moves.gates++] = gate;
    }
    pthread_mutex_unlock(&driver_moves.lock);
    return gate;
}

static inline void driver_forget_moves(void) {
    pthread_mutex_lock(&driver_moves.lock);
    driver_moves.count = 0;
    pthread_mutex_unlock(&driver_moves.lock);
}

/* How many commands of that kind there were, of so many bytes and more. */
static inline unsigned driver_count(enum driver_way way, size_t least) {
    unsigned found = 0;
    pthread_mutex_lock(&driver_moves.lock);
    for (unsigned i = 0; i < driver_moves.count; i++)
        found += driver_moves.move[i].way == way && driver_moves.move[i].bytes >= least;
    pthread_mutex_unlock(&driver_moves.lock);
    return found;
}

/* All of any kind. */
static inline unsigned driver_count_all(void) {
    pthread_mutex_lock(&driver_moves.lock);
    unsigned count = driver_moves.count;
    pthread_mutex_unlock(&driver_moves.lock);
    ck_assert_uint_lt(count, COUNT(driver_moves.move));
    return count;
}

static size_t driver_box(const size_t *region) { return region[0] * region[1] * region[2]; }

static cl_int CL_API_CALL driver_write(cl_command_queue on, cl_mem to, cl_bool blocking,
                                       size_t offset, size_t size, const void *from, cl_uint count,
                                       const cl_event *list, cl_event *event) {
    driver_note(WRITE, on, size, from);
    cl_event gate = driver_gate(on, blocking, count, event);
    cl_int result = real.clEnqueueWriteBuffer(on, to, blocking, offset, size, from,
                                              gate ? 1 : count, gate ? &gate : list, event);
    if (gate)
        real.clReleaseEvent(gate);
    return result;
}

static cl_int CL_API_CALL driver_read(cl_command_queue on, cl_mem from, cl_bool blocking,
                                      size_t offset, size_t size, void *to, cl_uint count,
                                      const cl_event *list, cl_event *event) {
    driver_note(READ, on, size, to);
    cl_event gate = driver_gate(on, blocking, count, event);
    cl_int result = real.clEnqueueReadBuffer(on, from, blocking, offset, size, to, gate ? 1 : count,
                                             gate ? &gate : list, event);
    if (gate)
        real.clReleaseEvent(gate);
    return result;
}

static cl_int CL_API_CALL driver_copy(cl_command_queue on, cl_mem from, cl_mem to, size_t first,
                                      size_t target, size_t size, cl_uint count,
                                      const cl_event *list, cl_event *event) {
    driver_note(COPY, on, size, NULL);
    return real.clEnqueueCopyBuffer(on, from, to, first, target, size, count, list, event);
}

static cl_int CL_API_CALL driver_write_rect(cl_command_queue on, cl_mem to, cl_bool blocking,
                                            const size_t *there, const size_t *here,
                                            const size_t *region, size_t row, size_t slice,
                                            size_t host_row, size_t host_slice, const void *from,
                                            cl_uint count, const cl_event *list, cl_event *event) {
    driver_note(WRITE_RECT, on, driver_box(region), from);
    return real.clEnqueueWriteBufferRect(on, to, blocking, there, here, region, row, slice,
                                         host_row, host_slice, from, count, list, event);
}

static cl_int CL_API_CALL driver_read_rect(cl_command_queue on, cl_mem from, cl_bool blocking,
                                           const size_t *there, const size_t *here,
                                           const size_t *region, size_t row, size_t slice,
                                           size_t host_row, size_t host_slice, void *to,
                                           cl_uint count, const cl_event *list, cl_event *event) {
    driver_note(READ_RECT, on, driver_box(region), to);
    return real.clEnqueueReadBufferRect(on, from, blocking, there, here, region, row, slice,
                                        host_row, host_slice, to, count, list, event);
}

static cl_int CL_API_CALL driver_copy_rect(cl_command_queue on, cl_mem from, cl_mem to,
                                           const size_t *source, const size_t *target,
                                           const size_t *region, size_t from_row, size_t from_slice,
                                           size_t to_row, size_t to_slice, cl_uint count,
                                           const cl_event *list, cl_event *event) {
    driver_note(COPY_RECT, on, driver_box(region), NULL);
    return real.clEnqueueCopyBufferRect(on, from, to, source, target, region, from_row, from_slice,
                                        to_row, to_slice, count, list, event);
}

/* For pocl_gpu_begin. */
static void driver_moves_change(cl_icd_dispatch *table) {
    table->clEnqueueWriteBuffer = driver_write;
    table->clEnqueueReadBuffer = driver_read;
    table->clEnqueueCopyBuffer = driver_copy;
    table->clEnqueueWriteBufferRect = driver_write_rect;
    table->clEnqueueReadBufferRect = driver_read_rect;
    table->clEnqueueCopyBufferRect = driver_copy_rect;
}

#endif
