/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: the memory of a new buffer is taken by a migration, whose list NVIDIA's driver (580)
 * reads again when it ends the command. PoCL stands in for the GPU, whose driver does so, or has no
 * memory.
 */
#include "pocl_gpu.h"

#include <pthread.h>
#include <stdatomic.h>

enum { BUFFERS = 20, THREADS = 4, NONE = 123 * sizeof(cl_int) };

static atomic_uint migrations, refused, lists_left;
static atomic_bool refusing; /* what has NONE bytes */

/* The driver reads the list when this queue is finished. */
static _Thread_local struct {
    const cl_mem *list;
    cl_mem mem;
    cl_command_queue queue;
} under_way;

static cl_int CL_API_CALL migrate(cl_command_queue in, cl_uint count, const cl_mem *list,
                                  cl_mem_migration_flags flags, cl_uint waits, const cl_event *wait,
                                  cl_event *event) {
    size_t size = 0;
    real.clGetMemObjectInfo(list[0], CL_MEM_SIZE, sizeof(size), &size, NULL);
    atomic_fetch_add(&migrations, 1);
    if (atomic_load(&refusing) && size == NONE) {
        atomic_fetch_add(&refused, 1);
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    }
    cl_int result = real.clEnqueueMigrateMemObjects(in, count, list, flags, waits, wait, event);
    under_way.list = list;
    under_way.mem = list[0];
    under_way.queue = in;
    return result;
}

static cl_int CL_API_CALL finish(cl_command_queue of) {
    cl_int result = real.clFinish(of);
    if (under_way.list && under_way.queue == of) {
        if (*under_way.list != under_way.mem)
            atomic_fetch_add(&lists_left, 1);
        under_way.list = NULL;
    }
    return result;
}

/* The same thread does something else: its list may be gone. */
static void go_on(void) {
    if (under_way.list)
        atomic_fetch_add(&lists_left, 1);
    under_way.list = NULL;
}

static cl_mem CL_API_CALL create(cl_context in, cl_mem_flags flags, size_t size, void *host,
                                 cl_int *result) {
    go_on();
    return real.clCreateBuffer(in, flags, size, host, result);
}

static cl_int CL_API_CALL write_buffer(cl_command_queue in, cl_mem mem, cl_bool blocking,
                                       size_t offset, size_t size, const void *from, cl_uint waits,
                                       const cl_event *wait, cl_event *event) {
    go_on();
    return real.clEnqueueWriteBuffer(in, mem, blocking, offset, size, from, waits, wait, event);
}

static cl_int CL_API_CALL launch_kernel(cl_command_queue in, cl_kernel kernel, cl_uint dimensions,
                                        const size_t *offset, const size_t *global,
                                        const size_t *local, cl_uint waits, const cl_event *wait,
                                        cl_event *event) {
    go_on();
    return real.clEnqueueNDRangeKernel(in, kernel, dimensions, offset, global, local, waits, wait,
                                       event);
}

static void change(cl_icd_dispatch *driver) {
    driver->clEnqueueMigrateMemObjects = migrate;
    driver->clFinish = finish;
    driver->clCreateBuffer = create;
    driver->clEnqueueWriteBuffer = write_buffer;
    driver->clEnqueueNDRangeKernel = launch_kernel;
}

static cl_program program;

struct user {
    pthread_t thread;
    int number;
    cl_command_queue queue;
    cl_kernel add;
};

/* Buffers of sizes of their own, so that no kept memory serves them. */
static void *use_buffers(void *argument) {
    const struct user *user = argument;
    for (cl_int i = 0; i < BUFFERS; i++) {
        cl_int value = i, seen = -1, failed;
        size_t ints = 1000 + (size_t)(BUFFERS * user->number + i), size = ints * sizeof(cl_int);
        cl_mem buffer = clCreateBuffer(context, 0, size, NULL, &failed);
        ck_ok(failed);
        ck_ok(clEnqueueWriteBuffer(user->queue, buffer, CL_FALSE, 0, sizeof(value), &value, 0, NULL,
                                   NULL));
        ck_ok(clSetKernelArg(user->add, 0, sizeof(buffer), &buffer));
        ck_ok(clSetKernelArg(user->add, 1, sizeof(value), &value));
        ck_ok(clEnqueueNDRangeKernel(user->queue, user->add, 1, NULL, &ints, NULL, 0, NULL, NULL));
        ck_ok(clEnqueueReadBuffer(user->queue, buffer, CL_TRUE, 0, sizeof(seen), &seen, 0, NULL,
                                  NULL));
        ck_assert_int_eq(seen, 2 * i);
        ck_ok(clReleaseMemObject(buffer));
    }
    return NULL;
}

START_TEST(the_list_stays) {
    struct user user[THREADS];
    program = make_program(common_source);
    atomic_store(&migrations, 0);
    for (int t = 0; t < THREADS; t++) {
        user[t].number = t;
        user[t].queue = make_queue(0);
        user[t].add = make_kernel(program, "add");
    }
    for (int t = 0; t < THREADS; t++)
        ck_assert_int_eq(pthread_create(&user[t].thread, NULL, use_buffers, &user[t]), 0);
    for (int t = 0; t < THREADS; t++) {
        ck_assert_int_eq(pthread_join(user[t].thread, NULL), 0);
        ck_ok(clReleaseKernel(user[t].add));
        ck_ok(clReleaseCommandQueue(user[t].queue));
    }
    ck_assert_uint_ge(atomic_load(&migrations), THREADS * BUFFERS);
    ck_assert_uint_eq(atomic_load(&lists_left), 0);
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(there_is_none_for_a_while) {
    cl_int value = 7, seen = -1;
    cl_event event;
    program = make_program(common_source);
    cl_kernel add = make_kernel(program, "add");
    cl_mem buffer = make_buffer(0, NONE, NULL), other = make_buffer(0, 2 * NONE, NULL);
    ck_ok(clEnqueueWriteBuffer(queue, other, CL_TRUE, 0, sizeof(value), &value, 0, NULL, NULL));
    ck_ok(clSetKernelArg(add, 1, sizeof(value), &value));
    atomic_store(&refusing, true);
    ck_ok(clSetKernelArg(add, 0, sizeof(buffer), &buffer));
    ck_ok(clEnqueueNDRangeKernel(queue, add, 1, NULL, (size_t[]){1}, NULL, 0, NULL, &event));
    ck_assert_cl(clWaitForEvents(1, &event), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    ck_assert_int_eq(event_status(event), CL_MEM_OBJECT_ALLOCATION_FAILURE);
    ck_assert_uint_gt(atomic_load(&refused), 0);
    atomic_store(&refusing, false);
    ck_ok(clReleaseEvent(event));
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clSetKernelArg(add, 0, sizeof(other), &other));
    launch(add, 1);
    read_ints(other, &seen, 1);
    ck_assert_int_eq(seen, 14);
    buffer = make_buffer(0, NONE, NULL);
    ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, sizeof(value), &value, 0, NULL, NULL));
    ck_ok(clSetKernelArg(add, 0, sizeof(buffer), &buffer));
    launch(add, 1);
    read_ints(buffer, &seen, 1);
    ck_assert_int_eq(seen, 14);
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseMemObject(other));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {the_list_stays, there_is_none_for_a_while};
    return test_main_gpu(argc, argv, tests, COUNT(tests), change);
}
