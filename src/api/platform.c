/* SPDX-License-Identifier: MIT */
/* The platform: OpenCL 1.2, section 4.1. */
#include "config.h"
#include "entry_points.h"
#include "object.h"
#include "virtual_device/device.h"

#include <CL/cl_ext.h>

struct _cl_platform_id {
    struct tutti_object object;
};

static struct _cl_platform_id platform = {
    {.dispatch = &tutti_dispatch, .type = TUTTI_PLATFORM, .user_refs = 1, .refs = 1}};

cl_platform_id tutti_platform(void) { return &platform; }

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
        answer = "OpenCL 1.2 Tutti " PACKAGE_VERSION;
        break;
    case CL_PLATFORM_NAME:
        answer = "Tutti";
        break;
    case CL_PLATFORM_VENDOR:
        answer = "The Tutti authors";
        break;
    case CL_PLATFORM_EXTENSIONS:
        answer = "cl_khr_icd";
        break;
    case CL_PLATFORM_ICD_SUFFIX_KHR:
        answer = "TUTTI";
        break;
    default:
        return CL_INVALID_VALUE;
    }
    return tutti_info_return_string(answer, param_value_size, param_value, param_value_size_ret);
}
