/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: which bytes go between host memory and a device. TUTTI_TRANSFER=staged makes a CPU
 * device a stand-in for a GPU, with a copy of its own; the first real device is alone here.
 */
#include "traffic.h"

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

enum { N = 4096, BYTES = N * sizeof(cl_int) };

#define ck_moved(mem, to, from)                                                                    \
    do {                                                                                           \
        struct traffic seen_ = traffic_of(mem);                                                    \
        ck_assert_uint_eq(seen_.bytes_to_device, to);                                              \
        ck_assert_uint_eq(seen_.bytes_from_device, from);                                          \
        ck_assert_uint_eq(seen_.evictions, 0);                                                     \
    } while (0)

static cl_program program;
static cl_kernel set, add;

static void open_kernels(void) {
    program = make_program(common_source);
    set = make_kernel(program, "set");
    add = make_kernel(program, "add");
}

static void close_kernels(void) {
    ck_ok(clReleaseKernel(set));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}

/* set or add, over so much of the buffer */
static void launch_part(cl_kernel kernel, cl_mem buffer, cl_int value, size_t items) {
    ck_ok(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(kernel, 1, sizeof(value), &value));
    launch(kernel, items);
}

static void run(cl_kernel kernel, cl_mem buffer, cl_int value) {
    launch_part(kernel, buffer, value, N);
}

START_TEST(the_extension_function) {
    traffic_function traffic = find_traffic();
    cl_mem buffer = make_buffer(0, BYTES, NULL);
    struct traffic seen[MOST_REAL];
    cl_uint count = 0;

    ck_ok(traffic(buffer, 0, NULL, &count));
    ck_assert_uint_eq(count, 1);
    ck_ok(traffic(buffer, MOST_REAL, seen, NULL));
    ck_assert_cl(traffic(buffer, 0, seen, NULL), CL_INVALID_VALUE);
    ck_assert_cl(traffic(NULL, MOST_REAL, seen, NULL), CL_INVALID_MEM_OBJECT);
    ck_assert_cl(traffic((cl_mem)context, MOST_REAL, seen, NULL), CL_INVALID_MEM_OBJECT);
    ck_moved(buffer, 0, 0);
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(what_only_the_device_uses_stays_there) {
    cl_mem a = make_buffer(0, BYTES, NULL), b = make_buffer(0, BYTES, NULL);
    cl_mem c = make_buffer(0, BYTES, NULL);
    cl_int value = 7, seen[2];

    open_kernels();
    run(set, a, 40);
    for (int i = 0; i < 3; i++) { /* whole and parts, in both directions */
        ck_ok(clEnqueueCopyBuffer(queue, a, b, 0, 0, BYTES, 0, NULL, NULL));
        run(add, b, 1);
        ck_ok(clEnqueueCopyBuffer(queue, b, a, 0, BYTES / 2, BYTES / 2, 0, NULL, NULL));
        ck_ok(clEnqueueFillBuffer(queue, c, &value, sizeof(value), 0, BYTES, 0, NULL, NULL));
        run(add, c, 1);
        ck_ok(clEnqueueFillBuffer(queue, c, &value, sizeof(value), 0, 64, 0, NULL, NULL));
        ck_ok(clFinish(queue));
    }
    ck_moved(a, 0, 0);
    ck_moved(b, 0, 0);
    ck_moved(c, 0, 0);
    ck_ok(clEnqueueReadBuffer(queue, b, CL_TRUE, BYTES / 2 - 4, 8, seen, 0, NULL, NULL));
    ck_assert_int_eq(seen[0], 41);
    ck_assert_int_eq(seen[1], 42);
    ck_moved(b, 0, 8);
    ck_ok(clEnqueueReadBuffer(queue, c, CL_TRUE, 60, 8, seen, 0, NULL, NULL));
    ck_assert_int_eq(seen[0], 7);
    ck_assert_int_eq(seen[1], 8);
    close_kernels();
    ck_ok(clReleaseMemObject(a));
    ck_ok(clReleaseMemObject(b));
    ck_ok(clReleaseMemObject(c));
}
END_TEST

/* Nobody asks for what kernels leave on the device: neither now, nor when the device is idle. */
START_TEST(many_results_stay_on_the_device) {
    enum { MANY = 64 };
    const struct timespec while_idle = {.tv_nsec = 2000000};
    cl_mem buffers[MANY];

    open_kernels();
    for (int i = 0; i < MANY; i++)
        buffers[i] = make_buffer(0, BYTES, NULL);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < MANY; i++)
            run(round ? add : set, buffers[i], i);
        ck_ok(clFinish(queue));
        nanosleep(&while_idle, NULL);
    }
    for (int i = 0; i < MANY; i++) {
        ck_moved(buffers[i], 0, 0);
        ck_ok(clReleaseMemObject(buffers[i]));
    }
    close_kernels();
}
END_TEST

