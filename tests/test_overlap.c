/* SPDX-License-Identifier: MIT */
/*
 * The eight dependency tests of the paper on data tiles, in one in-order queue without events, and
 * the trap of the last reader. In the paper's notation: ch, the host fills its tile; To and From,
 * non-blocking transfers; K copies the first element of a tile to all of another; S, clFinish.
 *
 * Each is repeated TUTTI_TEST_ROUNDS times. Where two commands may overlap, the later one must have
 * started before the end of the earlier one at least once; where one depends on the other, never.
 */
#include "support.h"

enum { LONG = 1 << 20, SHORT = 1000, LONG_WORK = 250, MOST_WORK = LONG_WORK << 16, SHORT_WORK = 0 };
enum { LEAST_TIME = 300000 }; /* ns of a kernel with long work, on the fastest device */
enum { CHANCES = 300 };       /* rounds in which two commands must overlap once, at least */
enum { A, B, C, D, TILES };

static const char source[] =
    "kernel void spread(global const float *in, global float *out, int rounds) {"
    "    float value = in[0];"
    "    uint noise = get_global_id(0);"
    "    for (int i = 0; i < rounds; i++) noise = noise * 1664525u + 1013904223u;"
    "    out[get_global_id(0)] = noise == 7u && rounds < 0 ? 0.0f : value;"
    "}";

static cl_program program;
static cl_kernel spread;
static cl_mem tile[TILES];
static float *host[TILES];
static size_t count; /* floats in a tile */
static int rounds;   /* the kernel's work per element */

static void end(void) {
    for (int t = 0; t < TILES; t++) {
        ck_ok(clReleaseMemObject(tile[t]));
        free(host[t]);
    }
    ck_ok(clReleaseKernel(spread));
    ck_ok(clReleaseProgram(program));
}

static void fill(int t, float value) {
    for (size_t i = 0; i < count; i++)
        host[t][i] = value;
}

static void finish(void) { ck_ok(clFinish(queue)); }

static cl_event to(int t) {
    cl_event event;

    ck_ok(clEnqueueWriteBuffer(queue, tile[t], CL_FALSE, 0, count * sizeof(float), host[t], 0, NULL,
                               &event));
    return event;
}

static cl_event from(int t) {
    cl_event event;

    ck_ok(clEnqueueReadBuffer(queue, tile[t], CL_FALSE, 0, count * sizeof(float), host[t], 0, NULL,
                              &event));
    return event;
}

static cl_event run(int in, int out) {
    size_t all = count;
    cl_event event;

    ck_ok(clSetKernelArg(spread, 0, sizeof(cl_mem), &tile[in]));
    ck_ok(clSetKernelArg(spread, 1, sizeof(cl_mem), &tile[out]));
    ck_ok(clSetKernelArg(spread, 2, sizeof(rounds), &rounds));
    ck_ok(clEnqueueNDRangeKernel(queue, spread, 1, NULL, &all, NULL, 0, NULL, &event));
    return event;
}

static void all_are(int t, float wanted) {
    size_t i = 0;
    while (i < count && host[t][i] == wanted)
        i++;
    if (i < count)
        ck_abort_msg("tile %c: element %zu is %g, expected %g", 'a' + t, i, (double)host[t][i],
                     (double)wanted);
}

static cl_ulong time_of(cl_event event, cl_profiling_info which) {
    return get_info(cl_ulong, clGetEventProfilingInfo, event, which);
}

static cl_ulong time_of_kernel(void) {
    cl_event kernel = run(A, B);
    finish();
    cl_ulong time =
        time_of(kernel, CL_PROFILING_COMMAND_END) - time_of(kernel, CL_PROFILING_COMMAND_START);
    ck_ok(clReleaseEvent(kernel));
    return time;
}

/* With `work` the kernel takes longer than what may overlap it. */
static void begin(size_t floats, int work) {
    program = make_program(source);
    spread = make_kernel(program, "spread");
    count = floats;
    rounds = work;
    for (int t = 0; t < TILES; t++) {
        tile[t] = make_buffer(0, count * sizeof(float), NULL);
        host[t] = malloc(count * sizeof(float));
    }
    while (work && rounds < MOST_WORK && time_of_kernel() < LEAST_TIME)
        rounds *= 2;
}

/*
 * The later command of the two starts before the earlier one ends, so that it did not wait for it;
 * gives both events back.
 */
static bool overlap(cl_event earlier, cl_event later) {
    bool met =
        time_of(later, CL_PROFILING_COMMAND_START) < time_of(earlier, CL_PROFILING_COMMAND_END);

    ck_ok(clReleaseEvent(earlier));
    ck_ok(clReleaseEvent(later));
    return met;
}

static void drop(cl_event event) { ck_ok(clReleaseEvent(event)); }

static int repeats(void) { return (int)test_size("TUTTI_TEST_ROUNDS", 1000); }

static int chances(void) { return repeats() > CHANCES ? repeats() : CHANCES; }

/* Chance may hide an overlap in a few rounds. */
static bool goes_on(int round, bool met) {
    return round < repeats() || (!met && test_platform_is("Tutti") && round < chances());
}

/* Only Tutti promises to overlap what an in-order queue leaves free. */
static void check_met(int met, const char *what) {
    if (test_platform_is("Tutti"))
        ck_assert_msg(met > 0, "%s never overlapped in %d rounds", what, chances());
}

