/* SPDX-License-Identifier: MIT */
#include "streams.h"

#include "native.h"
#include "task_counts.h"

#include <pthread.h>
#include <unistd.h>

enum {
    N = 256,
    BYTES = N * sizeof(cl_int),
    BUFFERS = 8,
    SOME = 600,  /* commands: fewer than may be under way */
    MANY = 6000, /* more */
    ROUNDS = 20,
    THREADS = 4
};

static const char source[] =
    "kernel void add(global int *data, int by) { data[get_global_id(0)] += by; }"
    "kernel void sum(global int *data, global const int *with) {"
    "    size_t i = get_global_id(0); data[i] = data[i] * 3 + with[i]; }"
    "kernel void later(global int *data, int rounds) {"
    "    uint noise = get_global_id(0);"
    "    for (int i = 0; i < rounds; i++) noise = noise * 1664525u + 1013904223u;"
    "    data[get_global_id(0)] += noise == 7u && rounds < 0 ? 0 : 1;"
    "}";

static cl_program program;
static cl_mem buffers[BUFFERS];
static cl_int expected[BUFFERS][N], written[MANY][N], seen[MANY][N], should[MANY][N];

struct kernels {
    cl_kernel add, sum, later;
};

/* In any thread. */
static cl_kernel create(cl_program from, const char *name) {
    cl_int failed;
    cl_kernel kernel = clCreateKernel(from, name, &failed);

    ck_ok(failed);
    return kernel;
}

static struct kernels make_kernels(void) {
    return (struct kernels){create(program, "add"), create(program, "sum"),
                            create(program, "later")};
}

static void release_kernels(const struct kernels *kernels) {
    ck_ok(clReleaseKernel(kernels->add));
    ck_ok(clReleaseKernel(kernels->sum));
    ck_ok(clReleaseKernel(kernels->later));
}

static void set(cl_kernel kernel, cl_mem mem, size_t size, const void *value) {
    ck_ok(clSetKernelArg(kernel, 0, sizeof(mem), &mem));
    ck_ok(clSetKernelArg(kernel, 1, size, value));
}

static void run(cl_command_queue on, cl_kernel kernel, cl_event *event) {
    size_t items = N;

    ck_ok(clEnqueueNDRangeKernel(on, kernel, 1, NULL, &items, NULL, 0, NULL, event));
}

static void add(const struct kernels *kernels, cl_command_queue on, unsigned b, cl_int by) {
    set(kernels->add, buffers[b], sizeof(by), &by);
    run(on, kernels->add, NULL);
    for (int i = 0; i < N; i++)
        expected[b][i] = (cl_int)((cl_uint)expected[b][i] + (cl_uint)by);
}

static void sum(const struct kernels *kernels, cl_command_queue on, unsigned b, unsigned with) {
    set(kernels->sum, buffers[b], sizeof(cl_mem), &buffers[with]);
    run(on, kernels->sum, NULL);
    for (int i = 0; i < N; i++)
        expected[b][i] = (cl_int)((cl_uint)expected[b][i] * 3 + (cl_uint)expected[with][i]);
}

static void map_and_unmap(cl_command_queue on, unsigned b, cl_map_flags flags) {
    cl_int failed;
    void *mapped =
        clEnqueueMapBuffer(on, buffers[b], CL_FALSE, flags, 0, BYTES, 0, NULL, NULL, &failed);

    ck_ok(failed);
    ck_ok(clEnqueueUnmapMemObject(on, buffers[b], mapped, 0, NULL, NULL));
}

/* One of what there is, drawn. `at` is its place among all. */
static void enqueue(const struct kernels *kernels, cl_command_queue on, uint32_t *state, int at) {
    unsigned b = next_random(state) % BUFFERS, with = (b + 1 + next_random(state) % 7) % BUFFERS;
    size_t half = next_random(state) % 2 ? BYTES : BYTES / 2;

    switch (next_random(state) % 6) {
    case 0:
    case 1:
        add(kernels, on, b, (cl_int)(next_random(state) % 100));
        break;
    case 2:
        sum(kernels, on, b, with);
        break;
    case 3:
        for (int i = 0; i < N; i++)
            written[at][i] = (cl_int)next_random(state);
        ck_ok(clEnqueueWriteBuffer(on, buffers[b], CL_FALSE, 0, half, written[at], 0, NULL, NULL));
        memcpy(expected[b], written[at], half);
        break;
    case 4:
        ck_ok(clEnqueueReadBuffer(on, buffers[b], CL_FALSE, 0, half, seen[at], 0, NULL, NULL));
        memcpy(should[at], expected[b], half);
        break;
    default:
        map_and_unmap(on, b, next_random(state) % 2 ? CL_MAP_READ : CL_MAP_WRITE);
    }
}