/* A buffer that a kernel writes as a whole need not be there before, whoseever memory it is in. */
START_TEST(what_a_kernel_overwrites_is_not_brought) {
    static cl_int values[N], seen[N];
    const cl_mem_flags flags[] = {0, CL_MEM_USE_HOST_PTR, CL_MEM_USE_HOST_PTR | CL_MEM_WRITE_ONLY};

    open_kernels();
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        cl_mem buffer = make_buffer(flags[i], BYTES, flags[i] ? values : NULL);

        run(set, buffer, 3);
        ck_ok(clFinish(queue));
        ck_moved(buffer, 0, 0);
        read_ints(buffer, seen, N);
        ck_all(seen, N, 3);
        ck_moved(buffer, 0, BYTES);
        launch_part(set, buffer, 4, N - 1); /* that leaves one as it is */
        read_ints(buffer, seen, N);
        ck_all(seen, N - 1, 4);
        ck_assert_int_eq(seen[N - 1], 3);
        ck_ok(clReleaseMemObject(buffer));
    }
    close_kernels();
}
END_TEST

/* What a kernel must not write: if it does, as programs do, that counts. */
START_TEST(read_only_buffers) {
    static const char source[] =
        "kernel void look(global int *from, global int *to, int n) {"
        "    int i = get_global_id(0);"
        "    if (from[i] == -1) return;"
        "    to[i] = from[i] + from[(i + 1) % n] == 0 ? 0 : from[i] * 2;"
        "}"
        "kernel void change(global int *data, int by) { data[get_global_id(0)] += by; }";
    static cl_int values[N], seen[N];
    cl_mem to = make_buffer(0, BYTES, NULL);
    cl_int n = N, by = 5;

    for (int i = 0; i < N; i++)
        values[i] = 3;
    cl_mem from = make_buffer(CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, BYTES, values);
    program = make_program(source);
    cl_kernel look = make_kernel(program, "look"), change = make_kernel(program, "change");
    ck_ok(clSetKernelArg(look, 0, sizeof(from), &from));
    ck_ok(clSetKernelArg(look, 1, sizeof(to), &to));
    ck_ok(clSetKernelArg(look, 2, sizeof(n), &n));
    ck_ok(clSetKernelArg(change, 0, sizeof(from), &from));
    ck_ok(clSetKernelArg(change, 1, sizeof(by), &by));
    launch(look, N);
    read_ints(to, seen, N);
    ck_all(seen, N, 6);
    read_ints(from, seen, N);
    ck_all(seen, N, 3);
    for (int round = 1; round <= 20; round++) {
        launch(change, N);
        launch(look, N);
        read_ints(to, seen, N);
        ck_all(seen, N, 2 * (3 + 5 * round));
        read_ints(from, seen, N);
        ck_all(seen, N, 3 + 5 * round);
    }
    ck_ok(clReleaseKernel(look));
    ck_ok(clReleaseKernel(change));
    ck_ok(clReleaseProgram(program));
    ck_ok(clReleaseMemObject(from));
    ck_ok(clReleaseMemObject(to));
}
END_TEST

START_TEST(a_whole_write_goes_straight_to_the_device) {
    static cl_int values[N], seen[N];
    cl_mem buffer = make_buffer(0, BYTES, NULL);

    open_kernels();
    for (cl_ulong i = 1; i <= 3; i++) {
        for (int j = 0; j < N; j++)
            values[j] = (cl_int)i;
        ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, BYTES, values, 0, NULL, NULL));
        ck_moved(buffer, i * BYTES, (i - 1) * BYTES); /* before any kernel asks for it */
        memset(values, 0, sizeof(values));
        run(add, buffer, 1);
        ck_ok(clFinish(queue));
        ck_moved(buffer, i * BYTES, (i - 1) * BYTES);
        read_ints(buffer, seen, N);
        ck_all(seen, N, (cl_int)i + 1);
    }
    close_kernels();
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

