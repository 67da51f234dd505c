/* SPDX-License-Identifier: MIT */
/* Samplers: OpenCL 1.2, section 5.5; 3.0 for samplers with properties. */
#include "virtual_device/sampler.h"

#include "entry_points.h"

#include <stdlib.h>
#include <string.h>

static cl_int check(cl_context context, cl_bool normalized, cl_addressing_mode addressing,
                    cl_filter_mode filter) {
    if (!TUTTI_IS_CONTEXT(context))
        return CL_INVALID_CONTEXT;
    if (normalized != CL_TRUE && normalized != CL_FALSE)
        return CL_INVALID_VALUE;
    if (addressing < CL_ADDRESS_NONE || addressing > CL_ADDRESS_MIRRORED_REPEAT)
        return CL_INVALID_VALUE;
    if (filter != CL_FILTER_NEAREST && filter != CL_FILTER_LINEAR)
        return CL_INVALID_VALUE;
    return tutti_device_limits()->image_support ? CL_SUCCESS : CL_INVALID_OPERATION;
}

CL_API_ENTRY cl_sampler CL_API_CALL tutti_clCreateSampler(cl_context context,
                                                          cl_bool normalized_coords,
                                                          cl_addressing_mode addressing_mode,
                                                          cl_filter_mode filter_mode,
                                                          cl_int *errcode_ret) {
    cl_sampler sampler = NULL;
    cl_int error = check(context, normalized_coords, addressing_mode, filter_mode);
    if (error == CL_SUCCESS)
        sampler = tutti_sampler_create(context, normalized_coords, addressing_mode, filter_mode,
                                       NULL, 0, &error);
    if (errcode_ret)
        *errcode_ret = error;
    return sampler;
}

/* Reads the list; CL_INVALID_VALUE for what is unknown or there twice. */
static cl_int read_properties(const cl_sampler_properties *properties, cl_bool *normalized,
                              cl_addressing_mode *addressing, cl_filter_mode *filter,
                              size_t *count) {
    bool seen[3] = {false, false, false};
    size_t i = 0;
    for (; properties && properties[i]; i += 2) {
        cl_sampler_properties value = properties[i + 1];
        int which;
        switch (properties[i]) {
        case CL_SAMPLER_NORMALIZED_COORDS:
            *normalized = (cl_bool)value;
            which = 0;
            break;
        case CL_SAMPLER_ADDRESSING_MODE:
            *addressing = (cl_addressing_mode)value;
            which = 1;
            break;
        case CL_SAMPLER_FILTER_MODE:
            *filter = (cl_filter_mode)value;
            which = 2;
            break;
        default:
            return CL_INVALID_VALUE;
        }
        if (seen[which])
            return CL_INVALID_VALUE;
        seen[which] = true;
    }
    *count = properties ? i + 1 : 0;
    return CL_SUCCESS;
}

CL_API_ENTRY cl_sampler CL_API_CALL tutti_clCreateSamplerWithProperties(
    cl_context context, const cl_sampler_properties *sampler_properties, cl_int *errcode_ret) {
    cl_bool normalized = CL_TRUE;
    cl_addressing_mode addressing = CL_ADDRESS_CLAMP;
    cl_filter_mode filter = CL_FILTER_NEAREST;
    cl_sampler sampler = NULL;
    size_t count = 0;
    cl_int error = CL_INVALID_CONTEXT;
    if (TUTTI_IS_CONTEXT(context))
        error = read_properties(sampler_properties, &normalized, &addressing, &filter, &count);
    if (error == CL_SUCCESS)
        error = check(context, normalized, addressing, filter);
    cl_sampler_properties *copy = NULL;
    if (error == CL_SUCCESS && count) {
        copy = malloc(count * sizeof(*copy));
        if (copy)
            memcpy(copy, sampler_properties, count * sizeof(*copy));
        else
            error = CL_OUT_OF_HOST_MEMORY;
    }
    if (error == CL_SUCCESS)
        sampler = tutti_sampler_create(context, normalized, addressing, filter, copy,
                                       count * sizeof(*copy), &error);
    if (errcode_ret)
        *errcode_ret = error;
    return sampler;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clRetainSampler(cl_sampler sampler) {
    if (!TUTTI_IS_SAMPLER(sampler))
        return CL_INVALID_SAMPLER;
    tutti_object_user_retain(sampler);
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clReleaseSampler(cl_sampler sampler) {
    if (!TUTTI_IS_SAMPLER(sampler))
        return CL_INVALID_SAMPLER;
    return tutti_object_user_release(sampler) ? CL_SUCCESS : CL_INVALID_SAMPLER;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clGetSamplerInfo(cl_sampler sampler,
                                                       cl_sampler_info param_name,
                                                       size_t param_value_size, void *param_value,
                                                       size_t *param_value_size_ret) {
    if (!TUTTI_IS_SAMPLER(sampler))
        return CL_INVALID_SAMPLER;
    switch (param_name) {
    case CL_SAMPLER_REFERENCE_COUNT:
        TUTTI_RETURN_INFO(cl_uint, atomic_load(&sampler->object.user_refs));
    case CL_SAMPLER_CONTEXT:
        TUTTI_RETURN_INFO(cl_context, sampler->context);
    case CL_SAMPLER_NORMALIZED_COORDS:
        TUTTI_RETURN_INFO(cl_bool, sampler->normalized);
    case CL_SAMPLER_ADDRESSING_MODE:
        TUTTI_RETURN_INFO(cl_addressing_mode, sampler->addressing);
    case CL_SAMPLER_FILTER_MODE:
        TUTTI_RETURN_INFO(cl_filter_mode, sampler->filter);
    case CL_SAMPLER_PROPERTIES:
        return tutti_info_return(sampler->properties, sampler->property_bytes, param_value_size,
                                 param_value, param_value_size_ret);
    default:
        return CL_INVALID_VALUE;
    }
}
