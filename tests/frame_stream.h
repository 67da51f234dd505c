/* SPDX-License-Identifier: MIT */
/*
 * A program that sends frame after frame through a GPU and waits once, in the end. PoCL stands in
 * for the GPU, with kernels of `kernel_length`. N, in front of it: the integers of a frame.
 */
#ifndef TUTTI_TESTS_FRAME_STREAM_H
#define TUTTI_TESTS_FRAME_STREAM_H

#include "slow_gpu.h"

enum { BYTES = N * sizeof(cl_int), SLOTS = 64, FRAMES = 300, KERNELS = 3 };

static const char source[] = "kernel void next(global const int *in, global int *out) {"
                             "    out[get_global_id(0)] = in[get_global_id(0)] + 1; }"
                             "kernel void count(global const int *in, global int *sum) {"
                             "    sum[get_global_id(0)] += in[get_global_id(0)]; }";

static cl_program program;
static cl_kernel next, count;
static cl_mem frame, between[2], sum;
static cl_int sent[SLOTS][N], back[SLOTS][N], sums[N], zeros[N];

static void begin(void) {
    program = make_program(source);
    next = make_kernel(program, "next");
    count = make_kernel(program, "count");
    frame = make_buffer(0, BYTES, NULL);
    for (int i = 0; i < 2; i++)
        between[i] = make_buffer(0, BYTES, NULL);
    sum = make_buffer(0, BYTES, NULL);
}

static void end(void) {
    ck_ok(clReleaseMemObject(frame));
    for (int i = 0; i < 2; i++)
        ck_ok(clReleaseMemObject(between[i]));
    ck_ok(clReleaseMemObject(sum));
    ck_ok(clReleaseKernel(next));
    ck_ok(clReleaseKernel(count));
    ck_ok(clReleaseProgram(program));
}

static void run(cl_kernel kernel, cl_mem from, cl_mem to) {
    ck_ok(clSetKernelArg(kernel, 0, sizeof(from), &from));
    ck_ok(clSetKernelArg(kernel, 1, sizeof(to), &to));
    launch(kernel, N);
}

static void write_later(cl_mem to, const cl_int *from) {
    ck_ok(clEnqueueWriteBuffer(queue, to, CL_FALSE, 0, BYTES, from, 0, NULL, NULL));
}

static void read_later(cl_mem from, cl_int *to) {
    ck_ok(clEnqueueReadBuffer(queue, from, CL_FALSE, 0, BYTES, to, 0, NULL, NULL));
}

/* Each frame from a ring of arrays, through some kernels, and back to another ring. */
static void send(int frames, int slots) {
    for (int f = 0; f < frames; f++) {
        cl_mem last = frame;
        write_later(frame, sent[f % slots]);
        for (int k = 0; k < KERNELS; k++) {
            run(next, last, between[k % 2]);
            last = between[k % 2];
        }
        run(count, last, sum);
        read_later(last, back[f % slots]);
    }
}

static void stream(int frames, int slots) {
    for (int s = 0; s < slots; s++)
        for (int i = 0; i < N; i++)
            sent[s][i] = s * N + i;
    write_later(sum, zeros);
    send(frames, slots);
    read_later(sum, sums);
    ck_ok(clFinish(queue));
    int wrong = 0;
    for (int i = 0; i < N; i++) {
        int seen = 0;
        for (int f = 0; f < frames; f++)
            seen += sent[f % slots][i] + KERNELS;
        wrong += sums[i] != seen;
        for (int s = 0; s < slots && s < frames; s++)
            wrong += back[s][i] != sent[s][i] + KERNELS;
    }
    ck_assert_int_eq(wrong, 0);
}

/* So that the kernels are measured, and nothing is under way. */
static inline void warm(void) {
    for (int i = 0; i < 8; i++)
        stream(1, 1);
}

/* On a busy machine StarPU may have got a part of it. */
enum { ATTEMPTS = 6 };

static cl_ulong kernel_length = 12000; /* ns */

/*
 * The GPU is busy for so long, ns, when the frames come. All their kernels must be on its queue
 * when the last one was enqueued, as they are without Tutti.
 */
static void ck_given_as_it_comes(cl_ulong busy, int frames, int slots, void (*prepare)(void)) {
    unsigned long given, all = (unsigned long)frames * (KERNELS + 1);
    int attempts = 0;
    begin();
    slow_set_length(kernel_length);
    do {
        prepare();
        unsigned long before = slow_set_length(busy);
        run(next, frame, between[0]);
        ck_assert(slow_await(before + 1));
        slow_set_length(kernel_length);
        send(frames, slots);
        given = slow_set_length(kernel_length) - before - 1;
        ck_ok(clFinish(queue));
    } while (given < all && ++attempts < ATTEMPTS);
    ck_assert_uint_eq(given, all);
    stream(FRAMES, slots);
    end();
}

#endif
