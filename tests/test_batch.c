/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: kernels that wait for one another go to StarPU as one task. TUTTI_BATCH=always makes
 * it do so whatever they take, and its log tells when it did.
 */
#include "native.h"

#include <stdatomic.h>

enum { N = 256, BYTES = N * sizeof(cl_int), BUFFERS = 6 };

static cl_program program;
static cl_kernel scale, accumulate, subtract, work;
static cl_mem buffers[BUFFERS];
static cl_int expected[BUFFERS][N];

static const char source[] =
    "__kernel void scale(__global int *a, int f) {"
    "    size_t i = get_global_id(0); a[i] = a[i] * f + 1; }"
    "__kernel void accumulate(__global int *a, __global const int *b, int f) {"
    "    size_t i = get_global_id(0); a[i] += b[i] * f; }"
    "__kernel void subtract(__global int *a, __global const int *b, __global const int *c) {"
    "    size_t i = get_global_id(0); a[i] = b[i] - c[i]; }"
    /* Adds 0, after some time for others to be collected behind it: x is odd. */
    "__kernel void work(__global int *a, int rounds) {"
    "    size_t i = get_global_id(0); int x = (int)i | 1;"
    "    for (int r = 0; r < rounds; r++) x = (x * 3 + 2) ^ ((x >> 7) & ~1);"
    "    a[i] += x == 2 * rounds; }";

static void begin(void) {
    uint32_t state = 1;

    program = make_program(source);
    scale = make_kernel(program, "scale");
    accumulate = make_kernel(program, "accumulate");
    subtract = make_kernel(program, "subtract");
    work = make_kernel(program, "work");
    for (int b = 0; b < BUFFERS; b++) {
        for (int i = 0; i < N; i++)
            expected[b][i] = (cl_int)(next_random(&state) % 1000);
        buffers[b] = make_buffer(CL_MEM_COPY_HOST_PTR, BYTES, expected[b]);
    }
}

static void end(void) {
    for (int b = 0; b < BUFFERS; b++)
        ck_ok(clReleaseMemObject(buffers[b]));
    ck_ok(clReleaseKernel(scale));
    ck_ok(clReleaseKernel(accumulate));
    ck_ok(clReleaseKernel(subtract));
    ck_ok(clReleaseKernel(work));
    ck_ok(clReleaseProgram(program));
}

static void set_mem(cl_kernel kernel, cl_uint index, cl_mem mem) {
    ck_ok(clSetKernelArg(kernel, index, sizeof(mem), &mem));
}

static void set_int(cl_kernel kernel, cl_uint index, cl_int value) {
    ck_ok(clSetKernelArg(kernel, index, sizeof(value), &value));
}

static void do_scale_after(cl_command_queue in, int a, cl_int factor, const cl_event *after,
                           cl_event *event) {
    size_t items = N;

    set_mem(scale, 0, buffers[a]);
    set_int(scale, 1, factor);
    ck_ok(clEnqueueNDRangeKernel(in, scale, 1, NULL, &items, NULL, after ? 1 : 0, after, event));
    for (int i = 0; i < N; i++)
        expected[a][i] = (cl_int)((uint32_t)expected[a][i] * (uint32_t)factor + 1);
}

static void do_scale(cl_command_queue in, int a, cl_int factor, cl_event *event) {
    do_scale_after(in, a, factor, NULL, event);
}

static void do_accumulate(int a, int b, cl_int factor) {
    set_mem(accumulate, 0, buffers[a]);
    set_mem(accumulate, 1, buffers[b]);
    set_int(accumulate, 2, factor);
    launch(accumulate, N);
    for (int i = 0; i < N; i++)
        expected[a][i] =
            (cl_int)((uint32_t)expected[a][i] + (uint32_t)expected[b][i] * (uint32_t)factor);
}

static void do_subtract(int a, int b, int c) {
    set_mem(subtract, 0, buffers[a]);
    set_mem(subtract, 1, buffers[b]);
    set_mem(subtract, 2, buffers[c]);
    launch(subtract, N);
    for (int i = 0; i < N; i++)
        expected[a][i] = (cl_int)((uint32_t)expected[b][i] - (uint32_t)expected[c][i]);
}

