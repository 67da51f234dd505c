/* SPDX-License-Identifier: MIT */
#include "blocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WAVES 1.0         /* wave lengths across a block */
#define AMPLITUDE 0.2     /* of the density wave */
#define TOLERANCE 0.02    /* of the density, where the scheme's own error is below 0.01 */
#define COURANT_BLOCK 0.2 /* time step / cell size for the velocity 1 and a signal below 2.5 */

struct block {
    size_t side; /* of the padded patch */
    double phase;
    struct cell *initial, *u;
    cl_mem buffer, other, border;
    void *mapped;
};

struct blocks {
    const struct solver *solver;
    const struct pass *pass;
    unsigned passes;
    unsigned long steps;
    size_t count;
    struct block *block;
    size_t first; /* of the pass that is running */
};

unsigned passes_parse(const char *text, struct pass pass[MAX_PASSES]) {
    for (unsigned count = 0; count < MAX_PASSES;) {
        char *end;
        pass[count].count = strtoul(text, &end, 10);
        if (end == text || *end != 'x' || pass[count].count == 0)
            return 0;
        text = end + 1;
        pass[count].bytes = strtoul(text, &end, 10);
        if (end == text || pass[count].bytes == 0)
            return 0;
        count++;
        if (*end == '\0')
            return count;
        if (*end != ',')
            return 0;
        text = end + 1;
    }
    return 0;
}

static size_t side_of(size_t bytes) {
    const size_t side = (size_t)sqrt((double)bytes / sizeof(struct cell)), least = 4 * GHOSTS;
    return side < least ? least : side;
}

/* A density wave carried by a uniform flow: an exact solution, x in cells. */
static double exact_density(const struct block *block, double x) {
    return 1 + AMPLITUDE * sin(2 * M_PI * (WAVES * x / (double)block->side + block->phase));
}

static void block_create(struct block *block, size_t bytes, size_t index) {
    *block = (struct block){.side = side_of(bytes), .phase = fmod(0.618 * (double)index, 1)};
    const size_t cells = block->side * block->side;
    block->initial = allocate(sizeof(struct cell) * cells);
    block->u = allocate_pages(sizeof(struct cell) * cells);
    for (size_t i = 0; i < block->side; i++) {
        const double density = exact_density(block, (double)i);
        for (size_t j = 0; j < block->side; j++)
            block->initial[j * block->side + i] =
                (struct cell){{density, density, 0, 1 / (GAMMA - 1) + 0.5 * density}};
    }
}

static cl_mem device_buffer(const struct lane *lane, size_t bytes) {
    cl_int status;
    cl_mem buffer = clCreateBuffer(lane->context, CL_MEM_READ_WRITE, bytes, NULL, &status);
    cl_check(status, "clCreateBuffer");
    return buffer;
}

static void enqueue(void *user, struct lane *lane, size_t index, cl_event *done) {
    struct blocks *blocks = user;
    struct block *block = &blocks->block[blocks->first + index];
    cl_kernel kernel = blocks->solver->kernel[lane->index].advance;
    const size_t bytes = sizeof(struct cell) * block->side * block->side;
    const size_t global[2] = {block->side, block->side};
    const cl_int n = (cl_int)block->side - 2 * GHOSTS;
    const cl_double ratio = COURANT_BLOCK;
    cl_event previous = NULL;
    cl_int status;

    block->buffer = clCreateBuffer(lane->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes,
                                   block->u, &status);
    cl_check(status, "clCreateBuffer");
    block->other = device_buffer(lane, bytes);
    block->border = device_buffer(lane, sizeof(struct cell) * SIDES * (size_t)n);
    kernel_argument(kernel, 2, sizeof(cl_mem), &block->border);
    kernel_argument(kernel, 3, sizeof(n), &n);
    kernel_argument(kernel, 4, sizeof(ratio), &ratio);
    for (unsigned long step = 0; step < blocks->steps; step++) {
        cl_event advanced;
        kernel_argument(kernel, 0, sizeof(cl_mem), step % 2 ? &block->other : &block->buffer);
        kernel_argument(kernel, 1, sizeof(cl_mem), step % 2 ? &block->buffer : &block->other);
        cl_check(clEnqueueNDRangeKernel(lane->queue, kernel, 2, NULL, global, NULL,
                                        previous ? 1 : 0, previous ? &previous : NULL, &advanced),
                 "clEnqueueNDRangeKernel");
        if (previous)
            cl_check(clReleaseEvent(previous), "clReleaseEvent");
        previous = advanced;
    }
    block->mapped = clEnqueueMapBuffer(lane->queue, block->buffer, CL_FALSE, CL_MAP_READ, 0, bytes,
                                       1, &previous, done, &status);
    cl_check(status, "clEnqueueMapBuffer");
    cl_check(clReleaseEvent(previous), "clReleaseEvent");
}

