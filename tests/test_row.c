/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti, over one device of PoCL that uses all cores: many short kernels in a row are given to
 * it without a command for each. The log says which are. What comes after them must find them over,
 * and their events tell when they are.
 */
#include "streams.h"

#include "native.h"
#include "task_counts.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum {
    N = 1024,
    BYTES = N * sizeof(cl_int),
    MANY = 400,
    FEW = 40,
    ROUNDS = 20,
    THREADS = 4,
    ENDS = 10
};

static const char source[] =
    "kernel void add(global int *data, int by) { data[get_global_id(0)] += by; }"
    "kernel void add_sampled(global int *data, int by, sampler_t none) {"
    "    data[get_global_id(0)] += by; }";

static cl_program program;
static cl_kernel add;
static cl_command_queue second, plain; /* the suite's own is profiled */

static void run(cl_command_queue on, cl_kernel kernel, cl_mem buffer, cl_int by, cl_event *event) {
    size_t items = N;
    ck_ok(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(kernel, 1, sizeof(by), &by));
    ck_ok(clEnqueueNDRangeKernel(on, kernel, 1, NULL, &items, NULL, 0, NULL, event));
}

static void run_many(cl_command_queue on, cl_mem buffer, int times) {
    for (int i = 0; i < times; i++)
        run(on, add, buffer, 1, NULL);
}

static cl_mem make_zeros(cl_mem_flags flags, cl_int *memory) {
    static cl_int zeros[N];
    return make_buffer(flags | (memory ? CL_MEM_USE_HOST_PTR : CL_MEM_COPY_HOST_PTR), BYTES,
                       memory ? memory : zeros);
}

static void ck_holds(cl_mem buffer, cl_int expected) {
    cl_int values[N];
    ck_ok(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, BYTES, values, 0, NULL, NULL));
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(values[i], expected);
}

static int in_a_row(void) { return test_log_count("in a row"); }

/* How long they take is known then. */
static void begin(void) {
    program = make_program(source);
    second = make_queue(0);
    plain = make_queue(0);
    add = make_kernel(program, "add");
    cl_mem buffer = make_zeros(0, NULL);
    for (int i = 0; i < 10; i++) {
        run(queue, add, buffer, 1, NULL);
        ck_ok(clFinish(queue));
    }
    ck_ok(clReleaseMemObject(buffer));
    in_a_row();
}

static void end(void) {
    ck_ok(clReleaseCommandQueue(second));
    ck_ok(clReleaseCommandQueue(plain));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}

/*
 * Most of those that `give` gives are. Again, if the machine does something else meanwhile: kernels
 * that seem to take long are none.
 */
static void ck_most_of(void (*give)(cl_mem buffer)) {
    int count = 0;
    begin();
    for (int round = 0; round < ROUNDS && count <= MANY / 2; round++) {
        cl_mem buffer = make_zeros(0, NULL);
        give(buffer);
        count = in_a_row();
        ck_holds(buffer, MANY);
        ck_ok(clReleaseMemObject(buffer));
    }
    ck_assert_int_gt(count, MANY / 2);
    end();
}

static void give_many(cl_mem buffer) {
    cl_ulong before[REAL], after[REAL];
    read_counts(before);
    run_many(queue, buffer, MANY);
    ck_ok(clFinish(queue));
    read_counts(after);
    ck_assert_uint_ge(after[0] - before[0], MANY);
}

START_TEST(many_kernels_are_a_row) { ck_most_of(give_many); }
END_TEST

/* As array libraries do, with a buffer for each result. */
static void give_on_fresh_ones(cl_mem buffer) {
    for (int i = 0; i < MANY; i++) {
        cl_mem own = make_zeros(0, NULL);
        run(queue, add, buffer, 1, NULL);
        run(queue, add, own, 1, NULL);
        ck_ok(clFinish(queue));
        ck_ok(clReleaseMemObject(own)); /* nothing is under way that uses it */
    }
}

