/* SPDX-License-Identifier: MIT */
#ifndef AMR_SOLVER_H
#define AMR_SOLVER_H

#include "distribute.h"
#include "tree.h"

#define GAMMA 1.4

struct kernels {
    cl_kernel advance, inspect;
};

struct solver {
    const struct common_options *options;
    struct lanes *lanes;
    struct kernels kernel[MAX_LANES];
    unsigned n;                 /* cells along a patch's side */
    unsigned coarsest, deepest; /* levels */
    double end_time;
    double refine_above, coarsen_below; /* steepest relative change of density between cells */
    unsigned long regrid_interval;      /* time steps */
};

/* What one run did. */
struct solution {
    struct tree tree;
    unsigned long steps;
    double patch_steps;        /* tasks */
    double mass[2], energy[2]; /* at the start and at the end */
    double seconds;            /* of the main loop */
};

/* Builds the kernels for all lanes; exits where a device has no double precision. */
void solver_open(struct solver *solver, struct lanes *lanes, const struct common_options *options);
void solver_close(struct solver *solver);

/*
 * Toro's cylindrical explosion in the unit square: a disk of high pressure and density bursts.
 * Refines where the kernel "inspect" finds a steep change of density. To be freed with
 * solution_free.
 */
void solver_run(const struct solver *solver, struct solution *solution);
void solution_free(struct solution *solution);

/* The largest difference between a cell and its mirror images, relative to the density. */
double solution_asymmetry(const struct solution *solution);

/* The mean difference in density, on the grid of the finest level of `reference`. */
double solution_error(const struct solution *solution, const struct solution *reference);

#endif
