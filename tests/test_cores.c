/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti, over one device of PoCL that uses several cores: kernels with few work-groups execute
 * at the same time, whatever queue they come from, and in their order where they use the same
 * memory.
 */
enum { N = 64, BUFFERS = 12 };

#include "mixing.h"

enum { WARM = 12, RANDOM = 400, QUEUES = 3 };
enum { WIDE = 40 * N };

/* Each takes some 200 µs. */
static const char source[] =
    "int spend(int x) { for (int i = 0; i < 10000; i++) x = x * 1664525 + 1013904223; return x; }"
    "kernel void add_to(global int *data, int by) {"
    "  size_t i = get_global_id(0); data[i] += by + (spend(by) == data[i] + 77 && by == 1 << 30); }"
    "kernel void mix_in(global int *to, global const int *a, global const int *b) {"
    "  size_t i = get_global_id(0); int x = spend(a[i]);"
    "  to[i] = 3 * to[i] + a[i] - 2 * b[i] + (x == 77 && b[i] == 1 << 30); }"
    "kernel void meet(global int *seen, ulong address, int other, int rounds) {"
    "  volatile global int *flag = (volatile global int *)address;"
    "  flag[!other] = 1;"
    "  int met = 0;"
    "  for (int i = 0; i < rounds; i++) met |= flag[other];"
    "  seen[0] = met; }";

static void add_by(cl_command_queue on, unsigned i, cl_int by) { add_in_groups(on, i, by, N); }

static void mix_from(cl_command_queue on, unsigned to, unsigned a, unsigned b) {
    mix_in_groups(on, to, a, b, N);
}

/* How long they take is known then. */
static void begin(void) {
    make_mixed(source);
    for (unsigned i = 0; i < WARM; i++) {
        add_by(queue, i % BUFFERS, 1);
        mix_from(queue, i % BUFFERS, (i + 1) % BUFFERS, (i + 2) % BUFFERS);
        ck_ok(clFinish(queue));
    }
    test_log_count("commands in lane");
}

/* Returns how many kernels went to another queue of the device than the first. */
static int end(void) {
    check_mixed();
    return test_log_count("commands in lane");
}

START_TEST(of_one_queue) {
    begin();
    for (unsigned round = 0; round < 4; round++)
        for (unsigned i = 0; i < BUFFERS; i++)
            add_by(queue, i, (cl_int)(round + i));
    ck_ok(clFinish(queue));
    ck_assert_int_gt(end(), BUFFERS);
}
END_TEST

/*
 * Each looks for what the other one writes, in memory that Tutti knows nothing of; a few times, as
 * a busy machine may execute one of them late. They look on when they have seen it: one that came
 * late would be over at once, and such short ones go in a row.
 */
START_TEST(at_the_same_time) {
    enum { TIMES = 60 };
    static volatile cl_int flag[2];
    cl_ulong address = (uintptr_t)flag;
    cl_int rounds = 1 << 23; /* some ms */
    cl_int seen[2] = {0, 0};
    cl_mem result[2];
    begin();
    cl_kernel meet = make_kernel(program, "meet");
    for (unsigned i = 0; i < 2; i++)
        result[i] = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(seen[i]), &seen[i]);
    for (unsigned time = 0; time < TIMES && !(seen[0] && seen[1]); time++) {
        bool warms = time < WARM;
        flag[0] = flag[1] = 0;
        for (cl_int i = 0; i < 2; i++) {
            cl_int other = !i;
            ck_ok(clSetKernelArg(meet, 0, sizeof(result[i]), &result[i]));
            ck_ok(clSetKernelArg(meet, 1, sizeof(address), &address));
            ck_ok(clSetKernelArg(meet, 2, sizeof(other), &other));
            ck_ok(clSetKernelArg(meet, 3, sizeof(rounds), &rounds));
            give(queue, meet, 1, 1, NULL);
            if (warms) { /* each by itself, to the end */
                ck_ok(clFinish(queue));
                flag[0] = flag[1] = 0;
            }
        }
        for (unsigned i = 0; i < 2; i++)
            ck_ok(clEnqueueReadBuffer(queue, result[i], CL_TRUE, 0, sizeof(seen[i]), &seen[i], 0,
                                      NULL, NULL));
    }
    ck_assert_int_eq(seen[0], 1);
    ck_assert_int_eq(seen[1], 1);
    for (unsigned i = 0; i < 2; i++)
        ck_ok(clReleaseMemObject(result[i]));
    ck_ok(clReleaseKernel(meet));
    end();
}
END_TEST

