/* SPDX-License-Identifier: MIT */
/*
 * Every entry point but clSetKernelArg is thread-safe. A thread must not leave by a failed
 * assertion, so each counts what went wrong and the main thread looks at the sum.
 */
#include "support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { THREADS = 6, ROUNDS = 60, N = 256, BYTES = N * sizeof(cl_int) };

static atomic_int wrong;
static cl_program program;
static cl_mem shared[THREADS];

/* Counts a call that failed. */
static void must(cl_int code) {
    if (code != CL_SUCCESS)
        atomic_fetch_add(&wrong, 1);
}

static void must_be(bool condition) {
    if (!condition)
        atomic_fetch_add(&wrong, 1);
}

static void run_threads(void *(*body)(void *)) {
    pthread_t threads[THREADS];

    atomic_store(&wrong, 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, body, (void *)(intptr_t)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_msg(atomic_load(&wrong) == 0, "%d things went wrong", atomic_load(&wrong));
}

/* Adds 1 to a buffer ROUNDS times by a kernel of its own and looks at the result. */
static void add_and_check(cl_command_queue on, int number) {
    cl_int values[N], one = 1, code;
    cl_kernel add = clCreateKernel(program, "add", &code);
    const size_t all = N;
    cl_mem buffer;

    must(code);
    for (int i = 0; i < N; i++)
        values[i] = number * 1000 + i;
    buffer = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, BYTES, values, &code);
    must(code);
    must(clSetKernelArg(add, 0, sizeof(buffer), &buffer));
    must(clSetKernelArg(add, 1, sizeof(one), &one));
    for (int i = 0; i < ROUNDS; i++)
        must(clEnqueueNDRangeKernel(on, add, 1, NULL, &all, NULL, 0, NULL, NULL));
    must(clEnqueueReadBuffer(on, buffer, CL_TRUE, 0, BYTES, values, 0, NULL, NULL));
    for (int i = 0; i < N; i++)
        must_be(values[i] == number * 1000 + i + ROUNDS);
    must(clReleaseMemObject(buffer));
    must(clReleaseKernel(add));
}

static void *own_queue(void *number) {
    cl_int code;
    cl_command_queue own = clCreateCommandQueue(context, device, 0, &code);

    must(code);
    add_and_check(own, (int)(intptr_t)number);
    must(clReleaseCommandQueue(own));
    return NULL;
}

START_TEST(own_queues) {
    program = make_program(common_source);
    run_threads(own_queue);
    ck_ok(clReleaseProgram(program));
}
END_TEST

static void *one_queue(void *number) {
    add_and_check(queue, (int)(intptr_t)number);
    return NULL;
}

START_TEST(one_shared_queue) {
    program = make_program(common_source);
    run_threads(one_queue);
    ck_ok(clReleaseProgram(program));
}
END_TEST

static void *storm(void *number) {
    uint32_t state = 77 + (uint32_t)(intptr_t)number;

    for (int i = 0; i < ROUNDS; i++) {
        cl_int code, value = i, seen = -1;
        cl_context made = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
        cl_command_queue own;
        cl_mem buffer;
        cl_event event;

        must(code);
        own = clCreateCommandQueue(made, device, 0, &code);
        must(code);
        buffer = clCreateBuffer(made, 0, 64, NULL, &code);
        must(code);
        must(clRetainContext(made));
        must(clReleaseContext(made));
        must(clEnqueueFillBuffer(own, buffer, &value, 4, 0, 64, 0, NULL, &event));
        if (next_random(&state) % 2) {
            must(clWaitForEvents(1, &event));
            must(clEnqueueReadBuffer(own, buffer, CL_TRUE, 32, 4, &seen, 0, NULL, NULL));
            must_be(seen == value);
        }
        must(clReleaseEvent(event));
        must(clReleaseMemObject(buffer));
        must(clReleaseCommandQueue(own));
        must(clReleaseContext(made));
    }
    return NULL;
}

START_TEST(create_and_release_storm) { run_threads(storm); }
END_TEST

static void *shared_objects(void *number) {
    for (int i = 0; i < 500; i++) {
        cl_mem buffer = shared[(i + (int)(intptr_t)number) % THREADS];
        size_t size = 0;

        must(clRetainMemObject(buffer));
        must(clRetainContext(context));
        must(clRetainCommandQueue(queue));
        must(clGetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof(size), &size, NULL));
        must_be(size == BYTES);
        must(clReleaseCommandQueue(queue));
        must(clReleaseContext(context));
        must(clReleaseMemObject(buffer));
    }
    return NULL;
}

START_TEST(retain_and_release_shared_objects) {
    for (int i = 0; i < THREADS; i++)
        shared[i] = make_buffer(0, BYTES, NULL);
    run_threads(shared_objects);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_uint_eq(get_info(cl_uint, clGetMemObjectInfo, shared[i], CL_MEM_REFERENCE_COUNT),
                          1);
        ck_ok(clReleaseMemObject(shared[i]));
    }
}
END_TEST

/* Each thread reads all buffers and writes only its own half of the commands' targets. */
static void *readers(void *number) {
    int mine = (int)(intptr_t)number;
    cl_int code, seen[N];
    cl_command_queue own = clCreateCommandQueue(context, device, 0, &code);

    must(code);
    for (int i = 0; i < ROUNDS; i++) {
        int which = (mine + i) % THREADS;

        must(clEnqueueReadBuffer(own, shared[which], CL_TRUE, 0, BYTES, seen, 0, NULL, NULL));
        for (int j = 0; j < N; j++)
            must_be(seen[j] == which);
    }
    must(clReleaseCommandQueue(own));
    return NULL;
}

