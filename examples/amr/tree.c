/* SPDX-License-Identifier: MIT */
#include "tree.h"
#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t cells_of(const struct tree *tree) {
    return (size_t)(tree->n + 2 * GHOSTS) * (tree->n + 2 * GHOSTS);
}

static struct patch **place(const struct tree *tree, unsigned level, unsigned x, unsigned y) {
    return &tree->grid[level][((size_t)y << level) + x];
}

static struct patch *patch_create(struct tree *tree, unsigned level, unsigned x, unsigned y) {
    struct patch *patch = allocate_zeroed(1, sizeof(*patch));
    *patch = (struct patch){.level = level, .x = x, .y = y};
    patch->u = allocate_pages(sizeof(struct cell) * cells_of(tree));
    patch->next = allocate_pages(sizeof(struct cell) * cells_of(tree));
    patch->border = allocate_pages(sizeof(struct cell) * SIDES * tree->n);
    patch->found = allocate_pages(sizeof(double) * 2 * tree->n);
    *place(tree, level, x, y) = patch;
    return patch;
}

static void patch_destroy(struct tree *tree, struct patch *patch) {
    *place(tree, patch->level, patch->x, patch->y) = NULL;
    free(patch->u);
    free(patch->next);
    free(patch->border);
    free(patch->found);
    free(patch);
}

void tree_create(struct tree *tree, unsigned n, unsigned max_level) {
    *tree = (struct tree){.n = n, .max_level = max_level};
    for (unsigned level = 0; level <= max_level; level++)
        tree->grid[level] = allocate_zeroed((size_t)1 << 2 * level, sizeof(struct patch *));
    patch_create(tree, 0, 0, 0);
    tree_list(tree);
}

void tree_destroy(struct tree *tree) {
    for (size_t i = 0; i < tree->leaves; i++)
        patch_destroy(tree, tree->leaf[i]);
    for (unsigned level = 0; level <= tree->max_level; level++)
        free(tree->grid[level]);
    free(tree->leaf);
}

double tree_cell_size(const struct tree *tree, unsigned level) {
    return 1.0 / (double)((size_t)tree->n << level);
}

struct patch *tree_leaf(const struct tree *tree, unsigned level, long x, long y) {
    const long side = 1L << level;
    if (level > tree->max_level || x < 0 || y < 0 || x >= side || y >= side)
        return NULL;
    return *place(tree, level, (unsigned)x, (unsigned)y);
}

static double minmod(double a, double b) {
    if (a * b <= 0)
        return 0;
    return fabs(a) < fabs(b) ? a : b;
}

/*
 * The quarter of cell (i, j) towards (right, above), by limited slopes. Slopes that would need
 * another patch are left flat: its cells may be of any level.
 */
static struct cell quarter(const struct tree *tree, const struct patch *patch, long i, long j,
                           bool right, bool above) {
    const long n = tree->n;
    const struct cell *c = &patch->u[cell_index(tree, i, j)];
    struct cell result;
    for (unsigned k = 0; k < 4; k++) {
        double dx = 0, dy = 0;
        if (i > 0 && i < n - 1)
            dx = minmod(c->q[k] - c[-1].q[k], c[1].q[k] - c->q[k]);
        if (j > 0 && j < n - 1) {
            const long row = n + 2 * GHOSTS;
            dy = minmod(c->q[k] - c[-row].q[k], c[row].q[k] - c->q[k]);
        }
        result.q[k] = c->q[k] + ((right ? 0.25 : -0.25) * dx + (above ? 0.25 : -0.25) * dy);
    }
    return result;
}

/* Adding in pairs across the diagonal keeps the mean symmetric to the last bit. */
static struct cell mean_of_four(const struct cell part[2][2]) {
    struct cell mean;
    for (unsigned k = 0; k < 4; k++)
        mean.q[k] =
            0.25 * ((part[0][0].q[k] + part[1][1].q[k]) + (part[0][1].q[k] + part[1][0].q[k]));
    return mean;
}