/* Overwritten while a kernel still uses it: it gets other storage (renaming), straight again. */
START_TEST(frames_go_straight) {
    enum { FRAMES = 12 };
    static cl_int frames[FRAMES][N], seen[N];
    cl_mem frame = make_buffer(0, BYTES, NULL), sum = make_buffer(0, BYTES, NULL);
    cl_program adding = make_program("kernel void sum(global const int *f, global int *s) {\n"
                                     "    s[get_global_id(0)] += f[get_global_id(0)];\n"
                                     "}\n");
    cl_kernel kernel = make_kernel(adding, "sum");

    open_kernels();
    run(set, sum, 0);
    ck_ok(clSetKernelArg(kernel, 0, sizeof(frame), &frame));
    ck_ok(clSetKernelArg(kernel, 1, sizeof(sum), &sum));
    for (int i = 0; i < FRAMES; i++) {
        for (int j = 0; j < N; j++)
            frames[i][j] = i + 1;
        ck_ok(clEnqueueWriteBuffer(queue, frame, CL_FALSE, 0, BYTES, frames[i], 0, NULL, NULL));
        launch(kernel, N);
    }
    read_ints(sum, seen, N);
    ck_all(seen, N, FRAMES * (FRAMES + 1) / 2);
    ck_moved(frame, FRAMES * BYTES, 0);
    ck_moved(sum, 0, BYTES);
    close_kernels();
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(adding));
    ck_ok(clReleaseMemObject(frame));
    ck_ok(clReleaseMemObject(sum));
}
END_TEST

START_TEST(parts_move_alone) {
    static cl_int values[N];
    cl_mem buffer = make_buffer(0, BYTES, NULL);
    size_t origin[3] = {16, 2, 0}, zero[3] = {0, 0, 0}, region[3] = {32, 10, 1};
    cl_ulong to = 0, from = 0;
    cl_int *mapped;

    open_kernels();
    run(set, buffer, 5);
    ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 1000, 100, values, 0, NULL, NULL));
    ck_moved(buffer, to += 100, from);
    ck_ok(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 4000, 60, values, 0, NULL, NULL));
    ck_moved(buffer, to, from += 60);
    ck_all(values, 15, 5);
    ck_ok(clEnqueueReadBufferRect(queue, buffer, CL_TRUE, origin, zero, region, 128, 0, 32, 0,
                                  values, 0, NULL, NULL));
    ck_moved(buffer, to, from += 320);
    ck_ok(clEnqueueWriteBufferRect(queue, buffer, CL_TRUE, origin, zero, region, 128, 0, 32, 0,
                                   values, 0, NULL, NULL));
    ck_moved(buffer, to += 320, from);
    mapped = clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 8000, 200, 0,
                                NULL, NULL, &error);
    ck_ok(error);
    ck_all(mapped, 50, 5);
    ck_moved(buffer, to, from += 200);
    mapped[0] = 9;
    ck_ok(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL));
    ck_ok(clFinish(queue));
    ck_moved(buffer, to += 200, from);
    run(add, buffer, 1);
    ck_ok(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 8000, 8, values, 0, NULL, NULL));
    ck_assert_int_eq(values[0], 10);
    ck_assert_int_eq(values[1], 6);
    ck_moved(buffer, to, from += 8);
    close_kernels();
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

/* Bring a sub-buffer and its buffer up to date with each other, after the one or the other was
 * written as a whole. */
