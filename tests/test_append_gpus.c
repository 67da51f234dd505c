/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti, with two GPUs of one kind, for which PoCL stands in: short kernels whose buffers are
 * on both of them are appended (append.h) on each to what it has of their queue.
 */
#include "append_chance.h"

enum {
    LONGER = 2000000 /* ns */,
    ALL = 1 << 16 /* work-items that leave a GPU no room for more */
};

static const char longer_source[] =
    "kernel void same(global int *a) { int k = get_global_id(0); if (k == 0) a[k] = a[k]; }";

static cl_program longer_program;
static cl_kernel same;

/* Each GPU's launches, that of the first one that had any first. */
static struct {
    _Atomic(cl_device_id) first;
    atomic_int of[2];
} launches;

static cl_int CL_API_CALL count_and_enqueue(cl_command_queue on, cl_kernel kernel,
                                            cl_uint dimensions, const size_t *offset,
                                            const size_t *global, const size_t *local,
                                            cl_uint count, const cl_event *list, cl_event *event) {
    cl_device_id of, none = NULL;
    real.clGetCommandQueueInfo(on, CL_QUEUE_DEVICE, sizeof(of), &of, NULL);
    atomic_compare_exchange_strong(&launches.first, &none, of);
    atomic_fetch_add(&launches.of[of != atomic_load(&launches.first)], 1);
    return enqueue(on, kernel, dimensions, offset, global, local, count, list, event);
}

/* Longer kernels, one on each buffer, which both GPUs execute at the same time. */
static void spread(void) {
    const size_t items = ALL;
    slow_set_length(LONGER);
    for (int i = 0; i < MOST; i++) {
        ck_ok(clSetKernelArg(same, 0, sizeof(cl_mem), &buffer[i]));
        ck_ok(clEnqueueNDRangeKernel(queues[0], same, 1, NULL, &items, NULL, 0, NULL, NULL));
    }
    ck_ok(clFinish(queues[0]));
    slow_set_length(LENGTH);
}

static void begin_on_both(void) {
    begin();
    longer_program = make_program(longer_source);
    same = make_kernel(longer_program, "same");
    spread();
    test_log_count("");
}

static void end_on_both(void) {
    ck_ok(clReleaseKernel(same));
    ck_ok(clReleaseProgram(longer_program));
    end();
}

/* Finds two buffers, each on a GPU of its own. False: all are on one. */
static bool find_two(int *one, int *other) {
    unsigned second = 0;
    for (int i = 1; i < MOST - 1; i++) {
        int before = launches.of[1];
        run(queues[0], turn, i, i, NULL);
        ck_ok(clFinish(queues[0]));
        second |= launches.of[1] > before ? 1u << i : 0;
    }
    *one = *other = 0;
    for (int i = 1; i < MOST - 1; i++)
        *(second & 1u << i ? other : one) = i;
    return *one && *other;
}

/* So many at a time, in so many queues. */
static void ck_appended_on_both(int some, int in) {
    int most = 0, fewest = 0;
    begin_on_both();
    for (int attempt = 0; attempt < 10 && (most < MANY / 2 || fewest < MANY / 8); attempt++) {
        spread();
        int before[2] = {launches.of[0], launches.of[1]};
        appended();
        for (int i = 0; i < MANY; i += some) {
            for (int q = 0; q < in; q++)
                keep_busy(queues[q], SLOW);
            for (int k = i; k < i + some; k++)
                run(queues[k % in], turn, k % (MOST - 1), k, NULL);
            for (int q = 0; q < in; q++)
                ck_ok(clFinish(queues[q]));
        }
        most = appended();
        int own[2] = {launches.of[0] - before[0], launches.of[1] - before[1]};
        fewest = own[0] < own[1] ? own[0] : own[1];
        ck_buffers(queues[0], MOST);
    }
    ck_assert_int_ge(most, MANY / 2);
    ck_assert_int_ge(fewest, MANY / 8);
    end_on_both();
}

START_TEST(in_one_queue) { ck_appended_on_both(SOME, 1); }
END_TEST

START_TEST(many_in_several_queues) { ck_appended_on_both(5 * SOME, 4); }
END_TEST

/* Is a kernel appended to one before others, which are on the other GPU? */
static bool is_appended(int one, int other, bool with_event) {
    cl_event event;
    unsigned long before = slow_set_length(LONGER);
    run(queues[0], turn, one, 1, NULL);
    run(queues[0], turn, other, 2, with_event ? &event : NULL);
    ck_assert(slow_await(before + 2));
    slow_set_length(LENGTH);
    run(queues[0], turn, other, 3, NULL);
    appended();
    run(queues[0], turn, one, 4, NULL);
    bool is = appended() > 0;
    if (with_event)
        ck_ok(clReleaseEvent(event));
    ck_ok(clFinish(queues[0]));
    return is;
}

/* It would end later for what was enqueued after it. */
START_TEST(not_before_an_event) {
    int without = 0, with = 0;
    begin_on_both();
    for (int r = 0; r < 20; r++) {
        int one, other;
        calm_down();
        spread();
        if (!find_two(&one, &other))
            continue;
        without += is_appended(one, other, false);
        calm_down();
        with += is_appended(one, other, true);
    }
    ck_buffers(queues[0], MOST);
    ck_assert_int_gt(without, 0);
    ck_assert_int_eq(with, 0);
    end_on_both();
}
END_TEST

START_TEST(all_else_among_them) {
    begin_on_both();
    ck_all_by_chance(spread);
    ck_assert_int_gt(appended(), 0);
    end_on_both();
}
END_TEST

static void change_both(cl_icd_dispatch *driver) {
    change(driver);
    driver->clEnqueueNDRangeKernel = count_and_enqueue;
}

int main(int argc, char **argv) {
    const TTest *const tests[] = {in_one_queue, many_in_several_queues, not_before_an_event,
                                  all_else_among_them};
    return pocl_gpu_begin("pthread pthread", change_both)
               ? test_main_logged(argc, argv, tests, COUNT(tests))
               : 0;
}