static void do_work(int a) {
    set_mem(work, 0, buffers[a]);
    set_int(work, 1, 5000);
    launch(work, N);
}

static void check_buffer(int b) {
    cl_int seen[N];

    read_ints(buffers[b], seen, N);
    for (int i = 0; i < N; i++)
        ck_assert_msg(seen[i] == expected[b][i], "buffer %d, element %d: %d, expected %d", b, i,
                      seen[i], expected[b][i]);
}

static void check_all(void) {
    for (int b = 0; b < BUFFERS; b++)
        check_buffer(b);
}

/* The most kernels that went as one task since the last call; 0: each went by itself. */
static int longest_batch(void) {
    char line[256];
    int longest = 0, length;
    FILE *log = test_log_open();

    if (!log)
        return 0;
    while (fgets(line, sizeof(line), log)) {
        const char *end = strstr(line, " kernels as one task");
        while (end && end > line && end[-1] != ' ')
            end--;
        if (end && sscanf(end, "%d", &length) == 1 && length > longest)
            longest = length;
    }
    test_log_close(log);
    return longest;
}

START_TEST(a_chain_goes_as_one_task) {
    begin();
    longest_batch();
    do_work(0);
    for (int i = 0; i < 200; i++)
        do_scale(queue, 0, i % 5, NULL);
    check_buffer(0);
    ck_assert_int_gt(longest_batch(), 1);
    end();
}
END_TEST

/* Events of a wait list that StarPU's order stands for cost no way back to the host. */
static void chain_with_wait_lists(cl_command_queue in) {
    cl_event previous, event;

    begin();
    longest_batch();
    do_work(0);
    ck_ok(clEnqueueMarker(queue, &previous));
    ck_ok(clFlush(queue));
    for (int i = 0; i < 200; i++) {
        do_scale_after(in, 0, i % 5, &previous, &event);
        ck_ok(clReleaseEvent(previous));
        previous = event;
    }
    ck_ok(clWaitForEvents(1, &previous));
    ck_ok(clReleaseEvent(previous));
    check_buffer(0);
    ck_assert_int_gt(longest_batch(), 1);
    end();
}

START_TEST(a_chain_with_wait_lists) { chain_with_wait_lists(queue); }
END_TEST

START_TEST(a_chain_with_wait_lists_out_of_order) {
    cl_command_queue loose = make_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);

    chain_with_wait_lists(loose);
    ck_ok(clReleaseCommandQueue(loose));
}
END_TEST

/* Chains that have nothing in common stay apart, so that they may run on two devices. */
START_TEST(chains_join_where_they_meet) {
    begin();
    for (int round = 0; round < 20; round++) {
        do_work(0);
        do_work(1);
        for (int i = 0; i < 10; i++) {
            do_scale(queue, 0, 3, NULL);
            do_scale(queue, 1, 5, NULL);
        }
        do_accumulate(0, 1, 7);
        do_scale(queue, 1, 2, NULL);
        do_subtract(2, 0, 1);
    }
    check_all();
    end();
}
END_TEST

START_TEST(a_writer_comes_after_all_readers) {
    begin();
    for (int round = 0; round < 20; round++) {
        for (int b = 1; b < 4; b++)
            do_work(b);
        for (int b = 1; b < 4; b++)
            do_accumulate(b, 0, b); /* collected behind three, all read 0 */
        do_scale(queue, 0, round, NULL);
        do_subtract(4, 0, 1);
        do_scale(queue, 1, 3, NULL);
    }
    check_all();
    end();
}
END_TEST

