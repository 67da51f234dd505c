/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: a GPU whose memory others have, so that its driver makes no context. PoCL stands in
 * for two.
 */
#include "pocl_gpu.h"
#include "traffic.h"

enum { N = 1024, TIMES = 20 };
#define FREE_MEMORY_AMD 0x4039

static int full; /* which one: 0 or 1; 2: none */

static bool is_full(cl_device_id of) {
    cl_platform_id pocl;
    cl_device_id both[3] = {NULL, NULL, NULL};
    real.clGetDeviceInfo(of, CL_DEVICE_PLATFORM, sizeof(pocl), &pocl, NULL);
    real.clGetDeviceIDs(pocl, CL_DEVICE_TYPE_ALL, 2, both, NULL);
    return of == both[full];
}

static cl_int CL_API_CALL tell_free(cl_device_id of, cl_device_info what, size_t size, void *value,
                                    size_t *size_ret) {
    if (what != FREE_MEMORY_AMD)
        return get_device_info(of, what, size, value, size_ret);
    size_t free[2] = {is_full(of) ? 0 : (size_t)1 << 30, 0};
    if (value && size < sizeof(free))
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, free, sizeof(free));
    if (size_ret)
        *size_ret = sizeof(free);
    return CL_SUCCESS;
}

static cl_context CL_API_CALL create_context(const cl_context_properties *properties, cl_uint count,
                                             const cl_device_id *devices,
                                             void(CL_CALLBACK *notify)(const char *, const void *,
                                                                       size_t, void *),
                                             void *user_data, cl_int *result) {
    for (cl_uint i = 0; i < count; i++)
        if (is_full(devices[i])) {
            if (result)
                *result = CL_OUT_OF_HOST_MEMORY;
            return NULL;
        }
    return real.clCreateContext(properties, count, devices, notify, user_data, result);
}

static void change(cl_icd_dispatch *table) {
    table->clGetDeviceInfo = tell_free;
    table->clCreateContext = create_context;
}

/* The other one does all. */
START_TEST(a_program) {
    static cl_int values[N];
    cl_program program = make_program(common_source);
    cl_kernel add = make_kernel(program, "add");
    cl_mem buffer[2];
    for (int b = 0; b < 2; b++)
        buffer[b] = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(values), values);
    for (int i = 0; i < TIMES; i++)
        for (int b = 0; b < 2; b++) {
            cl_int by = b + 1;
            ck_ok(clSetKernelArg(add, 0, sizeof(cl_mem), &buffer[b]));
            ck_ok(clSetKernelArg(add, 1, sizeof(by), &by));
            launch(add, N);
        }
    for (int b = 0; b < 2; b++) {
        read_ints(buffer[b], values, N);
        ck_all(values, N, TIMES * (b + 1));
        ck_ok(clReleaseMemObject(buffer[b]));
    }
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}
END_TEST

/* StarPU measures links once, for which it needs all of them. */
START_TEST(another_one) {
    test_run_again("", "--none");
    test_run_again("", "--second");
}
END_TEST

/* Nothing is built without it: the program is told. */
static int ask_lead(void) {
    cl_platform_id found[8];
    cl_uint count = 0;
    cl_int result = CL_SUCCESS;
    cl_device_id one = NULL;
    clGetPlatformIDs(8, found, &count);
    for (cl_uint p = 0; p < count && !one; p++) {
        char name[64] = "";
        clGetPlatformInfo(found[p], CL_PLATFORM_NAME, sizeof(name), name, NULL);
        if (strcmp(name, "Tutti") == 0)
            clGetDeviceIDs(found[p], CL_DEVICE_TYPE_ALL, 1, &one, NULL);
    }
    cl_context made = one ? clCreateContext(NULL, 1, &one, NULL, NULL, &result) : NULL;
    printf("%s\n", cl_error_name(result));
    return one && !made ? 0 : 1;
}

START_TEST(the_lead) {
    ck_assert_ptr_nonnull(strstr(test_run_again("", "--first"), "CL_DEVICE_NOT_AVAILABLE"));
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {another_one, the_lead}, *const child[] = {a_program};
    bool second = argc == 2 && strcmp(argv[1], "--second") == 0;
    bool first = argc == 2 && strcmp(argv[1], "--first") == 0;
    bool none = argc == 2 && strcmp(argv[1], "--none") == 0;
    if (!second && !first && !none)
        return test_main(argc, argv, tests, COUNT(tests));
    full = none ? 2 : second;
    if (!pocl_gpu_begin("pthread pthread", change))
        return 0;
    return first ? ask_lead() : test_main(1, argv, child, COUNT(child));
}