START_TEST(sub_buffers_see_whole_writes) {
    static cl_int values[N], seen[N];
    cl_mem buffer = make_buffer(0, BYTES, NULL);
    cl_buffer_region half = {BYTES / 2, BYTES / 2};
    cl_mem part = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &half, &error);

    ck_ok(error);
    open_kernels();
    run(set, buffer, 1);
    for (int i = 0; i < N; i++)
        values[i] = 10;
    ck_ok(clEnqueueWriteBuffer(queue, part, CL_TRUE, 0, BYTES / 2, values, 0, NULL, NULL));
    run(add, buffer, 1);
    read_ints(buffer, seen, N);
    ck_all(seen, N / 2, 2);
    ck_all(seen + N / 2, N / 2, 11);
    ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, BYTES, values, 0, NULL, NULL));
    read_ints(part, seen, N / 2);
    ck_all(seen, N / 2, 10);
    ck_ok(clEnqueueCopyBuffer(queue, part, buffer, 0, 0, BYTES / 2, 0, NULL, NULL));
    run(add, buffer, 5);
    read_ints(part, seen, N / 2);
    ck_all(seen, N / 2, 15);
    close_kernels();
    ck_ok(clReleaseMemObject(part));
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

static atomic_bool begun, opened;

static void CL_CALLBACK wait_for_gate(void *unused) {
    (void)unused;
    atomic_store(&begun, true);
    while (!atomic_load(&opened))
        sched_yield();
}

static void CL_CALLBACK look_at(void *argument) {
    cl_int *const *values = argument;
    for (int i = 0; i < N; i++)
        values[1][i] = values[0][i];
}

/* It waits for another one, which may look at whatever it does: its memory need not. */
START_TEST(what_native_kernels_use_comes_early) {
    static cl_int seen[N];
    cl_mem buffer = make_buffer(0, BYTES, NULL);
    void *arguments[2] = {NULL, seen};
    const void *place = &arguments[0];
    time_t begin = time(NULL);

    open_kernels();
    run(set, buffer, 1);
    ck_ok(clFinish(queue));
    ck_ok(clEnqueueNativeKernel(queue, wait_for_gate, NULL, 0, 0, NULL, NULL, 0, NULL, NULL));
    run(set, buffer, 7);
    ck_ok(clEnqueueNativeKernel(queue, look_at, arguments, sizeof(arguments), 1, &buffer, &place, 0,
                                NULL, NULL));
    ck_ok(clFlush(queue));
    while (traffic_of(buffer).bytes_from_device < BYTES && time(NULL) - begin < 20)
        sched_yield();
    ck_moved(buffer, 0, BYTES);
    while (!atomic_load(&begun))
        sched_yield();
    ck_assert_int_eq(seen[0], 0);
    atomic_store(&opened, true);
    ck_ok(clFinish(queue));
    ck_all(seen, N, 7);
    ck_moved(buffer, 0, BYTES);
    close_kernels();
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

/* What one has is brought to the other where both are. */
START_TEST(a_part_and_the_whole_in_turn) {
    enum { FIRST = 3, ROUNDS = 10 };
    static cl_int seen[N];
    const cl_buffer_region half = {0, BYTES / 2};
    struct traffic before[2] = {0}, after[2];
    open_kernels();
    cl_mem buffer = make_buffer(0, BYTES, NULL);
    cl_mem part =
        ck_made(clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &half, &error));
    run(set, buffer, 1);
    for (int round = 0; round < ROUNDS; round++) {
        launch_part(add, part, 1, N / 2);
        run(add, buffer, 2);
        ck_ok(clFinish(queue));
        if (round == FIRST) {
            before[0] = traffic_of(buffer);
            before[1] = traffic_of(part);
        }
    }
    after[0] = traffic_of(buffer);
    after[1] = traffic_of(part);
    ck_assert_int_eq(memcmp(before, after, sizeof(before)), 0);
    ck_ok(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, BYTES, seen, 0, NULL, NULL));
    ck_all(seen, N / 2, 1 + 3 * ROUNDS);
    ck_all(seen + N / 2, N / 2, 1 + 2 * ROUNDS);
    close_kernels();
    ck_ok(clReleaseMemObject(part));
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        the_extension_function,
        what_only_the_device_uses_stays_there,
        many_results_stay_on_the_device,
        what_a_kernel_overwrites_is_not_brought,
        read_only_buffers,
        a_whole_write_goes_straight_to_the_device,
        frames_go_straight,
        parts_move_alone,
        sub_buffers_see_whole_writes,
        what_native_kernels_use_comes_early,
        a_part_and_the_whole_in_turn,
    };

    setenv("TUTTI_DEVICES", "0", 1);
    setenv("TUTTI_TRANSFER", "staged", 1);
    return test_main(argc, argv, tests, COUNT(tests));
}
