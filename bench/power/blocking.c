/* SPDX-License-Identifier: MIT */
/* The power of a matrix with blocking transfers: the device waits while the host computes. */
#include "power.h"

#include <stdlib.h>

static void open(void *user) {
    struct power *p = user;
    cl_mem *buffer = p->state = allocate(3 * sizeof(*buffer));
    power_host_memory_new(p);
    for (int i = 0; i < 3; i++)
        buffer[i] = bench_buffer(&p->bench, p->bytes);
}

static void run(void *user) {
    struct power *p = user;
    const cl_mem *r = p->state, *a = &r[2];
    cl_command_queue queue = p->bench.queue;
    cl_check(
        clEnqueueWriteBuffer(queue, *a, CL_TRUE, 0, p->bytes, p->matrix.pointer, 0, NULL, NULL),
        "clEnqueueWriteBuffer");
    for (size_t i = 0; i < p->iterations; i++) {
        const cl_mem *before = i == 0 ? a : &r[(i + 1) % 2], *after = &r[i % 2];
        kernel_argument(p->multiply, 0, sizeof(*a), a);
        kernel_argument(p->multiply, 1, sizeof(*before), before);
        kernel_argument(p->multiply, 2, sizeof(*after), after);
        bench_launch(queue, p->multiply, p->size, p->size, 0, NULL, NULL);
        cl_check(clEnqueueReadBuffer(queue, *after, CL_TRUE, 0, p->bytes, p->result[i % 2].pointer,
                                     0, NULL, NULL),
                 "clEnqueueReadBuffer");
        power_norm(p, i, p->result[i % 2].pointer);
    }
}

static void close(void *user) {
    struct power *p = user;
    cl_mem *buffer = p->state;
    for (int i = 0; i < 3; i++)
        cl_check(clReleaseMemObject(buffer[i]), "clReleaseMemObject");
    free(buffer);
    power_host_memory_free(p);
}

const struct writing power_blocking = {"blocking", open, run, close, NULL};