START_TEST(with_buffers_that_go) { ck_most_of(give_on_fresh_ones); }
END_TEST

/* The program may release its sampler before they are over, and PoCL 3.1 needs it until then. */
START_TEST(but_not_with_a_sampler) {
    begin();
    cl_kernel sampled = make_kernel(program, "add_sampled");
    cl_mem buffer = make_zeros(0, NULL);
    for (int i = 0; i < MANY; i++) {
        cl_sampler sampler = ck_made(
            clCreateSampler(context, CL_FALSE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, &error));
        ck_ok(clSetKernelArg(sampled, 2, sizeof(sampler), &sampler));
        run(queue, sampled, buffer, 1, NULL);
        if (i % 20 == 0)
            ck_ok(clFinish(queue)); /* it is known to be short */
        ck_ok(clReleaseSampler(sampler));
    }
    ck_holds(buffer, MANY);
    ck_assert_int_eq(in_a_row(), 0);
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseKernel(sampled));
    end();
}
END_TEST

/* Parts of a buffer that is not used as a whole meanwhile. */
static void give_on_parts(cl_mem buffer) {
    static cl_int zeros[2 * N];
    cl_mem whole = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(zeros), zeros), part[2];
    for (size_t p = 0; p < 2; p++) {
        cl_buffer_region region = {p * BYTES, BYTES};
        part[p] =
            ck_made(clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error));
    }
    for (int i = 0; i < MANY; i++)
        for (int p = 0; p < 2; p++)
            run(queue, add, part[p], 1, NULL);
    ck_holds(part[0], MANY);
    ck_ok(clEnqueueCopyBuffer(queue, whole, buffer, BYTES, 0, BYTES, 0, NULL, NULL));
    for (int p = 0; p < 2; p++)
        ck_ok(clReleaseMemObject(part[p]));
    ck_ok(clReleaseMemObject(whole));
}

START_TEST(on_parts) { ck_most_of(give_on_parts); }
END_TEST

static void run_all(cl_mem buffer, cl_uint count, const cl_event *list) {
    size_t items = 2 * N;
    cl_int one = 1;
    ck_ok(clSetKernelArg(add, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(add, 1, sizeof(one), &one));
    ck_ok(clEnqueueNDRangeKernel(second, add, 1, NULL, &items, NULL, count, list, NULL));
}

/*
 * The whole is brought up to date with a part that kernels in a row still write, by a kernel that
 * could not be in the row when it was enqueued.
 */
START_TEST(a_part_and_then_the_whole) {
    static cl_int zeros[2 * N], seen[2 * N];
    const cl_buffer_region region = {BYTES, BYTES};
    begin();
    cl_mem whole = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(zeros), zeros);
    cl_mem other = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(zeros), zeros);
    cl_mem part =
        ck_made(clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error));
    for (int i = 0; i < 10; i++) { /* how long it takes is known then */
        run_all(other, 0, NULL);
        ck_ok(clFinish(second));
    }
    for (int round = 1; round <= ROUNDS; round++) {
        cl_event events[2] = {make_user_event()};
        run_many(plain, part, MANY);
        run(plain, add, part, 1, &events[1]);
        run_all(whole, 2, events);
        ck_ok(clSetUserEventStatus(events[0], CL_COMPLETE));
        ck_ok(clFinish(second));
        ck_ok(clEnqueueReadBuffer(queue, whole, CL_TRUE, 0, sizeof(seen), seen, 0, NULL, NULL));
        for (int i = 0; i < N; i++) {
            ck_assert_int_eq(seen[i], round);
            ck_assert_int_eq(seen[N + i], round * (MANY + 2));
        }
        ck_ok(clReleaseEvent(events[0]));
        ck_ok(clReleaseEvent(events[1]));
    }
    ck_ok(clReleaseMemObject(part));
    ck_ok(clReleaseMemObject(whole));
    ck_ok(clReleaseMemObject(other));
    end();
}
END_TEST