static void ck_all(cl_command_queue on) {
    cl_int values[N];

    ck_ok(clFinish(on));
    ck_assert_mem_eq(seen, should, sizeof(seen));
    for (int b = 0; b < BUFFERS; b++) {
        ck_ok(clEnqueueReadBuffer(on, buffers[b], CL_TRUE, 0, BYTES, values, 0, NULL, NULL));
        ck_assert_mem_eq(values, expected[b], BYTES);
    }
}

/* Are they such devices? Else results are looked at, and no more. */
static bool streams(void) {
    char names[REAL][64];
    cl_uint number = read_names(names), basic = 0;

    for (cl_uint d = 0; d < number; d++)
        basic += strncmp(names[d], "basic", strlen("basic")) == 0;
    return basic == number || (number == 1 && strncmp(names[0], "pthread", strlen("pthread")) == 0);
}

/* Tasks of StarPU since the last call. */
static int tasks(void) { return test_log_count("a task is expected to begin"); }

/* Until all kernels were measured. */
static struct kernels begin(void) {
    uint32_t state = 1;
    struct kernels kernels;
    const cl_int rounds = 2000;

    program = make_program(source);
    kernels = make_kernels();
    memset(seen, 0, sizeof(seen));
    memset(should, 0, sizeof(should));
    for (int b = 0; b < BUFFERS; b++) {
        for (int i = 0; i < N; i++)
            expected[b][i] = (cl_int)next_random(&state);
        buffers[b] = make_buffer(CL_MEM_COPY_HOST_PTR, BYTES, expected[b]);
    }
    for (int i = 0; i < ROUNDS; i++) {
        add(&kernels, queue, 0, 1);
        ck_ok(clFinish(queue));
        sum(&kernels, queue, 1, 2);
        ck_ok(clFinish(queue));
        set(kernels.later, buffers[3], sizeof(rounds), &rounds);
        run(queue, kernels.later, NULL);
        for (int n = 0; n < N; n++)
            expected[3][n]++;
        ck_ok(clFinish(queue));
    }
    ck_all(queue);
    tasks();
    return kernels;
}

static void end(const struct kernels *kernels) {
    for (int b = 0; b < BUFFERS; b++)
        ck_ok(clReleaseMemObject(buffers[b]));
    release_kernels(kernels);
    ck_ok(clReleaseProgram(program));
}

/* All of them at once, and none by way of StarPU. */
START_TEST(of_all_kinds) {
    struct kernels kernels = begin();
    cl_command_queue plain = make_queue(0);
    uint32_t state = 7;

    for (int round = 0; round < ROUNDS; round++) {
        cl_command_queue on = round % 2 ? queue : plain;

        for (int i = 0; i < SOME; i++)
            enqueue(&kernels, on, &state, i);
        ck_all(on);
        memset(seen, 0, sizeof(seen));
        memset(should, 0, sizeof(should));
    }
    int by_starpu = tasks();
    ck_assert_msg(!streams() || by_starpu == 0, "%d tasks of StarPU", by_starpu);
    ck_ok(clReleaseCommandQueue(plain));
    end(&kernels);
}
END_TEST

START_TEST(more_than_may_be_under_way) {
    struct kernels kernels = begin();
    uint32_t state = 3;

    for (int i = 0; i < MANY; i++)
        enqueue(&kernels, queue, &state, i);
    ck_all(queue);
    end(&kernels);
}
END_TEST

/* Fills, copies, and sub-buffers are none of those; what is under way uses their memory. */
START_TEST(among_what_the_host_does) {
    struct kernels kernels = begin();
    const cl_buffer_region region = {BYTES / 2, BYTES / 4};
    uint32_t state = 5;

    for (int i = 0; i < SOME; i++) {
        unsigned b = next_random(&state) % BUFFERS, with = (b + 1) % BUFFERS;
        cl_int value = (cl_int)next_random(&state);
        switch (next_random(&state) % 8) {
        case 0:
            ck_ok(clEnqueueFillBuffer(queue, buffers[b], &value, sizeof(value), BYTES / 2,
                                      BYTES / 2, 0, NULL, NULL));
            for (int n = N / 2; n < N; n++)
                expected[b][n] = value;
            break;
        case 1:
            ck_ok(clEnqueueCopyBuffer(queue, buffers[b], buffers[with], 0, 0, BYTES / 2, 0, NULL,
                                      NULL));
            memcpy(expected[with], expected[b], BYTES / 2);
            break;
        case 2: {
            cl_mem part = ck_made(
                clCreateSubBuffer(buffers[b], 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error));
            ck_ok(clEnqueueFillBuffer(queue, part, &value, sizeof(value), 0, BYTES / 4, 0, NULL,
                                      NULL));
            ck_ok(clReleaseMemObject(part));
            for (int n = N / 2; n < 3 * N / 4; n++)
                expected[b][n] = value;
            break;
        }
        default:
            enqueue(&kernels, queue, &state, i);
        }
    }
    ck_all(queue);
    end(&kernels);
}
END_TEST

