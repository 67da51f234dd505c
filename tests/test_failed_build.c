/* SPDX-License-Identifier: MIT */
/* Only Tutti: what PoCL does not compile is given to it once, and its log is the program's. */
#include "pocl_gpu.h"

#include <stdatomic.h>

static atomic_uint built, compiled;

static cl_int CL_API_CALL build(cl_program program, cl_uint count, const cl_device_id *devices,
                                const char *options, void(CL_CALLBACK *notify)(cl_program, void *),
                                void *data) {
    atomic_fetch_add(&built, 1);
    return real.clBuildProgram(program, count, devices, options, notify, data);
}

static cl_int CL_API_CALL compile(cl_program program, cl_uint count, const cl_device_id *devices,
                                  const char *options, cl_uint header_count,
                                  const cl_program *headers, const char **names,
                                  void(CL_CALLBACK *notify)(cl_program, void *), void *data) {
    atomic_fetch_add(&compiled, 1);
    return real.clCompileProgram(program, count, devices, options, header_count, headers, names,
                                 notify, data);
}

static cl_program make_bad_program(void) {
    const char *source = "kernel void set(global int *data) { data[0] = nobody_knows_this; }";
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &error);
    ck_ok(error);
    return program;
}

static void ck_log(cl_program program) {
    char log[4096] = "";
    ck_ok(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof(log), log, NULL));
    ck_assert_msg(strstr(log, "nobody_knows_this"), "the log is '%s'", log);
    ck_ok(clReleaseProgram(program));
}

START_TEST(builds_once) {
    cl_program program = make_bad_program();
    ck_assert_int_eq(clBuildProgram(program, 1, &device, "", NULL, NULL), CL_BUILD_PROGRAM_FAILURE);
    ck_assert_uint_eq(atomic_load(&built), 1);
    ck_log(program);
}
END_TEST

START_TEST(compiles_once) {
    cl_program program = make_bad_program();
    ck_assert_int_eq(clCompileProgram(program, 1, &device, "", 0, NULL, NULL, NULL, NULL),
                     CL_COMPILE_PROGRAM_FAILURE);
    ck_assert_uint_eq(atomic_load(&compiled), 1);
    ck_log(program);
}
END_TEST

static void change(cl_icd_dispatch *driver) {
    driver->clBuildProgram = build;
    driver->clCompileProgram = compile;
}

int main(int argc, char **argv) {
    const TTest *const tests[] = {builds_once, compiles_once};
    return test_main_gpu(argc, argv, tests, COUNT(tests), change);
}
