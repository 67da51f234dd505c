/* SPDX-License-Identifier: MIT */
#ifndef BENCH_SOBEL_H
#define BENCH_SOBEL_H

#include "bench.h"

/*
 * A video through Sobel's filter: each frame is written to the device, its rows and columns are
 * convolved, the magnitude of the gradient is read back. Frame f is in host memory
 * input[f % slots], its result goes to output[f % slots].
 */
struct sobel {
    struct bench bench;
    size_t width, height, frames, slots;
    size_t bytes;                       /* of one frame */
    size_t buffers;                     /* by-hand: how many frames the device has room for */
    struct host_memory *input, *output; /* [slots], made by the writing */
    cl_kernel rows, smooth, differ, magnitude;
    void *state; /* the writing's own */
};

extern const struct writing sobel_blocking, sobel_naive, sobel_by_hand;

/* The host memory of all slots. */
void sobel_host_memory_new(struct sobel *sobel);
void sobel_host_memory_free(struct sobel *sobel);

#endif