static void random_step(uint32_t *state) {
    cl_int pattern = (cl_int)(next_random(state) % 100);
    int a = (int)(next_random(state) % BUFFERS), b = (int)(next_random(state) % BUFFERS);
    int c = (int)(next_random(state) % BUFFERS);

    switch (next_random(state) % 40) {
    case 0:
        check_buffer(a);
        break;
    case 1:
        ck_ok(clEnqueueFillBuffer(queue, buffers[a], &pattern, sizeof(pattern), 0, BYTES / 2, 0,
                                  NULL, NULL));
        for (int i = 0; i < N / 2; i++)
            expected[a][i] = pattern;
        break;
    case 2:
        if (a == b)
            break;
        ck_ok(clEnqueueCopyBuffer(queue, buffers[a], buffers[b], 0, 0, BYTES, 0, NULL, NULL));
        memcpy(expected[b], expected[a], BYTES);
        break;
    case 3:
        expected[a][5] = pattern;
        ck_ok(clEnqueueWriteBuffer(queue, buffers[a], CL_TRUE, 5 * sizeof(pattern), sizeof(pattern),
                                   &pattern, 0, NULL, NULL));
        break;
    case 4:
    case 5:
        do_work(a);
        break;
    default:
        if (a != b && a != c && next_random(state) % 4 == 0)
            do_subtract(a, b, c);
        else if (a != b && next_random(state) % 2)
            do_accumulate(a, b, pattern);
        else
            do_scale(queue, a, pattern, NULL);
    }
}

START_TEST(random_chains) {
    begin();
    longest_batch();
    for (uint32_t seed = 1; seed <= test_size("TUTTI_TEST_ROUNDS", 20); seed++) {
        uint32_t state = seed;
        for (int step = 0; step < 200; step++)
            random_step(&state);
        check_all();
    }
    ck_assert_int_gt(longest_batch(), 1);
    end();
}
END_TEST

/* Small transfers among the kernels, for which there are no models, are collected with them. */
START_TEST(small_transfers_go_along) {
    enum { STEPS = 24 }; /* more commands than go to a device by themselves (sched/direct.c) */
    cl_int written[STEPS], seen[STEPS];

    begin();
    longest_batch();
    for (int round = 0; round < 10; round++) {
        int b = round % BUFFERS;
        do_scale(queue, b, 1, NULL);
        ck_ok(clFinish(queue));
        do_work(b);
        for (int i = 0; i < STEPS; i++) {
            written[i] = round * STEPS + i;
            ck_ok(clEnqueueWriteBuffer(queue, buffers[b], CL_FALSE, (size_t)i * sizeof(cl_int),
                                       sizeof(cl_int), &written[i], 0, NULL, NULL));
            expected[b][i] = written[i];
            do_scale(queue, b, 3, NULL);
            ck_ok(clEnqueueReadBuffer(queue, buffers[b], CL_FALSE, (size_t)i * sizeof(cl_int),
                                      sizeof(cl_int), &seen[i], 0, NULL, NULL));
        }
        ck_ok(clFinish(queue));
        for (int i = 0; i < STEPS; i++)
            ck_assert_int_eq(seen[i], written[i] * 3 + 1);
    }
    check_all();
    ck_assert_int_gt(longest_batch(), STEPS);
    end();
}
END_TEST

static void write_all(int b, cl_int value) {
    static cl_int values[BUFFERS][N]; /* of blocks with this buffer: each value is the same */

    for (int i = 0; i < N; i++)
        values[b][i] = value;
    ck_ok(clEnqueueWriteBuffer(queue, buffers[b], CL_FALSE, 0, BYTES, values[b], 0, NULL, NULL));
}

/* Block after block through two sets of buffers, without a wait: many of them are one task. */
START_TEST(blocks_of_a_stream) {
    enum { BLOCKS = 200, SET = 3, FEW = 16 };
    static cl_int seen[BLOCKS][N];
    int longest = 0;

    begin();
    for (int round = 0; round < 20 && longest < FEW; round++) {
        memset(seen, 0xff, sizeof(seen));
        longest_batch();
        do_work(0);
        for (int block = 0; block < BLOCKS; block++) {
            int set = block % 2 * SET;
            write_all(set, 7 + set);
            write_all(set + 1, 2);
            do_subtract(set + 2, set, set + 1);
            ck_ok(clEnqueueReadBuffer(queue, buffers[set + 2], CL_FALSE, 0, BYTES, seen[block], 0,
                                      NULL, NULL));
        }
        ck_ok(clFinish(queue));
        for (int block = 0; block < BLOCKS; block++)
            for (int i = 0; i < N; i++)
                ck_assert_int_eq(seen[block][i], 5 + block % 2 * SET);
        longest = longest_batch();
    }
    ck_assert_int_ge(longest, FEW);
    end();
}
END_TEST

