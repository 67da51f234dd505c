/* SPDX-License-Identifier: MIT */
/* Sobel with blocking transfers. */
#include "sobel.h"

#include <stdlib.h>

enum { FRAME, ROW_X, ROW_Y, X_PART, Y_PART, RESULT, BUFFERS };

static void open(void *user) {
    struct sobel *s = user;
    cl_mem *buffer = s->state = allocate(BUFFERS * sizeof(*buffer));
    const cl_int width = (cl_int)s->width;
    sobel_host_memory_new(s);
    for (int i = 0; i < BUFFERS; i++)
        buffer[i] = bench_buffer(&s->bench, s->bytes);
    kernel_argument(s->rows, 0, sizeof(cl_mem), &buffer[FRAME]);
    kernel_argument(s->rows, 1, sizeof(cl_mem), &buffer[ROW_X]);
    kernel_argument(s->rows, 2, sizeof(cl_mem), &buffer[ROW_Y]);
    kernel_argument(s->rows, 3, sizeof(width), &width);
    kernel_argument(s->smooth, 0, sizeof(cl_mem), &buffer[ROW_X]);
    kernel_argument(s->smooth, 1, sizeof(cl_mem), &buffer[X_PART]);
    kernel_argument(s->smooth, 2, sizeof(width), &width);
    kernel_argument(s->differ, 0, sizeof(cl_mem), &buffer[ROW_Y]);
    kernel_argument(s->differ, 1, sizeof(cl_mem), &buffer[Y_PART]);
    kernel_argument(s->differ, 2, sizeof(width), &width);
    kernel_argument(s->magnitude, 0, sizeof(cl_mem), &buffer[X_PART]);
    kernel_argument(s->magnitude, 1, sizeof(cl_mem), &buffer[Y_PART]);
    kernel_argument(s->magnitude, 2, sizeof(cl_mem), &buffer[RESULT]);
    kernel_argument(s->magnitude, 3, sizeof(width), &width);
}

static void run(void *user) {
    struct sobel *s = user;
    const cl_mem *buffer = s->state;
    cl_command_queue queue = s->bench.queue;
    for (size_t f = 0; f < s->frames; f++) {
        cl_check(clEnqueueWriteBuffer(queue, buffer[FRAME], CL_TRUE, 0, s->bytes,
                                      s->input[f % s->slots].pointer, 0, NULL, NULL),
                 "clEnqueueWriteBuffer");
        bench_launch(queue, s->rows, s->width, s->height, 0, NULL, NULL);
        bench_launch(queue, s->smooth, s->width, s->height, 0, NULL, NULL);
        bench_launch(queue, s->differ, s->width, s->height, 0, NULL, NULL);
        bench_launch(queue, s->magnitude, s->width, s->height, 0, NULL, NULL);
        cl_check(clEnqueueReadBuffer(queue, buffer[RESULT], CL_TRUE, 0, s->bytes,
                                     s->output[f % s->slots].pointer, 0, NULL, NULL),
                 "clEnqueueReadBuffer");
    }
}

static void close(void *user) {
    struct sobel *s = user;
    cl_mem *buffer = s->state;
    for (int i = 0; i < BUFFERS; i++)
        cl_check(clReleaseMemObject(buffer[i]), "clReleaseMemObject");
    free(buffer);
    sobel_host_memory_free(s);
}

const struct writing sobel_blocking = {"blocking", open, run, close, NULL};
