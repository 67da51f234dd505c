/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: what never gets other storage as it is overwritten, for it is a part of something or
 * the program knows its place. A copy that waits for its target, which a native kernel keeps busy,
 * is a user that still reads it, and proves it without clocks.
 */
#include "native.h"

enum { WIDTH = 32, N = WIDTH * WIDTH, BYTES = N * sizeof(cl_int), OLD = 3, NEW = 5, WAITING = 30 };
enum kind { PLAIN, PART, LAST_PART, PROGRAMS, MAPPED, IMAGE };
enum way { WRITE, FILL, COPY, MAP, WAYS };

static const char *const way_name[] = {"write", "fill", "copy", "map"};
static const size_t origin[3], region[3] = {WIDTH, WIDTH, 1};
static cl_int from[N], target_memory[N]; /* what is written; where the reader copies to */
static cl_command_queue side;            /* the reader's */
static cl_mem target, source;

/* What is overwritten, and what belongs to it. */
static struct {
    cl_mem mem, whole, other; /* the buffer it is a part of, and its other part */
    cl_int *memory;           /* the program's, for it; NULL: none */
    cl_int *map;              /* of all of it, for reading; NULL: none */
    bool image;
} object;

static void begin(void) {
    for (int i = 0; i < N; i++)
        from[i] = NEW;
    side = make_queue(0);
    source = make_buffer(CL_MEM_COPY_HOST_PTR, BYTES, from);
    target = make_buffer(CL_MEM_USE_HOST_PTR, BYTES, target_memory);
}

static void end(void) {
    ck_ok(clReleaseMemObject(source));
    ck_ok(clReleaseMemObject(target));
    ck_ok(clReleaseCommandQueue(side));
}

static cl_mem make_part(size_t at) {
    cl_buffer_region half = {at, BYTES};

    return ck_made(clCreateSubBuffer(object.whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &half, &error));
}

static cl_mem make_image(void) {
    cl_image_format format = {CL_R, CL_SIGNED_INT32};
    cl_image_desc desc = {
        .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = WIDTH, .image_height = WIDTH};

    return ck_made(clCreateImage(context, 0, &format, &desc, NULL, &error));
}

static void read_all(cl_int *to) {
    if (object.image)
        ck_ok(clEnqueueReadImage(queue, object.mem, CL_FALSE, origin, region, 0, 0, to, 0, NULL,
                                 NULL));
    else
        ck_ok(clEnqueueReadBuffer(queue, object.mem, CL_FALSE, 0, BYTES, to, 0, NULL, NULL));
}

static void write_all(const cl_int *bytes) {
    if (object.image)
        ck_ok(clEnqueueWriteImage(queue, object.mem, CL_FALSE, origin, region, 0, 0, bytes, 0, NULL,
                                  NULL));
    else
        ck_ok(clEnqueueWriteBuffer(queue, object.mem, CL_FALSE, 0, BYTES, bytes, 0, NULL, NULL));
}

static void *map_all(cl_bool blocking, cl_map_flags flags, cl_event *event) {
    size_t pitch;

    if (object.image)
        return ck_made(clEnqueueMapImage(queue, object.mem, blocking, flags, origin, region, &pitch,
                                         NULL, 0, NULL, event, &error));
    return ck_made(
        clEnqueueMapBuffer(queue, object.mem, blocking, flags, 0, BYTES, 0, NULL, event, &error));
}

/* All its elements are OLD. */
static void make_object(enum kind kind) {
    cl_int old[N];

    for (int i = 0; i < N; i++)
        old[i] = OLD;
    memset(&object, 0, sizeof(object));
    object.image = kind == IMAGE;
    if (kind == PART || kind == LAST_PART) {
        object.whole = make_buffer(0, 2 * BYTES, NULL);
        /* Whether another one was made after it makes a difference to the list of them. */
        object.other = kind == LAST_PART ? make_part(BYTES) : NULL;
        object.mem = make_part(0);
        object.other = kind == LAST_PART ? object.other : make_part(BYTES);
    } else if (kind == IMAGE) {
        object.mem = make_image();
    } else {
        object.memory = kind == PROGRAMS ? aligned_alloc(4096, BYTES) : NULL;
        object.mem = make_buffer(kind == PROGRAMS ? CL_MEM_USE_HOST_PTR : 0, BYTES, object.memory);
    }
    write_all(old);
    if (kind == MAPPED)
        object.map = map_all(CL_TRUE, CL_MAP_READ, NULL);
    ck_ok(clFinish(queue));
}

static void release_object(void) {
    if (object.map)
        ck_ok(clEnqueueUnmapMemObject(queue, object.mem, object.map, 0, NULL, NULL));
    ck_ok(clFinish(queue));
    if (object.whole) {
        ck_ok(clReleaseMemObject(object.other));
        ck_ok(clReleaseMemObject(object.whole));
    }
    ck_ok(clReleaseMemObject(object.mem));
    free(object.memory);
}

/* It waits for its target, and so reads the object when the native kernel is over. */
static cl_event read_late(void) {
    cl_event event;

    if (object.image)
        ck_ok(clEnqueueCopyImageToBuffer(side, object.mem, target, origin, region, 0, 0, NULL,
                                         &event));
    else
        ck_ok(clEnqueueCopyBuffer(side, object.mem, target, 0, 0, BYTES, 0, NULL, &event));
    ck_ok(clFlush(side));
    return event;
}

