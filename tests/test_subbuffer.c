/* SPDX-License-Identifier: MIT */
#include "native.h"

#include <sys/mman.h>

enum { PARTS = 4 };

static cl_program program;
static cl_kernel add, set;
static cl_mem parent;
static size_t part_size, part_count;
static cl_int *values;

static size_t alignment(void) {
    return get_info(cl_uint, clGetDeviceInfo, device, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
}

static void begin(void) {
    program = make_program(common_source);
    add = make_kernel(program, "add");
    set = make_kernel(program, "set");
    part_size = alignment() < 1024 ? 1024 : alignment();
    part_count = part_size / sizeof(cl_int);
    values = calloc(PARTS, part_size);
    for (size_t i = 0; i < PARTS * part_count; i++)
        values[i] = (cl_int)i;
    parent = make_buffer(CL_MEM_COPY_HOST_PTR, PARTS * part_size, values);
}

static void end(void) {
    ck_ok(clFinish(queue));
    ck_ok(clReleaseMemObject(parent));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseKernel(set));
    ck_ok(clReleaseProgram(program));
    free(values);
}

static cl_mem part(cl_mem of, size_t first, size_t count) {
    cl_buffer_region region = {first * part_size, count * part_size};

    return ck_made(clCreateSubBuffer(of, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error));
}