/* Kernels with a wait for all after each, too. */
static void give_with_waits(cl_mem buffer) {
    for (int i = 0; i < MANY; i++) {
        run(queue, add, buffer, 1, NULL);
        ck_ok(clFinish(queue));
    }
}

START_TEST(with_waits_between_them) { ck_most_of(give_with_waits); }
END_TEST

/* Who does something else now and then would have to wait each time. */
START_TEST(a_few_are_none) {
    cl_int value = 0;
    begin();
    cl_mem buffer = make_zeros(0, NULL);
    for (int i = 1; i <= ROUNDS; i++) {
        run_many(queue, buffer, FEW);
        ck_ok(
            clEnqueueReadBuffer(queue, buffer, CL_FALSE, 0, sizeof(value), &value, 0, NULL, NULL));
    }
    ck_ok(clFinish(queue));
    ck_assert_int_eq(value, ROUNDS * FEW);
    ck_assert_int_eq(in_a_row(), 0);
    ck_ok(clReleaseMemObject(buffer));
    end();
}
END_TEST

static void CL_CALLBACK look(void *argument) {
    cl_int *values = *(cl_int **)argument;
    values[0] += 1000;
}

/* All that may come after a row, which must find it over. */
static void follow(int how, cl_mem buffer, cl_mem other, cl_int *sum) {
    const cl_int fill = 5;
    cl_int first = 0, *mapped;
    void *argument = NULL;
    const void *place = &argument;
    cl_event event;
    switch (how) {
    case 0:
        ck_ok(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(first), &first, 0, NULL, NULL));
        ck_assert_int_eq(first, *sum);
        break;
    case 1:
        mapped = ck_made(clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                            BYTES, 0, NULL, NULL, &error));
        ck_assert_int_eq(mapped[N - 1], *sum);
        ck_ok(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL));
        break;
    case 2:
        ck_ok(clEnqueueCopyBuffer(queue, buffer, other, 0, 0, BYTES, 0, NULL, NULL));
        ck_holds(other, *sum);
        break;
    case 3:
        ck_ok(clEnqueueFillBuffer(queue, buffer, &fill, sizeof(fill), 0, BYTES, 0, NULL, NULL));
        *sum = fill;
        break;
    case 4:
        ck_ok(clEnqueueNativeKernel(queue, look, &argument, sizeof(argument), 1, &buffer, &place, 0,
                                    NULL, NULL));
        ck_ok(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(first), &first, 0, NULL, NULL));
        ck_assert_int_eq(first, *sum + 1000);
        ck_ok(clEnqueueFillBuffer(queue, buffer, sum, sizeof(*sum), 0, BYTES, 0, NULL, NULL));
        break;
    case 5:
        ck_ok(clEnqueueMarkerWithWaitList(queue, 0, NULL, &event));
        ck_ok(clWaitForEvents(1, &event));
        ck_ok(clReleaseEvent(event));
        mapped = ck_made(clEnqueueMapBuffer(second, buffer, CL_TRUE, CL_MAP_READ, 0, BYTES, 0, NULL,
                                            NULL, &error));
        ck_assert_int_eq(mapped[0], *sum);
        ck_ok(clEnqueueUnmapMemObject(second, buffer, mapped, 0, NULL, NULL));
        ck_ok(clFinish(second));
        break;
    case 6:
        run(queue, add, buffer, 1, &event);
        ck_ok(clWaitForEvents(1, &event));
        ck_ok(clReleaseEvent(event));
        ++*sum;
        break;
    case 7: {
        cl_buffer_region half = {BYTES / 2, BYTES / 2};
        cl_mem part =
            ck_made(clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &half, &error));
        ck_ok(clEnqueueReadBuffer(queue, part, CL_TRUE, 0, sizeof(first), &first, 0, NULL, NULL));
        ck_assert_int_eq(first, *sum);
        ck_ok(clReleaseMemObject(part));
        break;
    }
    default:
        ck_ok(clFinish(queue));
    }
}

