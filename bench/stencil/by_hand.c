/* SPDX-License-Identifier: MIT */
/*
 * The stencil overlapped by hand: a queue for each direction and one for kernels. While the host
 * copies a snapshot, the next one is computed and read.
 */
#include "stencil.h"

#include <stdlib.h>

struct by_hand {
    cl_command_queue upload, compute, download;
    cl_mem buffer[2];
    cl_event busy[2]; /* buffer[i] is being written or read by another queue than `compute` */
};

static void open(void *user) {
    struct stencil *s = user;
    struct by_hand *b = s->state = allocate_zeroed(1, sizeof(*b));
    stencil_host_memory_new(s);
    b->upload = bench_queue(&s->bench);
    b->compute = bench_queue(&s->bench);
    b->download = bench_queue(&s->bench);
    for (int i = 0; i < 2; i++)
        b->buffer[i] = bench_buffer(&s->bench, s->bytes);
}

static void run(void *user) {
    struct stencil *s = user;
    struct by_hand *b = s->state;
    cl_event read[2] = {NULL, NULL}; /* snapshot[i] is complete */
    size_t taken = 0;
    cl_check(clEnqueueWriteBuffer(b->upload, b->buffer[0], CL_FALSE, 0, s->bytes, s->start.pointer,
                                  0, NULL, &b->busy[0]),
             "clEnqueueWriteBuffer");
    cl_check(clFlush(b->upload), "clFlush");
    for (size_t i = 0; i < s->iterations; i++) {
        const size_t from = i % 2, to = (i + 1) % 2;
        const bool last = (i + 1) % s->period == 0;
        /* The first step reads what is uploaded; later ones overwrite what may still be read. */
        cl_event *busy = i == 0 ? &b->busy[from] : &b->busy[to];
        cl_event computed = NULL;
        kernel_argument(s->relax, 0, sizeof(cl_mem), &b->buffer[from]);
        kernel_argument(s->relax, 1, sizeof(cl_mem), &b->buffer[to]);
        bench_launch(b->compute, s->relax, s->size, s->size, *busy ? 1 : 0, busy,
                     last ? &computed : NULL);
        bench_forget(busy);
        if (!last)
            continue;
        cl_check(clFlush(b->compute), "clFlush");
        cl_check(clEnqueueReadBuffer(b->download, b->buffer[to], CL_FALSE, 0, s->bytes,
                                     s->snapshot[taken % 2].pointer, 1, &computed,
                                     &read[taken % 2]),
                 "clEnqueueReadBuffer");
        cl_check(clFlush(b->download), "clFlush");
        bench_forget(&computed);
        b->busy[to] = read[taken % 2];
        cl_check(clRetainEvent(b->busy[to]), "clRetainEvent");
        taken++;
        if (read[taken % 2]) {
            bench_wait(&read[taken % 2]);
            stencil_keep(s, s->snapshot[taken % 2].pointer);
        }
    }
    if (taken > 0) {
        bench_wait(&read[(taken - 1) % 2]);
        stencil_keep(s, s->snapshot[(taken - 1) % 2].pointer);
    }
    bench_forget(&b->busy[0]);
    bench_forget(&b->busy[1]);
    cl_check(clFinish(b->compute), "clFinish");
}

static void close(void *user) {
    struct stencil *s = user;
    struct by_hand *b = s->state;
    for (int i = 0; i < 2; i++)
        cl_check(clReleaseMemObject(b->buffer[i]), "clReleaseMemObject");
    cl_check(clReleaseCommandQueue(b->upload), "clReleaseCommandQueue");
    cl_check(clReleaseCommandQueue(b->compute), "clReleaseCommandQueue");
    cl_check(clReleaseCommandQueue(b->download), "clReleaseCommandQueue");
    free(b);
    stencil_host_memory_free(s);
}

const struct writing stencil_by_hand = {"by-hand", open, run, close, NULL};
