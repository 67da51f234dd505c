/* SPDX-License-Identifier: MIT */
#include "support.h"

#include <sys/mman.h>

#define SIZE 4096

static unsigned char in[SIZE], out[SIZE], expected[SIZE];

static cl_mem numbered_buffer(void) {
    for (int i = 0; i < SIZE; i++)
        in[i] = (unsigned char)(i * 7 + i / 251);
    memset(out, 0, SIZE);
    memcpy(expected, in, SIZE);
    return make_buffer(CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, SIZE, in);
}

static void compare(cl_mem buffer) {
    ck_ok(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, SIZE, out, 0, NULL, NULL));
    for (int i = 0; i < SIZE; i++)
        ck_assert_msg(out[i] == expected[i], "byte %d is %d, expected %d", i, out[i], expected[i]);
}

START_TEST(parts) {
    cl_mem buffer = numbered_buffer();
    unsigned char some[100];

    ck_ok(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 1001, 100, some, 0, NULL, NULL));
    ck_assert_mem_eq(some, in + 1001, 100);
    memset(some, 0xEE, sizeof(some));
    ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 3, 97, some, 0, NULL, NULL));
    memset(expected + 3, 0xEE, 97);
    compare(buffer);
    ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, SIZE - 1, 1, some, 0, NULL, NULL));
    expected[SIZE - 1] = 0xEE;
    compare(buffer);
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(non_blocking) {
    cl_mem buffer = numbered_buffer();
    cl_event written, read;

    memset(expected, 0x33, SIZE);
    ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, SIZE, expected, 0, NULL, &written));
    ck_ok(clEnqueueReadBuffer(queue, buffer, CL_FALSE, 0, SIZE, out, 0, NULL, &read));
    ck_ok(clWaitForEvents(1, &read));
    ck_assert_int_eq(event_status(written), CL_COMPLETE);
    ck_assert_mem_eq(out, expected, SIZE);
    ck_ok(clReleaseEvent(written));
    ck_ok(clReleaseEvent(read));
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(read_write_wrong) {
    cl_mem buffer = numbered_buffer();
    cl_mem foreign = ck_made(clCreateBuffer(other_context(), 0, SIZE, NULL, &error));
    cl_event foreign_event = ck_made(clCreateUserEvent(other_context(), &error)), none = NULL;

#define BOTH(expected_code, queue_, buffer_, offset, size, pointer, count, list)                   \
    do {                                                                                           \
        ck_assert_cl(clEnqueueReadBuffer(queue_, buffer_, CL_TRUE, offset, size, pointer, count,   \
                                         list, NULL),                                              \
                     expected_code);                                                               \
        ck_assert_cl(clEnqueueWriteBuffer(queue_, buffer_, CL_TRUE, offset, size, pointer, count,  \
                                          list, NULL),                                             \
                     expected_code);                                                               \
    } while (0)
    BOTH(CL_INVALID_COMMAND_QUEUE, NULL, buffer, 0, 4, out, 0, NULL);
    BOTH(CL_INVALID_MEM_OBJECT, queue, NULL, 0, 4, out, 0, NULL);
    BOTH(CL_INVALID_CONTEXT, queue, foreign, 0, 4, out, 0, NULL);
    BOTH(CL_INVALID_CONTEXT, queue, buffer, 0, 4, out, 1, &foreign_event);
    BOTH(CL_INVALID_VALUE, queue, buffer, 0, SIZE + 1, out, 0, NULL);
    BOTH(CL_INVALID_VALUE, queue, buffer, SIZE, 1, out, 0, NULL);
    BOTH(CL_INVALID_VALUE, queue, buffer, 1, SIZE, out, 0, NULL);
    BOTH(CL_INVALID_VALUE, queue, buffer, SIZE_MAX - 1, 4, out, 0, NULL);
    BOTH(CL_INVALID_VALUE, queue, buffer, 2, SIZE_MAX, out, 0, NULL);
    BOTH(CL_INVALID_VALUE, queue, buffer, 0, 4, NULL, 0, NULL);
    BOTH(CL_INVALID_EVENT_WAIT_LIST, queue, buffer, 0, 4, out, 1, NULL);
    BOTH(CL_INVALID_EVENT_WAIT_LIST, queue, buffer, 0, 4, out, 0, &foreign_event);
    BOTH(CL_INVALID_EVENT_WAIT_LIST, queue, buffer, 0, 4, out, 1, &none);
#undef BOTH
    /* None of them did anything. */
    compare(buffer);
    ck_ok(clReleaseEvent(foreign_event));
    ck_ok(clReleaseMemObject(foreign));
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

/*
 * OpenCL 1.2 refuses to move 0 bytes, but for a fill. Since 2.1 such a command does nothing, in its
 * place among the others.
 */
START_TEST(size_of_zero) {
    static const cl_command_type types[] = {CL_COMMAND_READ_BUFFER, CL_COMMAND_WRITE_BUFFER,
                                            CL_COMMAND_COPY_BUFFER, CL_COMMAND_FILL_BUFFER};
    cl_mem buffer = numbered_buffer();
    cl_int codes[COUNT(types)], pattern = 7;
    cl_event events[COUNT(types)], gate = clCreateUserEvent(context, &error);

    ck_ok(error);
    bool copies = !excused(POCL, "PoCL 3.1 refuses to copy 0 bytes");
    cl_int expected_code = test_device_version() < 210 ? CL_INVALID_VALUE : CL_SUCCESS;
    codes[0] = clEnqueueReadBuffer(queue, buffer, CL_FALSE, 8, 0, out, 1, &gate, &events[0]);
    codes[1] = clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, 0, expected, 1, &gate, &events[1]);
    codes[2] = clEnqueueCopyBuffer(queue, buffer, buffer, 64, 64, 0, 1, &gate, &events[2]);
    codes[3] = clEnqueueFillBuffer(queue, buffer, &pattern, 4, 16, 0, 1, &gate, &events[3]);
    for (size_t i = 0; i < COUNT(codes); i++) {
        ck_assert_msg(codes[i] == (i == 3 ? CL_SUCCESS : expected_code) || (i == 2 && !copies),
                      "call %zu gave %s", i, cl_error_name(codes[i]));
        if (codes[i] != CL_SUCCESS)
            continue;
        ck_assert_int_gt(event_status(events[i]), CL_COMPLETE);
        ck_assert_uint_eq(
            get_info(cl_command_type, clGetEventInfo, events[i], CL_EVENT_COMMAND_TYPE), types[i]);
    }
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    for (size_t i = 0; i < COUNT(codes); i++)
        if (codes[i] == CL_SUCCESS) {
            ck_ok(clWaitForEvents(1, &events[i]));
            ck_ok(clReleaseEvent(events[i]));
        }
    ck_ok(clReleaseEvent(gate));
    ck_assert_cl(clEnqueueReadBuffer(queue, buffer, CL_TRUE, SIZE + 1, 0, out, 0, NULL, NULL),
                 CL_INVALID_VALUE);
    compare(buffer);
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(copy) {
    cl_mem from = numbered_buffer(), to = numbered_buffer();

    ck_ok(clEnqueueCopyBuffer(queue, from, to, 17, 1000, 333, 0, NULL, NULL));
    memcpy(expected + 1000, in + 17, 333);
    compare(to);
    /* Inside one buffer, touching but not overlapping. */
    ck_ok(clEnqueueCopyBuffer(queue, to, to, 0, 100, 100, 0, NULL, NULL));
    memcpy(expected + 100, expected, 100);
    compare(to);
    ck_ok(clEnqueueCopyBuffer(queue, from, to, 0, 0, SIZE, 0, NULL, NULL));
    memcpy(expected, in, SIZE);
    compare(to);
    ck_ok(clReleaseMemObject(from));
    ck_ok(clReleaseMemObject(to));
}
END_TEST

START_TEST(copy_wrong) {
    cl_mem from = numbered_buffer(), to = make_buffer(0, SIZE / 2, NULL);
    cl_mem foreign = ck_made(clCreateBuffer(other_context(), 0, SIZE, NULL, &error));

    ck_assert_cl(clEnqueueCopyBuffer(NULL, from, to, 0, 0, 4, 0, NULL, NULL),
                 CL_INVALID_COMMAND_QUEUE);
    ck_assert_cl(clEnqueueCopyBuffer(queue, NULL, to, 0, 0, 4, 0, NULL, NULL),
                 CL_INVALID_MEM_OBJECT);
    ck_assert_cl(clEnqueueCopyBuffer(queue, from, NULL, 0, 0, 4, 0, NULL, NULL),
                 CL_INVALID_MEM_OBJECT);
    ck_assert_cl(clEnqueueCopyBuffer(queue, foreign, to, 0, 0, 4, 0, NULL, NULL),
                 CL_INVALID_CONTEXT);
    ck_assert_cl(clEnqueueCopyBuffer(queue, from, foreign, 0, 0, 4, 0, NULL, NULL),
                 CL_INVALID_CONTEXT);
    ck_assert_cl(clEnqueueCopyBuffer(queue, from, to, 0, 0, SIZE, 0, NULL, NULL), CL_INVALID_VALUE);
    ck_assert_cl(clEnqueueCopyBuffer(queue, from, to, SIZE - 3, 0, 4, 0, NULL, NULL),
                 CL_INVALID_VALUE);
    ck_assert_cl(clEnqueueCopyBuffer(queue, from, to, 0, SIZE / 2 - 3, 4, 0, NULL, NULL),
                 CL_INVALID_VALUE);
    ck_assert_cl(clEnqueueCopyBuffer(queue, from, to, SIZE_MAX - 1, 0, 4, 0, NULL, NULL),
                 CL_INVALID_VALUE);
    ck_assert_cl(clEnqueueCopyBuffer(queue, from, to, 0, 0, 4, 1, NULL, NULL),
                 CL_INVALID_EVENT_WAIT_LIST);
    ck_assert_cl(clEnqueueCopyBuffer(queue, from, from, 0, 0, 4, 0, NULL, NULL),
                 CL_MEM_COPY_OVERLAP);
    ck_assert_cl(clEnqueueCopyBuffer(queue, from, from, 0, 50, 100, 0, NULL, NULL),
                 CL_MEM_COPY_OVERLAP);
    ck_assert_cl(clEnqueueCopyBuffer(queue, from, from, 50, 0, 100, 0, NULL, NULL),
                 CL_MEM_COPY_OVERLAP);
    compare(from);
    ck_ok(clReleaseMemObject(foreign));
    ck_ok(clReleaseMemObject(from));
    ck_ok(clReleaseMemObject(to));
}
END_TEST

START_TEST(copy_between_overlapping_sub_buffers) {
    cl_mem parent = numbered_buffer(), first, second;
    cl_buffer_region low = {0, 2048}, high = {1024, 2048};

    skip_if(get_info(cl_uint, clGetDeviceInfo, device, CL_DEVICE_MEM_BASE_ADDR_ALIGN) > 8 * 1024,
            "sub-buffers need a larger alignment here");
    first = ck_made(clCreateSubBuffer(parent, 0, CL_BUFFER_CREATE_TYPE_REGION, &low, &error));
    second = ck_made(clCreateSubBuffer(parent, 0, CL_BUFFER_CREATE_TYPE_REGION, &high, &error));
    ck_assert_cl(clEnqueueCopyBuffer(queue, first, second, 1024, 0, 512, 0, NULL, NULL),
                 CL_MEM_COPY_OVERLAP);
    ck_assert_cl(clEnqueueCopyBuffer(queue, first, second, 1024, 511, 512, 0, NULL, NULL),
                 CL_MEM_COPY_OVERLAP);
    ck_ok(clEnqueueCopyBuffer(queue, first, second, 1024, 512, 512, 0, NULL, NULL));
    memcpy(expected + 1536, in + 1024, 512);
    compare(parent);
    ck_ok(clReleaseMemObject(first));
    ck_ok(clReleaseMemObject(second));
    ck_ok(clReleaseMemObject(parent));
}
END_TEST

START_TEST(fill) {
    static const unsigned char pattern[128] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,
                                               13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
                                               25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36};
    cl_mem buffer = numbered_buffer();

    for (size_t size = 1; size <= 128; size *= 2) {
        ck_ok(clEnqueueFillBuffer(queue, buffer, pattern, size, 3 * size, 5 * size, 0, NULL, NULL));
        for (size_t i = 0; i < 5 * size; i++)
            expected[3 * size + i] = pattern[i % size];
        compare(buffer);
    }
    ck_ok(clEnqueueFillBuffer(queue, buffer, pattern, 1, 0, SIZE, 0, NULL, NULL));
    memset(expected, 1, SIZE);
    compare(buffer);
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(fill_keeps_its_own_pattern) {
    cl_mem buffer = numbered_buffer();
    cl_event gate = make_user_event();
    cl_int value = 0x01010101;

    /* The pattern may be reused as soon as the call returns. */
    ck_ok(clEnqueueFillBuffer(queue, buffer, &value, sizeof(value), 0, SIZE, 1, &gate, NULL));
    value = 0;
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    memset(expected, 1, SIZE);
    compare(buffer);
    ck_ok(clReleaseEvent(gate));
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(fill_wrong) {
    cl_mem buffer = numbered_buffer();
    cl_mem foreign = ck_made(clCreateBuffer(other_context(), 0, SIZE, NULL, &error));
    char pattern[256] = {0};
    const size_t bad_sizes[] = {0, 3, 5, 12, 100, 256};

    for (size_t i = 0; i < COUNT(bad_sizes); i++)
        ck_assert_cl(clEnqueueFillBuffer(queue, buffer, pattern, bad_sizes[i], 0,
                                         bad_sizes[i] ? bad_sizes[i] : 4, 0, NULL, NULL),
                     CL_INVALID_VALUE);
    ck_assert_cl(clEnqueueFillBuffer(NULL, buffer, pattern, 4, 0, 64, 0, NULL, NULL),
                 CL_INVALID_COMMAND_QUEUE);
    ck_assert_cl(clEnqueueFillBuffer(queue, NULL, pattern, 4, 0, 64, 0, NULL, NULL),
                 CL_INVALID_MEM_OBJECT);
    ck_assert_cl(clEnqueueFillBuffer(queue, foreign, pattern, 4, 0, 64, 0, NULL, NULL),
                 CL_INVALID_CONTEXT);
    ck_assert_cl(clEnqueueFillBuffer(queue, buffer, NULL, 4, 0, 64, 0, NULL, NULL),
                 CL_INVALID_VALUE);
    ck_assert_cl(clEnqueueFillBuffer(queue, buffer, pattern, 4, 2, 64, 0, NULL, NULL),
                 CL_INVALID_VALUE);
    ck_assert_cl(clEnqueueFillBuffer(queue, buffer, pattern, 4, 0, 63, 0, NULL, NULL),
                 CL_INVALID_VALUE);
    ck_assert_cl(clEnqueueFillBuffer(queue, buffer, pattern, 4, 4, SIZE, 0, NULL, NULL),
                 CL_INVALID_VALUE);
    ck_assert_cl(clEnqueueFillBuffer(queue, buffer, pattern, 4, SIZE_MAX - 3, 8, 0, NULL, NULL),
                 CL_INVALID_VALUE);
    ck_assert_cl(clEnqueueFillBuffer(queue, buffer, pattern, 4, 0, 64, 1, NULL, NULL),
                 CL_INVALID_EVENT_WAIT_LIST);
    compare(buffer);
    ck_ok(clReleaseMemObject(foreign));
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

struct box {
    size_t origin[3], row, slice;
};

static size_t place(const struct box *box, const size_t region[3], size_t y, size_t z) {
    size_t row = box->row ? box->row : region[0];
    size_t slice = box->slice ? box->slice : region[1] * row;

    return (box->origin[2] + z) * slice + (box->origin[1] + y) * row + box->origin[0];
}

static void copy_box(unsigned char *to, const struct box *to_box, const unsigned char *from,
                     const struct box *from_box, const size_t region[3]) {
    for (size_t z = 0; z < region[2]; z++) {
        for (size_t y = 0; y < region[1]; y++)
            memcpy(to + place(to_box, region, y, z), from + place(from_box, region, y, z),
                   region[0]);
    }
}

static const struct {
    struct box buffer, host;
    size_t region[3];
} boxes[] = {
    {{{0, 0, 0}, 0, 0}, {{0, 0, 0}, 0, 0}, {64, 1, 1}},
    {{{0, 0, 0}, 0, 0}, {{0, 0, 0}, 0, 0}, {16, 8, 4}},
    {{{3, 2, 0}, 32, 0}, {{1, 1, 0}, 24, 0}, {7, 5, 1}},
    {{{3, 2, 1}, 32, 512}, {{0, 0, 0}, 0, 0}, {7, 5, 3}},
    {{{0, 0, 0}, 0, 0}, {{5, 3, 2}, 20, 240}, {7, 5, 3}},
    {{{1, 1, 1}, 17, 17 * 13}, {{2, 0, 1}, 19, 19 * 11}, {11, 6, 4}},
    {{{0, 0, 3}, 16, 256}, {{0, 0, 0}, 16, 256}, {16, 16, 2}},
};

START_TEST(write_rect) {
    cl_mem buffer = numbered_buffer();
    static unsigned char host[SIZE];

    for (int i = 0; i < SIZE; i++)
        host[i] = (unsigned char)(200 - i);
    for (size_t i = 0; i < COUNT(boxes); i++) {
        ck_ok(clEnqueueWriteBufferRect(
            queue, buffer, i % 2 ? CL_TRUE : CL_FALSE, boxes[i].buffer.origin, boxes[i].host.origin,
            boxes[i].region, boxes[i].buffer.row, boxes[i].buffer.slice, boxes[i].host.row,
            boxes[i].host.slice, host, 0, NULL, NULL));
        copy_box(expected, &boxes[i].buffer, host, &boxes[i].host, boxes[i].region);
        compare(buffer);
    }
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(read_rect) {
    cl_mem buffer = numbered_buffer();
    static unsigned char host[SIZE], wanted[SIZE];

    for (size_t i = 0; i < COUNT(boxes); i++) {
        memset(host, 0x5A, SIZE);
        memset(wanted, 0x5A, SIZE);
        ck_ok(clEnqueueReadBufferRect(queue, buffer, CL_TRUE, boxes[i].buffer.origin,
                                      boxes[i].host.origin, boxes[i].region, boxes[i].buffer.row,
                                      boxes[i].buffer.slice, boxes[i].host.row, boxes[i].host.slice,
                                      host, 0, NULL, NULL));
        copy_box(wanted, &boxes[i].host, in, &boxes[i].buffer, boxes[i].region);
        /* Bytes between the rows belong to the program and stay. */
        ck_assert_mem_eq(host, wanted, SIZE);
    }
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(copy_rect) {
    cl_mem from = numbered_buffer(), to = numbered_buffer();

    for (size_t i = 0; i < COUNT(boxes); i++) {
        ck_ok(clEnqueueCopyBufferRect(queue, from, to, boxes[i].buffer.origin, boxes[i].host.origin,
                                      boxes[i].region, boxes[i].buffer.row, boxes[i].buffer.slice,
                                      boxes[i].host.row, boxes[i].host.slice, 0, NULL, NULL));
        copy_box(expected, &boxes[i].host, in, &boxes[i].buffer, boxes[i].region);
        compare(to);
    }
    ck_ok(clReleaseMemObject(from));
    ck_ok(clReleaseMemObject(to));
}
END_TEST

/* The last slice ends with its last row, and the buffer there: no whole pitch, nor row, follows. */
START_TEST(rect_to_the_last_byte) {
    enum { ROW = 8, SLICE = 32, BYTES = SLICE + ROW + 7 };
    unsigned char bytes[BYTES], back[BYTES] = {0};
    const struct {
        size_t slice, slices, bytes;
    } cases[] = {{1, 1, BYTES}, {0, 2, BYTES}, {0, 1, ROW + 7}};

    skip_on(POCL, "refuses a slice pitch that reaches past the end");
    for (int i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)(i + 1);
    for (size_t c = 0; c < COUNT(cases); c++) {
        int size = (int)cases[c].bytes;
        cl_mem buffer = make_buffer(0, cases[c].bytes, NULL);
        cl_mem other = make_buffer(0, cases[c].bytes, NULL);
        const size_t region[3] = {7, 2, cases[c].slices}, from[3] = {0, 0, cases[c].slice};

        memset(back, 0, sizeof(back));
        ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, cases[c].bytes, back, 0, NULL, NULL));
        ck_ok(clEnqueueWriteBufferRect(queue, buffer, CL_TRUE, from, from, region, ROW, SLICE, ROW,
                                       SLICE, bytes, 0, NULL, NULL));
        ck_ok(clEnqueueCopyBufferRect(queue, buffer, other, from, from, region, ROW, SLICE, ROW,
                                      SLICE, 0, NULL, NULL));
        ck_ok(clEnqueueReadBufferRect(queue, other, CL_TRUE, from, from, region, ROW, SLICE, ROW,
                                      SLICE, back, 0, NULL, NULL));
        for (int i = 0; i < size; i++) {
            bool inside = i % ROW < 7 && i % SLICE < 2 * ROW && (cases[c].slice == 0 || i >= SLICE);
            ck_assert_uint_eq(back[i], inside ? i + 1 : 0);
        }
        ck_ok(clReleaseMemObject(buffer));
        ck_ok(clReleaseMemObject(other));
    }
}
END_TEST

START_TEST(copy_rect_inside_one_buffer) {
    cl_mem buffer = numbered_buffer();
    const size_t left[3] = {0, 0, 0}, right[3] = {16, 0, 0}, region[3] = {16, 8, 1};
    const struct box from = {{0, 0, 0}, 32, 0}, to = {{16, 0, 0}, 32, 0};

    /* The two rectangles interleave in memory and yet share no byte. */
    ck_ok(clEnqueueCopyBufferRect(queue, buffer, buffer, left, right, region, 32, 0, 32, 0, 0, NULL,
                                  NULL));
    copy_box(expected, &to, in, &from, region);
    compare(buffer);
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(copy_rect_overlap) {
    cl_mem buffer = numbered_buffer();
    const size_t region[3] = {16, 8, 2}, zero[3] = {0, 0, 0};
    const size_t targets[][3] = {{0, 0, 0}, {15, 0, 0}, {0, 7, 0}, {0, 0, 1}, {15, 7, 1}};

    for (size_t i = 0; i < COUNT(targets); i++) {
        ck_assert_cl(clEnqueueCopyBufferRect(queue, buffer, buffer, zero, targets[i], region, 32,
                                             32 * 16, 32, 32 * 16, 0, NULL, NULL),
                     CL_MEM_COPY_OVERLAP);
        ck_assert_cl(clEnqueueCopyBufferRect(queue, buffer, buffer, targets[i], zero, region, 32,
                                             32 * 16, 32, 32 * 16, 0, NULL, NULL),
                     CL_MEM_COPY_OVERLAP);
    }
    compare(buffer);
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(copy_rect_pitches_differ_in_one_buffer) {
    cl_mem buffer = numbered_buffer();
    const size_t zero[3] = {0, 0, 0}, far_away[3] = {0, 32, 0}, region[3] = {8, 4, 1};

    /* "src_buffer and dst_buffer are the same and the pitches differ" */
    ck_assert_cl(clEnqueueCopyBufferRect(queue, buffer, buffer, zero, far_away, region, 16, 0, 32,
                                         0, 0, NULL, NULL),
                 CL_INVALID_VALUE);
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(rect_wrong) {
    cl_mem buffer = numbered_buffer(), other = numbered_buffer();
    cl_mem foreign = ck_made(clCreateBuffer(other_context(), 0, SIZE, NULL, &error));
    const size_t zero[3] = {0, 0, 0}, good[3] = {8, 8, 2};

#define ALL(code, queue_, buffer_, origin, region, row, slice, pointer, count, list)               \
    do {                                                                                           \
        ck_assert_cl(clEnqueueReadBufferRect(queue_, buffer_, CL_TRUE, origin, zero, region, row,  \
                                             slice, 0, 0, pointer, count, list, NULL),             \
                     code);                                                                        \
        ck_assert_cl(clEnqueueWriteBufferRect(queue_, buffer_, CL_TRUE, origin, zero, region, row, \
                                              slice, 0, 0, pointer, count, list, NULL),            \
                     code);                                                                        \
        if ((pointer) != NULL)                                                                     \
            ck_assert_cl(clEnqueueCopyBufferRect(queue_, buffer_, other, origin, zero, region,     \
                                                 row, slice, 0, 0, count, list, NULL),             \
                         code);                                                                    \
    } while (0)
    const size_t no_width[3] = {0, 8, 2}, no_height[3] = {8, 0, 2}, no_depth[3] = {8, 8, 0};
    const size_t outside_x[3] = {SIZE - 7, 0, 0}, outside_z[3] = {0, 0, SIZE / 64 - 1};
    const size_t huge[3] = {SIZE_MAX / 2, 4, 4};

    ALL(CL_INVALID_COMMAND_QUEUE, NULL, buffer, zero, good, 0, 0, out, 0, NULL);
    if (!excused(POCL, "PoCL 3.1 crashes on a rectangle copied from a NULL buffer"))
        ALL(CL_INVALID_MEM_OBJECT, queue, NULL, zero, good, 0, 0, out, 0, NULL);
    ALL(CL_INVALID_CONTEXT, queue, foreign, zero, good, 0, 0, out, 0, NULL);
    ALL(CL_INVALID_VALUE, queue, buffer, zero, no_width, 0, 0, out, 0, NULL);
    ALL(CL_INVALID_VALUE, queue, buffer, zero, no_height, 0, 0, out, 0, NULL);
    ALL(CL_INVALID_VALUE, queue, buffer, zero, no_depth, 0, 0, out, 0, NULL);
    ALL(CL_INVALID_VALUE, queue, buffer, outside_x, good, 0, 0, out, 0, NULL);
    ALL(CL_INVALID_VALUE, queue, buffer, outside_z, good, 0, 0, out, 0, NULL);
    ALL(CL_INVALID_VALUE, queue, buffer, zero, good, 7, 0, out, 0, NULL);
    ALL(CL_INVALID_VALUE, queue, buffer, zero, good, 8, 63, out, 0, NULL);
    ALL(CL_INVALID_VALUE, queue, buffer, zero, good, 8, 68, out, 0, NULL);
    ALL(CL_INVALID_VALUE, queue, buffer, zero, good, 8, SIZE, out, 0, NULL);
    ALL(CL_INVALID_VALUE, queue, buffer, zero, good, 0, 0, NULL, 0, NULL);
    ALL(CL_INVALID_EVENT_WAIT_LIST, queue, buffer, zero, good, 0, 0, out, 1, NULL);
    if (!excused(POCL, "PoCL 3.1 lets the arithmetic of a huge region wrap around"))
        ALL(CL_INVALID_VALUE, queue, buffer, zero, huge, 0, 0, out, 0, NULL);
#undef ALL
    ck_assert_cl(clEnqueueReadBufferRect(queue, buffer, CL_TRUE, zero, zero, good, 0, 0, 7, 0, out,
                                         0, NULL, NULL),
                 CL_INVALID_VALUE);
    ck_assert_cl(clEnqueueWriteBufferRect(queue, buffer, CL_TRUE, zero, zero, good, 0, 0, 8, 63,
                                          out, 0, NULL, NULL),
                 CL_INVALID_VALUE);
    compare(buffer);
    ck_ok(clReleaseMemObject(foreign));
    ck_ok(clReleaseMemObject(other));
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(events_of_the_right_kind) {
    cl_mem buffer = numbered_buffer(), other = numbered_buffer();
    const size_t zero[3] = {0, 0, 0}, region[3] = {8, 8, 2};
    cl_event events[7];
    const cl_command_type types[] = {CL_COMMAND_READ_BUFFER,      CL_COMMAND_WRITE_BUFFER,
                                     CL_COMMAND_COPY_BUFFER,      CL_COMMAND_FILL_BUFFER,
                                     CL_COMMAND_READ_BUFFER_RECT, CL_COMMAND_WRITE_BUFFER_RECT,
                                     CL_COMMAND_COPY_BUFFER_RECT};

    ck_ok(clEnqueueReadBuffer(queue, buffer, CL_FALSE, 0, SIZE, out, 0, NULL, &events[0]));
    ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, SIZE, in, 0, NULL, &events[1]));
    ck_ok(clEnqueueCopyBuffer(queue, buffer, other, 0, 0, SIZE, 0, NULL, &events[2]));
    ck_ok(clEnqueueFillBuffer(queue, buffer, in, 4, 0, 64, 0, NULL, &events[3]));
    ck_ok(clEnqueueReadBufferRect(queue, buffer, CL_FALSE, zero, zero, region, 0, 0, 0, 0, out, 0,
                                  NULL, &events[4]));
    ck_ok(clEnqueueWriteBufferRect(queue, buffer, CL_FALSE, zero, zero, region, 0, 0, 0, 0, in, 0,
                                   NULL, &events[5]));
    ck_ok(clEnqueueCopyBufferRect(queue, buffer, other, zero, zero, region, 0, 0, 0, 0, 0, NULL,
                                  &events[6]));
    ck_ok(clFinish(queue));
    for (size_t i = 0; i < COUNT(events); i++) {
        ck_assert(get_info(cl_command_type, clGetEventInfo, events[i], CL_EVENT_COMMAND_TYPE) ==
                  types[i]);
        ck_assert_int_eq(event_status(events[i]), CL_COMPLETE);
        ck_ok(clReleaseEvent(events[i]));
    }
    ck_ok(clReleaseMemObject(other));
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(blocking_write_may_reuse_host_memory) {
    cl_mem buffer = make_buffer(0, 1 << 20, NULL);
    cl_int *host = malloc(1 << 20);
    size_t count = (1 << 20) / sizeof(cl_int);

    for (cl_int round = 0; round < 20; round++) {
        for (size_t i = 0; i < count; i++)
            host[i] = round;
        ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, 1 << 20, host, 0, NULL, NULL));
        memset(host, 0xFF, 1 << 20);
        read_ints(buffer, host, count);
        size_t right = 0;
        while (right < count && host[right] == round)
            right++;
        ck_assert_uint_eq(right, count); /* one assertion: each costs a system call */
    }
    free(host);
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

/* Other pages at that address, or none; nobody else gets it meanwhile. */
static unsigned char *pages_at(void *place, size_t size, int protection) {
    return mmap(place, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | (place ? MAP_FIXED : 0), -1,
                0);
}

/* Memory is unmapped right after a call, and other memory is then at its address. */
START_TEST(addresses_come_again) {
    static const size_t sizes[] = {4096, 128 << 10, (4 << 20) + 4096};
    size_t most = sizes[COUNT(sizes) - 1];
    unsigned char *place = pages_at(NULL, most, PROT_NONE);

    ck_assert_ptr_ne(place, MAP_FAILED);
    for (size_t s = 0; s < COUNT(sizes); s++) {
        size_t size = sizes[s];
        cl_mem buffer = make_buffer(0, size, NULL), own;
        for (int round = 1; round <= 8; round++) {
            unsigned char *pages = pages_at(place, size, PROT_READ | PROT_WRITE);
            ck_assert_ptr_eq(pages, place);
            memset(pages, round, size);
            ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, size, pages, 0, NULL, NULL));
            ck_assert_ptr_eq(pages_at(place, size, PROT_READ | PROT_WRITE), place);
            ck_ok(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, size, pages, 0, NULL, NULL));
            ck_assert(pages[0] == round && memcmp(pages, pages + 1, size - 1) == 0);
            /* Memory of a buffer's own is the program's again after the release. */
            own = make_buffer(CL_MEM_USE_HOST_PTR, size, pages);
            ck_ok(clEnqueueCopyBuffer(queue, own, buffer, 0, 0, size, 0, NULL, NULL));
            ck_ok(clEnqueueCopyBuffer(queue, buffer, own, 0, 0, size, 0, NULL, NULL));
            ck_ok(clFinish(queue));
            ck_ok(clReleaseMemObject(own));
            ck_assert_ptr_eq(pages_at(place, size, PROT_NONE), place);
        }
        ck_ok(clReleaseMemObject(buffer));
    }
    ck_assert_int_eq(munmap(place, most), 0);
}
END_TEST

/* More than any driver, or Tutti, moves at once; odd sizes and places. */
START_TEST(many_mebibytes) {
    enum { MANY = (9 << 20) + 13, FIRST = 4099, PART = (5 << 20) + 7 };
    enum { PITCH = 8191, ROW = 5003, ROWS = 1000 };
    cl_mem buffer = make_buffer(0, MANY, NULL);
    unsigned char *host = malloc(MANY), *back = malloc(MANY);
    size_t origin[3] = {17, 2, 0}, zero[3] = {0, 0, 0}, region[3] = {ROW, ROWS, 1};
    size_t wrong = 0;

    for (size_t i = 0; i < MANY; i++)
        host[i] = (unsigned char)(i * 7 + i / 4096);
    ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, MANY, host, 0, NULL, NULL));
    memset(back, 0, MANY);
    ck_ok(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, MANY, back, 0, NULL, NULL));
    ck_assert_int_eq(memcmp(host, back, MANY), 0);
    memset(host + FIRST, 0x5A, PART);
    ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, FIRST, PART, host + FIRST, 0, NULL, NULL));
    ck_ok(clEnqueueReadBufferRect(queue, buffer, CL_TRUE, origin, zero, region, PITCH, 0, ROW, 0,
                                  back, 0, NULL, NULL));
    for (size_t y = 0; y < ROWS; y++)
        wrong += memcmp(back + y * ROW, host + (y + 2) * PITCH + 17, ROW) != 0;
    ck_assert_uint_eq(wrong, 0);
    memset(back, 0xC3, ROW * ROWS);
    ck_ok(clEnqueueWriteBufferRect(queue, buffer, CL_TRUE, origin, zero, region, PITCH, 0, ROW, 0,
                                   back, 0, NULL, NULL));
    for (size_t y = 0; y < ROWS; y++)
        memset(host + (y + 2) * PITCH + 17, 0xC3, ROW);
    ck_ok(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 1, MANY - 1, back, 0, NULL, NULL));
    ck_assert_int_eq(memcmp(host + 1, back, MANY - 1), 0);
    free(host);
    free(back);
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        parts,
        non_blocking,
        read_write_wrong,
        size_of_zero,
        copy,
        copy_wrong,
        copy_between_overlapping_sub_buffers,
        fill,
        fill_keeps_its_own_pattern,
        fill_wrong,
        write_rect,
        read_rect,
        copy_rect,
        rect_to_the_last_byte,
        copy_rect_inside_one_buffer,
        copy_rect_overlap,
        copy_rect_pitches_differ_in_one_buffer,
        rect_wrong,
        events_of_the_right_kind,
        blocking_write_may_reuse_host_memory,
        addresses_come_again,
        many_mebibytes,
    };

    return test_main(argc, argv, tests, COUNT(tests));
}
