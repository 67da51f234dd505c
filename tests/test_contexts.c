/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: contexts of one program, each used by a thread, have one real device. Each context's
 * commands are dispatched by its own thread, and so are those of the device by several at a time.
 * PoCL stands in for a GPU, with kernels of 10 us.
 */
#include "slow_gpu.h"

#include <stdatomic.h>

enum { THREADS = 3, QUEUES = 2, N = 1024, ROUNDS = 60, BURST = 90, LENGTH = 10000 /* ns */ };
enum { FRAME = 320 << 10, FRAMES = 4 }; /* as large ones go on lanes of their own */

static const char source[] = "kernel void add(global int *data, int by)"
                             "{ data[get_global_id(0)] += by; }"
                             "kernel void sum(global const int *from, global int *to)"
                             "{ to[get_global_id(0)] += from[get_global_id(0)]; }";

static struct user {
    pthread_t thread;
    cl_context context;
    cl_command_queue queue[QUEUES];
    cl_program program;
    cl_kernel add, sum;
    cl_mem data[QUEUES], frame, pinned;
    cl_int *mapped; /* `pinned` */
    cl_int errors, wrong;
} users[THREADS];

static atomic_uint ready; /* threads */

/* The first one is kept: no thread but the test's own may end a test. */
static void note(struct user *user, cl_int result) {
    user->errors = user->errors ? user->errors : result;
}

static void begin(struct user *user) {
    const char *text = source;
    cl_int result[5];
    user->context = clCreateContext(NULL, 1, &device, NULL, NULL, &result[0]);
    for (int q = 0; q < QUEUES; q++) {
        user->queue[q] = clCreateCommandQueue(user->context, device, 0, &result[1]);
        user->data[q] = clCreateBuffer(user->context, 0, N * sizeof(cl_int), NULL, &result[2]);
    }
    user->frame = clCreateBuffer(user->context, 0, FRAME * sizeof(cl_int), NULL, &result[3]);
    user->pinned = clCreateBuffer(user->context, CL_MEM_ALLOC_HOST_PTR, FRAME * sizeof(cl_int),
                                  NULL, &result[4]);
    for (int i = 0; i < 5; i++)
        note(user, result[i]);
    user->program = clCreateProgramWithSource(user->context, 1, &text, NULL, NULL);
    note(user, clBuildProgram(user->program, 1, &device, "", NULL, NULL));
    user->add = clCreateKernel(user->program, "add", NULL);
    user->sum = clCreateKernel(user->program, "sum", NULL);
    user->mapped =
        clEnqueueMapBuffer(user->queue[0], user->pinned, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                           FRAME * sizeof(cl_int), 0, NULL, NULL, NULL);
}

static void end(struct user *user) {
    note(user, clEnqueueUnmapMemObject(user->queue[0], user->pinned, user->mapped, 0, NULL, NULL));
    note(user, clFinish(user->queue[0]));
    clReleaseMemObject(user->frame);
    clReleaseMemObject(user->pinned);
    for (int q = 0; q < QUEUES; q++) {
        clReleaseMemObject(user->data[q]);
        clReleaseCommandQueue(user->queue[q]);
    }
    clReleaseKernel(user->add);
    clReleaseKernel(user->sum);
    clReleaseProgram(user->program);
    clReleaseContext(user->context);
}

static void run_add(struct user *user, cl_command_queue on, cl_mem to, size_t items, cl_int by,
                    const cl_event *after, cl_event *event) {
    note(user, clSetKernelArg(user->add, 0, sizeof(to), &to));
    note(user, clSetKernelArg(user->add, 1, sizeof(by), &by));
    note(user,
         clEnqueueNDRangeKernel(on, user->add, 1, NULL, &items, NULL, after ? 1 : 0, after, event));
}

static void run_sum(struct user *user, cl_mem from, cl_mem to, const cl_event *after) {
    const size_t items = N;
    note(user, clSetKernelArg(user->sum, 0, sizeof(from), &from));
    note(user, clSetKernelArg(user->sum, 1, sizeof(to), &to));
    note(user,
         clEnqueueNDRangeKernel(user->queue[1], user->sum, 1, NULL, &items, NULL, 1, after, NULL));
}

