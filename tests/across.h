/* SPDX-License-Identifier: MIT */
/*
 * What goes from one real device to the other, for programs that set how: StarPU's policy "random"
 * sends each kernel to any device, so that a buffer which kernels change one after the other
 * wanders. ACROSS_LOGGED is what Tutti's log says of each such transfer.
 */
#ifndef TUTTI_TESTS_ACROSS_H
#define TUTTI_TESTS_ACROSS_H

#include "traffic.h"

/* More chunks than are on their way at once, and a rest. */
enum { INTS = (9 << 20) / 4 + 9, BYTES = INTS * (int)sizeof(cl_int), STEPS = 24 };

static cl_program program;
static cl_kernel add, copy;
static cl_int *values;

static void open_all(void) {
    program = make_program(common_source);
    add = make_kernel(program, "add");
    copy = make_kernel(program, "copy");
    values = malloc(BYTES);
}

static void close_all(void) {
    free(values);
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseKernel(copy));
    ck_ok(clReleaseProgram(program));
}

static void add_to(cl_mem buffer, cl_int value, size_t ints) {
    ck_ok(clSetKernelArg(add, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(add, 1, sizeof(value), &value));
    launch(add, ints);
}

static void copy_to(cl_mem from, cl_mem to, size_t ints) {
    ck_ok(clSetKernelArg(copy, 0, sizeof(from), &from));
    ck_ok(clSetKernelArg(copy, 1, sizeof(to), &to));
    launch(copy, ints);
}

static void ck_ramp(cl_mem buffer, cl_int first) {
    int wrong = 0;

    memset(values, 0, BYTES);
    read_ints(buffer, values, INTS);
    while (wrong < INTS && values[wrong] == first + wrong)
        wrong++;
    ck_assert_msg(wrong == INTS, "[%d] is %d, expected %d", wrong, values[wrong], first + wrong);
}

static cl_mem make_ramp(void) {
    cl_mem buffer = make_buffer(0, BYTES, NULL);

    for (int i = 0; i < INTS; i++)
        values[i] = i;
    write_ints(buffer, values, INTS);
    return buffer;
}

/* How often the log says since the last call that bytes went on from one device to the other. */
static unsigned moves(void) { return (unsigned)test_log_count(ACROSS_LOGGED); }

/* From device to device is one download and one upload, of all bytes once. */
START_TEST(a_buffer_wanders) {
    skip_if(real_devices() < 2, "one real device only");
    open_all();
    cl_mem buffer = make_ramp();
    struct traffic before, after;

    add_to(buffer, 1, INTS);
    ck_ok(clFinish(queue));
    before = traffic_of(buffer);
    moves();
    for (int i = 0; i < STEPS; i++)
        add_to(buffer, 1, INTS);
    ck_ok(clFinish(queue));
    after = traffic_of(buffer);
    cl_ulong times = after.transfers_to_device - before.transfers_to_device;
    ck_assert_uint_gt(times, 0);
    ck_assert_uint_eq(moves(), times);
    ck_assert_uint_lt(times, STEPS);
    ck_assert_uint_eq(after.transfers_from_device - before.transfers_from_device, times);
    ck_assert_uint_eq(after.bytes_to_device - before.bytes_to_device, times * BYTES);
    ck_assert_uint_eq(after.bytes_from_device - before.bytes_from_device, times * BYTES);
    ck_assert_uint_eq(after.evictions, 0);
    ck_ramp(buffer, STEPS + 1);
    ck_ok(clReleaseMemObject(buffer));
    close_all();
}
END_TEST

/* Both devices want the same bytes at the same time, and the host too. */
START_TEST(one_source_for_many) {
    enum { TARGETS = 6 };
    open_all();
    cl_mem source = make_ramp(), target[TARGETS];

    for (int i = 0; i < TARGETS; i++)
        target[i] = make_buffer(0, BYTES, NULL);
    for (int round = 1; round <= 4; round++) {
        cl_int first = 0;
        add_to(source, 1, INTS);
        for (int i = 0; i < TARGETS; i++)
            copy_to(source, target[i], INTS);
        ck_ok(clEnqueueReadBuffer(queue, source, CL_TRUE, 0, sizeof(first), &first, 0, NULL, NULL));
        ck_assert_int_eq(first, round);
    }
    for (int i = 0; i < TARGETS; i++) {
        ck_ramp(target[i], 4);
        ck_ok(clReleaseMemObject(target[i]));
    }
    ck_ok(clReleaseMemObject(source));
    close_all();
}
END_TEST

static void CL_CALLBACK add_on_host(void *arguments) {
    cl_int *ints = *(cl_int **)arguments;

    for (int i = 0; i < INTS; i++)
        ints[i]++;
}

/* All that the host does to a buffer between two kernels: home memory is what it should be. */
START_TEST(the_host_between_devices) {
    open_all();
    cl_mem buffer = make_ramp();
    void *native[] = {buffer};
    const void *place = &native[0];
    cl_int one = 1, *mapped;
    cl_int first = 0;

    for (int round = 0; round < 3; round++) {
        /* A part is written everywhere. */
        add_to(buffer, 1, INTS);
        add_to(buffer, 1, INTS);
        ck_ok(clEnqueueFillBuffer(queue, buffer, &one, sizeof(one), BYTES / 8 * 4, sizeof(one), 0,
                                  NULL, NULL));
        one = BYTES / 8 + first + 2;
        ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, BYTES / 8 * 4, sizeof(one), &one, 0,
                                   NULL, NULL));
        first += 2;
        /* All of it comes to the host. */
        add_to(buffer, 1, INTS);
        ck_ok(clEnqueueMigrateMemObjects(queue, 1, &buffer, CL_MIGRATE_MEM_OBJECT_HOST, 0, NULL,
                                         NULL));
        add_to(buffer, 1, INTS);
        first += 2;
        /* A native kernel changes it there. */
        native[0] = NULL;
        ck_ok(clEnqueueNativeKernel(queue, add_on_host, native, sizeof(native), 1, &buffer, &place,
                                    0, NULL, NULL));
        add_to(buffer, 1, INTS);
        first += 2;
        /* Maps: kernels read it on all devices meanwhile. */
        mapped = clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 4096, 4096,
                                    0, NULL, NULL, &error);
        ck_ok(error);
        for (int i = 0; i < 1024; i++)
            mapped[i] += 1;
        ck_ok(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL));
        add_to(buffer, 1, INTS);
        mapped = clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 4096, 4096,
                                    0, NULL, NULL, &error);
        ck_ok(error);
        for (int i = 0; i < 1024; i++)
            mapped[i] -= 1;
        ck_ok(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL));
        first += 1;
        /* It is overwritten as a whole. */
        add_to(buffer, 1, INTS);
        first += 1;
        ck_ramp(buffer, first);
        for (int i = 0; i < INTS; i++)
            values[i] = i;
        write_ints(buffer, values, INTS);
        first = 0;
        add_to(buffer, 1, INTS);
        first += 1;
    }
    ck_ramp(buffer, 1);
    ck_ok(clReleaseMemObject(buffer));
    close_all();
}
END_TEST

