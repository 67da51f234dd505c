/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: what a program sends in over and over, with TUTTI_SCHED=tutti. TUTTI_TRANSFER=staged
 * gives CPU devices copies of their own, so that two of them stand for two GPUs.
 */
#include "traffic.h"

/* Kernels use little of a frame, so that they are short and to move one never pays. */
enum { FRAMES = 40, INTS = 128 << 10, BYTES = INTS * (int)sizeof(cl_int), STATE = 8, USED = 1000 };

static const char source[] = "kernel void twice(global const int *in, global int *out) {\n"
                             "    const int id = get_global_id(0);\n"
                             "    out[id] = 2 * in[id];\n"
                             "}\n"
                             "kernel void grow(global const int *in, global int *state) {\n"
                             "    state[get_global_id(0)] += in[get_global_id(0)];\n"
                             "}\n";

static cl_int *frames, *results;
static cl_program program;

static void begin(void) {
    program = make_program(source);
    frames = malloc((size_t)FRAMES * BYTES);
    results = calloc(FRAMES, USED * sizeof(*results));
    ck_assert(frames && results);
    for (int i = 0; i < FRAMES; i++)
        for (int j = 0; j < INTS; j++)
            frames[i * INTS + j] = i + j;
}

static void end(void) {
    free(frames);
    free(results);
    ck_ok(clReleaseProgram(program));
}

static void run(cl_kernel kernel, cl_mem in, cl_mem out) {
    ck_ok(clSetKernelArg(kernel, 0, sizeof(in), &in));
    ck_ok(clSetKernelArg(kernel, 1, sizeof(out), &out));
    launch(kernel, USED);
}

static void send(cl_mem frame, int i) {
    ck_ok(clEnqueueWriteBuffer(queue, frame, CL_FALSE, 0, BYTES, frames + i * INTS, 0, NULL, NULL));
}

/*
 * An idle device takes over what another one is late with, and on a busy machine any may be late.
 * So the rule is shown by one run of several.
 */
enum { ATTEMPTS = 20 };

/* Each frame goes to a device, through two kernels there, and home. Did most of them? */
static bool stream(cl_kernel twice) {
    const size_t used = USED * sizeof(cl_int);
    cl_mem in = make_buffer(0, BYTES, NULL), between = make_buffer(0, used, NULL);
    cl_mem out = make_buffer(0, used, NULL);
    int wrong = 0;

    for (int i = 0; i < FRAMES; i++) {
        send(in, i);
        run(twice, in, between);
        run(twice, between, out);
        ck_ok(
            clEnqueueReadBuffer(queue, out, CL_FALSE, 0, used, results + i * USED, 0, NULL, NULL));
    }
    ck_ok(clFinish(queue));
    for (int i = 0; i < FRAMES; i++)
        for (int j = 0; j < USED; j++)
            wrong += results[i * USED + j] != 4 * (i + j);
    ck_assert_int_eq(wrong, 0);
    struct traffic seen = traffic_of(in);
    ck_assert_uint_ge(seen.transfers_to_device, FRAMES);
    /* A read may be taken over like any command, and what it reads then moves with it. */
    bool stayed =
        seen.transfers_from_device <= FRAMES / 4 && traffic_of(out).transfers_to_device == 0;
    ck_ok(clReleaseMemObject(in));
    ck_ok(clReleaseMemObject(between));
    ck_ok(clReleaseMemObject(out));
    return stayed;
}

START_TEST(frames_do_not_wander) {
    int attempts = 1;
    begin();
    cl_kernel twice = make_kernel(program, "twice");

    while (!stream(twice))
        ck_assert_int_lt(attempts++, ATTEMPTS);
    ck_ok(clReleaseKernel(twice));
    end();
}
END_TEST

/* What the frames are added to is on one device: soon they are sent there. Are they? */
static bool add_all(cl_kernel grow) {
    cl_mem in = make_buffer(0, BYTES, NULL), state = make_buffer(0, STATE * BYTES, NULL);
    cl_int zero = 0;
    int wrong = 0;

    ck_ok(clEnqueueFillBuffer(queue, state, &zero, sizeof(zero), 0, STATE * BYTES, 0, NULL, NULL));
    for (int i = 0; i < FRAMES; i++) {
        send(in, i);
        run(grow, in, state);
    }
    read_ints(state, results, USED);
    for (int j = 0; j < USED; j++)
        wrong += results[j] != FRAMES * (FRAMES - 1) / 2 + FRAMES * j;
    ck_assert_int_eq(wrong, 0);
    /* One after the other: the device that has been used is free each time. */
    cl_ulong before = traffic_of(in).transfers_from_device;
    for (int i = 0; i < FRAMES; i++) {
        send(in, i);
        run(grow, in, state);
        ck_ok(clFinish(queue));
    }
    bool followed = traffic_of(state).transfers_to_device <= FRAMES / 4 &&
                    traffic_of(in).transfers_from_device - before <= FRAMES / 4;
    ck_ok(clReleaseMemObject(in));
    ck_ok(clReleaseMemObject(state));
    return followed;
}

START_TEST(frames_follow_what_they_meet) {
    int attempts = 1;
    begin();
    cl_kernel grow = make_kernel(program, "grow");

    while (!add_all(grow))
        ck_assert_int_lt(attempts++, ATTEMPTS);
    ck_ok(clReleaseKernel(grow));
    end();
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {frames_do_not_wander, frames_follow_what_they_meet};

    setenv("TUTTI_TRANSFER", "staged", 1);
    setenv("TUTTI_SCHED", "tutti", 1);
    return test_main(argc, argv, tests, COUNT(tests));
}
