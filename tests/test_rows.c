/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti, over one device of PoCL that uses all cores: short kernels of several queues go to as
 * many queues of the device, without a command for each, and are ordered by their events.
 */
#include "support.h"

#include <pthread.h>
#include <stdlib.h>

enum { N = 256, BYTES = N * sizeof(cl_int), QUEUES = 4, MANY = 600, ROUNDS = 20, LANES = 29 };

/* Its order shows. */
static const char source[] =
    "kernel void change(global int *data, int by) {\n"
    "    size_t i = get_global_id(0) % 256;\n"
    "    if (get_global_id(0) < 256) data[i] = data[i] * 3 + by;\n"
    "}\n"
    "kernel void late(global int *data, global const int *loops, int n) {\n"
    "    size_t i = get_global_id(0);\n"
    "    int x = n;\n"
    "    for (int k = 0; k < loops[n]; k++) x = x * 5 + loops[k & 1];\n"
    "    data[i] = data[i] * 3 + n + (x == 12345 ? 1 : 0);\n"
    "}\n";

static cl_program program;
static cl_kernel kernels[QUEUES];
static cl_command_queue queues[QUEUES];
static cl_mem buffers[QUEUES];
static cl_uint expected[QUEUES];

static void launch_on(int q, int b, cl_int by, size_t items, size_t group, cl_uint count,
                      const cl_event *list, cl_event *event) {
    ck_ok(clSetKernelArg(kernels[q], 0, sizeof(buffers[b]), &buffers[b]));
    ck_ok(clSetKernelArg(kernels[q], 1, sizeof(by), &by));
    ck_ok(clEnqueueNDRangeKernel(queues[q], kernels[q], 1, NULL, &items, group ? &group : NULL,
                                 count, list, event));
    expected[b] = expected[b] * 3 + (cl_uint)by;
}

static void ck_buffer(int b) {
    cl_int values[N];
    ck_ok(clEnqueueReadBuffer(queue, buffers[b], CL_TRUE, 0, BYTES, values, 0, NULL, NULL));
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(values[i], (cl_int)expected[b]);
}

static void ck_buffers(void) {
    for (int b = 0; b < QUEUES; b++)
        ck_buffer(b);
}

/* In each queue in turn, on a buffer of its own. */
static void launch_in_turns(int count, size_t group) {
    for (int i = 0; i < count; i++)
        launch_on(i % QUEUES, i % QUEUES, i, N, group, 0, NULL, NULL);
}

static void finish_all(void) {
    for (int q = 0; q < QUEUES; q++)
        ck_ok(clFinish(queues[q]));
}

/* How many kernels each row has had since the last call; returns how many rows had any. */
static int read_rows(int count[LANES]) {
    char line[512];
    int rows = 0;
    FILE *log = test_log_open();
    ck_assert_ptr_nonnull(log);
    memset(count, 0, LANES * sizeof(*count));
    while (fgets(line, sizeof(line), log)) {
        const char *row = strstr(line, "in a row: ");
        unsigned number;
        if (row && sscanf(row, "in a row: %u", &number) == 1 && number < LANES)
            rows += count[number]++ == 0;
    }
    test_log_close(log);
    return rows;
}

static void begin(void) {
    static cl_int zeros[N];
    int unused[LANES];
    program = make_program(source);
    for (int q = 0; q < QUEUES; q++) {
        queues[q] = make_queue(0);
        kernels[q] = make_kernel(program, "change");
        buffers[q] = make_buffer(CL_MEM_COPY_HOST_PTR, BYTES, zeros);
        expected[q] = 0;
    }
    for (int i = 0; i < 10; i++) { /* how long they take is known then */
        launch_on(0, 0, 1, N, 0, 0, NULL, NULL);
        ck_ok(clFinish(queues[0]));
    }
    read_rows(unused);
}

static void end(void) {
    for (int q = 0; q < QUEUES; q++) {
        ck_ok(clReleaseCommandQueue(queues[q]));
        ck_ok(clReleaseKernel(kernels[q]));
        ck_ok(clReleaseMemObject(buffers[q]));
    }
    ck_ok(clReleaseProgram(program));
}

/*
 * Once those that went the usual way are over. Again, if the machine does something else meanwhile:
 * kernels that seem to take long are none.
 */
