/* SPDX-License-Identifier: MIT */
#include "solver.h"
#include "measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define COURANT 0.4
#define DISK_RADIUS 0.2
#define SUBSAMPLES 8 /* along a cell's side, for the initial state */

static const char source[] =
#include "euler_cl.inc"
    ;

void solver_open(struct solver *solver, struct lanes *lanes, const struct common_options *options) {
    char build_options[64];
    *solver = (struct solver){.options = options, .lanes = lanes};
    if (!lanes_have_extension(lanes, "cl_khr_fp64"))
        die("a device has no double precision (cl_khr_fp64)");
    snprintf(build_options, sizeof(build_options), "-DGHOSTS=%d -DGAMMA=%.17g", GHOSTS, GAMMA);
    lanes_build(lanes, source, build_options);
    for (unsigned i = 0; i < lanes->count; i++) {
        solver->kernel[i].advance = lane_kernel(&lanes->lane[i], "advance");
        solver->kernel[i].inspect = lane_kernel(&lanes->lane[i], "inspect");
    }
}

void solver_close(struct solver *solver) {
    for (unsigned i = 0; i < solver->lanes->count; i++) {
        cl_check(clReleaseKernel(solver->kernel[i].advance), "clReleaseKernel");
        cl_check(clReleaseKernel(solver->kernel[i].inspect), "clReleaseKernel");
    }
}

/* The kernels' view of one patch, while it is on its way. */
struct task {
    cl_mem u, next, border, found;
    void *next_mapped, *border_mapped, *found_mapped;
};

/* One time step of all patches, or with inspect_only what is needed before the first. */
struct sweep {
    const struct solver *solver;
    struct tree *tree;
    struct task *task;
    double time_step;
    bool inspect_only;
};

static cl_mem host_buffer(const struct lane *lane, cl_mem_flags flags, size_t bytes, void *host) {
    cl_int status;
    cl_mem buffer =
        clCreateBuffer(lane->context, flags | CL_MEM_USE_HOST_PTR, bytes, host, &status);
    cl_check(status, "clCreateBuffer");
    return buffer;
}

static void *map_result(const struct lane *lane, cl_mem buffer, size_t bytes, cl_uint waits,
                        const cl_event *wait, cl_event *mapped) {
    cl_int status;
    void *pointer = clEnqueueMapBuffer(lane->queue, buffer, CL_FALSE, CL_MAP_READ, 0, bytes, waits,
                                       wait, mapped, &status);
    cl_check(status, "clEnqueueMapBuffer");
    return pointer;
}

static void enqueue(void *user, struct lane *lane, size_t index, cl_event *done) {
    struct sweep *sweep = user;
    struct patch *patch = sweep->tree->leaf[index];
    struct task *task = &sweep->task[index];
    const struct kernels *kernel = &sweep->solver->kernel[lane->index];
    const cl_int n = (cl_int)sweep->tree->n;
    const size_t rows = (size_t)n, side = rows + 2 * GHOSTS, whole[2] = {side, side};
    const size_t u_bytes = sizeof(struct cell) * side * side;
    const size_t border_bytes = sizeof(struct cell) * SIDES * rows;
    const size_t found_bytes = sizeof(double) * 2 * rows;
    cl_event advanced = NULL, inspected, mapped[2];
    *task = (struct task){0};

    task->u = host_buffer(lane, CL_MEM_READ_ONLY, u_bytes, patch->u);
    task->found = host_buffer(lane, CL_MEM_WRITE_ONLY, found_bytes, patch->found);
    if (!sweep->inspect_only) {
        const cl_double ratio = sweep->time_step / tree_cell_size(sweep->tree, patch->level);
        task->next = host_buffer(lane, CL_MEM_READ_WRITE, u_bytes, patch->next);
        task->border = host_buffer(lane, CL_MEM_WRITE_ONLY, border_bytes, patch->border);
        kernel_argument(kernel->advance, 0, sizeof(cl_mem), &task->u);
        kernel_argument(kernel->advance, 1, sizeof(cl_mem), &task->next);
        kernel_argument(kernel->advance, 2, sizeof(cl_mem), &task->border);
        kernel_argument(kernel->advance, 3, sizeof(n), &n);
        kernel_argument(kernel->advance, 4, sizeof(ratio), &ratio);
        cl_check(clEnqueueNDRangeKernel(lane->queue, kernel->advance, 2, NULL, whole, NULL, 0, NULL,
                                        &advanced),
                 "clEnqueueNDRangeKernel");
    }
    kernel_argument(kernel->inspect, 0, sizeof(cl_mem), advanced ? &task->next : &task->u);
    kernel_argument(kernel->inspect, 1, sizeof(cl_mem), &task->found);
    kernel_argument(kernel->inspect, 2, sizeof(n), &n);
    cl_check(clEnqueueNDRangeKernel(lane->queue, kernel->inspect, 1, NULL, &rows, NULL,
                                    advanced ? 1 : 0, advanced ? &advanced : NULL, &inspected),
             "clEnqueueNDRangeKernel");
    task->found_mapped =
        map_result(lane, task->found, found_bytes, 1, &inspected, advanced ? &mapped[0] : done);
    if (advanced) {
        task->border_mapped =
            map_result(lane, task->border, border_bytes, 1, &advanced, &mapped[1]);
        const cl_event before[3] = {inspected, mapped[0], mapped[1]};
        task->next_mapped = map_result(lane, task->next, u_bytes, 3, before, done);
        cl_check(clReleaseEvent(mapped[0]), "clReleaseEvent");
        cl_check(clReleaseEvent(mapped[1]), "clReleaseEvent");
        cl_check(clReleaseEvent(advanced), "clReleaseEvent");
    }
    cl_check(clReleaseEvent(inspected), "clReleaseEvent");
}

