/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: kernels with few work-items execute at the same time on one GPU, whatever queue they
 * come from, and in their order where they use the same memory. PoCL stands in for the GPU.
 */
enum { N = 16, BUFFERS = 24 };

#include "mixing.h"
#include "slow_gpu.h"

enum { ROUNDS = 12, RANDOM = 600, QUEUES = 4 };

static const char source[] =
    "kernel void add_to(global int *data, int by) { data[get_global_id(0)] += by; }"
    "kernel void mix_in(global int *to, global const int *a, global const int *b) {"
    "  size_t i = get_global_id(0); to[i] = 3 * to[i] + a[i] - 2 * b[i]; }";

static void add_by(cl_command_queue on, unsigned i, cl_int by) { add_in_groups(on, i, by, 0); }

static void mix_from(cl_command_queue on, unsigned to, unsigned a, unsigned b) {
    mix_in_groups(on, to, a, b, 0);
}

static _Thread_local bool unmarked; /* this thread gets no markers */
static unsigned refused;            /* so many of its own */

static cl_int CL_API_CALL enqueue_marker(cl_command_queue on, cl_uint count, const cl_event *list,
                                         cl_event *event) {
    if (!unmarked)
        return real.clEnqueueMarkerWithWaitList(on, count, list, event);
    refused++;
    return CL_OUT_OF_RESOURCES;
}

static void change(cl_icd_dispatch *driver) {
    slow_change(driver);
    driver->clEnqueueMarkerWithWaitList = enqueue_marker;
}

/* How long they take is known then, and their memory is on the device. */
static void begin(void) {
    make_mixed(source);
    for (unsigned round = 0; round < ROUNDS; round++)
        for (unsigned i = 0; i < BUFFERS; i++) {
            add_by(queue, i, 1);
            mix_from(queue, i, (i + 1) % BUFFERS, (i + 2) % BUFFERS);
            ck_ok(clFinish(queue));
        }
    slow_await_busy(0);
}

/* Returns how many executed at the same time. */
static unsigned end(void) {
    check_mixed();
    pthread_mutex_lock(&slow.lock);
    unsigned most = slow.most_busy;
    pthread_mutex_unlock(&slow.lock);
    return most;
}

START_TEST(of_one_queue) {
    begin();
    slow_await_busy(9);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < BUFFERS; i++)
            add_by(queue, i, 1);
        ck_ok(clFinish(queue));
    }
    ck_assert_uint_gt(end(), 8);
}
END_TEST

START_TEST(of_several_queues) {
    cl_command_queue queues[QUEUES];
    begin();
    open_queues(queues, QUEUES, 0);
    slow_await_busy(9);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < BUFFERS; i++)
            add_by(queues[i % QUEUES], i, 1);
        for (unsigned q = 0; q < QUEUES; q++)
            ck_ok(clFinish(queues[q]));
    }
    finish_queues(queues, QUEUES);
    ck_assert_uint_gt(end(), 8);
}
END_TEST

/* Each chain by itself, all of them at the same time. */
START_TEST(of_chains) {
    begin();
    slow_await_busy(5);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < BUFFERS; i++)
            add_by(queue, i, (cl_int)(round + i));
        for (unsigned i = 0; i < BUFFERS; i += 3)
            mix_from(queue, i, i + 1, i + 2);
        for (unsigned i = 0; i < BUFFERS; i++)
            add_by(queue, i, (cl_int)(round * i));
    }
    ck_ok(clFinish(queue));
    ck_assert_uint_gt(end(), 4);
}
END_TEST

/* Many may read at the same time what one writes before and another one after them. */
START_TEST(that_read_the_same) {
    begin();
    for (unsigned round = 0; round < ROUNDS; round++) {
        add_by(queue, 0, 5);
        ck_ok(clFinish(queue));
        if (round == 1) /* how long they take is known */
            slow_await_busy(9);
        for (unsigned i = 1; i < BUFFERS; i++)
            mix_from(queue, i, 0, 0);
        ck_ok(clFinish(queue));
        for (unsigned i = 0; i < 3; i++) /* the last one to read it is over before these */
            mix_from(queue, 1, 0, 0);
        mix_from(queue, 2, 0, 0);
        add_by(queue, 0, 7);
        mix_from(queue, 1, 0, 2);
    }
    ck_assert_uint_gt(end(), 8);
}
END_TEST

/* StarPU gets this kernel, as it must come after two that are in lanes of their own. */
static void add_for_StarPU(unsigned i, cl_event *event) {
    cl_int by = 5;
    for (unsigned k = 1; k < 3; k++)
        mix_from(queue, i + k, i, i + 10);
    ck_ok(clSetKernelArg(add_to, 0, sizeof(buffer[i]), &buffer[i]));
    ck_ok(clSetKernelArg(add_to, 1, sizeof(by), &by));
    give(queue, add_to, N, 0, event);
    expected[i] += by;
}

