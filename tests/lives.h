/* SPDX-License-Identifier: MIT */
/*
 * Buffers that live for a few commands: made with a content or without, used by short kernels and
 * then by whatever else OpenCL has for a buffer, read and released. Drawn; each is compared with
 * what the same commands do to an array.
 */
#ifndef TUTTI_TESTS_LIVES_H
#define TUTTI_TESTS_LIVES_H

#include "support.h"

enum { LIFE = 256, LIFE_BYTES = LIFE * sizeof(cl_int) };

static const char lives_source[] =
    "kernel void add(global int *to, int by) { to[get_global_id(0)] += by; }"
    "kernel void add_from(global int *to, global const int *a) {"
    "    size_t i = get_global_id(0); to[i] += a[i]; }"
    "kernel void set(global int *to, int by) { size_t i = get_global_id(0); to[i] = (int)i + by; }";

static struct {
    cl_program program;
    cl_kernel add, add_from, set;
    cl_uint state; /* of the generator */
} lives;

static cl_uint lives_draw(cl_uint below) {
    lives.state = lives.state * 1664525u + 1013904223u;
    return (lives.state >> 8) % below;
}

static void lives_launch(cl_kernel kernel, size_t items) {
    ck_ok(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
}

/* As many as LIFE elements of the buffer, which may be a part of another one. */
static void lives_add(cl_mem to, cl_int by, size_t items, cl_int *expected) {
    ck_ok(clSetKernelArg(lives.add, 0, sizeof(to), &to));
    ck_ok(clSetKernelArg(lives.add, 1, sizeof(by), &by));
    lives_launch(lives.add, items);
    for (size_t i = 0; i < items; i++)
        expected[i] += by;
}

static void lives_set(cl_mem to, cl_int by, cl_int *expected) {
    ck_ok(clSetKernelArg(lives.set, 0, sizeof(to), &to));
    ck_ok(clSetKernelArg(lives.set, 1, sizeof(by), &by));
    lives_launch(lives.set, LIFE);
    for (int i = 0; i < LIFE; i++)
        expected[i] = i + by;
}

static void lives_add_from(cl_mem to, cl_mem from, cl_int *expected, const cl_int *added) {
    ck_ok(clSetKernelArg(lives.add_from, 0, sizeof(to), &to));
    ck_ok(clSetKernelArg(lives.add_from, 1, sizeof(from), &from));
    lives_launch(lives.add_from, LIFE);
    for (int i = 0; i < LIFE; i++)
        expected[i] += added[i];
}

/* Something that is no short kernel. */
static void lives_use(cl_mem buffer, cl_int *expected) {
    cl_int pattern = (cl_int)lives_draw(1000), values[LIFE];
    cl_buffer_region half = {LIFE_BYTES / 2, LIFE_BYTES / 2};
    size_t start[3] = {0, 0, 0}, box[3] = {16, 2, LIFE_BYTES / 32};
    cl_mem other;
    cl_int *mapped;
    switch (lives_draw(8)) {
    case 0: /* nothing */
        break;
    case 1:
        ck_ok(
            clEnqueueFillBuffer(queue, buffer, &pattern, sizeof(pattern), 64, 128, 0, NULL, NULL));
        for (int i = 16; i < 48; i++)
            expected[i] = pattern;
        break;
    case 2:
        other = make_buffer(0, LIFE_BYTES, NULL);
        ck_ok(clEnqueueCopyBuffer(queue, buffer, other, 0, 0, LIFE_BYTES, 0, NULL, NULL));
        lives_add_from(buffer, other, expected, expected);
        ck_ok(clReleaseMemObject(other));
        break;
    case 3:
        mapped = clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                    LIFE_BYTES, 0, NULL, NULL, &error);
        ck_ok(error);
        for (int i = 0; i < LIFE; i++)
            ck_assert_int_eq(mapped[i], expected[i]);
        mapped[7] = expected[7] = pattern;
        ck_ok(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL));
        break;
    case 4:
        other = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &half, &error);
        ck_ok(error);
        lives_add(other, pattern, LIFE / 2, expected + LIFE / 2);
        ck_ok(clReleaseMemObject(other));
        break;
    case 5:
        ck_ok(clEnqueueReadBufferRect(queue, buffer, CL_TRUE, start, start, box, 16, 32, 16, 32,
                                      values, 0, NULL, NULL));
        for (int i = 0; i < LIFE; i++)
            ck_assert_int_eq(values[i], expected[i]);
        break;
    case 6:
        for (int i = 0; i < LIFE; i++)
            values[i] = expected[i] = pattern - i;
        ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, LIFE_BYTES, values, 0, NULL, NULL));
        break;
    default:
        ck_ok(clEnqueueMigrateMemObjects(queue, 1, &buffer, CL_MIGRATE_MEM_OBJECT_HOST, 0, NULL,
                                         NULL));
        break;
    }
}

/* One of them. With `plain` nothing else uses it. */
static void lives_one(bool plain) {
    cl_int expected[LIFE], added[LIFE], seen[LIFE];
    for (int i = 0; i < LIFE; i++)
        expected[i] = added[i] = i * (cl_int)lives_draw(100);
    bool written = lives_draw(2), empty = lives_draw(3) == 0;
    cl_mem buffer = make_buffer(written || empty ? 0 : CL_MEM_COPY_HOST_PTR, LIFE_BYTES,
                                written || empty ? NULL : expected);
    cl_mem from = make_buffer(CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, LIFE_BYTES, added);
    if (written && !empty)
        ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, LIFE_BYTES, expected, 0, NULL, NULL));
    if (empty)
        lives_set(buffer, 3, expected);
    for (cl_uint kernels = 1 + lives_draw(3); kernels > 0; kernels--) {
        if (lives_draw(2))
            lives_add(buffer, (cl_int)kernels, LIFE, expected);
        else
            lives_add_from(buffer, from, expected, added);
        if (!plain)
            lives_use(buffer, expected);
    }
    if (lives_draw(2))
        lives_add_from(buffer, from, expected, added);
    ck_ok(clReleaseMemObject(from));
    if (plain || lives_draw(4)) {
        ck_ok(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, LIFE_BYTES, seen, 0, NULL, NULL));
        for (int i = 0; i < LIFE; i++)
            ck_assert_int_eq(seen[i], expected[i]);
    }
    ck_ok(clReleaseMemObject(buffer)); /* maybe with commands under way */
}

static void lives_begin(cl_uint seed) {
    lives.program = make_program(lives_source);
    lives.add = make_kernel(lives.program, "add");
    lives.add_from = make_kernel(lives.program, "add_from");
    lives.set = make_kernel(lives.program, "set");
    lives.state = seed;
}

static void lives_end(void) {
    ck_ok(clFinish(queue));
    ck_ok(clReleaseKernel(lives.add));
    ck_ok(clReleaseKernel(lives.add_from));
    ck_ok(clReleaseKernel(lives.set));
    ck_ok(clReleaseProgram(lives.program));
}

#endif
