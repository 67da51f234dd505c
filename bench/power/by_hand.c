/* SPDX-License-Identifier: MIT */
/*
 * The power of a matrix overlapped by hand: a queue for each direction and one for kernels. While
 * the host computes a norm, the next product is computed and read.
 */
#include "power.h"

#include <stdlib.h>

struct by_hand {
    cl_command_queue upload, compute, download;
    cl_mem a, r[2];
};

static void open(void *user) {
    struct power *p = user;
    struct by_hand *b = p->state = allocate_zeroed(1, sizeof(*b));
    power_host_memory_new(p);
    b->upload = bench_queue(&p->bench);
    b->compute = bench_queue(&p->bench);
    b->download = bench_queue(&p->bench);
    b->a = bench_buffer(&p->bench, p->bytes);
    for (int i = 0; i < 2; i++)
        b->r[i] = bench_buffer(&p->bench, p->bytes);
}

static void run(void *user) {
    struct power *p = user;
    struct by_hand *b = p->state;
    cl_event uploaded, read[2] = {NULL, NULL}; /* r[i] is in result[i] */
    cl_check(clEnqueueWriteBuffer(b->upload, b->a, CL_FALSE, 0, p->bytes, p->matrix.pointer, 0,
                                  NULL, &uploaded),
             "clEnqueueWriteBuffer");
    cl_check(clFlush(b->upload), "clFlush");
    for (size_t i = 0; i < p->iterations; i++) {
        const cl_mem *before = i == 0 ? &b->a : &b->r[(i + 1) % 2], *after = &b->r[i % 2];
        cl_event computed;
        kernel_argument(p->multiply, 0, sizeof(b->a), &b->a);
        kernel_argument(p->multiply, 1, sizeof(*before), before);
        kernel_argument(p->multiply, 2, sizeof(*after), after);
        /* The host has waited for the read of `after`, two iterations ago. */
        bench_launch(b->compute, p->multiply, p->size, p->size, i == 0 ? 1 : 0, &uploaded,
                     &computed);
        cl_check(clFlush(b->compute), "clFlush");
        cl_check(clEnqueueReadBuffer(b->download, *after, CL_FALSE, 0, p->bytes,
                                     p->result[i % 2].pointer, 1, &computed, &read[i % 2]),
                 "clEnqueueReadBuffer");
        cl_check(clFlush(b->download), "clFlush");
        bench_forget(&computed);
        if (i > 0) {
            bench_wait(&read[(i + 1) % 2]);
            power_norm(p, i - 1, p->result[(i + 1) % 2].pointer);
        }
    }
    bench_forget(&uploaded);
    bench_wait(&read[(p->iterations - 1) % 2]);
    power_norm(p, p->iterations - 1, p->result[(p->iterations - 1) % 2].pointer);
}

static void close(void *user) {
    struct power *p = user;
    struct by_hand *b = p->state;
    cl_check(clReleaseMemObject(b->a), "clReleaseMemObject");
    for (int i = 0; i < 2; i++)
        cl_check(clReleaseMemObject(b->r[i]), "clReleaseMemObject");
    cl_check(clReleaseCommandQueue(b->upload), "clReleaseCommandQueue");
    cl_check(clReleaseCommandQueue(b->compute), "clReleaseCommandQueue");
    cl_check(clReleaseCommandQueue(b->download), "clReleaseCommandQueue");
    free(b);
    power_host_memory_free(p);
}

const struct writing power_by_hand = {"by-hand", open, run, close, NULL};
