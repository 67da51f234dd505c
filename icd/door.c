/* SPDX-License-Identifier: MIT */
/*
 * What the loader finds: the three exported symbols (cl_khr_icd, OpenCL extension specification).
 * The platform is returned without any other work: the loader holds its locks here.
 */
#include "api/traffic.h"
#include "entry_points.h"
#include "sched/statistics.h"
#include "virtual_device/device.h"

#include <CL/cl_ext.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

/* clIcdGetPlatformIDsKHR and, in the table, clGetPlatformIDs (OpenCL 1.2, 4.1). */
CL_API_ENTRY cl_int CL_API_CALL tutti_clGetPlatformIDs(cl_uint num_entries,
                                                       cl_platform_id *platforms,
                                                       cl_uint *num_platforms) {
    if ((platforms && num_entries == 0) || (!platforms && !num_platforms))
        return CL_INVALID_VALUE;
    if (platforms)
        platforms[0] = tutti_platform();
    if (num_platforms)
        *num_platforms = 1;
    return CL_SUCCESS;
}

static void *find(const char *name) {
    static const struct {
        const char *name;
        void *function;
    } functions[] = {
        {"clIcdGetPlatformIDsKHR", (void *)tutti_clGetPlatformIDs},
        {"clGetPlatformInfo", (void *)tutti_clGetPlatformInfo},
        {"clCreateProgramWithILKHR", (void *)tutti_clCreateProgramWithIL},
        {"clGetKernelSubGroupInfoKHR", (void *)tutti_clGetKernelSubGroupInfoKHR},
        {"clGetDeviceTaskCountsTUTTI", (void *)tutti_clGetDeviceTaskCountsTUTTI},
        {"clGetMemObjectTrafficTUTTI", (void *)tutti_clGetMemObjectTrafficTUTTI},
    };
    for (size_t i = 0; name && i < sizeof(functions) / sizeof(functions[0]); i++)
        if (strcmp(name, functions[i].name) == 0)
            return functions[i].function;
    return NULL;
}

CL_API_ENTRY void *CL_API_CALL tutti_clGetExtensionFunctionAddress(const char *function_name) {
    return find(function_name);
}

CL_API_ENTRY void *CL_API_CALL
tutti_clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char *function_name) {
    return platform == tutti_platform() ? find(function_name) : NULL;
}

EXPORTED CL_API_ENTRY cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint num_entries,
                                                                cl_platform_id *platforms,
                                                                cl_uint *num_platforms) {
    return tutti_clGetPlatformIDs(num_entries, platforms, num_platforms);
}

EXPORTED CL_API_ENTRY void *CL_API_CALL clGetExtensionFunctionAddress(const char *function_name) {
    return find(function_name);
}

EXPORTED CL_API_ENTRY cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id platform,
                                                           cl_platform_info param_name,
                                                           size_t param_value_size,
                                                           void *param_value,
                                                           size_t *param_value_size_ret) {
    return tutti_clGetPlatformInfo(platform, param_name, param_value_size, param_value,
                                   param_value_size_ret);
}
