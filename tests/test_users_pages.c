/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: pages of the program's that are a buffer's memory (CL_MEM_USE_HOST_PTR), and that
 * were locked for a GPU's driver, are unlocked by the time the program can see that nothing uses
 * the buffer any more. Without the watch over pages (TUTTI_LOCK_PAGES=never): where that is not to
 * be had each buffer locks its own. PoCL stands in for the GPU.
 */
#include "pocl_gpu.h"
#include "restless.h"

#include <stdatomic.h>
#include <unistd.h>

enum {
    BYTES = 8 << 20,
    HALF = BYTES / 2,
    ITEMS = BYTES / sizeof(cl_int),
    ENOUGH = 6,
    LIMIT = 16 << 20
};

static _Atomic(cl_mem) locked; /* the driver's object over the program's pages */

static cl_mem CL_API_CALL create(cl_context in, cl_mem_flags flags, size_t size, void *host,
                                 cl_int *result) {
    cl_mem mem = real.clCreateBuffer(in, flags, size, host, result);
    if (mem && flags & CL_MEM_USE_HOST_PTR)
        locked = mem;
    return mem;
}

/* Slow: who does not wait for it is seen. */
static cl_int CL_API_CALL release(cl_mem mem) {
    if (mem == locked) {
        usleep(100000);
        locked = NULL;
    }
    return real.clReleaseMemObject(mem);
}

static void change(cl_icd_dispatch *table) {
    table->clCreateBuffer = create;
    table->clReleaseMemObject = release;
}

static cl_program program;
static cl_kernel add;
static cl_mem buffer;
static char *memory;

static void add_one(cl_mem to, size_t items) {
    const cl_int one = 1;
    ck_ok(clSetKernelArg(add, 0, sizeof(to), &to));
    ck_ok(clSetKernelArg(add, 1, sizeof(one), &one));
    launch(add, items);
}

static cl_mem make_half(size_t origin) {
    const cl_buffer_region region = {origin, HALF};
    return ck_made(clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error));
}

static void begin(void) {
    program = make_program(common_source);
    add = make_kernel(program, "add");
    memory = calloc(1, BYTES);
    buffer = make_buffer(CL_MEM_USE_HOST_PTR, BYTES, memory);
    for (int i = 0; i < ENOUGH; i++) {
        add_one(buffer, ITEMS);
        void *mapped = ck_made(clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 0, BYTES, 0,
                                                  NULL, NULL, &error));
        ck_ok(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL));
    }
    ck_assert_msg(locked, "its pages were never locked");
}

static void end(void) {
    ck_assert_msg(!locked, "its pages are locked");
    free(memory);
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}

START_TEST(once_it_is_released) {
    begin();
    ck_ok(clFinish(queue));
    ck_ok(clReleaseMemObject(buffer));
    end();
}
END_TEST

START_TEST(once_its_last_command_is_over) {
    begin();
    add_one(buffer, ITEMS);
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clFinish(queue));
    end();
}
END_TEST

START_TEST(once_the_last_command_of_its_last_part_is_over) {
    begin();
    cl_mem part = make_half(0), other = make_half(HALF);
    ck_ok(clReleaseMemObject(buffer));
    add_one(part, HALF / sizeof(cl_int));
    ck_ok(clReleaseMemObject(part));
    ck_ok(clFinish(queue));
    ck_assert_msg(locked, "the other part is in use");
    add_one(other, HALF / sizeof(cl_int));
    ck_ok(clReleaseMemObject(other));
    ck_ok(clFinish(queue));
    end();
}
END_TEST

/* What is kept of other buffers' memory, and is in the way, is given back. */
START_TEST(beside_what_is_kept) {
    cl_mem other = make_buffer(CL_MEM_ALLOC_HOST_PTR, LIMIT - BYTES / 2, NULL);

    be_restless();
    void *mapped = ck_made(
        clEnqueueMapBuffer(queue, other, CL_TRUE, CL_MAP_WRITE, 0, BYTES, 0, NULL, NULL, &error));
    ck_ok(clEnqueueUnmapMemObject(queue, other, mapped, 0, NULL, NULL));
    ck_ok(clFinish(queue));
    ck_ok(clReleaseMemObject(other));
    begin();
    ck_ok(clFinish(queue));
    ck_ok(clReleaseMemObject(buffer));
    end();
    rest();
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        once_it_is_released,
        once_its_last_command_is_over,
        once_the_last_command_of_its_last_part_is_over,
        beside_what_is_kept,
    };
    setenv("TUTTI_PINNED_LIMIT", "16M", 1);
    setenv("TUTTI_LOCK_PAGES", "never", 1);
    return test_main_gpu(argc, argv, tests, COUNT(tests), change);
}
