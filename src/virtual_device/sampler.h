/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_SAMPLER_H
#define TUTTI_SAMPLER_H

#include "context.h"
#include "virtual_device/device.h"

/* A sampler (OpenCL 1.2, 5.5): a real one on each device that has it. */
struct _cl_sampler {
    struct tutti_object object;
    cl_context context; /* retained */
    cl_bool normalized;
    cl_addressing_mode addressing;
    cl_filter_mode filter;
    cl_sampler_properties *properties; /* as given to …WithProperties, the final 0 included */
    size_t property_bytes;
    cl_sampler real[TUTTI_MAX_DEVICES]; /* NULL where the driver refuses it, or has no images */
};

/* Takes over `properties`. On failure NULL and the lead's error, or CL_OUT_OF_HOST_MEMORY. */
cl_sampler tutti_sampler_create(cl_context context, cl_bool normalized,
                                cl_addressing_mode addressing, cl_filter_mode filter,
                                cl_sampler_properties *properties, size_t property_bytes,
                                cl_int *error);

/* Bit d: real device d has it. */
unsigned tutti_sampler_devices(const struct _cl_sampler *sampler);

#endif
