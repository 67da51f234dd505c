/* SPDX-License-Identifier: MIT */
/*
 * Before a read a kernel wrote the buffer, so that the bytes come from the device. "and use": until
 * a kernel had them, so that they really are there.
 */
#include "transfers.h"

#include <pthread.h>
#include <string.h>

static double write_from(struct target *t, cl_bool blocking, const void *source, bool use) {
    double start = now();
    check(clEnqueueWriteBuffer(t->queue, t->buffer, blocking, 0, t->size, source, 0, NULL, NULL),
          "clEnqueueWriteBuffer");
    if (use)
        touch(t, t->buffer);
    else if (!blocking)
        check(clFinish(t->queue), "clFinish");
    double length = now() - start;
    check(clFinish(t->queue), "clFinish");
    return length;
}

static double write_blocking(struct target *t) { return write_from(t, CL_TRUE, t->pages, false); }
static double write_and_use(struct target *t) { return write_from(t, CL_TRUE, t->pages, true); }
static double write_later(struct target *t) { return write_from(t, CL_FALSE, t->pages, false); }
static double write_locked(struct target *t) { return write_from(t, CL_TRUE, t->fast[0], true); }

/* The first word is what kernels change. */
static void compare(struct target *t, const unsigned char *seen) {
    if (t->size > 4 && memcmp(t->pages + 4, seen + 4, t->size - 4) != 0)
        t->right = false;
}

/* Comparing takes longer than reading: one of 16 times, and the first. */
static bool look(struct target *t) { return t->looks++ % 16 == 0; }

static double read_to(struct target *t, cl_bool blocking, unsigned char *to) {
    bool looks = look(t);
    if (looks) {
        memset(to, 0, t->size);
        check(
            clEnqueueWriteBuffer(t->queue, t->buffer, CL_TRUE, 0, t->size, t->pages, 0, NULL, NULL),
            "clEnqueueWriteBuffer");
    }
    touch(t, t->buffer);
    double start = now();
    check(clEnqueueReadBuffer(t->queue, t->buffer, blocking, 0, t->size, to, 0, NULL, NULL),
          "clEnqueueReadBuffer");
    if (!blocking)
        check(clFinish(t->queue), "clFinish");
    double length = now() - start;
    if (looks)
        compare(t, to);
    return length;
}

static double read_blocking(struct target *t) { return read_to(t, CL_TRUE, t->back); }
static double read_later(struct target *t) { return read_to(t, CL_FALSE, t->back); }
static double read_locked(struct target *t) { return read_to(t, CL_TRUE, t->fast[1]); }

/* Without the first and the last quarter. */
static double write_part(struct target *t) {
    size_t quarter = t->size / 4;
    touch(t, t->buffer);
    double start = now();
    check(clEnqueueWriteBuffer(t->queue, t->buffer, CL_TRUE, quarter, 2 * quarter,
                               t->pages + quarter, 0, NULL, NULL),
          "clEnqueueWriteBuffer");
    touch(t, t->buffer);
    return now() - start;
}

#define ROW 4096
#define PITCH 8192

/* Every other 4 KiB. */
static double rows(struct target *t, bool reading) {
    size_t origin[3] = {0, 0, 0}, region[3] = {ROW, t->size / PITCH, 1};
    touch(t, t->buffer);
    double start = now();
    if (reading) {
        check(clEnqueueReadBufferRect(t->queue, t->buffer, CL_TRUE, origin, origin, region, PITCH,
                                      0, PITCH, 0, t->back, 0, NULL, NULL),
              "clEnqueueReadBufferRect");
        return now() - start;
    }
    check(clEnqueueWriteBufferRect(t->queue, t->buffer, CL_TRUE, origin, origin, region, PITCH, 0,
                                   PITCH, 0, t->pages, 0, NULL, NULL),
          "clEnqueueWriteBufferRect");
    touch(t, t->buffer);
    return now() - start;
}

static double write_rows(struct target *t) { return rows(t, false); }
static double read_rows(struct target *t) { return rows(t, true); }

static void *map(struct target *t, cl_mem buffer, cl_map_flags flags) {
    cl_int error;
    void *mapped =
        clEnqueueMapBuffer(t->queue, buffer, CL_TRUE, flags, 0, t->size, 0, NULL, NULL, &error);
    check(error, "clEnqueueMapBuffer");
    return mapped;
}

static void unmap(struct target *t, cl_mem buffer, void *mapped) {
    check(clEnqueueUnmapMemObject(t->queue, buffer, mapped, 0, NULL, NULL), "unmap");
}

