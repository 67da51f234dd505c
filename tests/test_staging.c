/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: pageable memory goes to and from a GPU in chunks, by as many threads, through as much
 * page-locked memory as TUTTI_STAGING says. PoCL stands in for the GPU. Each shape has a process of
 * its own, as the variable is read once.
 */
#include "driver_moves.h"

#define KIB ((size_t)1024)
#define MANY 24 /* chunks, enough for all threads */
#define FIRST 5 /* byte that moves, so that nothing is whole */

/* The child's. */
static struct { size_t threads, chunk, slots; } shape;

static cl_program program;
static cl_mem buffer;
static size_t bytes; /* of the buffer */
static unsigned char *expected, *memory;

/* The kernel leaves the bytes that the host knows on the GPU alone. */
static void bring(void) {
    cl_kernel add = make_kernel(program, "add");
    cl_int none = 0;
    ck_ok(clSetKernelArg(add, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(add, 1, sizeof(none), &none));
    launch(add, bytes / sizeof(cl_int));
    ck_ok(clFinish(queue));
    ck_ok(clReleaseKernel(add));
    driver_forget_moves();
}

static void begin(size_t size) {
    bytes = size;
    expected = malloc(bytes);
    memory = malloc(bytes);
    for (size_t i = 0; i < bytes; i++)
        expected[i] = (unsigned char)(i * 7 + i / 251);
    program = make_program(common_source);
    buffer = make_buffer(CL_MEM_COPY_HOST_PTR, bytes, expected);
    bring();
}

static void end(void) {
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseProgram(program));
    free(memory);
    free(expected);
}

/* Commands of so many bytes in all, none of which has more than a chunk. */
static void ck_chunks(enum driver_way way, size_t size, size_t chunk) {
    size_t moved = 0;
    ck_assert_uint_eq(driver_count_all(), (size + chunk - 1) / chunk);
    for (unsigned i = 0; i < driver_count_all(); i++) {
        const struct driver_move *move = &driver_moves.move[i];
        ck_assert_int_eq(move->way, way);
        ck_assert_uint_le(move->bytes, chunk);
        moved += move->bytes;
    }
    ck_assert_uint_eq(moved, size);
}

/* A part of the buffer, written with other bytes. */
static void write_part(size_t first, size_t size, bool blocking) {
    for (size_t i = first; i < first + size; i++)
        expected[i] = (unsigned char)(expected[i] * 3 + 1);
    memcpy(memory + 1, expected + first, size); /* at no good address */
    ck_ok(clEnqueueWriteBuffer(queue, buffer, blocking, first, size, memory + 1, 0, NULL, NULL));
}

static void read_part(size_t first, size_t size, bool blocking) {
    memset(memory, 0, bytes);
    ck_ok(clEnqueueReadBuffer(queue, buffer, blocking, first, size, memory + 1, 0, NULL, NULL));
}

static void ck_read(size_t first, size_t size) {
    size_t wrong = 0;
    while (wrong < size && memory[1 + wrong] == expected[first + wrong])
        wrong++;
    ck_assert_msg(wrong == size, "byte %zu of %zu is wrong", wrong, size);
    ck_assert_uint_eq(memory[0], 0);
    ck_assert_uint_eq(memory[1 + size], 0);
}

START_TEST(uneven_sizes) {
    const size_t chunk = shape.chunk,
                 size[] = {chunk - 1, chunk, chunk + 1, 3, 2 * chunk - 1, MANY * chunk + 3};
    begin((MANY + 1) * chunk);
    for (size_t i = 0; i < COUNT(size); i++) {
        write_part(FIRST + i, size[i], true);
        driver_forget_moves();
        read_part(FIRST + i, size[i], true);
        ck_read(FIRST + i, size[i]);
        write_part(FIRST + i, size[i], true);
        read_part(0, bytes - 2, true);
        ck_read(0, bytes - 2);
    }
    end();
}
END_TEST

START_TEST(chunks) {
    const size_t size[] = {MANY * shape.chunk - 1, MANY * shape.chunk, MANY * shape.chunk + 3};
    begin((MANY + 1) * shape.chunk);
    for (size_t i = 0; i < COUNT(size); i++) {
        driver_forget_moves();
        write_part(FIRST, size[i], true);
        ck_chunks(WRITE, size[i], shape.chunk);
        driver_forget_moves();
        read_part(FIRST, size[i], true);
        ck_chunks(READ, size[i], shape.chunk);
        ck_read(FIRST, size[i]);
    }
    end();
}
END_TEST

/* Threads that gave the driver commands, each through so many places. */
static void ck_threads(void) {
    unsigned count = driver_count_all();
    for (unsigned i = 0; i < count; i++) {
        const struct driver_move *move = &driver_moves.move[i];
        unsigned places = 0;
        for (unsigned j = 0; j < count; j++) {
            const struct driver_move *other = &driver_moves.move[j];
            if (!pthread_equal(other->thread, move->thread))
                continue;
            unsigned before = 0;
            for (unsigned k = 0; k < j; k++)
                before += driver_moves.move[k].host == other->host &&
                          pthread_equal(driver_moves.move[k].thread, move->thread);
            places += before == 0;
        }
        ck_assert_uint_eq(places, shape.slots);
    }
    ck_assert_uint_eq(driver_threads(), shape.threads);
}

