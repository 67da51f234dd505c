/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: callbacks come one after the other, in the order of their events, and nothing else
 * waits for one: neither devices, nor transfers, nor clFinish.
 */
#include "gate.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { N = 1024, BYTES = N * sizeof(cl_int), WARM = 20, MANY = 200, EACH = 3 };

static cl_program program;
static cl_kernel add;
static cl_command_queue plain, other;
static cl_mem data[2]; /* of the one queue, and of the other */
static atomic_int
    state; /* 1: a callback is at it, 2: it may return, 3: nobody let it for a minute */
static atomic_bool returned;

static void run(cl_command_queue on, cl_mem mem, cl_int value, cl_event *event) {
    const size_t all = N;

    ck_ok(clSetKernelArg(add, 0, sizeof(mem), &mem));
    ck_ok(clSetKernelArg(add, 1, sizeof(value), &value));
    ck_ok(clEnqueueNDRangeKernel(on, add, 1, NULL, &all, NULL, 0, NULL, event));
}

/* How long the kernel takes is known then. */
static void begin_all(void) {
    static const cl_int zero;

    begin();
    program = make_program(common_source);
    add = make_kernel(program, "add");
    plain = make_queue(0);
    other = make_queue(0);
    state = 0;
    returned = false;
    for (int i = 0; i < 2; i++) {
        data[i] = make_buffer(0, BYTES, NULL);
        ck_ok(clEnqueueFillBuffer(plain, data[i], &zero, sizeof(zero), 0, BYTES, 0, NULL, NULL));
    }
    for (int i = 0; i < WARM; i++) {
        run(plain, data[0], 0, NULL);
        ck_ok(clFinish(plain));
    }
}

static void end_all(void) {
    ck_ok(clReleaseMemObject(data[0]));
    ck_ok(clReleaseMemObject(data[1]));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
    ck_ok(clReleaseCommandQueue(plain));
    ck_ok(clReleaseCommandQueue(other));
    end();
}

static void CL_CALLBACK hold(cl_event event, cl_int status, void *unused) {
    (void)event;
    (void)status;
    (void)unused;
    state = 1;
    for (int i = 0; i < 300000 && state != 2; i++)
        usleep(200);
    if (state != 2)
        state = 3;
    returned = true;
}

static void await_true(const atomic_bool *what) {
    for (int i = 0; i < 60000 && !*what; i++)
        usleep(1000);
    ck_assert(*what);
}

/* Kernels, and reads that wait and that do not, of both queues; each of them to its end. */
static void work_beside(int round) {
    static cl_int seen[2][N];
    cl_command_queue queues[2] = {plain, other};
    cl_int one = 0;

    for (int q = 0; q < 2; q++) {
        for (int i = 0; i < MANY; i++)
            run(queues[q], data[q], 1, NULL);
        ck_ok(clEnqueueReadBuffer(queues[q], data[q], CL_FALSE, 0, BYTES, seen[q], 0, NULL, NULL));
    }
    for (int q = 0; q < 2; q++) {
        ck_ok(clFinish(queues[q]));
        ck_assert_int_eq(seen[q][N - 1], (round + 1) * MANY);
        ck_ok(
            clEnqueueReadBuffer(queues[q], data[q], CL_TRUE, 0, sizeof(one), &one, 0, NULL, NULL));
        ck_assert_int_eq(one, (round + 1) * MANY);
    }
}

/* The last command of the queue has it, so that clFinish might wait for both. */
static void hold_by(cl_command_type type) {
    static cl_int seen[N];
    cl_event event;

    begin_all();
    if (type == CL_COMMAND_NDRANGE_KERNEL)
        run(plain, data[0], 0, &event);
    else if (type == CL_COMMAND_READ_BUFFER)
        ck_ok(clEnqueueReadBuffer(plain, data[0], CL_FALSE, 0, BYTES, seen, 0, NULL, &event));
    else
        ck_ok(clEnqueueMarker(plain, &event));
    ck_ok(clSetEventCallback(event, CL_COMPLETE, hold, NULL));
    ck_ok(clFinish(plain));
    for (int round = 0; round < 3; round++)
        work_beside(round);
    for (int i = 0; i < 60000 && state == 0; i++)
        usleep(1000); /* until it is called */
    for (int round = 3; round < 6; round++)
        work_beside(round);
    ck_assert_int_eq(event_status(event), CL_COMPLETE);
    ck_ok(clWaitForEvents(1, &event));
    ck_ok(clReleaseEvent(event));
    ck_assert_msg(state == 1 && !returned, "something waited for the callback");
    state = 2;
    await_true(&returned);
    end_all();
}