/* A map for writing stays while kernels of all devices read the rest. */
START_TEST(a_map_stays) {
    enum { PART = 1 << 20 };
    open_all();
    cl_mem source = make_ramp(), target[4];
    cl_int *mapped;

    add_to(source, 5, INTS);
    mapped =
        clEnqueueMapBuffer(queue, source, CL_TRUE, CL_MAP_WRITE, 0, PART, 0, NULL, NULL, &error);
    ck_ok(error);
    for (int i = 0; i < PART / 4; i++)
        mapped[i] = i + 6;
    for (int i = 0; i < 4; i++) {
        target[i] = make_buffer(0, BYTES, NULL);
        copy_to(source, target[i], INTS);
    }
    ck_ok(clFinish(queue));
    for (int i = 0; i < PART / 4; i++)
        ck_assert_int_eq(mapped[i], i + 6);
    for (int i = 0; i < PART / 4; i++)
        mapped[i] = i + 5;
    ck_ok(clEnqueueUnmapMemObject(queue, source, mapped, 0, NULL, NULL));
    ck_ramp(source, 5);
    for (int i = 0; i < 4; i++) {
        read_ints(target[i], values, INTS);
        for (int j = PART / 4; j < INTS; j++)
            if (values[j] != j + 5)
                ck_abort_msg("target %d [%d] is %d", i, j, values[j]);
        ck_ok(clReleaseMemObject(target[i]));
    }
    ck_ok(clReleaseMemObject(source));
    close_all();
}
END_TEST

