/* SPDX-License-Identifier: MIT */
/* The platform: OpenCL 3.0, section 4.1. */
#include "entry_points.h"
#include "object.h"
#include "virtual_device/merged.h"

#include <CL/cl_ext.h>

/* One name; the array of names with versions depends on it. */
#define EXTENSIONS "cl_khr_icd"

struct _cl_platform_id {
    struct tutti_object object;
};

static struct _cl_platform_id platform = {
    {.dispatch = &tutti_dispatch, .type = TUTTI_PLATFORM, .user_refs = 1, .refs = 1}};

cl_platform_id tutti_platform(void) { return &platform; }

/* Queries of OpenCL 3.0; a platform below knows them not. */
static cl_int get_info_30(cl_platform_info param_name, size_t param_value_size, void *param_value,
                          size_t *param_value_size_ret) {
    const cl_name_version extension = {CL_MAKE_VERSION(1, 0, 0), EXTENSIONS};
    if (tutti_merged()->version < 300)
        return CL_INVALID_VALUE;
    switch (param_name) {
    case CL_PLATFORM_NUMERIC_VERSION:
        TUTTI_RETURN_INFO(cl_version, CL_MAKE_VERSION(3, 0, 0));
    case CL_PLATFORM_EXTENSIONS_WITH_VERSION:
        return tutti_info_return(&extension, sizeof(extension), param_value_size, param_value,
                                 param_value_size_ret);
    default:                            /* CL_PLATFORM_HOST_TIMER_RESOLUTION, since 2.1 */
        TUTTI_RETURN_INFO(cl_ulong, 1); /* tutti_runtime_now */
    }
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clGetPlatformInfo(cl_platform_id asked,
                                                        cl_platform_info param_name,
                                                        size_t param_value_size, void *param_value,
                                                        size_t *param_value_size_ret) {
    const char *answer;
    /* Which platform NULL means is up to the implementation; here there is one. */
    if (asked && asked != &platform)
        return CL_INVALID_PLATFORM;
    switch (param_name) {
    case CL_PLATFORM_PROFILE:
        answer = "FULL_PROFILE";
        break;
    case CL_PLATFORM_VERSION:
        answer = tutti_merged()->device_version;
        break;
    case CL_PLATFORM_NAME:
        answer = "Tutti";
        break;
    case CL_PLATFORM_VENDOR:
        answer = "The Tutti authors";
        break;
    case CL_PLATFORM_EXTENSIONS:
        answer = EXTENSIONS; /* asked for by loaders, under their locks: nothing is looked for */
        break;
    case CL_PLATFORM_ICD_SUFFIX_KHR:
        answer = "TUTTI";
        break;
    case CL_PLATFORM_NUMERIC_VERSION:
    case CL_PLATFORM_EXTENSIONS_WITH_VERSION:
    case CL_PLATFORM_HOST_TIMER_RESOLUTION:
        return get_info_30(param_name, param_value_size, param_value, param_value_size_ret);
    default:
        return CL_INVALID_VALUE;
    }
    return tutti_info_return_string(answer, param_value_size, param_value, param_value_size_ret);
}