/* A thread with a queue, and two buffers, of its own. */
static void *work(void *number) {
    unsigned first = 2 * *(const unsigned *)number;
    struct kernels kernels = make_kernels();
    cl_int failed;
    cl_command_queue own = clCreateCommandQueue(context, device, 0, &failed);

    ck_ok(failed);
    for (int i = 0; i < SOME; i++) {
        add(&kernels, own, first, i);
        map_and_unmap(own, first + 1, i % 2 ? CL_MAP_WRITE : CL_MAP_READ);
        sum(&kernels, own, first + 1, first);
        if (i % 50 == 0)
            ck_ok(clFinish(own));
    }
    ck_ok(clFinish(own));
    ck_ok(clReleaseCommandQueue(own));
    release_kernels(&kernels);
    return NULL;
}

START_TEST(from_several_threads) {
    struct kernels kernels = begin();
    pthread_t thread[THREADS];
    unsigned number[THREADS];

    for (unsigned t = 0; t < THREADS; t++) {
        number[t] = t;
        ck_assert_int_eq(pthread_create(&thread[t], NULL, work, &number[t]), 0);
    }
    for (unsigned t = 0; t < THREADS; t++)
        ck_assert_int_eq(pthread_join(thread[t], NULL), 0);
    ck_all(queue);
    end(&kernels);
}
END_TEST

/* They are the device's, of maps too; and in the order of the queue. */
START_TEST(their_times) {
    struct kernels kernels = begin();
    cl_command_queue timed = make_queue(CL_QUEUE_PROFILING_ENABLE);
    cl_int rounds = 2000, failed;
    cl_ulong before = 0;
    cl_event event[3 * ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        set(kernels.later, buffers[0], sizeof(rounds), &rounds);
        run(timed, kernels.later, &event[3 * i]);
        void *mapped = clEnqueueMapBuffer(timed, buffers[0], CL_FALSE, CL_MAP_READ, 0, BYTES, 0,
                                          NULL, &event[3 * i + 1], &failed);
        ck_ok(failed);
        ck_ok(clEnqueueUnmapMemObject(timed, buffers[0], mapped, 0, NULL, &event[3 * i + 2]));
    }
    ck_ok(clFinish(timed));
    for (int i = 0; i < 3 * ROUNDS; i++) {
        cl_ulong start =
            get_info(cl_ulong, clGetEventProfilingInfo, event[i], CL_PROFILING_COMMAND_START);
        cl_ulong ends =
            get_info(cl_ulong, clGetEventProfilingInfo, event[i], CL_PROFILING_COMMAND_END);
        ck_assert_uint_gt(start, 0);
        ck_assert_uint_le(start, ends);
        ck_assert_uint_le(before, ends);
        before = ends;
        ck_ok(clReleaseEvent(event[i]));
    }
    ck_ok(clReleaseCommandQueue(timed));
    end(&kernels);
}
END_TEST

/* Who waits for one of many need not wait for all of them. */
START_TEST(one_of_many) {
    struct kernels kernels = begin();
    cl_int rounds = 2000, much = 400000;
    cl_event first, last;

    set(kernels.later, buffers[0], sizeof(rounds), &rounds);
    run(queue, kernels.later, &first);
    for (int i = 0; i < ROUNDS; i++) {
        set(kernels.later, buffers[1], sizeof(much), &much);
        run(queue, kernels.later, i + 1 < ROUNDS ? NULL : &last);
    }
    ck_ok(clWaitForEvents(1, &first));
    ck_assert(!streams() || event_status(last) > CL_COMPLETE);
    ck_ok(clWaitForEvents(1, &last));
    ck_ok(clReleaseEvent(first));
    ck_ok(clReleaseEvent(last));
    end(&kernels);
}
END_TEST

