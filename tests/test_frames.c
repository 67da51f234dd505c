/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: what a program sends in over and over, with TUTTI_SCHED=tutti. TUTTI_TRANSFER=staged
 * gives CPU devices copies of their own, so that two of them stand for two GPUs.
 */
#include "traffic.h"

enum { FRAMES = 40, INTS = 256 << 10, BYTES = INTS * (int)sizeof(cl_int), STATE = 8 };

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
    results = calloc(FRAMES, BYTES);
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
    launch(kernel, INTS);
}

static void send(cl_mem frame, int i) {
    ck_ok(clEnqueueWriteBuffer(queue, frame, CL_FALSE, 0, BYTES, frames + i * INTS, 0, NULL, NULL));
}

/* Each frame goes to a device, through two kernels there, and home. */
START_TEST(frames_do_not_wander) {
    begin();
    cl_kernel twice = make_kernel(program, "twice");
    cl_mem in = make_buffer(0, BYTES, NULL), between = make_buffer(0, BYTES, NULL);
    cl_mem out = make_buffer(0, BYTES, NULL);

    for (int i = 0; i < FRAMES; i++) {
        send(in, i);
        run(twice, in, between);
        run(twice, between, out);
        ck_ok(
            clEnqueueReadBuffer(queue, out, CL_FALSE, 0, BYTES, results + i * INTS, 0, NULL, NULL));
    }
    ck_ok(clFinish(queue));
    int wrong = 0;
    for (int i = 0; i < FRAMES; i++)
        for (int j = 0; j < INTS; j++)
            wrong += results[i * INTS + j] != 4 * (i + j);
    ck_assert_int_eq(wrong, 0);
    /* An idle device takes over what another one is too late with; that is not the rule. */
    struct traffic seen = traffic_of(in);
    ck_assert_uint_ge(seen.transfers_to_device, FRAMES);
    ck_assert_uint_le(seen.transfers_to_device, FRAMES + FRAMES / 2);
    ck_assert_uint_le(seen.transfers_from_device, FRAMES / 2);
    ck_assert_uint_le(traffic_of(between).transfers_to_device, FRAMES / 2);
    ck_assert_uint_eq(traffic_of(out).transfers_to_device, 0);
    ck_ok(clReleaseMemObject(in));
    ck_ok(clReleaseMemObject(between));
    ck_ok(clReleaseMemObject(out));
    ck_ok(clReleaseKernel(twice));
    end();
}
END_TEST

/* What the frames are added to is on one device: soon they are sent there. */
START_TEST(frames_follow_what_they_meet) {
    begin();
    cl_kernel grow = make_kernel(program, "grow");
    cl_mem in = make_buffer(0, BYTES, NULL), state = make_buffer(0, STATE * BYTES, NULL);
    cl_int zero = 0;

    ck_ok(clEnqueueFillBuffer(queue, state, &zero, sizeof(zero), 0, STATE * BYTES, 0, NULL, NULL));
    for (int i = 0; i < FRAMES; i++) {
        send(in, i);
        run(grow, in, state);
    }
    read_ints(state, results, INTS);
    int wrong = 0;
    for (int j = 0; j < INTS; j++)
        wrong += results[j] != FRAMES * (FRAMES - 1) / 2 + FRAMES * j;
    ck_assert_int_eq(wrong, 0);
    ck_assert_uint_le(traffic_of(state).transfers_to_device, 1 + FRAMES / 4);
    ck_assert_uint_le(traffic_of(in).transfers_from_device, FRAMES / 2);
    /* One after the other: the device that has been used is free each time. */
    cl_ulong before = traffic_of(in).transfers_from_device;
    for (int i = 0; i < FRAMES; i++) {
        send(in, i);
        run(grow, in, state);
        ck_ok(clFinish(queue));
    }
    ck_assert_uint_le(traffic_of(in).transfers_from_device - before, FRAMES / 4);
    ck_ok(clReleaseMemObject(in));
    ck_ok(clReleaseMemObject(state));
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
