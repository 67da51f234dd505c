/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: errors in the graph. A command that fails ends its dependants, harms nothing else,
 * and leaves its memory objects usable. Devices work in memory of their own
 * (TUTTI_TRANSFER=staged), so that a copy which was forgotten shows.
 */
#include "refusal.h"
#include "support.h"

#define ENDED_BY_ANOTHER CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST

enum { N = 1024, BYTES = N * sizeof(cl_int) };

static const char source[] =
    "kernel void set(global int *out, int value) { out[get_global_id(0)] = value; }\n"
    "kernel void add(global int *data, int value) { data[get_global_id(0)] += value; }\n"
    "kernel void add_first(global const int *in, global int *data)\n"
    "{ data[get_global_id(0)] += in[0] + 1; }\n"
    /* Takes some time: x is odd. */
    "kernel void work(global int *data, int rounds) {\n"
    "    int x = (int)get_global_id(0) | 1;\n"
    "    for (int r = 0; r < rounds; r++) x = (x * 3 + 2) ^ ((x >> 7) & ~1);\n"
    "    data[get_global_id(0)] += x == 2 * rounds; }\n";

static cl_program program;
static cl_kernel set, add, add_first, work;
static cl_event gate;

static void begin(void) {
    program = make_program(source);
    set = make_kernel(program, "set");
    add = make_kernel(program, "add");
    add_first = make_kernel(program, "add_first");
    work = make_kernel(program, "work");
    gate = make_user_event();
}

static void end(void) {
    ck_ok(clFinish(queue));
    ck_ok(clReleaseEvent(gate));
    ck_ok(clReleaseKernel(set));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseKernel(add_first));
    ck_ok(clReleaseKernel(work));
    ck_ok(clReleaseProgram(program));
}

static cl_event run_after(cl_command_queue on, cl_kernel kernel, cl_mem buffer, cl_int value,
                          const cl_event *after) {
    const size_t all = N;
    cl_event event;

    ck_ok(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(kernel, 1, sizeof(value), &value));
    ck_ok(clEnqueueNDRangeKernel(on, kernel, 1, NULL, &all, NULL, after ? 1 : 0, after, &event));
    return event;
}

static void run(cl_command_queue on, cl_kernel kernel, cl_mem buffer, cl_int value) {
    ck_ok(clReleaseEvent(run_after(on, kernel, buffer, value, NULL)));
}

static void check_all(cl_mem buffer, cl_int wanted) {
    cl_int seen[N];

    read_ints(buffer, seen, N);
    for (int i = 0; i < N; i++)
        ck_assert_msg(seen[i] == wanted, "[%d] is %d, expected %d", i, seen[i], wanted);
}

START_TEST(a_failed_gate_fails_its_command_only) {
    cl_mem a = make_buffer(0, BYTES, NULL), b = make_buffer(0, BYTES, NULL);
    cl_int *x = calloc(1, BYTES), *y = calloc(1, BYTES), value = 3;
    cl_event held, follower;

    begin();
    run(queue, set, a, 1);
    ck_ok(clEnqueueFillBuffer(queue, a, &value, 4, 0, BYTES, 1, &gate, &held));
    ck_ok(clEnqueueFillBuffer(queue, b, &value, 4, 0, BYTES, 0, NULL, &follower));
    run(queue, add, a, 1);
    ck_ok(clEnqueueReadBuffer(queue, a, CL_FALSE, 0, BYTES, x, 0, NULL, NULL));
    ck_ok(clEnqueueReadBuffer(queue, b, CL_FALSE, 0, BYTES, y, 0, NULL, NULL));
    ck_ok(clFlush(queue));
    ck_ok(clSetUserEventStatus(gate, -77));
    clFinish(queue);
    ck_assert_int_eq(event_status(held), ENDED_BY_ANOTHER);
    ck_assert_int_eq(event_status(follower), CL_COMPLETE);
    ck_assert_int_eq(x[0], 2); /* the fill did nothing */
    ck_assert_int_eq(y[0], 3);
    ck_ok(clReleaseEvent(held));
    ck_ok(clReleaseEvent(follower));
    free(x);
    free(y);
    ck_ok(clReleaseMemObject(a));
    ck_ok(clReleaseMemObject(b));
    end();
}
END_TEST

/*
 * What fails through its wait list is the program's own doing, by a user event: clFinish tells of
 * the driver's failures alone, as programs expect that did the former on purpose. Who waits for the
 * event is told.
 */