/*
 * What StarPU has reads a buffer that a kernel past StarPU reads meanwhile, and the next one in its
 * lane writes it: that comes after both.
 */
START_TEST(that_read_what_StarPU_reads) {
    cl_event first, second;
    begin();
    unsigned long kernels = slow_set_length(SLOW_HELD);
    add_for_StarPU(0, &first);
    add_for_StarPU(3, &second);
    mix_from(queue, 3, 0, 19); /* when the first one is over, StarPU has it, for the second one */
    mix_from(queue, 8, 21, 19);
    ck_assert(slow_await(kernels + 5));
    slow_set_length(300000);
    slow_end_between(kernels, kernels + 2);
    ck_ok(clWaitForEvents(1, &first));
    usleep(3000); /* for StarPU to get it */
    add_by(queue, 19, 1);
    slow_end_all();
    ck_ok(clWaitForEvents(1, &second));
    ck_ok(clReleaseEvent(first));
    ck_ok(clReleaseEvent(second));
    end();
}
END_TEST

/* A lane that the driver makes no marker for is waited for. */
START_TEST(behind_one_without_a_marker) {
    cl_command_queue profiled = make_queue(CL_QUEUE_PROFILING_ENABLE);
    begin();
    unmarked = true;
    for (unsigned round = 0; round < ROUNDS; round++) {
        cl_event event;
        add_by(queue, 0, 1);
        give(profiled, add_to, N, 0, &event); /* the same once more */
        expected[0] += 1;
        ck_ok(clWaitForEvents(1, &event));
        ck_ok(clReleaseEvent(event));
    }
    finish_queues(&profiled, 1);
    unmarked = false;
    end();
    ck_assert_uint_gt(refused, 0);
}
END_TEST

/* The order of each queue is that of one after the other, and of all queues, with a wait between.
 */
static void draw_commands(cl_command_queue_properties properties) {
    cl_command_queue queues[QUEUES];
    cl_uint state = 12345;
    begin();
    open_queues(queues, QUEUES, properties);
    for (unsigned i = 0; i < RANDOM; i++) {
        cl_uint drawn = state = state * 1664525 + 1013904223;
        unsigned to = (drawn >> 8) % BUFFERS, a = (drawn >> 16) % BUFFERS;
        unsigned b = (drawn >> 24) % BUFFERS;
        cl_command_queue on = queues[i / 50 % QUEUES];
        if (drawn >> 4 & 1 && i > RANDOM / 2)
            draw_transfer(on, drawn >> 5, to, a);
        else if (drawn % 3 == 0 || to == a || to == b)
            add_by(on, to, (cl_int)i);
        else
            mix_from(on, to, a, b);
        if (i % 50 == 49)
            ck_ok(clFinish(on));
    }
    finish_queues(queues, QUEUES);
    ck_assert_uint_gt(end(), 2);
}

START_TEST(in_any_order) { draw_commands(0); }
END_TEST

START_TEST(in_any_order_with_profiling) { draw_commands(CL_QUEUE_PROFILING_ENABLE); }
END_TEST

/* A large one has the device for itself, as far as its work-items go. */
START_TEST(but_none_with_many_items) {
    enum { MANY = 1 << 20, LARGE = 4 };
    cl_mem large[LARGE];
    cl_int *zeros = calloc(MANY, sizeof(*zeros)), by = 1;
    begin();
    for (unsigned i = 0; i < LARGE; i++)
        large[i] = make_buffer(CL_MEM_COPY_HOST_PTR, MANY * sizeof(*zeros), zeros);
    for (unsigned i = 0; i < 20 * LARGE; i++) {
        ck_ok(clSetKernelArg(add_to, 0, sizeof(large[0]), &large[i % LARGE]));
        ck_ok(clSetKernelArg(add_to, 1, sizeof(by), &by));
        give(queue, add_to, MANY, 0, NULL);
    }
    ck_ok(clFinish(queue));
    for (unsigned i = 0; i < LARGE; i++)
        ck_ok(clReleaseMemObject(large[i]));
    free(zeros);
    ck_assert_uint_le(end(), 2); /* the queue with profiling is another one */
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        of_one_queue,       of_several_queues,           of_chains,
        that_read_the_same, that_read_what_StarPU_reads, behind_one_without_a_marker,
        in_any_order,       in_any_order_with_profiling, but_none_with_many_items};
    return test_main_gpu(argc, argv, tests, COUNT(tests), change);
}
