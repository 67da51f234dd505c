/* SPDX-License-Identifier: MIT */
/*
 * Programs by chance, of kernels in rows with all else among them that may be in a queue; beside
 * each what it makes of its buffers, computed here. TUTTI_TEST_SEED is the first program [1],
 * TUTTI_TEST_COUNT how many there are [40].
 */
#ifndef TUTTI_TESTS_APPEND_CHANCE_H
#define TUTTI_TESTS_APPEND_CHANCE_H

#include "append.h"

enum { PROGRAMS = 40, COMMANDS = 150, BUFFERS = 6, ARRAYS = COMMANDS };

static struct {
    unsigned seed;
    cl_uint now[BUFFERS][N];
    cl_int array[ARRAYS][N]; /* each is used once */
    cl_uint read[ARRAYS][N]; /* what is to be in it, if it was read to */
    bool was_read[ARRAYS];
} chance;

static int draw(int count) {
    chance.seed = chance.seed * 1103515245u + 12345;
    return (int)((chance.seed >> 16) % (unsigned)count);
}

static void launch_by_chance(cl_command_queue in, cl_uint waits, const cl_event *list,
                             cl_event *event) {
    const size_t items = N;
    int from = draw(BUFFERS), to = (from + 1 + draw(BUFFERS - 1)) % BUFFERS;
    bool gathers = draw(3) == 0;
    const float number = (float)draw(1000);
    cl_kernel kernel = gathers ? gather : turn;
    ck_ok(clSetKernelArg(kernel, 0, sizeof(cl_mem), &buffer[from]));
    ck_ok(gathers ? clSetKernelArg(kernel, 1, sizeof(cl_mem), &buffer[to])
                  : clSetKernelArg(kernel, 1, sizeof(number), &number));
    ck_ok(clEnqueueNDRangeKernel(in, kernel, 1, NULL, &items, NULL, waits, list, event));
    for (int k = 0; k < N; k++)
        if (gathers)
            chance.now[to][k] += chance.now[from][k];
        else
            chance.now[from][k] = chance.now[from][k] * 3 + (cl_uint)number;
}

/* Another queue's kernel, between two of this one. */
static void launch_elsewhere(void) {
    cl_event before, after;
    ck_ok(clEnqueueMarkerWithWaitList(queues[0], 0, NULL, &before));
    launch_by_chance(queues[1], 1, &before, &after);
    ck_ok(clFlush(queues[0]));
    ck_ok(clFlush(queues[1]));
    ck_ok(clEnqueueBarrierWithWaitList(queues[0], 1, &after, NULL));
    ck_ok(clReleaseEvent(before));
    ck_ok(clReleaseEvent(after));
}

static void launch_on_half(int half) {
    const size_t items = N / 2;
    const cl_int number = draw(1000);
    ck_ok(clSetKernelArg(part, 0, sizeof(cl_mem), &halves[half]));
    ck_ok(clSetKernelArg(part, 1, sizeof(number), &number));
    ck_ok(clEnqueueNDRangeKernel(queues[0], part, 1, NULL, &items, NULL, 0, NULL, NULL));
    for (int k = half * N / 2; k < (half + 1) * N / 2; k++)
        chance.now[0][k] = chance.now[0][k] * 3 + (cl_uint)number;
}

static void add_by_map(int b) {
    cl_uint *seen = clEnqueueMapBuffer(queues[0], buffer[b], CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                       sizeof(chance.now[b]), 0, NULL, NULL, &error);
    ck_ok(error);
    for (int k = 0; k < N; k++)
        chance.now[b][k] = ++seen[k];
    ck_ok(clEnqueueUnmapMemObject(queues[0], buffer[b], seen, 0, NULL, NULL));
}

static void add_by_host(int b) {
    cl_mem argument = buffer[b];
    const void *place = &argument;
    ck_ok(clEnqueueNativeKernel(queues[0], add_one, &argument, sizeof(argument), 1, &buffer[b],
                                &place, 0, NULL, NULL));
    for (int k = 0; k < N; k++)
        chance.now[b][k]++;
}

static void replace(int b, cl_int *array) {
    ck_ok(clReleaseMemObject(buffer[b]));
    buffer[b] = make_buffer(0, sizeof(chance.now[b]), NULL);
    ck_ok(clEnqueueWriteBuffer(queues[0], buffer[b], CL_FALSE, 0, sizeof(chance.now[b]), array, 0,
                               NULL, NULL));
    memcpy(chance.now[b], array, sizeof(chance.now[b]));
}

