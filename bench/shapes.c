/* SPDX-License-Identifier: MIT */
/*
 * What some rounds of commands [10] cost on each platform that is named, in µs, in the shapes that
 * programs have: in one in-order queue, without events, then clFinish, but where a row says more.
 *     shapes [--bytes N] [--loops N] [--rounds N] [--turns N] [--repeat N] PLATFORM…
 * Kernels work on whole buffers of N bytes [1 MiB], and multiply and add `loops` times [400] for
 * each element: on an H100 some 7 µs, and 58 with 64 MiB and one loop.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include "common/turns.h"

#include <stdlib.h>

enum { BUFFERS = 8, PARTS = 4, QUEUES = 4, PART = 1 << 20, PARAMETERS = 16 };

struct target {
    cl_context context;
    cl_command_queue queue[QUEUES], loose;
    cl_program program;
    cl_kernel kernel, scaled;
    cl_mem buffer[BUFFERS], parameters, divided, part[PARTS];
    size_t items;
    float *host;
};

static size_t bytes;
static cl_int loops;
static unsigned count; /* of rounds */

static void give(cl_command_queue queue, cl_kernel kernel, size_t items, cl_uint waits,
                 const cl_event *list, cl_event *event) {
    turns_check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, waits, list, event),
                "clEnqueueNDRangeKernel");
}

static void set(cl_kernel kernel, cl_mem first, cl_mem second) {
    turns_check(clSetKernelArg(kernel, 0, sizeof(first), &first), "clSetKernelArg");
    turns_check(clSetKernelArg(kernel, 1, sizeof(second), &second), "clSetKernelArg");
}

static void run_in(struct target *t, cl_command_queue queue, cl_mem from, cl_mem to) {
    set(t->kernel, from, to);
    give(queue, t->kernel, t->items, 0, NULL, NULL);
}

static void run(struct target *t, unsigned from, unsigned to) {
    run_in(t, t->queue[0], t->buffer[from], t->buffer[to]);
}

static void finish(cl_command_queue queue) { turns_check(clFinish(queue), "clFinish"); }

/* Calls the round as often, and waits. */
static double rounds(struct target *t, void (*round)(struct target *t, unsigned i)) {
    double start = turns_now();
    for (unsigned i = 0; i < count; i++)
        round(t, i);
    finish(t->queue[0]);
    return turns_now() - start;
}