/*
 * The driver ends none of the first commands before as many are on their way as there are places in
 * page-locked memory, and no more come while none is free.
 */
static void ck_all_at_once(void) {
    unsigned places = (unsigned)(shape.threads * shape.slots);
    for (int ms = 0; ms < 10000 && driver_count_all() < places; ms++)
        usleep(1000);
    unsigned under_way = driver_count_all();
    driver_let_go();
    ck_ok(clFinish(queue));
    ck_assert_uint_eq(under_way, places);
    ck_threads();
}

START_TEST(threads_and_slots) {
    const size_t size = MANY * shape.chunk;
    begin((MANY + 1) * shape.chunk);
    driver_hold((unsigned)(shape.threads * shape.slots), (unsigned)shape.threads);
    write_part(FIRST, size, false);
    ck_all_at_once();
    driver_forget_moves();
    driver_hold((unsigned)(shape.threads * shape.slots), (unsigned)shape.threads);
    read_part(FIRST, size, false);
    ck_all_at_once();
    ck_read(FIRST, size);
    end();
}
END_TEST

/* As many whole rows as fit. */
START_TEST(rows) {
    enum { ROWS = 63 };
    const size_t row = shape.chunk / 4 + 4, pitch = row + 12, zero[3] = {0, 0, 0};
    const size_t region[3] = {row, ROWS, 1};
    size_t wrong = 0;
    begin(ROWS * pitch);
    for (size_t i = 0; i < bytes; i++)
        expected[i] = i % pitch < row ? (unsigned char)(i * 5) : expected[i];
    memcpy(memory, expected, bytes);
    ck_ok(clEnqueueWriteBufferRect(queue, buffer, CL_TRUE, zero, zero, region, pitch, 0, pitch, 0,
                                   memory, 0, NULL, NULL));
    unsigned all = driver_count_all();
    ck_assert_uint_eq(driver_count(WRITE_RECT, 0), all);
    ck_assert_uint_eq(all, ROWS / 3); /* three fit */
    driver_forget_moves();
    memset(memory, 0, bytes);
    ck_ok(clEnqueueReadBufferRect(queue, buffer, CL_TRUE, zero, zero, region, pitch, 0, pitch, 0,
                                  memory, 0, NULL, NULL));
    all = driver_count_all();
    ck_assert_uint_eq(driver_count(READ_RECT, 0), all);
    ck_assert_uint_eq(all, ROWS / 3);
    for (size_t i = 0; i < bytes; i++)
        wrong += memory[i] != (i % pitch < row ? expected[i] : 0);
    ck_assert_uint_eq(wrong, 0);
    end();
}
END_TEST

/* The child of `auto`: what is shorter than "from" is one command of the driver. */
START_TEST(only_long_ones) {
    const size_t from = 8 * shape.chunk;
    begin(from + 64);
    write_part(FIRST, from - 1, true);
    ck_chunks(WRITE, from - 1, from - 1);
    driver_forget_moves();
    write_part(FIRST, from, true);
    ck_chunks(WRITE, from, shape.chunk);
    driver_forget_moves();
    read_part(FIRST, from - 1, true);
    ck_chunks(READ, from - 1, from - 1);
    driver_forget_moves();
    read_part(FIRST, from, true);
    ck_chunks(READ, from, shape.chunk);
    ck_read(FIRST, from);
    end();
}
END_TEST

static void run_shape(const char *transfer, size_t threads, size_t chunk, size_t slots,
                      const char *more) {
    char settings[160], arguments[96];
    snprintf(settings, sizeof(settings),
             "TUTTI_TRANSFER=%s TUTTI_STAGING=threads=%zu,chunk=%zuK,slots=%zu%s", transfer,
             threads, chunk / KIB, slots, more);
    snprintf(arguments, sizeof(arguments), "--%s %zu %zu %zu", transfer, threads, chunk, slots);
    test_run_again(settings, arguments);
}

START_TEST(two_threads) { run_shape("staged", 2, 256 * KIB, 2, ""); }
END_TEST

START_TEST(three_threads) { run_shape("staged", 3, 192 * KIB, 3, ""); }
END_TEST

START_TEST(past_the_caches) { run_shape("staged", 2, 128 * KIB, 4, ",stream=1"); }
END_TEST

START_TEST(from_a_size_on) { run_shape("auto", 3, 256 * KIB, 2, ",from=2M"); }
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {two_threads, three_threads, past_the_caches, from_a_size_on};
    const TTest *const staged[] = {chunks, threads_and_slots, uneven_sizes, rows};
    const TTest *const chosen[] = {only_long_ones};
    bool child = argc == 5 && strncmp(argv[1], "--", 2) == 0;

    if (child) {
        shape.threads = strtoul(argv[2], NULL, 10);
        shape.chunk = strtoul(argv[3], NULL, 10);
        shape.slots = strtoul(argv[4], NULL, 10);
    }
    if (!pocl_gpu_begin("pthread", child ? driver_moves_change : NULL))
        return 0;
    if (!child)
        return test_main_bare(argc, argv, tests, COUNT(tests));
    return strcmp(argv[1], "--auto") == 0 ? test_main(1, argv, chosen, COUNT(chosen))
                                          : test_main(1, argv, staged, COUNT(staged));
}
