/* SPDX-License-Identifier: MIT */
#ifndef EXAMPLES_REPORT_H
#define EXAMPLES_REPORT_H

#include "measure.h"

#include <stdio.h>

/* One JSON object on one line, written member by member. */
struct report {
    FILE *stream;
    char *text;
    size_t length;
    bool follows; /* a comma is due before the next member */
};

/* Begins the line with what all examples say: workload, distribution, devices. */
void report_begin(struct report *report, const char *workload, const struct lanes *lanes);

void report_text(struct report *report, const char *key, const char *value);
void report_count(struct report *report, const char *key, unsigned long long value);
void report_real(struct report *report, const char *key, double value);
void report_bool(struct report *report, const char *key, bool value);
void report_reals(struct report *report, const char *key, const double *value, size_t count);

/*
 * The times, the work per second (`work` in `unit`, for instance 2e9 "flop") and the bytes that
 * one run moves between host and devices, then the tasks per device.
 */
void report_measure(struct report *report, const struct measure *measure, double work,
                    const char *unit, double bytes, const struct lanes *lanes);

/* Ends the line and prints it on stdout, and into --json's file. */
void report_end(struct report *report, const struct common_options *options);

#endif
