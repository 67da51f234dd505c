/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: what may overlap does. A user event that the test holds back proves it without
 * clocks: what passes the command that waits for it did not wait for that command.
 */
#include "native.h"
#include "task_counts.h"

#include <time.h>

enum { N = 1024, BYTES = N * sizeof(cl_int) };

static cl_program program;
static cl_kernel set, add, copy;
static cl_event gate;

static void begin(void) {
    program = make_program(common_source);
    set = make_kernel(program, "set");
    add = make_kernel(program, "add");
    copy = make_kernel(program, "copy");
    gate = make_user_event();
}

static void end(void) {
    ck_ok(clFinish(queue));
    ck_ok(clReleaseEvent(gate));
    ck_ok(clReleaseKernel(set));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseKernel(copy));
    ck_ok(clReleaseProgram(program));
}

static void open_gate(void) { ck_ok(clSetUserEventStatus(gate, CL_COMPLETE)); }

static void run(cl_command_queue on, cl_kernel kernel, cl_mem buffer, cl_int value, bool gated) {
    const size_t all = N;

    ck_ok(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(kernel, 1, sizeof(value), &value));
    ck_ok(
        clEnqueueNDRangeKernel(on, kernel, 1, NULL, &all, NULL, gated, gated ? &gate : NULL, NULL));
}

static void run_copy(cl_command_queue on, cl_mem from, cl_mem to) {
    const size_t all = N;

    ck_ok(clSetKernelArg(copy, 0, sizeof(from), &from));
    ck_ok(clSetKernelArg(copy, 1, sizeof(to), &to));
    ck_ok(clEnqueueNDRangeKernel(on, copy, 1, NULL, &all, NULL, 0, NULL, NULL));
}

static void read_later(cl_command_queue on, cl_mem buffer, cl_int *to) {
    ck_ok(clEnqueueReadBuffer(on, buffer, CL_FALSE, 0, BYTES, to, 0, NULL, NULL));
}

/* The last element of what a non-blocking read brings. */
static bool arrives(cl_int *host, cl_int wanted) { return becomes(&host[N - 1], wanted, 10000); }

/*
 * Looks at memory that a command may be writing, as no event tells of it before its turn: not for
 * ThreadSanitizer.
 */
#define UNORDERED __attribute__((no_sanitize("thread"), noinline))

UNORDERED static bool stays(volatile cl_int *host, cl_int wanted) {
    usleep(50000);
    return host[0] == wanted && host[N - 1] == wanted;
}

