/* SPDX-License-Identifier: MIT */
#include "report.h"
#include "task_counts.h"

#include <math.h>
#include <stdlib.h>

static void write_text(FILE *stream, const char *text) {
    fputc('"', stream);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(stream, "\\%c", *c);
        else if (*c < 0x20)
            fprintf(stream, "\\u%04x", *c);
        else
            fputc(*c, stream);
    }
    fputc('"', stream);
}

static void write_key(struct report *report, const char *key) {
    if (report->follows)
        fputs(", ", report->stream);
    report->follows = true;
    write_text(report->stream, key);
    fputs(": ", report->stream);
}

/* JSON has neither infinities nor NaN. */
static void write_real(FILE *stream, double value) {
    if (isfinite(value))
        fprintf(stream, "%.9g", value);
    else
        fputs("null", stream);
}

void report_text(struct report *report, const char *key, const char *value) {
    write_key(report, key);
    write_text(report->stream, value);
}

void report_count(struct report *report, const char *key, unsigned long long value) {
    write_key(report, key);
    fprintf(report->stream, "%llu", value);
}

void report_real(struct report *report, const char *key, double value) {
    write_key(report, key);
    write_real(report->stream, value);
}

void report_bool(struct report *report, const char *key, bool value) {
    write_key(report, key);
    fputs(value ? "true" : "false", report->stream);
}

void report_reals(struct report *report, const char *key, const double *value, size_t count) {
    write_key(report, key);
    fputc('[', report->stream);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            fputs(", ", report->stream);
        write_real(report->stream, value[i]);
    }
    fputc(']', report->stream);
}

void report_begin(struct report *report, const char *workload, const struct lanes *lanes) {
    *report = (struct report){.follows = false};
    report->stream = open_memstream(&report->text, &report->length);
    if (!report->stream)
        die("no memory for the report");
    fputc('{', report->stream);
    report_text(report, "workload", workload);
    report_text(report, "distribution", distribution_name(lanes->distribution));
    write_key(report, "devices");
    fputc('[', report->stream);
    for (unsigned i = 0; i < lanes->count; i++) {
        fprintf(report->stream, "%s{", i > 0 ? ", " : "");
        report->follows = false;
        report_text(report, "name", lanes->lane[i].name);
        report_text(report, "platform", lanes->lane[i].platform_name);
        report_text(report, "driver", lanes->lane[i].driver_version);
        fputc('}', report->stream);
    }
    fputc(']', report->stream);
    report->follows = true;
}

static void write_tasks(struct report *report, const char *key, unsigned count,
                        const char *const *name, const cl_ulong *tasks) {
    write_key(report, key);
    fputc('[', report->stream);
    for (unsigned i = 0; i < count; i++) {
        fprintf(report->stream, "%s{", i > 0 ? ", " : "");
        report->follows = false;
        report_text(report, "name", name[i]);
        report_count(report, "tasks", tasks[i]);
        fputc('}', report->stream);
    }
    fputc(']', report->stream);
    report->follows = true;
}

static void write_lane_tasks(struct report *report, const struct lanes *lanes) {
    const char *name[MAX_LANES];
    cl_ulong tasks[MAX_LANES];
    for (unsigned i = 0; i < lanes->count; i++) {
        name[i] = lanes->lane[i].name;
        tasks[i] = lanes->lane[i].tasks;
    }
    write_tasks(report, "tasks", lanes->count, name, tasks);
}

static void write_real_tasks(struct report *report, const struct task_counts *counts) {
    const char *name[MAX_REAL_DEVICES];
    if (counts->count == 0)
        return;
    for (unsigned i = 0; i < counts->count; i++)
        name[i] = counts->name[i];
    write_tasks(report, "real_device_commands", counts->count, name, counts->commands);
}

void report_measure(struct report *report, const struct measure *measure, double work,
                    const char *unit, double bytes, const struct lanes *lanes) {
    if (measure->cold >= 0)
        report_real(report, "cold_seconds", measure->cold);
    report_reals(report, "seconds", measure->seconds, measure->runs);
    report_real(report, "median_seconds", measure->median);
    report_real(report, "min_seconds", measure->minimum);
    report_real(report, "max_seconds", measure->maximum);
    report_real(report, "spread_seconds", measure->high_quartile - measure->low_quartile);
    report_real(report, "work", work);
    report_text(report, "unit", unit);
    report_real(report, "work_per_second", work / measure->median);
    report_real(report, "bytes_moved", bytes);
    write_lane_tasks(report, lanes);
    write_real_tasks(report, task_counts());
}

void report_end(struct report *report, const struct common_options *options) {
    fputc('}', report->stream);
    if (fclose(report->stream) != 0)
        die("no memory for the report");
    puts(report->text);
    if (fflush(stdout) != 0)
        die("cannot write to stdout");
    if (options->json) {
        FILE *file = fopen(options->json, "a");
        if (!file || fprintf(file, "%s\n", report->text) < 0 || fclose(file) != 0)
            die("cannot write %s", options->json);
    }
    free(report->text);
    report->text = NULL;
}
