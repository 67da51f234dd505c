/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: a buffer that is overwritten as a whole gets fresh storage, too, while a long
 * kernel reads it, which a device has in its home memory.
 */
#include "support.h"

#include <time.h>

enum { N = 1024, BYTES = N * sizeof(cl_int) };

static cl_command_queue side;

static const char reading[] =
    "kernel void look(global const int *in, global int *out, int rounds) {"
    "    int i = get_global_id(0); uint s = in[i];"
    "    for (int r = 0; r < rounds; r++) s = s * 1664525u + 1013904223u;"
    "    out[i] = s == 7 && rounds < 0 ? 1 : in[i]; }";

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void look(cl_kernel kernel, cl_mem in, cl_mem out, cl_int rounds, cl_event *event) {
    size_t items = N;
    ck_ok(clSetKernelArg(kernel, 0, sizeof(in), &in));
    ck_ok(clSetKernelArg(kernel, 1, sizeof(out), &out));
    ck_ok(clSetKernelArg(kernel, 2, sizeof(rounds), &rounds));
    ck_ok(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, event));
    ck_ok(clFlush(queue));
}

/* So many that it takes a third of a second. */
static cl_int find_rounds(cl_kernel kernel, cl_mem in, cl_mem out) {
    cl_int rounds = 1000;
    double start;
    do {
        rounds *= 2;
        start = seconds();
        look(kernel, in, out, rounds, NULL);
        ck_ok(clFinish(queue));
    } while (seconds() - start < 0.3);
    return rounds;
}

enum { WRITTEN, FILLED, COPIED, WAYS };

static void overwrite(int way, cl_mem buffer, cl_mem source, const cl_int *bytes, size_t size) {
    if (way == WRITTEN)
        ck_ok(clEnqueueWriteBuffer(side, buffer, CL_FALSE, 0, size, bytes, 0, NULL, NULL));
    else if (way == FILLED)
        ck_ok(clEnqueueFillBuffer(side, buffer, bytes, sizeof(*bytes), 0, size, 0, NULL, NULL));
    else
        ck_ok(clEnqueueCopyBuffer(side, source, buffer, 0, 0, size, 0, NULL, NULL));
}

/* Does the kernel still run when what overwrites its buffer has been read? */
static bool passes(cl_kernel kernel, int way, size_t size) {
    cl_int *old = calloc(1, size), *bytes = malloc(size), *seen_there = malloc(size);
    for (size_t i = 0; i < size / sizeof(*bytes); i++)
        bytes[i] = 50;
    cl_mem buffer = make_buffer(CL_MEM_COPY_HOST_PTR, size, old);
    cl_mem source = make_buffer(CL_MEM_COPY_HOST_PTR, size, bytes);
    cl_mem out = make_buffer(0, size, NULL);
    cl_int rounds = find_rounds(kernel, buffer, out);
    cl_event event;
    look(kernel, buffer, out, rounds, &event);
    overwrite(way, buffer, source, bytes, size);
    ck_ok(clEnqueueReadBuffer(side, buffer, CL_TRUE, 0, size, seen_there, 0, NULL, NULL));
    bool passed = event_status(event) > CL_COMPLETE;
    ck_assert_mem_eq(seen_there, bytes, size);
    ck_ok(clFinish(queue));
    ck_ok(clReleaseEvent(event));
    read_ints(out, seen_there, N);
    ck_assert_mem_eq(seen_there, old, BYTES);
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseMemObject(source));
    ck_ok(clReleaseMemObject(out));
    free(old);
    free(bytes);
    free(seen_there);
    return passed;
}

/* Again, as the machine may do something else for as long as the kernel takes. */
START_TEST(behind_a_kernel_that_reads) {
    static const size_t sizes[] = {BYTES, 1 << 20, 4 << 20};
    side = make_queue(0);
    cl_program own = make_program(reading);
    cl_kernel kernel = make_kernel(own, "look");
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (int way = 0; way < WAYS; way++) {
            bool passed = false;
            for (int round = 0; round < 5 && !passed; round++)
                passed = passes(kernel, way, sizes[s]);
            ck_assert_msg(passed, "%zu bytes, way %d: it waits for the kernel", sizes[s], way);
        }
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(own));
    ck_ok(clReleaseCommandQueue(side));
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {behind_a_kernel_that_reads};
    setenv("TUTTI_DEVICES", "cpu", 1);
    return test_main(argc, argv, tests, COUNT(tests));
}
