/* SPDX-License-Identifier: MIT */
/*
 * What a small command costs on each platform that is named, in µs:
 *     overhead [--turns N] [--repeat N] PLATFORM…   (common/turns.h)
 * Rows: empty kernels back to back on one buffer and on sixteen; on one buffer, each waiting for
 * the event of the one before it, in an in-order and in an out-of-order queue; in sixteen queues in
 * turn; from four threads, each with a queue, a kernel object and a buffer; kernel + clFinish;
 * blocking 4-byte write and read. Then a fresh buffer of 1 KiB for each command: made and written;
 * made, used by a kernel, waited for; and that written before and read after. Last, kernels that
 * keep 64 work-items busy (50 µs on an H100) on sixteen buffers, in one queue and in sixteen. Each
 * number is the median over the repetitions.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include "common/turns.h"

#include <pthread.h>
#include <stdlib.h>

#define BUFFERS 16
#define THREADS 4
#define BURST 2000
#define SINGLE 300
#define LONGER 128

struct target {
    cl_context context;
    cl_command_queue queue, loose, many[BUFFERS];
    cl_program program;
    cl_kernel kernel, of_thread[THREADS], longer;
    cl_mem buffer[BUFFERS];
};

static void launch_in(cl_command_queue queue, cl_kernel kernel, cl_mem *buffer) {
    size_t items = 64;
    turns_check(clSetKernelArg(kernel, 0, sizeof(cl_mem), buffer), "clSetKernelArg");
    turns_check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &items, 0, NULL, NULL),
                "clEnqueueNDRangeKernel");
}

static void launch(struct target *t, int i) { launch_in(t->queue, t->kernel, &t->buffer[i]); }

static double burst(struct target *t, int buffers) {
    double start = turns_now();
    for (int i = 0; i < BURST; i++)
        launch(t, i % buffers);
    turns_check(clFinish(t->queue), "clFinish");
    return (turns_now() - start) / BURST;
}

static double chained(struct target *t) { return burst(t, 1); }

static double independent(struct target *t) { return burst(t, BUFFERS); }

static double waiting(struct target *t, cl_command_queue queue) {
    size_t items = 64;
    cl_event last = NULL;
    double start = turns_now();
    turns_check(clSetKernelArg(t->kernel, 0, sizeof(cl_mem), &t->buffer[0]), "clSetKernelArg");
    for (int i = 0; i < BURST; i++) {
        cl_event event;
        turns_check(clEnqueueNDRangeKernel(queue, t->kernel, 1, NULL, &items, &items, last ? 1 : 0,
                                           last ? &last : NULL, &event),
                    "clEnqueueNDRangeKernel");
        if (last)
            clReleaseEvent(last);
        last = event;
    }
    turns_check(clFinish(queue), "clFinish");
    clReleaseEvent(last);
    return (turns_now() - start) / BURST;
}

static double waiting_in_order(struct target *t) { return waiting(t, t->queue); }

static double waiting_out_of_order(struct target *t) { return waiting(t, t->loose); }

static double in_queues(struct target *t, int queues, cl_kernel kernel, int count) {
    double start = turns_now();
    for (int i = 0; i < count; i++)
        launch_in(t->many[i % queues], kernel, &t->buffer[i % BUFFERS]);
    for (int i = 0; i < queues; i++)
        turns_check(clFinish(t->many[i]), "clFinish");
    return (turns_now() - start) / count;
}

static double in_many_queues(struct target *t) { return in_queues(t, BUFFERS, t->kernel, BURST); }

struct thread {
    pthread_t thread;
    struct target *target;
    int number;
};

static void *run_thread(void *argument) {
    struct thread *thread = argument;
    struct target *t = thread->target;
    int n = thread->number;
    for (int i = 0; i < BURST / THREADS; i++)
        launch_in(t->many[n], t->of_thread[n], &t->buffer[n]);
    turns_check(clFinish(t->many[n]), "clFinish");
    return NULL;
}

static double from_threads(struct target *t) {
    struct thread threads[THREADS];
    double start = turns_now();
    for (int i = 0; i < THREADS; i++) {
        threads[i] = (struct thread){.target = t, .number = i};
        turns_check(pthread_create(&threads[i].thread, NULL, run_thread, &threads[i]),
                    "pthread_create");
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i].thread, NULL);
    return (turns_now() - start) / BURST;
}

static double finish(struct target *t) {
    double start = turns_now();
    for (int i = 0; i < SINGLE; i++) {
        launch(t, 0);
        turns_check(clFinish(t->queue), "clFinish");
    }
    return (turns_now() - start) / SINGLE;
}

static double write4(struct target *t) {
    cl_int value = 1;
    double start = turns_now();
    for (int i = 0; i < SINGLE; i++)
        turns_check(clEnqueueWriteBuffer(t->queue, t->buffer[0], CL_TRUE, 4, sizeof(value), &value,
                                         0, NULL, NULL),
                    "clEnqueueWriteBuffer");
    return (turns_now() - start) / SINGLE;
}

static double read4(struct target *t) {
    cl_int value;
    double start = turns_now();
    for (int i = 0; i < SINGLE; i++)
        turns_check(clEnqueueReadBuffer(t->queue, t->buffer[0], CL_TRUE, 4, sizeof(value), &value,
                                        0, NULL, NULL),
                    "clEnqueueReadBuffer");
    return (turns_now() - start) / SINGLE;
}

enum fresh { WRITE = 1, RUN = 2, READ = 4 };

static double with_fresh_buffers(struct target *t, int how) {
    static char bytes[1024];
    double start = turns_now();
    for (int i = 0; i < SINGLE; i++) {
        cl_mem buffer = turns_buffer(t->context, sizeof(bytes), NULL);
        if (how & WRITE)
            turns_check(clEnqueueWriteBuffer(t->queue, buffer, CL_TRUE, 0, sizeof(bytes), bytes, 0,
                                             NULL, NULL),
                        "clEnqueueWriteBuffer");
        if (how & RUN)
            launch_in(t->queue, t->kernel, &buffer);
        if (how & READ)
            turns_check(clEnqueueReadBuffer(t->queue, buffer, CL_TRUE, 0, sizeof(bytes), bytes, 0,
                                            NULL, NULL),
                        "clEnqueueReadBuffer");
        else
            turns_check(clFinish(t->queue), "clFinish");
        clReleaseMemObject(buffer);
    }
    return (turns_now() - start) / SINGLE;
}

static double fresh_written(struct target *t) { return with_fresh_buffers(t, WRITE); }

static double fresh_used(struct target *t) { return with_fresh_buffers(t, RUN); }

static double fresh_life(struct target *t) { return with_fresh_buffers(t, WRITE | RUN | READ); }

static double longer_in_one(struct target *t) { return in_queues(t, 1, t->longer, LONGER); }

static double longer_in_many(struct target *t) { return in_queues(t, BUFFERS, t->longer, LONGER); }

static const struct turns_row rows[] = {
    {"kernels on one buffer", chained},
    {"kernels on 16 buffers", independent},
    {"waiting for each other", waiting_in_order},
    {"the same out of order", waiting_out_of_order},
    {"in 16 queues", in_many_queues},
    {"from 4 threads", from_threads},
    {"kernel + clFinish", finish},
    {"blocking write, 4 bytes", write4},
    {"blocking read, 4 bytes", read4},
    {"fresh buffer, written", fresh_written},
    {"fresh buffer, kernel", fresh_used},
    {"the same, written and read", fresh_life},
    {"longer, on 16 buffers", longer_in_one},
    {"longer, in 16 queues", longer_in_many},
};

static struct target *open_target(cl_device_id device) {
    static const char *source =
        "__kernel void touch(__global int *a) { if (a[0] == 12345) a[1] = 0; }"
        "__kernel void turn(__global float *a) { float x = a[get_global_id(0)];"
        "  for (int i = 0; i < 20000; i++) x = fma(x, 0.999f, 0.5f); a[get_global_id(0)] = x; }";
    struct target *t = calloc(1, sizeof(*t));
    if (!t)
        exit(1);
    t->context = turns_context(device);
    t->queue = turns_queue(t->context, device, 0);
    t->loose = turns_queue(t->context, device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    t->program = turns_program(t->context, device, source);
    t->kernel = turns_kernel(t->program, "touch");
    t->longer = turns_kernel(t->program, "turn");
    for (int i = 0; i < THREADS; i++)
        t->of_thread[i] = turns_kernel(t->program, "touch");
    for (int i = 0; i < BUFFERS; i++) {
        t->many[i] = turns_queue(t->context, device, 0);
        t->buffer[i] = turns_buffer(t->context, 4096, NULL);
    }
    return t;
}

static void close_target(struct target *t) {
    for (int i = 0; i < BUFFERS; i++) {
        clReleaseMemObject(t->buffer[i]);
        clReleaseCommandQueue(t->many[i]);
    }
    for (int i = 0; i < THREADS; i++)
        clReleaseKernel(t->of_thread[i]);
    clReleaseKernel(t->kernel);
    clReleaseKernel(t->longer);
    clReleaseProgram(t->program);
    clReleaseCommandQueue(t->queue);
    clReleaseCommandQueue(t->loose);
    clReleaseContext(t->context);
    free(t);
}

int main(int argc, char **argv) {
    const struct turns turns = {rows, sizeof(rows) / sizeof(*rows), open_target, close_target};
    return turns_main(argc, argv, &turns);
}