/* Short commands in two queues, of which the second waits for the first. */
static void use_queues(struct user *user, cl_int round) {
    cl_int values[N], seen[N], zero = 0;
    cl_event added;
    for (int i = 0; i < N; i++)
        values[i] = round;
    note(user, clEnqueueWriteBuffer(user->queue[0], user->data[0], CL_FALSE, 0, sizeof(values),
                                    values, 0, NULL, NULL));
    note(user, clEnqueueFillBuffer(user->queue[1], user->data[1], &zero, sizeof(zero), 0,
                                   sizeof(values), 0, NULL, NULL));
    for (int i = 0; i < 4; i++)
        run_add(user, user->queue[0], user->data[0], N, i, NULL, NULL);
    run_add(user, user->queue[0], user->data[0], N, 1, NULL, &added);
    run_sum(user, user->data[0], user->data[1], &added);
    run_add(user, user->queue[1], user->data[1], N, 2, NULL, NULL);
    note(user, clEnqueueReadBuffer(user->queue[1], user->data[1], CL_TRUE, 0, sizeof(seen), seen, 0,
                                   NULL, NULL));
    for (int i = 0; i < N; i++)
        user->wrong += seen[i] != round + 0 + 1 + 2 + 3 + 1 + 2;
    note(user, clFinish(user->queue[0]));
    clReleaseEvent(added);
}

/* So many kernels that the ends of some are seen while others are behind them. */
static void use_burst(struct user *user) {
    cl_int seen[N], zero = 0;
    note(user, clEnqueueFillBuffer(user->queue[0], user->data[0], &zero, sizeof(zero), 0,
                                   sizeof(seen), 0, NULL, NULL));
    for (int i = 0; i < BURST; i++)
        run_add(user, user->queue[0], user->data[0], N, 1, NULL, NULL);
    note(user, clEnqueueReadBuffer(user->queue[0], user->data[0], CL_TRUE, 0, sizeof(seen), seen, 0,
                                   NULL, NULL));
    for (int i = 0; i < N; i++)
        user->wrong += seen[i] != BURST;
}

/* Frames, whose uploads and downloads may be beside kernels. */
static void use_frames(struct user *user, cl_int round) {
    cl_command_queue on = user->queue[0];
    const size_t bytes = FRAME * sizeof(cl_int);
    user->mapped[0] = round;
    user->mapped[FRAME - 1] = -round;
    for (int i = 0; i < FRAMES; i++) {
        note(user, clEnqueueWriteBuffer(on, user->frame, CL_FALSE, 0, bytes, user->mapped, 0, NULL,
                                        NULL));
        run_add(user, on, user->frame, FRAME, 1, NULL, NULL);
        note(user,
             clEnqueueReadBuffer(on, user->frame, CL_FALSE, 0, bytes, user->mapped, 0, NULL, NULL));
    }
    note(user, clFinish(on));
    user->wrong += user->mapped[0] != round + FRAMES;
    user->wrong += user->mapped[FRAME - 1] != FRAMES - round;
}

static void *work(void *argument) {
    struct user *user = argument;
    begin(user);
    atomic_fetch_add(&ready, 1);
    while (atomic_load(&ready) < THREADS)
        sched_yield();
    for (cl_int round = 0; round < ROUNDS && !user->errors; round++) {
        use_queues(user, round);
        if (round % 4 == 2)
            use_burst(user);
        if (round % 4 == 0)
            use_frames(user, round);
    }
    end(user);
    return NULL;
}

START_TEST(each_with_a_thread) {
    for (int t = 0; t < THREADS; t++)
        ck_assert_int_eq(pthread_create(&users[t].thread, NULL, work, &users[t]), 0);
    for (int t = 0; t < THREADS; t++)
        ck_assert_int_eq(pthread_join(users[t].thread, NULL), 0);
    for (int t = 0; t < THREADS; t++) {
        ck_ok(users[t].errors);
        ck_assert_int_eq(users[t].wrong, 0);
    }
}
END_TEST

static void change(cl_icd_dispatch *driver) {
    slow_change(driver);
    slow.length = LENGTH;
}

int main(int argc, char **argv) {
    const TTest *const tests[] = {each_with_a_thread};

    setenv("TUTTI_DEVICE_MEMORY", "256M", 1);
    return test_main_gpu(argc, argv, tests, COUNT(tests), change);
}