static double seconds(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* A buffer that never gets other storage: whoever writes it waits for those who use it. */
static cl_mem make_fixed(cl_int **memory) {
    *memory = calloc(1, BYTES);
    return make_buffer(CL_MEM_USE_HOST_PTR, BYTES, *memory);
}

START_TEST(followers_with_nothing_in_common_go_on) {
    cl_int *memory, *x = calloc(1, BYTES), *y = calloc(1, BYTES);
    cl_mem a = make_fixed(&memory), b = make_buffer(0, BYTES, NULL);
    cl_event marker;

    begin();
    occupy(a);
    run(queue, set, a, 1, false);
    run(queue, set, b, 2, false);
    run(queue, add, b, 3, false);
    read_later(queue, b, y);
    read_later(queue, a, x);
    ck_ok(clEnqueueMarker(queue, &marker));
    ck_ok(clFlush(queue));
    ck_assert_msg(arrives(y, 5), "work on another buffer waited");
    /* Yet nothing is published before its turn, and what uses a waits. */
    ck_assert(stays(x, 0));
    ck_assert_int_eq(event_status(marker), CL_QUEUED);
    vacate();
    ck_ok(clFinish(queue));
    ck_assert_int_eq(event_status(marker), CL_COMPLETE);
    ck_assert(x[0] == 1 && x[N - 1] == 1);
    ck_ok(clReleaseEvent(marker));
    free(x);
    free(y);
    ck_ok(clReleaseMemObject(a));
    ck_ok(clReleaseMemObject(b));
    free(memory);
    end();
}
END_TEST

/* A native kernel may look at what its queue does with host memory, and at nothing else. */
START_TEST(native_kernels_overlap_device_work) {
    cl_mem b = make_buffer(0, BYTES, NULL);
    cl_int *seen = calloc(1, BYTES), *later = calloc(1, BYTES);
    cl_command_queue other = make_queue(0);

    begin();
    native_state = 0;
    ck_ok(clEnqueueNativeKernel(queue, stay, NULL, 0, 0, NULL, NULL, 0, NULL, NULL));
    run(queue, set, b, 2, false);
    read_later(queue, b, later);
    ck_ok(clFlush(queue));
    while (native_state != 1)
        usleep(200);
    read_later(other, b, seen); /* the buffer orders it after the kernel */
    ck_ok(clFlush(other));
    ck_assert_msg(arrives(seen, 2), "a kernel waited for a native kernel");
    ck_assert(stays(later, 0));
    native_state = 2;
    ck_ok(clFinish(queue));
    ck_assert(later[0] == 2 && later[N - 1] == 2);
    ck_ok(clFinish(other));
    ck_ok(clReleaseCommandQueue(other));
    free(seen);
    free(later);
    ck_ok(clReleaseMemObject(b));
    end();
}
END_TEST

START_TEST(held_readers_hold_writers_but_not_readers) {
    cl_int *memory;
    cl_mem a = make_buffer(0, BYTES, NULL), b = make_fixed(&memory);
    cl_int *x = calloc(1, BYTES), *y = calloc(1, BYTES), *z = calloc(1, BYTES);

    begin();
    run(queue, set, a, 7, false);
    ck_ok(clFinish(queue));
    occupy(b);
    run_copy(queue, a, b); /* waits for b; reads a */
    read_later(queue, a, x);
    ck_ok(clFlush(queue));
    ck_assert_msg(arrives(x, 7), "a reader waited for a reader");
    run(queue, set, a, 9, false); /* must wait, else b gets 9 */
    read_later(queue, b, y);
    read_later(queue, a, z);
    ck_ok(clFlush(queue));
    ck_assert(stays(y, 0));
    vacate();
    ck_ok(clFinish(queue));
    ck_assert_msg(y[0] == 7 && y[N - 1] == 7, "the held reader saw %d", y[0]);
    ck_assert_int_eq(z[N - 1], 9);
    free(x);
    free(y);
    free(z);
    ck_ok(clReleaseMemObject(a));
    ck_ok(clReleaseMemObject(b));
    free(memory);
    end();
}
END_TEST

START_TEST(parts_of_one_buffer_keep_their_order) {
    cl_mem whole = make_buffer(0, 2 * BYTES, NULL);
    cl_buffer_region low = {0, BYTES}, high = {BYTES, BYTES};
    cl_mem part[2];
    cl_int *x = calloc(2, BYTES);

    begin();
    part[0] = ck_made(clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &low, &error));
    part[1] = ck_made(clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &high, &error));
    run(queue, set, part[0], 1, false);
    run(queue, set, part[1], 1, false);
    run(queue, add, part[0], 10, true); /* held */
    run(queue, add, whole, 100, false);
    run(queue, set, part[1], 5, false);
    ck_ok(clEnqueueReadBuffer(queue, whole, CL_FALSE, 0, 2 * BYTES, x, 0, NULL, NULL));
    ck_ok(clFlush(queue));
    ck_assert(stays(x, 0));
    open_gate();
    ck_ok(clFinish(queue));
    ck_assert_int_eq(x[0], 111);
    ck_assert_int_eq(x[N], 5);
    free(x);
    ck_ok(clReleaseMemObject(part[0]));
    ck_ok(clReleaseMemObject(part[1]));
    ck_ok(clReleaseMemObject(whole));
    end();
}
END_TEST

START_TEST(host_memory_holds_too) {
    cl_mem a = make_buffer(0, BYTES, NULL), b = make_buffer(0, BYTES, NULL);
    cl_mem c = make_buffer(0, BYTES, NULL);
    cl_int *shared = calloc(1, BYTES), *other = calloc(1, BYTES), *x = calloc(1, BYTES);

    begin();
    run(queue, set, a, 4, false);
    ck_ok(clFinish(queue));
    occupy(a);
    read_later(queue, a, shared); /* waits for a */
    ck_ok(clEnqueueWriteBuffer(queue, b, CL_FALSE, 0, BYTES, shared, 0, NULL, NULL));
    read_later(queue, b, x); /* held by the host memory */
    /* Nothing in common with any of them. */
    run(queue, set, c, 6, false);
    read_later(queue, c, other);
    ck_ok(clFlush(queue));
    ck_assert(arrives(other, 6));
    ck_assert(stays(x, 0));
    vacate();
    ck_ok(clFinish(queue));
    ck_assert_int_eq(x[N - 1], 4);
    free(shared);
    free(other);
    free(x);
    ck_ok(clReleaseMemObject(a));
    ck_ok(clReleaseMemObject(b));
    ck_ok(clReleaseMemObject(c));
    end();
}
END_TEST