START_TEST(what_comes_after_them) {
    cl_int sum = 0;
    begin();
    cl_mem buffer = make_zeros(0, NULL), other = make_zeros(0, NULL);
    for (int round = 0; round < ROUNDS; round++)
        for (int how = 0; how < 9; how++) {
            run_many(queue, buffer, how % 2 ? MANY : MANY / 4);
            sum += how % 2 ? MANY : MANY / 4;
            follow(how, buffer, other, &sum);
        }
    ck_holds(buffer, sum);
    ck_assert_int_gt(in_a_row(), 0);
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseMemObject(other));
    end();
}
END_TEST

static cl_int lent[N], at_the_end[N];
static atomic_bool destroyed;

static void CL_CALLBACK keep(cl_mem buffer, void *unused) {
    (void)buffer;
    (void)unused;
    memcpy(at_the_end, lent, sizeof(lent));
    atomic_store(&destroyed, true);
}

/*
 * The program may use its memory for something else then. The release waits for kernels in a row;
 * those that were commands, as the machine was busy, hold the buffer until they are over.
 */
START_TEST(nothing_is_written_after_its_end) {
    begin();
    for (int round = 0; round < ROUNDS; round++) {
        memset(lent, 0, sizeof(lent));
        atomic_store(&destroyed, false);
        cl_mem buffer = make_zeros(0, lent);
        ck_ok(clSetMemObjectDestructorCallback(buffer, keep, NULL));
        run_many(queue, buffer, MANY);
        ck_ok(clFinish(queue));
        run_many(queue, buffer, MANY);
        ck_ok(clReleaseMemObject(buffer));
        ck_ok(clFinish(queue));
        while (!atomic_load(&destroyed))
            sched_yield();
        ck_assert_mem_eq(lent, at_the_end, sizeof(lent));
        ck_assert_int_eq(lent[N - 1], 2 * MANY);
    }
    ck_assert_int_gt(in_a_row(), 0);
    end();
}
END_TEST

/* Behind a command that waits there is no row, in its queue; in another one there is. */
START_TEST(behind_a_gate) {
    begin();
    cl_mem gated = make_zeros(0, NULL), free = make_zeros(0, NULL);
    cl_event gate = make_user_event(), barrier;
    const cl_int fill = 7;
    ck_ok(clEnqueueFillBuffer(queue, gated, &fill, sizeof(fill), 0, BYTES, 1, &gate, NULL));
    ck_ok(clEnqueueBarrierWithWaitList(queue, 0, NULL, &barrier));
    run_many(queue, gated, MANY);
    ck_assert_int_eq(in_a_row(), 0);
    run_many(second, free, MANY);
    ck_ok(clFinish(second));
    ck_assert_int_gt(in_a_row(), 0);
    ck_assert_int_gt(event_status(barrier), CL_COMPLETE);
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    ck_holds(gated, fill + MANY);
    ck_holds(free, MANY);
    ck_ok(clReleaseEvent(gate));
    ck_ok(clReleaseEvent(barrier));
    ck_ok(clReleaseMemObject(gated));
    ck_ok(clReleaseMemObject(free));
    end();
}
END_TEST