static struct cell sample_inside(const struct tree *tree, unsigned level, long i, long j) {
    const long n = tree->n;
    struct patch *patch = tree_leaf(tree, level, i / n, j / n);
    if (patch)
        return patch->u[cell_index(tree, i % n, j % n)];
    for (unsigned up = 1; up <= level; up++) {
        const long ci = i >> up, cj = j >> up;
        patch = tree_leaf(tree, level - up, ci / n, cj / n);
        if (patch) {
            const long half = 1L << (up - 1);
            return quarter(tree, patch, ci % n, cj % n, (i & half) != 0, (j & half) != 0);
        }
    }
    struct cell part[2][2];
    for (long b = 0; b < 2; b++)
        for (long a = 0; a < 2; a++)
            part[b][a] = sample_inside(tree, level + 1, 2 * i + a, 2 * j + b);
    return mean_of_four(part);
}

struct cell tree_sample(const struct tree *tree, unsigned level, long i, long j) {
    const long side = (long)tree->n << level;
    const bool mirror_x = i < 0 || i >= side, mirror_y = j < 0 || j >= side;
    if (mirror_x)
        i = i < 0 ? -1 - i : 2 * side - 1 - i;
    if (mirror_y)
        j = j < 0 ? -1 - j : 2 * side - 1 - j;
    struct cell cell = sample_inside(tree, level, i, j);
    if (mirror_x)
        cell.q[1] = -cell.q[1];
    if (mirror_y)
        cell.q[2] = -cell.q[2];
    return cell;
}

void tree_fill_ghosts(const struct tree *tree, struct patch *patch) {
    const long n = tree->n, left = (long)patch->x * n, bottom = (long)patch->y * n;
    for (long j = -GHOSTS; j < n + GHOSTS; j++)
        for (long i = -GHOSTS; i < n + GHOSTS; i++) {
            if (j >= 0 && j < n && i == 0)
                i = n; /* over the cells inside */
            patch->u[cell_index(tree, i, j)] =
                tree_sample(tree, patch->level, left + i, bottom + j);
        }
}

void tree_correct_fluxes(const struct tree *tree, struct patch *patch, double time_step) {
    static const struct {
        int x, y;
        enum side opposite;
    } toward[SIDES] = {{-1, 0, RIGHT}, {1, 0, LEFT}, {0, -1, TOP}, {0, 1, BOTTOM}};
    const unsigned n = tree->n;
    const double ratio = time_step / tree_cell_size(tree, patch->level);

    for (unsigned side = 0; side < SIDES; side++) {
        const bool across_x = side == LEFT || side == RIGHT;
        const long x = (long)patch->x + toward[side].x, y = (long)patch->y + toward[side].y;
        const double sign = side == LEFT || side == BOTTOM ? 1 : -1;
        for (unsigned half = 0; half < 2; half++) {
            /* The two finer patches that touch this side, if there are any. */
            const long fx = 2 * x + (across_x ? side == LEFT : (long)half);
            const long fy = 2 * y + (across_x ? (long)half : side == BOTTOM);
            const struct patch *fine = tree_leaf(tree, patch->level + 1, fx, fy);
            if (!fine)
                continue;
            const struct cell *entered = fine->border + toward[side].opposite * n;
            for (unsigned f = 0; f + 1 < n; f += 2) {
                const unsigned at = half * n / 2 + f / 2;
                const struct cell *gone = &patch->border[side * n + at];
                const unsigned edge = side == RIGHT || side == TOP ? n - 1 : 0;
                struct cell *cell =
                    &patch
                         ->next[across_x ? cell_index(tree, edge, at) : cell_index(tree, at, edge)];
                for (unsigned k = 0; k < 4; k++) {
                    const double mean = 0.5 * (entered[f].q[k] + entered[f + 1].q[k]);
                    cell->q[k] += sign * ratio * (mean - gone->q[k]);
                }
            }
        }
    }
}