/* Kernels before a map for invalidating read all bytes, though home memory never gets the part. */
static void map_after_reader(cl_mem source, cl_mem mapped, size_t offset) {
    enum { PART = 1 << 20, ROUNDS = 16 };
    cl_mem target = make_buffer(0, BYTES, NULL), other[4];

    for (int i = 0; i < 4; i++)
        other[i] = make_ramp();
    for (int round = 1; round <= ROUNDS; round++) {
        cl_int *ints;
        add_to(source, 1, INTS);
        ck_ok(clFinish(queue));
        for (int i = 0; i < 4; i++) /* so that the reader begins later than the map */
            add_to(other[i], 1, INTS);
        copy_to(source, target, INTS);
        ints = clEnqueueMapBuffer(queue, mapped, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, offset,
                                  PART, 0, NULL, NULL, &error);
        ck_ok(error);
        for (int i = 0; i < PART / 4; i++)
            ints[i] = PART / 4 + i + round;
        ck_ok(clEnqueueUnmapMemObject(queue, mapped, ints, 0, NULL, NULL));
        ck_ramp(target, round);
    }
    ck_ramp(source, ROUNDS);
    for (int i = 0; i < 4; i++)
        ck_ok(clReleaseMemObject(other[i]));
    ck_ok(clReleaseMemObject(target));
}

START_TEST(a_map_comes_after_readers) {
    open_all();
    cl_mem source = make_ramp();

    map_after_reader(source, source, 1 << 20);
    ck_ok(clReleaseMemObject(source));
    close_all();
}
END_TEST

/* What is mapped then is the buffer's home memory. */
START_TEST(a_map_of_a_part_comes_after_readers) {
    cl_buffer_region region = {1 << 20, 2 << 20};
    open_all();
    cl_int *own = malloc(BYTES);
    for (int i = 0; i < INTS; i++)
        own[i] = i;
    cl_mem source = make_buffer(CL_MEM_USE_HOST_PTR, BYTES, own);
    cl_mem part =
        ck_made(clCreateSubBuffer(source, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error));

    map_after_reader(source, part, 0);
    ck_ok(clReleaseMemObject(part));
    ck_ok(clReleaseMemObject(source));
    free(own);
    close_all();
}
END_TEST

/* The program's own memory is home memory; it has the bytes when the host may look at it. */
START_TEST(memory_of_the_program) {
    open_all();
    cl_int *own = malloc(BYTES), *mapped;
    memset(own, 0, BYTES);
    cl_mem buffer = make_buffer(CL_MEM_USE_HOST_PTR, BYTES, own);

    for (int i = 0; i < 8; i++)
        add_to(buffer, 1, INTS);
    mapped =
        clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 0, BYTES, 0, NULL, NULL, &error);
    ck_ok(error);
    ck_assert_ptr_eq(mapped, own);
    ck_all(own, INTS, 8);
    ck_ok(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL));
    ck_ok(clReleaseMemObject(buffer));
    free(own);
    close_all();
}
END_TEST

/* A part of one buffer goes into another one, wherever the two are. */
START_TEST(parts_go_across) {
    enum { FIRST = 1021, PART = 5 << 18 };
    open_all();
    cl_mem from = make_ramp(), to = make_ramp();

    for (int i = 1; i <= STEPS / 2; i++) {
        add_to(from, 1, INTS);
        add_to(to, 1, INTS);
        ck_ok(clEnqueueCopyBuffer(queue, from, to, FIRST * 4, FIRST * 4, PART * 4, 0, NULL, NULL));
        ck_ok(clEnqueueCopyBuffer(queue, to, from, 0, 0, FIRST * 4, 0, NULL, NULL));
    }
    ck_ramp(from, STEPS / 2);
    ck_ramp(to, STEPS / 2);
    ck_ok(clReleaseMemObject(from));
    ck_ok(clReleaseMemObject(to));
    close_all();
}
END_TEST

#define ACROSS_TESTS                                                                               \
    a_buffer_wanders, one_source_for_many, the_host_between_devices, a_map_stays,                  \
        a_map_comes_after_readers, a_map_of_a_part_comes_after_readers, memory_of_the_program,     \
        parts_go_across

static void across_set(const char *transfer) {
    setenv("TUTTI_TRANSFER", transfer, 1);
    setenv("TUTTI_SCHED", "random", 1);
    setenv("TUTTI_BATCH", "never", 1); /* short kernels would go to one device together */
}

#endif
