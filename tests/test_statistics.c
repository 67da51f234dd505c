/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: TUTTI_STATS, what is said at exit. Each setting is tried in a process of its own.
 */
#include "support.h"

#include <unistd.h>

enum { KERNELS = 40, N = 1024 };

/* The child: some kernels, and nothing printed by itself but its report. */
START_TEST(probe) {
    cl_mem buffer = make_buffer(0, N * sizeof(cl_int), NULL);
    cl_program program = make_program(common_source);
    cl_kernel set = make_kernel(program, "set");
    cl_int value = 5;

    ck_ok(clSetKernelArg(set, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(set, 1, sizeof(value), &value));
    for (int i = 0; i < KERNELS; i++)
        launch(set, N);
    ck_ok(clFinish(queue));
    ck_ok(clReleaseKernel(set));
    ck_ok(clReleaseProgram(program));
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

struct report {
    int lines, devices;
    unsigned long long kernels;
    bool best;
};

static void read_report(FILE *file, struct report *report) {
    char line[512];

    *report = (struct report){0};
    while (fgets(line, sizeof(line), file)) {
        unsigned long long kernels;
        double busy, idle, in, out;
        unsigned models;
        ck_assert_msg(strncmp(line, "not ok", 6) != 0, "the child failed: %s", line);
        if (strncmp(line, "tutti:", 6) != 0)
            continue;
        report->lines++;
        report->best |= strstr(line, "by the models") != NULL;
        if (sscanf(line, "tutti: %llu %lf %lf %lf %lf %u", &kernels, &busy, &idle, &in, &out,
                   &models) == 6) {
            report->devices++;
            report->kernels += kernels;
            ck_assert(busy >= 0 && idle >= 0 && in >= 0 && out >= 0);
            ck_assert_msg(busy < 600, "%llu short kernels took %f s", kernels, busy);
        }
    }
}

static void run(const char *settings, struct report *report) {
    FILE *child = test_start_again(settings, "--probe");

    read_report(child, report);
    test_finish_again(child);
}

START_TEST(silent_unless_asked) {
    struct report report;

    run("env -u TUTTI_STATS", &report);
    ck_assert_int_eq(report.lines, 0);
    run("TUTTI_STATS=0", &report);
    ck_assert_int_eq(report.lines, 0);
}
END_TEST

START_TEST(each_device_on_standard_error) {
    struct report report;

    run("TUTTI_STATS=1", &report);
    ck_assert_int_gt(report.devices, 0);
    ck_assert_uint_eq(report.kernels, KERNELS);
    ck_assert(report.best);
}
END_TEST

START_TEST(appended_to_a_file) {
    struct report report;
    char path[] = "/tmp/tutti-stats.XXXXXX", settings[64];
    int file = mkstemp(path);

    ck_assert_int_ge(file, 0);
    close(file);
    snprintf(settings, sizeof(settings), "TUTTI_STATS=%s", path);
    for (int i = 0; i < 2; i++) {
        run(settings, &report);
        ck_assert_int_eq(report.lines, 0);
    }
    FILE *written = fopen(path, "r");
    ck_assert_ptr_nonnull(written);
    read_report(written, &report);
    fclose(written);
    unlink(path);
    ck_assert_uint_eq(report.kernels, 2 * KERNELS);
    /* A file that can't be opened harms nobody. */
    run("TUTTI_STATS=/nowhere/at/all", &report);
    ck_assert_int_eq(report.lines, 0);
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const child[] = {probe};
    const TTest *const tests[] = {silent_unless_asked, each_device_on_standard_error,
                                  appended_to_a_file};
    if (argc > 1 && strcmp(argv[1], "--probe") == 0)
        return test_main(1, argv, child, COUNT(child));
    return test_main_bare(argc, argv, tests, COUNT(tests));
}