/* A kernel of many that waits for those events and has one. */
static cl_event run_after(cl_command_queue on, cl_mem buffer, cl_uint count, const cl_event *list) {
    size_t items = N;
    cl_int by = 1;
    cl_event event;
    ck_ok(clSetKernelArg(add, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(add, 1, sizeof(by), &by));
    ck_ok(clEnqueueNDRangeKernel(on, add, 1, NULL, &items, NULL, count, list, &event));
    return event;
}

static void release_all(int count, cl_event *events) {
    for (int i = 0; i < count; i++)
        ck_ok(clReleaseEvent(events[i]));
}

/* Each waits for the one before it; that in which queue says `which` for its number. */
static void chain(cl_mem buffer, cl_command_queue (*which)(int)) {
    cl_event events[MANY];
    for (int i = 0; i < MANY; i++) {
        events[i] = run_after(which(i), buffer, i > 0, i > 0 ? &events[i - 1] : NULL);
        if (i == MANY / 4) /* before, each was held until the one before it, elsewhere, was over */
            ck_ok(clWaitForEvents(1, &events[i]));
    }
    ck_ok(clWaitForEvents(1, &events[MANY - 1]));
    for (int i = 0; i < MANY; i++)
        ck_assert_int_eq(event_status(events[i]), CL_COMPLETE);
    release_all(MANY, events);
}

static cl_command_queue loose;
static cl_command_queue the_plain(int unused) {
    (void)unused;
    return plain;
}
static cl_command_queue the_loose(int unused) {
    (void)unused;
    return loose;
}
static cl_command_queue by_turns(int i) { return i % 3 == 0 ? plain : i % 3 == 1 ? second : loose; }

static void chain_in_order(cl_mem buffer) { chain(buffer, the_plain); }
static void chain_out_of_order(cl_mem buffer) { chain(buffer, the_loose); }
static void chain_by_turns(cl_mem buffer) { chain(buffer, by_turns); }

START_TEST(each_after_the_one_before) { ck_most_of(chain_in_order); }
END_TEST

static void ck_most_of_loose(void (*give)(cl_mem buffer)) {
    loose = make_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    ck_most_of(give);
    ck_ok(clReleaseCommandQueue(loose));
}

START_TEST(out_of_order) { ck_most_of_loose(chain_out_of_order); }
END_TEST

START_TEST(in_several_queues) { ck_most_of_loose(chain_by_turns); }
END_TEST

/* Of one in-order queue, no event shows more than the one before it. */
START_TEST(events_end_in_order) {
    cl_event events[MANY];
    begin();
    cl_mem buffer = make_zeros(0, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < MANY; i++)
            run(plain, add, buffer, 1, &events[i]);
        ck_ok(clFlush(plain));
        for (int i = MANY - 1; i >= 0;) { /* the last one first */
            if (event_status(events[i]) > CL_COMPLETE)
                continue;
            for (; i >= 0; i--)
                ck_assert_int_eq(event_status(events[i]), CL_COMPLETE);
        }
        release_all(MANY, events);
    }
    ck_assert_int_gt(in_a_row(), 0);
    ck_holds(buffer, ROUNDS * MANY);
    ck_ok(clReleaseMemObject(buffer));
    end();
}
END_TEST

/* Nobody waits for it, nor keeps it. */
static void give_with_events(cl_mem buffer) {
    for (int i = 0; i < MANY; i++) {
        cl_event event;
        run(plain, add, buffer, 1, &event);
        ck_ok(clReleaseEvent(event));
    }
}

START_TEST(events_released_at_once) { ck_most_of(give_with_events); }
END_TEST

static atomic_int called, in_error;

static void CL_CALLBACK count_call(cl_event event, cl_int status, void *expected) {
    (void)event;
    if (status != *(const cl_int *)expected)
        atomic_fetch_add(&in_error, 1);
    atomic_fetch_add(&called, 1);
}

static void give_with_callbacks(cl_mem buffer) {
    static const cl_int types[] = {CL_SUBMITTED, CL_RUNNING, CL_COMPLETE};
    cl_event events[MANY];
    atomic_store(&called, 0);
    for (int i = 0; i < MANY; i++) {
        run(plain, add, buffer, 1, &events[i]);
        for (int t = 0; t < 3; t++)
            ck_ok(clSetEventCallback(events[i], types[t], count_call, (void *)&types[t]));
    }
    ck_ok(clFinish(plain));
    while (atomic_load(&called) < 3 * MANY)
        sched_yield();
    ck_assert_int_eq(atomic_load(&in_error), 0);
    release_all(MANY, events);
}