static void CL_CALLBACK note_call(void *data) { *(*(volatile cl_int **)data) = 1; }

START_TEST(fences_hold_all_that_follows) {
    cl_mem a = make_buffer(0, BYTES, NULL), b = make_buffer(0, BYTES, NULL);
    cl_int *x = calloc(1, BYTES), *y = calloc(1, BYTES), called = 0, *pointer = &called;

    begin();
    run(queue, set, a, 1, true);
    ck_ok(clEnqueueNativeKernel(queue, note_call, &pointer, sizeof(pointer), 0, NULL, NULL, 0, NULL,
                                NULL));
    run(queue, set, b, 2, false);
    read_later(queue, b, y);
    ck_ok(clEnqueueBarrier(queue));
    read_later(queue, b, x);
    ck_ok(clFlush(queue));
    ck_assert(stays(y, 0));
    ck_assert_int_eq(called, 0);
    open_gate();
    ck_ok(clFinish(queue));
    ck_assert(called == 1 && y[0] == 2 && x[0] == 2);
    free(x);
    free(y);
    ck_ok(clReleaseMemObject(a));
    ck_ok(clReleaseMemObject(b));
    end();
}
END_TEST

START_TEST(blocking_calls_wait_for_what_they_need) {
    cl_mem a = make_buffer(0, BYTES, NULL), b = make_buffer(0, BYTES, NULL);
    cl_command_queue other = make_queue(0);
    cl_int seen = 0, value = 4;

    begin();
    run(queue, set, a, 1, true);
    run(other, set, b, 2, false);
    ck_ok(clEnqueueReadBuffer(other, b, CL_TRUE, 0, 4, &seen, 0, NULL, NULL));
    ck_assert_int_eq(seen, 2);
    ck_ok(clEnqueueWriteBuffer(other, b, CL_TRUE, 0, 4, &value, 0, NULL, NULL));
    ck_ok(clEnqueueReadBuffer(other, b, CL_TRUE, 0, 4, &seen, 0, NULL, NULL));
    ck_assert_int_eq(seen, 4);
    open_gate();
    ck_ok(clFinish(queue));
    ck_ok(clReleaseCommandQueue(other));
    ck_ok(clReleaseMemObject(a));
    ck_ok(clReleaseMemObject(b));
    end();
}
END_TEST

/* Beside a native kernel of another queue, and what waits for it or for the program in this one. */
START_TEST(blocking_calls_pass_what_is_held) {
    enum { ROUNDS = 10 };
    cl_command_queue loose = make_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    cl_int *memory, seen = 0, value = 4;
    cl_mem a = make_fixed(&memory), x = make_buffer(0, BYTES, NULL);
    cl_mem c = make_buffer(0, BYTES, NULL);

    begin();
    run(queue, set, x, 0, false);
    ck_ok(clFinish(queue));
    for (int round = 1; round <= ROUNDS; round++) {
        cl_event added;

        occupy(a);
        run(loose, set, a, round, false);
        run(loose, set, c, 1, round == ROUNDS);
        run(loose, add, x, 1, false);
        ck_ok(clEnqueueMarkerWithWaitList(loose, 0, NULL, NULL)); /* waits for all of them */
        ck_ok(clEnqueueReadBuffer(queue, x, CL_TRUE, 0, 4, &seen, 0, NULL, NULL));
        ck_assert_int_eq(seen, round == 1 ? 1 : 5);
        ck_ok(clEnqueueWriteBuffer(loose, x, CL_TRUE, 0, 4, &value, 0, NULL, NULL));
        ck_ok(clEnqueueReadBuffer(loose, x, CL_TRUE, 0, 4, &seen, 0, NULL, NULL));
        ck_assert_int_eq(seen, 4);
        ck_ok(clEnqueueFillBuffer(loose, x, &value, 4, 0, BYTES, 0, NULL, &added));
        cl_int *map = ck_made(
            clEnqueueMapBuffer(loose, x, CL_TRUE, CL_MAP_READ, 0, BYTES, 1, &added, NULL, &error));
        ck_assert_int_eq(map[N - 1], 4);
        ck_ok(clEnqueueUnmapMemObject(loose, x, map, 0, NULL, NULL));
        ck_ok(clReleaseEvent(added));
        vacate(); /* which was there all the time */
        if (round == ROUNDS)
            open_gate();
        ck_ok(clFinish(loose));
    }
    ck_ok(clReleaseCommandQueue(loose));
    ck_ok(clReleaseMemObject(a));
    ck_ok(clReleaseMemObject(x));
    ck_ok(clReleaseMemObject(c));
    free(memory);
    end();
}
END_TEST

