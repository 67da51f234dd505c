/* SPDX-License-Identifier: MIT */
#include "support.h"

#include "task_counts.h"

enum { N = 1024 };

static cl_int in[N], out[N];

static cl_mem numbered(cl_mem_flags flags) {
    for (int i = 0; i < N; i++)
        in[i] = i * 5 + 1;
    return make_buffer(flags | CL_MEM_COPY_HOST_PTR, sizeof(in), in);
}

static void *map(cl_mem buffer, cl_map_flags flags, size_t offset, size_t size) {
    return ck_made(
        clEnqueueMapBuffer(queue, buffer, CL_TRUE, flags, offset, size, 0, NULL, NULL, &error));
}

static void unmap(cl_mem buffer, void *pointer) {
    ck_ok(clEnqueueUnmapMemObject(queue, buffer, pointer, 0, NULL, NULL));
}

START_TEST(for_reading) {
    const cl_mem_flags kinds[] = {0, CL_MEM_ALLOC_HOST_PTR};

    for (size_t i = 0; i < COUNT(kinds); i++) {
        cl_mem buffer = numbered(kinds[i]);
        const cl_int *mapped = map(buffer, CL_MAP_READ, 0, sizeof(in));

        ck_assert_mem_eq(mapped, in, sizeof(in));
        ck_assert_uint_eq(map_count(buffer), 1);
        unmap(buffer, (void *)(uintptr_t)mapped);
        ck_ok(clFinish(queue));
        ck_no_maps(buffer);
        mapped = map(buffer, CL_MAP_READ, 100 * sizeof(cl_int), 50 * sizeof(cl_int));
        ck_assert_mem_eq(mapped, in + 100, 50 * sizeof(cl_int));
        unmap(buffer, (void *)(uintptr_t)mapped);
        ck_ok(clFinish(queue));
        ck_ok(clReleaseMemObject(buffer));
    }
}
END_TEST

START_TEST(for_writing) {
    const cl_map_flags kinds[] = {CL_MAP_WRITE, CL_MAP_READ | CL_MAP_WRITE};

    for (size_t i = 0; i < COUNT(kinds); i++) {
        cl_mem buffer = numbered(0);
        cl_int *mapped = map(buffer, kinds[i], 40, 400);

        /* What is not written keeps its value, inside the map too. */
        ck_assert_mem_eq(mapped, in + 10, 400);
        for (int j = 0; j < 50; j++)
            mapped[2 * j] = -j;
        unmap(buffer, mapped);
        read_ints(buffer, out, N);
        for (int j = 0; j < N; j++) {
            cl_int wanted = j >= 10 && j < 110 && j % 2 == 0 ? -(j - 10) / 2 : in[j];

            ck_assert_msg(out[j] == wanted, "element %d is %d, expected %d", j, out[j], wanted);
        }
        ck_ok(clReleaseMemObject(buffer));
    }
}
END_TEST