/* Refines the leaf that covers this place of a level, if one that is coarser does. */
static void refine_coarser(struct tree *tree, unsigned level, long x, long y) {
    for (unsigned up = 1; up <= level; up++) {
        struct patch *patch = tree_leaf(tree, level - up, x >> up, y >> up);
        if (patch) {
            tree_refine(tree, patch);
            return;
        }
    }
}

void tree_refine(struct tree *tree, struct patch *patch) {
    const long n = tree->n, side = 1L << patch->level;
    for (long dy = -1; dy <= 1; dy++)
        for (long dx = -1; dx <= 1; dx++) {
            const long x = (long)patch->x + dx, y = (long)patch->y + dy;
            if (x >= 0 && y >= 0 && x < side && y < side)
                refine_coarser(tree, patch->level, x, y);
        }
    for (unsigned b = 0; b < 2; b++)
        for (unsigned a = 0; a < 2; a++) {
            struct patch *child =
                patch_create(tree, patch->level + 1, 2 * patch->x + a, 2 * patch->y + b);
            child->steepest = patch->steepest;
            child->fastest = patch->fastest;
            for (long j = 0; j < n; j++)
                for (long i = 0; i < n; i++)
                    child->u[cell_index(tree, i, j)] = quarter(
                        tree, patch, (a * n + i) / 2, (b * n + j) / 2, i % 2 != 0, j % 2 != 0);
        }
    patch_destroy(tree, patch);
}

bool tree_coarsen(struct tree *tree, unsigned level, unsigned x, unsigned y) {
    const long n = tree->n;
    for (long dy = 0; dy < 2; dy++)
        for (long dx = 0; dx < 2; dx++)
            if (!tree_leaf(tree, level + 1, 2L * x + dx, 2L * y + dy))
                return false;
    /* Around the four leaves nothing may be finer than they are. */
    if (level + 2 <= tree->max_level)
        for (long dy = -1; dy <= 4; dy++)
            for (long dx = -1; dx <= 4; dx++)
                if (tree_leaf(tree, level + 2, 4L * x + dx, 4L * y + dy))
                    return false;

    struct patch *parent = patch_create(tree, level, x, y);
    for (long j = 0; j < n; j++)
        for (long i = 0; i < n; i++) {
            struct cell part[2][2];
            for (long b = 0; b < 2; b++)
                for (long a = 0; a < 2; a++) {
                    const long fi = 2 * i + a, fj = 2 * j + b;
                    const struct patch *child =
                        tree_leaf(tree, level + 1, 2L * x + fi / n, 2L * y + fj / n);
                    part[b][a] = child->u[cell_index(tree, fi % n, fj % n)];
                }
            parent->u[cell_index(tree, i, j)] = mean_of_four(part);
        }
    for (long dy = 0; dy < 2; dy++)
        for (long dx = 0; dx < 2; dx++) {
            struct patch *child = tree_leaf(tree, level + 1, 2L * x + dx, 2L * y + dy);
            parent->steepest = fmax(parent->steepest, child->steepest);
            parent->fastest = fmax(parent->fastest, child->fastest);
            patch_destroy(tree, child);
        }
    return true;
}

static void list_below(struct tree *tree, unsigned level, unsigned x, unsigned y) {
    struct patch *patch = *place(tree, level, x, y);
    if (patch) {
        tree->leaf[tree->leaves++] = patch;
        return;
    }
    for (unsigned b = 0; b < 2; b++)
        for (unsigned a = 0; a < 2; a++)
            list_below(tree, level + 1, 2 * x + a, 2 * y + b);
}

void tree_list(struct tree *tree) {
    size_t most = 0;
    for (unsigned level = 0; level <= tree->max_level; level++)
        for (size_t i = 0; i < (size_t)1 << 2 * level; i++)
            most += tree->grid[level][i] != NULL;
    free(tree->leaf);
    tree->leaf = allocate(sizeof(*tree->leaf) * most);
    tree->leaves = 0;
    list_below(tree, 0, 0, 0);
}
