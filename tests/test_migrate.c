/* SPDX-License-Identifier: MIT */
#include "support.h"

enum { N = 256 };

static cl_int in[N], out[N];

START_TEST(contents_stay) {
    const cl_mem_migration_flags flags[] = {0, CL_MIGRATE_MEM_OBJECT_HOST};
    cl_mem buffers[2];
    cl_event event;

    for (int i = 0; i < N; i++)
        in[i] = i;
    for (int i = 0; i < 2; i++)
        buffers[i] = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(in), in);
    for (size_t i = 0; i < COUNT(flags); i++) {
        ck_ok(clEnqueueMigrateMemObjects(queue, 2, buffers, flags[i], 0, NULL, &event));
        ck_assert(get_info(cl_command_type, clGetEventInfo, event, CL_EVENT_COMMAND_TYPE) ==
                  CL_COMMAND_MIGRATE_MEM_OBJECTS);
        ck_ok(clWaitForEvents(1, &event));
        ck_ok(clReleaseEvent(event));
        for (int j = 0; j < 2; j++) {
            read_ints(buffers[j], out, N);
            ck_assert_mem_eq(in, out, sizeof(in));
        }
    }
    for (int i = 0; i < 2; i++)
        ck_ok(clReleaseMemObject(buffers[i]));
}
END_TEST

START_TEST(contents_undefined) {
    cl_mem buffer = make_buffer(0, sizeof(in), NULL);
    cl_int value = 9;

    /* After this only what is written later counts. */
    ck_ok(clEnqueueMigrateMemObjects(queue, 1, &buffer, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0,
                                     NULL, NULL));
    ck_ok(clEnqueueMigrateMemObjects(
        queue, 1, &buffer, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED | CL_MIGRATE_MEM_OBJECT_HOST, 0,
        NULL, NULL));
    ck_ok(clEnqueueFillBuffer(queue, buffer, &value, 4, 0, sizeof(in), 0, NULL, NULL));
    ck_ok(clEnqueueMigrateMemObjects(queue, 1, &buffer, 0, 0, NULL, NULL));
    read_ints(buffer, out, N);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(out[i], 9);
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(between_kernels) {
    cl_program program = make_program(common_source);
    cl_kernel add = make_kernel(program, "add");
    cl_int zero[N] = {0}, one = 1;
    cl_mem buffer = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(zero), zero);

    ck_ok(clSetKernelArg(add, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(add, 1, sizeof(one), &one));
    for (int i = 0; i < 20; i++) {
        launch(add, N);
        ck_ok(clEnqueueMigrateMemObjects(queue, 1, &buffer, i % 2 ? CL_MIGRATE_MEM_OBJECT_HOST : 0,
                                         0, NULL, NULL));
    }
    read_ints(buffer, out, N);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(out[i], 20);
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(wrong) {
    cl_mem buffer = make_buffer(0, 64, NULL), with_null[] = {buffer, NULL};
    cl_mem foreign = ck_made(clCreateBuffer(other_context(), 0, 64, NULL, &error));

#define REFUSED(code, queue_, number, list, flags, count, events)                                  \
    ck_assert_cl(clEnqueueMigrateMemObjects(queue_, number, list, flags, count, events, NULL), code)
    REFUSED(CL_INVALID_COMMAND_QUEUE, NULL, 1, &buffer, 0, 0, NULL);
    REFUSED(CL_INVALID_VALUE, queue, 0, &buffer, 0, 0, NULL);
    REFUSED(CL_INVALID_VALUE, queue, 1, NULL, 0, 0, NULL);
    REFUSED(CL_INVALID_MEM_OBJECT, queue, 2, with_null, 0, 0, NULL);
    REFUSED(CL_INVALID_CONTEXT, queue, 1, &foreign, 0, 0, NULL);
    REFUSED(CL_INVALID_VALUE, queue, 1, &buffer, (cl_mem_migration_flags)1 << 30, 0, NULL);
    REFUSED(CL_INVALID_EVENT_WAIT_LIST, queue, 1, &buffer, 0, 1, NULL);
#undef REFUSED
    ck_ok(clReleaseMemObject(foreign));
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {contents_stay, contents_undefined, between_kernels, wrong};

    return test_main(argc, argv, tests, COUNT(tests));
}
