/* SPDX-License-Identifier: MIT */
#include "virtual_device/image.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

bool tutti_shape_equal(const struct tutti_shape *a, const struct tutti_shape *b) {
    return a->type == b->type && a->access == b->access &&
           a->format.image_channel_order == b->format.image_channel_order &&
           a->format.image_channel_data_type == b->format.image_channel_data_type &&
           a->size[0] == b->size[0] && a->size[1] == b->size[1] && a->size[2] == b->size[2];
}

unsigned tutti_image_dimensions(cl_mem_object_type type) {
    switch (type) {
    case CL_MEM_OBJECT_IMAGE1D:
    case CL_MEM_OBJECT_IMAGE1D_BUFFER:
        return 1;
    case CL_MEM_OBJECT_IMAGE2D:
    case CL_MEM_OBJECT_IMAGE1D_ARRAY:
        return 2;
    default:
        return 3;
    }
}

/* Channels of an order; 0: none that is known. Of those with an x only packed ones are (below). */
static size_t channels_of(cl_channel_order order) {
    switch (order) {
    case CL_R:
    case CL_A:
    case CL_INTENSITY:
    case CL_LUMINANCE:
    case CL_DEPTH:
        return 1;
    case CL_RG:
    case CL_RA:
        return 2;
    case CL_RGB:
    case CL_sRGB:
        return 3;
    case CL_RGBA:
    case CL_BGRA:
    case CL_ARGB:
    case CL_ABGR:
    case CL_sRGBA:
    case CL_sBGRA:
        return 4;
    default:
        return 0;
    }
}

/* Bytes of a channel, if each has its own; else 0. */
static size_t channel_bytes(cl_channel_type type) {
    switch (type) {
    case CL_SNORM_INT8:
    case CL_UNORM_INT8:
    case CL_SIGNED_INT8:
    case CL_UNSIGNED_INT8:
        return 1;
    case CL_SNORM_INT16:
    case CL_UNORM_INT16:
    case CL_SIGNED_INT16:
    case CL_UNSIGNED_INT16:
    case CL_HALF_FLOAT:
        return 2;
    case CL_SIGNED_INT32:
    case CL_UNSIGNED_INT32:
    case CL_FLOAT:
        return 4;
    default:
        return 0;
    }
}

/* Data types of the orders that do not go with all of them. */
static bool go_together(cl_channel_order order, cl_channel_type type) {
    bool normalized = type == CL_UNORM_INT8 || type == CL_UNORM_INT16 || type == CL_SNORM_INT8 ||
                      type == CL_SNORM_INT16;
    switch (order) {
    case CL_INTENSITY:
    case CL_LUMINANCE:
        return normalized || type == CL_HALF_FLOAT || type == CL_FLOAT;
    case CL_DEPTH:
        return type == CL_UNORM_INT16 || type == CL_FLOAT;
    case CL_BGRA:
    case CL_ARGB:
    case CL_ABGR:
        return channel_bytes(type) == 1;
    case CL_sRGB:
    case CL_sRGBA:
    case CL_sBGRA:
        return type == CL_UNORM_INT8;
    default:
        return true;
    }
}

size_t tutti_image_element(const cl_image_format *format) {
    cl_channel_order order = format->image_channel_order;
    cl_channel_type type = format->image_channel_data_type;
    size_t channels = channels_of(order);
    switch (type) {
    case CL_UNORM_SHORT_565:
    case CL_UNORM_SHORT_555:
        return order == CL_RGB || order == CL_RGBx ? 2 : 0;
    case CL_UNORM_INT_101010:
        return order == CL_RGB || order == CL_RGBx ? 4 : 0;
    case CL_UNORM_INT_101010_2:
        return order == CL_RGBA ? 4 : 0;
    default:
        break;
    }
    /* Three channels are only packed, but for sRGB. */
    if (order == CL_RGB || !go_together(order, type))
        return 0;
    return channels * channel_bytes(type);
}

/* What a device says of its images; asked once. */
struct limits {
    size_t width, height; /* of 2D images; the width of other kinds too */
    size_t width_3d, height_3d, depth_3d;
    size_t buffer, layers;
};
static struct limits limits[TUTTI_MAX_DEVICES];
static pthread_once_t limits_once = PTHREAD_ONCE_INIT;

static void ask_limits(void) {
    const struct tutti_device_list *list = tutti_devices();
    for (unsigned d = 0; d < list->count; d++) {
        const struct tutti_real_device *device = list->device[d];
        const struct {
            cl_device_info what;
            size_t *where;
        } queries[] = {
            {CL_DEVICE_IMAGE2D_MAX_WIDTH, &limits[d].width},
            {CL_DEVICE_IMAGE2D_MAX_HEIGHT, &limits[d].height},
            {CL_DEVICE_IMAGE3D_MAX_WIDTH, &limits[d].width_3d},
            {CL_DEVICE_IMAGE3D_MAX_HEIGHT, &limits[d].height_3d},
            {CL_DEVICE_IMAGE3D_MAX_DEPTH, &limits[d].depth_3d},
            {CL_DEVICE_IMAGE_MAX_BUFFER_SIZE, &limits[d].buffer},
            {CL_DEVICE_IMAGE_MAX_ARRAY_SIZE, &limits[d].layers},
        };
        for (size_t i = 0; device->image_support && i < sizeof(queries) / sizeof(queries[0]); i++)
            device->dispatch->clGetDeviceInfo(device->id, queries[i].what, sizeof(size_t),
                                              queries[i].where, NULL);
    }
}

