/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: the host's memory behind a buffer is page-locked for a GPU where that pays. PoCL
 * stands in for one; TUTTI_TRANSFER=staged lets threads copy however few cores there are.
 */
#include "page_locked.h"
#include "pocl_gpu.h"

enum { INTS = (17 << 20) / 4 + 9, BYTES = INTS * (int)sizeof(cl_int), MANY = 40 };

static cl_program program;
static cl_kernel add;
static cl_int *values;

static void begin(void) {
    program = make_program(common_source);
    add = make_kernel(program, "add");
    values = malloc(BYTES);
    for (int i = 0; i < INTS; i++)
        values[i] = i;
    locked_since(0, NULL, NULL);
}

static void end(void) {
    free(values);
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}

static cl_mem make_filled(cl_mem_flags flags) {
    return make_buffer(CL_MEM_COPY_HOST_PTR | flags, BYTES, values);
}

static void add_to(cl_mem buffer, cl_int value) {
    ck_ok(clSetKernelArg(add, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(add, 1, sizeof(value), &value));
    launch(add, INTS);
}

static void ck_ramp(cl_mem buffer, cl_int first) {
    cl_int *read = malloc(BYTES);
    read_ints(buffer, read, INTS);
    for (int i = 0; i < INTS; i++)
        if (read[i] != first + i)
            ck_abort_msg("[%d] is %d, expected %d", i, read[i], first + i);
    free(read);
}

static void use(cl_mem buffer) {
    add_to(buffer, 1);
    ck_ramp(buffer, 1);
    ck_ok(clReleaseMemObject(buffer));
}

/* The first cases: what is locked is kept for the next ones. */
START_TEST(of_content_that_comes_once) {
    begin();
    use(make_filled(0));
    ck_assert_int_eq(locked_since(BYTES, NULL, NULL), 0);
    end();
}
END_TEST

START_TEST(of_much_content) {
    begin();
    for (int i = 0; i < MANY; i++)
        use(make_filled(0));
    ck_assert_int_eq(locked_since(BYTES, NULL, NULL), 1);
    end();
}
END_TEST

START_TEST(that_the_program_wants) {
    cl_mem buffer[3]; /* one of them may get what is kept */
    begin();
    for (int i = 0; i < 3; i++)
        buffer[i] = make_filled(CL_MEM_ALLOC_HOST_PTR);
    ck_assert_int_ge(locked_since(BYTES, NULL, NULL), 2);
    for (int i = 0; i < 3; i++)
        use(buffer[i]);
    end();
}
END_TEST

/* Each element in that part is as much more than its index; then it is one less. */
static void take_one(cl_mem buffer, size_t first, size_t bytes, cl_int more) {
    cl_int *mapped = ck_made(clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                                first, bytes, 0, NULL, NULL, &error));
    for (size_t i = 0; i < bytes / sizeof(*mapped); i++) {
        ck_assert_int_eq(mapped[i], (cl_int)(first / sizeof(*mapped) + i) + more);
        mapped[i]--;
    }
    ck_ok(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL));
}

/* What is not locked is the program's while it is mapped, all at once or in parts. */
START_TEST(that_is_mapped) {
    enum { PART = 1 << 20, ROUNDS = 4 };
    begin();
    cl_mem buffer = make_filled(0);
    for (int round = 0; round < ROUNDS; round++) {
        cl_int more = 3 + 2 * round;
        add_to(buffer, 3);
        if (round % 2 == 0) {
            take_one(buffer, 0, BYTES, more);
        } else {
            take_one(buffer, PART, PART, more);
            take_one(buffer, 0, PART, more);
            take_one(buffer, 2 * PART, BYTES - 2 * PART, more);
        }
    }
    ck_ramp(buffer, 2 * ROUNDS);
    ck_assert_int_eq(locked_since(BYTES, NULL, NULL), 0);
    ck_ok(clReleaseMemObject(buffer));
    end();
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {of_content_that_comes_once, that_is_mapped, of_much_content,
                                  that_the_program_wants};
    setenv("TUTTI_TRANSFER", "staged", 1);
    return pocl_gpu_begin("pthread", NULL) ? test_main_logged(argc, argv, tests, COUNT(tests)) : 0;
}
