/* SPDX-License-Identifier: MIT */
/*
 * More data than the devices' memory, for programs that set what those are and give each one MiB of
 * its own; what does not fit is evicted to host memory.
 */
#ifndef TUTTI_TESTS_FULL_MEMORY_H
#define TUTTI_TESTS_FULL_MEMORY_H

#include "refusal.h"
#include "traffic.h"

enum { LIMIT = 1 << 20, LARGE = LIMIT / 8 * 5, LARGE_INTS = LARGE / sizeof(cl_int) };

/* Tiles of the product: 75 of 64 KiB, 25 % of which fit in a device. */
enum { SIDE = 128, TILES = 5, TILE = SIDE * SIDE, TILE_BYTES = TILE * sizeof(cl_int) };

static const char *const product =
    "kernel void multiply(global const int *a, global const int *b, global int *c, int first) {\n"
    "    int x = get_global_id(0), y = get_global_id(1), sum = first ? 0 : c[y * 128 + x];\n"
    "    for (int k = 0; k < 128; k++)\n"
    "        sum += a[y * 128 + k] * b[k * 128 + x];\n"
    "    c[y * 128 + x] = sum;\n"
    "}\n"
    "kernel void both(global int *a, global int *b) {\n"
    "    a[get_global_id(0)] += 1;\n"
    "    b[get_global_id(0)] += 2;\n"
    "}\n"
    "kernel void accumulate(global const int *in, global int *out) {\n"
    "    out[get_global_id(0)] += in[get_global_id(0)];\n"
    "}\n";

static cl_program program;

static void set(cl_kernel kernel, cl_uint index, cl_mem buffer) {
    ck_ok(clSetKernelArg(kernel, index, sizeof(buffer), &buffer));
}

/* Small numbers that differ from row to row and from column to column. */
static int entry(int matrix, int y, int x) { return (y * (3 + matrix) + x * (5 - matrix)) % 7 - 3; }

static void fill_tile(cl_int *tile, int matrix, int y, int x) {
    for (int i = 0; i < TILE; i++)
        tile[i] = entry(matrix, y * SIDE + i / SIDE, x * SIDE + i % SIDE);
}

START_TEST(a_product_in_tiles) {
    static cl_int values[TILE];
    cl_mem tile[3][TILES][TILES];
    cl_kernel multiply;
    cl_ulong evictions = 0;
    int factors[MOST_REAL] = {0}, most = 0; /* brought to a device */

    program = make_program(product);
    multiply = make_kernel(program, "multiply");
    for (int m = 0; m < 3; m++)
        for (int y = 0; y < TILES; y++)
            for (int x = 0; x < TILES; x++) {
                tile[m][y][x] = make_buffer(0, TILE_BYTES, NULL);
                fill_tile(values, m, y, x);
                if (m < 2)
                    ck_ok(clEnqueueWriteBuffer(queue, tile[m][y][x], CL_TRUE, 0, TILE_BYTES, values,
                                               0, NULL, NULL));
            }
    for (int k = 0; k < TILES; k++)
        for (int y = 0; y < TILES; y++)
            for (int x = 0; x < TILES; x++) {
                cl_int first = k == 0;
                size_t global[2] = {SIDE, SIDE};
                set(multiply, 0, tile[0][y][k]);
                set(multiply, 1, tile[1][k][x]);
                set(multiply, 2, tile[2][y][x]);
                ck_ok(clSetKernelArg(multiply, 3, sizeof(first), &first));
                ck_ok(
                    clEnqueueNDRangeKernel(queue, multiply, 2, NULL, global, NULL, 0, NULL, NULL));
            }
    ck_ok(clFinish(queue));
    for (int y = 0; y < TILES; y++)
        for (int x = 0; x < TILES; x++) {
            read_ints(tile[2][y][x], values, TILE);
            for (int i = 0; i < TILE; i += 331) { /* some of each tile, in all columns */
                int row = y * SIDE + i / SIDE, column = x * SIDE + i % SIDE, sum = 0;
                for (int k = 0; k < TILES * SIDE; k++)
                    sum += entry(0, row, k) * entry(1, k, column);
                ck_assert_msg(values[i] == sum, "(%d, %d) is %d, expected %d", row, column,
                              values[i], sum);
            }
        }
    for (int m = 0; m < 3; m++)
        for (int y = 0; y < TILES; y++)
            for (int x = 0; x < TILES; x++) {
                struct traffic on[MOST_REAL];
                cl_uint devices = 0;
                ck_ok(find_traffic()(tile[m][y][x], MOST_REAL, on, &devices));
                for (cl_uint d = 0; d < devices && d < MOST_REAL; d++) {
                    evictions += on[d].evictions;
                    factors[d] += m < 2 && on[d].transfers_to_device > 0;
                    most = factors[d] > most ? factors[d] : most;
                }
                ck_ok(clReleaseMemObject(tile[m][y][x]));
            }
    /* Where CPUs have taken most of it, nothing had to leave the GPU. */
    ck_assert_msg(evictions > 0 || most <= LIMIT / TILE_BYTES, "%d tiles and no eviction", most);
    ck_ok(clReleaseKernel(multiply));
    ck_ok(clReleaseProgram(program));
}
END_TEST