START_TEST(for_invalidating) {
    cl_mem buffer = numbered(0);
    cl_int *mapped = map(buffer, CL_MAP_WRITE_INVALIDATE_REGION, 400, 400);

    for (int i = 0; i < 100; i++)
        mapped[i] = 7 * i;
    unmap(buffer, mapped);
    read_ints(buffer, out, N);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(out[i], i >= 100 && i < 200 ? 7 * (i - 100) : in[i]);
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(writing_is_seen_by_kernels) {
    cl_program program = make_program(common_source);
    cl_kernel add = make_kernel(program, "add");
    cl_mem buffer = numbered(0);
    cl_int one = 1;

    ck_ok(clSetKernelArg(add, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(add, 1, sizeof(one), &one));
    for (cl_int round = 0; round < 10; round++) {
        cl_int *mapped;

        launch(add, N);
        mapped = map(buffer, CL_MAP_READ | CL_MAP_WRITE, 0, sizeof(in));
        for (int i = 0; i < N; i++) {
            ck_assert_int_eq(mapped[i], in[i] + 11 * round + 1);
            mapped[i] += 10;
        }
        unmap(buffer, mapped);
    }
    read_ints(buffer, out, N);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(out[i], in[i] + 110);
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(several_at_a_time) {
    cl_mem buffer = numbered(0);
    const cl_int *reads[4];
    cl_int *write;

    for (size_t i = 0; i < COUNT(reads); i++)
        reads[i] = map(buffer, CL_MAP_READ, i * 64, 1024);
    write = map(buffer, CL_MAP_WRITE, 2048, 2048);
    ck_assert_uint_eq(map_count(buffer), 5);
    for (size_t i = 0; i < COUNT(reads); i++)
        ck_assert_mem_eq(reads[i], in + i * 16, 1024);
    for (int i = 0; i < 512; i++)
        write[i] = i;
    unmap(buffer, (void *)(uintptr_t)reads[2]);
    unmap(buffer, write);
    ck_assert_mem_eq(reads[0], in, 1024);
    unmap(buffer, (void *)(uintptr_t)reads[0]);
    unmap(buffer, (void *)(uintptr_t)reads[3]);
    unmap(buffer, (void *)(uintptr_t)reads[1]);
    ck_ok(clFinish(queue));
    ck_no_maps(buffer);
    read_ints(buffer, out, N);
    ck_assert_mem_eq(out, in, 2048);
    for (int i = 0; i < 512; i++)
        ck_assert_int_eq(out[512 + i], i);
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(the_same_region_read_twice) {
    cl_mem buffer = numbered(0);
    const cl_int *first = map(buffer, CL_MAP_READ, 0, sizeof(in));
    const cl_int *second = map(buffer, CL_MAP_READ, 0, sizeof(in));

    ck_assert_uint_eq(map_count(buffer), 2);
    unmap(buffer, (void *)(uintptr_t)first);
    ck_assert_mem_eq(second, in, sizeof(in));
    unmap(buffer, (void *)(uintptr_t)second);
    ck_ok(clFinish(queue));
    ck_no_maps(buffer);
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(mapped_for_reading_and_read_by_a_kernel) {
    cl_program program = make_program(common_source);
    cl_kernel copy = make_kernel(program, "copy");
    cl_mem buffer = numbered(0), other = make_buffer(0, sizeof(in), NULL);
    const cl_int *mapped = map(buffer, CL_MAP_READ, 0, sizeof(in));

    ck_ok(clSetKernelArg(copy, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(copy, 1, sizeof(other), &other));
    launch(copy, N);
    read_ints(other, out, N);
    ck_assert_mem_eq(out, in, sizeof(in));
    ck_ok(clEnqueueCopyBuffer(queue, buffer, other, 0, 0, sizeof(in), 0, NULL, NULL));
    read_ints(buffer, out, N);
    ck_assert_mem_eq(out, mapped, sizeof(in));
    unmap(buffer, (void *)(uintptr_t)mapped);
    ck_ok(clFinish(queue));
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseMemObject(other));
    ck_ok(clReleaseKernel(copy));
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(other_buffers_go_on) {
    cl_mem buffer = numbered(0), other = numbered(0);
    cl_int *mapped = map(buffer, CL_MAP_READ | CL_MAP_WRITE, 0, sizeof(in));
    cl_int value = 3;

    ck_ok(clEnqueueFillBuffer(queue, other, &value, 4, 0, sizeof(in), 0, NULL, NULL));
    ck_ok(clFinish(queue));
    read_ints(other, out, N);
    ck_assert_int_eq(out[N - 1], 3);
    mapped[0] = 99;
    unmap(buffer, mapped);
    read_ints(buffer, out, N);
    ck_assert_int_eq(out[0], 99);
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseMemObject(other));
}
END_TEST

START_TEST(use_host_ptr_maps_to_itself) {
    static cl_int memory[N] __attribute__((aligned(4096)));
    cl_program program = make_program(common_source);
    cl_kernel add = make_kernel(program, "add");
    cl_int one = 1, *mapped;
    cl_mem buffer;

    memset(memory, 0, sizeof(memory));
    buffer = make_buffer(CL_MEM_USE_HOST_PTR, sizeof(memory), memory);
    ck_ok(clSetKernelArg(add, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(add, 1, sizeof(one), &one));
    launch(add, N);
    mapped = map(buffer, CL_MAP_READ | CL_MAP_WRITE, 0, sizeof(memory));
    ck_assert_ptr_eq(mapped, memory);
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(memory[i], 1);
        memory[i] = i;
    }
    unmap(buffer, mapped);
    launch(add, N);
    mapped = map(buffer, CL_MAP_READ, 256, 512);
    ck_assert_ptr_eq(mapped, memory + 64);
    for (int i = 0; i < 128; i++)
        ck_assert_int_eq(mapped[i], 64 + i + 1);
    unmap(buffer, mapped);
    ck_ok(clFinish(queue));
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(non_blocking) {
    cl_mem buffer = numbered(0);
    cl_event mapped_event, unmapped_event;
    cl_int *mapped = ck_made(clEnqueueMapBuffer(queue, buffer, CL_FALSE, CL_MAP_READ | CL_MAP_WRITE,
                                                0, sizeof(in), 0, NULL, &mapped_event, &error));

    ck_assert(get_info(cl_command_type, clGetEventInfo, mapped_event, CL_EVENT_COMMAND_TYPE) ==
              CL_COMMAND_MAP_BUFFER);
    ck_ok(clWaitForEvents(1, &mapped_event));
    ck_assert_mem_eq(mapped, in, sizeof(in));
    mapped[3] = 33;
    ck_ok(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, &unmapped_event));
    ck_assert(get_info(cl_command_type, clGetEventInfo, unmapped_event, CL_EVENT_COMMAND_TYPE) ==
              CL_COMMAND_UNMAP_MEM_OBJECT);
    ck_ok(clWaitForEvents(1, &unmapped_event));
    read_ints(buffer, out, N);
    ck_assert_int_eq(out[3], 33);
    ck_ok(clReleaseEvent(mapped_event));
    ck_ok(clReleaseEvent(unmapped_event));
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(alignment) {
    cl_mem buffer = make_buffer(CL_MEM_ALLOC_HOST_PTR, 4096, NULL);
    void *mapped = map(buffer, CL_MAP_WRITE, 0, 4096);

    /* "at least as aligned as the largest built-in type" */
    ck_assert_uint_eq((uintptr_t)mapped % 128, 0);
    unmap(buffer, mapped);
    ck_ok(clFinish(queue));
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

/*
 * Large buffers of one size in the host's memory: where all begin at the same place of a page, a
 * processor takes those that a kernel reads for those that it writes.
 */
START_TEST(neighbours) {
    enum { SOME = 8, PAGE = 4096, LARGE = 291 * PAGE }; /* no other test leaves any of that size */
    cl_device_type type = get_info(cl_device_type, clGetDeviceInfo, device, CL_DEVICE_TYPE);
    cl_mem buffer[SOME];
    uintptr_t place[SOME];
    skip_if(!test_platform_is("Tutti") || type & CL_DEVICE_TYPE_GPU || !all_are_pocl(),
            "Tutti's, on CPUs: other drivers may be asked for the memory");
    for (int i = 0; i < SOME; i++) {
        buffer[i] = make_buffer(0, LARGE, NULL);
        void *mapped = ck_made(clEnqueueMapBuffer(queue, buffer[i], CL_TRUE, CL_MAP_WRITE, 0, LARGE,
                                                  0, NULL, NULL, &error));
        place[i] = (uintptr_t)mapped % PAGE;
        ck_ok(clEnqueueUnmapMemObject(queue, buffer[i], mapped, 0, NULL, NULL));
        for (int j = 0; j < i; j++)
            ck_assert_msg(place[i] != place[j],
                          "buffers %d and %d both begin %d bytes after a page", i, j,
                          (int)place[i]);
    }
    for (int i = 0; i < SOME; i++)
        ck_ok(clReleaseMemObject(buffer[i]));
}
END_TEST

START_TEST(wrong) {
    cl_mem buffer = numbered(0);
    cl_mem foreign = ck_made(clCreateBuffer(other_context(), 0, 64, NULL, &error));
    cl_event foreign_event = ck_made(clCreateUserEvent(other_context(), &error));

#define REFUSED(code, queue_, buffer_, flags, offset, size, count, list)                           \
    ck_refused(clEnqueueMapBuffer(queue_, buffer_, CL_TRUE, flags, offset, size, count, list,      \
                                  NULL, &error),                                                   \
               code)
    REFUSED(CL_INVALID_COMMAND_QUEUE, NULL, buffer, CL_MAP_READ, 0, 4, 0, NULL);
    REFUSED(CL_INVALID_MEM_OBJECT, queue, NULL, CL_MAP_READ, 0, 4, 0, NULL);
    REFUSED(CL_INVALID_CONTEXT, queue, foreign, CL_MAP_READ, 0, 4, 0, NULL);
    REFUSED(CL_INVALID_CONTEXT, queue, buffer, CL_MAP_READ, 0, 4, 1, &foreign_event);
    REFUSED(CL_INVALID_VALUE, queue, buffer, CL_MAP_READ, 0, sizeof(in) + 1, 0, NULL);
    REFUSED(CL_INVALID_VALUE, queue, buffer, CL_MAP_READ, sizeof(in), 1, 0, NULL);
    REFUSED(CL_INVALID_VALUE, queue, buffer, CL_MAP_READ, SIZE_MAX, 2, 0, NULL);
    REFUSED(CL_INVALID_EVENT_WAIT_LIST, queue, buffer, CL_MAP_READ, 0, 4, 1, NULL);
    if (!excused(POCL, "PoCL 3.1 takes a size of 0, and any flags")) {
        REFUSED(CL_INVALID_VALUE, queue, buffer, 1 << 20, 0, 4, 0, NULL);
        REFUSED(CL_INVALID_VALUE, queue, buffer, CL_MAP_READ, 0, 0, 0, NULL);
        REFUSED(CL_INVALID_VALUE, queue, buffer, CL_MAP_READ | CL_MAP_WRITE_INVALIDATE_REGION, 0, 4,
                0, NULL);
        REFUSED(CL_INVALID_VALUE, queue, buffer, CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION, 0,
                4, 0, NULL);
    }
#undef REFUSED
    ck_no_maps(buffer);
    ck_ok(clReleaseEvent(foreign_event));
    ck_ok(clReleaseMemObject(foreign));
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(overlapping_writes_are_refused) {
    cl_mem buffer = numbered(0);
    void *mapped;

    skip_on(POCL, "PoCL 3.1 maps overlapping regions for writing");
    skip_on(OCLGRIND, "Oclgrind maps overlapping regions for writing");
    mapped = map(buffer, CL_MAP_WRITE, 0, 1024);
    ck_refused(
        clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_WRITE, 1020, 64, 0, NULL, NULL, &error),
        CL_INVALID_OPERATION);
    unmap(buffer, mapped);
    ck_ok(clFinish(queue));
    mapped = map(buffer, CL_MAP_WRITE, 1020, 64);
    unmap(buffer, mapped);
    ck_ok(clFinish(queue));
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(unmap_wrong) {
    cl_mem buffer = numbered(0), other = numbered(0);
    cl_event foreign_event = ck_made(clCreateUserEvent(other_context(), &error));
    cl_int *mapped = map(buffer, CL_MAP_READ, 0, sizeof(in));

    ck_assert_cl(clEnqueueUnmapMemObject(NULL, buffer, mapped, 0, NULL, NULL),
                 CL_INVALID_COMMAND_QUEUE);
    ck_assert_cl(clEnqueueUnmapMemObject(queue, NULL, mapped, 0, NULL, NULL),
                 CL_INVALID_MEM_OBJECT);
    ck_assert_cl(clEnqueueUnmapMemObject(other_queue(), buffer, mapped, 0, NULL, NULL),
                 CL_INVALID_CONTEXT);
    ck_assert_cl(clEnqueueUnmapMemObject(queue, buffer, mapped + 1, 0, NULL, NULL),
                 CL_INVALID_VALUE);
    ck_assert_cl(clEnqueueUnmapMemObject(queue, buffer, NULL, 0, NULL, NULL), CL_INVALID_VALUE);
    ck_assert_cl(clEnqueueUnmapMemObject(queue, other, mapped, 0, NULL, NULL), CL_INVALID_VALUE);
    ck_assert_cl(clEnqueueUnmapMemObject(queue, buffer, mapped, 1, NULL, NULL),
                 CL_INVALID_EVENT_WAIT_LIST);
    if (!excused(POCL, "PoCL 3.1 lets an unmap wait for an event of another context"))
        ck_assert_cl(clEnqueueUnmapMemObject(queue, buffer, mapped, 1, &foreign_event, NULL),
                     CL_INVALID_CONTEXT);
    ck_assert_uint_eq(map_count(buffer), 1);
    unmap(buffer, mapped);
    ck_ok(clFinish(queue));
    if (!excused(POCL, "PoCL 3.1 unmaps twice"))
        ck_assert_cl(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL),
                     CL_INVALID_VALUE);
    ck_ok(clReleaseEvent(foreign_event));
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseMemObject(other));
}
END_TEST

START_TEST(on_two_queues) {
    cl_command_queue second = make_queue(0);
    cl_mem buffer = numbered(0);
    cl_int *low = map(buffer, CL_MAP_WRITE, 0, 2048), *high;

    high = ck_made(clEnqueueMapBuffer(second, buffer, CL_TRUE, CL_MAP_WRITE, 2048, 2048, 0, NULL,
                                      NULL, &error));
    for (int i = 0; i < 512; i++) {
        low[i] = 1;
        high[i] = 2;
    }
    /* A region may be unmapped on another queue than it was mapped on. */
    ck_ok(clEnqueueUnmapMemObject(second, buffer, low, 0, NULL, NULL));
    ck_ok(clEnqueueUnmapMemObject(queue, buffer, high, 0, NULL, NULL));
    ck_ok(clFinish(second));
    ck_ok(clFinish(queue));
    read_ints(buffer, out, N);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(out[i], i < 512 ? 1 : 2);
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseCommandQueue(second));
}
END_TEST

START_TEST(many_times) {
    cl_mem buffer = numbered(0);

    for (int i = 0; i < 2000; i++) {
        cl_int *mapped = map(buffer, CL_MAP_READ | CL_MAP_WRITE, (i % 16) * 256, 256);

        mapped[0]++;
        unmap(buffer, mapped);
    }
    read_ints(buffer, out, N);
    for (int i = 0; i < 16; i++)
        ck_assert_int_eq(out[i * 64], in[i * 64] + 125);
    ck_no_maps(buffer);
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

/* True where Tutti's log is kept: in the variant whose devices have memory of their own. */
static bool logs;

/* Then its pages are locked, once. */
START_TEST(own_memory_again_and_again) {
    enum { BYTES = 1 << 20, ITEMS = 64, ROUNDS = 5 }; /* Oclgrind is slow */
    cl_program program = make_program(common_source);
    cl_kernel add = make_kernel(program, "add");
    cl_int one = 1, *memory = ck_made((error = CL_SUCCESS, aligned_alloc(4096, BYTES))), *mapped;
    memset(memory, 0, BYTES);
    cl_mem buffer = make_buffer(CL_MEM_USE_HOST_PTR, BYTES, memory);

    test_log_count("");
    ck_ok(clSetKernelArg(add, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(add, 1, sizeof(one), &one));
    for (cl_int i = 1; i <= ROUNDS; i++) {
        launch(add, ITEMS);
        mapped = map(buffer, CL_MAP_READ, 0, BYTES);
        ck_assert_int_eq(mapped[0], 2 * i - 1);
        ck_assert_int_eq(mapped[ITEMS - 1], 2 * i - 1);
        ck_assert_int_eq(mapped[BYTES / sizeof(cl_int) - 1], 2 * i - 2);
        unmap(buffer, mapped);
        mapped = map(buffer, CL_MAP_WRITE_INVALIDATE_REGION, 0, BYTES);
        for (size_t j = 0; j < BYTES / sizeof(cl_int); j++)
            mapped[j] = 2 * i;
        unmap(buffer, mapped);
    }
    ck_ok(clFinish(queue));
    if (logs)
        ck_assert_int_eq(test_log_count("bytes of the program"), 1);
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
    free(memory);
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        for_reading,
        for_writing,
        for_invalidating,
        writing_is_seen_by_kernels,
        several_at_a_time,
        the_same_region_read_twice,
        mapped_for_reading_and_read_by_a_kernel,
        other_buffers_go_on,
        use_host_ptr_maps_to_itself,
        non_blocking,
        alignment,
        neighbours,
        wrong,
        overlapping_writes_are_refused,
        unmap_wrong,
        on_two_queues,
        many_times,
        own_memory_again_and_again,
    };
    const char *transfer = getenv("TUTTI_TRANSFER");

    logs = transfer && strcmp(transfer, "staged") == 0 && !getenv("TUTTI_DEVICE_MEMORY") &&
           test_log_begin();
    int status = test_main(argc, argv, tests, COUNT(tests));
    if (logs)
        test_log_end();
    return status;
}