START_TEST(each_queue_has_one) {
    int rows = 0, count[LANES];
    begin();
    for (int round = 0; round < ROUNDS && rows < QUEUES; round++) {
        launch_in_turns(10 * MANY, 0);
        finish_all();
        rows = read_rows(count);
        ck_buffers();
    }
    ck_assert_int_ge(rows, QUEUES);
    end();
}
END_TEST

/* Each waits for the last one of its buffer, in whatever queue that was; and other commands do. */
static void run_ordered(unsigned *seed) {
    cl_event last[QUEUES] = {NULL};
    for (int i = 0; i < 8 * MANY; i++) {
        int q = rand_r(seed) % QUEUES, b = rand_r(seed) % QUEUES;
        cl_event event;
        if (rand_r(seed) % 1000 > 0) {
            launch_on(q, b, rand_r(seed) % 100, N, 0, last[b] != NULL, last[b] ? &last[b] : NULL,
                      &event);
        } else {
            cl_int fill = rand_r(seed) % 100;
            ck_ok(clEnqueueFillBuffer(queues[q], buffers[b], &fill, sizeof(fill), 0, BYTES,
                                      last[b] != NULL, last[b] ? &last[b] : NULL, &event));
            expected[b] = (cl_uint)fill;
        }
        if (last[b])
            ck_ok(clReleaseEvent(last[b]));
        last[b] = event;
    }
    for (int b = 0; b < QUEUES; b++) {
        if (!last[b])
            continue;
        ck_ok(clWaitForEvents(1, &last[b]));
        ck_buffer(b);
        ck_ok(clReleaseEvent(last[b]));
    }
}

START_TEST(events_order_them) {
    unsigned seed = 7;
    begin();
    for (int round = 0; round < ROUNDS / 4; round++)
        run_ordered(&seed);
    end();
}
END_TEST

static void launch_late(cl_kernel kernel, int q, int b, cl_int n, cl_uint count,
                        const cl_event *list, cl_event *event) {
    const size_t items = N;
    ck_ok(clSetKernelArg(kernel, 0, sizeof(buffers[b]), &buffers[b]));
    ck_ok(clSetKernelArg(kernel, 2, sizeof(n), &n));
    ck_ok(clEnqueueNDRangeKernel(queues[q], kernel, 1, NULL, &items, NULL, count, list, event));
}

/* A kernel that is a command, as it waits for the program, comes behind those of other rows. */
START_TEST(a_command_behind_them) {
    const cl_int loops[] = {1, 20000000 / N};
    begin();
    cl_kernel late = make_kernel(program, "late");
    cl_mem given = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(loops), (void *)loops);
    ck_ok(clSetKernelArg(late, 1, sizeof(given), &given));
    for (int i = 0; i < 10; i++) {
        launch_late(late, 0, 0, 0, 0, NULL, NULL);
        ck_ok(clFinish(queues[0]));
    }
    for (int q = 0; q < QUEUES; q++) {
        cl_event slow, wait[2];
        cl_int before[N], after[N];
        int other = (q + 1) % QUEUES;
        ck_ok(clEnqueueReadBuffer(queue, buffers[0], CL_TRUE, 0, BYTES, before, 0, NULL, NULL));
        for (int i = 0; i < 2 * 64; i++)
            launch_late(late, i % QUEUES, 1 + i % (QUEUES - 1), 0, 0, NULL, NULL);
        finish_all();
        wait[1] = ck_made(clCreateUserEvent(context, &error));
        launch_late(late, q, 0, 1, 0, NULL, &slow);
        wait[0] = slow;
        launch_late(late, other, 0, 0, 2, wait, NULL);
        ck_ok(clSetUserEventStatus(wait[1], CL_COMPLETE));
        finish_all();
        ck_ok(clEnqueueReadBuffer(queue, buffers[0], CL_TRUE, 0, BYTES, after, 0, NULL, NULL));
        for (int i = 0; i < N; i++)
            ck_assert_uint_eq((cl_uint)after[i], ((cl_uint)before[i] * 3 + 1) * 3);
        ck_ok(clReleaseEvent(slow));
        ck_ok(clReleaseEvent(wait[1]));
    }
    ck_ok(clReleaseKernel(late));
    ck_ok(clReleaseMemObject(given));
    end();
}
END_TEST

