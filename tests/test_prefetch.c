/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: the data of kernels that wait for a GPU goes there while the one before them still
 * runs. PoCL stands in for one, or two, whose kernels end when the test says so.
 */
#include "driver_moves.h"
#include "slow_gpu.h"

enum { N = 512 << 10, BYTES = N * sizeof(cl_int), WAITING = 12, SHORT = 1000 /* ns */ };

/*
 * Two of them: nobody knows how long the second one takes. A worker would wait itself for what is
 * over soon, and these are behind one that is not.
 */
static const char source[] =
    "kernel void first(global int *data, int by) { data[get_global_id(0)] += by; }"
    "kernel void later(global int *data, int by) { data[get_global_id(0)] += by; }";

static unsigned gpus = 1;
static cl_program program;
static cl_kernel first, later;
static cl_int values[N];

static cl_mem make_filled(cl_int value) {
    for (int i = 0; i < N; i++)
        values[i] = value;
    return make_buffer(CL_MEM_COPY_HOST_PTR, BYTES, values);
}

static void add_one(cl_kernel add, cl_mem buffer) {
    cl_int one = 1;
    ck_ok(clSetKernelArg(add, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(add, 1, sizeof(one), &one));
    launch(add, N);
}

static void ck_content(cl_mem buffer, cl_int value) {
    int wrong = 0;
    read_ints(buffer, values, N);
    for (int i = 0; i < N; i++)
        wrong += values[i] != value;
    ck_assert_int_eq(wrong, 0);
}

/* A kernel runs on each GPU until slow_end_all. */
static void occupy(cl_mem *buffer) {
    unsigned long before = slow_set_length(SLOW_HELD);
    for (unsigned g = 0; g < gpus; g++)
        add_one(first, buffer[g]);
    ck_ok(clFlush(queue));
    bool run = slow_await(before + gpus);
    slow_set_length(SHORT);
    ck_assert(run);
    driver_forget_moves();
}

/* How many buffers went to a GPU as a whole; one may go to both, as its kernel changes places. */
static unsigned count_written(void) {
    unsigned written = 0;
    pthread_mutex_lock(&driver_moves.lock);
    for (unsigned i = 0; i < driver_moves.count; i++) {
        const struct driver_move *move = &driver_moves.move[i];
        bool again = false;
        for (unsigned j = 0; j < i; j++)
            again = again || driver_moves.move[j].host == move->host;
        written += move->way == WRITE && move->bytes == BYTES && !again;
    }
    pthread_mutex_unlock(&driver_moves.lock);
    return written;
}

/* Once all had the time for it. Ends the kernels. */
static unsigned count_brought(void) {
    for (int ms = 0; ms < 10000 && count_written() < WAITING; ms++)
        usleep(1000);
    unsigned brought = count_written();
    slow_end_all();
    ck_ok(clFinish(queue));
    return brought;
}

static void begin(cl_mem *busy, cl_mem *waiting) {
    program = make_program(source);
    first = make_kernel(program, "first");
    later = make_kernel(program, "later");
    for (unsigned g = 0; g < gpus; g++)
        busy[g] = make_filled(0);
    for (int w = 0; w < WAITING; w++)
        waiting[w] = make_filled(w);
}

/* More of them than StarPU's workers look at before they can execute them. */
START_TEST(while_kernels_run) {
    cl_mem busy[2], waiting[WAITING];
    begin(busy, waiting);
    occupy(busy);
    for (int w = 0; w < WAITING; w++)
        add_one(later, waiting[w]);
    ck_ok(clFlush(queue));
    unsigned brought = count_brought();
    ck_assert_uint_eq(brought, WAITING);
    for (int w = 0; w < WAITING; w++) {
        ck_content(waiting[w], w + 1);
        ck_ok(clReleaseMemObject(waiting[w]));
    }
    for (unsigned g = 0; g < gpus; g++) {
        ck_content(busy[g], 1);
        ck_ok(clReleaseMemObject(busy[g]));
    }
    ck_ok(clReleaseKernel(first));
    ck_ok(clReleaseKernel(later));
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(of_two_gpus) { test_run_again("", "--two"); }
END_TEST

static void change(cl_icd_dispatch *driver) {
    slow_change(driver);
    driver_moves_change(driver);
    slow.length = SHORT;
}

int main(int argc, char **argv) {
    const TTest *const tests[] = {while_kernels_run, of_two_gpus};
    bool two = argc == 2 && strcmp(argv[1], "--two") == 0;
    gpus = two ? 2 : 1;
    if (!pocl_gpu_begin(two ? "pthread pthread" : "pthread", change))
        return 0;
    return two ? test_main(1, argv, tests, 1) : test_main(argc, argv, tests, COUNT(tests));
}