/* 100,000 commands behind one: accepted at once, in a time that grows with their number only. */
static void crowd(cl_command_queue_properties kind) {
    cl_command_queue on = make_queue(kind), other = make_queue(0);
    int many = (int)test_size("TUTTI_TEST_COMMANDS", 100000);
    cl_mem a[4], b = make_buffer(0, BYTES, NULL);
    cl_int *x = calloc(1, BYTES), *y = calloc(1, BYTES), host[64] = {0}, value = 2;
    cl_event held;
    double start;

    begin();
    for (int i = 0; i < 4; i++) {
        a[i] = make_buffer(0, BYTES, NULL);
        run(queue, set, a[i], 0, false);
    }
    ck_ok(clFinish(queue));
    ck_ok(clEnqueueFillBuffer(on, a[0], &value, 4, 0, BYTES, 1, &gate, &held));
    start = seconds();
    for (int i = 0; i < many; i++) {
        cl_mem target = a[i % 4];

        if (kind) /* nothing but events orders an out-of-order queue */
            ck_ok(clEnqueueFillBuffer(on, target, &i, 4, 64, 64, 1, &held, NULL));
        else if (i % 1000 == 0)
            ck_ok(clEnqueueReadBuffer(on, a[0], CL_FALSE, 0, 64, &host[0], 0, NULL, NULL));
        else if (i % 2 == 0)
            ck_ok(clEnqueueFillBuffer(on, target, &i, 4, 64, 64, 0, NULL, NULL));
        else
            ck_ok(clEnqueueCopyBuffer(on, a[0], target == a[0] ? a[1] : target, 0, 0, 64, 0, NULL,
                                      NULL));
    }
    ck_assert_msg(seconds() - start < 60, "%d commands took %.1f s to be accepted", many,
                  seconds() - start);
    ck_assert_int_gt(event_status(held), CL_COMPLETE);
    /* Independent ones pass, in another queue, and in this one if it is out of order. */
    if (kind) {
        int eight = 8;
        cl_event filled;

        ck_ok(clEnqueueFillBuffer(on, b, &eight, 4, 0, BYTES, 0, NULL, &filled));
        ck_ok(clEnqueueReadBuffer(on, b, CL_TRUE, 0, BYTES, x, 1, &filled, NULL));
        ck_ok(clReleaseEvent(filled));
        ck_assert_int_eq(x[N - 1], 8);
    }
    run(other, set, b, 9, false);
    ck_ok(clEnqueueReadBuffer(other, b, CL_TRUE, 0, BYTES, y, 0, NULL, NULL));
    ck_assert_int_eq(y[0], 9);
    ck_assert_int_gt(event_status(held), CL_COMPLETE);
    open_gate();
    ck_ok(clFinish(on));
    ck_assert_int_eq(event_status(held), CL_COMPLETE);
    ck_ok(clEnqueueReadBuffer(other, a[0], CL_TRUE, 0, BYTES, y, 0, NULL, NULL));
    ck_assert_int_eq(y[0], 2);
    ck_ok(clReleaseEvent(held));
    for (int i = 0; i < 4; i++)
        ck_ok(clReleaseMemObject(a[i]));
    ck_ok(clReleaseMemObject(b));
    ck_ok(clReleaseCommandQueue(on));
    ck_ok(clReleaseCommandQueue(other));
    free(x);
    free(y);
    end();
}

START_TEST(a_crowd_behind_a_gate_in_order) { crowd(0); }
END_TEST

START_TEST(a_crowd_behind_a_gate_out_of_order) { crowd(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE); }
END_TEST

/* The parts differ, so only the buffer orders them: each is granted by the end of the one before.
 */
