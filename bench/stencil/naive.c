/* SPDX-License-Identifier: MIT */
/*
 * The stencil as one writes it first: one in-order queue, no events, one clFinish. The host's
 * copies are native kernels; a device that has none makes the host wait before each copy.
 */
#include "stencil.h"

#include <stdlib.h>

struct copy {
    struct stencil *stencil;
    size_t snapshot;
};

static void CL_CALLBACK copy(void *arguments) {
    const struct copy *c = arguments;
    stencil_keep(c->stencil, c->snapshot);
}

static void open(void *user) {
    struct stencil *s = user;
    cl_mem *buffer = s->state = allocate(2 * sizeof(*buffer));
    stencil_host_memory_new(s);
    for (int i = 0; i < 2; i++)
        buffer[i] = bench_buffer(&s->bench, s->bytes);
}

static void run(void *user) {
    struct stencil *s = user;
    const cl_mem *buffer = s->state;
    cl_command_queue queue = s->bench.queue;
    cl_check(clEnqueueWriteBuffer(queue, buffer[0], CL_FALSE, 0, s->bytes, s->start.pointer, 0,
                                  NULL, NULL),
             "clEnqueueWriteBuffer");
    for (size_t i = 0, taken = 0; i < s->iterations; i++) {
        const cl_mem *before = &buffer[i % 2], *after = &buffer[(i + 1) % 2];
        kernel_argument(s->relax, 0, sizeof(*before), before);
        kernel_argument(s->relax, 1, sizeof(*after), after);
        bench_launch(queue, s->relax, s->size, s->size, 0, NULL, NULL);
        if ((i + 1) % s->period != 0)
            continue;
        struct copy c = {s, taken++ % 2};
        cl_check(clEnqueueReadBuffer(queue, *after, CL_FALSE, 0, s->bytes,
                                     s->snapshot[c.snapshot].pointer, 0, NULL, NULL),
                 "clEnqueueReadBuffer");
        if (s->bench.native) {
            cl_check(
                clEnqueueNativeKernel(queue, copy, &c, sizeof(c), 0, NULL, NULL, 0, NULL, NULL),
                "clEnqueueNativeKernel");
        } else {
            cl_check(clFinish(queue), "clFinish");
            copy(&c);
        }
    }
    cl_check(clFinish(queue), "clFinish");
}

static void close(void *user) {
    struct stencil *s = user;
    cl_mem *buffer = s->state;
    for (int i = 0; i < 2; i++)
        cl_check(clReleaseMemObject(buffer[i]), "clReleaseMemObject");
    free(buffer);
    stencil_host_memory_free(s);
}

const struct writing stencil_naive = {"naive", open, run, close};