/* Each needs more than half of a device, so that one leaves for the next, whoever wrote it. */
START_TEST(large_buffers_take_turns) {
    enum { COUNT_LARGE = 4, ROUNDS = 5 };
    static cl_int values[COUNT_LARGE][LARGE_INTS], seen[LARGE_INTS];
    cl_mem large[COUNT_LARGE];
    cl_ulong evictions = 0;
    cl_uint devices;
    cl_kernel add;

    program = make_program(common_source);
    add = make_kernel(program, "add");
    for (int i = 0; i < COUNT_LARGE; i++)
        large[i] = make_buffer(0, LARGE, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < COUNT_LARGE; i++) {
            for (int j = 0; j < LARGE_INTS; j++)
                values[i][j] = 100 * round + i;
            ck_ok(clEnqueueWriteBuffer(queue, large[i], round % 2, 0, LARGE, values[i], 0, NULL,
                                       NULL));
        }
        for (int i = 0; i < COUNT_LARGE; i++) {
            cl_int value = i + 1;
            set(add, 0, large[i]);
            ck_ok(clSetKernelArg(add, 1, sizeof(value), &value));
            launch(add, LARGE_INTS);
        }
        for (int i = 0; i < COUNT_LARGE; i++) {
            read_ints(large[i], seen, LARGE_INTS);
            ck_all(seen, LARGE_INTS, 100 * round + 2 * i + 1);
        }
    }
    ck_ok(find_traffic()(large[0], 0, NULL, &devices));
    for (int i = 0; i < COUNT_LARGE; i++) {
        evictions += traffic_of(large[i]).evictions;
        ck_ok(clReleaseMemObject(large[i]));
    }
    ck_assert_msg(evictions > 0 || devices >= COUNT_LARGE, "nothing was evicted");
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}
END_TEST

/* Data of short kernels stay where they are from one to the next, until others need the room. */
START_TEST(what_stays_makes_room) {
    enum { BUFFERS = 4, ROUNDS = 3, KERNELS = 12 };
    cl_mem large[BUFFERS];
    cl_ulong evictions = 0;
    cl_uint devices;
    cl_kernel add;
    cl_int one = 1, seen[2];

    program = make_program(common_source);
    add = make_kernel(program, "add");
    ck_ok(clSetKernelArg(add, 1, sizeof(one), &one));
    for (int i = 0; i < BUFFERS; i++) {
        large[i] = make_buffer(0, LARGE, NULL);
        seen[0] = 0;
        ck_ok(clEnqueueFillBuffer(queue, large[i], seen, sizeof(*seen), 0, LARGE, 0, NULL, NULL));
    }
    for (int i = 0; i < ROUNDS * BUFFERS; i++) {
        set(add, 0, large[i % BUFFERS]);
        for (int k = 0; k < KERNELS; k++) {
            launch(add, 1);
            ck_ok(clFinish(queue));
        }
    }
    ck_ok(find_traffic()(large[0], 0, NULL, &devices));
    for (int i = 0; i < BUFFERS; i++) {
        read_ints(large[i], seen, 2);
        ck_assert_int_eq(seen[0], ROUNDS * KERNELS);
        ck_assert_int_eq(seen[1], 0);
        evictions += traffic_of(large[i]).evictions;
        ck_ok(clReleaseMemObject(large[i]));
    }
    ck_assert_msg(evictions > 0 || devices >= BUFFERS, "nothing was evicted");
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}
END_TEST

/* The event of a kernel that can't run anywhere, once its end is known. */
static cl_int failure_of(cl_kernel kernel, size_t global) {
    cl_event event;
    cl_int status;

    ck_ok(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, &event));
    clWaitForEvents(1, &event);
    status = event_status(event);
    ck_ok(clReleaseEvent(event));
    return status;
}

