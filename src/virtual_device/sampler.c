/* SPDX-License-Identifier: MIT */
#include "virtual_device/sampler.h"

#include "recycler.h"

#include <stdlib.h>

static void destroy(void *object) {
    cl_sampler sampler = object;
    const struct tutti_device_list *list = tutti_devices();
    for (unsigned d = 0; d < list->count; d++)
        if (sampler->real[d])
            list->device[d]->dispatch->clReleaseSampler(sampler->real[d]);
    free(sampler->properties);
    cl_context context = sampler->context;
    tutti_object_free(sampler);
    tutti_object_release(context);
}

cl_sampler tutti_sampler_create(cl_context context, cl_bool normalized,
                                cl_addressing_mode addressing, cl_filter_mode filter,
                                cl_sampler_properties *properties, size_t property_bytes,
                                cl_int *error) {
    const struct tutti_device_list *list = tutti_devices();
    cl_sampler sampler = tutti_recycler_take_zeroed(sizeof(*sampler));
    if (!sampler) {
        free(properties);
        *error = CL_OUT_OF_HOST_MEMORY;
        return NULL;
    }
    tutti_object_init(&sampler->object, TUTTI_SAMPLER, destroy);
    sampler->context = tutti_object_retain(context);
    sampler->normalized = normalized;
    sampler->addressing = addressing;
    sampler->filter = filter;
    sampler->properties = properties;
    sampler->property_bytes = property_bytes;
    *error = CL_INVALID_OPERATION; /* no images at all */
    for (unsigned d = 0; d < list->count; d++) {
        const struct tutti_real_device *device = list->device[d];
        cl_int result = CL_INVALID_OPERATION;
        if (device->image_support && device->place.context)
            sampler->real[d] = device->dispatch->clCreateSampler(device->place.context, normalized,
                                                                 addressing, filter, &result);
        if (d == 0)
            *error = result;
    }
    if (sampler->real[0]) {
        *error = CL_SUCCESS;
        return sampler;
    }
    tutti_object_release(sampler);
    return NULL;
}

unsigned tutti_sampler_devices(const struct _cl_sampler *sampler) {
    unsigned devices = 0;
    for (unsigned d = 0; d < TUTTI_MAX_DEVICES; d++)
        if (sampler->real[d])
            devices |= 1u << d;
    return devices;
}