static void add_to(cl_command_queue on, cl_mem buffer, size_t count, cl_int value) {
    ck_ok(clSetKernelArg(add, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(add, 1, sizeof(value), &value));
    ck_ok(clEnqueueNDRangeKernel(on, add, 1, NULL, &count, NULL, 0, NULL, NULL));
}

static void check_parts(const cl_int added[PARTS]) {
    read_ints(parent, values, PARTS * part_count);
    for (size_t i = 0; i < PARTS * part_count; i++)
        ck_assert_msg(values[i] == (cl_int)i + added[i / part_count],
                      "element %zu of part %zu is %d, expected %d", i % part_count, i / part_count,
                      values[i], (cl_int)i + added[i / part_count]);
}

START_TEST(info) {
    cl_mem child;

    begin();
    child = part(parent, 1, 2);
    ck_assert(get_info(size_t, clGetMemObjectInfo, child, CL_MEM_SIZE) == 2 * part_size);
    ck_assert(get_info(size_t, clGetMemObjectInfo, child, CL_MEM_OFFSET) == part_size);
    ck_assert(get_info(cl_mem, clGetMemObjectInfo, child, CL_MEM_ASSOCIATED_MEMOBJECT) == parent);
    ck_assert(get_info(cl_mem_object_type, clGetMemObjectInfo, child, CL_MEM_TYPE) ==
              CL_MEM_OBJECT_BUFFER);
    ck_assert(get_info(cl_context, clGetMemObjectInfo, child, CL_MEM_CONTEXT) == context);
    ck_assert(get_info(cl_uint, clGetMemObjectInfo, child, CL_MEM_REFERENCE_COUNT) == 1);
    ck_ok(clReleaseMemObject(child));
    end();
}
END_TEST

START_TEST(flags_are_inherited) {
    cl_buffer_region region = {0, 64};
    cl_mem read_only = make_buffer(CL_MEM_READ_ONLY | CL_MEM_HOST_WRITE_ONLY, 4096, NULL), child;
    cl_mem write_only = make_buffer(CL_MEM_WRITE_ONLY | CL_MEM_HOST_READ_ONLY, 4096, NULL);

    child = ck_made(clCreateSubBuffer(read_only, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error));
    ck_assert(get_info(cl_mem_flags, clGetMemObjectInfo, child, CL_MEM_FLAGS) ==
              (CL_MEM_READ_ONLY | CL_MEM_HOST_WRITE_ONLY));
    ck_ok(clReleaseMemObject(child));
    child = ck_made(clCreateSubBuffer(write_only, CL_MEM_HOST_NO_ACCESS,
                                      CL_BUFFER_CREATE_TYPE_REGION, &region, &error));
    ck_assert(get_info(cl_mem_flags, clGetMemObjectInfo, child, CL_MEM_FLAGS) &
              CL_MEM_HOST_NO_ACCESS);
    ck_ok(clReleaseMemObject(child));
    ck_ok(clReleaseMemObject(read_only));
    ck_ok(clReleaseMemObject(write_only));
}
END_TEST

START_TEST(wrong) {
    cl_mem child, read_only = make_buffer(CL_MEM_READ_ONLY | CL_MEM_HOST_READ_ONLY, 4096, NULL);
    cl_buffer_region good = {0, 64}, none = {0, 0}, whole, beyond, outside, wrap = {0, SIZE_MAX};

    begin();
    whole = (cl_buffer_region){0, PARTS * part_size};
    beyond = (cl_buffer_region){part_size, PARTS * part_size};
    outside = (cl_buffer_region){PARTS * part_size, 4};
#define REFUSED(code, buffer_, flags, type, region)                                                \
    ck_refused(clCreateSubBuffer(buffer_, flags, type, region, &error), code)
    REFUSED(CL_INVALID_MEM_OBJECT, NULL, 0, CL_BUFFER_CREATE_TYPE_REGION, &good);
    REFUSED(CL_INVALID_VALUE, parent, 0, 0x7777, &good);
    REFUSED(CL_INVALID_VALUE, parent, 0, CL_BUFFER_CREATE_TYPE_REGION, NULL);
    REFUSED(CL_INVALID_BUFFER_SIZE, parent, 0, CL_BUFFER_CREATE_TYPE_REGION, &none);
    REFUSED(CL_INVALID_VALUE, parent, 0, CL_BUFFER_CREATE_TYPE_REGION, &beyond);
    REFUSED(CL_INVALID_VALUE, parent, 0, CL_BUFFER_CREATE_TYPE_REGION, &outside);
    REFUSED(CL_INVALID_VALUE, parent, 0, CL_BUFFER_CREATE_TYPE_REGION, &wrap);
    if (!excused(POCL, "PoCL 3.1 takes sub-buffer flags that exclude each other")) {
        REFUSED(CL_INVALID_VALUE, parent, CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY,
                CL_BUFFER_CREATE_TYPE_REGION, &good);
    }
    REFUSED(CL_INVALID_VALUE, parent, CL_MEM_ALLOC_HOST_PTR, CL_BUFFER_CREATE_TYPE_REGION, &good);
    REFUSED(CL_INVALID_VALUE, parent, CL_MEM_COPY_HOST_PTR, CL_BUFFER_CREATE_TYPE_REGION, &good);
    REFUSED(CL_INVALID_VALUE, read_only, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &good);
    REFUSED(CL_INVALID_VALUE, read_only, CL_MEM_WRITE_ONLY, CL_BUFFER_CREATE_TYPE_REGION, &good);
    REFUSED(CL_INVALID_VALUE, read_only, CL_MEM_HOST_WRITE_ONLY, CL_BUFFER_CREATE_TYPE_REGION,
            &good);
    child = ck_made(clCreateSubBuffer(parent, 0, CL_BUFFER_CREATE_TYPE_REGION, &whole, &error));
    /* A sub-buffer has no sub-buffers. */
    REFUSED(CL_INVALID_MEM_OBJECT, child, 0, CL_BUFFER_CREATE_TYPE_REGION, &good);
#undef REFUSED
    ck_ok(clReleaseMemObject(child));
    ck_ok(clReleaseMemObject(read_only));
    end();
}
END_TEST

START_TEST(misaligned) {
    cl_buffer_region region;

    begin();
    region = (cl_buffer_region){alignment() / 2, 64};
    skip_if(region.origin == 0, "any origin is aligned here");
    ck_refused(clCreateSubBuffer(parent, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error),
               CL_MISALIGNED_SUB_BUFFER_OFFSET);
    region = (cl_buffer_region){1, 64};
    ck_refused(clCreateSubBuffer(parent, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error),
               CL_MISALIGNED_SUB_BUFFER_OFFSET);
    end();
}
END_TEST

START_TEST(disjoint_parts_on_several_queues) {
    cl_command_queue queues[PARTS];
    cl_mem parts[PARTS];
    const cl_int added[PARTS] = {10, 20, 30, 40};

    begin();
    for (int i = 0; i < PARTS; i++) {
        queues[i] = make_queue(0);
        parts[i] = part(parent, i, 1);
    }
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < PARTS; i++)
            add_to(queues[i], parts[i], part_count, i + 1);
    }
    for (int i = 0; i < PARTS; i++)
        ck_ok(clFinish(queues[i]));
    check_parts(added);
    for (int i = 0; i < PARTS; i++) {
        ck_ok(clReleaseMemObject(parts[i]));
        ck_ok(clReleaseCommandQueue(queues[i]));
    }
    end();
}
END_TEST

