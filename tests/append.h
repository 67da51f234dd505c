/* SPDX-License-Identifier: MIT */
/*
 * Short kernels behind each other on a GPU, whose events nobody wants, go to the driver with the
 * command before them. PoCL stands in for the GPU, with kernels of 6 µs, where the includer does
 * not say what LENGTH they have, in ns.
 */
#ifndef TUTTI_TESTS_APPEND_H
#define TUTTI_TESTS_APPEND_H

#include "slow_gpu.h"

#include <stdatomic.h>

#ifndef LENGTH
#define LENGTH 6000
#endif

enum { N = 64, SOME = 20, MANY = 400, MOST = 16, SLOW = 2000000 /* ns */ };

/* How long `turn` takes does not depend on its number, which is no integer (sched/model.h). */
static const char source[] = "kernel void turn(global int *a, float i) {"
                             "    int k = get_global_id(0); a[k] = a[k] * 3 + (int)i; }"
                             "kernel void part(global int *a, int i) {"
                             "    int k = get_global_id(0); a[k] = a[k] * 3 + i; }"
                             "kernel void gather(global const int *from, global int *to) {"
                             "    int k = get_global_id(0); to[k] += from[k]; }";

static cl_program program;
static cl_kernel turn, part, gather; /* PoCL confuses one of several sizes */
static cl_command_queue queues[MOST];
static cl_mem buffer[MOST], halves[2]; /* of the first one */
static cl_uint want[MOST];
static atomic_int refusals; /* launches that the driver refuses */

/* What the driver was given, each with an event of its own: how far is it? */
static struct {
    pthread_mutex_t lock;
    cl_event event[MANY * 2];
    unsigned count;
    bool keeps;
} given = {.lock = PTHREAD_MUTEX_INITIALIZER};

static cl_int CL_API_CALL enqueue(cl_command_queue on, cl_kernel kernel, cl_uint dimensions,
                                  const size_t *offset, const size_t *global, const size_t *local,
                                  cl_uint count, const cl_event *list, cl_event *event) {
    cl_event own = NULL;
    if (atomic_load(&refusals) > 0 && atomic_fetch_sub(&refusals, 1) > 0)
        return CL_OUT_OF_RESOURCES;
    cl_int result = slow_enqueue(on, kernel, dimensions, offset, global, local, count, list, &own);
    if (result != CL_SUCCESS)
        return result;
    pthread_mutex_lock(&given.lock);
    if (given.keeps && given.count < COUNT(given.event) && real.clRetainEvent(own) == CL_SUCCESS)
        given.event[given.count++] = own;
    pthread_mutex_unlock(&given.lock);
    if (event)
        *event = own;
    else
        real.clReleaseEvent(own);
    return CL_SUCCESS;
}

/* How many of those have not ended; forgets them. */
static inline unsigned count_running(void) {
    unsigned running = 0;
    pthread_mutex_lock(&given.lock);
    for (unsigned i = 0; i < given.count; i++) {
        cl_int status = CL_QUEUED;
        real.clGetEventInfo(given.event[i], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
                            &status, NULL);
        running += status > CL_COMPLETE;
        real.clReleaseEvent(given.event[i]);
    }
    given.count = 0;
    given.keeps = false;
    pthread_mutex_unlock(&given.lock);
    return running;
}

static inline void keep_events(void) {
    pthread_mutex_lock(&given.lock);
    given.keeps = true;
    pthread_mutex_unlock(&given.lock);
}

static void run(cl_command_queue in, cl_kernel kernel, int i, cl_int number, cl_event *event) {
    const size_t items = N;
    const float as_float = (float)number;
    ck_ok(clSetKernelArg(kernel, 0, sizeof(cl_mem), &buffer[i]));
    if (kernel == part)
        ck_ok(clSetKernelArg(kernel, 1, sizeof(number), &number));
    else
        ck_ok(clSetKernelArg(kernel, 1, sizeof(as_float), &as_float));
    ck_ok(clEnqueueNDRangeKernel(in, kernel, 1, NULL, &items, NULL, 0, NULL, event));
    want[i] = want[i] * 3 + (cl_uint)number;
}