/* Many may read at the same time what one writes before, and another one after them. */
START_TEST(that_read_the_same) {
    begin();
    for (unsigned round = 0; round < WARM; round++) {
        add_by(queue, 0, (cl_int)round);
        for (unsigned i = 1; i < BUFFERS; i++)
            mix_from(queue, i, 0, 0);
        add_by(queue, 0, 7);
        mix_from(queue, 1, 0, 2);
        ck_ok(clFinish(queue)); /* how long with two buffers is known then */
    }
    ck_assert_int_gt(end(), WARM);
}
END_TEST

/* As one after the other. */
static void draw_commands(cl_uint state, cl_command_queue_properties properties, bool transfers) {
    static const size_t groups[] = {N, N, N, N / 2, N / 4, 0};
    cl_command_queue queues[QUEUES];
    begin();
    open_queues(queues, QUEUES, properties);
    for (unsigned i = 0; i < RANDOM; i++) {
        cl_uint drawn = state = state * 1664525 + 1013904223;
        unsigned to = (drawn >> 8) % BUFFERS, a = (drawn >> 16) % BUFFERS;
        unsigned b = (drawn >> 24) % BUFFERS;
        cl_command_queue on = queues[i / 40 % QUEUES];
        if (transfers && drawn >> 4 & 1)
            draw_transfer(on, drawn >> 5, to, a);
        else if (drawn % 3 == 0 || to == a || to == b)
            add_in_groups(on, to, (cl_int)i, i < RANDOM / 2 ? N : groups[drawn % COUNT(groups)]);
        else
            mix_from(on, to, a, b);
        if (i % 40 == 39 && i / 40 % 2)
            ck_ok(clFinish(on));
        else if (i % 40 == 39)
            join_queues(queues, QUEUES, i / 40 % QUEUES);
    }
    finish_queues(queues, QUEUES);
    ck_assert_int_gt(end(), 10);
}

START_TEST(in_any_order) {
    for (cl_uint seed = 1; seed <= 4; seed++)
        draw_commands(seed, 0, false);
}
END_TEST

START_TEST(among_transfers) {
    for (cl_uint seed = 1; seed <= 4; seed++)
        draw_commands(seed, CL_QUEUE_PROFILING_ENABLE, true);
}
END_TEST

/* PoCL would end the process if they were executed at the same time. */
START_TEST(but_not_in_several_widths) {
    static cl_int values[WIDE];
    cl_int by = 1;
    begin();
    cl_mem wide = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(values), values);
    for (size_t width = 2 * N; width <= WIDE; width += N) {
        for (unsigned i = 0; i < BUFFERS; i++)
            add_by(queue, i, 1);
        ck_ok(clSetKernelArg(add_to, 0, sizeof(wide), &wide));
        ck_ok(clSetKernelArg(add_to, 1, sizeof(by), &by));
        give(queue, add_to, width, N, NULL);
    }
    ck_ok(clFinish(queue));
    end();
    ck_ok(clEnqueueReadBuffer(queue, wide, CL_TRUE, 0, sizeof(values), values, 0, NULL, NULL));
    for (unsigned k = 0; k < WIDE; k++)
        ck_assert_int_eq(values[k], WIDE / N - (k < 2 * N ? 1 : k / N));
    ck_ok(clReleaseMemObject(wide));
}
END_TEST

/* What is long enough to go past StarPU by itself, and what waits for its event. */
START_TEST(with_events) {
    cl_event last[BUFFERS];
    begin();
    for (unsigned i = 0; i < BUFFERS; i++) {
        cl_int by = 1;
        ck_ok(clSetKernelArg(add_to, 0, sizeof(buffer[i]), &buffer[i]));
        ck_ok(clSetKernelArg(add_to, 1, sizeof(by), &by));
        give(queue, add_to, N, N, &last[i]);
        expected[i] += by;
    }
    for (unsigned i = BUFFERS; i > 0; i--)
        wait_for_last(last, i);
    for (unsigned i = 0; i < BUFFERS; i++)
        ck_ok(clReleaseEvent(last[i]));
    ck_assert_int_gt(end(), 0);
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        of_one_queue,    at_the_same_time,          that_read_the_same, in_any_order,
        among_transfers, but_not_in_several_widths, with_events,
    };
    setenv("POCL_DEVICES", "pthread", 1);
    setenv("POCL_MAX_PTHREAD_COUNT", "4", 1);
    setenv("TUTTI_DEVICES", "portable", 1);
    setenv("TUTTI_MODELS", "none", 1);
    return test_main_logged(argc, argv, tests, COUNT(tests));
}