START_TEST(parent_and_child_see_each_other) {
    const cl_int added[PARTS] = {111, 111 + 3330, 111 + 3330, 111};
    cl_mem child;
    cl_int seen;

    begin();
    child = part(parent, 1, 2);
    for (cl_int i = 0; i < 111; i++) {
        add_to(queue, parent, PARTS * part_count, 1);
        add_to(queue, child, 2 * part_count, 30);
        read_ints(child, &seen, 1);
        ck_assert_int_eq(seen, (cl_int)part_count + 31 * (i + 1));
    }
    check_parts(added);
    ck_ok(clReleaseMemObject(child));
    end();
}
END_TEST

START_TEST(overlapping_children) {
    const cl_int added[PARTS] = {50, 50 + 500, 50 + 500 + 5000, 500 + 5000};
    cl_mem low, middle, high;

    begin();
    low = part(parent, 0, 3);
    middle = part(parent, 1, 3);
    high = part(parent, 2, 2);
    for (int i = 0; i < 50; i++) {
        add_to(queue, low, 3 * part_count, 1);
        add_to(queue, middle, 3 * part_count, 10);
        add_to(queue, high, 2 * part_count, 100);
    }
    check_parts(added);
    ck_ok(clReleaseMemObject(low));
    ck_ok(clReleaseMemObject(middle));
    ck_ok(clReleaseMemObject(high));
    end();
}
END_TEST

START_TEST(order_of_overlapping_writes) {
    cl_mem low, high;
    cl_int seen[2];

    begin();
    low = part(parent, 0, 2);
    high = part(parent, 1, 2);
    for (cl_int i = 0; i < 50; i++) {
        cl_int one = 2 * i, two = 2 * i + 1;
        const size_t count = 2 * part_count;

        ck_ok(clSetKernelArg(set, 0, sizeof(low), &low));
        ck_ok(clSetKernelArg(set, 1, sizeof(one), &one));
        launch(set, count);
        ck_ok(clSetKernelArg(set, 0, sizeof(high), &high));
        ck_ok(clSetKernelArg(set, 1, sizeof(two), &two));
        launch(set, count);
        read_ints(low, &seen[0], 1);
        ck_ok(clEnqueueReadBuffer(queue, low, CL_TRUE, part_size, 4, &seen[1], 0, NULL, NULL));
        ck_assert_int_eq(seen[0], one);
        ck_assert_int_eq(seen[1], two);
    }
    ck_ok(clReleaseMemObject(low));
    ck_ok(clReleaseMemObject(high));
    end();
}
END_TEST

START_TEST(transfers_of_a_child) {
    const cl_int added[PARTS] = {0, 0, 5, 0};
    cl_int *host, pattern = -1;
    cl_mem child;

    begin();
    child = part(parent, 2, 1);
    host = calloc(part_count, sizeof(cl_int));
    read_ints(child, host, part_count);
    for (size_t i = 0; i < part_count; i++) {
        ck_assert_int_eq(host[i], (cl_int)(2 * part_count + i));
        host[i] += 5;
    }
    ck_ok(clEnqueueFillBuffer(queue, child, &pattern, 4, 0, part_size, 0, NULL, NULL));
    write_ints(child, host, part_count);
    check_parts(added);
    ck_assert_cl(clEnqueueReadBuffer(queue, child, CL_TRUE, 4, part_size, host, 0, NULL, NULL),
                 CL_INVALID_VALUE);
    ck_assert_cl(clEnqueueFillBuffer(queue, child, &pattern, 4, 0, part_size + 4, 0, NULL, NULL),
                 CL_INVALID_VALUE);
    free(host);
    ck_ok(clReleaseMemObject(child));
    end();
}
END_TEST

START_TEST(map_of_a_child) {
    const cl_int added[PARTS] = {0, 7, 0, 0};
    cl_int *mapped;
    cl_mem child;

    begin();
    child = part(parent, 1, 1);
    mapped = ck_made(clEnqueueMapBuffer(queue, child, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                        part_size, 0, NULL, NULL, &error));
    for (size_t i = 0; i < part_count; i++) {
        ck_assert_int_eq(mapped[i], (cl_int)(part_count + i));
        mapped[i] += 7;
    }
    ck_ok(clEnqueueUnmapMemObject(queue, child, mapped, 0, NULL, NULL));
    check_parts(added);
    ck_ok(clReleaseMemObject(child));
    end();
}
END_TEST

