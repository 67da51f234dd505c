/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: buffers that are made for a command or two and released at once, as array libraries
 * do. Where all devices work in host memory nothing of that needs StarPU, and what moves bytes of
 * an unused buffer is over when the call returns. TUTTI_BATCH=always takes all kernels for short.
 */
#include "pocl_table.h"

#include <pthread.h>
#include <stdatomic.h>

enum { N = 64, BYTES = N * sizeof(cl_int), ROUNDS = 60, MANY = 300, THREADS = 4, LENGTH = 8 };

static const char source[] =
    "kernel void add(global int *a, global const int *b, int by) {"
    "    size_t i = get_global_id(0); a[i] += b[i] * by; }"
    "kernel void later(global int *a, global const int *b, int by) {"
    "    size_t i = get_global_id(0); uint noise = (uint)i;"
    "    for (int k = 0; k < 1500; k++) noise = noise * 1664525u + 1013904223u;"
    "    a[i] += noise == 7u && by < 0 ? 0 : b[i] * by; }";

static cl_program program;
static cl_int ones[N];

static void begin(void) {
    program = make_program(source);
    for (int i = 0; i < N; i++)
        ones[i] = 1;
}

static void end(void) { ck_ok(clReleaseProgram(program)); }

/* By its own thread's error code: some tests have several. */
static cl_mem make(cl_mem_flags flags, void *host) {
    cl_int failed;
    cl_mem buffer = clCreateBuffer(context, flags, BYTES, host, &failed);
    ck_ok(failed);
    return buffer;
}

static cl_kernel make_adder(void) {
    cl_int failed;
    cl_kernel kernel = clCreateKernel(program, "add", &failed);
    ck_ok(failed);
    return kernel;
}