static void finish_after_a_failed_gate(cl_command_queue_properties kind) {
    cl_command_queue on = make_queue(kind);
    cl_mem a = make_buffer(0, BYTES, NULL), b = make_buffer(0, BYTES, NULL);
    cl_int seen = 0;
    cl_event event[2], marker;

    begin();
    run(on, set, a, 1);
    ck_ok(clFinish(on));
    event[0] = run_after(on, set, a, 2, &gate);
    event[1] = run_after(on, set, b, 2, &event[0]);
    ck_ok(clEnqueueMarkerWithWaitList(on, 2, event, &marker));
    ck_ok(clFlush(on));
    ck_ok(clSetUserEventStatus(gate, -5));
    ck_ok(clFinish(on));
    ck_assert_cl(clWaitForEvents(2, event), ENDED_BY_ANOTHER);
    ck_assert_cl(clWaitForEvents(1, &marker), ENDED_BY_ANOTHER);
    for (int i = 0; i < 2; i++)
        ck_assert_cl(event_status(event[i]), ENDED_BY_ANOTHER);
    ck_assert_cl(clEnqueueReadBuffer(on, a, CL_TRUE, 0, sizeof(seen), &seen, 2, event, NULL),
                 ENDED_BY_ANOTHER);
    ck_ok(clFinish(on));
    ck_ok(clEnqueueReadBuffer(on, a, CL_TRUE, 0, sizeof(seen), &seen, 0, NULL, NULL));
    ck_assert_int_eq(seen, 1);
    ck_ok(clReleaseEvent(event[0]));
    ck_ok(clReleaseEvent(event[1]));
    ck_ok(clReleaseEvent(marker));
    ck_ok(clReleaseMemObject(a));
    ck_ok(clReleaseMemObject(b));
    ck_ok(clReleaseCommandQueue(on));
    end();
}

