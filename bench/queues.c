/* SPDX-License-Identifier: MIT */
/*
 * What a small kernel costs, in µs, in 1 to 24 in-order queues in turn, eight in each, on each
 * platform that is named:
 *     queues [--loops N] [--events 1] [--turns N] [--repeat N] PLATFORM…   (common/turns.h)
 * Each queue has a buffer of its own, and each kernel 64 work-items, which multiply and add `loops`
 * times [20000: some 48 µs on an H100]. With events the program takes one for each kernel, and
 * releases it.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include "common/turns.h"

#include <stdbool.h>
#include <stdlib.h>

enum { MOST = 24, EACH = 8 };

struct target {
    cl_context context;
    cl_command_queue queue[MOST];
    cl_program program;
    cl_kernel kernel;
    cl_mem buffer[MOST];
};

static cl_int loops;
static bool takes_events;

static void launch(struct target *t, unsigned i) {
    const size_t items = 64;
    cl_event event;
    turns_check(clSetKernelArg(t->kernel, 0, sizeof(t->buffer[i]), &t->buffer[i]),
                "clSetKernelArg");
    turns_check(clEnqueueNDRangeKernel(t->queue[i], t->kernel, 1, NULL, &items, &items, 0, NULL,
                                       takes_events ? &event : NULL),
                "clEnqueueNDRangeKernel");
    if (takes_events)
        turns_check(clReleaseEvent(event), "clReleaseEvent");
}

static double run(struct target *t, unsigned queues) {
    double start = turns_now();
    for (unsigned i = 0; i < EACH * queues; i++)
        launch(t, i % queues);
    for (unsigned i = 0; i < queues; i++)
        turns_check(clFinish(t->queue[i]), "clFinish");
    return (turns_now() - start) / (EACH * queues);
}

static double in_1(struct target *t) { return run(t, 1); }
static double in_2(struct target *t) { return run(t, 2); }
static double in_4(struct target *t) { return run(t, 4); }
static double in_8(struct target *t) { return run(t, 8); }
static double in_16(struct target *t) { return run(t, 16); }
static double in_24(struct target *t) { return run(t, 24); }

static const struct turns_row rows[] = {
    {"in one queue", in_1}, {"in 2 queues", in_2},   {"in 4 queues", in_4},
    {"in 8 queues", in_8},  {"in 16 queues", in_16}, {"in 24 queues", in_24},
};

static struct target *open_target(cl_device_id device) {
    static const char *source =
        "__kernel void turn(__global float *a, int loops) { float x = a[get_global_id(0)];"
        "  for (int i = 0; i < loops; i++) x = fma(x, 0.999f, 0.5f); a[get_global_id(0)] = x; }";
    struct target *t = calloc(1, sizeof(*t));
    if (!t)
        exit(1);
    t->context = turns_context(device);
    t->program = turns_program(t->context, device, source);
    t->kernel = turns_kernel(t->program, "turn");
    turns_check(clSetKernelArg(t->kernel, 1, sizeof(loops), &loops), "clSetKernelArg");
    for (unsigned i = 0; i < MOST; i++) {
        t->queue[i] = turns_queue(t->context, device, 0);
        t->buffer[i] = turns_buffer(t->context, 4096, NULL);
    }
    return t;
}

static void close_target(struct target *t) {
    for (unsigned i = 0; i < MOST; i++) {
        clReleaseMemObject(t->buffer[i]);
        clReleaseCommandQueue(t->queue[i]);
    }
    clReleaseKernel(t->kernel);
    clReleaseProgram(t->program);
    clReleaseContext(t->context);
    free(t);
}

int main(int argc, char **argv) {
    const struct turns turns = {rows, sizeof(rows) / sizeof(*rows), open_target, close_target};
    loops = (cl_int)turns_option(&argc, argv, "--loops", 20000);
    takes_events = turns_option(&argc, argv, "--events", 0) != 0;
    return turns_main(argc, argv, &turns);
}
