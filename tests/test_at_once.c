/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: very short kernels, and longer ones that the program waits for, which are executed in
 * the call that enqueues them where devices do so and nothing is under way. Whatever is under way,
 * they must come in their place.
 */
#include "support.h"

#include "task_counts.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { N = 16, BYTES = N * sizeof(cl_int), MOST = 20000, ROUNDS = 300, THREADS = 4 };

static const char source[] =
    "kernel void add(global int *data, int by) { data[get_global_id(0)] += by; }"
    "kernel void later(global int *data, int rounds) {"
    "    uint noise = get_global_id(0);"
    "    for (int i = 0; i < rounds; i++) noise = noise * 1664525u + 1013904223u;"
    "    data[get_global_id(0)] *= noise == 7u && rounds < 0 ? 3 : 2;"
    "}";

static cl_program program;
static cl_kernel add;
static cl_mem data;

static cl_mem make_zeros(void) {
    static const cl_int zeros[N];

    return make_buffer(CL_MEM_COPY_HOST_PTR, BYTES, (void *)(uintptr_t)zeros);
}

static void run(cl_command_queue on, cl_kernel kernel, cl_mem buffer, cl_int value, cl_uint count,
                const cl_event *list, cl_event *event) {
    size_t items = N;

    ck_ok(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(kernel, 1, sizeof(value), &value));
    ck_ok(clEnqueueNDRangeKernel(on, kernel, 1, NULL, &items, NULL, count, list, event));
}

static void ck_holds(cl_command_queue on, cl_mem buffer, cl_int expected) {
    cl_int seen[N];

    ck_ok(clEnqueueReadBuffer(on, buffer, CL_TRUE, 0, BYTES, seen, 0, NULL, NULL));
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(seen[i], expected);
}

static int at_once(void) { return test_log_count("in the call"); }

static bool can_be(void) {
    char names[REAL][64];
    cl_uint number = read_names(names);

    for (cl_uint d = 0; d < number; d++)
        if (strncmp(names[d], "basic", strlen("basic")) != 0)
            return false;
    return true;
}

static int compare(const void *a, const void *b) {
    cl_ulong first = *(const cl_ulong *)a, second = *(const cl_ulong *)b;

    return first < second ? -1 : first > second;
}

/* ns, of `value`. */
static cl_ulong median_time(cl_kernel kernel, cl_int value) {
    enum { RUNS = 101 };
    cl_command_queue timed = make_queue(CL_QUEUE_PROFILING_ENABLE);
    cl_ulong length[RUNS];

    for (int i = 0; i < RUNS; i++) {
        cl_event event;

        run(timed, kernel, data, value, 0, NULL, &event);
        ck_ok(clFinish(timed));
        length[i] = get_info(cl_ulong, clGetEventProfilingInfo, event, CL_PROFILING_COMMAND_END) -
                    get_info(cl_ulong, clGetEventProfilingInfo, event, CL_PROFILING_COMMAND_START);
        ck_ok(clReleaseEvent(event));
    }
    ck_ok(clReleaseCommandQueue(timed));
    qsort(length, RUNS, sizeof(length[0]), compare);
    return length[RUNS / 2];
}

/*
 * Does the kernel take far less than what is executed so? Not where a sanitizer is in its way, or
 * on a machine that others use.
 */
static bool is_short(void) { return median_time(add, 0) <= 3000; }

/*
 * Until it is known how short the kernel is, and one was executed so. With events, so that the
 * driver tells its time, as is_short() asks: a sanitizer is in what the host's clock tells.
 */
static void begin(void) {
    bool seen = !can_be();
    int runs = 0;

    program = make_program(source);
    add = make_kernel(program, "add");
    data = make_zeros();
    at_once();
    while (runs < MOST && (runs < ROUNDS || !seen)) {
        cl_event event;
        run(queue, add, data, 1, 0, NULL, &event);
        ck_ok(clFinish(queue));
        ck_ok(clReleaseEvent(event));
        if (++runs % ROUNDS == 0)
            seen = seen || at_once() > 0;
    }
    ck_assert(seen || !is_short());
    ck_holds(queue, data, runs);
    ck_ok(clReleaseMemObject(data));
    data = make_zeros();
}

