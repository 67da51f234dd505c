/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: rows that go to a GPU, from it or within it are one command of its driver, whatever
 * the pitches. PoCL stands in for the GPU.
 */
#include "driver_moves.h"

enum { BYTES = 1 << 20 };

/* In bytes: where the rows lie in the buffer and in the other memory, of which both are as large.
 */
struct box {
    size_t there[3], here[3], region[3];
    size_t row, slice, other_row, other_slice;
};

static const struct box boxes[] = {
    {{100, 3, 0}, {0, 0, 0}, {4096, 100, 1}, 8192, 0, 4096, 0},
    {{0, 0, 0}, {8, 1, 0}, {4096, 100, 1}, 5000, 0, 8192, 0},
    {{1, 1, 1}, {3, 2, 1}, {509, 20, 9}, 1000, 100000, 512, 20480},
    {{0, 0, 0}, {0, 0, 0}, {7, 1000, 1}, 11, 0, 7, 0},
    {{16, 0, 2}, {0, 0, 0}, {64, 3, 5}, 128, 4096, 64, 192},
};

static cl_program program;
static cl_mem buffer, other;
static unsigned char *expected, *others, *memory;

static size_t place(const size_t *origin, const size_t *at, size_t row, size_t slice) {
    return (origin[2] + at[2]) * slice + (origin[1] + at[1]) * row + origin[0] + at[0];
}

static size_t slice_of(size_t slice, size_t row, const struct box *box) {
    return slice ? slice : row * box->region[1];
}

/* By the host: what the driver is to do. */
static void copy_box(const struct box *box, unsigned char *there, unsigned char *here, bool back) {
    size_t slice = slice_of(box->slice, box->row, box);
    size_t other_slice = slice_of(box->other_slice, box->other_row, box), at[3];
    for (at[2] = 0; at[2] < box->region[2]; at[2]++)
        for (at[1] = 0; at[1] < box->region[1]; at[1]++)
            for (at[0] = 0; at[0] < box->region[0]; at[0]++) {
                unsigned char *t = there + place(box->there, at, box->row, slice);
                unsigned char *h = here + place(box->here, at, box->other_row, other_slice);
                *(back ? h : t) = *(back ? t : h);
            }
}

/* The GPU has what the host knows. */
static void bring(cl_mem mem) {
    cl_kernel add = make_kernel(program, "add");
    cl_int none = 0;
    ck_ok(clSetKernelArg(add, 0, sizeof(mem), &mem));
    ck_ok(clSetKernelArg(add, 1, sizeof(none), &none));
    launch(add, BYTES / sizeof(cl_int));
    ck_ok(clFinish(queue));
    ck_ok(clReleaseKernel(add));
    driver_forget_moves();
}

static void begin(void) {
    program = make_program(common_source);
    expected = malloc(BYTES);
    others = malloc(BYTES);
    memory = malloc(BYTES);
    for (int i = 0; i < BYTES; i++) {
        expected[i] = (unsigned char)(i * 3 + i / 509);
        others[i] = (unsigned char)(i * 5 + i / 127);
    }
    buffer = make_buffer(CL_MEM_COPY_HOST_PTR, BYTES, expected);
    other = make_buffer(CL_MEM_COPY_HOST_PTR, BYTES, others);
    bring(buffer);
    bring(other);
}

static void ck_content(cl_mem mem, const unsigned char *content) {
    ck_ok(clEnqueueReadBuffer(queue, mem, CL_TRUE, 0, BYTES, memory, 0, NULL, NULL));
    ck_assert_int_eq(memcmp(memory, content, BYTES), 0);
    driver_forget_moves();
}

static void end(void) {
    ck_content(buffer, expected);
    ck_content(other, others);
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseMemObject(other));
    ck_ok(clReleaseProgram(program));
    free(memory);
    free(others);
    free(expected);
}

static void ck_one(enum driver_way way, const struct box *box) {
    ck_assert_uint_eq(driver_count_all(), 1);
    ck_assert_int_eq(driver_moves.move[0].way, way);
    ck_assert_uint_eq(driver_moves.move[0].bytes, driver_box(box->region));
    driver_forget_moves();
}

START_TEST(written) {
    begin();
    for (size_t b = 0; b < 2 * COUNT(boxes); b++) {
        const struct box *box = &boxes[b / 2];
        for (int i = 0; i < BYTES; i++)
            memory[i] = (unsigned char)(i * 7 + (int)b);
        copy_box(box, expected, memory, false);
        ck_ok(clEnqueueWriteBufferRect(queue, buffer, b % 2, box->there, box->here, box->region,
                                       box->row, box->slice, box->other_row, box->other_slice,
                                       memory, 0, NULL, NULL));
        ck_ok(clFinish(queue));
        ck_one(WRITE_RECT, box);
        ck_content(buffer, expected);
    }
    end();
}
END_TEST

START_TEST(read_back) {
    begin();
    for (size_t b = 0; b < 2 * COUNT(boxes); b++) {
        const struct box *box = &boxes[b / 2];
        unsigned char *seen = calloc(1, BYTES);
        memset(memory, 0, BYTES);
        copy_box(box, expected, seen, true);
        ck_ok(clEnqueueReadBufferRect(queue, buffer, b % 2, box->there, box->here, box->region,
                                      box->row, box->slice, box->other_row, box->other_slice,
                                      memory, 0, NULL, NULL));
        ck_ok(clFinish(queue));
        ck_assert_int_eq(memcmp(memory, seen, BYTES), 0);
        free(seen);
        ck_one(READ_RECT, box);
    }
    end();
}
END_TEST

START_TEST(copied) {
    begin();
    for (size_t b = 0; b < COUNT(boxes); b++) {
        const struct box *box = &boxes[b];
        copy_box(box, expected, others, true);
        ck_ok(clEnqueueCopyBufferRect(queue, buffer, other, box->there, box->here, box->region,
                                      box->row, box->slice, box->other_row, box->other_slice, 0,
                                      NULL, NULL));
        ck_ok(clFinish(queue));
        ck_one(COPY_RECT, box);
        ck_content(other, others);
    }
    end();
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {written, read_back, copied};
    return test_main_gpu(argc, argv, tests, COUNT(tests), driver_moves_change);
}
