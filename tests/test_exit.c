/* SPDX-License-Identifier: MIT */
/* Only Tutti: processes that end with commands under way. The ends are children of the tests. */
#include "support.h"

#include <time.h>
#include <unistd.h>

enum { N = 1024, BYTES = N * sizeof(cl_int), ENDS = 6 };

/* What the ends leave behind, as programs do. */
static cl_program program;
static cl_kernel kernels[2];
static cl_mem buffer;

static void make(const char *source, const char *first, const char *second) {
    program = make_program(source);
    kernels[0] = make_kernel(program, first);
    kernels[1] = make_kernel(program, second);
    buffer = make_buffer(0, BYTES, NULL);
    for (int i = 0; i < 2; i++)
        ck_ok(clSetKernelArg(kernels[i], 0, sizeof(buffer), &buffer));
}

static void set_value(cl_kernel kernel, cl_int value) {
    ck_ok(clSetKernelArg(kernel, 1, sizeof(value), &value));
}

/* No cache of PoCL's has these kernels: they are compiled when they are first executed. */
START_TEST(unknown_kernels) {
    char source[512];

    snprintf(source, sizeof(source),
             "kernel void f(global int *out, int n) { float x = n;\n"
             "for (int i = 0; i < n; i++) x = sin(x) * %ld.0f + cos(x * i); *out = x; }\n"
             "kernel void g(global int *out, int n) { float x = n;\n"
             "for (int i = 0; i < n; i++) x = exp(x) * %ld.0f + pow(x, i); *out = x; }\n",
             (long)getpid(), (long)time(NULL) % 100000);
    make(source, "f", "g");
    for (int i = 0; i < 2; i++) {
        set_value(kernels[i], 4);
        launch(kernels[i], N);
    }
    ck_ok(clFlush(queue));
    usleep((useconds_t)test_size("TUTTI_TEST_END", 0));
    exit(0);
}
END_TEST

/* The gate never opens. */
START_TEST(gated_kernel) {
    cl_event gate = make_user_event();
    size_t count = N;

    make(common_source, "add", "add");
    set_value(kernels[0], 1);
    ck_ok(clEnqueueNDRangeKernel(queue, kernels[0], 1, NULL, &count, NULL, 1, &gate, NULL));
    ck_ok(clFlush(queue));
    exit(0);
}
END_TEST

static void compute(void) {
    cl_int values[N] = {0};

    write_ints(buffer, values, N);
    for (cl_int i = 1; i <= 4; i++) {
        set_value(kernels[0], i);
        launch(kernels[0], N);
    }
    read_ints(buffer, values, N);
    if (values[N - 1] != 10)
        _exit(1);
}

/* What a program registers, or the destructors of its objects, may use OpenCL. */
START_TEST(handler) {
    make(common_source, "add", "add");
    atexit(compute);
    exit(0);
}
END_TEST

START_TEST(while_kernels_are_compiled) {
    for (int i = 0; i < ENDS; i++) {
        char wait[32];

        snprintf(wait, sizeof(wait), "TUTTI_TEST_END=%d", i * 20000);
        test_run_again(wait, "--end unknown_kernels");
    }
}
END_TEST

START_TEST(behind_a_gate) { test_run_again("", "--end gated_kernel"); }
END_TEST

START_TEST(in_handlers) { test_run_again("", "--end handler"); }
END_TEST

int main(int argc, char **argv) {
    const TTest *const ends[] = {unknown_kernels, gated_kernel, handler};
    const TTest *const tests[] = {while_kernels_are_compiled, behind_a_gate, in_handlers};

    if (argc == 3 && strcmp(argv[1], "--end") == 0)
        return test_main(argc - 1, argv + 1, ends, COUNT(ends));
    return test_main(argc, argv, tests, COUNT(tests));
}