/*
 * A kernel that was never measured is given to StarPU, and what comes meanwhile is collected: the
 * map with the kernels before it, whose end is then no event's.
 */
START_TEST(a_map_behind_kernels) {
    struct kernels kernels = begin();
    cl_command_queue plain = make_queue(0);
    const cl_int few = 80, rounds = 20000; /* those with few are short enough for a batch */

    for (int round = 0; round < ROUNDS; round++) {
        char options[32];
        snprintf(options, sizeof(options), "-D ROUND=%d", round);
        cl_program fresh = make_program_with(source, options);
        cl_kernel first = create(fresh, "later");
        set(first, buffers[0], sizeof(rounds), &rounds);
        run(plain, first, NULL);
        set(kernels.later, buffers[0], sizeof(few), &few);
        for (int i = 0; i < ROUNDS; i++)
            run(plain, kernels.later, NULL);
        const cl_int *mapped = ck_made(clEnqueueMapBuffer(plain, buffers[0], CL_TRUE, CL_MAP_READ,
                                                          0, BYTES, 0, NULL, NULL, &error));
        for (int n = 0; n < N; n++)
            expected[0][n] += 1 + ROUNDS;
        ck_assert_mem_eq(mapped, expected[0], BYTES);
        ck_ok(clEnqueueUnmapMemObject(plain, buffers[0], (void *)mapped, 0, NULL, NULL));
        ck_ok(clReleaseKernel(first));
        ck_ok(clReleaseProgram(fresh));
    }
    ck_ok(clReleaseCommandQueue(plain));
    end(&kernels);
}
END_TEST

/* Each in its place, and where the device has a queue for all, on that. */
START_TEST(megabytes) {
    enum { LARGE = 1 << 20, SETS = 2, KNOWN = 4 /* rounds until all is */ };
    struct kernels kernels = begin();
    static cl_int up[SETS][LARGE / sizeof(cl_int)], down[ROUNDS][LARGE / sizeof(cl_int)];
    const size_t items = LARGE / sizeof(cl_int);
    const cl_int by = 1;
    cl_mem large[SETS];
    for (int s = 0; s < SETS; s++) {
        large[s] = make_buffer(0, LARGE, NULL);
        memset(up[s], s + 1, LARGE);
    }
    for (int round = 0; round < ROUNDS; round++) {
        cl_mem mem = large[round % SETS];
        ck_ok(
            clEnqueueWriteBuffer(queue, mem, CL_FALSE, 0, LARGE, up[round % SETS], 0, NULL, NULL));
        set(kernels.add, mem, sizeof(by), &by);
        ck_ok(clEnqueueNDRangeKernel(queue, kernels.add, 1, NULL, &items, NULL, 0, NULL, NULL));
        ck_ok(clEnqueueReadBuffer(queue, mem, CL_FALSE, 0, LARGE, down[round], 0, NULL, NULL));
        if (round < KNOWN) {
            ck_ok(clFinish(queue));
            test_went_directly();
        }
    }
    ck_ok(clFinish(queue));
    int directly = test_went_directly();
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < items; i++)
            ck_assert_int_eq(down[round][i], up[round % SETS][i] + 1);
    char names[REAL][64];
    if (read_names(names) == 1 && strncmp(names[0], "pthread", strlen("pthread")) == 0)
        ck_assert_int_ge(directly, 3 * (ROUNDS - KNOWN));
    for (int s = 0; s < SETS; s++)
        ck_ok(clReleaseMemObject(large[s]));
    end(&kernels);
}
END_TEST

/* Nor asks for: yet the host sees some time what the kernel wrote. */
START_TEST(one_that_nobody_waits_for) {
    struct kernels kernels = begin();
    static _Atomic cl_int seen_by_host[N];
    cl_mem own = make_buffer(CL_MEM_USE_HOST_PTR, BYTES, (void *)seen_by_host);
    cl_int rounds = 2000;

    set(kernels.later, own, sizeof(rounds), &rounds);
    run(queue, kernels.later, NULL);
    for (int i = 0; i < 100000 && streams() && seen_by_host[0] == 0; i++)
        usleep(100);
    ck_assert(!streams() || seen_by_host[0] == 1);
    ck_ok(clFinish(queue));
    ck_ok(clReleaseMemObject(own));
    end(&kernels);
}
END_TEST

static void CL_CALLBACK sleep_and_add(void *arguments) {
    cl_int *data = *(cl_int **)arguments;

    usleep(20000);
    for (int i = 0; i < N; i++)
        data[i] += 5;
}

