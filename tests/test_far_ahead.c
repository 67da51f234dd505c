/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: a program that sends frame after frame through a GPU and waits once, in the end. It
 * is far ahead of the GPU, which gets all the same each command as it comes, past StarPU, in the
 * order that the program's arrays ask for. PoCL stands in for the GPU, with kernels of 12 µs.
 */
#include "slow_gpu.h"

enum { N = 256, BYTES = N * sizeof(cl_int), SLOTS = 64, FEW = 4, FRAMES = 300, KERNELS = 3 };

static const char source[] = "kernel void next(global const int *in, global int *out) {"
                             "    out[get_global_id(0)] = in[get_global_id(0)] + 1; }"
                             "kernel void count(global const int *in, global int *sum) {"
                             "    sum[get_global_id(0)] += in[get_global_id(0)]; }";

static cl_program program;
static cl_kernel next, count;
static cl_mem frame, between[2], sum;
static cl_int sent[SLOTS][N], back[SLOTS][N], sums[N], zeros[N];

static void begin(void) {
    program = make_program(source);
    next = make_kernel(program, "next");
    count = make_kernel(program, "count");
    frame = make_buffer(0, BYTES, NULL);
    for (int i = 0; i < 2; i++)
        between[i] = make_buffer(0, BYTES, NULL);
    sum = make_buffer(0, BYTES, NULL);
}

static void end(void) {
    ck_ok(clReleaseMemObject(frame));
    for (int i = 0; i < 2; i++)
        ck_ok(clReleaseMemObject(between[i]));
    ck_ok(clReleaseMemObject(sum));
    ck_ok(clReleaseKernel(next));
    ck_ok(clReleaseKernel(count));
    ck_ok(clReleaseProgram(program));
}

static void run(cl_kernel kernel, cl_mem from, cl_mem to) {
    ck_ok(clSetKernelArg(kernel, 0, sizeof(from), &from));
    ck_ok(clSetKernelArg(kernel, 1, sizeof(to), &to));
    launch(kernel, N);
}

static void write_later(cl_mem to, const cl_int *from) {
    ck_ok(clEnqueueWriteBuffer(queue, to, CL_FALSE, 0, BYTES, from, 0, NULL, NULL));
}

static void read_later(cl_mem from, cl_int *to) {
    ck_ok(clEnqueueReadBuffer(queue, from, CL_FALSE, 0, BYTES, to, 0, NULL, NULL));
}

/* Each frame from a ring of arrays, through some kernels, and back to another ring. */
static void send(int frames, int slots) {
    for (int f = 0; f < frames; f++) {
        cl_mem last = frame;
        write_later(frame, sent[f % slots]);
        for (int k = 0; k < KERNELS; k++) {
            run(next, last, between[k % 2]);
            last = between[k % 2];
        }
        run(count, last, sum);
        read_later(last, back[f % slots]);
    }
}

static void stream(int frames, int slots) {
    for (int s = 0; s < slots; s++)
        for (int i = 0; i < N; i++)
            sent[s][i] = s * N + i;
    write_later(sum, zeros);
    send(frames, slots);
    read_later(sum, sums);
    ck_ok(clFinish(queue));
    int wrong = 0;
    for (int i = 0; i < N; i++) {
        int seen = 0;
        for (int f = 0; f < frames; f++)
            seen += sent[f % slots][i] + KERNELS;
        wrong += sums[i] != seen;
        for (int s = 0; s < slots && s < frames; s++)
            wrong += back[s][i] != sent[s][i] + KERNELS;
    }
    ck_assert_int_eq(wrong, 0);
}

/* So that the kernels are measured, and nothing is under way. */
static void warm(void) {
    for (int i = 0; i < 8; i++)
        stream(1, 1);
}

/* On a busy machine StarPU may have got a part of it. */
enum { ATTEMPTS = 6, LENGTH = 12000 /* ns */ };

static unsigned long enqueued(cl_ulong length) { /* and sets it, ns */
    pthread_mutex_lock(&slow.lock);
    unsigned long kernels = slow.enqueued;
    slow.length = length;
    pthread_mutex_unlock(&slow.lock);
    return kernels;
}

/*
 * The GPU is busy for so long, ns, when the frames come. All their kernels must be on its queue
 * when the last one was enqueued, as they are without Tutti.
 */