/* Any part, from or to the program's memory or within the device's; also what was read before. */
static void move_by_chance(int b, int c) {
    int first = draw(N), count = 1 + draw(N - first), place = draw(N - count + 1);
    int other = (b + 1) % BUFFERS, earlier = draw(c + 1);
    const size_t from = (size_t)first * sizeof(cl_int), to = (size_t)place * sizeof(cl_int),
                 size = (size_t)count * sizeof(cl_int);
    const cl_uint pattern = (cl_uint)c;
    switch (draw(4)) {
    case 0:
        ck_ok(clEnqueueFillBuffer(queues[0], buffer[b], &pattern, sizeof(pattern), from, size, 0,
                                  NULL, NULL));
        for (int k = first; k < first + count; k++)
            chance.now[b][k] = pattern;
        break;
    case 1:
        ck_ok(clEnqueueCopyBuffer(queues[0], buffer[b], buffer[other], from, to, size, 0, NULL,
                                  NULL));
        memcpy(&chance.now[other][place], &chance.now[b][first], size);
        break;
    default:
        ck_ok(clEnqueueWriteBuffer(queues[0], buffer[b], CL_FALSE, to, size,
                                   &chance.array[earlier][first], 0, NULL, NULL));
        memcpy(&chance.now[b][place],
               chance.was_read[earlier] ? &chance.read[earlier][first]
                                        : (cl_uint *)&chance.array[earlier][first],
               size);
    }
}

/* The command of that number; each has an array of its own. */
static void do_by_chance(int c) {
    const size_t size = sizeof(chance.now[0]);
    const cl_uint pattern = (cl_uint)c;
    int b = draw(BUFFERS), other = (b + 1) % BUFFERS;
    cl_int *array = chance.array[c];
    cl_event event = NULL;
    switch (draw(40)) {
    case 0:
    case 1:
        ck_ok(clEnqueueReadBuffer(queues[0], buffer[b], draw(2) ? CL_TRUE : CL_FALSE, 0, size,
                                  array, 0, NULL, NULL));
        memcpy(chance.read[c], chance.now[b], size);
        chance.was_read[c] = true;
        break;
    case 2:
        ck_ok(clEnqueueWriteBuffer(queues[0], buffer[b], CL_FALSE, 0, size / 2, array, 0, NULL,
                                   NULL));
        memcpy(chance.now[b], array, size / 2);
        break;
    case 3:
        ck_ok(clEnqueueCopyBuffer(queues[0], buffer[b], buffer[other], 0, 0, size, 0, NULL, NULL));
        memcpy(chance.now[other], chance.now[b], size);
        break;
    case 4:
        ck_ok(clEnqueueFillBuffer(queues[0], buffer[b], &pattern, sizeof(pattern), 0, size / 2, 0,
                                  NULL, NULL));
        for (int k = 0; k < N / 2; k++)
            chance.now[b][k] = pattern;
        break;
    case 5:
        add_by_map(b);
        break;
    case 6:
        add_by_host(b);
        break;
    case 7:
        ck_ok(clFinish(queues[0]));
        break;
    case 8:
        ck_ok(clFlush(queues[0]));
        break;
    case 9:
        ck_ok(clEnqueueMarkerWithWaitList(queues[0], 0, NULL, &event));
        ck_ok(clWaitForEvents(1, &event));
        break;
    case 10:
        replace(b ? b : 1, array);
        break;
    case 11:
        launch_elsewhere();
        break;
    case 12:
    case 13:
        launch_on_half(draw(2));
        break;
    case 14:
    case 15:
    case 16:
    case 17:
    case 18:
    case 19:
        move_by_chance(b, c);
        break;
    default:
        launch_by_chance(queues[0], 0, NULL, draw(20) ? NULL : &event);
    }
    if (event)
        ck_ok(clReleaseEvent(event));
}

/* `place` puts the buffers somewhere once they are written, without a change; or NULL. */
static void ck_by_chance(unsigned seed, void (*place)(void)) {
    memset(&chance, 0, sizeof(chance));
    chance.seed = seed;
    for (int c = 0; c < ARRAYS; c++)
        for (int k = 0; k < N; k++)
            chance.array[c][k] = c * N + k;
    for (int b = 0; b < BUFFERS; b++)
        ck_ok(clEnqueueWriteBuffer(queues[0], buffer[b], CL_TRUE, 0, sizeof(chance.now[b]),
                                   chance.now[b], 0, NULL, NULL));
    if (place)
        place();
    for (int c = 0; c < COMMANDS; c++)
        do_by_chance(c);
    ck_ok(clFinish(queues[0]));
    int wrong = 0;
    for (int b = 0; b < BUFFERS; b++) {
        cl_uint seen[N];
        ck_ok(clEnqueueReadBuffer(queues[0], buffer[b], CL_TRUE, 0, sizeof(seen), seen, 0, NULL,
                                  NULL));
        wrong += memcmp(seen, chance.now[b], sizeof(seen)) != 0;
    }
    for (int c = 0; c < COMMANDS; c++)
        wrong += chance.was_read[c] &&
                 memcmp(chance.array[c], chance.read[c], sizeof(chance.read[c])) != 0;
    ck_assert_msg(wrong == 0, "program %u: %d wrong", seed, wrong);
}

static void ck_all_by_chance(void (*place)(void)) {
    const char *first = getenv("TUTTI_TEST_SEED"), *count = getenv("TUTTI_TEST_COUNT");
    for (int i = 0; i < (count ? atoi(count) : PROGRAMS); i++)
        ck_by_chance((unsigned)(first ? atoi(first) : 1) + (unsigned)i, place);
}

#endif