/* What waits for the host's work, and what waits for that, begins after it; the rest does not. */
START_TEST(behind_a_native_kernel) {
    struct kernels kernels = begin();
    cl_command_queue other = make_queue(0);
    cl_event last;

    for (int round = 0; round < ROUNDS; round++) {
        cl_int *memory = NULL;
        const void *place = &memory;
        ck_ok(clEnqueueNativeKernel(queue, sleep_and_add, &memory, sizeof(memory), 1, &buffers[0],
                                    &place, 0, NULL, NULL));
        for (int i = 0; i < N; i++)
            expected[0][i] += 5;
        sum(&kernels, queue, 0, 1);
        sum(&kernels, queue, 2, 0);
        add(&kernels, queue, 1, round);
        add(&kernels, queue, 0, 3);
        add(&kernels, other, 4, round);
        set(kernels.add, buffers[5], sizeof(round), &round);
        run(other, kernels.add, &last);
        for (int i = 0; i < N; i++)
            expected[5][i] += round;
        ck_ok(clWaitForEvents(1, &last));
        ck_ok(clReleaseEvent(last));
        if (round % 3 == 0)
            ck_ok(clFinish(queue));
    }
    ck_ok(clReleaseCommandQueue(other));
    ck_all(queue);
    end(&kernels);
}
END_TEST

/* The host reads what kernels read, too, and is not yet done when one is to write it. */
START_TEST(read_by_the_host_as_well) {
    struct kernels kernels = begin();
    cl_event written_anew;
    cl_int rounds = 400000, by = 7;

    occupy(buffers[4]);
    set(kernels.later, buffers[3], sizeof(rounds), &rounds);
    run(queue, kernels.later, NULL);
    for (int i = 0; i < N; i++)
        expected[3][i]++;
    sum(&kernels, queue, 3, 2);
    ck_ok(clEnqueueCopyBuffer(queue, buffers[2], buffers[4], 0, 0, BYTES / 2, 0, NULL, NULL));
    memcpy(expected[4], expected[2], BYTES / 2);
    set(kernels.add, buffers[2], sizeof(by), &by);
    run(queue, kernels.add, &written_anew);
    for (int i = 0; i < N; i++)
        expected[2][i] += by;
    for (int i = 0; i < 100 && event_status(written_anew) > CL_COMPLETE; i++)
        usleep(3000);
    vacate();
    ck_ok(clReleaseEvent(written_anew));
    ck_all(queue);
    end(&kernels);
}
END_TEST

/* By several threads at once, and in a queue without order. */
static void *wait_for(void *event) {
    ck_ok(clWaitForEvents(1, (cl_event *)event));
    return NULL;
}

START_TEST(waited_for_by_many) {
    struct kernels kernels = begin();
    cl_command_queue loose = make_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    cl_int rounds = 20000;
    cl_event event[THREADS];
    pthread_t thread[THREADS];

    for (int round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < 4 * THREADS; i++) {
            unsigned b = i % BUFFERS;
            set(kernels.later, buffers[b], sizeof(rounds), &rounds);
            run(loose, kernels.later, i < THREADS ? &event[i] : NULL);
            for (int n = 0; n < N; n++)
                expected[b][n]++;
        }
        for (unsigned t = 0; t < THREADS; t++)
            ck_assert_int_eq(pthread_create(&thread[t], NULL, wait_for, &event[t]), 0);
        ck_ok(clFinish(loose));
        for (unsigned t = 0; t < THREADS; t++) {
            ck_assert_int_eq(pthread_join(thread[t], NULL), 0);
            ck_assert_int_eq(event_status(event[t]), CL_COMPLETE);
            ck_ok(clReleaseEvent(event[t]));
        }
    }
    ck_ok(clReleaseCommandQueue(loose));
    ck_all(queue);
    end(&kernels);
}
END_TEST

int test_streams(int argc, char **argv, const char *devices) {
    const TTest *const tests[] = {
        of_all_kinds,
        more_than_may_be_under_way,
        among_what_the_host_does,
        from_several_threads,
        their_times,
        one_of_many,
        a_map_behind_kernels,
        megabytes,
        one_that_nobody_waits_for,
        behind_a_native_kernel,
        read_by_the_host_as_well,
        waited_for_by_many,
    };

    setenv("POCL_DEVICES", devices, 1);
    setenv("TUTTI_MODELS", "none", 1);
    return test_main_logged(argc, argv, tests, COUNT(tests));
}