static void run_gather(cl_command_queue in, int from, int to) {
    const size_t items = N;
    ck_ok(clSetKernelArg(gather, 0, sizeof(cl_mem), &buffer[from]));
    ck_ok(clSetKernelArg(gather, 1, sizeof(cl_mem), &buffer[to]));
    ck_ok(clEnqueueNDRangeKernel(in, gather, 1, NULL, &items, NULL, 0, NULL, NULL));
    want[to] += want[from];
}

static inline void ck_buffers(cl_command_queue in, int count) {
    for (int i = 0; i < count; i++) {
        cl_int seen[N];
        int wrong = 0;
        ck_ok(clEnqueueReadBuffer(in, buffer[i], CL_TRUE, 0, sizeof(seen), seen, 0, NULL, NULL));
        for (int k = 0; k < N; k++)
            wrong += (cl_uint)seen[k] != want[i];
        ck_assert_msg(wrong == 0, "buffer %d: %d wrong, such as %d for %u", i, wrong, seen[0],
                      want[i]);
    }
}

/* With all buffers on the device, and the kernels measured. */
static void begin(void) {
    slow_set_length(LENGTH);
    program = make_program(source);
    turn = make_kernel(program, "turn");
    part = make_kernel(program, "part");
    gather = make_kernel(program, "gather");
    for (int i = 0; i < MOST; i++) {
        static const cl_int zeros[N];
        queues[i] = make_queue(0);
        buffer[i] = make_buffer(0, sizeof(zeros), NULL);
        want[i] = 0;
        ck_ok(clEnqueueWriteBuffer(queues[0], buffer[i], CL_TRUE, 0, sizeof(zeros), zeros, 0, NULL,
                                   NULL));
    }
    for (int i = 0; i < 2; i++) {
        const cl_buffer_region region = {i * (N / 2) * sizeof(cl_int), N / 2 * sizeof(cl_int)};
        halves[i] = clCreateSubBuffer(buffer[0], 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
        ck_ok(error);
    }
    for (int r = 0; r < 2; r++)
        for (int i = 0; i < MOST; i++) {
            run(queues[0], turn, i, r, NULL);
            ck_ok(clFinish(queues[0]));
            run_gather(queues[0], i, (i + 1) % MOST);
            ck_ok(clFinish(queues[0]));
        }
    test_log_count("");
}

/* So that no kernel is taken for a longer one than it is. */
static inline void calm_down(void) {
    for (int i = 0; i < 10; i++) {
        run(queues[0], turn, MOST - 1, i, NULL);
        ck_ok(clFinish(queues[0]));
    }
}

/*
 * The queue's next kernel takes so long, ns, that SOME are there before the GPU goes on, however
 * busy the machine is; and so few never wait to be collected.
 */
static inline void keep_busy(cl_command_queue in, cl_ulong length) {
    slow_set_length(length);
    run(in, turn, MOST - 1, 1, NULL);
    slow_set_length(LENGTH);
}

static void end(void) {
    for (int i = 0; i < 2; i++)
        ck_ok(clReleaseMemObject(halves[i]));
    for (int i = 0; i < MOST; i++) {
        ck_ok(clReleaseCommandQueue(queues[i]));
        if (buffer[i])
            ck_ok(clReleaseMemObject(buffer[i]));
    }
    ck_ok(clReleaseKernel(turn));
    ck_ok(clReleaseKernel(part));
    ck_ok(clReleaseKernel(gather));
    ck_ok(clReleaseProgram(program));
}

/* So many of the last MANY kernels, at least; on a busy machine the GPU may be far behind. */
static inline int appended(void) { return test_log_count("behind another one"); }

static inline void CL_CALLBACK add_one(void *arguments) {
    cl_int *seen = *(cl_int **)arguments;
    for (int i = 0; i < N; i++)
        seen[i]++;
}

/* Of a memory object: `gone` is an atomic_bool. */
static inline void CL_CALLBACK note_end(cl_mem mem, void *gone) {
    (void)mem;
    atomic_store((atomic_bool *)gone, true);
}

static void change(cl_icd_dispatch *driver) {
    slow_change(driver);
    slow.length = LENGTH;
    driver->clEnqueueNDRangeKernel = enqueue;
}

#endif