static void end(void) {
    ck_ok(clReleaseMemObject(data));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}

START_TEST(in_the_call) {
    cl_event event;
    cl_int status;
    bool complete = !can_be();

    begin();
    for (int i = 1; i <= MOST && !(complete && i > ROUNDS); i++) {
        run(queue, add, data, 1, 0, NULL, &event);
        status = event_status(event);
        ck_assert(status >= CL_COMPLETE);
        complete = complete || status == CL_COMPLETE;
        ck_assert_uint_eq(get_info(cl_uint, clGetEventInfo, event, CL_EVENT_REFERENCE_COUNT), 1);
        ck_assert_uint_eq(get_info(cl_command_type, clGetEventInfo, event, CL_EVENT_COMMAND_TYPE),
                          CL_COMMAND_NDRANGE_KERNEL);
        ck_ok(clWaitForEvents(1, &event));
        ck_ok(clReleaseEvent(event));
        ck_holds(queue, data, i);
    }
    ck_assert(complete || !is_short());
    end();
}
END_TEST

/* A part of a buffer, and the whole now and then: whoever is next sees what the other one did. */
START_TEST(of_a_part) {
    enum { TRIES = 4, PARTS = 64, AT = 32 /* of N elements */ };
    static cl_int zeros[PARTS * N], seen[PARTS * N];
    const cl_buffer_region region = {AT * BYTES, BYTES};
    begin();
    cl_mem whole = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(zeros), zeros);
    cl_mem part =
        ck_made(clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error));
    int of_whole = 0, done = 0, all = 0;
    bool should = true; /* asking teaches how short it is, where a sanitizer taught otherwise */
    for (int most = MOST; should && most <= TRIES * MOST; most += MOST) {
        for (; all < most && (all < ROUNDS || done < ROUNDS / 2); all++) {
            run(queue, add, part, 1, 0, NULL, NULL);
            if (all % 50 == 0) { /* its first elements alone */
                run(queue, add, whole, 1, 0, NULL, NULL);
                of_whole++;
            }
            ck_ok(clFinish(queue));
            if (all % ROUNDS == ROUNDS - 1)
                done += at_once();
        }
        should = done < ROUNDS / 2 && can_be() && is_short();
    }
    ck_assert(!should);
    ck_holds(queue, part, all);
    ck_ok(clEnqueueReadBuffer(queue, whole, CL_TRUE, 0, sizeof(seen), seen, 0, NULL, NULL));
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(seen[i], of_whole);
        ck_assert_int_eq(seen[AT * N + i], all);
    }
    ck_ok(clReleaseMemObject(part));
    ck_ok(clReleaseMemObject(whole));
    end();
}
END_TEST

START_TEST(behind_what_waits) {
    begin();
    for (int i = 0; i < ROUNDS; i++) {
        cl_event gate = make_user_event(), held, event;
        cl_int value = 5;

        ck_ok(clEnqueueFillBuffer(queue, data, &value, 4, 0, BYTES, 1, &gate, &held));
        run(queue, add, data, 1, 0, NULL, &event);
        ck_assert_int_gt(event_status(event), CL_COMPLETE);
        ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
        ck_holds(queue, data, 6);
        ck_assert_int_eq(event_status(event), CL_COMPLETE);
        ck_ok(clReleaseEvent(event));
        ck_ok(clReleaseEvent(held));
        ck_ok(clReleaseEvent(gate));
    }
    end();
}
END_TEST

/* Of its own queue, and of another one by an event. */
START_TEST(behind_a_longer_kernel) {
    cl_command_queue other = make_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    cl_kernel later;

    begin();
    later = make_kernel(program, "later");
    for (int i = 0; i < 20; i++) {
        cl_event event;

        run(queue, later, data, 20000, 0, NULL, &event);
        ck_ok(clFlush(queue));
        if (i % 2)
            run(other, add, data, 1, 1, &event, NULL);
        else
            run(queue, add, data, 1, 0, NULL, NULL);
        ck_ok(clFinish(other));
        ck_ok(clFinish(queue));
        ck_holds(queue, data, (2 << i) - 1); /* doubled and one more, each time */
        ck_ok(clReleaseEvent(event));
    }
    ck_ok(clReleaseKernel(later));
    ck_ok(clReleaseCommandQueue(other));
    end();
}
END_TEST

