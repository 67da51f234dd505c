/* SPDX-License-Identifier: MIT */
#ifndef BENCH_POWER_H
#define BENCH_POWER_H

#include "bench.h"

/*
 * R <- A * R from R = A, both in host memory `matrix`. The host gets each R and computes its norm;
 * in the end the last two are in result[0] and [1].
 */
struct power {
    struct bench bench;
    size_t size, iterations;
    size_t bytes; /* of a matrix */
    struct host_memory matrix, result[2];
    double *norm;       /* [iterations] */
    cl_kernel multiply; /* its argument 3 is set */
    void *state;        /* the writing's own */
};

extern const struct writing power_blocking, power_naive, power_by_hand;

void power_host_memory_new(struct power *power);
void power_host_memory_free(struct power *power);

/* The host's work on the result of an iteration, which is in `product`. */
void power_norm(struct power *power, size_t iteration, const void *product);

#endif