/* What the program does between is not counted. */
static double map_write_of(struct target *t, cl_mem buffer, bool use) {
    double start = now();
    unsigned char *mapped = map(t, buffer, CL_MAP_WRITE_INVALIDATE_REGION);
    double mapping = now() - start;
    memcpy(mapped, t->pages, t->size);
    start = now();
    unmap(t, buffer, mapped);
    if (use)
        touch(t, buffer);
    else
        check(clFinish(t->queue), "clFinish");
    return now() - start + mapping;
}

static double map_read_of(struct target *t, cl_mem buffer) {
    bool looks = look(t);
    if (looks)
        check(clEnqueueWriteBuffer(t->queue, buffer, CL_TRUE, 0, t->size, t->pages, 0, NULL, NULL),
              "clEnqueueWriteBuffer");
    touch(t, buffer);
    double start = now();
    unsigned char *mapped = map(t, buffer, CL_MAP_READ);
    double length = now() - start;
    if (looks)
        compare(t, mapped);
    unmap(t, buffer, mapped);
    check(clFinish(t->queue), "clFinish");
    return length;
}

static double map_write(struct target *t) { return map_write_of(t, t->mapped, false); }
static double map_and_use(struct target *t) { return map_write_of(t, t->mapped, true); }
static double map_read(struct target *t) { return map_read_of(t, t->mapped); }
static double over_write(struct target *t) { return map_write_of(t, t->over, false); }
static double over_and_use(struct target *t) { return map_write_of(t, t->over, true); }
static double over_read(struct target *t) { return map_read_of(t, t->over); }

/* One buffer goes up while the other one comes down, by two queues. */
static double both_ways(struct target *t, const void *source, void *sink) {
    touch(t, t->second);
    double start = now();
    check(clEnqueueReadBuffer(t->other, t->second, CL_FALSE, 0, t->size, sink, 0, NULL, NULL),
          "clEnqueueReadBuffer");
    check(clFlush(t->other), "clFlush");
    check(clEnqueueWriteBuffer(t->queue, t->buffer, CL_FALSE, 0, t->size, source, 0, NULL, NULL),
          "clEnqueueWriteBuffer");
    touch(t, t->buffer);
    check(clFinish(t->other), "clFinish");
    return now() - start;
}

static double both_ways_pages(struct target *t) { return both_ways(t, t->pages, t->back); }
static double both_ways_locked(struct target *t) { return both_ways(t, t->fast[0], t->fast[1]); }

static void *read_in_thread(void *target) {
    struct target *t = target;
    check(clEnqueueReadBuffer(t->other, t->second, CL_TRUE, 0, t->size, t->back, 0, NULL, NULL),
          "clEnqueueReadBuffer");
    return NULL;
}

/* The same by blocking calls of two threads; to begin a thread counts, too. */
static double both_ways_threads(struct target *t) {
    pthread_t thread;
    touch(t, t->second);
    double start = now();
    if (pthread_create(&thread, NULL, read_in_thread, t) != 0)
        check(CL_OUT_OF_HOST_MEMORY, "pthread_create");
    check(clEnqueueWriteBuffer(t->queue, t->buffer, CL_TRUE, 0, t->size, t->pages, 0, NULL, NULL),
          "clEnqueueWriteBuffer");
    touch(t, t->buffer);
    pthread_join(thread, NULL);
    return now() - start;
}

const struct transfer transfers[] = {
    {"write", write_blocking, 4, 1},
    {"write and use", write_and_use, 4, 1},
    {"write, non-blocking", write_later, 4, 1},
    {"read", read_blocking, 4, 1},
    {"read, non-blocking", read_later, 4, 1},
    {"write half and use", write_part, 64, 0.5},
    {"write rows and use", write_rows, 4 * PITCH, 0.5},
    {"read rows", read_rows, 4 * PITCH, 0.5},
    {"pinned write and use", write_locked, 4, 1},
    {"pinned read", read_locked, 4, 1},
    {"map to write and unmap", map_write, 4, 1},
    {"map to write and use", map_and_use, 4, 1},
    {"map to read", map_read, 4, 1},
    {"own memory: map and unmap", over_write, 4, 1},
    {"own memory: map and use", over_and_use, 4, 1},
    {"own memory: map to read", over_read, 4, 1},
    {"both ways", both_ways_pages, 4096, 2},
    {"pinned both ways", both_ways_locked, 4096, 2},
    {"threads both ways", both_ways_threads, 4096, 2},
};
const unsigned transfer_count = sizeof(transfers) / sizeof(transfers[0]);