/* The parts of a buffer, made and used between kernels on the whole of it. */
START_TEST(parts_of_a_buffer) {
    begin();
    for (int round = 0; round < 10; round++) {
        cl_buffer_region half = {0, BYTES / 2};
        cl_mem part;

        part =
            ck_made(clCreateSubBuffer(buffers[0], 0, CL_BUFFER_CREATE_TYPE_REGION, &half, &error));
        do_work(0);
        for (int i = 0; i < 5; i++)
            do_scale(queue, 0, 3, NULL);
        set_mem(scale, 0, part);
        set_int(scale, 1, 2);
        launch(scale, N / 2);
        for (int i = 0; i < N / 2; i++)
            expected[0][i] = (cl_int)((uint32_t)expected[0][i] * 2 + 1);
        for (int i = 0; i < 5; i++)
            do_scale(queue, 0, 5, NULL);
        ck_ok(clReleaseMemObject(part));
        do_scale(queue, 0, 7, NULL);
    }
    check_all();
    end();
}
END_TEST

static struct {
    atomic_int next;
    atomic_bool broken;
} order;

static void CL_CALLBACK note(cl_event event, cl_int status, void *data) {
    (void)event;
    if (status != CL_COMPLETE || (int)(intptr_t)data != order.next)
        order.broken = true;
    order.next++;
}

static void run_with_events(void) {
    enum { EVENTS = 100 };
    cl_event events[EVENTS];
    cl_ulong ended = 0;

    order.next = 0;
    order.broken = false;
    do_work(0);
    for (int i = 0; i < EVENTS; i++) {
        do_scale(queue, 0, 3, &events[i]);
        ck_ok(clSetEventCallback(events[i], CL_COMPLETE, note, (void *)(intptr_t)i));
    }
    ck_ok(clFinish(queue));
    for (int i = 0; i < EVENTS; i++) {
        cl_ulong times[4];
        ck_assert_int_eq(event_status(events[i]), CL_COMPLETE);
        for (int t = 0; t < 4; t++)
            ck_ok(clGetEventProfilingInfo(events[i], CL_PROFILING_COMMAND_QUEUED + (cl_uint)t,
                                          sizeof(times[t]), &times[t], NULL));
        ck_assert_msg(times[0] <= times[1] && times[1] <= times[2] && times[2] <= times[3],
                      "times of event %d are not in order", i);
        ck_assert_msg(ended <= times[3], "event %d ended before the one that it comes after", i);
        ended = times[3];
        ck_ok(clReleaseEvent(events[i]));
    }
    for (int i = 0; i < 2000 && order.next < EVENTS; i++)
        usleep(1000);
    ck_assert(order.next == EVENTS && !order.broken);
}

START_TEST(each_command_has_its_event) {
    int longest = 0;

    begin();
    longest_batch();
    for (int round = 0; round < 20 && longest <= 1; round++) { /* others may keep this thread */
        run_with_events();
        longest = longest_batch();
    }
    check_all();
    ck_assert_int_gt(longest, 1);
    end();
}
END_TEST

/* Waiting for a command that is collected, from another queue and in the program. */
START_TEST(waits_for_what_is_collected) {
    cl_command_queue other = make_queue(0);
    cl_event event;

    begin();
    for (int round = 0; round < 20; round++) {
        do_work(0);
        do_scale(queue, 0, 3, NULL);
        do_scale(queue, 0, 3, &event);
        ck_ok(clEnqueueBarrierWithWaitList(other, 1, &event, NULL));
        do_scale(other, 0, 5, NULL);
        if (round % 2)
            ck_ok(clWaitForEvents(1, &event));
        ck_ok(clReleaseEvent(event));
        ck_ok(clFinish(other));
    }
    check_all();
    ck_ok(clReleaseCommandQueue(other));
    end();
}
END_TEST