/* Not a map. */
static void overwrite(enum way way) {
    const cl_int color[4] = {NEW};

    if (way == WRITE)
        write_all(from);
    else if (way == FILL && object.image)
        ck_ok(clEnqueueFillImage(queue, object.mem, color, origin, region, 0, NULL, NULL));
    else if (way == FILL)
        ck_ok(
            clEnqueueFillBuffer(queue, object.mem, color, sizeof(cl_int), 0, BYTES, 0, NULL, NULL));
    else if (object.image)
        ck_ok(clEnqueueCopyBufferToImage(queue, source, object.mem, 0, origin, region, 0, NULL,
                                         NULL));
    else
        ck_ok(clEnqueueCopyBuffer(queue, source, object.mem, 0, 0, BYTES, 0, NULL, NULL));
}

static bool ends(cl_event event, int rounds) {
    for (int i = 0; i < rounds && event_status(event) > CL_COMPLETE; i++)
        usleep(1000);
    return event_status(event) == CL_COMPLETE;
}

static void all_equal(const cl_int *seen, cl_int wanted, const char *what, enum way way) {
    for (int i = 0; i < N; i++)
        ck_assert_msg(seen[i] == wanted, "%s, a %s: [%d] is %d, expected %d", what, way_name[way],
                      i, seen[i], wanted);
}

/* Overwrites it as it is read; did that pass the reader within so many ms? */
static bool passes(enum way way, int rounds) {
    static cl_int back[N];
    cl_event mapped = NULL, read;
    cl_int *pointer = NULL;
    bool passed;

    memset(back, 0, sizeof(back));
    occupy(target);
    read = read_late();
    if (way == MAP) {
        pointer = map_all(CL_FALSE, CL_MAP_WRITE_INVALIDATE_REGION, &mapped);
    } else {
        overwrite(way);
        read_all(back);
    }
    ck_ok(clFlush(queue));
    passed = way == MAP ? ends(mapped, rounds) : becomes(&back[N - 1], NEW, rounds);
    vacate();
    ck_ok(clWaitForEvents(1, &read));
    if (way == MAP) {
        ck_ok(clWaitForEvents(1, &mapped));
        memcpy(pointer, from, BYTES);
        ck_ok(clEnqueueUnmapMemObject(queue, object.mem, pointer, 0, NULL, NULL));
        read_all(back);
        ck_ok(clReleaseEvent(mapped));
    }
    ck_ok(clFinish(queue));
    all_equal(back, NEW, "what is read afterwards", way);
    ck_ok(clEnqueueReadBuffer(side, target, CL_TRUE, 0, BYTES, back, 0, NULL, NULL));
    all_equal(back, OLD, "what the earlier command read", way);
    ck_ok(clReleaseEvent(read));
    return passed;
}

/* Where the program looks for its content, it is. */
static void check_places(enum way way) {
    cl_int *map, seen[N];

    if (object.whole) {
        size_t at = get_info(size_t, clGetMemObjectInfo, object.mem, CL_MEM_OFFSET);
        ck_ok(clEnqueueReadBuffer(queue, object.whole, CL_TRUE, at, BYTES, seen, 0, NULL, NULL));
        all_equal(seen, NEW, "what the buffer has", way);
    }
    map = map_all(CL_TRUE, CL_MAP_READ, NULL);
    if (object.memory)
        ck_assert_ptr_eq(map, object.memory);
    if (object.map)
        ck_assert_ptr_eq(map, object.map);
    all_equal(map, NEW, "what is mapped", way);
    ck_ok(clEnqueueUnmapMemObject(queue, object.mem, map, 0, NULL, NULL));
}

static void check_kind(enum kind kind) {
    begin();
    for (enum way way = 0; way < (kind == MAPPED ? MAP : WAYS); way++) {
        make_object(kind);
        ck_assert_msg(!passes(way, WAITING), "a %s passed the reader", way_name[way]);
        check_places(way);
        release_object();
    }
    end();
}

/* So that those that wait wait for this reason. */
START_TEST(others_do_not_wait) {
    begin();
    for (enum way way = 0; way < WAYS; way++) {
        make_object(PLAIN);
        ck_assert_msg(passes(way, 10000), "a %s waited", way_name[way]);
        check_places(way);
        release_object();
    }
    end();
}
END_TEST

START_TEST(a_part_waits) { check_kind(PART); }
END_TEST

START_TEST(the_last_part_waits) { check_kind(LAST_PART); }
END_TEST

START_TEST(the_memory_of_the_program_waits) { check_kind(PROGRAMS); }
END_TEST

/* By a map that was granted before, and is not given back yet. */
START_TEST(a_mapped_buffer_waits) { check_kind(MAPPED); }
END_TEST

START_TEST(an_image_waits) {
    skip_if(!get_info(cl_bool, clGetDeviceInfo, device, CL_DEVICE_IMAGE_SUPPORT), "no images");
    check_kind(IMAGE);
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        others_do_not_wait,    a_part_waits,   the_last_part_waits, the_memory_of_the_program_waits,
        a_mapped_buffer_waits, an_image_waits,
    };

    test_prefer_pocl();
    return test_main(argc, argv, tests, COUNT(tests));
}
