/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti, on devices that share the host's memory: what overlaps a kernel in one in-order
 * queue, in the paper's tests T-04 to T-06, without clocks. The kernel goes on until the program
 * writes a flag, which it does once the transfers are seen to be done: their bytes are there, or
 * the blocking call returned. What needs the kernel (T-03, T-07) has not begun by then.
 */
#include "native.h"

enum { N = 1000, BYTES = N * sizeof(cl_int) };
#define LONGEST 20000000000 /* looks at the flag: ten seconds */
enum { A, B, C, D, TILES };

static const char source[] =
    "kernel void hold(global const int *in, global int *out, global volatile int *flags,"
    "                 long longest) {"
    "    if (get_global_id(0) == 0) {"
    "        flags[0] = 1;"
    "        for (long i = 0; i < longest && !flags[1]; i++);"
    "    }"
    "    out[get_global_id(0)] = in[0];"
    "}";

static cl_program program;
static cl_kernel hold;
static cl_command_queue plain;
static cl_mem tile[TILES], shared;
static cl_int *host[TILES];
static _Atomic cl_int *flags; /* does the kernel run? may it end? */

static void begin(void) {
    program = make_program(source);
    hold = make_kernel(program, "hold");
    plain = make_queue(0);
    flags = aligned_alloc(4096, 4096);
    shared = make_buffer(CL_MEM_USE_HOST_PTR, 4096, (void *)flags);
    for (int t = 0; t < TILES; t++) {
        tile[t] = make_buffer(0, BYTES, NULL);
        host[t] = malloc(BYTES);
    }
}

static void end(void) {
    for (int t = 0; t < TILES; t++) {
        ck_ok(clReleaseMemObject(tile[t]));
        free(host[t]);
    }
    ck_ok(clReleaseMemObject(shared));
    free((void *)flags);
    ck_ok(clReleaseCommandQueue(plain));
    ck_ok(clReleaseKernel(hold));
    ck_ok(clReleaseProgram(program));
}

static void fill(int t, cl_int value) {
    for (int i = 0; i < N; i++)
        host[t][i] = value;
}

static void to(int t, cl_bool blocking) {
    ck_ok(clEnqueueWriteBuffer(plain, tile[t], blocking, 0, BYTES, host[t], 0, NULL, NULL));
}

static void from(int t) {
    ck_ok(clEnqueueReadBuffer(plain, tile[t], CL_FALSE, 0, BYTES, host[t], 0, NULL, NULL));
}

static cl_event run(int in, int out) {
    const size_t all = N;
    const cl_long longest = LONGEST;
    cl_event event;

    flags[0] = flags[1] = 0;
    ck_ok(clSetKernelArg(hold, 0, sizeof(cl_mem), &tile[in]));
    ck_ok(clSetKernelArg(hold, 1, sizeof(cl_mem), &tile[out]));
    ck_ok(clSetKernelArg(hold, 2, sizeof(cl_mem), &shared));
    ck_ok(clSetKernelArg(hold, 3, sizeof(longest), &longest));
    ck_ok(clEnqueueNDRangeKernel(plain, hold, 1, NULL, &all, NULL, 0, NULL, &event));
    ck_ok(clFlush(plain));
    return event;
}

static void wait_until_it_runs(void) {
    for (int i = 0; i < 5000 && !flags[0]; i++)
        usleep(1000);
    ck_assert_msg(flags[0], "the kernel does not begin");
}

/* It runs, and nobody has let it end: what was seen by now overlapped it. */
static void let_end(cl_event kernel) {
    ck_assert_int_gt(event_status(kernel), CL_COMPLETE);
    flags[1] = 1;
    ck_ok(clFinish(plain));
    ck_assert_int_eq(event_status(kernel), CL_COMPLETE);
    ck_ok(clReleaseEvent(kernel));
}

static void all_are(int t, cl_int wanted) {
    for (int i = 0; i < N; i++)
        if (host[t][i] != wanted)
            ck_abort_msg("tile %c: element %d is %d, expected %d", 'a' + t, i, host[t][i], wanted);
}

static int repeats(void) { return (int)test_size("TUTTI_TEST_ROUNDS", 1000) / 10; }

/* T-04 to T-06: the kernel, a write, a read, and the kernel's own result. */
static void beside(bool written, bool read) {
    skip_if(!no_device_memory(), "a device has memory of its own");
    begin();
    for (int round = 0; round < repeats(); round++) {
        fill(A, 1);
        fill(B, 0);
        fill(C, 2);
        fill(D, 3);
        to(A, CL_FALSE);
        to(C, CL_FALSE);
        ck_ok(clFinish(plain));
        fill(C, 0);
        cl_event kernel = run(A, B);
        wait_until_it_runs();
        if (written)
            to(D, CL_TRUE);
        if (read) {
            from(C);
            ck_ok(clFlush(plain));
            ck_assert_msg(becomes(&host[C][N - 1], 2, 10000), "the read waits for the kernel");
        }
        from(B);
        ck_ok(clFlush(plain));
        ck_assert_msg(!becomes(&host[B][N - 1], 1, 2),
                      "the kernel's result is read before its end");
        let_end(kernel);
        all_are(B, 1);
        all_are(C, read ? 2 : 0);
        fill(D, 0);
        from(D);
        ck_ok(clFinish(plain));
        if (written)
            all_are(D, 3);
    }
    end();
}

START_TEST(t04_a_write) { beside(true, false); }
END_TEST

START_TEST(t05_a_read) { beside(false, true); }
END_TEST

START_TEST(t06_both) { beside(true, true); }
END_TEST

/* T-07: what it reads is overwritten, and read again. */
START_TEST(t07_a_write_to_what_it_reads) {
    skip_if(!no_device_memory(), "a device has memory of its own");
    begin();
    for (int round = 0; round < repeats(); round++) {
        fill(A, 1);
        fill(B, 0);
        to(A, CL_FALSE);
        ck_ok(clFinish(plain));
        fill(A, 2);
        cl_event kernel = run(A, B);
        wait_until_it_runs();
        to(A, CL_FALSE);
        from(B);
        from(A);
        ck_ok(clFlush(plain));
        let_end(kernel);
        all_are(A, 2);
        all_are(B, 1);
    }
    end();
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {t04_a_write, t05_a_read, t06_both, t07_a_write_to_what_it_reads};

    test_prefer_pocl();
    return test_main(argc, argv, tests, COUNT(tests));
}