START_TEST(of_a_kernel_holds_nothing) { hold_by(CL_COMMAND_NDRANGE_KERNEL); }
END_TEST

START_TEST(of_a_read_holds_nothing) { hold_by(CL_COMMAND_READ_BUFFER); }
END_TEST

START_TEST(of_a_marker_holds_nothing) { hold_by(CL_COMMAND_MARKER); }
END_TEST

/* Numbers of the callbacks, in the order of their calls. */
static struct {
    pthread_mutex_t lock;
    int count, number[MANY * EACH];
    atomic_bool all; /* as many as `wanted` */
    int wanted;
} calls = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void CL_CALLBACK note(cl_event event, cl_int status, void *number) {
    (void)event;
    (void)status;
    pthread_mutex_lock(&calls.lock);
    calls.number[calls.count++] = (int)(intptr_t)number;
    if (calls.count == calls.wanted)
        calls.all = true;
    pthread_mutex_unlock(&calls.lock);
}

static void expect_calls(int wanted) {
    calls.count = 0;
    calls.all = false;
    calls.wanted = wanted;
}

static void ck_calls(void) {
    await_true(&calls.all);
    for (int i = 0; i < calls.wanted; i++)
        ck_assert_msg(calls.number[i] == i, "call %d is of callback %d", i, calls.number[i]);
}

/* All of them wait for the gate, so that each event has its callbacks before it is over. */
static void call_in_order(bool gated) {
    static cl_event events[MANY];
    cl_int value = 1;

    begin_all();
    expect_calls(MANY * EACH);
    if (gated)
        ck_ok(clEnqueueBarrierWithWaitList(plain, 1, &gate, NULL));
    for (int i = 0; i < MANY; i++) {
        if (i % 4 == 3) /* the host's, and on another buffer */
            ck_ok(clEnqueueFillBuffer(plain, buffer, &value, 4, 0, 256, 0, NULL, &events[i]));
        else
            run(plain, data[i % 2], 1, &events[i]);
        for (int c = 0; c < EACH; c++)
            ck_ok(
                clSetEventCallback(events[i], CL_COMPLETE, note, (void *)(intptr_t)(i * EACH + c)));
    }
    if (gated)
        ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    ck_ok(clFinish(plain));
    ck_calls();
    for (int i = 0; i < MANY; i++)
        ck_ok(clReleaseEvent(events[i]));
    end_all();
}

START_TEST(come_in_order) { call_in_order(false); }
END_TEST

START_TEST(come_in_order_behind_a_gate) { call_in_order(true); }
END_TEST

/* Whatever the order in which they were given. */
START_TEST(come_by_status) {
    const cl_int types[] = {CL_COMPLETE, CL_RUNNING, CL_SUBMITTED};
    cl_event event;

    begin_all();
    expect_calls(COUNT(types) * EACH);
    ck_ok(clEnqueueBarrierWithWaitList(plain, 1, &gate, NULL));
    run(plain, data[0], 1, &event);
    for (size_t t = 0; t < COUNT(types); t++)
        for (int c = 0; c < EACH; c++)
            ck_ok(clSetEventCallback(event, types[t], note,
                                     (void *)(intptr_t)((COUNT(types) - 1 - t) * EACH + c)));
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    ck_ok(clWaitForEvents(1, &event));
    ck_calls();
    ck_ok(clReleaseEvent(event));
    end_all();
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        of_a_kernel_holds_nothing,   of_a_read_holds_nothing,
        of_a_marker_holds_nothing,   come_in_order,
        come_in_order_behind_a_gate, come_by_status,
    };

    test_prefer_pocl();
    return test_main(argc, argv, tests, COUNT(tests));
}