#define ROW(name)                                                                                  \
    static void name##_round(struct target *t, unsigned i);                                        \
    static double name(struct target *t) { return rounds(t, name##_round); }                       \
    static void name##_round(struct target *t, unsigned i)

ROW(chain) {
    (void)i;
    run(t, 0, 0);
}

ROW(turns) { run(t, i % 2, !(i % 2)); }

ROW(three) { run(t, i % 3, (i + 1) % 3); }

ROW(apart) { run(t, i % BUFFERS, i % BUFFERS); }

ROW(waited) {
    run(t, i % 2, !(i % 2));
    finish(t->queue[0]);
}

ROW(marked) {
    cl_event marker;
    (void)i;
    run(t, 0, 0);
    turns_check(clEnqueueMarkerWithWaitList(t->queue[0], 0, NULL, &marker), "marker");
    clFlush(t->queue[0]);
    clReleaseEvent(marker);
}

ROW(copied) {
    (void)i;
    run(t, 0, 1);
    turns_check(
        clEnqueueCopyBuffer(t->queue[0], t->buffer[1], t->buffer[0], 0, 0, bytes, 0, NULL, NULL),
        "clEnqueueCopyBuffer");
}

ROW(copied_box) {
    const size_t origin[3] = {0, 0, 0}, box[3] = {1024, 256, 1};
    (void)i;
    run(t, 0, 1);
    turns_check(clEnqueueCopyBufferRect(t->queue[0], t->buffer[1], t->buffer[2], origin, origin,
                                        box, 2048, 0, 2048, 0, 0, NULL, NULL),
                "clEnqueueCopyBufferRect");
}

ROW(filled) {
    cl_float zero = 0;
    (void)i;
    turns_check(clEnqueueFillBuffer(t->queue[0], t->buffer[0], &zero, sizeof(zero), 0, bytes, 0,
                                    NULL, NULL),
                "clEnqueueFillBuffer");
    run(t, 0, 1);
}

static void write_parameters(struct target *t, unsigned i, cl_bool blocking) {
    turns_check(clEnqueueWriteBuffer(t->queue[0], t->parameters, blocking, 0,
                                     PARAMETERS * sizeof(float), t->host + i * PARAMETERS, 0, NULL,
                                     NULL),
                "clEnqueueWriteBuffer");
    set(t->scaled, t->buffer[0], t->parameters);
    give(t->queue[0], t->scaled, t->items, 0, NULL, NULL);
}

ROW(parameters) { write_parameters(t, i, CL_FALSE); }

ROW(parameters_blocking) { write_parameters(t, i, CL_TRUE); }

static void read_part(struct target *t, cl_bool blocking) {
    run(t, 0, 0);
    turns_check(
        clEnqueueReadBuffer(t->queue[0], t->buffer[0], blocking, 0, PART, t->host, 0, NULL, NULL),
        "clEnqueueReadBuffer");
}

ROW(reads) {
    (void)i;
    read_part(t, CL_FALSE);
}

ROW(reads_blocking) {
    (void)i;
    read_part(t, CL_TRUE);
}

ROW(writes) {
    (void)i;
    turns_check(
        clEnqueueWriteBuffer(t->queue[0], t->buffer[0], CL_FALSE, 0, PART, t->host, 0, NULL, NULL),
        "clEnqueueWriteBuffer");
    run(t, 0, 1);
}

ROW(maps) {
    cl_int error;
    (void)i;
    run(t, 0, 0);
    void *mapped = clEnqueueMapBuffer(t->queue[0], t->buffer[0], CL_TRUE, CL_MAP_READ, 0, 4096, 0,
                                      NULL, NULL, &error);
    turns_check(error, "clEnqueueMapBuffer");
    turns_check(clEnqueueUnmapMemObject(t->queue[0], t->buffer[0], mapped, 0, NULL, NULL), "unmap");
}

ROW(fresh) {
    (void)i;
    cl_mem buffer = turns_buffer(t->context, bytes, NULL);
    run_in(t, t->queue[0], t->buffer[0], buffer);
    run_in(t, t->queue[0], buffer, t->buffer[0]);
    clReleaseMemObject(buffer);
}

ROW(parts) {
    set(t->kernel, t->part[i % PARTS], t->part[(i + 1) % PARTS]);
    give(t->queue[0], t->kernel, t->items / PARTS, 0, NULL, NULL);
}

/* What a part has is brought to the whole, and back. */
ROW(part_and_whole) {
    set(t->kernel, t->part[i % PARTS], t->part[i % PARTS]);
    give(t->queue[0], t->kernel, t->items / PARTS, 0, NULL, NULL);
    run_in(t, t->queue[0], t->divided, t->divided);
}

static double in_queues(struct target *t) {
    double start = turns_now();
    for (unsigned i = 0; i < count; i++)
        run_in(t, t->queue[i % QUEUES], t->buffer[i % BUFFERS], t->buffer[i % BUFFERS]);
    for (unsigned q = 0; q < QUEUES; q++)
        finish(t->queue[q]);
    return turns_now() - start;
}

/* Each waits for the event of the one before, in the queue or in the program. */
static double with_events(struct target *t, cl_command_queue queue, int in_program) {
    cl_event last = NULL;
    double start = turns_now();
    set(t->kernel, t->buffer[0], t->buffer[0]);
    for (unsigned i = 0; i < count; i++) {
        cl_event event;
        cl_uint waits = last && !in_program;
        give(queue, t->kernel, t->items, waits, waits ? &last : NULL, &event);
        if (in_program)
            turns_check(clWaitForEvents(1, &event), "clWaitForEvents");
        if (last)
            clReleaseEvent(last);
        last = event;
    }
    finish(queue);
    clReleaseEvent(last);
    return turns_now() - start;
}

static double events_waited(struct target *t) { return with_events(t, t->queue[0], 1); }

static double events_out_of_order(struct target *t) { return with_events(t, t->loose, 0); }

static const struct turns_row rows[] = {
    {"on one buffer", chain},
    {"two buffers take turns", turns},
    {"three take turns", three},
    {"on eight buffers", apart},
    {"the same in four queues", in_queues},
    {"parts take turns", parts},
    {"a part, then the whole", part_and_whole},
    {"clFinish after each", waited},
    {"an event waited for each", events_waited},
    {"out of order, with events", events_out_of_order},
    {"a marker and clFlush each", marked},
    {"copied back", copied},
    {"a box copied", copied_box},
    {"filled before", filled},
    {"64 bytes written before", parameters},
    {"the same, blocking", parameters_blocking},
    {"1 MiB written before", writes},
    {"1 MiB read", reads},
    {"the same, blocking", reads_blocking},
    {"mapped", maps},
    {"two kernels, fresh buffer", fresh},
};

static cl_kernel make_kernel(const struct target *t, const char *name) {
    cl_kernel kernel = turns_kernel(t->program, name);
    turns_check(clSetKernelArg(kernel, 2, sizeof(loops), &loops), "clSetKernelArg");
    return kernel;
}

static void make_parts(struct target *t) {
    cl_int error;
    for (unsigned i = 0; i < PARTS; i++) {
        cl_buffer_region region = {i * (bytes / PARTS), bytes / PARTS};
        t->part[i] = clCreateSubBuffer(t->divided, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION,
                                       &region, &error);
        turns_check(error, "clCreateSubBuffer");
    }
}

static struct target *open_target(cl_device_id device) {
    static const char *source =
        "__kernel void turn(__global float *from, __global float *to, int loops) {"
        "  int i = get_global_id(0); float x = from[i];"
        "  for (int k = 0; k < loops; k++) x = x * 1.0001f + 0.5f; to[i] = x; }"
        "__kernel void scale(__global float *data, __global const float *by, int loops) {"
        "  int i = get_global_id(0); float x = data[i];"
        "  for (int k = 0; k < loops; k++) x = x * by[0] + 0.5f; data[i] = x; }";
    struct target *t = calloc(1, sizeof(*t));
    if (!t || !(t->host = calloc(1, bytes)))
        exit(1);
    t->items = bytes / sizeof(cl_float);
    t->context = turns_context(device);
    for (unsigned q = 0; q < QUEUES; q++)
        t->queue[q] = turns_queue(t->context, device, 0);
    t->loose = turns_queue(t->context, device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    t->program = turns_program(t->context, device, source);
    t->kernel = make_kernel(t, "turn");
    t->scaled = make_kernel(t, "scale");
    for (unsigned i = 0; i < BUFFERS; i++)
        t->buffer[i] = turns_buffer(t->context, bytes, t->host);
    t->parameters = turns_buffer(t->context, PARAMETERS * sizeof(float), t->host);
    t->divided = turns_buffer(t->context, bytes, t->host);
    make_parts(t);
    return t;
}

static void close_target(struct target *t) {
    for (unsigned i = 0; i < PARTS; i++)
        clReleaseMemObject(t->part[i]);
    for (unsigned i = 0; i < BUFFERS; i++)
        clReleaseMemObject(t->buffer[i]);
    clReleaseMemObject(t->divided);
    clReleaseMemObject(t->parameters);
    clReleaseKernel(t->kernel);
    clReleaseKernel(t->scaled);
    clReleaseProgram(t->program);
    for (unsigned q = 0; q < QUEUES; q++)
        clReleaseCommandQueue(t->queue[q]);
    clReleaseCommandQueue(t->loose);
    clReleaseContext(t->context);
    free(t->host);
    free(t);
}

int main(int argc, char **argv) {
    const struct turns turns = {rows, sizeof(rows) / sizeof(*rows), open_target, close_target};
    bytes = (size_t)turns_option(&argc, argv, "--bytes", 1 << 20);
    loops = (cl_int)turns_option(&argc, argv, "--loops", 400);
    count = (unsigned)turns_option(&argc, argv, "--rounds", 10);
    if (bytes < PART)
        bytes = PART;
    return turns_main(argc, argv, &turns);
}
