/* SPDX-License-Identifier: MIT */
/*
 * Sobel with transfers in both directions and kernels overlapped by hand: a queue for each, and
 * two (--buffers) sets of what the transfers use, so that a frame is uploaded and another one
 * downloaded while the kernels work on a third.
 */
#include "sobel.h"

#include <stdlib.h>

enum { ROW_X, ROW_Y, X_PART, Y_PART, BUFFERS };

struct set {
    cl_mem frame, result;
    cl_event consumed;   /* the rows of `frame` are convolved */
    cl_event downloaded; /* `result` is in the host's memory */
};

struct by_hand {
    cl_command_queue upload, compute, download;
    cl_mem buffer[BUFFERS]; /* only the in-order queue `compute` uses them */
    struct set *set;
};

static void open(void *user) {
    struct sobel *s = user;
    struct by_hand *b = s->state = allocate_zeroed(1, sizeof(*b));
    const cl_int width = (cl_int)s->width;
    sobel_host_memory_new(s);
    b->upload = bench_queue(&s->bench);
    b->compute = bench_queue(&s->bench);
    b->download = bench_queue(&s->bench);
    for (int i = 0; i < BUFFERS; i++)
        b->buffer[i] = bench_buffer(&s->bench, s->bytes);
    b->set = allocate_zeroed(s->buffers, sizeof(*b->set));
    for (size_t i = 0; i < s->buffers; i++) {
        b->set[i].frame = bench_buffer(&s->bench, s->bytes);
        b->set[i].result = bench_buffer(&s->bench, s->bytes);
    }
    kernel_argument(s->rows, 1, sizeof(cl_mem), &b->buffer[ROW_X]);
    kernel_argument(s->rows, 2, sizeof(cl_mem), &b->buffer[ROW_Y]);
    kernel_argument(s->rows, 3, sizeof(width), &width);
    kernel_argument(s->smooth, 0, sizeof(cl_mem), &b->buffer[ROW_X]);
    kernel_argument(s->smooth, 1, sizeof(cl_mem), &b->buffer[X_PART]);
    kernel_argument(s->smooth, 2, sizeof(width), &width);
    kernel_argument(s->differ, 0, sizeof(cl_mem), &b->buffer[ROW_Y]);
    kernel_argument(s->differ, 1, sizeof(cl_mem), &b->buffer[Y_PART]);
    kernel_argument(s->differ, 2, sizeof(width), &width);
    kernel_argument(s->magnitude, 0, sizeof(cl_mem), &b->buffer[X_PART]);
    kernel_argument(s->magnitude, 1, sizeof(cl_mem), &b->buffer[Y_PART]);
    kernel_argument(s->magnitude, 3, sizeof(width), &width);
}

static void run(void *user) {
    struct sobel *s = user;
    struct by_hand *b = s->state;
    for (size_t f = 0; f < s->frames; f++) {
        struct set *set = &b->set[f % s->buffers];
        cl_event uploaded, computed;
        cl_check(clEnqueueWriteBuffer(b->upload, set->frame, CL_FALSE, 0, s->bytes,
                                      s->input[f % s->slots].pointer, set->consumed ? 1 : 0,
                                      set->consumed ? &set->consumed : NULL, &uploaded),
                 "clEnqueueWriteBuffer");
        cl_check(clFlush(b->upload), "clFlush");
        bench_forget(&set->consumed);

        kernel_argument(s->rows, 0, sizeof(cl_mem), &set->frame);
        kernel_argument(s->magnitude, 2, sizeof(cl_mem), &set->result);
        bench_launch(b->compute, s->rows, s->width, s->height, 1, &uploaded, &set->consumed);
        bench_launch(b->compute, s->smooth, s->width, s->height, 0, NULL, NULL);
        bench_launch(b->compute, s->differ, s->width, s->height, 0, NULL, NULL);
        bench_launch(b->compute, s->magnitude, s->width, s->height, set->downloaded ? 1 : 0,
                     &set->downloaded, &computed);
        cl_check(clFlush(b->compute), "clFlush");
        bench_forget(&uploaded);
        bench_forget(&set->downloaded);

        cl_check(clEnqueueReadBuffer(b->download, set->result, CL_FALSE, 0, s->bytes,
                                     s->output[f % s->slots].pointer, 1, &computed,
                                     &set->downloaded),
                 "clEnqueueReadBuffer");
        cl_check(clFlush(b->download), "clFlush");
        bench_forget(&computed);
    }
    cl_check(clFinish(b->download), "clFinish");
    for (size_t i = 0; i < s->buffers; i++) {
        bench_forget(&b->set[i].consumed);
        bench_forget(&b->set[i].downloaded);
    }
}

static void close(void *user) {
    struct sobel *s = user;
    struct by_hand *b = s->state;
    for (int i = 0; i < BUFFERS; i++)
        cl_check(clReleaseMemObject(b->buffer[i]), "clReleaseMemObject");
    for (size_t i = 0; i < s->buffers; i++) {
        cl_check(clReleaseMemObject(b->set[i].frame), "clReleaseMemObject");
        cl_check(clReleaseMemObject(b->set[i].result), "clReleaseMemObject");
    }
    cl_check(clReleaseCommandQueue(b->upload), "clReleaseCommandQueue");
    cl_check(clReleaseCommandQueue(b->compute), "clReleaseCommandQueue");
    cl_check(clReleaseCommandQueue(b->download), "clReleaseCommandQueue");
    free(b->set);
    free(b);
    sobel_host_memory_free(s);
}

const struct writing sobel_by_hand = {"by-hand", open, run, close, NULL};
