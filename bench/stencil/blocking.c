/* SPDX-License-Identifier: MIT */
/* The stencil with blocking transfers: the host copies while the device waits. */
#include "stencil.h"

#include <stdlib.h>

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
    cl_check(clEnqueueWriteBuffer(queue, buffer[0], CL_TRUE, 0, s->bytes, s->start.pointer, 0, NULL,
                                  NULL),
             "clEnqueueWriteBuffer");
    for (size_t i = 0, taken = 0; i < s->iterations; i++) {
        const cl_mem *before = &buffer[i % 2], *after = &buffer[(i + 1) % 2];
        kernel_argument(s->relax, 0, sizeof(*before), before);
        kernel_argument(s->relax, 1, sizeof(*after), after);
        bench_launch(queue, s->relax, s->size, s->size, 0, NULL, NULL);
        if ((i + 1) % s->period != 0)
            continue;
        cl_check(clEnqueueReadBuffer(queue, *after, CL_TRUE, 0, s->bytes,
                                     s->snapshot[taken % 2].pointer, 0, NULL, NULL),
                 "clEnqueueReadBuffer");
        stencil_keep(s, s->snapshot[taken++ % 2].pointer);
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

const struct writing stencil_blocking = {"blocking", open, run, close, NULL};
