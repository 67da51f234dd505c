/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: each way of TUTTI_TRANSFER moves the right bytes between the host and two GPUs, and
 * from one to the other, and is the way that was asked for. PoCL stands in for both; the policy
 * "random" sends each kernel to any. Each way has a process of its own, as the variable is read
 * once.
 */
#include "driver_moves.h"

#include <stdatomic.h>

enum { MIB = 1 << 20, LARGEST = 9 * MIB + 12, ROUNDS = 3 };
static const size_t sizes[] = {4, 4100, MIB + 4, LARGEST};

static atomic_int locked; /* objects with pages that the driver locked */

static cl_mem CL_API_CALL create(cl_context in, cl_mem_flags flags, size_t size, void *host,
                                 cl_int *result) {
    if (flags & (CL_MEM_ALLOC_HOST_PTR | CL_MEM_USE_HOST_PTR))
        atomic_fetch_add(&locked, 1);
    return real.clCreateBuffer(in, flags, size, host, result);
}

static void change(cl_icd_dispatch *table) {
    driver_moves_change(table);
    table->clCreateBuffer = create;
}

static cl_program program;
static cl_kernel add;
static cl_mem buffer, other;
static size_t size;
static unsigned char *expected, *others, *memory;

static void begin(size_t bytes) {
    size = bytes;
    expected = malloc(size);
    others = malloc(size);
    memory = malloc(size);
    for (size_t i = 0; i < size; i++) {
        expected[i] = (unsigned char)(i * 3 + i / 251);
        others[i] = (unsigned char)(i * 7 + i / 127);
    }
    program = make_program(common_source);
    add = make_kernel(program, "add");
    buffer = make_buffer(0, size, NULL);
    other = make_buffer(CL_MEM_COPY_HOST_PTR, size, others);
    ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, size, expected, 0, NULL, NULL));
}

static void end(void) {
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseMemObject(other));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
    free(memory);
    free(others);
    free(expected);
}

/* Some GPU changes all of it. */
static void change_all(cl_mem mem, unsigned char *bytes) {
    cl_int by = 0x01010101, value;
    ck_ok(clSetKernelArg(add, 0, sizeof(mem), &mem));
    ck_ok(clSetKernelArg(add, 1, sizeof(by), &by));
    launch(add, size / sizeof(cl_int));
    for (size_t i = 0; i < size; i += sizeof(value)) {
        memcpy(&value, bytes + i, sizeof(value));
        value = (cl_int)((cl_uint)value + (cl_uint)by);
        memcpy(bytes + i, &value, sizeof(value));
    }
}

static void change_both(void) {
    change_all(buffer, expected);
    change_all(other, others);
}

static void ck_content(cl_mem mem, const unsigned char *bytes) {
    memset(memory, 0, size);
    ck_ok(clEnqueueReadBuffer(queue, mem, CL_TRUE, 0, size, memory, 0, NULL, NULL));
    ck_assert_int_eq(memcmp(memory, bytes, size), 0);
}

/* Of the middle, at no good place. */
static void write_and_read(void) {
    size_t first = size / 4 + (size > 4), part = size / 2;
    for (int blocking = 0; blocking < 2; blocking++) {
        change_both();
        for (size_t i = 0; i < part; i++)
            memory[i] = expected[first + i] = (unsigned char)(i * 11 + (size_t)blocking);
        ck_ok(clEnqueueWriteBuffer(queue, buffer, blocking, first, part, memory, 0, NULL, NULL));
        ck_ok(clFinish(queue));
        memset(memory, 0, part);
        ck_ok(clEnqueueReadBuffer(queue, buffer, blocking, first, part, memory, 0, NULL, NULL));
        ck_ok(clFinish(queue));
        ck_assert_int_eq(memcmp(memory, expected + first, part), 0);
    }
    ck_content(buffer, expected);
}

static void copy(void) {
    size_t part = size / 2;
    change_both();
    ck_ok(clEnqueueCopyBuffer(queue, buffer, other, size - part, 0, part, 0, NULL, NULL));
    memcpy(others, expected + size - part, part);
    change_all(other, others);
    ck_content(other, others);
    ck_ok(clEnqueueCopyBuffer(queue, other, buffer, 0, 0, size, 0, NULL, NULL));
    memcpy(expected, others, size);
    ck_content(buffer, expected);
}

