/* SPDX-License-Identifier: MIT */
#ifndef AMR_TREE_H
#define AMR_TREE_H

#include <stdbool.h>
#include <stddef.h>

#define GHOSTS 2 /* rings of ghost cells: what one step of the scheme looks at */
#define MAX_LEVEL 10
#define SIDES 4

enum side { LEFT, RIGHT, BOTTOM, TOP };

/* Density, momentum in x and y, energy. As a double4 of OpenCL C. */
struct cell {
    double q[4];
};

/*
 * A leaf of the quadtree: n by n cells of the unit square's part (x, y) of 2^level by 2^level,
 * with ghost cells around. The arrays begin on pages, for CL_MEM_USE_HOST_PTR.
 */
struct patch {
    unsigned level, x, y;
    struct cell *u, *next;    /* before and after a time step */
    struct cell *border;      /* fluxes through the four sides, n each */
    double *found;            /* by rows: steepest density changes, then fastest signals */
    double steepest, fastest; /* over all rows; inherited by what is refined or coarsened */
};

struct tree {
    unsigned n;                         /* cells along a patch's side */
    unsigned max_level;                 /* no patch is finer */
    struct patch **grid[MAX_LEVEL + 1]; /* by level, then y * 2^level + x; NULL: no leaf there */
    struct patch **leaf;                /* all leaves, depth first */
    size_t leaves;
};

/* The one patch of level 0, with its cells undefined. */
void tree_create(struct tree *tree, unsigned n, unsigned max_level);
void tree_destroy(struct tree *tree);

/* The leaf at this place, or NULL when it is refined, inside a coarser leaf or outside. */
struct patch *tree_leaf(const struct tree *tree, unsigned level, long x, long y);

/*
 * Splits a leaf in four, and before that whatever neighbours would otherwise be more than one
 * level coarser. The new cells are interpolated conservatively.
 */
void tree_refine(struct tree *tree, struct patch *patch);

/* Joins the four leaves below this place if no neighbour would be two levels finer. */
bool tree_coarsen(struct tree *tree, unsigned level, unsigned x, unsigned y);

/* Makes tree->leaf again after refining and coarsening. */
void tree_list(struct tree *tree);

/*
 * Fills the ghost cells of a patch from its neighbours, finer ones averaged, coarser ones
 * interpolated, walls mirrored. Reads only cells inside patches, so the order does not matter.
 */
void tree_fill_ghosts(const struct tree *tree, struct patch *patch);

/*
 * Where a finer patch lies at a side, the flux that left this patch is replaced by the mean of
 * those that entered the finer one, in patch->next: nothing is lost between levels.
 */
void tree_correct_fluxes(const struct tree *tree, struct patch *patch, double time_step);

/* The state at a cell (i, j) of the grid that covers everything at one level. */
struct cell tree_sample(const struct tree *tree, unsigned level, long i, long j);

/* The size of the cells of a level. */
double tree_cell_size(const struct tree *tree, unsigned level);

/* Where cell (i, j) of a patch lies in its arrays; ghost cells are at -1, n and so on. */
static inline size_t cell_index(const struct tree *tree, long i, long j) {
    return (size_t)((j + GHOSTS) * (long)(tree->n + 2 * GHOSTS) + i + GHOSTS);
}

#endif
