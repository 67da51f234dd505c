/* SPDX-License-Identifier: MIT */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "report.h"

/*
 * What the programs share that measure one workload in three writings (bench/async runs them):
 *   blocking   each transfer waits for its end
 *   naive      one in-order queue, non-blocking calls, no events, one clFinish at the end
 *   by-hand    three queues, events, page-locked host memory, more buffers where that helps
 * A writing is one source file, so that its lines can be counted (bench/count-lines).
 */

/* A writing's steps; `user` is the workload. Only `run` is timed. */
struct writing {
    const char *name;
    void (*open)(void *user);  /* buffers, queues, host memory */
    void (*run)(void *user);   /* all of the work, until the host has the results */
    void (*close)(void *user); /* what `open` made */
    void (*fetch)(void *user); /* after all runs, what only the check wants; NULL: nothing */
};

struct bench {
    struct common_options options;
    struct lanes lanes; /* one, with an in-order queue */
    cl_context context;
    cl_device_id device;
    cl_command_queue queue;
    const struct writing *writing;
    bool native; /* the device can execute native kernels */
    bool pinned; /* host memory of the writing is page-locked */
};

/*
 * Reads the command line, opens the first device of the platform that it names and builds the
 * program, or exits. `writings` are what --writing chooses from, the first by default.
 */
void bench_open(struct bench *bench, int argc, char **argv, const char *summary,
                const struct option_entry *own, unsigned own_count,
                const struct writing *const *writings, unsigned writing_count, const char *source);
void bench_close(struct bench *bench);

cl_kernel bench_kernel(const struct bench *bench, const char *name);
cl_mem bench_buffer(const struct bench *bench, size_t bytes);
cl_command_queue bench_queue(const struct bench *bench);

/* Two-dimensional, work-groups as the driver likes. */
void bench_launch(cl_command_queue queue, cl_kernel kernel, size_t width, size_t height,
                  cl_uint wait_count, const cl_event *wait, cl_event *event);

/* Waits for the event, where there is one, and gives it back; it is NULL afterwards. */
void bench_wait(cl_event *event);
/* Gives the event back, where there is one; it is NULL afterwards. */
void bench_forget(cl_event *event);

/*
 * Memory for the host's side of transfers: what malloc gives, or mapped CL_MEM_ALLOC_HOST_PTR,
 * which drivers lock in memory for fast transfers. By writing, unless --memory says which.
 */
struct host_memory {
    void *pointer;
    cl_mem buffer; /* NULL: plain */
};
struct host_memory host_memory_new(const struct bench *bench, size_t bytes);
void host_memory_free(const struct bench *bench, struct host_memory *memory);

/* Measures the writing on `user` (options --warmup and --repeat). */
void bench_measure(struct bench *bench, void *user, struct measure *measured);

/* Begins the JSON line with what all workloads say. */
void bench_report_begin(struct report *report, const struct bench *bench, const char *workload);

/* The same for the same bytes, whatever writing made them. */
cl_ulong bench_checksum(cl_ulong seed, const void *bytes, size_t size);

#endif
