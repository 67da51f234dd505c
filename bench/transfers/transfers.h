/* SPDX-License-Identifier: MIT */
#ifndef BENCH_TRANSFERS_H
#define BENCH_TRANSFERS_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A platform that is measured: its first device. */
struct target {
    char name[128];
    cl_platform_id platform;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue, other; /* in order; `other` for the way back */
    cl_program program;
    cl_kernel kernel;

    /* For one size: on the device, and on the host ordinary and page-locked memory. */
    size_t size;
    cl_mem buffer, second; /* whole buffers of that size */
    cl_mem mapped;         /* CL_MEM_ALLOC_HOST_PTR, for maps */
    cl_mem over;           /* CL_MEM_USE_HOST_PTR, over `own` */
    cl_mem locked[2];      /* CL_MEM_ALLOC_HOST_PTR, mapped for as long as it lives at: */
    unsigned char *fast[2], *pages, *back, *own;
    unsigned looks; /* at what is to be compared */
    bool right;     /* what came back is what went there */
};

/* One way to move bytes. */
struct transfer {
    const char *name;
    double (*run)(struct target *target); /* seconds */
    size_t least;                         /* bytes below which it makes no sense */
    double bytes;                         /* that move, in sizes */
};
extern const struct transfer transfers[];
extern const unsigned transfer_count;

void check(cl_int error, const char *what); /* ends the program on an error */
double now(void);                           /* seconds */

/* Its context, queues and kernel; false when the platform has no device. */
bool target_open(struct target *target, cl_platform_id platform);
void target_close(struct target *target);
/* Memory for transfers of that size; false when the device or the host has not so much. */
bool target_resize(struct target *target, size_t size);

/* A kernel on one word of the buffer, until it is over: then the device has all of it. */
void touch(struct target *target, cl_mem buffer);

/* Durations of one transfer of one size on one platform. */
struct sample {
    double seconds[1024];
    unsigned count;
};
void sample_add(struct sample *sample, double seconds);

/* Says what was measured, for all platforms: a row of the table, and lines of the file. */
struct report {
    FILE *file; /* may be NULL */
    const char *label;
};
void report_row(struct report *report, const char *name, size_t size, double bytes,
                const struct target *targets, struct sample *samples, unsigned count);

/*
 * From one real device to another: on Tutti by a kernel that runs elsewhere than the last one, on
 * other platforms in a context of both, by clEnqueueCopyBuffer and in two other ways. Needs
 * TUTTI_SCHED=random and TUTTI_DIRECT=never.
 */
void measure_between(struct report *report, const cl_platform_id *platforms, unsigned count,
                     const size_t *sizes, unsigned size_count, double seconds);

#endif
