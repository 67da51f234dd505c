/* SPDX-License-Identifier: MIT */
/*
 * The power of a matrix as one writes it first: one in-order queue, no events, one clFinish. The
 * norms are native kernels on a snapshot; a device that has none makes the host read the product,
 * and wait, before each norm.
 */
#include "power.h"

#include <stdlib.h>

struct buffers {
    cl_mem a, r[2], snapshot;
};

struct norm {
    struct power *power;
    size_t iteration;
    cl_mem snapshot; /* for the native kernel its bytes' address */
};

static void CL_CALLBACK norm(void *arguments) {
    const struct norm *n = arguments;
    power_norm(n->power, n->iteration, n->snapshot);
}

static void open(void *user) {
    struct power *p = user;
    struct buffers *b = p->state = allocate(sizeof(*b));
    power_host_memory_new(p);
    b->a = bench_buffer(&p->bench, p->bytes);
    for (int i = 0; i < 2; i++)
        b->r[i] = bench_buffer(&p->bench, p->bytes);
    b->snapshot = bench_buffer(&p->bench, p->bytes);
}

static void run(void *user) {
    struct power *p = user;
    const struct buffers *b = p->state;
    cl_command_queue queue = p->bench.queue;
    cl_check(
        clEnqueueWriteBuffer(queue, b->a, CL_FALSE, 0, p->bytes, p->matrix.pointer, 0, NULL, NULL),
        "clEnqueueWriteBuffer");
    for (size_t i = 0; i < p->iterations; i++) {
        const cl_mem *before = i == 0 ? &b->a : &b->r[(i + 1) % 2], *after = &b->r[i % 2];
        kernel_argument(p->multiply, 0, sizeof(b->a), &b->a);
        kernel_argument(p->multiply, 1, sizeof(*before), before);
        kernel_argument(p->multiply, 2, sizeof(*after), after);
        bench_launch(queue, p->multiply, p->size, p->size, 0, NULL, NULL);
        if (p->bench.native) {
            struct norm n = {p, i, b->snapshot};
            const void *place = &n.snapshot;
            cl_check(clEnqueueCopyBuffer(queue, *after, b->snapshot, 0, 0, p->bytes, 0, NULL, NULL),
                     "clEnqueueCopyBuffer");
            cl_check(clEnqueueNativeKernel(queue, norm, &n, sizeof(n), 1, &b->snapshot, &place, 0,
                                           NULL, NULL),
                     "clEnqueueNativeKernel");
        } else {
            cl_check(clEnqueueReadBuffer(queue, *after, CL_FALSE, 0, p->bytes,
                                         p->result[i % 2].pointer, 0, NULL, NULL),
                     "clEnqueueReadBuffer");
            cl_check(clFinish(queue), "clFinish");
            power_norm(p, i, p->result[i % 2].pointer);
        }
    }
    cl_check(clFinish(queue), "clFinish");
}

static void fetch(void *user) {
    struct power *p = user;
    const struct buffers *b = p->state;
    for (int i = 0; i < 2; i++)
        cl_check(clEnqueueReadBuffer(p->bench.queue, b->r[i], CL_TRUE, 0, p->bytes,
                                     p->result[i].pointer, 0, NULL, NULL),
                 "clEnqueueReadBuffer");
}

static void close(void *user) {
    struct power *p = user;
    struct buffers *b = p->state;
    cl_check(clReleaseMemObject(b->a), "clReleaseMemObject");
    for (int i = 0; i < 2; i++)
        cl_check(clReleaseMemObject(b->r[i]), "clReleaseMemObject");
    cl_check(clReleaseMemObject(b->snapshot), "clReleaseMemObject");
    free(b);
    power_host_memory_free(p);
}

const struct writing power_naive = {"naive", open, run, close, fetch};
