/* SPDX-License-Identifier: MIT */
/*
 * PoCL's `pthread` device stands in for a GPU, for tests whose calls come in between; others of
 * PoCL's may be beside it.
 */
#ifndef TUTTI_TESTS_POCL_GPU_H
#define TUTTI_TESTS_POCL_GPU_H

#include "pocl_table.h"

/* Compute units, however many cores there are: by these kernels are small or not. */
#define GPU_UNITS 2

static cl_icd_dispatch real; /* what was in the driver's table */

/* Not `basic`, which later versions call a minimal CPU. */
static bool is_gpu(cl_device_id one) {
    char name[256] = "";
    real.clGetDeviceInfo(one, CL_DEVICE_NAME, sizeof(name), name, NULL);
    return !strstr(name, "basic") && !strstr(name, "minimal");
}

static cl_int CL_API_CALL get_device_info(cl_device_id of, cl_device_info what, size_t size,
                                          void *value, size_t *size_ret) {
    cl_int result = real.clGetDeviceInfo(of, what, size, value, size_ret);
    if (result != CL_SUCCESS || !value || !is_gpu(of))
        return result;
    if (what == CL_DEVICE_TYPE)
        *(cl_device_type *)value = CL_DEVICE_TYPE_GPU;
    else if (what == CL_DEVICE_MAX_COMPUTE_UNITS && *(cl_uint *)value > GPU_UNITS)
        *(cl_uint *)value = GPU_UNITS;
    return result;
}

/*
 * Before test_main: these devices of PoCL's are there. `change` puts the test's calls into the
 * driver's table. False: PoCL is not there, which was told.
 */
static bool pocl_gpu_begin(const char *devices, void (*change)(cl_icd_dispatch *table)) {
    cl_platform_id pocl;
    setenv("POCL_DEVICES", devices, 1);
    setenv("TUTTI_DEVICES", "portable", 1);
    setenv("TUTTI_MODELS", "none", 1);
    cl_icd_dispatch *table = pocl_table(&pocl);
    if (!table) {
        puts("1..0 # SKIP PoCL is not there");
        return false;
    }
    real = *table;
    table->clGetDeviceInfo = get_device_info;
    if (change)
        change(table);
    return true;
}

/* Instead of test_main, with one device. */
static inline int test_main_gpu(int argc, char **argv, const TTest *const *tests, size_t count,
                                void (*change)(cl_icd_dispatch *table)) {
    return pocl_gpu_begin("pthread", change) ? test_main(argc, argv, tests, count) : 0;
}

#endif