static void unmap_release(const struct lane *lane, cl_mem buffer, void *mapped) {
    if (!buffer)
        return;
    if (mapped)
        cl_check(clEnqueueUnmapMemObject(lane->queue, buffer, mapped, 0, NULL, NULL),
                 "clEnqueueUnmapMemObject");
    cl_check(clReleaseMemObject(buffer), "clReleaseMemObject");
}

static void finish(void *user, struct lane *lane, size_t index) {
    struct sweep *sweep = user;
    struct task *task = &sweep->task[index];
    unmap_release(lane, task->found, task->found_mapped);
    unmap_release(lane, task->border, task->border_mapped);
    unmap_release(lane, task->next, task->next_mapped);
    unmap_release(lane, task->u, NULL);
}

static double maximum(const double *value, size_t count) {
    double most = 0;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, value[i]);
    return most;
}

static void sweep_patches(const struct solver *solver, struct tree *tree, double time_step,
                          bool inspect_only) {
    struct sweep sweep = {.solver = solver,
                          .tree = tree,
                          .task = allocate(sizeof(struct task) * tree->leaves),
                          .time_step = time_step,
                          .inspect_only = inspect_only};
    const struct work work = {.user = &sweep, .enqueue = enqueue, .finish = finish};
    distribute(solver->options, solver->lanes, tree->leaves, &work);
    free(sweep.task);
    for (size_t i = 0; i < tree->leaves; i++) {
        struct patch *patch = tree->leaf[i];
        patch->steepest = maximum(patch->found, tree->n);
        patch->fastest = maximum(patch->found + tree->n, tree->n);
    }
}

/* The longest time step that is stable in every patch. */
static double stable_step(const struct tree *tree) {
    double step = INFINITY;
    for (size_t i = 0; i < tree->leaves; i++) {
        const struct patch *patch = tree->leaf[i];
        step = fmin(step, COURANT * tree_cell_size(tree, patch->level) / patch->fastest);
    }
    return step;
}

static void set_initial(const struct tree *tree, struct patch *patch) {
    const double size = tree_cell_size(tree, patch->level);
    const long n = tree->n;
    for (long j = 0; j < n; j++)
        for (long i = 0; i < n; i++) {
            unsigned inside = 0;
            for (unsigned s = 0; s < SUBSAMPLES * SUBSAMPLES; s++) {
                const double a = (s % SUBSAMPLES + 0.5) / SUBSAMPLES;
                const double b = (s / SUBSAMPLES + 0.5) / SUBSAMPLES;
                const double x = ((double)(patch->x * n + i) + a) * size - 0.5;
                const double y = ((double)(patch->y * n + j) + b) * size - 0.5;
                inside += x * x + y * y < DISK_RADIUS * DISK_RADIUS;
            }
            const double part = (double)inside / (SUBSAMPLES * SUBSAMPLES);
            const double density = part * 1.0 + (1 - part) * 0.125;
            const double pressure = part * 1.0 + (1 - part) * 0.1;
            patch->u[cell_index(tree, i, j)] =
                (struct cell){{density, 0, 0, pressure / (GAMMA - 1)}};
        }
}

/* Refines what the last sweep found steep; returns whether anything changed. */
static bool refine_steep(const struct solver *solver, struct tree *tree) {
    bool *steep = allocate(sizeof(bool) * tree->leaves);
    struct {
        unsigned level, x, y;
    } *at = allocate(sizeof(*at) * tree->leaves);
    bool changed = false;
    for (size_t i = 0; i < tree->leaves; i++) {
        const struct patch *patch = tree->leaf[i];
        steep[i] = patch->level < solver->coarsest ||
                   (patch->level < tree->max_level && patch->steepest > solver->refine_above);
        at[i].level = patch->level;
        at[i].x = patch->x;
        at[i].y = patch->y;
    }
    for (size_t i = 0; i < tree->leaves; i++) {
        /* Balancing may have split it meanwhile. */
        struct patch *patch = tree_leaf(tree, at[i].level, at[i].x, at[i].y);
        if (steep[i] && patch) {
            tree_refine(tree, patch);
            changed = true;
        }
    }
    free(steep);
    free(at);
    return changed;
}

