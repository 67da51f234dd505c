/* SPDX-License-Identifier: MIT */
/* Only Tutti: a driver builds what it has built lately once, as far as nobody can tell. */
#define CL_TARGET_OPENCL_VERSION 300
#include "pocl_gpu.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { N = 16, KEPT = 64, THREADS = 4 };

static atomic_uint built;
static atomic_bool has_variables; /* does the device have variables of a program's scope? */

static cl_int CL_API_CALL build(cl_program program, cl_uint count, const cl_device_id *devices,
                                const char *options, void(CL_CALLBACK *notify)(cl_program, void *),
                                void *data) {
    atomic_fetch_add(&built, 1);
    return real.clBuildProgram(program, count, devices, options, notify, data);
}

static cl_int CL_API_CALL tell(cl_device_id of, cl_device_info what, size_t size, void *value,
                               size_t *size_ret) {
    cl_int result = get_device_info(of, what, size, value, size_ret);
    if (what == CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE && result == CL_SUCCESS && value)
        *(size_t *)value = atomic_load(&has_variables) ? 65536 : 0;
    return result;
}

/* What the program sets. */
static int run(cl_context in, cl_program program) {
    const size_t items = N;
    cl_int seen[N], failed;
    cl_command_queue own = clCreateCommandQueueWithProperties(in, device, NULL, &failed);
    ck_ok(failed);
    cl_mem data = clCreateBuffer(in, 0, sizeof(seen), NULL, &failed);
    ck_ok(failed);
    cl_kernel kernel = clCreateKernel(program, "set", &failed);
    ck_ok(failed);
    ck_ok(clSetKernelArg(kernel, 0, sizeof(data), &data));
    ck_ok(clEnqueueNDRangeKernel(own, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
    ck_ok(clEnqueueReadBuffer(own, data, CL_TRUE, 0, sizeof(seen), seen, 0, NULL, NULL));
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseMemObject(data));
    ck_ok(clReleaseCommandQueue(own));
    for (int i = 1; i < N; i++)
        ck_assert_int_eq(seen[i], seen[0]);
    return seen[0];
}

static int run_built(cl_context in, cl_program program, const char *options) {
    ck_ok(clBuildProgram(program, 1, &device, options, NULL, NULL));
    int seen = run(in, program);
    ck_ok(clReleaseProgram(program));
    return seen;
}

/* In a context of its own. */
static int run_source(const char *source, const char *options) {
    cl_int failed;
    cl_context own = clCreateContext(NULL, 1, &device, NULL, NULL, &failed);
    ck_ok(failed);
    cl_program program = clCreateProgramWithSource(own, 1, &source, NULL, &failed);
    ck_ok(failed);
    int seen = run_built(own, program, options);
    ck_ok(clReleaseContext(own));
    return seen;
}

static unsigned builds(void) { return atomic_exchange(&built, 0); }

START_TEST(once_for_each_source_and_options) {
    static const char one[] = "kernel void set(global int *x) { x[get_global_id(0)] = BY; }";
    static const char two[] = "kernel void set(global int *x) { x[get_global_id(0)] = -BY; }";
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(run_source(one, "-D BY=1"), 1);
        ck_assert_uint_eq(builds(), i == 0);
        ck_assert_int_eq(run_source(one, "-D BY=2"), 2);
        ck_assert_uint_eq(builds(), i == 0);
        ck_assert_int_eq(run_source(two, "-D BY=1"), -1);
        ck_assert_uint_eq(builds(), i == 0);
    }
}
END_TEST

START_TEST(while_another_program_has_it) {
    static const char source[] = "kernel void set(global int *x) { x[get_global_id(0)] = 3; }";
    cl_program first = make_program(source), second = make_program(source);
    ck_assert_uint_eq(builds(), 1);
    ck_assert_int_eq(run(context, first), 3);
    ck_ok(clReleaseProgram(first));
    ck_assert_int_eq(run(context, second), 3);
    /* And again with other options, which the others do not get. */
    ck_ok(clBuildProgram(second, 1, &device, "-cl-opt-disable", NULL, NULL));
    ck_assert_uint_eq(builds(), 1);
    ck_assert_int_eq(run(context, second), 3);
    ck_ok(clReleaseProgram(second));
}
END_TEST