START_TEST(child_of_user_memory) {
    cl_int *memory = aligned_alloc(4096, 16384), *mapped;
    cl_buffer_region region = {8192, 4096};
    cl_mem whole, child;

    for (int i = 0; i < 4096; i++)
        memory[i] = i;
    begin();
    skip_if(alignment() > 4096, "sub-buffers need a larger alignment here");
    whole = make_buffer(CL_MEM_USE_HOST_PTR, 16384, memory);
    child = ck_made(clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error));
    ck_assert(get_info(void *, clGetMemObjectInfo, child, CL_MEM_HOST_PTR) ==
              (char *)memory + 8192);
    add_to(queue, child, 1024, 5);
    mapped = ck_made(
        clEnqueueMapBuffer(queue, child, CL_TRUE, CL_MAP_READ, 0, 4096, 0, NULL, NULL, &error));
    ck_assert_ptr_eq(mapped, memory + 2048);
    for (int i = 0; i < 1024; i++)
        ck_assert_int_eq(mapped[i], 2048 + i + 5);
    ck_ok(clEnqueueUnmapMemObject(queue, child, mapped, 0, NULL, NULL));
    ck_ok(clFinish(queue));
    ck_ok(clReleaseMemObject(child));
    ck_ok(clReleaseMemObject(whole));
    end();
    free(memory);
}
END_TEST

START_TEST(two_children_in_one_kernel) {
    cl_kernel copy;
    cl_mem from, to;

    begin();
    copy = make_kernel(program, "copy");
    from = part(parent, 0, 1);
    to = part(parent, 3, 1);
    ck_ok(clSetKernelArg(copy, 0, sizeof(from), &from));
    ck_ok(clSetKernelArg(copy, 1, sizeof(to), &to));
    launch(copy, part_count);
    read_ints(parent, values, PARTS * part_count);
    for (size_t i = 0; i < PARTS * part_count; i++)
        ck_assert_int_eq(values[i], (cl_int)(i / part_count == 3 ? i % part_count : i));
    ck_ok(clReleaseMemObject(from));
    ck_ok(clReleaseMemObject(to));
    ck_ok(clReleaseKernel(copy));
    end();
}
END_TEST

START_TEST(a_child_keeps_its_parent) {
    cl_mem child;
    cl_int seen;

    begin();
    child = part(parent, 2, 1);
    ck_ok(clRetainMemObject(parent));
    ck_ok(clReleaseMemObject(parent));
    ck_ok(clReleaseMemObject(parent));
    read_ints(child, &seen, 1);
    ck_assert_int_eq(seen, (cl_int)(2 * part_count));
    add_to(queue, child, part_count, 1);
    read_ints(child, &seen, 1);
    ck_assert_int_eq(seen, (cl_int)(2 * part_count + 1));
    parent = child;
    end();
}
END_TEST

START_TEST(released_before_its_content_is_used) {
    cl_event gate = make_user_event(), written;
    cl_int zero = 0, seven = 7, seen = 0;
    cl_mem other = make_buffer(0, sizeof(cl_int), NULL), child;
    size_t at = 2 * part_count * sizeof(cl_int);

    begin();
    child = part(parent, 2, 1);
    write_ints(child, &zero, 1);
    /* What the child gets must still reach the parent that is copied, both released by then. */
    ck_ok(
        clEnqueueWriteBuffer(queue, child, CL_FALSE, 0, sizeof(seven), &seven, 1, &gate, &written));
    ck_ok(clEnqueueCopyBuffer(queue, parent, other, at, 0, sizeof(seven), 1, &written, NULL));
    ck_ok(clReleaseMemObject(child));
    ck_ok(clRetainMemObject(other));
    ck_ok(clReleaseMemObject(parent));
    parent = other;
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    read_ints(other, &seen, 1);
    ck_assert_int_eq(seen, seven);
    ck_ok(clReleaseMemObject(other));
    ck_ok(clReleaseEvent(written));
    ck_ok(clReleaseEvent(gate));
    end();
}
END_TEST

