/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: NVIDIA's driver says CL_KERNEL_WORK_GROUP_SIZE is 256 for every kernel and takes
 * work-groups as large as the device's, so a program that asks the device alone must work. PoCL
 * stands in for it.
 */
#include "pocl_gpu.h"

enum { SAID = 256, N = 4096 };

static cl_int CL_API_CALL get_platform_info(cl_platform_id of, cl_platform_info what, size_t size,
                                            void *value, size_t *size_ret) {
    static const char name[] = "NVIDIA CUDA";
    if (what != CL_PLATFORM_NAME)
        return real.clGetPlatformInfo(of, what, size, value, size_ret);
    if (size_ret)
        *size_ret = sizeof(name);
    if (value)
        memcpy(value, name, size < sizeof(name) ? size : sizeof(name));
    return CL_SUCCESS;
}

static cl_int CL_API_CALL get_work_group_info(cl_kernel kernel, cl_device_id of,
                                              cl_kernel_work_group_info what, size_t size,
                                              void *value, size_t *size_ret) {
    cl_int result = real.clGetKernelWorkGroupInfo(kernel, of, what, size, value, size_ret);
    if (what == CL_KERNEL_WORK_GROUP_SIZE && result == CL_SUCCESS && value)
        *(size_t *)value = SAID;
    return result;
}

START_TEST(groups_as_large_as_the_devices) {
    static cl_int values[N];
    const size_t items = N;
    size_t most = get_info(size_t, clGetDeviceInfo, device, CL_DEVICE_MAX_WORK_GROUP_SIZE), said;
    cl_program program = make_program(common_source);
    cl_kernel add = make_kernel(program, "add");
    cl_mem mem = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(values), values);
    cl_int sum = 0;

    ck_ok(clGetKernelWorkGroupInfo(add, device, CL_KERNEL_WORK_GROUP_SIZE, sizeof(said), &said,
                                   NULL));
    ck_assert_uint_eq(said, SAID); /* what it says is its own */
    ck_assert_uint_gt(most, SAID);
    ck_ok(clSetKernelArg(add, 0, sizeof(mem), &mem));
    for (size_t local = SAID; local <= most && local <= N; local *= 2) {
        const cl_int value = (cl_int)local;
        ck_ok(clSetKernelArg(add, 1, sizeof(value), &value));
        ck_ok(clEnqueueNDRangeKernel(queue, add, 1, NULL, &items, &local, 0, NULL, NULL));
        sum += value;
    }
    most *= 2; /* more than it has */
    ck_assert_int_ne(clEnqueueNDRangeKernel(queue, add, 1, NULL, &most, &most, 0, NULL, NULL),
                     CL_SUCCESS);
    read_ints(mem, values, N);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(values[i], sum);
    ck_ok(clReleaseMemObject(mem));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}
END_TEST

static void change(cl_icd_dispatch *table) {
    table->clGetPlatformInfo = get_platform_info;
    table->clGetKernelWorkGroupInfo = get_work_group_info;
}

int main(int argc, char **argv) {
    const TTest *const tests[] = {groups_as_large_as_the_devices};

    if (!pocl_gpu_begin("pthread", change))
        return 0;
    unsetenv("TUTTI_DEVICES"); /* it has another name now */
    return test_main(argc, argv, tests, COUNT(tests));
}