/* What the host does in between finds those of all queues over. */
START_TEST(the_host_comes_after_all) {
    begin();
    for (int round = 0; round < ROUNDS; round++) {
        launch_in_turns(MANY, 0);
        cl_int *mapped =
            ck_made(clEnqueueMapBuffer(queues[round % QUEUES], buffers[round % QUEUES], CL_TRUE,
                                       CL_MAP_READ, 0, BYTES, 0, NULL, NULL, &error));
        ck_assert_int_eq(mapped[N - 1], (cl_int)expected[round % QUEUES]);
        ck_ok(clEnqueueUnmapMemObject(queues[round % QUEUES], buffers[round % QUEUES], mapped, 0,
                                      NULL, NULL));
        finish_all();
        ck_buffers();
    }
    end();
}
END_TEST

/* Memory objects and queues that go while kernels of other queues are under way. */
START_TEST(what_is_released) {
    static cl_int zeros[N];
    begin();
    for (int round = 0; round < ROUNDS; round++) {
        launch_in_turns(MANY, 0);
        int gone = round % QUEUES;
        ck_ok(clReleaseMemObject(buffers[gone]));
        ck_ok(clReleaseCommandQueue(queues[gone]));
        queues[gone] = make_queue(0);
        buffers[gone] = make_buffer(CL_MEM_COPY_HOST_PTR, BYTES, zeros);
        expected[gone] = 0;
        launch_in_turns(MANY, 0);
        finish_all();
        ck_buffers();
    }
    end();
}
END_TEST

static void *run_thread(void *number) {
    int q = (int)(intptr_t)number;
    for (int i = 0; i < ROUNDS * MANY; i++)
        launch_on(q, q, i, N, 0, 0, NULL, NULL);
    return clFinish(queues[q]) == CL_SUCCESS ? NULL : number;
}

START_TEST(from_several_threads) {
    pthread_t threads[QUEUES];
    begin();
    for (intptr_t q = 0; q < QUEUES; q++)
        ck_assert_int_eq(pthread_create(&threads[q], NULL, run_thread, (void *)q), 0);
    for (int q = 0; q < QUEUES; q++) {
        void *failed;
        ck_assert_int_eq(pthread_join(threads[q], &failed), 0);
        ck_assert_ptr_null(failed);
    }
    ck_buffers();
    end();
}
END_TEST

/*
 * PoCL would abort the process if it executed these at the same time (pocl.h): of one work-group
 * size, wide ones and others. In a process of its own, as kernels are never beside others then.
 */
START_TEST(confusing) {
    static const size_t items[] = {N, 80000};
    int count[LANES];
    begin();
    for (int i = 0; i < 2 * ROUNDS * QUEUES; i++) {
        launch_on(i % QUEUES, i % QUEUES, i, items[i / QUEUES % 2], 16, 0, NULL, NULL);
        finish_all();
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < MANY; i++)
            launch_on(i % QUEUES, i % QUEUES, i, items[i / 7 % 2], 16, 0, NULL, NULL);
        finish_all();
        ck_buffers();
    }
    read_rows(count);
    for (int round = 0; round < ROUNDS; round++) {
        launch_in_turns(MANY, 16);
        finish_all();
    }
    read_rows(count);
    for (int row = 1; row < LANES; row++)
        ck_assert_int_eq(count[row], 0);
    end();
}
END_TEST

START_TEST(what_would_be_confused_is_not) { test_run_again("", "--confusing"); }
END_TEST

START_TEST(one_lane_is_one_row) { test_run_again("TUTTI_LANES=1", "--one"); }
END_TEST

START_TEST(only_one) {
    int count[LANES];
    begin();
    launch_in_turns(MANY, 0);
    finish_all();
    ck_assert_int_le(read_rows(count), 1);
    ck_buffers();
    end();
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const confused[] = {confusing}, *const one[] = {only_one};
    const TTest *const tests[] = {each_queue_has_one,
                                  events_order_them,
                                  a_command_behind_them,
                                  the_host_comes_after_all,
                                  what_is_released,
                                  from_several_threads,
                                  what_would_be_confused_is_not,
                                  one_lane_is_one_row};
    setenv("POCL_DEVICES", "pthread", 1);
    setenv("TUTTI_DEVICES", "portable", 1);
    setenv("TUTTI_MODELS", "none", 1);
    if (argc == 2 && strcmp(argv[1], "--confusing") == 0)
        return test_main_logged(1, argv, confused, COUNT(confused));
    if (argc == 2 && strcmp(argv[1], "--one") == 0)
        return test_main_logged(1, argv, one, COUNT(one));
    return test_main_logged(argc, argv, tests, COUNT(tests));
}
