/* SPDX-License-Identifier: MIT */
/*
 * Small buffers that kernels mix, whose contents are known here as well: what must come of commands
 * that are executed one after the other.
 */
#ifndef TUTTI_TESTS_MIXING_H
#define TUTTI_TESTS_MIXING_H

#include "support.h"

enum { MOST_TRANSFERS = 512 }; /* until all are known to be over */

/*
 * The program has `add_to(data, by)` and `mix_in(to, a, b)`, which makes 3 to + a - 2 b. Its
 * includer says how many BUFFERS there are, of N elements each.
 */
static cl_program program;
static cl_kernel add_to, mix_in;
static cl_mem buffer[BUFFERS];
static cl_int expected[BUFFERS]; /* of each element */

/* With `group` 0 the driver chooses. */
static void give(cl_command_queue on, cl_kernel kernel, size_t items, size_t group,
                 cl_event *event) {
    ck_ok(
        clEnqueueNDRangeKernel(on, kernel, 1, NULL, &items, group ? &group : NULL, 0, NULL, event));
}

static void add_in_groups(cl_command_queue on, unsigned i, cl_int by, size_t group) {
    ck_ok(clSetKernelArg(add_to, 0, sizeof(buffer[i]), &buffer[i]));
    ck_ok(clSetKernelArg(add_to, 1, sizeof(by), &by));
    give(on, add_to, N, group, NULL);
    expected[i] += by;
}

static void mix_in_groups(cl_command_queue on, unsigned to, unsigned a, unsigned b, size_t group) {
    ck_ok(clSetKernelArg(mix_in, 0, sizeof(buffer[to]), &buffer[to]));
    ck_ok(clSetKernelArg(mix_in, 1, sizeof(buffer[a]), &buffer[a]));
    ck_ok(clSetKernelArg(mix_in, 2, sizeof(buffer[b]), &buffer[b]));
    give(on, mix_in, N, group, NULL);
    cl_uint value = 3 * (cl_uint)expected[to] + (cl_uint)expected[a] - 2 * (cl_uint)expected[b];
    expected[to] = (cl_int)value;
}

static void make_mixed(const char *source) {
    static cl_int zeros[N];
    program = make_program(source);
    add_to = make_kernel(program, "add_to");
    mix_in = make_kernel(program, "mix_in");
    for (unsigned i = 0; i < BUFFERS; i++) {
        buffer[i] = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(zeros), zeros);
        expected[i] = 0;
    }
}

static void all_are(const cl_int *values, unsigned i) {
    for (unsigned k = 0; k < N; k++)
        ck_assert_int_eq(values[k], expected[i]);
}

static void check_mixed(void) {
    for (unsigned i = 0; i < BUFFERS; i++) {
        cl_int values[N];
        ck_ok(clEnqueueReadBuffer(queue, buffer[i], CL_TRUE, 0, sizeof(values), values, 0, NULL,
                                  NULL));
        all_are(values, i);
        ck_ok(clReleaseMemObject(buffer[i]));
    }
    ck_ok(clReleaseKernel(add_to));
    ck_ok(clReleaseKernel(mix_in));
    ck_ok(clReleaseProgram(program));
}

/* What the host writes, reads, maps, fills and copies comes in between. */
static void draw_transfer(cl_command_queue on, cl_uint drawn, unsigned to, unsigned from) {
    static cl_int values[MOST_TRANSFERS][N];
    static unsigned used;
    cl_int *own = values[used++ % MOST_TRANSFERS], pattern = (cl_int)drawn;
    const size_t size = sizeof(values[0]);
    switch (drawn % 6) {
    case 0:
        for (unsigned k = 0; k < N; k++)
            own[k] = (cl_int)drawn;
        ck_ok(clEnqueueWriteBuffer(on, buffer[to], drawn & 64, 0, size, own, 0, NULL, NULL));
        expected[to] = (cl_int)drawn;
        break;
    case 1:
        ck_ok(clEnqueueReadBuffer(on, buffer[to], CL_TRUE, 0, size, own, 0, NULL, NULL));
        all_are(own, to);
        break;
    case 2:
        ck_ok(clEnqueueReadBuffer(on, buffer[to], CL_FALSE, 0, size, own, 0, NULL, NULL));
        break;
    case 3:
        own = ck_made(clEnqueueMapBuffer(on, buffer[to], CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                         size, 0, NULL, NULL, &error));
        all_are(own, to);
        for (unsigned k = 0; k < N; k++)
            own[k] += 5;
        ck_ok(clEnqueueUnmapMemObject(on, buffer[to], own, 0, NULL, NULL));
        expected[to] += 5;
        break;
    case 4:
        ck_ok(
            clEnqueueFillBuffer(on, buffer[to], &pattern, sizeof(pattern), 0, size, 0, NULL, NULL));
        expected[to] = pattern;
        break;
    default:
        if (from == to)
            break;
        ck_ok(clEnqueueCopyBuffer(on, buffer[from], buffer[to], 0, 0, size, 0, NULL, NULL));
        expected[to] = expected[from];
    }
}

/* Queues for such commands, which end with the end of all of them. */
static void open_queues(cl_command_queue *queues, unsigned count,
                        cl_command_queue_properties properties) {
    for (unsigned q = 0; q < count; q++)
        queues[q] = make_queue(properties);
}

static void finish_queues(cl_command_queue *queues, unsigned count) {
    for (unsigned q = 0; q < count; q++) {
        ck_ok(clFinish(queues[q]));
        ck_ok(clReleaseCommandQueue(queues[q]));
    }
}

/* Waits for all that is on one queue, in all others. */
static inline void join_queues(cl_command_queue *queues, unsigned count, unsigned from) {
    cl_event marker;
    ck_ok(clEnqueueMarkerWithWaitList(queues[from], 0, NULL, &marker));
    ck_ok(clFlush(queues[from]));
    for (unsigned q = 0; q < count; q++)
        if (q != from)
            ck_ok(clEnqueueBarrierWithWaitList(queues[q], 1, &marker, NULL));
    ck_ok(clReleaseEvent(marker));
}

/* Waits for the last of the events of one queue, which ends after all the others. */
static inline void wait_for_last(const cl_event *events, unsigned count) {
    ck_ok(clWaitForEvents(1, &events[count - 1]));
    for (unsigned k = 0; k < count; k++) {
        cl_int status;
        ck_ok(clGetEventInfo(events[k], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
                             NULL));
        ck_assert_int_eq(status, CL_COMPLETE);
    }
}

#endif