START_TEST(callbacks) { ck_most_of(give_with_callbacks); }
END_TEST

/* Other commands before and after those of a row, by their events. */
START_TEST(events_of_others) {
    cl_int values[N], read[N];
    begin();
    loose = make_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    cl_mem buffer = make_zeros(0, NULL);
    for (cl_int round = 0; round < ROUNDS; round++) {
        cl_event written, first, last, over, gate = make_user_event();
        for (int i = 0; i < N; i++)
            values[i] = round;
        ck_ok(clEnqueueWriteBuffer(loose, buffer, CL_FALSE, 0, BYTES, values, 1, &gate, &written));
        first = last = run_after(loose, buffer, 1, &written);
        ck_ok(clRetainEvent(first));
        for (int i = 1; i < MANY; i++) {
            cl_event before = last;
            last = run_after(i % 2 ? second : loose, buffer, 1, &before);
            ck_ok(clReleaseEvent(before));
            if (i == MANY / 4) {
                ck_assert_int_gt(event_status(first), CL_COMPLETE);
                ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
            }
            if (i == MANY / 2) /* else the others would be held, too */
                ck_ok(clWaitForEvents(1, &last));
        }
        ck_ok(clEnqueueReadBuffer(loose, buffer, CL_FALSE, 0, BYTES, read, 1, &last, &over));
        ck_ok(clWaitForEvents(1, &over));
        ck_assert_int_eq(event_status(last), CL_COMPLETE);
        ck_assert_int_eq(event_status(first), CL_COMPLETE);
        for (int i = 0; i < N; i++)
            ck_assert_int_eq(read[i], round + MANY);
        release_all(5, (cl_event[]){written, first, last, over, gate});
    }
    ck_assert_int_gt(in_a_row(), 0);
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseCommandQueue(loose));
    end();
}
END_TEST

/* Who waits for what failed fails, and those of a row that do not are executed. */
START_TEST(what_waits_for_a_failure) {
    begin();
    cl_mem buffer = make_zeros(0, NULL);
    cl_event failed = make_user_event(), event;
    ck_ok(clSetUserEventStatus(failed, -5));
    run_many(plain, buffer, MANY);
    event = run_after(plain, buffer, 1, &failed);
    run_many(plain, buffer, MANY);
    cl_event list[] = {run_after(plain, buffer, 0, NULL), failed};
    cl_event second_event = run_after(plain, buffer, 2, list);
    ck_assert_int_eq(clWaitForEvents(1, &event), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    ck_assert_int_eq(clWaitForEvents(1, &second_event),
                     CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    ck_assert_int_eq(event_status(list[0]), CL_COMPLETE);
    ck_holds(buffer, 2 * MANY + 1);
    ck_assert_int_gt(in_a_row(), 0);
    release_all(2, list);
    release_all(2, (cl_event[]){event, second_event});
    ck_ok(clReleaseMemObject(buffer));
    end();
}
END_TEST

/* Kernels whose times are asked for are commands. */
START_TEST(with_profiling) {
    cl_event events[MANY];
    begin();
    cl_mem buffer = make_zeros(0, NULL);
    cl_command_queue profiled = make_queue(CL_QUEUE_PROFILING_ENABLE);
    for (int i = 0; i < MANY; i++)
        run(profiled, add, buffer, 1, &events[i]);
    ck_ok(clFinish(profiled));
    cl_ulong before = 0, end_time = 0;
    for (int i = 0; i < MANY; i++) {
        ck_ok(clGetEventProfilingInfo(events[i], CL_PROFILING_COMMAND_END, sizeof(end_time),
                                      &end_time, NULL));
        ck_assert_uint_ge(end_time, before);
        before = end_time;
    }
    release_all(MANY, events);
    ck_holds(buffer, MANY);
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseCommandQueue(profiled));
    end();
}
END_TEST

static void *run_some(void *unused) {
    cl_int failed, values[N];
    (void)unused;
    cl_command_queue own = clCreateCommandQueue(context, device, 0, &failed);
    ck_ok(failed);
    cl_kernel kernel = clCreateKernel(program, "add", &failed);
    ck_ok(failed);
    cl_mem buffer = clCreateBuffer(context, 0, BYTES, NULL, &failed);
    ck_ok(failed);
    memset(values, 0, sizeof(values));
    ck_ok(clEnqueueWriteBuffer(own, buffer, CL_TRUE, 0, BYTES, values, 0, NULL, NULL));
    for (int round = 1; round <= ROUNDS; round++) {
        cl_event event = NULL;
        for (int i = 0; i < MANY; i++) {
            if (event)
                ck_ok(clReleaseEvent(event));
            event = NULL;
            run(own, kernel, buffer, 1, round % 3 ? NULL : &event);
        }
        if (event) {
            ck_ok(clWaitForEvents(1, &event));
            ck_ok(clReleaseEvent(event));
        }
        if (round % 2)
            ck_ok(clFinish(own));
        ck_ok(clEnqueueReadBuffer(own, buffer, CL_TRUE, 0, BYTES, values, 0, NULL, NULL));
        for (int i = 0; i < N; i++)
            ck_assert_int_eq(values[i], round * MANY);
    }
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseCommandQueue(own));
    return NULL;
}

