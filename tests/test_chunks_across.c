/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: what goes from one GPU to another goes on in chunks, so that the second one's link
 * works before the first one is done. PoCL stands in for two; the policy "random" sends each kernel
 * to any of them.
 */
#include "driver_moves.h"

enum { MIB = 1 << 20, BYTES = 40 * MIB, TRIES = 64, FEW = 4 };

static cl_program program;
static cl_kernel add;

static const char source[] =
    "kernel void count(global int *data) { data[get_global_id(0)] = get_global_id(0); }"
    "kernel void add(global int *data, int by) { data[get_global_id(0)] += by; }";

static void add_one(cl_mem buffer, size_t ints) {
    cl_int one = 1;
    ck_ok(clSetKernelArg(add, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(add, 1, sizeof(one), &one));
    launch(add, ints);
    ck_ok(clFinish(queue));
}

/* The place of that command among all; the last one's if that is asked for. */
static unsigned find(enum driver_way way, bool last) {
    unsigned found = driver_moves.count;
    for (unsigned i = 0; i < driver_moves.count; i++)
        if (driver_moves.move[i].way == way && (last || found == driver_moves.count))
            found = i;
    return found;
}

/* Of what went from one to the other: both ways in the same chunks, and among each other. */
static void ck_interleaved(size_t size) {
    unsigned count = driver_count_all(), down = driver_count(READ, 0), up = driver_count(WRITE, 0);
    size_t bytes = 0;
    ck_assert_uint_eq(down + up, count);
    ck_assert_uint_eq(down, up);
    ck_assert_uint_ge(up, FEW);
    for (unsigned i = 0; i < count; i++) {
        const struct driver_move *move = &driver_moves.move[i];
        bytes += move->bytes;
        ck_assert_uint_le(move->bytes, 4 * MIB);
        ck_assert_ptr_eq(move->device, driver_moves.move[find(move->way, false)].device);
    }
    ck_assert_uint_eq(bytes, 2 * size);
    ck_assert_ptr_ne(driver_moves.move[find(READ, false)].device,
                     driver_moves.move[find(WRITE, false)].device);
    ck_assert_uint_lt(find(WRITE, false), find(READ, true));
}

/* Kernels use it until it went from one to the other so often. */
static void wander(cl_mem buffer, size_t size, cl_int *value) {
    int went = 0;
    for (int i = 0; i < TRIES && went < FEW; i++) {
        driver_forget_moves();
        add_one(buffer, size / sizeof(cl_int));
        (*value)++;
        if (driver_count_all() == 0)
            continue;
        ck_interleaved(size);
        went++;
    }
    ck_assert_int_eq(went, FEW);
}

static void ck_content(cl_mem buffer, size_t size, cl_int value) {
    cl_int *seen = malloc(size);
    size_t wrong = 0;
    read_ints(buffer, seen, size / sizeof(cl_int));
    for (size_t i = 0; i < size / sizeof(cl_int); i++)
        wrong += seen[i] != (cl_int)i + value;
    free(seen);
    ck_assert_uint_eq(wrong, 0);
}

/* The host does so by a map: it has memory for the buffer then. */
static void fill(cl_mem buffer, size_t size, bool by_host) {
    cl_kernel count = make_kernel(program, "count");
    cl_int *mapped = NULL;
    ck_ok(clSetKernelArg(count, 0, sizeof(buffer), &buffer));
    if (by_host) {
        mapped = ck_made(clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_WRITE, 0, size, 0, NULL,
                                            NULL, &error));
        for (size_t i = 0; i < size / sizeof(cl_int); i++)
            mapped[i] = (cl_int)i;
        ck_ok(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL));
    } else {
        launch(count, size / sizeof(cl_int));
    }
    ck_ok(clFinish(queue));
    ck_ok(clReleaseKernel(count));
}

static void go(cl_mem_flags flags, size_t size, bool by_host) {
    cl_int value = 1;
    program = make_program(source);
    add = make_kernel(program, "add");
    cl_mem buffer = make_buffer(flags, size, NULL);
    fill(buffer, size, by_host);
    add_one(buffer, size / sizeof(cl_int)); /* on one of them */
    wander(buffer, size, &value);
    ck_content(buffer, size, value);
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}

/* By way of some chunks of page-locked memory: the host has no memory for it. */
START_TEST(of_what_devices_made) { go(0, BYTES, false); }
END_TEST

START_TEST(of_an_uneven_size) { go(0, BYTES - 12, false); }
END_TEST

/* By way of home memory. */
START_TEST(of_what_the_host_wrote) { go(CL_MEM_ALLOC_HOST_PTR, BYTES, true); }
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {of_what_devices_made, of_an_uneven_size, of_what_the_host_wrote};
    setenv("TUTTI_TRANSFER", "staged", 1);
    setenv("TUTTI_SCHED", "random", 1);
    setenv("TUTTI_BATCH", "never", 1); /* short kernels would go to one device together */
    return pocl_gpu_begin("pthread pthread", driver_moves_change)
               ? test_main(argc, argv, tests, COUNT(tests))
               : 0;
}
