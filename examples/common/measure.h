/* SPDX-License-Identifier: MIT */
#ifndef EXAMPLES_MEASURE_H
#define EXAMPLES_MEASURE_H

#include "lanes.h"

/* Seconds of a clock that never goes back. */
double now(void);

struct measure {
    double cold; /* the first run, with all that drivers do once; negative: not measured */
    unsigned long runs;
    double *seconds; /* the measured runs in their order */
    double median, low_quartile, high_quartile, minimum, maximum;
};

/*
 * Calls `once`, which returns the seconds of its main loop, --warmup times and then --repeat
 * times. Lanes' task counts are those of the measured runs. To be freed with measure_free.
 */
void measure(const struct common_options *options, struct lanes *lanes, double (*once)(void *user),
             void *user, struct measure *measure);
void measure_free(struct measure *measure);

#endif