START_TEST(clfinish_tells_nothing_of_a_failed_gate) {
    finish_after_a_failed_gate(0);
    finish_after_a_failed_gate(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
}
END_TEST

/* Twelve buffers that no real device can hold together. */
enum { MUCH = 12 };
static const char much_source[] =
    "kernel void much(global int *a, global int *b, global int *c, global int *d, global int *e,\n"
    "    global int *f, global int *g, global int *h, global int *i, global int *j,\n"
    "    global int *k, global int *l)\n"
    "{ l[0] = a[0] + b[0] + c[0] + d[0] + e[0] + f[0] + g[0] + h[0] + i[0] + j[0] + k[0]; }\n";

START_TEST(a_command_that_fails_harms_only_its_dependants) {
    cl_ulong largest = get_info(cl_ulong, clGetDeviceInfo, device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    cl_ulong memory = get_info(cl_ulong, clGetDeviceInfo, device, CL_DEVICE_GLOBAL_MEM_SIZE);
    cl_program much_program = make_program(much_source);
    cl_kernel much = make_kernel(much_program, "much");
    cl_mem big[MUCH], b = make_buffer(0, BYTES, NULL);
    cl_int *y = calloc(1, BYTES), value = 3, seen = 0;
    cl_event failing, dependant, follower;
    const size_t one = 1;

    skip_if(largest > SIZE_MAX / 2 || MUCH * largest <= memory, "all buffers fit on this device");
    begin();
    for (cl_uint i = 0; i < MUCH; i++) {
        big[i] = make_buffer(0, (size_t)largest, NULL);
        ck_ok(clSetKernelArg(much, i, sizeof(cl_mem), &big[i]));
    }
    ck_ok(clEnqueueFillBuffer(queue, big[0], &value, 4, 0, 64, 0, NULL, NULL));
    ck_ok(clEnqueueNDRangeKernel(queue, much, 1, NULL, &one, NULL, 0, NULL, &failing));
    ck_ok(clEnqueueFillBuffer(queue, b, &value, 4, 0, BYTES, 1, &failing, &dependant));
    run(queue, set, b, 8);
    ck_ok(clEnqueueReadBuffer(queue, b, CL_FALSE, 0, BYTES, y, 0, NULL, &follower));
    ck_assert_cl(clFinish(queue), CL_MEM_OBJECT_ALLOCATION_FAILURE);
    ck_ok(clFinish(queue)); /* told once */
    ck_assert_int_eq(event_status(failing), CL_MEM_OBJECT_ALLOCATION_FAILURE);
    ck_assert_int_eq(event_status(dependant), ENDED_BY_ANOTHER);
    ck_assert_int_eq(event_status(follower), CL_COMPLETE);
    ck_assert_int_eq(y[N - 1], 8);
    /* What the kernel would have used is good. */
    ck_ok(clEnqueueReadBuffer(queue, big[0], CL_TRUE, 60, 4, &seen, 0, NULL, NULL));
    ck_assert_int_eq(seen, 3);
    ck_ok(clReleaseEvent(failing));
    ck_ok(clReleaseEvent(dependant));
    ck_ok(clReleaseEvent(follower));
    for (int i = 0; i < MUCH; i++)
        ck_ok(clReleaseMemObject(big[i]));
    ck_ok(clReleaseMemObject(b));
    ck_ok(clReleaseKernel(much));
    ck_ok(clReleaseProgram(much_program));
    free(y);
    end();
}
END_TEST

/*
 * A kernel whose device has no memory for it fails as it is executed, after those that wait for it
 * were given to StarPU: they do nothing. With `early`, all of them are collected behind another
 * kernel. (One that overwrites all would leave nobody knows what.)
 */
static void fail_late(cl_command_queue_properties kind, bool early) {
    cl_command_queue on = make_queue(kind);
    cl_mem big = make_buffer(0, REFUSED, NULL), small = make_buffer(0, BYTES, NULL);
    cl_int back = 77, value = 55;
    cl_event failing, after[4], wait;
    const size_t all = N;

    begin();
    run(queue, set, small, 3);
    ck_ok(clFinish(queue));
    atomic_store(&refusing, true);
    wait = run_after(on, work, small, early ? 20000 : 1, NULL);
    ck_ok(clSetKernelArg(add_first, 0, sizeof(big), &big));
    ck_ok(clSetKernelArg(add_first, 1, sizeof(small), &small));
    ck_ok(clEnqueueNDRangeKernel(on, add_first, 1, NULL, &all, NULL, 1, &wait, &failing));
    after[0] = run_after(on, add, small, 1, &failing);
    ck_ok(clEnqueueReadBuffer(on, small, CL_FALSE, 0, sizeof(back), &back, 1, &failing, &after[1]));
    ck_ok(clEnqueueFillBuffer(on, small, &value, 4, 0, BYTES / 2, 1, &after[0], &after[2]));
    after[3] = run_after(on, add, small, 66, &after[2]);
    ck_assert_cl(clFinish(on), CL_MEM_OBJECT_ALLOCATION_FAILURE);
    atomic_store(&refusing, false);
    ck_assert_int_eq(event_status(wait), CL_COMPLETE);
    ck_assert_int_eq(event_status(failing), CL_MEM_OBJECT_ALLOCATION_FAILURE);
    for (size_t i = 0; i < COUNT(after); i++) {
        ck_assert_int_eq(event_status(after[i]), ENDED_BY_ANOTHER);
        ck_ok(clReleaseEvent(after[i]));
    }
    ck_assert_int_eq(back, 77);
    check_all(small, 3);
    run(on, add, small, 4);
    ck_ok(clFinish(on));
    check_all(small, 7);
    ck_ok(clReleaseEvent(wait));
    ck_ok(clReleaseEvent(failing));
    ck_ok(clReleaseMemObject(big));
    ck_ok(clReleaseMemObject(small));
    ck_ok(clReleaseCommandQueue(on));
    end();
}

START_TEST(a_kernel_that_fails_late) { fail_late(0, false); }
END_TEST

START_TEST(a_kernel_that_fails_late_out_of_order) {
    fail_late(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, false);
}
END_TEST

START_TEST(a_kernel_that_fails_among_others) {
    fail_late(0, true);
    fail_late(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, true);
}
END_TEST

/* What the map never brought is not given back. */
START_TEST(the_unmap_of_a_map_that_failed) {
    cl_mem buffer = make_buffer(0, BYTES, NULL);
    cl_event mapped;
    cl_int *pointer;

    begin();
    run(queue, set, buffer, 4);
    pointer = ck_made(clEnqueueMapBuffer(queue, buffer, CL_FALSE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                         BYTES, 1, &gate, &mapped, &error));
    ck_ok(clSetUserEventStatus(gate, -3));
    ck_assert_cl(clWaitForEvents(1, &mapped), ENDED_BY_ANOTHER);
    ck_ok(clReleaseEvent(mapped));
    ck_ok(clEnqueueUnmapMemObject(queue, buffer, pointer, 0, NULL, NULL));
    check_all(buffer, 4);
    run(queue, add, buffer, 1);
    check_all(buffer, 5);
    ck_ok(clReleaseMemObject(buffer));
    end();
}
END_TEST

/* The program has left the memory, so it is unmapped although the command fails. */
START_TEST(an_unmap_that_fails) {
    cl_mem buffer = make_buffer(0, BYTES, NULL);
    cl_event unmapped;
    cl_int *pointer;

    begin();
    run(queue, set, buffer, 4);
    pointer = ck_made(clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                         BYTES, 0, NULL, NULL, &error));
    for (int i = 0; i < N; i++)
        pointer[i] = 9;
    ck_ok(clEnqueueUnmapMemObject(queue, buffer, pointer, 1, &gate, &unmapped));
    ck_ok(clSetUserEventStatus(gate, -3));
    ck_assert_cl(clWaitForEvents(1, &unmapped), ENDED_BY_ANOTHER);
    ck_ok(clReleaseEvent(unmapped));
    check_all(buffer, 9);
    run(queue, add, buffer, 1);
    check_all(buffer, 10);
    pointer = ck_made(
        clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 0, BYTES, 0, NULL, NULL, &error));
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(pointer[i], 10);
    ck_ok(clEnqueueUnmapMemObject(queue, buffer, pointer, 0, NULL, NULL));
    ck_ok(clReleaseMemObject(buffer));
    end();
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        a_failed_gate_fails_its_command_only,
        clfinish_tells_nothing_of_a_failed_gate,
        a_command_that_fails_harms_only_its_dependants,
        a_kernel_that_fails_late,
        a_kernel_that_fails_late_out_of_order,
        a_kernel_that_fails_among_others,
        the_unmap_of_a_map_that_failed,
        an_unmap_that_fails,
    };

    setenv("TUTTI_DEVICES", "cpu", 1); /* their memory can be refused */
    setenv("TUTTI_TRANSFER", "staged", 1);
    setenv("TUTTI_BATCH", "always", 1);
    return test_main(argc, argv, tests, COUNT(tests));
}