START_TEST(from_several_threads) {
    pthread_t thread[THREADS];
    begin();
    for (int t = 0; t < THREADS; t++)
        ck_assert_int_eq(pthread_create(&thread[t], NULL, run_some, NULL), 0);
    for (int t = 0; t < THREADS; t++)
        ck_assert_int_eq(pthread_join(thread[t], NULL), 0);
    ck_assert_int_gt(in_a_row(), 0);
    end();
}
END_TEST

/* The process ends with kernels under way. */
START_TEST(the_end) {
    begin();
    run_many(queue, make_zeros(0, NULL), MANY);
    ck_assert_int_gt(in_a_row(), 0);
    exit(0);
}
END_TEST

START_TEST(the_process_ends) {
    for (int i = 0; i < ENDS; i++)
        test_run_again("", "--end");
}
END_TEST

/* Rows of one, too, among commands of all kinds. */
START_TEST(as_soon_as_there_is_one) { test_run_again("TUTTI_DIRECT=row", "--streams"); }
END_TEST

int main(int argc, char **argv) {
    const TTest *const last[] = {the_end};
    const TTest *const tests[] = {
        many_kernels_are_a_row,
        with_buffers_that_go,
        but_not_with_a_sampler,
        on_parts,
        a_part_and_then_the_whole,
        with_waits_between_them,
        a_few_are_none,
        what_comes_after_them,
        nothing_is_written_after_its_end,
        behind_a_gate,
        each_after_the_one_before,
        out_of_order,
        in_several_queues,
        events_end_in_order,
        events_released_at_once,
        callbacks,
        events_of_others,
        what_waits_for_a_failure,
        with_profiling,
        from_several_threads,
        the_process_ends,
        as_soon_as_there_is_one,
    };
    if (argc == 2 && strcmp(argv[1], "--streams") == 0)
        return test_streams(1, argv, "pthread");
    setenv("POCL_DEVICES", "pthread", 1);
    setenv("POCL_MAX_PTHREAD_COUNT", "2", 1); /* with many it takes long to begin a kernel */
    setenv("TUTTI_DEVICES", "portable", 1);
    setenv("TUTTI_MODELS", "none", 1);
    if (argc == 2 && strcmp(argv[1], "--end") == 0)
        return test_main_logged(1, argv, last, COUNT(last));
    return test_main_logged(argc, argv, tests, COUNT(tests));
}
