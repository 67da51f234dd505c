/* SPDX-License-Identifier: MIT */
/*
 * The stencil as one writes it first: one in-order queue, no events, one clFinish. The host's
 * copies are native kernels on a snapshot; a device that has none makes the host read the grid, and
 * wait, before each copy.
 */
#include "stencil.h"

#include <stdlib.h>

struct buffers {
    cl_mem grid[2], snapshot;
};

struct copy {
    struct stencil *stencil;
    cl_mem snapshot; /* for the native kernel its bytes' address */
};

static void CL_CALLBACK copy(void *arguments) {
    const struct copy *c = arguments;
    stencil_keep(c->stencil, c->snapshot);
}

static void open(void *user) {
    struct stencil *s = user;
    struct buffers *b = s->state = allocate(sizeof(*b));
    stencil_host_memory_new(s);
    for (int i = 0; i < 2; i++)
        b->grid[i] = bench_buffer(&s->bench, s->bytes);
    b->snapshot = bench_buffer(&s->bench, s->bytes);
}

static void run(void *user) {
    struct stencil *s = user;
    const struct buffers *b = s->state;
    cl_command_queue queue = s->bench.queue;
    cl_check(clEnqueueWriteBuffer(queue, b->grid[0], CL_FALSE, 0, s->bytes, s->start.pointer, 0,
                                  NULL, NULL),
             "clEnqueueWriteBuffer");
    for (size_t i = 0; i < s->iterations; i++) {
        const cl_mem *before = &b->grid[i % 2], *after = &b->grid[(i + 1) % 2];
        kernel_argument(s->relax, 0, sizeof(*before), before);
        kernel_argument(s->relax, 1, sizeof(*after), after);
        bench_launch(queue, s->relax, s->size, s->size, 0, NULL, NULL);
        if ((i + 1) % s->period != 0)
            continue;
        if (s->bench.native) {
            struct copy c = {s, b->snapshot};
            const void *place = &c.snapshot;
            cl_check(clEnqueueCopyBuffer(queue, *after, b->snapshot, 0, 0, s->bytes, 0, NULL, NULL),
                     "clEnqueueCopyBuffer");
            cl_check(clEnqueueNativeKernel(queue, copy, &c, sizeof(c), 1, &b->snapshot, &place, 0,
                                           NULL, NULL),
                     "clEnqueueNativeKernel");
        } else {
            cl_check(clEnqueueReadBuffer(queue, *after, CL_FALSE, 0, s->bytes,
                                         s->snapshot[0].pointer, 0, NULL, NULL),
                     "clEnqueueReadBuffer");
            cl_check(clFinish(queue), "clFinish");
            stencil_keep(s, s->snapshot[0].pointer);
        }
    }
    cl_check(clFinish(queue), "clFinish");
}

static void close(void *user) {
    struct stencil *s = user;
    struct buffers *b = s->state;
    for (int i = 0; i < 2; i++)
        cl_check(clReleaseMemObject(b->grid[i]), "clReleaseMemObject");
    cl_check(clReleaseMemObject(b->snapshot), "clReleaseMemObject");
    free(b);
    stencil_host_memory_free(s);
}

const struct writing stencil_naive = {"naive", open, run, close, NULL};