static void finish(void *user, struct lane *lane, size_t index) {
    struct blocks *blocks = user;
    struct block *block = &blocks->block[blocks->first + index];
    cl_check(clEnqueueUnmapMemObject(lane->queue, block->buffer, block->mapped, 0, NULL, NULL),
             "clEnqueueUnmapMemObject");
    cl_check(clReleaseMemObject(block->buffer), "clReleaseMemObject");
    cl_check(clReleaseMemObject(block->other), "clReleaseMemObject");
    cl_check(clReleaseMemObject(block->border), "clReleaseMemObject");
}

static double once(void *user) {
    struct blocks *blocks = user;
    const struct work work = {.user = user, .enqueue = enqueue, .finish = finish};
    for (size_t i = 0; i < blocks->count; i++) {
        struct block *block = &blocks->block[i];
        memcpy(block->u, block->initial, sizeof(struct cell) * block->side * block->side);
    }
    blocks->first = 0;
    const double start = now();
    for (unsigned i = 0; i < blocks->passes; i++) {
        distribute(blocks->solver->options, blocks->solver->lanes, blocks->pass[i].count, &work);
        blocks->first += blocks->pass[i].count;
    }
    return now() - start;
}

/* The worst error of density where the fixed ghost cells have had no influence; NaN if none. */
static double block_error(const struct block *block, unsigned long steps) {
    const size_t margin = GHOSTS * (steps + 1);
    double worst = NAN;
    for (size_t j = margin; j + margin < block->side; j++)
        for (size_t i = margin; i + margin < block->side; i++) {
            const double moved = (double)i - COURANT_BLOCK * (double)steps;
            const double error =
                fabs(block->u[j * block->side + i].q[0] - exact_density(block, moved));
            if (!(error <= worst))
                worst = error;
        }
    return worst;
}

/* Wrong, too, is a block that still is what it was. */
static bool block_right(const struct block *block, unsigned long steps, double *error) {
    const size_t bytes = sizeof(struct cell) * block->side * block->side;
    *error = block_error(block, steps);
    return memcmp(block->u, block->initial, bytes) != 0 && !(*error > TOLERANCE);
}

bool blocks_run(const struct solver *solver, const struct pass *pass, unsigned passes,
                unsigned long steps) {
    struct blocks blocks = {.solver = solver, .pass = pass, .passes = passes, .steps = steps};
    char text[256] = "";
    double bytes = 0, work = 0, worst = 0;
    for (unsigned i = 0; i < passes; i++) {
        const size_t length = strlen(text);
        snprintf(text + length, sizeof(text) - length, "%s%zux%zu", i > 0 ? "," : "", pass[i].count,
                 pass[i].bytes);
        blocks.count += pass[i].count;
    }
    blocks.block = allocate(sizeof(*blocks.block) * blocks.count);
    for (size_t i = 0, k = 0; i < passes; i++)
        for (size_t in_pass = 0; in_pass < pass[i].count; in_pass++, k++) {
            block_create(&blocks.block[k], pass[i].bytes, k);
            bytes += 2.0 * sizeof(struct cell) * pow((double)blocks.block[k].side, 2);
            work++;
        }

    struct measure measured;
    measure(solver->options, solver->lanes, once, &blocks, &measured);
    size_t wrong = 0, checked = 0;
    for (size_t i = 0; i < blocks.count; i++) {
        double error;
        wrong += !block_right(&blocks.block[i], steps, &error);
        checked += !isnan(error);
        worst = fmax(worst, error);
    }
    progress(solver->options, "%.3f blocks/s; %zu of %zu blocks wrong\n", work / measured.median,
             wrong, blocks.count);

    struct report report;
    report_begin(&report, "amr-blocks", solver->lanes);
    report_text(&report, "passes", text);
    report_count(&report, "steps", steps);
    report_measure(&report, &measured, work, "block", bytes, solver->lanes);
    report_count(&report, "blocks_checked", checked);
    report_real(&report, "density_error", worst);
    report_bool(&report, "right", wrong == 0);
    report_end(&report, solver->options);

    measure_free(&measured);
    for (size_t i = 0; i < blocks.count; i++) {
        free(blocks.block[i].initial);
        free(blocks.block[i].u);
    }
    free(blocks.block);
    return wrong == 0;
}