bool tutti_image_size_allowed(const struct tutti_real_device *device,
                              const struct tutti_shape *shape) {
    pthread_once(&limits_once, ask_limits);
    const struct limits *most = &limits[device->index];
    const size_t *size = shape->size;
    switch (shape->type) {
    case CL_MEM_OBJECT_IMAGE1D:
        return size[0] <= most->width;
    case CL_MEM_OBJECT_IMAGE1D_BUFFER:
        return size[0] <= most->buffer;
    case CL_MEM_OBJECT_IMAGE1D_ARRAY:
        return size[0] <= most->width && size[1] <= most->layers;
    case CL_MEM_OBJECT_IMAGE2D:
        return size[0] <= most->width && size[1] <= most->height;
    case CL_MEM_OBJECT_IMAGE2D_ARRAY:
        return size[0] <= most->width && size[1] <= most->height && size[2] <= most->layers;
    default:
        return size[0] <= most->width_3d && size[1] <= most->height_3d && size[2] <= most->depth_3d;
    }
}

/* The formats of a device for one access and type; asked at first use, kept for the process. */
struct format_list {
    struct format_list *next;
    unsigned device;
    cl_mem_flags access;
    cl_mem_object_type type;
    cl_uint count;
    cl_image_format format[];
};
static struct format_list *format_lists;
static pthread_mutex_t format_lock =
    PTHREAD_MUTEX_INITIALIZER; /* guards the chain, not its lists */

static cl_int ask_formats(const struct tutti_real_device *device, cl_mem_flags access,
                          cl_mem_object_type type, struct format_list **result) {
    cl_context context = device->place.context;
    cl_uint count = 0;
    cl_int error = CL_SUCCESS;
    if (device->image_support && context)
        error =
            device->dispatch->clGetSupportedImageFormats(context, access, type, 0, NULL, &count);
    struct format_list *list = calloc(1, sizeof(*list) + count * sizeof(list->format[0]));
    if (!list)
        return CL_OUT_OF_HOST_MEMORY;
    if (error == CL_SUCCESS && count)
        error = device->dispatch->clGetSupportedImageFormats(context, access, type, count,
                                                             list->format, NULL);
    if (error != CL_SUCCESS) {
        free(list);
        return error;
    }
    for (cl_uint i = 0; i < count; i++)
        if (tutti_image_element(&list->format[i]))
            list->format[list->count++] = list->format[i];
    list->device = device->index;
    list->access = access;
    list->type = type;
    *result = list;
    return CL_SUCCESS;
}

static cl_int formats_of(const struct tutti_real_device *device, cl_mem_flags access,
                         cl_mem_object_type type, const struct format_list **result) {
    cl_int error = CL_SUCCESS;
    pthread_mutex_lock(&format_lock);
    struct format_list *list = format_lists;
    while (list && (list->device != device->index || list->access != access || list->type != type))
        list = list->next;
    if (!list) {
        error = ask_formats(device, access, type, &list);
        if (error == CL_SUCCESS) {
            list->next = format_lists;
            format_lists = list;
        }
    }
    pthread_mutex_unlock(&format_lock);
    *result = list;
    return error;
}

cl_int tutti_image_formats(cl_mem_flags access, cl_mem_object_type type, cl_uint capacity,
                           cl_image_format *formats, cl_uint *count) {
    const struct format_list *list;
    cl_int error = formats_of(tutti_devices()->device[0], access, type, &list);
    if (error != CL_SUCCESS)
        return error;
    for (cl_uint i = 0; formats && i < capacity && i < list->count; i++)
        formats[i] = list->format[i];
    *count = list->count;
    return CL_SUCCESS;
}

bool tutti_image_format_supported(const struct tutti_real_device *device,
                                  const struct tutti_shape *shape) {
    const struct format_list *list;
    if (formats_of(device, shape->access, shape->type, &list) != CL_SUCCESS)
        return false;
    for (cl_uint i = 0; i < list->count; i++)
        if (list->format[i].image_channel_order == shape->format.image_channel_order &&
            list->format[i].image_channel_data_type == shape->format.image_channel_data_type)
            return true;
    return false;
}

unsigned tutti_image_devices(const struct tutti_shape *shape) {
    const struct tutti_device_list *list = tutti_devices();
    unsigned devices = 0;
    for (unsigned d = 0; d < list->count; d++)
        if (list->device[d]->image_support && tutti_image_size_allowed(list->device[d], shape) &&
            tutti_image_format_supported(list->device[d], shape))
            devices |= 1u << d;
    return devices;
}

cl_mem tutti_image_create_real(const struct tutti_real_device *device,
                               const struct tutti_shape *shape, cl_mem buffer, void *bytes,
                               cl_int *error) {
    cl_image_desc desc = {.image_type = shape->type, .image_width = shape->size[0]};
    if (shape->type == CL_MEM_OBJECT_IMAGE1D_ARRAY)
        desc.image_array_size = shape->size[1];
    else if (tutti_image_dimensions(shape->type) > 1)
        desc.image_height = shape->size[1];
    if (shape->type == CL_MEM_OBJECT_IMAGE2D_ARRAY)
        desc.image_array_size = shape->size[2];
    else if (shape->type == CL_MEM_OBJECT_IMAGE3D)
        desc.image_depth = shape->size[2];
    desc.buffer = buffer;
    return device->dispatch->clCreateImage(device->place.context,
                                           shape->access | (bytes ? CL_MEM_USE_HOST_PTR : 0),
                                           &shape->format, &desc, bytes, error);
}