static void add(cl_command_queue in, cl_kernel kernel, cl_mem a, cl_mem b, cl_int by) {
    size_t items = N;
    ck_ok(clSetKernelArg(kernel, 0, sizeof(a), &a));
    ck_ok(clSetKernelArg(kernel, 1, sizeof(b), &b));
    ck_ok(clSetKernelArg(kernel, 2, sizeof(by), &by));
    ck_ok(clEnqueueNDRangeKernel(in, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
}

static void fill(cl_int *values, cl_int from) {
    for (int i = 0; i < N; i++)
        values[i] = from + i;
}

static void check(const cl_int *seen, cl_int from) {
    for (int i = 0; i < N; i++)
        ck_assert_msg(seen[i] == from + i, "element %d: %d, expected %d", i, seen[i], from + i);
}

/* One buffer's life: filled and read in one of several ways, with a kernel between. */
static void live(cl_command_queue in, cl_kernel kernel, int round) {
    static cl_int memory[THREADS + 1][N] __attribute__((aligned(4096)));
    cl_int values[N], seen[N], failed;
    cl_int *own = memory[round % (THREADS + 1)];
    bool uses_own = round % 3 == 2 && in == queue;
    fill(uses_own ? own : values, round);
    cl_mem b = make(CL_MEM_COPY_HOST_PTR | CL_MEM_READ_ONLY, ones), a;
    if (uses_own)
        a = make(CL_MEM_USE_HOST_PTR, own);
    else
        a = make(round % 3 == 0 ? CL_MEM_COPY_HOST_PTR : 0, round % 3 == 0 ? values : NULL);
    if (round % 3 && !uses_own)
        ck_ok(clEnqueueWriteBuffer(in, a, CL_TRUE, 0, BYTES, values, 0, NULL, NULL));
    add(in, kernel, a, b, round);
    if (round % 5 == 0)
        add(in, kernel, a, b, 1);
    ck_ok(clReleaseMemObject(b));
    if (round % 2) {
        ck_ok(clEnqueueReadBuffer(in, a, CL_TRUE, 0, BYTES, seen, 0, NULL, NULL));
    } else {
        const cl_int *mapped =
            clEnqueueMapBuffer(in, a, CL_TRUE, CL_MAP_READ, 0, BYTES, 0, NULL, NULL, &failed);
        ck_ok(failed);
        memcpy(seen, mapped, BYTES);
        ck_ok(clEnqueueUnmapMemObject(in, a, (void *)mapped, 0, NULL, NULL));
    }
    check(seen, 2 * round + (round % 5 == 0));
    ck_ok(clReleaseMemObject(a));
}

START_TEST(one_after_the_other) {
    begin();
    cl_kernel kernel = make_adder();
    test_went_directly();
    for (int round = 0; round < ROUNDS; round++)
        live(queue, kernel, round);
    if (no_device_memory())
        ck_assert_int_gt(test_went_directly(), ROUNDS / 2);
    ck_ok(clReleaseKernel(kernel));
    end();
}
END_TEST

/* Nothing is waited for before all are under way, and all buffers are released by then. */
START_TEST(many_at_once) {
    static cl_int values[MANY][N], seen[MANY][N];
    begin();
    cl_kernel kernel = make_adder();
    for (int time = 0; time < 3; time++) {
        memset(seen, 0, sizeof(seen));
        for (int i = 0; i < MANY; i++) {
            fill(values[i], i);
            cl_mem b = make(CL_MEM_COPY_HOST_PTR, ones), a = make(0, NULL);
            ck_ok(clEnqueueWriteBuffer(queue, a, CL_FALSE, 0, BYTES, values[i], 0, NULL, NULL));
            add(queue, kernel, a, b, time);
            ck_ok(clEnqueueReadBuffer(queue, a, CL_FALSE, 0, BYTES, seen[i], 0, NULL, NULL));
            ck_ok(clReleaseMemObject(a));
            ck_ok(clReleaseMemObject(b));
        }
        ck_ok(clFinish(queue));
        for (int i = 0; i < MANY; i++)
            check(seen[i], i + time);
    }
    ck_ok(clReleaseKernel(kernel));
    end();
}
END_TEST

static void *run_thread(void *argument) {
    cl_command_queue in = argument;
    cl_kernel kernel = make_adder();
    for (int round = 0; round < 2 * ROUNDS; round++)
        live(in, kernel, round);
    ck_ok(clReleaseKernel(kernel));
    return NULL;
}

START_TEST(in_threads) {
    pthread_t thread[THREADS];
    cl_command_queue in[THREADS];
    begin();
    for (int t = 0; t < THREADS; t++) {
        in[t] = make_queue(0);
        ck_assert_int_eq(pthread_create(&thread[t], NULL, run_thread, in[t]), 0);
    }
    for (int t = 0; t < THREADS; t++) {
        ck_assert_int_eq(pthread_join(thread[t], NULL), 0);
        ck_ok(clReleaseCommandQueue(in[t]));
    }
    end();
}
END_TEST

static void ck_over(cl_event event) {
    ck_assert_int_eq(event_status(event), CL_COMPLETE);
    ck_ok(clReleaseEvent(event));
}

/* Non-blocking commands on a buffer that nothing uses, or does any more. */
START_TEST(moved_at_once) {
    static cl_int values[N], seen[N];
    cl_int *mapped, pattern = 5;
    cl_event event;
    skip_if(!no_device_memory(), "a device has memory of its own");
    begin();
    fill(values, 3);
    cl_mem a = make(0, NULL), b = make(0, NULL);
    ck_ok(clEnqueueWriteBuffer(queue, a, CL_FALSE, 0, BYTES, values, 0, NULL, &event));
    ck_over(event);
    ck_ok(clEnqueueCopyBuffer(queue, a, b, 0, 0, BYTES, 0, NULL, &event));
    ck_over(event);
    ck_ok(clEnqueueReadBuffer(queue, b, CL_FALSE, 0, BYTES, seen, 0, NULL, &event));
    ck_over(event);
    check(seen, 3);
    ck_ok(clEnqueueFillBuffer(queue, b, &pattern, sizeof(pattern), 0, BYTES, 0, NULL, &event));
    ck_over(event);
    mapped = ck_made(clEnqueueMapBuffer(queue, b, CL_FALSE, CL_MAP_READ | CL_MAP_WRITE, 0, BYTES, 0,
                                        NULL, &event, &error));
    ck_over(event);
    ck_assert_int_eq(mapped[N - 1], pattern);
    mapped[0] = 1;
    ck_ok(clEnqueueUnmapMemObject(queue, b, mapped, 0, NULL, &event));
    ck_over(event);
    read_ints(b, seen, N);
    ck_assert_int_eq(seen[0], 1);
    ck_assert_int_eq(seen[1], pattern);
    ck_ok(clReleaseMemObject(a));
    ck_ok(clReleaseMemObject(b));
    end();
}
END_TEST

/* The same behind a kernel that may not begin yet: nothing comes before it. */
START_TEST(not_before_others) {
    static cl_int values[N], seen[2][N];
    cl_event event[3];
    size_t items = N;
    cl_int by = 10;
    begin();
    fill(values, 3);
    cl_kernel kernel = make_adder();
    for (int round = 0; round < 4; round++) {
        cl_event gate = make_user_event();
        cl_mem a = make(CL_MEM_COPY_HOST_PTR, values), b = make(CL_MEM_COPY_HOST_PTR, ones);
        ck_ok(clSetKernelArg(kernel, 0, sizeof(a), &a));
        ck_ok(clSetKernelArg(kernel, 1, sizeof(b), &b));
        ck_ok(clSetKernelArg(kernel, 2, sizeof(by), &by));
        ck_ok(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 1, &gate, NULL));
        memset(seen, 0, sizeof(seen));
        ck_ok(clEnqueueReadBuffer(queue, a, CL_FALSE, 0, BYTES, seen[0], 0, NULL, &event[0]));
        ck_ok(clEnqueueFillBuffer(queue, a, &by, sizeof(by), 0, BYTES, 0, NULL, &event[1]));
        ck_ok(clEnqueueReadBuffer(queue, a, CL_FALSE, 0, BYTES, seen[1], 0, NULL, &event[2]));
        ck_ok(clReleaseMemObject(a));
        ck_ok(clReleaseMemObject(b));
        for (int i = 0; i < 3; i++)
            ck_assert_int_gt(event_status(event[i]), CL_COMPLETE);
        ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
        ck_ok(clFinish(queue));
        check(seen[0], 13);
        ck_assert_int_eq(seen[1][0], 10);
        ck_assert_int_eq(seen[1][N - 1], 10);
        for (int i = 0; i < 3; i++)
            ck_over(event[i]);
        ck_ok(clReleaseEvent(gate));
    }
    ck_ok(clReleaseKernel(kernel));
    end();
}
END_TEST

/* What malloc returns, and less: the program may give any memory for ints. */
START_TEST(memory_at_any_place) {
    static char memory[2 * BYTES + 128] __attribute__((aligned(128)));
    static const size_t at[] = {4, 16, 48, 64, 100};
    begin();
    cl_kernel kernel = make_adder();
    for (size_t i = 0; i < COUNT(at); i++) {
        cl_int *own = (cl_int *)(void *)(memory + at[i]);
        fill(own, 7);
        own[N] = 12345;
        cl_mem a = make(CL_MEM_USE_HOST_PTR, own), b = make(CL_MEM_COPY_HOST_PTR, ones);
        for (int time = 0; time < 3; time++)
            add(queue, kernel, a, b, 2);
        const cl_int *mapped = ck_made(
            clEnqueueMapBuffer(queue, a, CL_TRUE, CL_MAP_READ, 0, BYTES, 0, NULL, NULL, &error));
        ck_assert_ptr_eq(mapped, own);
        check(own, 13);
        ck_assert_int_eq(own[N], 12345);
        ck_ok(clEnqueueUnmapMemObject(queue, a, own, 0, NULL, NULL));
        ck_ok(clReleaseMemObject(a));
        ck_ok(clReleaseMemObject(b));
    }
    ck_ok(clReleaseKernel(kernel));
    end();
}
END_TEST

/* Short chains, each on buffers of its own, which devices with memory of their own share. */
START_TEST(chains) {
    cl_mem a[MANY], b;
    cl_int seen[N], values[N];
    begin();
    fill(values, 5);
    cl_kernel kernel = make_kernel(program, "later");
    b = make(CL_MEM_COPY_HOST_PTR, ones);
    a[0] = make(CL_MEM_COPY_HOST_PTR, ones);
    for (int i = 0; i < 2 * LENGTH; i++) { /* how long they take is known then */
        add(queue, kernel, a[0], b, 0);
        ck_ok(clFinish(queue));
    }
    ck_ok(clReleaseMemObject(a[0]));
    test_log_count("");
    for (int i = 0; i < MANY; i++) {
        cl_mem with = make(CL_MEM_COPY_HOST_PTR, ones);
        a[i] = make(CL_MEM_COPY_HOST_PTR, values);
        for (int k = 0; k < LENGTH; k++)
            add(queue, kernel, a[i], with, i);
        ck_ok(clReleaseMemObject(with));
    }
    ck_ok(clFinish(queue));
    /* Each kernel was a task of StarPU's, of which one takes longer than all of a chain. */
    ck_assert_int_le(test_log_count("a task is expected to begin"), 2 * MANY);
    for (int i = 0; i < MANY; i++) {
        ck_ok(clEnqueueReadBuffer(queue, a[i], CL_TRUE, 0, BYTES, seen, 0, NULL, NULL));
        check(seen, 5 + LENGTH * i);
        ck_ok(clReleaseMemObject(a[i]));
    }
    ck_ok(clReleaseMemObject(b));
    ck_ok(clReleaseKernel(kernel));
    end();
}
END_TEST

START_TEST(chains_on_devices_with_memory) {
    test_run_again("TUTTI_DEVICE_MEMORY=64M TUTTI_BATCH=auto TUTTI_MODELS=none", "--chains");
}
END_TEST

static __typeof__(((cl_icd_dispatch *)NULL)->clCreateBuffer) pocls_create_buffer;
static atomic_uint created; /* by PoCL */

static cl_mem CL_API_CALL create_buffer(cl_context in, cl_mem_flags flags, size_t size, void *host,
                                        cl_int *failed) {
    atomic_fetch_add(&created, 1);
    return pocls_create_buffer(in, flags, size, host, failed);
}

static void count_buffers(void) {
    cl_platform_id pocl;
    cl_icd_dispatch *table = pocl_table(&pocl);
    if (!table)
        return;
    pocls_create_buffer = table->clCreateBuffer;
    table->clCreateBuffer = create_buffer;
}

static bool sees_freed_memory(void) {
#ifdef __has_feature
#if __has_feature(address_sanitizer)
    return true;
#endif
#endif
    return false;
}

/* What the devices had of one buffer is the next one's, with nothing of its content in the way. */
START_TEST(objects_are_taken_again) {
    static const size_t sizes[] = {BYTES, BYTES + 4, 3 * BYTES, 30000};
    cl_int seen[N], zeros[N] = {0};
    unsigned before = 0;

    begin();
    cl_mem b = make(CL_MEM_COPY_HOST_PTR, ones);
    cl_kernel kernel = make_adder();
    for (int round = 0; round < MANY; round++) {
        size_t size = sizes[(size_t)round % COUNT(sizes)];
        cl_int failed;
        if (round == MANY / 3)
            before = atomic_load(&created);
        cl_mem a = clCreateBuffer(context, 0, size, NULL, &failed);
        ck_ok(failed);
        ck_ok(clEnqueueWriteBuffer(queue, a, CL_FALSE, 0, BYTES, zeros, 0, NULL, NULL));
        add(queue, kernel, a, b, round);
        ck_ok(clEnqueueReadBuffer(queue, a, CL_TRUE, 0, BYTES, seen, 0, NULL, NULL));
        for (int i = 0; i < N; i++)
            ck_assert_int_eq(seen[i], round);
        ck_ok(clReleaseMemObject(a));
    }
    if (pocls_create_buffer && !sees_freed_memory())
        ck_assert_uint_lt(atomic_load(&created) - before, MANY / 6);
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseMemObject(b));
    end();
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const apart[] = {chains};
    const TTest *const tests[] = {
        one_after_the_other,
        many_at_once,
        in_threads,
        moved_at_once,
        not_before_others,
        memory_at_any_place,
        chains_on_devices_with_memory,
        objects_are_taken_again,
    };
    count_buffers();
    if (argc == 2 && strcmp(argv[1], "--chains") == 0)
        return test_main_logged(1, argv, apart, COUNT(apart));
    setenv("TUTTI_BATCH", "always", 1);
    return test_main_logged(argc, argv, tests, COUNT(tests));
}
