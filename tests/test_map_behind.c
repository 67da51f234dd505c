/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: a map of what a kernel is about to change is given to the GPU behind that, whether
 * the buffer was mapped before or not. PoCL stands in for the GPU, with kernels of 2 ms.
 */
#include "slow_gpu.h"
#include "traffic.h"

#include <stdatomic.h>

enum { N = 1024, PART = 64, ROUNDS = 40, LENGTH = 2000000 /* ns */ };

static const char source[] = "kernel void add(global int *data, int by)"
                             "{ data[get_global_id(0)] += by; }";

static cl_program program;
static cl_kernel add;
static cl_mem buffer;
static cl_int expected;
static atomic_uint moves, behind; /* reads and writes, and how many before the last kernel's end */

static void note_move(void) {
    pthread_mutex_lock(&slow.lock);
    bool busy = slow.busy > 0;
    pthread_mutex_unlock(&slow.lock);
    atomic_fetch_add(&moves, 1);
    atomic_fetch_add(&behind, busy);
}

static cl_int CL_API_CALL take(cl_command_queue on, cl_mem from, cl_bool blocking, size_t begin,
                               size_t size, void *to, cl_uint count, const cl_event *list,
                               cl_event *event) {
    note_move();
    return real.clEnqueueReadBuffer(on, from, blocking, begin, size, to, count, list, event);
}

static cl_int CL_API_CALL bring(cl_command_queue on, cl_mem to, cl_bool blocking, size_t begin,
                                size_t size, const void *from, cl_uint count, const cl_event *list,
                                cl_event *event) {
    note_move();
    return real.clEnqueueWriteBuffer(on, to, blocking, begin, size, from, count, list, event);
}

static void begin(void) {
    static const cl_int zeros[N];
    program = make_program(source);
    add = make_kernel(program, "add");
    buffer = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(zeros), (void *)(size_t)zeros);
    expected = 0;
}

static void run(cl_int by) {
    const size_t items = N;
    ck_ok(clSetKernelArg(add, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(add, 1, sizeof(by), &by));
    ck_ok(clEnqueueNDRangeKernel(queue, add, 1, NULL, &items, NULL, 0, NULL, NULL));
    expected += by;
}

static cl_int *map(cl_map_flags flags) {
    return ck_made(clEnqueueMapBuffer(queue, buffer, CL_TRUE, flags, 0, PART * sizeof(cl_int), 0,
                                      NULL, NULL, &error));
}

static void unmap(cl_int *mapped) {
    ck_ok(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL));
}

/* The kernel is known to be short, and the buffer on the GPU. */
static void warm_up(void) {
    for (int i = 0; i < 10; i++) {
        run(i);
        ck_ok(clFinish(queue));
    }
    atomic_store(&moves, 0);
    atomic_store(&behind, 0);
}

static void end(void) {
    cl_int seen[N];
    ck_ok(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(seen), seen, 0, NULL, NULL));
    ck_all(seen + PART, N - PART, expected);
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}

/* All but a few: the machine may be busy. */
START_TEST(to_read) {
    begin();
    warm_up();
    for (int i = 0; i < ROUNDS; i++) {
        run(i);
        cl_int *mapped = map(CL_MAP_READ);
        ck_all(mapped, PART, expected);
        unmap(mapped);
    }
    ck_assert_uint_ge(atomic_load(&behind), ROUNDS * 3 / 4);
    ck_assert_uint_le(atomic_load(&moves), ROUNDS);
    end();
}
END_TEST

/* The unmaps' writes come first, whatever is behind them. */
START_TEST(to_write) {
    begin();
    warm_up();
    for (int i = 0; i < ROUNDS; i++) {
        run(i);
        cl_int *mapped = map(i % 2 ? CL_MAP_WRITE | CL_MAP_READ : CL_MAP_WRITE_INVALIDATE_REGION);
        if (i % 2)
            ck_all(mapped, PART, expected);
        for (int k = 0; k < PART; k++)
            mapped[k] = expected;
        unmap(mapped);
        if (i % 4 == 3) { /* a write of all of it, which takes other storage */
            cl_int all[N];
            for (int k = 0; k < N; k++)
                all[k] = i;
            ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, sizeof(all), all, 0, NULL, NULL));
            expected = i;
        }
    }
    cl_int *mapped = map(CL_MAP_READ);
    ck_all(mapped, PART, expected);
    unmap(mapped);
    end();
}
END_TEST

static void change(cl_icd_dispatch *driver) {
    slow_change(driver);
    slow.length = LENGTH;
    driver->clEnqueueReadBuffer = take;
    driver->clEnqueueWriteBuffer = bring;
}

int main(int argc, char **argv) {
    const TTest *const tests[] = {to_read, to_write};

    setenv("TUTTI_DEVICE_MEMORY", "256M", 1);
    return test_main_gpu(argc, argv, tests, COUNT(tests), change);
}
