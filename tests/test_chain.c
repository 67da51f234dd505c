/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: longer kernels on data that is on one GPU, which wait for each other, go there one
 * after the other without StarPU, which would begin each when it has seen the end of the one
 * before. PoCL stands in for the GPU, beside another device.
 */
enum { N = 1024, BUFFERS = 8 }; /* so many work-items that none executes beside others */

#include "mixing.h"
#include "pocl_gpu.h"

enum { WARM = 12, LENGTH = 30, FEW = 16, QUEUES = 3, RANDOM = 300 };

/* The second takes some 150 µs, the first none. */
static const char source[] =
    "int spend(int x) { for (int i = 0; i < 250; i++) x = x * 1664525 + 1013904223; return x; }"
    "kernel void add_to(global int *data, int by) { data[get_global_id(0)] += by; }"
    "kernel void mix_in(global int *to, global const int *a, global const int *b) {"
    "  size_t i = get_global_id(0); int x = spend(a[i]);"
    "  to[i] = 3 * to[i] + a[i] - 2 * b[i] + (x == 77 && b[i] == 1 << 30); }";

static void add_by(cl_command_queue on, unsigned i, cl_int by) { add_in_groups(on, i, by, 0); }

static void mix_from(cl_command_queue on, unsigned to, unsigned a, unsigned b) {
    mix_in_groups(on, to, a, b, 0);
}

static int count_tasks(void) { return test_log_count("a task is expected"); }

/* How long they take is known then, and their memory is on the GPU. */
static void begin(void) {
    make_mixed(source);
    for (unsigned i = 0; i < WARM; i++) {
        add_by(queue, i % BUFFERS, 1);
        mix_from(queue, i % BUFFERS, (i + 1) % BUFFERS, (i + 2) % BUFFERS);
        ck_ok(clFinish(queue));
    }
    count_tasks();
}

static void end(int most_tasks) {
    int tasks = count_tasks();
    check_mixed();
    ck_assert_int_le(tasks, most_tasks);
}

START_TEST(on_one_buffer) {
    begin();
    for (unsigned i = 0; i < LENGTH; i++)
        mix_from(queue, 0, 1, 2);
    ck_ok(clFinish(queue));
    end(FEW);
}
END_TEST

/* What was there to be read is written next. */
START_TEST(that_take_turns) {
    begin();
    for (unsigned round = 0; round < 4; round++) {
        for (unsigned i = 0; i < LENGTH; i++)
            mix_from(queue, i % 2, !(i % 2), 2);
        ck_ok(clFinish(queue));
    }
    end(FEW);
}
END_TEST

START_TEST(with_short_ones) {
    begin();
    for (unsigned i = 0; i < LENGTH; i++) {
        mix_from(queue, 0, 1, 2);
        add_by(queue, 0, (cl_int)i);
    }
    ck_ok(clFinish(queue));
    end(FEW);
}
END_TEST

START_TEST(with_reads) {
    static cl_int values[N];
    begin();
    for (unsigned i = 0; i < LENGTH; i++) {
        mix_from(queue, 0, 1, 2);
        ck_ok(clEnqueueReadBuffer(queue, buffer[0], CL_TRUE, 0, sizeof(values), values, 0, NULL,
                                  NULL));
        all_are(values, 0);
    }
    end(FEW);
}
END_TEST

/* Without a wait; more than go at once. */
START_TEST(with_writes) {
    static cl_int values[4 * LENGTH][N];
    begin();
    for (unsigned i = 0; i < 4 * LENGTH; i++) {
        for (unsigned k = 0; k < N; k++)
            values[i][k] = (cl_int)i;
        ck_ok(clEnqueueWriteBuffer(queue, buffer[3], CL_FALSE, 0, sizeof(values[i]), values[i], 0,
                                   NULL, NULL));
        expected[3] = (cl_int)i;
        mix_from(queue, 0, 3, 2);
    }
    ck_ok(clFinish(queue));
    end(FEW);
}
END_TEST