START_TEST(its_times) {
    cl_command_queue timed = make_queue(CL_QUEUE_PROFILING_ENABLE);
    const cl_profiling_info what[] = {CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_SUBMIT,
                                      CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_END};
    cl_ulong before = 0;

    begin();
    for (int i = 0; i < ROUNDS; i++) {
        cl_event event;

        run(timed, add, data, 1, 0, NULL, &event);
        ck_ok(clFinish(timed));
        for (size_t w = 0; w < COUNT(what); w++) {
            cl_ulong now = get_info(cl_ulong, clGetEventProfilingInfo, event, what[w]);

            ck_assert_uint_gt(now, 0);
            ck_assert_uint_ge(now, before);
            before = now;
        }
        ck_ok(clReleaseEvent(event));
    }
    ck_ok(clReleaseCommandQueue(timed));
    end();
}
END_TEST

START_TEST(wrong_ones_are_told) {
    size_t items = N, none = 0;
    cl_kernel fresh;
    cl_event failed = make_user_event();

    begin();
    fresh = make_kernel(program, "add");
    ck_assert_cl(clEnqueueNDRangeKernel(queue, fresh, 1, NULL, &items, NULL, 0, NULL, NULL),
                 CL_INVALID_KERNEL_ARGS);
    run(queue, add, data, 1, 0, NULL, NULL);
    ck_assert_cl(clEnqueueNDRangeKernel(queue, add, 4, NULL, &items, NULL, 0, NULL, NULL),
                 CL_INVALID_WORK_DIMENSION);
    ck_assert_cl(clEnqueueNDRangeKernel(queue, add, 1, NULL, &items, &none, 0, NULL, NULL),
                 CL_INVALID_WORK_GROUP_SIZE);
    ck_assert_cl(clEnqueueNDRangeKernel(queue, add, 1, NULL, &items, NULL, 1, NULL, NULL),
                 CL_INVALID_EVENT_WAIT_LIST);
    ck_ok(clFinish(queue));
    ck_holds(queue, data, 1);
    /* What waits for a failure does not run. */
    ck_ok(clSetUserEventStatus(failed, -5));
    run(queue, add, data, 1, 1, &failed, NULL);
    clFinish(queue);
    ck_holds(queue, data, 1);
    ck_ok(clReleaseEvent(failed));
    ck_ok(clReleaseMemObject(data));
    ck_assert_cl(clEnqueueNDRangeKernel(queue, add, 1, NULL, &items, NULL, 0, NULL, NULL),
                 CL_INVALID_MEM_OBJECT);
    data = make_zeros();
    ck_ok(clReleaseKernel(fresh));
    end();
}
END_TEST

/* One kernel object in turns: what is known of the one launch is not taken for the other one. */
START_TEST(of_two_sizes) {
    enum { MANY = 1 << 22, TURNS = 20 };
    size_t many = MANY, group = 1;
    cl_mem large = make_buffer(0, MANY * sizeof(cl_int), NULL);
    cl_int zero = 0, *seen = malloc(MANY * sizeof(*seen));

    begin();
    ck_assert_ptr_nonnull(seen);
    ck_ok(clEnqueueFillBuffer(queue, large, &zero, sizeof(zero), 0, MANY * sizeof(cl_int), 0, NULL,
                              NULL));
    for (int i = 1; i <= TURNS; i++) {
        run(queue, add, data, 1, 0, NULL, NULL);
        ck_ok(clEnqueueNDRangeKernel(queue, add, 1, NULL, &group, &group, 0, NULL, NULL));
        ck_ok(clFinish(queue));
        at_once();
        ck_ok(clSetKernelArg(add, 0, sizeof(large), &large));
        ck_ok(clEnqueueNDRangeKernel(queue, add, 1, NULL, &many, NULL, 0, NULL, NULL));
        ck_ok(clFinish(queue));
        ck_assert_int_eq(at_once(), 0);
    }
    ck_ok(
        clEnqueueReadBuffer(queue, large, CL_TRUE, 0, MANY * sizeof(cl_int), seen, 0, NULL, NULL));
    for (int i = 0; i < MANY; i++)
        ck_assert_int_eq(seen[i], TURNS);
    ck_ok(clEnqueueReadBuffer(queue, data, CL_TRUE, 0, BYTES, seen, 0, NULL, NULL));
    ck_assert_int_eq(seen[0], 2 * TURNS);
    for (int i = 1; i < N; i++)
        ck_assert_int_eq(seen[i], TURNS);
    free(seen);
    ck_ok(clReleaseMemObject(large));
    end();
}
END_TEST

