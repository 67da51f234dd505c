/* SPDX-License-Identifier: MIT */
/*
 * A program that sends frames of N elements, which its includer says, through a GPU by one in-order
 * queue; and others, whose results are known by the rules of serial execution. PoCL stands in for
 * the GPU.
 */
#ifndef TUTTI_TESTS_TRANSFER_LANES_H
#define TUTTI_TESTS_TRANSFER_LANES_H

#include "slow_gpu.h"

#include <stdatomic.h>

enum { HALF = N / 2, BYTES = N * sizeof(cl_int), SLOTS = 4, BUFFERS = 4 };
enum { LENGTH = 12000 /* ns */, WARM = 8 };

static const char source[] = "kernel void next(global const int *in, global int *out) {"
                             "    out[get_global_id(0)] = in[get_global_id(0)] + 1; }"
                             "kernel void add(global const int *in, global int *sum) {"
                             "    sum[get_global_id(0)] += in[get_global_id(0)]; }";

static cl_program program;
static cl_kernel next, add;
static cl_mem pinned[2][SLOTS], buffer[BUFFERS];
static cl_int *sent[SLOTS], *back[SLOTS];

/* What the driver was given. */
static struct {
    pthread_mutex_t lock;                  /* guards what follows */
    cl_command_queue kernels[SLOW_QUEUES]; /* queues that had any */
    cl_command_queue uploads, downloads;   /* the last ones without */
    unsigned aside[2];                     /* transfers on those, since that was asked */
    atomic_uint written;                   /* ends of writes */
} given = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The queue's place among those of kernels, or a free one. Lock held. */
static cl_command_queue *find_queue(cl_command_queue on) {
    unsigned i = 0;
    while (i < SLOW_QUEUES - 1 && given.kernels[i] && given.kernels[i] != on)
        i++;
    return &given.kernels[i];
}

static void note_transfer(cl_command_queue on, int way) {
    pthread_mutex_lock(&given.lock);
    if (*find_queue(on) != on) {
        given.aside[way]++;
        *(way ? &given.downloads : &given.uploads) = on;
    }
    pthread_mutex_unlock(&given.lock);
}

static void CL_CALLBACK count_written(cl_event event, cl_int status, void *unused) {
    (void)event;
    (void)status;
    (void)unused;
    atomic_fetch_add(&given.written, 1);
}

static cl_int CL_API_CALL write_bytes(cl_command_queue on, cl_mem to, cl_bool blocking,
                                      size_t offset, size_t size, const void *from, cl_uint waits,
                                      const cl_event *list, cl_event *event) {
    cl_event own;
    cl_int result =
        real.clEnqueueWriteBuffer(on, to, blocking, offset, size, from, waits, list, &own);
    if (result != CL_SUCCESS)
        return result;
    note_transfer(on, 0);
    real.clSetEventCallback(own, CL_COMPLETE, count_written, NULL);
    if (event)
        *event = own;
    else
        real.clReleaseEvent(own);
    return result;
}

static cl_int CL_API_CALL read_bytes(cl_command_queue on, cl_mem from, cl_bool blocking,
                                     size_t offset, size_t size, void *to, cl_uint waits,
                                     const cl_event *list, cl_event *event) {
    note_transfer(on, 1);
    return real.clEnqueueReadBuffer(on, from, blocking, offset, size, to, waits, list, event);
}

static cl_int CL_API_CALL enqueue(cl_command_queue on, cl_kernel kernel, cl_uint dimensions,
                                  const size_t *offset, const size_t *global, const size_t *local,
                                  cl_uint count, const cl_event *list, cl_event *event) {
    pthread_mutex_lock(&given.lock);
    *find_queue(on) = on;
    pthread_mutex_unlock(&given.lock);
    return slow_enqueue(on, kernel, dimensions, offset, global, local, count, list, event);
}

static void change(cl_icd_dispatch *driver) {
    slow_change(driver);
    slow.length = LENGTH;
    driver->clEnqueueNDRangeKernel = enqueue;
    driver->clEnqueueWriteBuffer = write_bytes;
    driver->clEnqueueReadBuffer = read_bytes;
}

