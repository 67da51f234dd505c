/* SPDX-License-Identifier: MIT */
/* The stencil of Lara-Mongil et al., in three writings: what they share, and the check. */
#include "stencil.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Steps of the check, on one thread of the host. */
#define CHECKED_WORK ((size_t)1 << 27)
#define SOURCE 0.001f

static const char source[] =
#include "stencil_cl.inc"
    ;

void stencil_host_memory_new(struct stencil *s) {
    s->start = host_memory_new(&s->bench, s->bytes);
    for (int i = 0; i < 2; i++)
        s->snapshot[i] = host_memory_new(&s->bench, s->bytes);
}

void stencil_host_memory_free(struct stencil *s) {
    host_memory_free(&s->bench, &s->start);
    for (int i = 0; i < 2; i++)
        host_memory_free(&s->bench, &s->snapshot[i]);
}

void stencil_keep(struct stencil *s, const void *grid) { memcpy(s->kept, grid, s->bytes); }

/* One hot edge, and something to follow inside. */
static void draw_start(const struct stencil *s) {
    float *start = s->start.pointer;
    for (size_t y = 0; y < s->size; y++)
        for (size_t x = 0; x < s->size; x++)
            start[y * s->size + x] = y == 0 ? 1.0f : (float)((x * 31 + y * 17) % 64) / 64.0f;
}

/* The same steps on the host; false when one element differs by more than rounding allows. */
static bool is_right(const struct stencil *s) {
    const size_t n = s->size, steps = s->iterations / s->period * s->period;
    float *grid[2];
    for (int i = 0; i < 2; i++) {
        grid[i] = allocate(s->bytes);
        memcpy(grid[i], s->start.pointer, s->bytes);
    }
    for (size_t i = 0; i < steps; i++) {
        const float *before = grid[i % 2];
        float *after = grid[(i + 1) % 2];
        for (size_t y = 1; y + 1 < n; y++)
            for (size_t k = y * n + 1; k + 1 < (y + 1) * n; k++)
                after[k] = 0.25f *
                           (before[k - 1] + before[k + 1] + before[k - n] + before[k + n] + SOURCE);
    }
    const float *expected = grid[steps % 2], *got = s->kept;
    bool right = true;
    for (size_t k = 0; k < n * n; k++)
        right = right && fabsf(got[k] - expected[k]) <= 1e-5f;
    free(grid[0]);
    free(grid[1]);
    return right;
}

int main(int argc, char **argv) {
    struct stencil s = {.state = NULL};
    unsigned long size = 512, iterations = 100, period = 10;
    const struct option_entry own[] = {
        {"size", OPTION_COUNT, &size, "N", "rows and columns of the grid"},
        {"iterations", OPTION_COUNT, &iterations, "N", "Jacobi steps"},
        {"period", OPTION_COUNT, &period, "N", "steps between two snapshots"},
    };
    const struct writing *const writings[] = {&stencil_naive, &stencil_blocking, &stencil_by_hand};
    bench_open(&s.bench, argc, argv, "Jacobi iterations with snapshots that the host copies.", own,
               sizeof(own) / sizeof(own[0]), writings, 3, source);
    if (!size || !period || iterations < period || size > INT32_MAX / size)
        die("--size must be from 1 to 46340, and --iterations at least --period");
    s.size = size;
    s.iterations = iterations;
    s.period = period;
    s.bytes = size * size * sizeof(float);
    s.kept = allocate_pages(s.bytes);
    memset(s.kept, 0, s.bytes);
    s.relax = bench_kernel(&s.bench, "relax");
    const cl_float term = SOURCE;
    const cl_int width = (cl_int)size;
    kernel_argument(s.relax, 2, sizeof(term), &term);
    kernel_argument(s.relax, 3, sizeof(width), &width);

    struct measure measured;
    s.bench.writing->open(&s);
    draw_start(&s);
    bench_measure(&s.bench, &s, &measured);
    const bool checked = size * size <= CHECKED_WORK / iterations;
    const bool right = !checked || is_right(&s);
    s.bench.writing->close(&s);

    const double snapshots = (double)(iterations / period);
    struct report report;
    bench_report_begin(&report, &s.bench, "stencil");
    report_count(&report, "size", size);
    report_count(&report, "iterations", iterations);
    report_count(&report, "period", period);
    report_measure(&report, &measured, (double)iterations, "iterations",
                   (1 + snapshots) * (double)s.bytes, &s.bench.lanes);
    report_count(&report, "checksum", bench_checksum(0, s.kept, s.bytes));
    report_bool(&report, "checked", checked);
    report_bool(&report, "right", right);
    report_end(&report, &s.bench.options);

    measure_free(&measured);
    cl_check(clReleaseKernel(s.relax), "clReleaseKernel");
    free(s.kept);
    bench_close(&s.bench);
    return right ? 0 : 1;
}