/* Joins four leaves where the last sweep found all of them smooth. */
static void coarsen_smooth(const struct solver *solver, struct tree *tree) {
    for (unsigned level = tree->max_level; level-- > solver->coarsest;)
        for (unsigned y = 0; y < 1u << level; y++)
            for (unsigned x = 0; x < 1u << level; x++) {
                bool smooth = true;
                for (unsigned k = 0; k < 4 && smooth; k++) {
                    const struct patch *child =
                        tree_leaf(tree, level + 1, 2L * x + k % 2, 2L * y + k / 2);
                    smooth = child && child->steepest < solver->coarsen_below;
                }
                if (smooth)
                    tree_coarsen(tree, level, x, y);
            }
}

static void regrid(const struct solver *solver, struct tree *tree) {
    coarsen_smooth(solver, tree);
    tree_list(tree);
    refine_steep(solver, tree);
    tree_list(tree);
}

static void set_up(const struct solver *solver, struct tree *tree) {
    tree_create(tree, solver->n, solver->deepest);
    set_initial(tree, tree->leaf[0]);
    sweep_patches(solver, tree, 0, true);
    while (refine_steep(solver, tree)) {
        tree_list(tree);
        for (size_t i = 0; i < tree->leaves; i++)
            set_initial(tree, tree->leaf[i]);
        sweep_patches(solver, tree, 0, true);
    }
}

/* Kahan's summation: the sum of a million cells must not lose more than the solver does. */
static void totals(const struct tree *tree, double *mass, double *energy) {
    double sum[2] = {0, 0}, lost[2] = {0, 0};
    const long n = tree->n;
    for (size_t p = 0; p < tree->leaves; p++) {
        const double area = pow(tree_cell_size(tree, tree->leaf[p]->level), 2);
        for (long i = 0; i < n * n; i++) {
            const struct cell *cell = &tree->leaf[p]->u[cell_index(tree, i % n, i / n)];
            for (unsigned k = 0; k < 2; k++) {
                const double term = area * cell->q[k == 0 ? 0 : 3] - lost[k];
                const double next = sum[k] + term;
                lost[k] = (next - sum[k]) - term;
                sum[k] = next;
            }
        }
    }
    *mass = sum[0];
    *energy = sum[1];
}

void solver_run(const struct solver *solver, struct solution *solution) {
    struct tree *tree = &solution->tree;
    double time = 0;
    *solution = (struct solution){.steps = 0};
    const double start = now();
    set_up(solver, tree);
    totals(tree, &solution->mass[0], &solution->energy[0]);
    while (time < solver->end_time) {
        if (solution->steps > 0 && solution->steps % solver->regrid_interval == 0)
            regrid(solver, tree);
        double step = fmin(stable_step(tree), solver->end_time - time);
        for (size_t i = 0; i < tree->leaves; i++)
            tree_fill_ghosts(tree, tree->leaf[i]);
        sweep_patches(solver, tree, step, false);
        for (size_t i = 0; i < tree->leaves; i++)
            tree_correct_fluxes(tree, tree->leaf[i], step);
        for (size_t i = 0; i < tree->leaves; i++) {
            struct patch *patch = tree->leaf[i];
            struct cell *u = patch->u;
            patch->u = patch->next;
            patch->next = u;
        }
        time += step;
        solution->steps++;
        solution->patch_steps += (double)tree->leaves;
    }
    solution->seconds = now() - start;
    totals(tree, &solution->mass[1], &solution->energy[1]);
}

void solution_free(struct solution *solution) { tree_destroy(&solution->tree); }

double solution_asymmetry(const struct solution *solution) {
    const struct tree *tree = &solution->tree;
    const long side = (long)tree->n << tree->max_level;
    double worst = 0;
    for (long j = 0; j < side / 2; j++)
        for (long i = 0; i < side / 2; i++) {
            const double here = tree_sample(tree, tree->max_level, i, j).q[0];
            const double mirrored[3] = {
                tree_sample(tree, tree->max_level, side - 1 - i, j).q[0],
                tree_sample(tree, tree->max_level, i, side - 1 - j).q[0],
                tree_sample(tree, tree->max_level, j, i).q[0],
            };
            for (unsigned k = 0; k < 3; k++)
                if (!(fabs(mirrored[k] - here) <= worst * here))
                    worst = fabs(mirrored[k] - here) / here;
        }
    return worst;
}

double solution_error(const struct solution *solution, const struct solution *reference) {
    const unsigned level = reference->tree.max_level;
    const long side = (long)reference->tree.n << level;
    double sum = 0;
    for (long j = 0; j < side; j++)
        for (long i = 0; i < side; i++)
            sum += fabs(tree_sample(&solution->tree, level, i, j).q[0] -
                        tree_sample(&reference->tree, level, i, j).q[0]);
    return sum / (double)(side * side);
}