START_TEST(what_fits_nowhere_fails) {
    enum { HUGE_INTS = LIMIT / 2, SIZE = HUGE_INTS * sizeof(cl_int) };
    static cl_int values[HUGE_INTS], seen[HUGE_INTS];
    cl_mem huge = make_buffer(0, SIZE, NULL);
    cl_mem a = make_buffer(0, LARGE, NULL), b = make_buffer(0, LARGE, NULL);
    cl_kernel one, two;

    program = make_program(product);
    two = make_kernel(program, "both");
    set(two, 0, a);
    set(two, 1, b);
    ck_assert_cl(failure_of(two, LARGE_INTS), CL_MEM_OBJECT_ALLOCATION_FAILURE);
    set(two, 0, huge);
    ck_assert_cl(failure_of(two, 1), CL_MEM_OBJECT_ALLOCATION_FAILURE);
    for (int i = 0; i < HUGE_INTS; i++)
        values[i] = i;
    write_ints(huge, values, HUGE_INTS); /* the host needs no device for it */
    read_ints(huge, seen, HUGE_INTS);
    ck_assert_int_eq(memcmp(values, seen, SIZE), 0);
    ck_ok(clEnqueueCopyBuffer(queue, huge, a, 64, 0, LARGE, 0, NULL, NULL));
    ck_ok(clEnqueueCopyBuffer(queue, a, b, 0, 0, LARGE, 0, NULL, NULL));
    read_ints(b, seen, LARGE_INTS);
    ck_assert_int_eq(seen[0], 16);
    one = make_kernel(program, "accumulate"); /* one buffer, twice: it fits */
    set(one, 0, a);
    set(one, 1, a);
    launch(one, LARGE_INTS);
    read_ints(a, seen, LARGE_INTS);
    ck_assert_int_eq(seen[9], 2 * (9 + 16));
    ck_ok(clReleaseKernel(one));
    ck_ok(clReleaseKernel(two));
    ck_ok(clReleaseProgram(program));
    ck_ok(clReleaseMemObject(huge));
    ck_ok(clReleaseMemObject(a));
    ck_ok(clReleaseMemObject(b));
}
END_TEST

START_TEST(a_device_that_refuses_memory) {
    enum { INTS = REFUSED / sizeof(cl_int) };
    static cl_int seen[INTS];
    cl_mem refused = make_buffer(0, REFUSED, NULL), other = make_buffer(0, 65536, NULL);
    cl_int value = 6;
    cl_kernel kernel;

    program = make_program(common_source);
    kernel = make_kernel(program, "set");
    set(kernel, 0, refused);
    ck_ok(clSetKernelArg(kernel, 1, sizeof(value), &value));
    atomic_store(&refusing, true);
    cl_int failure = failure_of(kernel, INTS);
    atomic_store(&refusing, false);
    if (atomic_load(&refused_some))
        ck_assert_cl(failure, CL_MEM_OBJECT_ALLOCATION_FAILURE);
    else
        test_skip("the device's memory does not come from mmap, so that none can be refused");
    set(kernel, 0, other);
    launch(kernel, 16384);
    read_ints(other, seen, 16384);
    ck_all(seen, 16384, value);
    ck_ok(clReleaseMemObject(refused));
    refused = make_buffer(0, REFUSED, NULL);
    set(kernel, 0, refused);
    launch(kernel, INTS);
    read_ints(refused, seen, INTS);
    ck_all(seen, INTS, value);
    ck_ok(clReleaseMemObject(refused));
    ck_ok(clReleaseMemObject(other));
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(released_memory_is_there_again) {
    enum { ROUNDS = 60 };
    cl_kernel kernel;

    program = make_program(common_source);
    kernel = make_kernel(program, "set");
    for (cl_int i = 0; i < ROUNDS; i++) {
        cl_mem buffer = make_buffer(0, LARGE, NULL);
        cl_int seen;
        set(kernel, 0, buffer);
        ck_ok(clSetKernelArg(kernel, 1, sizeof(i), &i));
        launch(kernel, LARGE_INTS);
        if (i % 3 == 0) {
            ck_ok(clEnqueueReadBuffer(queue, buffer, CL_TRUE, LARGE - 4, 4, &seen, 0, NULL, NULL));
            ck_assert_int_eq(seen, i);
        }
        ck_ok(clReleaseMemObject(buffer));
    }
    ck_ok(clFinish(queue));
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(program));
}
END_TEST