static cl_int *make_pinned(int way, int slot) {
    pinned[way][slot] = make_buffer(CL_MEM_ALLOC_HOST_PTR, BYTES, NULL);
    return ck_made(clEnqueueMapBuffer(queue, pinned[way][slot], CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                      0, BYTES, 0, NULL, NULL, &error));
}

static void launch_from(cl_kernel kernel, cl_mem from, cl_mem to) {
    ck_ok(clSetKernelArg(kernel, 0, sizeof(from), &from));
    ck_ok(clSetKernelArg(kernel, 1, sizeof(to), &to));
    launch(kernel, N);
}

static void write_later(cl_mem to, size_t first, size_t count, const cl_int *from) {
    ck_ok(clEnqueueWriteBuffer(queue, to, CL_FALSE, first * sizeof(cl_int), count * sizeof(cl_int),
                               from + first, 0, NULL, NULL));
}

static void read_later(cl_mem from, size_t first, size_t count, cl_int *to) {
    ck_ok(clEnqueueReadBuffer(queue, from, CL_FALSE, first * sizeof(cl_int), count * sizeof(cl_int),
                              to + first, 0, NULL, NULL));
}

/* Until end_times, commands go to a queue with profiling. Returns the one that there was. */
static inline cl_command_queue begin_times(void) {
    cl_command_queue plain = queue;
    queue = ck_made(clCreateCommandQueue(context, device, CL_QUEUE_PROFILING_ENABLE, &error));
    return plain;
}

static inline void end_times(cl_command_queue plain) {
    ck_ok(clReleaseCommandQueue(queue));
    queue = plain;
}

/* Each frame by itself, so that the kernels are measured, and the buffers on the GPU. */
static void begin(void) {
    program = make_program(source);
    next = make_kernel(program, "next");
    add = make_kernel(program, "add");
    for (int i = 0; i < BUFFERS; i++)
        buffer[i] = make_buffer(0, BYTES, NULL);
    for (int s = 0; s < SLOTS; s++) {
        sent[s] = make_pinned(0, s);
        back[s] = make_pinned(1, s);
        for (int i = 0; i < N; i++)
            sent[s][i] = 1000 * (s + 1);
    }
    for (int i = 0; i < WARM; i++)
        for (int b = 0; b < BUFFERS; b++) {
            write_later(buffer[b], 0, N, sent[0]);
            launch_from(next, buffer[b], buffer[(b + 1) % BUFFERS]);
            ck_ok(clFinish(queue));
            launch_from(add, buffer[b], buffer[(b + 1) % BUFFERS]);
            read_later(buffer[(b + 1) % BUFFERS], 0, N, back[0]);
            ck_ok(clFinish(queue));
        }
}

static void end(void) {
    for (int s = 0; s < SLOTS; s++) {
        ck_ok(clEnqueueUnmapMemObject(queue, pinned[0][s], sent[s], 0, NULL, NULL));
        ck_ok(clEnqueueUnmapMemObject(queue, pinned[1][s], back[s], 0, NULL, NULL));
        ck_ok(clFinish(queue));
        ck_ok(clReleaseMemObject(pinned[0][s]));
        ck_ok(clReleaseMemObject(pinned[1][s]));
    }
    for (int i = 0; i < BUFFERS; i++)
        ck_ok(clReleaseMemObject(buffer[i]));
    ck_ok(clReleaseKernel(next));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}

/* One buffer for all frames, and one for all results. */
static void send(int frames) {
    for (int f = 0; f < frames; f++) {
        write_later(buffer[0], 0, N, sent[f % SLOTS]);
        launch_from(next, buffer[0], buffer[1]);
        launch_from(next, buffer[1], buffer[2]);
        read_later(buffer[2], 0, N, back[f % SLOTS]);
    }
}

static int count_wrong(const cl_int *values, size_t first, size_t count, cl_int right) {
    int wrong = 0;
    for (size_t i = first; i < first + count; i++)
        wrong += values[i] != right;
    return wrong;
}