/* Every second half of a row; both memories have the same rows. */
static void rows(void) {
    const size_t row = size < 4096 ? 2 : 2048, zero[3] = {0, 0, 0}, right[3] = {row / 2, 0, 0};
    const size_t region[3] = {row / 2, size / row, 1};
    change_both();
    for (size_t i = 0; i < size; i++)
        memory[i] = (unsigned char)(i * 13);
    for (size_t y = 0; y < region[1]; y++)
        memcpy(expected + y * row + row / 2, memory + y * row, row / 2);
    ck_ok(clEnqueueWriteBufferRect(queue, buffer, CL_FALSE, right, zero, region, row, 0, row, 0,
                                   memory, 0, NULL, NULL));
    ck_ok(clEnqueueCopyBufferRect(queue, buffer, other, right, zero, region, row, 0, row, 0, 0,
                                  NULL, NULL));
    for (size_t y = 0; y < region[1]; y++)
        memcpy(others + y * row, expected + y * row + row / 2, row / 2);
    ck_ok(clFinish(queue));
    memset(memory, 0, size);
    ck_ok(clEnqueueReadBufferRect(queue, other, CL_TRUE, zero, right, region, row, 0, row, 0,
                                  memory, 0, NULL, NULL));
    for (size_t y = 0; y < region[1]; y++)
        ck_assert_int_eq(memcmp(memory + y * row + row / 2, others + y * row, row / 2), 0);
    ck_content(buffer, expected);
    ck_content(other, others);
}

static void map(void) {
    size_t first = size / 4, part = size / 2;
    change_both();
    unsigned char *mapped = ck_made(clEnqueueMapBuffer(
        queue, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, first, part, 0, NULL, NULL, &error));
    ck_assert_int_eq(memcmp(mapped, expected + first, part), 0);
    for (size_t i = 0; i < part; i++)
        mapped[i] = expected[first + i] = (unsigned char)(i * 17);
    ck_ok(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL));
    change_all(buffer, expected);
    ck_content(buffer, expected);
}

START_TEST(all_bytes_are_right) {
    for (size_t s = 0; s < COUNT(sizes); s++) {
        begin(sizes[s]);
        for (int round = 0; round < ROUNDS; round++) {
            write_and_read();
            copy();
            rows();
            map();
        }
        end();
    }
}
END_TEST

/* A part of what a GPU has: by so many commands each way, or more. */
static void move_part(unsigned *written, unsigned *read) {
    const size_t part = 8 * MIB;
    begin(LARGEST);
    change_all(buffer, expected);
    ck_ok(clFinish(queue));
    memcpy(memory, expected + 4, part);
    driver_forget_moves();
    ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 4, part, memory, 0, NULL, NULL));
    *written = driver_count(WRITE, 1);
    driver_forget_moves();
    ck_ok(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 4, part, memory, 0, NULL, NULL));
    *read = driver_count(READ, 1);
    ck_assert_int_eq(memcmp(memory, expected + 4, part), 0);
    end();
}

START_TEST(one_command_each) {
    unsigned written, read;
    move_part(&written, &read);
    ck_assert_uint_eq(written, 1);
    ck_assert_uint_eq(read, 1);
    ck_assert_int_eq(atomic_load(&locked), 0);
}
END_TEST

START_TEST(in_chunks) {
    unsigned written, read;
    move_part(&written, &read);
    ck_assert_uint_gt(written, 1);
    ck_assert_uint_gt(read, 1);
    ck_assert_int_gt(atomic_load(&locked), 0);
}
END_TEST

/* Kernels that take it to and fro; the host is not asked. */
START_TEST(straight_across) {
    enum { STEPS = 40 };
    begin(LARGEST);
    change_all(buffer, expected);
    ck_ok(clFinish(queue));
    driver_forget_moves();
    for (int i = 0; i < STEPS; i++)
        change_all(buffer, expected);
    ck_ok(clFinish(queue));
    ck_assert_uint_gt(driver_count(COPY, LARGEST), 0);
    ck_assert_uint_eq(driver_count_all(), driver_count(COPY, LARGEST));
    ck_content(buffer, expected);
    end();
}
END_TEST

static void run_way(const char *way) {
    char settings[64], arguments[32];
    snprintf(settings, sizeof(settings), "TUTTI_TRANSFER=%s", way);
    snprintf(arguments, sizeof(arguments), "--way %s", way);
    test_run_again(settings, arguments);
}

START_TEST(direct) { run_way("direct"); }
END_TEST

START_TEST(staged) { run_way("staged"); }
END_TEST

START_TEST(peer) { run_way("peer"); }
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {direct, staged, peer};
    bool child = argc == 3 && strcmp(argv[1], "--way") == 0;
    const TTest *own = !child                           ? NULL
                       : strcmp(argv[2], "direct") == 0 ? one_command_each
                       : strcmp(argv[2], "staged") == 0 ? in_chunks
                                                        : straight_across;
    const TTest *const inside[] = {own, all_bytes_are_right};

    setenv("TUTTI_SCHED", "random", 1);
    setenv("TUTTI_BATCH", "never", 1); /* short kernels would go to one device together */
    if (!pocl_gpu_begin("pthread pthread", child ? change : NULL))
        return 0;
    return child ? test_main(1, argv, inside, COUNT(inside))
                 : test_main_bare(argc, argv, tests, COUNT(tests));
}