START_TEST(a_crowd_of_unmaps_behind_a_native_kernel) {
    enum { QUEUES = 80, MAPS = 200, PART = 16 };
    cl_mem buffer = make_buffer(0, QUEUES * MAPS * PART, NULL);
    cl_command_queue on[QUEUES];
    cl_char zero = 0, *map[QUEUES][MAPS], *all = malloc(QUEUES * MAPS * PART);

    ck_ok(clEnqueueFillBuffer(queue, buffer, &zero, 1, 0, QUEUES * MAPS * PART, 0, NULL, NULL));
    for (int q = 0; q < QUEUES; q++) {
        on[q] = make_queue(0);
        for (int i = 0; i < MAPS; i++)
            map[q][i] = ck_made(clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_WRITE,
                                                   (size_t)(q * MAPS + i) * PART, PART, 0, NULL,
                                                   NULL, &error));
    }
    occupy(buffer);
    for (int q = 0; q < QUEUES; q++)
        for (int i = 0; i < MAPS; i++) {
            map[q][i][0] = 1;
            ck_ok(clEnqueueUnmapMemObject(on[q], buffer, map[q][i], 0, NULL, NULL));
        }
    vacate();
    for (int q = 0; q < QUEUES; q++) {
        ck_ok(clFinish(on[q]));
        ck_ok(clReleaseCommandQueue(on[q]));
    }
    ck_ok(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, QUEUES * MAPS * PART, all, 0, NULL, NULL));
    int right = 0;
    while (right < QUEUES * MAPS * PART && all[right] == (right % PART == 0))
        right++;
    ck_assert_int_eq(right, QUEUES * MAPS * PART);
    free(all);
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

/* Once it may go, it comes before what the program enqueued after it and has not begun yet. */
START_TEST(what_was_held_comes_in_its_turn) {
    enum { OTHERS = 32, ROUNDS = 10000 };
    const size_t all = N;
    const cl_int rounds = ROUNDS;
    cl_mem buffer, own[OTHERS];
    cl_event held, others[OTHERS];
    cl_kernel slow;
    cl_ulong held_end, last_start, counts[REAL];

    skip_if(read_counts(counts) < 2, "a device that is alone may be given all of them at once");
    buffer = make_buffer(0, BYTES, NULL);
    begin();
    slow = make_kernel(program, "slow");
    cl_command_queue profiled = make_queue(CL_QUEUE_PROFILING_ENABLE),
                     other = make_queue(CL_QUEUE_PROFILING_ENABLE);
    run(queue, set, buffer, 1, false); /* so that it is built, and known to be short */
    ck_ok(clFinish(queue));
    ck_ok(clSetKernelArg(set, 0, sizeof(buffer), &buffer));
    ck_ok(clEnqueueNDRangeKernel(profiled, set, 1, NULL, &all, NULL, 1, &gate, &held));
    ck_ok(clSetKernelArg(slow, 1, sizeof(rounds), &rounds));
    for (int i = 0; i < OTHERS; i++) {
        own[i] = make_buffer(0, BYTES, NULL);
        ck_ok(clSetKernelArg(slow, 0, sizeof(own[i]), &own[i]));
        ck_ok(clEnqueueNDRangeKernel(other, slow, 1, NULL, &all, NULL, 0, NULL, &others[i]));
    }
    ck_ok(clWaitForEvents(1, &others[0]));
    open_gate();
    ck_ok(clFinish(profiled));
    ck_ok(clFinish(other));
    ck_ok(
        clGetEventProfilingInfo(held, CL_PROFILING_COMMAND_END, sizeof(held_end), &held_end, NULL));
    ck_ok(clGetEventProfilingInfo(others[OTHERS - 1], CL_PROFILING_COMMAND_START,
                                  sizeof(last_start), &last_start, NULL));
    ck_assert_uint_lt(held_end, last_start);
    for (int i = 0; i < OTHERS; i++) {
        ck_ok(clReleaseEvent(others[i]));
        ck_ok(clReleaseMemObject(own[i]));
    }
    ck_ok(clReleaseEvent(held));
    ck_ok(clReleaseKernel(slow));
    ck_ok(clReleaseCommandQueue(profiled));
    ck_ok(clReleaseCommandQueue(other));
    end();
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        followers_with_nothing_in_common_go_on,
        native_kernels_overlap_device_work,
        held_readers_hold_writers_but_not_readers,
        parts_of_one_buffer_keep_their_order,
        host_memory_holds_too,
        fences_hold_all_that_follows,
        blocking_calls_wait_for_what_they_need,
        blocking_calls_pass_what_is_held,
        a_crowd_behind_a_gate_in_order,
        a_crowd_behind_a_gate_out_of_order,
        a_crowd_of_unmaps_behind_a_native_kernel,
        what_was_held_comes_in_its_turn,
    };

    test_prefer_pocl();
    return test_main(argc, argv, tests, COUNT(tests));
}