static void scale_in(cl_command_queue where, cl_mem mem, cl_event *event) {
    size_t global = N;

    set_mem(scale, 0, mem);
    set_int(scale, 1, 1);
    ck_ok(clEnqueueNDRangeKernel(where, scale, 1, NULL, &global, NULL, 0, NULL, event));
    ck_ok(clFlush(where));
}

static void learn_what_they_take(void) {
    for (int i = 0; i < 20; i++) {
        scale_in(queue, buffers[i % BUFFERS], NULL);
        ck_ok(clFinish(queue));
    }
}

/* Kernels on the buffers from this one on, in another queue, wait for no others. */
static void go_on_with(int first, int times) {
    cl_command_queue other = make_queue(0);
    cl_event event;

    for (int b = first; b < BUFFERS; b++) {
        for (int i = 1; i < times; i++)
            scale_in(other, buffers[b], NULL);
        scale_in(other, buffers[b], &event);
        ck_ok(clWaitForEvents(1, &event));
        ck_ok(clReleaseEvent(event));
    }
    ck_ok(clReleaseCommandQueue(other));
}

/* The host has a buffer for as long as it likes: only kernels that use that wait for it. */
START_TEST(held_kernels_hold_no_others) {
    begin();
    learn_what_they_take();
    occupy(buffers[0]);
    for (int i = 0; i < 4; i++)
        scale_in(queue, buffers[0], NULL);
    go_on_with(1, 1);
    vacate();
    ck_ok(clFinish(queue));
    end();
}
END_TEST

/* The same for what comes after a copy that waits for the buffer. */
START_TEST(held_copies_hold_no_others) {
    begin();
    learn_what_they_take();
    occupy(buffers[0]);
    ck_ok(clEnqueueCopyBuffer(queue, buffers[0], buffers[1], 4, 8, 4, 0, NULL, NULL));
    for (int i = 0; i < 4; i++)
        scale_in(queue, buffers[1], NULL);
    go_on_with(2, 5);
    vacate();
    ck_ok(clFinish(queue));
    end();
}
END_TEST

/* The same for kernels that the held one comes after. */
START_TEST(held_kernels_hold_none_before_them) {
    cl_event event;

    begin();
    occupy(buffers[0]);
    for (int round = 0; round < 10; round++) {
        set_mem(work, 0, buffers[1 + round % 4]);
        set_int(work, 1, 5000);
        for (int i = 0; i < 8; i++) /* more than go past StarPU at once */
            launch(work, N);
        scale_in(queue, buffers[1 + round % 4], &event);
        set_mem(accumulate, 0, buffers[1 + round % 4]);
        set_mem(accumulate, 1, buffers[0]);
        set_int(accumulate, 2, 1);
        if (round == 9)
            launch(accumulate, N);
        ck_ok(clWaitForEvents(1, &event));
        ck_ok(clReleaseEvent(event));
    }
    vacate();
    ck_ok(clFinish(queue));
    end();
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {a_chain_goes_as_one_task,
                                  a_chain_with_wait_lists,
                                  a_chain_with_wait_lists_out_of_order,
                                  chains_join_where_they_meet,
                                  a_writer_comes_after_all_readers,
                                  random_chains,
                                  small_transfers_go_along,
                                  blocks_of_a_stream,
                                  parts_of_a_buffer,
                                  each_command_has_its_event,
                                  waits_for_what_is_collected,
                                  held_kernels_hold_no_others,
                                  held_copies_hold_no_others,
                                  held_kernels_hold_none_before_them};
    setenv("TUTTI_BATCH", "always", 1);
    test_prefer_pocl();
    return test_main_logged(argc, argv, tests, COUNT(tests));
}
