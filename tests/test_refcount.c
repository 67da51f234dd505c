/* SPDX-License-Identifier: MIT */
#include "support.h"

#include <pthread.h>
#include <unistd.h>

/* Retains twice and releases twice, looking at the count each time. */
#define check_counts(kind, query, count_name, object)                                              \
    do {                                                                                           \
        cl_uint start_ = get_info(cl_uint, query, object, count_name);                             \
        ck_ok(clRetain##kind(object));                                                             \
        ck_assert_uint_eq(get_info(cl_uint, query, object, count_name), start_ + 1);               \
        ck_ok(clRetain##kind(object));                                                             \
        ck_assert_uint_eq(get_info(cl_uint, query, object, count_name), start_ + 2);               \
        ck_ok(clRelease##kind(object));                                                            \
        ck_ok(clRelease##kind(object));                                                            \
        ck_assert_uint_eq(get_info(cl_uint, query, object, count_name), start_);                   \
    } while (0)

/* A driver may keep a reference for a moment behind the event's end (PoCL's does). */
static void wait_until_ours(cl_event event) {
    for (int i = 0;
         i < 1000 && get_info(cl_uint, clGetEventInfo, event, CL_EVENT_REFERENCE_COUNT) > 1; i++)
        usleep(1000);
}

START_TEST(counts) {
    cl_program program = make_program(common_source);
    cl_kernel kernel = make_kernel(program, "set");
    cl_mem buffer = make_buffer(0, 4096, NULL), child;
    cl_event user = make_user_event(), event;
    cl_buffer_region region = {0, 64};
    cl_int value = 1;

    child = ck_made(clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error));
    ck_ok(clEnqueueFillBuffer(queue, buffer, &value, 4, 0, 64, 0, NULL, &event));
    ck_ok(clWaitForEvents(1, &event));
    wait_until_ours(event);
    check_counts(Context, clGetContextInfo, CL_CONTEXT_REFERENCE_COUNT, context);
    check_counts(CommandQueue, clGetCommandQueueInfo, CL_QUEUE_REFERENCE_COUNT, queue);
    check_counts(MemObject, clGetMemObjectInfo, CL_MEM_REFERENCE_COUNT, buffer);
    check_counts(MemObject, clGetMemObjectInfo, CL_MEM_REFERENCE_COUNT, child);
    check_counts(Program, clGetProgramInfo, CL_PROGRAM_REFERENCE_COUNT, program);
    check_counts(Kernel, clGetKernelInfo, CL_KERNEL_REFERENCE_COUNT, kernel);
    check_counts(Event, clGetEventInfo, CL_EVENT_REFERENCE_COUNT, user);
    check_counts(Event, clGetEventInfo, CL_EVENT_REFERENCE_COUNT, event);
    ck_ok(clReleaseEvent(event));
    ck_ok(clReleaseEvent(user));
    ck_ok(clReleaseMemObject(child));
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(a_context_lives_as_long_as_its_objects) {
    cl_context made = ck_made(clCreateContext(NULL, 1, &device, NULL, NULL, &error));
    cl_command_queue own = ck_made(clCreateCommandQueue(made, device, 0, &error));
    cl_mem buffer = ck_made(clCreateBuffer(made, 0, 64, NULL, &error));
    cl_int value = 12, seen = 0;

    ck_ok(clReleaseContext(made));
    ck_assert(get_info(cl_context, clGetMemObjectInfo, buffer, CL_MEM_CONTEXT) == made);
    ck_assert_uint_eq(get_info(cl_uint, clGetContextInfo, made, CL_CONTEXT_NUM_DEVICES), 1);
    ck_ok(clEnqueueFillBuffer(own, buffer, &value, 4, 0, 64, 0, NULL, NULL));
    ck_ok(clEnqueueReadBuffer(own, buffer, CL_TRUE, 0, 4, &seen, 0, NULL, NULL));
    ck_assert_int_eq(seen, 12);
    ck_ok(clReleaseCommandQueue(own));
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(a_program_lives_as_long_as_its_kernels) {
    cl_program program = make_program(common_source);
    cl_kernel set = make_kernel(program, "set");
    cl_mem buffer = make_buffer(0, 64, NULL);
    cl_int value = 3, seen = 0;
    char text[2048];

    ck_ok(clReleaseProgram(program));
    ck_assert(get_info(cl_program, clGetKernelInfo, set, CL_KERNEL_PROGRAM) == program);
    ck_ok(clGetProgramInfo(program, CL_PROGRAM_SOURCE, sizeof(text), text, NULL));
    ck_assert_str_eq(text, common_source);
    ck_ok(clSetKernelArg(set, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(set, 1, sizeof(value), &value));
    launch(set, 16);
    read_ints(buffer, &seen, 1);
    ck_assert_int_eq(seen, 3);
    ck_ok(clReleaseKernel(set));
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(commands_keep_what_they_use) {
    cl_context made = ck_made(clCreateContext(NULL, 1, &device, NULL, NULL, &error));
    cl_command_queue own = ck_made(clCreateCommandQueue(made, device, 0, &error));
    cl_mem first = ck_made(clCreateBuffer(made, 0, 4096, NULL, &error));
    cl_mem second = ck_made(clCreateBuffer(made, 0, 4096, NULL, &error));
    cl_event gate = ck_made(clCreateUserEvent(made, &error)), event;
    cl_int value = 77, seen = 0;

    ck_ok(clEnqueueFillBuffer(own, first, &value, 4, 0, 4096, 1, &gate, NULL));
    ck_ok(clEnqueueCopyBuffer(own, first, second, 0, 0, 4096, 0, NULL, NULL));
    ck_ok(clEnqueueReadBuffer(own, second, CL_FALSE, 2048, 4, &seen, 0, NULL, &event));
    ck_ok(clReleaseMemObject(first));
    ck_ok(clReleaseMemObject(second));
    ck_ok(clFlush(own));
    ck_ok(clReleaseCommandQueue(own));
    ck_ok(clReleaseContext(made));
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    ck_ok(clReleaseEvent(gate));
    ck_ok(clWaitForEvents(1, &event));
    ck_assert_int_eq(seen, 77);
    ck_ok(clReleaseEvent(event));
}
END_TEST

struct calls {
    pthread_mutex_t lock;
    int count;
    int order[8];
    cl_mem buffer;
};
static struct calls calls = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void CL_CALLBACK destroyed(cl_mem buffer, void *data) {
    pthread_mutex_lock(&calls.lock);
    if (calls.count < 8)
        calls.order[calls.count] = *(int *)data;
    calls.buffer = buffer;
    calls.count++;
    pthread_mutex_unlock(&calls.lock);
}

static int call_count(void) {
    int count;

    pthread_mutex_lock(&calls.lock);
    count = calls.count;
    pthread_mutex_unlock(&calls.lock);
    return count;
}

static void wait_for_calls(int wanted) {
    for (int i = 0; i < 5000 && call_count() < wanted; i++)
        usleep(2000);
    ck_assert_int_eq(call_count(), wanted);
}

START_TEST(destructor_callbacks) {
    static int numbers[] = {0, 1, 2};
    cl_mem buffer = make_buffer(0, 64, NULL);

    calls.count = 0;
    for (int i = 0; i < 3; i++)
        ck_ok(clSetMemObjectDestructorCallback(buffer, destroyed, &numbers[i]));
    ck_ok(clRetainMemObject(buffer));
    ck_ok(clReleaseMemObject(buffer));
    ck_assert_int_eq(call_count(), 0);
    ck_ok(clReleaseMemObject(buffer));
    wait_for_calls(3);
    ck_assert(calls.buffer == buffer);
    for (int i = 0; i < 3; i++)
        ck_assert_msg(calls.order[i] == 2 - i, "call %d is of registration %d", i, calls.order[i]);
}
END_TEST

START_TEST(destructor_callback_after_the_last_command) {
    static int number;
    cl_mem buffer = make_buffer(0, 64, NULL);
    cl_event gate = make_user_event();
    cl_int value = 1;

    calls.count = 0;
    ck_ok(clSetMemObjectDestructorCallback(buffer, destroyed, &number));
    ck_ok(clEnqueueFillBuffer(queue, buffer, &value, 4, 0, 64, 1, &gate, NULL));
    ck_ok(clFlush(queue));
    ck_ok(clReleaseMemObject(buffer));
    usleep(20000);
    ck_assert_msg(call_count() == 0, "the buffer went while a command needed it");
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    ck_ok(clFinish(queue));
    wait_for_calls(1);
    ck_ok(clReleaseEvent(gate));
}
END_TEST

START_TEST(destructor_callback_frees_user_memory) {
    static int number;
    void *memory = aligned_alloc(4096, 65536);
    cl_program program = make_program(common_source);
    cl_kernel set = make_kernel(program, "set");
    cl_int value = 2;
    cl_mem buffer;

    calls.count = 0;
    buffer = make_buffer(CL_MEM_USE_HOST_PTR, 65536, memory);
    ck_ok(clSetMemObjectDestructorCallback(buffer, destroyed, &number));
    ck_ok(clSetKernelArg(set, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(set, 1, sizeof(value), &value));
    launch(set, 16384);
    ck_ok(clFinish(queue));
    ck_ok(clReleaseMemObject(buffer));
    wait_for_calls(1);
    free(memory);
    ck_ok(clReleaseKernel(set));
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(destructor_callback_of_parent_and_child) {
    static int numbers[] = {0, 1};
    cl_mem parent = make_buffer(0, 4096, NULL), child;
    cl_buffer_region region = {0, 64};

    calls.count = 0;
    child = ck_made(clCreateSubBuffer(parent, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error));
    ck_ok(clSetMemObjectDestructorCallback(parent, destroyed, &numbers[0]));
    ck_ok(clSetMemObjectDestructorCallback(child, destroyed, &numbers[1]));
    ck_ok(clReleaseMemObject(parent));
    usleep(10000);
    ck_assert_int_eq(call_count(), 0);
    ck_ok(clReleaseMemObject(child));
    wait_for_calls(2);
    ck_assert_int_eq(calls.order[0], 1);
    ck_assert_int_eq(calls.order[1], 0);
}
END_TEST

START_TEST(destructor_callback_wrong) {
    cl_mem buffer = make_buffer(0, 64, NULL);

    ck_assert_cl(clSetMemObjectDestructorCallback(NULL, destroyed, NULL), CL_INVALID_MEM_OBJECT);
    ck_assert_cl(clSetMemObjectDestructorCallback(buffer, NULL, NULL), CL_INVALID_VALUE);
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(create_and_release_again_and_again) {
    for (int i = 0; i < 300; i++) {
        cl_context made = ck_made(clCreateContext(NULL, 1, &device, NULL, NULL, &error));
        cl_command_queue own = ck_made(clCreateCommandQueue(made, device, 0, &error));
        cl_mem buffer = ck_made(clCreateBuffer(made, 0, 64, NULL, &error));
        cl_event event;
        cl_int value = i, seen = -1;

        ck_ok(clEnqueueFillBuffer(own, buffer, &value, 4, 0, 64, 0, NULL, &event));
        ck_ok(clEnqueueReadBuffer(own, buffer, CL_TRUE, 60, 4, &seen, 1, &event, NULL));
        ck_assert_int_eq(seen, i);
        ck_ok(clReleaseEvent(event));
        ck_ok(clReleaseMemObject(buffer));
        ck_ok(clReleaseCommandQueue(own));
        ck_ok(clReleaseContext(made));
    }
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        counts,
        a_context_lives_as_long_as_its_objects,
        a_program_lives_as_long_as_its_kernels,
        commands_keep_what_they_use,
        destructor_callbacks,
        destructor_callback_after_the_last_command,
        destructor_callback_frees_user_memory,
        destructor_callback_of_parent_and_child,
        destructor_callback_wrong,
        create_and_release_again_and_again,
    };

    return test_main(argc, argv, tests, COUNT(tests));
}