static unsigned take_aside(int way) {
    pthread_mutex_lock(&given.lock);
    unsigned aside = given.aside[way];
    given.aside[way] = 0;
    pthread_mutex_unlock(&given.lock);
    return aside;
}

/* The same by the rules of serial execution; each half of an array has one value. */
static struct { cl_int buffer[BUFFERS][2], back[SLOTS][2]; } model;

/* A half, or mostly all. */
struct part {
    size_t first, count;
    bool has[2];
};

static struct part choose_part(unsigned *seed) {
    switch (rand_r(seed) % 4) {
    case 0:
        return (struct part){0, HALF, {true, false}};
    case 1:
        return (struct part){HALF, HALF, {false, true}};
    default:
        return (struct part){0, N, {true, true}};
    }
}

static void write_some(unsigned *seed) {
    int to = rand_r(seed) % BUFFERS, from = rand_r(seed) % SLOTS;
    struct part part = choose_part(seed);
    write_later(buffer[to], part.first, part.count, sent[from]);
    for (int half = 0; half < 2; half++)
        if (part.has[half])
            model.buffer[to][half] = sent[from][0];
}

static void read_some(unsigned *seed) {
    int from = rand_r(seed) % BUFFERS, to = rand_r(seed) % SLOTS;
    struct part part = choose_part(seed);
    read_later(buffer[from], part.first, part.count, back[to]);
    for (int half = 0; half < 2; half++)
        if (part.has[half])
            model.back[to][half] = model.buffer[from][half];
}

static void launch_some(unsigned *seed) {
    int from = rand_r(seed) % BUFFERS, to = (from + 1 + rand_r(seed) % (BUFFERS - 1)) % BUFFERS;
    bool adds = rand_r(seed) % 2;
    slow_set_length((cl_ulong)(rand_r(seed) % 60) * 1000);
    launch_from(adds ? add : next, buffer[from], buffer[to]);
    for (int half = 0; half < 2; half++)
        model.buffer[to][half] = (cl_int)((cl_uint)model.buffer[from][half] +
                                          (cl_uint)(adds ? model.buffer[to][half] : 1));
}

/* What the program writes there is all that there is. */
static inline void map_some(unsigned *seed) {
    int to = rand_r(seed) % BUFFERS, value = rand_r(seed);
    cl_int *bytes =
        ck_made(clEnqueueMapBuffer(queue, buffer[to], CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 0,
                                   BYTES, 0, NULL, NULL, &error));
    for (int i = 0; i < N; i++)
        bytes[i] = value;
    ck_ok(clEnqueueUnmapMemObject(queue, buffer[to], bytes, 0, NULL, NULL));
    model.buffer[to][0] = model.buffer[to][1] = value;
}

/* So many programs of so many commands, of these kinds. Returns how many transfers were aside. */
static unsigned draw_programs(unsigned programs, int length, void (*const *some)(unsigned *),
                              unsigned kinds) {
    int wrong = 0;
    unsigned aside = 0;
    begin();
    for (unsigned p = 0; p < programs; p++) {
        unsigned seed = p + 1;
        for (int b = 0; b < BUFFERS; b++) {
            write_later(buffer[b], 0, N, sent[b]);
            model.buffer[b][0] = model.buffer[b][1] = sent[b][0];
        }
        for (int s = 0; s < SLOTS; s++) {
            read_later(buffer[s % BUFFERS], 0, N, back[s]);
            for (int half = 0; half < 2; half++)
                model.back[s][half] = model.buffer[s % BUFFERS][half];
        }
        for (int i = 0; i < length; i++)
            some[(unsigned)rand_r(&seed) % kinds](&seed);
        ck_ok(clFinish(queue));
        for (int s = 0; s < SLOTS; s++)
            for (int half = 0; half < 2; half++)
                wrong += count_wrong(back[s], half ? HALF : 0, HALF, model.back[s][half]);
        ck_assert_msg(wrong == 0, "program %u", p + 1);
        aside += take_aside(0) + take_aside(1);
    }
    end();
    return aside;
}

#endif
