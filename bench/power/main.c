/* SPDX-License-Identifier: MIT */
/* The power of a matrix of Lara-Mongil et al., in three writings: what they share, the check. */
#include "power.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* Multiplications that the check may take. */
#define CHECKED_WORK ((size_t)1 << 26)

static const char source[] =
#include "power_cl.inc"
    ;

void power_host_memory_new(struct power *p) {
    p->matrix = host_memory_new(&p->bench, p->bytes);
    for (int i = 0; i < 2; i++)
        p->result[i] = host_memory_new(&p->bench, p->bytes);
}

void power_host_memory_free(struct power *p) {
    host_memory_free(&p->bench, &p->matrix);
    for (int i = 0; i < 2; i++)
        host_memory_free(&p->bench, &p->result[i]);
}

/* Frobenius: the root of the sum of all squares. */
static double norm_of(const struct power *p, const float *element) {
    double sum = 0;
    for (size_t k = 0; k < p->size * p->size; k++)
        sum += (double)element[k] * (double)element[k];
    return sqrt(sum);
}

void power_norm(struct power *p, size_t iteration, const void *product) {
    p->norm[iteration] = norm_of(p, product);
}

/* Numbers around zero, so large that powers neither vanish nor overflow. */
static void draw_matrix(const struct power *p) {
    float *a = p->matrix.pointer;
    const double scale = sqrt(3.0 / (double)p->size);
    uint64_t state = 1;
    for (size_t k = 0; k < p->size * p->size; k++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        a[k] = (float)(scale * ((double)(state >> 40) / (1 << 23) - 1.0));
    }
}

/*
 * Some elements of the last product, from the one before it, which the host has too, and both
 * norms. A sum of n products is off by at most n units of the last place of their magnitudes.
 */
static bool is_right(const struct power *p) {
    const size_t n = p->size, last = p->iterations - 1, step = n * n * n / CHECKED_WORK + 1;
    const float *a = p->matrix.pointer;
    const float *before = last == 0 ? a : p->result[(last + 1) % 2].pointer;
    const float *after = p->result[last % 2].pointer;
    for (size_t k = 0; k < n * n; k += step) {
        double sum = 0, magnitude = 0;
        for (size_t i = 0; i < n; i++) {
            const double product = (double)a[k / n * n + i] * (double)before[i * n + k % n];
            sum += product;
            magnitude += fabs(product);
        }
        if (!(fabs(after[k] - sum) <= (double)n * FLT_EPSILON * magnitude + FLT_MIN))
            return false;
    }
    return p->norm[last] == norm_of(p, after) &&
           (last == 0 || p->norm[last - 1] == norm_of(p, before));
}

int main(int argc, char **argv) {
    struct power p = {.state = NULL};
    unsigned long size = 256, iterations = 10;
    const struct option_entry own[] = {
        {"size", OPTION_COUNT, &size, "N", "rows and columns of the matrix"},
        {"iterations", OPTION_COUNT, &iterations, "N", "products"},
    };
    const struct writing *const writings[] = {&power_naive, &power_blocking, &power_by_hand};
    bench_open(&p.bench, argc, argv, "The power of a matrix, with the norm of each product.", own,
               sizeof(own) / sizeof(own[0]), writings, 3, source);
    if (!size || !iterations || size > INT32_MAX / size)
        die("--size must be from 1 to 46340, and --iterations at least 1");
    p.size = size;
    p.iterations = iterations;
    p.bytes = size * size * sizeof(float);
    p.norm = allocate_zeroed(iterations, sizeof(*p.norm));
    p.multiply = bench_kernel(&p.bench, "multiply");
    const cl_int width = (cl_int)size;
    kernel_argument(p.multiply, 3, sizeof(width), &width);

    struct measure measured;
    p.bench.writing->open(&p);
    draw_matrix(&p);
    bench_measure(&p.bench, &p, &measured);
    if (p.bench.writing->fetch)
        p.bench.writing->fetch(&p);
    const bool right = is_right(&p);
    const cl_ulong checksum =
        bench_checksum(bench_checksum(0, p.norm, iterations * sizeof(*p.norm)),
                       p.result[(iterations - 1) % 2].pointer, p.bytes);
    p.bench.writing->close(&p);

    const double n = (double)size, count = (double)iterations;
    struct report report;
    bench_report_begin(&report, &p.bench, "power");
    report_count(&report, "size", size);
    report_count(&report, "iterations", iterations);
    report_measure(&report, &measured, 2 * n * n * n * count, "flop", (1 + count) * (double)p.bytes,
                   &p.bench.lanes);
    report_count(&report, "checksum", checksum);
    report_bool(&report, "right", right);
    report_end(&report, &p.bench.options);

    measure_free(&measured);
    cl_check(clReleaseKernel(p.multiply), "clReleaseKernel");
    free(p.norm);
    bench_close(&p.bench);
    return right ? 0 : 1;
}