/* Of a whole buffer and of a part, which leaves the rest as it is. */
START_TEST(with_fills_and_copies) {
    const size_t row = 16 * sizeof(cl_int), size = N * sizeof(cl_int);
    const size_t origin[3] = {0, 0, 0}, box[3] = {row / 2, N / 16, 1};
    begin();
    for (unsigned i = 0; i < LENGTH; i++) {
        cl_int pattern = (cl_int)i;
        mix_from(queue, 0, 1, 2);
        ck_ok(clEnqueueFillBuffer(queue, buffer[1], &pattern, sizeof(pattern), 0,
                                  i % 2 ? size : size / 2, 0, NULL, NULL));
        ck_ok(clEnqueueFillBuffer(queue, buffer[1], &pattern, sizeof(pattern), size / 2, size / 2,
                                  0, NULL, NULL));
        expected[1] = pattern;
        mix_from(queue, 3, 0, 1);
        ck_ok(clEnqueueCopyBuffer(queue, buffer[3], buffer[0], 0, 0, size / 2, 0, NULL, NULL));
        ck_ok(clEnqueueCopyBuffer(queue, buffer[3], buffer[0], size / 2, size / 2, size / 2, 0,
                                  NULL, NULL));
        expected[0] = expected[3];
        add_by(queue, 0, 1);
        ck_ok(clEnqueueCopyBufferRect(queue, buffer[0], buffer[2], origin, origin, box, row, 0, row,
                                      0, 0, NULL, NULL));
        ck_ok(clEnqueueCopyBufferRect(queue, buffer[0], buffer[2], (const size_t[]){row / 2, 0, 0},
                                      (const size_t[]){row / 2, 0, 0}, box, row, 0, row, 0, 0, NULL,
                                      NULL));
        expected[2] = expected[0];
    }
    ck_ok(clFinish(queue));
    end(FEW);
}
END_TEST

/* More than go at once: the rest is collected. */
START_TEST(of_any_length) {
    begin();
    for (unsigned i = 0; i < 10 * LENGTH; i++)
        mix_from(queue, 0, 1, 2);
    ck_ok(clFinish(queue));
    end(2 * LENGTH);
}
END_TEST

/* The events of one queue end in its order, each by itself. */
START_TEST(with_events) {
    cl_event last[LENGTH];
    size_t items = N;
    begin();
    mix_from(queue, 0, 1, 2);
    for (unsigned i = 0; i < LENGTH; i++)
        ck_ok(clEnqueueNDRangeKernel(queue, mix_in, 1, NULL, &items, NULL, 0, NULL, &last[i]));
    for (unsigned i = 0; i < LENGTH; i++) {
        wait_for_last(last, i + 1);
        cl_uint value = 3 * (cl_uint)expected[0] + (cl_uint)expected[1] - 2 * (cl_uint)expected[2];
        expected[0] = (cl_int)value;
    }
    for (unsigned i = 0; i < LENGTH; i++)
        ck_ok(clReleaseEvent(last[i]));
    end(FEW);
}
END_TEST

/* As one after the other. `few`: on so few buffers that most wait for others. */
static void draw_commands(cl_uint state, cl_command_queue_properties properties, unsigned few) {
    cl_command_queue queues[QUEUES];
    begin();
    open_queues(queues, QUEUES, properties);
    for (unsigned i = 0; i < RANDOM; i++) {
        cl_uint drawn = state = state * 1664525 + 1013904223;
        unsigned to = (drawn >> 8) % few, a = (drawn >> 16) % few, b = (drawn >> 24) % few;
        cl_command_queue on = queues[i / 40 % QUEUES];
        if ((drawn >> 4) % 8 == 0)
            draw_transfer(on, drawn >> 5, to, a);
        else if (drawn % 3 == 0 || to == a || to == b)
            add_by(on, to, (cl_int)i);
        else
            mix_from(on, to, a, b);
        if (i % 40 == 39)
            join_queues(queues, QUEUES, i / 40 % QUEUES);
    }
    finish_queues(queues, QUEUES);
    end(RANDOM);
}

START_TEST(in_any_order) {
    for (cl_uint seed = 1; seed <= 4; seed++)
        draw_commands(seed, 0, 3);
    for (cl_uint seed = 5; seed <= 8; seed++)
        draw_commands(seed, 0, BUFFERS);
}
END_TEST

START_TEST(in_any_order_with_profiling) {
    for (cl_uint seed = 11; seed <= 14; seed++)
        draw_commands(seed, CL_QUEUE_PROFILING_ENABLE, 4);
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        on_one_buffer,   that_take_turns,
        with_short_ones, with_reads,
        with_writes,     with_fills_and_copies,
        of_any_length,   with_events,
        in_any_order,    in_any_order_with_profiling,
    };
    return pocl_gpu_begin("pthread basic", NULL) ? test_main_logged(argc, argv, tests, COUNT(tests))
                                                 : 0;
}