START_TEST(shared_buffers_read_by_all) {
    for (cl_int i = 0; i < THREADS; i++) {
        shared[i] = make_buffer(0, BYTES, NULL);
        ck_ok(clEnqueueFillBuffer(queue, shared[i], &i, 4, 0, BYTES, 0, NULL, NULL));
    }
    ck_ok(clFinish(queue));
    run_threads(readers);
    for (int i = 0; i < THREADS; i++)
        ck_ok(clReleaseMemObject(shared[i]));
}
END_TEST

/* Sub-buffers of one parent, each written by its own thread. */
static void *part_writer(void *number) {
    cl_int mine = (cl_int)(intptr_t)number + 1, code, one = 1;
    cl_command_queue own = clCreateCommandQueue(context, device, 0, &code);
    cl_kernel add = clCreateKernel(program, "add", &code);
    const size_t all = N;

    must(clEnqueueFillBuffer(own, shared[mine - 1], &mine, 4, 0, BYTES, 0, NULL, NULL));
    must(clSetKernelArg(add, 0, sizeof(cl_mem), &shared[mine - 1]));
    must(clSetKernelArg(add, 1, sizeof(one), &one));
    for (int i = 0; i < ROUNDS; i++)
        must(clEnqueueNDRangeKernel(own, add, 1, NULL, &all, NULL, 0, NULL, NULL));
    must(clFinish(own));
    must(clReleaseKernel(add));
    must(clReleaseCommandQueue(own));
    return NULL;
}

START_TEST(parts_of_one_buffer) {
    size_t align = get_info(cl_uint, clGetDeviceInfo, device, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
    size_t step = align > BYTES ? align : BYTES;
    cl_mem parent = make_buffer(0, THREADS * step, NULL);
    cl_int seen[N];

    program = make_program(common_source);
    for (int i = 0; i < THREADS; i++) {
        cl_buffer_region region = {i * step, BYTES};

        shared[i] =
            ck_made(clCreateSubBuffer(parent, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error));
    }
    run_threads(part_writer);
    for (int i = 0; i < THREADS; i++) {
        ck_ok(clEnqueueReadBuffer(queue, parent, CL_TRUE, i * step, BYTES, seen, 0, NULL, NULL));
        for (int j = 0; j < N; j++)
            ck_assert_int_eq(seen[j], i + 1 + ROUNDS);
        ck_ok(clReleaseMemObject(shared[i]));
    }
    ck_ok(clReleaseMemObject(parent));
    ck_ok(clReleaseProgram(program));
}
END_TEST

static void *builder(void *number) {
    for (int i = 0; i < 4; i++) {
        char text[256];
        const char *source = text;
        cl_int code, seen = -1;
        cl_program own;
        cl_kernel kernel;
        cl_mem out;

        snprintf(text, sizeof(text), "kernel void f(global int *out) { out[0] = %d; }",
                 (int)(intptr_t)number * 10 + i);
        own = clCreateProgramWithSource(context, 1, &source, NULL, &code);
        must(code);
        must(clBuildProgram(own, 0, NULL, NULL, NULL, NULL));
        kernel = clCreateKernel(own, "f", &code);
        must(code);
        out = clCreateBuffer(context, 0, 4, NULL, &code);
        must(code);
        must(clSetKernelArg(kernel, 0, sizeof(out), &out));
        must(clEnqueueTask(queue, kernel, 0, NULL, NULL));
        must(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, 4, &seen, 0, NULL, NULL));
        must_be(seen == (cl_int)(intptr_t)number * 10 + i);
        must(clReleaseMemObject(out));
        must(clReleaseKernel(kernel));
        must(clReleaseProgram(own));
    }
    return NULL;
}

START_TEST(builds_at_the_same_time) { run_threads(builder); }
END_TEST

static cl_event gates[THREADS], helds[THREADS];

/* Half of the threads open the gates on which the other half waits. */
static void *gatekeeper(void *number) {
    int mine = (int)(intptr_t)number;

    if (mine % 2) {
        usleep(1000 * mine);
        must(clSetUserEventStatus(gates[mine], CL_COMPLETE));
        must(clSetUserEventStatus(gates[mine - 1], CL_COMPLETE));
    } else {
        must(clWaitForEvents(1, &helds[mine + 1]));
        must(clWaitForEvents(1, &helds[mine]));
    }
    return NULL;
}

START_TEST(waiting_for_what_another_thread_does) {
    cl_int value = 4, seen = 0;
    cl_mem buffer = make_buffer(0, 64, NULL);

    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < THREADS; i++) {
            gates[i] = make_user_event();
            ck_ok(clEnqueueFillBuffer(queue, buffer, &value, 4, 0, 64, 1, &gates[i], &helds[i]));
        }
        run_threads(gatekeeper);
        for (int i = 0; i < THREADS; i++) {
            ck_ok(clReleaseEvent(gates[i]));
            ck_ok(clReleaseEvent(helds[i]));
        }
    }
    read_ints(buffer, &seen, 1);
    ck_assert_int_eq(seen, 4);
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        own_queues,
        one_shared_queue,
        create_and_release_storm,
        retain_and_release_shared_objects,
        shared_buffers_read_by_all,
        parts_of_one_buffer,
        builds_at_the_same_time,
        waiting_for_what_another_thread_does,
    };

    return test_main(argc, argv, tests, COUNT(tests));
}