/* Two inputs, one of them common to all: it goes to each device once, as nothing drives it out. */
START_TEST(what_is_only_read_moves_once) {
    enum { KERNELS = 40, INTS = 4096, SIZE = INTS * sizeof(cl_int), SUMS = 4 };
    static cl_int values[INTS], seen[INTS];
    cl_mem common = make_buffer(0, SIZE, NULL), sum[SUMS];
    struct traffic on[MOST_REAL];
    cl_uint count;
    cl_kernel add;

    program = make_program(product);
    add = make_kernel(program, "accumulate");
    for (int i = 0; i < INTS; i++)
        values[i] = i;
    write_ints(common, values, INTS);
    memset(values, 0, sizeof(values));
    set(add, 0, common);
    for (int s = 0; s < SUMS; s++) {
        sum[s] = make_buffer(0, SIZE, NULL);
        write_ints(sum[s], values, INTS);
    }
    for (int i = 0; i < KERNELS; i++) {
        set(add, 1, sum[i % SUMS]);
        launch(add, INTS);
    }
    for (int s = 0; s < SUMS; s++) {
        read_ints(sum[s], seen, INTS);
        for (int i = 0; i < INTS; i++)
            if (seen[i] != KERNELS / SUMS * i)
                ck_abort_msg("[%d] is %d", i, seen[i]);
        ck_ok(clReleaseMemObject(sum[s]));
    }
    ck_ok(find_traffic()(common, MOST_REAL, on, &count));
    for (cl_uint d = 0; d < count && d < MOST_REAL; d++) {
        ck_assert_uint_le(on[d].transfers_to_device, 1);
        ck_assert_uint_eq(on[d].bytes_to_device, on[d].transfers_to_device * SIZE);
    }
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
    ck_ok(clReleaseMemObject(common));
}
END_TEST

/*
 * The program sees a part of its memory through a map, newer than what the whole buffer has of it:
 * when that leaves its device, it must not take the place of the part.
 */
START_TEST(a_mapped_part_stays) {
    enum { OTHERS = 4, PART = 1024, PART_BYTES = PART * sizeof(cl_int) };
    static cl_int memory[LARGE_INTS];
    cl_mem buffer = make_buffer(CL_MEM_USE_HOST_PTR, LARGE, memory), part, other[OTHERS];
    const cl_buffer_region region = {0, PART_BYTES};
    cl_int one = 1, seven = 7;
    cl_kernel kernel, add;
    const cl_int *pointer;
    cl_int seen[2];

    program = make_program(common_source);
    kernel = make_kernel(program, "set");
    add = make_kernel(program, "add");
    set(add, 0, buffer);
    ck_ok(clSetKernelArg(add, 1, sizeof(one), &one));
    launch(add, LARGE_INTS);
    part = ck_made(clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error));
    set(kernel, 0, part);
    ck_ok(clSetKernelArg(kernel, 1, sizeof(seven), &seven));
    launch(kernel, PART);
    pointer = ck_made(clEnqueueMapBuffer(queue, part, CL_TRUE, CL_MAP_READ, 0, PART_BYTES, 0, NULL,
                                         NULL, &error));
    ck_all(pointer, PART, 7);
    for (int i = 0; i < OTHERS; i++)
        other[i] = make_buffer(0, LARGE, NULL);
    /* Sooner or later one of them is brought to the buffer's device. */
    for (int i = 0; i < 20 * OTHERS && traffic_of(buffer).evictions == 0; i++) {
        set(kernel, 0, other[i % OTHERS]);
        launch(kernel, LARGE_INTS);
        ck_ok(clFinish(queue));
    }
    ck_all(pointer, PART, 7);
    ck_ok(clEnqueueUnmapMemObject(queue, part, (void *)pointer, 0, NULL, NULL));
    launch(add, LARGE_INTS);
    ck_ok(clEnqueueReadBuffer(queue, buffer, CL_TRUE, PART_BYTES - 4, 8, seen, 0, NULL, NULL));
    ck_assert_int_eq(seen[0], 8);
    ck_assert_int_eq(seen[1], 2);
    for (int i = 0; i < OTHERS; i++)
        ck_ok(clReleaseMemObject(other[i]));
    ck_ok(clReleaseMemObject(part));
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}
END_TEST

#define FULL_MEMORY_TESTS                                                                          \
    a_product_in_tiles, large_buffers_take_turns, what_stays_makes_room, what_fits_nowhere_fails,  \
        a_device_that_refuses_memory, released_memory_is_there_again,                              \
        what_is_only_read_moves_once, a_mapped_part_stays

static inline void full_memory_set(void) { setenv("TUTTI_DEVICE_MEMORY", "1M", 1); }

#endif
