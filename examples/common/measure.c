/* SPDX-License-Identifier: MIT */
#include "measure.h"
#include "task_counts.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Linear interpolation between the two nearest ranks. */
static double quantile(const double *sorted, size_t count, double fraction) {
    const double rank = fraction * (double)(count - 1);
    const size_t below = (size_t)rank;
    if (below + 1 >= count)
        return sorted[count - 1];
    return sorted[below] + (rank - (double)below) * (sorted[below + 1] - sorted[below]);
}

void measure(const struct common_options *options, struct lanes *lanes, double (*once)(void *user),
             void *user, struct measure *measure) {
    *measure = (struct measure){.cold = -1, .runs = options->repeat};
    measure->seconds = allocate(sizeof(double) * measure->runs);
    for (unsigned long i = 0; i < options->warmup; i++) {
        double seconds = once(user);
        if (i == 0)
            measure->cold = seconds;
        progress(options, "%s run: %.6f s\n", i == 0 ? "cold" : "warm-up", seconds);
    }
    for (unsigned i = 0; i < lanes->count; i++)
        lanes->lane[i].tasks = 0;
    task_counts_begin(lanes);
    for (unsigned long i = 0; i < measure->runs; i++) {
        measure->seconds[i] = once(user);
        progress(options, "run %lu of %lu: %.6f s\n", i + 1, measure->runs, measure->seconds[i]);
    }
    task_counts_end(lanes);

    double *sorted = allocate(sizeof(double) * measure->runs);
    memcpy(sorted, measure->seconds, sizeof(double) * measure->runs);
    qsort(sorted, measure->runs, sizeof(double), compare);
    measure->minimum = sorted[0];
    measure->low_quartile = quantile(sorted, measure->runs, 0.25);
    measure->median = quantile(sorted, measure->runs, 0.5);
    measure->high_quartile = quantile(sorted, measure->runs, 0.75);
    measure->maximum = sorted[measure->runs - 1];
    free(sorted);
}

void measure_free(struct measure *measure) {
    free(measure->seconds);
    measure->seconds = NULL;
}