/* Of the kernel that takes that long, ns, by doubling them; no more than some where all take 0. */
static cl_int find_rounds(cl_kernel later, cl_ulong least) {
    cl_int rounds = 1000;
    while (rounds < 1 << 24 && median_time(later, rounds) < least)
        rounds *= 2;
    return rounds;
}

/*
 * A longer kernel is, too, if the program waits for each one before it goes on: to wake another
 * thread would only take time. Not if it enqueues several at a time, as two devices do them sooner.
 */
START_TEST(that_are_waited_for) {
    enum { AT_LEAST = 12000, AT_MOST = 100000 /* ns */, TURN = 20, TOO_MANY = 40 };
    char names[REAL][64];
    bool several = read_names(names) > 1, seen = !can_be(), between = seen,
         alone = seen || !several;
    cl_int one[N], rounds;
    cl_mem other;
    cl_kernel later;

    begin();
    for (int i = 0; i < N; i++)
        one[i] = 1;
    later = make_kernel(program, "later");
    other = make_zeros();
    rounds = find_rounds(later, AT_LEAST);
    at_once();
    for (int i = 0; i < ROUNDS; i++) {
        if (i % TURN == 0)
            ck_ok(clEnqueueWriteBuffer(queue, data, CL_TRUE, 0, BYTES, one, 0, NULL, NULL));
        run(queue, later, data, rounds, 0, NULL, NULL);
        if (i % 2)
            ck_ok(clFinish(queue));
        ck_holds(queue, data, 2 << i % TURN);
    }
    seen = seen || at_once() > 0;
    for (int i = 0; i < ROUNDS; i++) { /* one that is too long between them makes no difference */
        run(queue, later, data, rounds, 0, NULL, NULL);
        ck_ok(clFinish(queue));
        run(queue, later, other, TOO_MANY * rounds, 0, NULL, NULL);
        ck_ok(clFinish(queue));
    }
    between = between || at_once() > ROUNDS / 2;
    for (int i = 0; i < ROUNDS; i++) {
        run(queue, later, data, rounds, 0, NULL, NULL);
        run(queue, later, other, rounds, 0, NULL, NULL);
        ck_ok(clFinish(queue));
    }
    alone = alone || at_once() <= 1;
    ck_assert((seen && between && alone) || median_time(later, rounds) > AT_MOST);
    ck_ok(clReleaseMemObject(other));
    ck_ok(clReleaseKernel(later));
    end();
}
END_TEST

static atomic_int in_kernels_call; /* 2: for the last time */
static cl_mem apart;
static int reads;

/* Reads what the kernel does not use, while the other thread is in the call that enqueues it. */
static void *read_beside(void *queue_of_reads) {
    cl_int seen[N];

    while (atomic_load(&in_kernels_call) != 2) {
        if (atomic_load(&in_kernels_call) == 0)
            continue;
        reads += clEnqueueReadBuffer(queue_of_reads, apart, CL_TRUE, 0, BYTES, seen, 0, NULL,
                                     NULL) == CL_SUCCESS;
        usleep(1000);
    }
    return NULL;
}

