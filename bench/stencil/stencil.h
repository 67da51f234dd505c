/* SPDX-License-Identifier: MIT */
#ifndef BENCH_STENCIL_H
#define BENCH_STENCIL_H

#include "bench.h"

/*
 * Jacobi iterations on a square grid, from `start` in host memory. After each `period` of them the
 * grid comes to the host, to snapshot[0] and [1] for whoever reads it, and is copied to `kept`.
 */
struct stencil {
    struct bench bench;
    size_t size, iterations, period;
    size_t bytes; /* of a grid */
    struct host_memory start, snapshot[2];
    void *kept;
    cl_kernel relax; /* its arguments 2 and 3 are set */
    void *state;     /* the writing's own */
};

extern const struct writing stencil_blocking, stencil_naive, stencil_by_hand;

void stencil_host_memory_new(struct stencil *stencil);
void stencil_host_memory_free(struct stencil *stencil);

/* The host's work on a grid that was read. */
void stencil_keep(struct stencil *stencil, const void *grid);

#endif