START_TEST(t01_transfers_follow_each_other) {
    begin(LONG, SHORT_WORK);
    for (int round = 0; round < repeats(); round++) {
        fill(A, 0);
        drop(to(A));
        finish();
        fill(A, 1);
        finish();
        cl_event written = to(A), read = from(A);

        finish();
        all_are(A, 1);
        ck_assert_msg(!overlap(written, read), "a read overlapped the write that it needs");
    }
    end();
}
END_TEST

START_TEST(t02_transfers_both_ways) {
    int met = 0;

    begin(LONG, SHORT_WORK);
    for (int round = 0; goes_on(round, met); round++) {
        fill(A, 1);
        fill(B, 2);
        drop(to(A));
        finish();
        fill(A, 0);
        finish();
        cl_event written = to(B), read = from(A);

        finish();
        all_are(A, 1);
        met += overlap(written, read);
    }
    check_met(met, "To b and From a");
    end();
}
END_TEST

START_TEST(t03_a_kernel_between_transfers) {
    begin(SHORT, LONG_WORK);
    for (int round = 0; round < repeats(); round++) {
        fill(A, 1);
        fill(B, 0);
        finish();
        cl_event written = to(A), kernel = run(A, B), read = from(B);

        finish();
        all_are(B, 1);
        ck_ok(clRetainEvent(kernel));
        ck_assert_msg(!overlap(written, kernel), "the kernel overlapped the write that it needs");
        ck_assert_msg(!overlap(kernel, read), "a read overlapped the kernel that it needs");
    }
    end();
}
END_TEST

START_TEST(t04_a_kernel_and_a_write) {
    int met = 0;

    begin(SHORT, LONG_WORK);
    for (int round = 0; goes_on(round, met); round++) {
        fill(A, 1);
        fill(B, 0);
        fill(C, 2);
        drop(to(A));
        finish();
        cl_event kernel = run(A, B), written = to(C);

        drop(from(B));
        finish();
        all_are(B, 1);
        met += overlap(kernel, written);
    }
    check_met(met, "K and To c");
    end();
}
END_TEST

/* With another write in between, the kernel overlaps both. */
static void kernel_and_read(bool and_write) {
    int met = 0, met_write = 0;

    begin(SHORT, LONG_WORK);
    for (int round = 0; goes_on(round, met && (met_write || !and_write)); round++) {
        fill(A, 1);
        fill(B, 0);
        fill(C, 2);
        fill(D, 3);
        drop(to(A));
        drop(to(C));
        finish();
        fill(C, 0);
        cl_event kernel = run(A, B), written = and_write ? to(D) : NULL, read = from(C);

        drop(from(B));
        finish();
        all_are(B, 1);
        all_are(C, 2);
        ck_ok(clRetainEvent(kernel));
        met += overlap(kernel, read);
        if (and_write)
            met_write += overlap(kernel, written);
        else
            drop(kernel);
    }
    check_met(met, "K and From c");
    if (and_write)
        check_met(met_write, "K and To d");
    end();
}

START_TEST(t05_a_kernel_and_a_read) { kernel_and_read(false); }
END_TEST

START_TEST(t06_a_kernel_and_both) { kernel_and_read(true); }
END_TEST

START_TEST(t07_a_write_after_a_kernel_that_reads) {
    begin(SHORT, LONG_WORK);
    for (int round = 0; round < repeats(); round++) {
        fill(A, 1);
        fill(B, 0);
        drop(to(A));
        finish();
        fill(A, 2);
        finish();
        drop(run(A, B));
        drop(to(A));
        drop(from(B));
        drop(from(A));
        finish();
        all_are(A, 2);
        all_are(B, 1);
    }
    end();
}
END_TEST

START_TEST(t08_a_kernel_after_a_long_write) {
    begin(LONG, SHORT_WORK);
    for (int round = 0; round < repeats(); round++) {
        fill(A, 1);
        fill(B, 0);
        drop(to(A));
        finish();
        fill(A, 2);
        finish();
        cl_event written = to(A), kernel = run(A, B);

        drop(from(A));
        drop(from(B));
        finish();
        all_are(A, 2);
        all_are(B, 2);
        ck_assert_msg(!overlap(written, kernel), "the kernel overlapped the write that it needs");
    }
    end();
}
END_TEST

/* K reads x for long, a transfer reads it quickly; what is written to x then waits for K too. */
START_TEST(the_last_reader_only) {
    begin(SHORT, LONG_WORK);
    for (int round = 0; round < repeats(); round++) {
        fill(A, 1);
        drop(to(A));
        finish();
        drop(run(A, B));
        drop(from(A));
        finish();
        all_are(A, 1);
        fill(C, 2);
        drop(run(A, B));
        drop(from(A));
        ck_ok(clEnqueueWriteBuffer(queue, tile[A], CL_FALSE, 0, count * sizeof(float), host[C], 0,
                                   NULL, NULL));
        drop(from(B));
        finish();
        all_are(A, 1);
        all_are(B, 1);
        drop(from(A));
        finish();
        all_are(A, 2);
    }
    end();
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        t01_transfers_follow_each_other,
        t02_transfers_both_ways,
        t03_a_kernel_between_transfers,
        t04_a_kernel_and_a_write,
        t05_a_kernel_and_a_read,
        t06_a_kernel_and_both,
        t07_a_write_after_a_kernel_that_reads,
        t08_a_kernel_after_a_long_write,
        the_last_reader_only,
    };

    return test_main(argc, argv, tests, COUNT(tests));
}