/* What other threads wait for does not wait for longer kernels, though their own thread does. */
START_TEST(beside_another_thread) {
    enum { AT_LEAST = 50000 /* ns */, MANY = 4 * ROUNDS, SOME = 10 };
    char names[REAL][64];
    bool several = read_names(names) > 1;
    cl_command_queue other = make_queue(0);
    cl_kernel later;
    cl_int rounds;
    pthread_t reader;

    begin();
    later = make_kernel(program, "later");
    apart = make_zeros();
    rounds = find_rounds(later, AT_LEAST);
    at_once();
    ck_assert_int_eq(pthread_create(&reader, NULL, read_beside, other), 0);
    for (int i = 0; i < MANY; i++) {
        atomic_store(&in_kernels_call, 1);
        run(queue, later, data, rounds, 0, NULL, NULL);
        atomic_store(&in_kernels_call, 0);
        ck_ok(clFinish(queue));
    }
    atomic_store(&in_kernels_call, 2);
    pthread_join(reader, NULL);
    ck_assert(at_once() < MANY / 2 || reads < SOME || !several);
    ck_ok(clReleaseMemObject(apart));
    ck_ok(clReleaseKernel(later));
    ck_ok(clReleaseCommandQueue(other));
    end();
}
END_TEST

static atomic_int wrong;

static void must(bool good) {
    if (!good)
        atomic_fetch_add(&wrong, 1);
}

/* With kernels, queue and buffers of its own, but the program's; now and then a longer kernel. */
static void *thread(void *unused) {
    cl_int code, value, seen[N] = {0};
    cl_command_queue own = clCreateCommandQueue(context, device, 0, &code);
    cl_kernel kernel = clCreateKernel(program, "add", &code);
    cl_kernel later = clCreateKernel(program, "later", &code);
    cl_mem buffer = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, BYTES, seen, &code);
    cl_mem other = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, BYTES, seen, &code);
    cl_int rounds = 10000;
    size_t items = N;

    (void)unused;
    must(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer) == CL_SUCCESS);
    must(clSetKernelArg(later, 0, sizeof(other), &other) == CL_SUCCESS);
    must(clSetKernelArg(later, 1, sizeof(rounds), &rounds) == CL_SUCCESS);
    for (value = 1; value <= ROUNDS; value++) {
        if (value % 50 == 0)
            must(clEnqueueNDRangeKernel(own, later, 1, NULL, &items, NULL, 0, NULL, NULL) ==
                 CL_SUCCESS);
        must(clSetKernelArg(kernel, 1, sizeof(value), &value) == CL_SUCCESS);
        must(clEnqueueNDRangeKernel(own, kernel, 1, NULL, &items, NULL, 0, NULL, NULL) ==
             CL_SUCCESS);
        if (value % 16 == 0)
            must(clEnqueueReadBuffer(own, buffer, CL_TRUE, 0, BYTES, seen, 0, NULL, NULL) ==
                     CL_SUCCESS &&
                 seen[N - 1] == value * (value + 1) / 2);
    }
    must(clEnqueueReadBuffer(own, buffer, CL_TRUE, 0, BYTES, seen, 0, NULL, NULL) == CL_SUCCESS);
    for (int i = 0; i < N; i++)
        must(seen[i] == ROUNDS * (ROUNDS + 1) / 2);
    must(clReleaseMemObject(buffer) == CL_SUCCESS);
    must(clReleaseMemObject(other) == CL_SUCCESS);
    must(clReleaseKernel(later) == CL_SUCCESS);
    must(clReleaseKernel(kernel) == CL_SUCCESS);
    must(clReleaseCommandQueue(own) == CL_SUCCESS);
    return NULL;
}

START_TEST(from_several_threads) {
    pthread_t threads[THREADS];

    begin();
    atomic_store(&wrong, 0);
    for (int t = 0; t < THREADS; t++)
        ck_assert_int_eq(pthread_create(&threads[t], NULL, thread, NULL), 0);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    ck_assert_int_eq(atomic_load(&wrong), 0);
    end();
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        in_the_call,
        of_a_part,
        behind_what_waits,
        behind_a_longer_kernel,
        its_times,
        wrong_ones_are_told,
        of_two_sizes,
        that_are_waited_for,
        beside_another_thread,
        from_several_threads,
    };

    return test_main_logged(argc, argv, tests, COUNT(tests));
}