START_TEST(of_its_binary) {
    static const char source[] = "kernel void set(global int *x) { x[get_global_id(0)] = 4; }";
    unsigned char bytes[8192], *place = bytes;
    const unsigned char *binary = bytes;
    size_t size = 0;
    cl_program program = make_program(source);
    ck_ok(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, NULL));
    ck_assert_uint_le(size, sizeof(bytes));
    ck_ok(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(place), &place, NULL));
    ck_ok(clReleaseProgram(program));
    builds();
    for (int i = 0; i < 3; i++) {
        program = clCreateProgramWithBinary(context, 1, &device, &size, &binary, NULL, &error);
        ck_ok(error);
        ck_assert_int_eq(run_built(context, program, ""), 4);
        ck_assert_uint_le(builds(), i == 0);
    }
}
END_TEST

START_TEST(its_log_is_told_again) {
    static const char source[] = "kernel void set(global int *x) {\n"
                                 "#warning take care\n"
                                 " x[get_global_id(0)] = 5; }";
    char log[2][4096] = {"", ""};
    for (int i = 0; i < 2; i++) {
        cl_program program = make_program(source);
        ck_ok(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof(log[i]), log[i],
                                    NULL));
        ck_ok(clReleaseProgram(program));
    }
    ck_assert_uint_eq(builds(), 1);
    ck_assert_str_eq(log[0], log[1]);
    ck_assert_msg(strstr(log[0], "take care"), "the log is '%s'", log[0]);
}
END_TEST

/* It may be another one the next time. */
START_TEST(not_what_reads_a_file) {
    char directory[] = "/tmp/tutti-built-XXXXXX", path[64], options[64];
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/value.h", directory);
    snprintf(options, sizeof(options), "-I %s", directory);
    for (int i = 6; i < 9; i++) {
        FILE *file = fopen(path, "w");
        ck_assert_ptr_nonnull(file);
        fprintf(file, "#define VALUE %d\n", i);
        fclose(file);
        ck_assert_int_eq(run_source("#include \"value.h\"\nkernel void set(global int *x) "
                                    "{ x[get_global_id(0)] = VALUE; }",
                                    options),
                         i);
        ck_assert_uint_eq(builds(), 1);
    }
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(directory), 0);
}
END_TEST

/* Which each program has for itself. */
START_TEST(not_where_programs_have_variables) {
    atomic_store(&has_variables, true);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(
            run_source("kernel void set(global int *x) { x[get_global_id(0)] = 9; }", ""), 9);
        ck_assert_uint_eq(builds(), 1);
    }
    atomic_store(&has_variables, false);
}
END_TEST

START_TEST(what_was_used_last_stays) {
    static const char source[] = "kernel void set(global int *x) { x[get_global_id(0)] = BY + 9; }";
    char options[32];
    for (int i = 1; i <= KEPT + 1; i++) { /* the first one is used in between */
        snprintf(options, sizeof(options), "-D BY=%d", i);
        ck_assert_int_eq(run_source(source, options), i + 9);
        ck_assert_uint_eq(builds(), 1);
        ck_assert_int_eq(run_source(source, "-D BY=1"), 10);
        ck_assert_uint_eq(builds(), 0);
    }
    ck_assert_int_eq(run_source(source, "-D BY=2"), 11);
    ck_assert_uint_eq(builds(), 1);
}
END_TEST

static void *build_in_turn(void *argument) {
    char options[32];
    for (int i = 0; i < 3 * THREADS; i++) {
        int by = (i + *(int *)argument) % THREADS;
        snprintf(options, sizeof(options), "-D BY=%d", by);
        ck_assert_int_eq(run_source("kernel void set(global int *x) "
                                    "{ x[get_global_id(0)] = BY + 100; }",
                                    options),
                         by + 100);
    }
    return NULL;
}

START_TEST(by_several_threads) {
    pthread_t thread[THREADS];
    int number[THREADS];
    for (int i = 0; i < THREADS; i++) {
        number[i] = i;
        ck_assert_int_eq(pthread_create(&thread[i], NULL, build_in_turn, &number[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    ck_assert_uint_le(builds(), THREADS * THREADS);
}
END_TEST

static void change(cl_icd_dispatch *driver) {
    driver->clBuildProgram = build;
    driver->clGetDeviceInfo = tell;
}

int main(int argc, char **argv) {
    const TTest *const tests[] = {once_for_each_source_and_options,
                                  while_another_program_has_it,
                                  of_its_binary,
                                  its_log_is_told_again,
                                  not_what_reads_a_file,
                                  not_where_programs_have_variables,
                                  what_was_used_last_stays,
                                  by_several_threads};
    return test_main_gpu(argc, argv, tests, COUNT(tests), change);
}