/* What a released part leaves to its buffer must not reach what another part has mapped there. */
START_TEST(a_part_released_while_another_is_mapped) {
    enum { SIZE = 4096, FROM = 100, COUNT_MAPPED = 50 };
    static cl_int memory[SIZE / 4] __attribute__((aligned(4096)));
    cl_program made = make_program(common_source);
    cl_kernel fill = make_kernel(made, "set");
    cl_buffer_region all = {0, SIZE};
    cl_int seen[SIZE / 4], seven = 7;

    for (int users = 0; users < 2; users++) {
        cl_mem whole = make_buffer(users ? CL_MEM_USE_HOST_PTR : 0, SIZE, users ? memory : NULL);
        cl_mem written =
            ck_made(clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &all, &error));
        cl_mem mapped =
            ck_made(clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &all, &error));

        ck_ok(clSetKernelArg(fill, 0, sizeof(written), &written));
        ck_ok(clSetKernelArg(fill, 1, sizeof(seven), &seven));
        launch(fill, SIZE / 4);
        cl_int *map = ck_made(clEnqueueMapBuffer(queue, mapped, CL_TRUE, CL_MAP_WRITE, FROM * 4,
                                                 COUNT_MAPPED * 4, 0, NULL, NULL, &error));
        for (int i = 0; i < COUNT_MAPPED; i++)
            map[i] = 1000 + i;
        ck_ok(clReleaseMemObject(written));
        ck_ok(clFinish(queue));
        usleep(20000);
        for (int i = 0; i < COUNT_MAPPED; i++)
            ck_assert_int_eq(map[i], 1000 + i);
        ck_ok(clEnqueueUnmapMemObject(queue, mapped, map, 0, NULL, NULL));
        read_ints(whole, seen, SIZE / 4);
        for (int i = 0; i < SIZE / 4; i++)
            ck_assert_int_eq(seen[i], i >= FROM && i < FROM + COUNT_MAPPED ? 1000 + i - FROM : 7);
        ck_ok(clReleaseMemObject(mapped));
        ck_ok(clReleaseMemObject(whole));
    }
    ck_ok(clReleaseKernel(fill));
    ck_ok(clReleaseProgram(made));
}
END_TEST

/*
 * A native kernel has the buffer, and the part's last command ends in the thread that lets the
 * native kernel end only afterwards.
 */
START_TEST(released_while_the_buffer_is_busy) {
    for (int round = 0; round < 20; round++) {
        cl_event gate = make_user_event();

        begin();
        cl_mem child = part(parent, 2, 1);
        occupy(parent);
        write_ints(child, values + part_count, part_count);
        ck_ok(clEnqueueReadBuffer(queue, child, CL_FALSE, 0, part_size, values, 1, &gate, NULL));
        ck_ok(clReleaseMemObject(child));
        ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
        ck_ok(clFinish(queue));
        vacate();
        ck_assert_mem_eq(values, values + part_count, part_size);
        ck_ok(clReleaseEvent(gate));
        end();
    }
}
END_TEST

/* Whatever is left to do for a part, memory of the program is its own after the last release. */
START_TEST(memory_of_the_program_goes_after_the_last_release) {
    enum { ROUNDS = 300 };

    begin();
    for (int round = 0; round < ROUNDS; round++) {
        char *memory = mmap(NULL, PARTS * part_size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ck_assert(memory != MAP_FAILED);
        cl_mem whole = make_buffer(CL_MEM_USE_HOST_PTR, PARTS * part_size, memory);
        cl_mem child = part(whole, 1, 2);

        if (round % 2)
            add_to(queue, whole, PARTS * part_count, 1);
        add_to(queue, child, 2 * part_count, 1);
        ck_ok(clReleaseMemObject(child));
        ck_ok(clFinish(queue));
        ck_ok(clReleaseMemObject(whole));
        ck_assert_int_eq(munmap(memory, PARTS * part_size), 0);
    }
    end();
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        info,
        flags_are_inherited,
        wrong,
        misaligned,
        disjoint_parts_on_several_queues,
        parent_and_child_see_each_other,
        overlapping_children,
        order_of_overlapping_writes,
        transfers_of_a_child,
        map_of_a_child,
        child_of_user_memory,
        two_children_in_one_kernel,
        a_child_keeps_its_parent,
        released_before_its_content_is_used,
        a_part_released_while_another_is_mapped,
        released_while_the_buffer_is_busy,
        memory_of_the_program_goes_after_the_last_release,
    };

    return test_main(argc, argv, tests, COUNT(tests));
}