static void ck_given_as_it_comes(cl_ulong busy, int frames, int slots) {
    unsigned long given, all = (unsigned long)frames * (KERNELS + 1);
    int attempts = 0;
    begin();
    do {
        warm();
        unsigned long before = enqueued(busy);
        run(next, frame, between[0]);
        ck_assert_uint_eq(enqueued(LENGTH), before + 1);
        send(frames, slots);
        given = enqueued(LENGTH) - before - 1;
        ck_ok(clFinish(queue));
    } while (given < all && ++attempts < ATTEMPTS);
    ck_assert_uint_eq(given, all);
    stream(FRAMES, slots);
    end();
}

START_TEST(many_commands_under_way) { ck_given_as_it_comes(500000000, 14, SLOTS); }
END_TEST

/* The program waits then, as in a driver, for the GPU not to be too far behind. */
START_TEST(more_than_that) { ck_given_as_it_comes(20000000, FRAMES, SLOTS); }
END_TEST

/* A read to where another one reads to need not wait for that to end. */
START_TEST(the_devices_queue_keeps_the_order) { ck_given_as_it_comes(500000000, 3 * FEW, FEW); }
END_TEST

/* All of one array: what was read to it is what is written next. */
START_TEST(one_array_there_and_back) {
    enum { ROUNDS = 200 };
    int wrong = 0;
    begin();
    for (int attempt = 0; attempt < 5; attempt++) {
        for (int i = 0; i < N; i++)
            back[0][i] = i;
        for (int r = 0; r < ROUNDS; r++) {
            write_later(frame, back[0]);
            run(next, frame, between[r % 2]);
            read_later(between[r % 2], back[0]);
        }
        ck_ok(clFinish(queue));
        for (int i = 0; i < N; i++)
            wrong += back[0][i] != i + ROUNDS;
    }
    ck_assert_int_eq(wrong, 0);
    end();
}
END_TEST

/* The same with kernels that StarPU places, and the host's work, among them. */
static void CL_CALLBACK add_two(void *arguments) {
    (void)arguments;
    for (int i = 0; i < N; i++)
        back[0][i] += 2;
}

START_TEST(and_with_others_among_them) {
    enum { ROUNDS = 120 };
    int wrong = 0, more = 0;
    begin();
    cl_mem large = make_buffer(0, (size_t)4 << 20, NULL);
    for (int i = 0; i < N; i++)
        back[0][i] = i;
    for (int r = 0; r < ROUNDS; r++) {
        const cl_int pattern = r;
        write_later(frame, back[0]);
        run(next, frame, between[r % 2]);
        read_later(between[r % 2], back[0]);
        if (r % 7 == 3) {
            ck_ok(clEnqueueNativeKernel(queue, add_two, NULL, 0, 0, NULL, NULL, 0, NULL, NULL));
            more += 2;
        }
        if (r % 5 == 1)
            ck_ok(clEnqueueFillBuffer(queue, large, &pattern, sizeof(pattern), 0, (size_t)4 << 20,
                                      0, NULL, NULL));
        if (r % 11 == 2)
            run(count, between[r % 2], large);
    }
    ck_ok(clFinish(queue));
    for (int i = 0; i < N; i++)
        wrong += back[0][i] != i + ROUNDS + more;
    ck_assert_int_eq(wrong, 0);
    ck_ok(clReleaseMemObject(large));
    end();
}
END_TEST

static void CL_CALLBACK free_bytes(cl_event event, cl_int status, void *bytes) {
    (void)event;
    (void)status;
    free(bytes);
}

/* NVIDIA's driver takes the bytes of small writes as they are when it is called. */
static cl_int CL_API_CALL write_early(cl_command_queue on, cl_mem to, cl_bool blocking,
                                      size_t offset, size_t size, const void *from, cl_uint waits,
                                      const cl_event *list, cl_event *event) {
    cl_event own;
    void *bytes = malloc(size);
    if (!bytes)
        return CL_OUT_OF_HOST_MEMORY;
    memcpy(bytes, from, size);
    cl_int result =
        real.clEnqueueWriteBuffer(on, to, blocking, offset, size, bytes, waits, list, &own);
    if (result != CL_SUCCESS) {
        free(bytes);
        return result;
    }
    real.clSetEventCallback(own, CL_COMPLETE, free_bytes, bytes);
    if (event)
        *event = own;
    else
        real.clReleaseEvent(own);
    return result;
}

static void change(cl_icd_dispatch *driver) {
    slow_change(driver);
    driver->clEnqueueWriteBuffer = write_early;
    slow.length = LENGTH;
}

int main(int argc, char **argv) {
    const TTest *const tests[] = {many_commands_under_way, more_than_that,
                                  the_devices_queue_keeps_the_order, one_array_there_and_back,
                                  and_with_others_among_them};
    return test_main_gpu(argc, argv, tests, COUNT(tests), change);
}
