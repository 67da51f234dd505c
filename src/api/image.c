/* SPDX-License-Identifier: MIT */
/* Image objects: OpenCL 1.2, sections 5.3.1, 5.3.2 and 5.3.7. */
#include "api/check.h"
#include "entry_points.h"
#include "sched/runtime.h"

#include <stdlib.h>
#include <string.h>

/* Fills in the kind and the sizes; CL_INVALID_IMAGE_DESCRIPTOR, CL_INVALID_IMAGE_SIZE. */
static cl_int read_sizes(const cl_image_desc *desc, struct tutti_shape *shape) {
    shape->type = desc->image_type;
    shape->size[0] = desc->image_width;
    shape->size[1] = shape->size[2] = 1;
    switch (desc->image_type) {
    case CL_MEM_OBJECT_IMAGE1D:
    case CL_MEM_OBJECT_IMAGE1D_BUFFER:
        break;
    case CL_MEM_OBJECT_IMAGE1D_ARRAY:
        shape->size[1] = desc->image_array_size;
        break;
    case CL_MEM_OBJECT_IMAGE2D:
        shape->size[1] = desc->image_height;
        break;
    case CL_MEM_OBJECT_IMAGE2D_ARRAY:
        shape->size[1] = desc->image_height;
        shape->size[2] = desc->image_array_size;
        break;
    case CL_MEM_OBJECT_IMAGE3D:
        shape->size[1] = desc->image_height;
        shape->size[2] = desc->image_depth;
        break;
    default:
        return CL_INVALID_IMAGE_DESCRIPTOR;
    }
    if (!shape->size[0] || !shape->size[1] || !shape->size[2] ||
        !tutti_image_size_allowed(tutti_devices()->device[0], shape))
        return CL_INVALID_IMAGE_SIZE;
    return CL_SUCCESS;
}

/* Checks the pitches against the sizes, and fills them in where they are 0. */
static cl_int complete_pitches(const struct tutti_shape *shape, bool has_memory,
                               cl_image_desc *desc) {
    size_t row = shape->size[0] * shape->element;
    unsigned dimensions = tutti_image_dimensions(shape->type);
    bool layered_rows = shape->type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
    if (!has_memory && (desc->image_row_pitch || desc->image_slice_pitch))
        return CL_INVALID_IMAGE_DESCRIPTOR;
    if (desc->image_row_pitch &&
        (desc->image_row_pitch < row || desc->image_row_pitch % shape->element))
        return CL_INVALID_IMAGE_DESCRIPTOR;
    if (!desc->image_row_pitch)
        desc->image_row_pitch = row;
    if (dimensions < 3 && !layered_rows) {
        desc->image_slice_pitch = 0; /* there are no slices: what was given is not used */
        return CL_SUCCESS;
    }
    size_t slice = desc->image_row_pitch * (layered_rows ? 1 : shape->size[1]);
    if (desc->image_slice_pitch &&
        (desc->image_slice_pitch < slice || desc->image_slice_pitch % desc->image_row_pitch))
        return CL_INVALID_IMAGE_DESCRIPTOR;
    if (!desc->image_slice_pitch)
        desc->image_slice_pitch = slice;
    return CL_SUCCESS;
}

/* The buffer below an image; completes the flags from it. */
static cl_int check_buffer(cl_context context, const cl_image_desc *desc,
                           const struct tutti_shape *shape, cl_mem_flags *flags) {
    cl_mem buffer = desc->buffer;
    if (shape->type != CL_MEM_OBJECT_IMAGE1D_BUFFER || !TUTTI_IS_MEM(buffer) ||
        tutti_mem_is_image(buffer) || buffer->context != context)
        return CL_INVALID_IMAGE_DESCRIPTOR;
    if (*flags & TUTTI_HOST_PTR_FLAGS || !tutti_inherit_mem_flags(buffer->flags, *flags))
        return CL_INVALID_VALUE;
    if (tutti_shape_bytes(shape) > buffer->size)
        return CL_INVALID_IMAGE_SIZE;
    *flags = tutti_inherit_mem_flags(buffer->flags, *flags);
    return CL_SUCCESS;
}

/* All checks of clCreateImage; completes flags, shape and the pitches of the description. */
static cl_int check(cl_context context, cl_mem_flags *flags, const cl_image_format *format,
                    cl_image_desc *desc, const void *host_ptr, struct tutti_shape *shape) {
    cl_int error = tutti_check_mem_flags(*flags);
    if (error != CL_SUCCESS)
        return error;
    if (!format || !(shape->element = tutti_image_element(format)))
        return CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
    shape->format = *format;
    /* An optional part that the device does not have (3.0, CL_DEVICE_IMAGE_PITCH_ALIGNMENT 0). */
    if (desc->image_type == CL_MEM_OBJECT_IMAGE2D && TUTTI_IS_MEM(desc->buffer) &&
        !tutti_mem_is_image(desc->buffer))
        return CL_INVALID_OPERATION;
    if (desc->num_mip_levels || desc->num_samples ||
        (desc->buffer != NULL) != (desc->image_type == CL_MEM_OBJECT_IMAGE1D_BUFFER))
        return CL_INVALID_IMAGE_DESCRIPTOR;
    error = read_sizes(desc, shape);
    if (error == CL_SUCCESS && desc->buffer)
        error = check_buffer(context, desc, shape, flags);
    if (error == CL_SUCCESS)
        error = complete_pitches(shape, host_ptr != NULL || desc->buffer, desc);
    if (error != CL_SUCCESS)
        return error;
    bool wants_host_ptr = !desc->buffer && *flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR);
    if ((host_ptr != NULL) != wants_host_ptr)
        return CL_INVALID_HOST_PTR;
    if (!(*flags & TUTTI_ACCESS_FLAGS))
        *flags |= CL_MEM_READ_WRITE;
    shape->access = *flags & TUTTI_ACCESS_FLAGS;
    if (!tutti_image_format_supported(tutti_devices()->device[0], shape))
        return CL_IMAGE_FORMAT_NOT_SUPPORTED;
    if (tutti_shape_bytes(shape) > tutti_device_limits()->max_mem_alloc_size)
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    return tutti_runtime_usable() ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
}

static cl_mem create(cl_context context, const cl_mem_properties *properties, cl_mem_flags flags,
                     const cl_image_format *format, const cl_image_desc *given, void *host_ptr,
                     cl_int *error) {
    struct tutti_shape shape = {0};
    cl_image_desc desc;
    if (!TUTTI_IS_CONTEXT(context)) {
        *error = CL_INVALID_CONTEXT;
        return NULL;
    }
    if (!tutti_device_limits()->image_support) {
        *error = CL_INVALID_OPERATION;
        return NULL;
    }
    /* No property is defined for images without extensions. */
    if (properties && properties[0]) {
        *error = CL_INVALID_PROPERTY;
        return NULL;
    }
    if (!given) {
        *error = format ? CL_INVALID_IMAGE_DESCRIPTOR : CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
        return NULL;
    }
    desc = *given;
    *error = check(context, &flags, format, &desc, host_ptr, &shape);
    if (*error != CL_SUCCESS)
        return NULL;
    cl_mem_properties *copy = NULL;
    if (properties && !(copy = calloc(1, sizeof(*copy)))) {
        *error = CL_OUT_OF_HOST_MEMORY;
        return NULL;
    }
    return tutti_mem_create_image(context, flags, &shape, &desc, host_ptr, copy,
                                  copy ? sizeof(*copy) : 0, error);
}

CL_API_ENTRY cl_mem CL_API_CALL tutti_clCreateImageWithProperties(
    cl_context context, const cl_mem_properties *properties, cl_mem_flags flags,
    const cl_image_format *image_format, const cl_image_desc *image_desc, void *host_ptr,
    cl_int *errcode_ret) {
    cl_int error;
    cl_mem mem = create(context, properties, flags, image_format, image_desc, host_ptr, &error);
    if (errcode_ret)
        *errcode_ret = error;
    return mem;
}

CL_API_ENTRY cl_mem CL_API_CALL tutti_clCreateImage(cl_context context, cl_mem_flags flags,
                                                    const cl_image_format *image_format,
                                                    const cl_image_desc *image_desc, void *host_ptr,
                                                    cl_int *errcode_ret) {
    return tutti_clCreateImageWithProperties(context, NULL, flags, image_format, image_desc,
                                             host_ptr, errcode_ret);
}

/* The functions of OpenCL 1.1 have an error less. */
static cl_mem create_old(cl_context context, cl_mem_flags flags, const cl_image_format *format,
                         const cl_image_desc *desc, void *host_ptr, cl_int *errcode_ret) {
    cl_int error;
    cl_mem mem = create(context, NULL, flags, format, desc, host_ptr, &error);
    if (error == CL_INVALID_IMAGE_DESCRIPTOR)
        error = CL_INVALID_IMAGE_SIZE;
    if (errcode_ret)
        *errcode_ret = error;
    return mem;
}

CL_API_ENTRY cl_mem CL_API_CALL tutti_clCreateImage2D(cl_context context, cl_mem_flags flags,
                                                      const cl_image_format *image_format,
                                                      size_t image_width, size_t image_height,
                                                      size_t image_row_pitch, void *host_ptr,
                                                      cl_int *errcode_ret) {
    cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D,
                          .image_width = image_width,
                          .image_height = image_height,
                          .image_row_pitch = image_row_pitch};
    return create_old(context, flags, image_format, &desc, host_ptr, errcode_ret);
}

CL_API_ENTRY cl_mem CL_API_CALL tutti_clCreateImage3D(cl_context context, cl_mem_flags flags,
                                                      const cl_image_format *image_format,
                                                      size_t image_width, size_t image_height,
                                                      size_t image_depth, size_t image_row_pitch,
                                                      size_t image_slice_pitch, void *host_ptr,
                                                      cl_int *errcode_ret) {
    cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE3D,
                          .image_width = image_width,
                          .image_height = image_height,
                          .image_depth = image_depth,
                          .image_row_pitch = image_row_pitch,
                          .image_slice_pitch = image_slice_pitch};
    return create_old(context, flags, image_format, &desc, host_ptr, errcode_ret);
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clGetSupportedImageFormats(
    cl_context context, cl_mem_flags flags, cl_mem_object_type image_type, cl_uint num_entries,
    cl_image_format *image_formats, cl_uint *num_image_formats) {
    const cl_mem_flags in_kernel = CL_MEM_KERNEL_READ_AND_WRITE;
    struct tutti_shape shape;
    cl_image_desc desc = {
        .image_type = image_type,
        .image_width = 1,
        .image_height = 1,
        .image_depth = 1,
        .image_array_size = 1,
    };
    if (!TUTTI_IS_CONTEXT(context))
        return CL_INVALID_CONTEXT;
    if (tutti_check_mem_flags(flags & ~in_kernel) != CL_SUCCESS ||
        read_sizes(&desc, &shape) == CL_INVALID_IMAGE_DESCRIPTOR ||
        (image_formats && num_entries == 0))
        return CL_INVALID_VALUE;
    cl_mem_flags access = flags & (TUTTI_ACCESS_FLAGS | in_kernel);
    cl_uint count = 0;
    cl_int error = CL_SUCCESS;
    if (tutti_device_limits()->image_support)
        error = tutti_image_formats(access ? access : CL_MEM_READ_WRITE, image_type, num_entries,
                                    image_formats, &count);
    if (error == CL_SUCCESS && num_image_formats)
        *num_image_formats = count;
    return error;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clGetImageInfo(cl_mem image, cl_image_info param_name,
                                                     size_t param_value_size, void *param_value,
                                                     size_t *param_value_size_ret) {
    if (!TUTTI_IS_MEM(image) || !tutti_mem_is_image(image))
        return CL_INVALID_MEM_OBJECT;
    const cl_image_desc *desc = &image->desc;
    cl_mem_object_type type = image->type;
    bool has_height = type == CL_MEM_OBJECT_IMAGE2D || type == CL_MEM_OBJECT_IMAGE2D_ARRAY ||
                      type == CL_MEM_OBJECT_IMAGE3D;
    bool has_layers = type == CL_MEM_OBJECT_IMAGE1D_ARRAY || type == CL_MEM_OBJECT_IMAGE2D_ARRAY;
    switch (param_name) {
    case CL_IMAGE_FORMAT:
        TUTTI_RETURN_INFO(cl_image_format, image->view->shape.format);
    case CL_IMAGE_ELEMENT_SIZE:
        TUTTI_RETURN_INFO(size_t, image->view->shape.element);
    case CL_IMAGE_ROW_PITCH:
        TUTTI_RETURN_INFO(size_t, desc->image_row_pitch);
    case CL_IMAGE_SLICE_PITCH:
        TUTTI_RETURN_INFO(size_t, desc->image_slice_pitch);
    case CL_IMAGE_WIDTH:
        TUTTI_RETURN_INFO(size_t, desc->image_width);
    case CL_IMAGE_HEIGHT:
        TUTTI_RETURN_INFO(size_t, has_height ? desc->image_height : 0);
    case CL_IMAGE_DEPTH:
        TUTTI_RETURN_INFO(size_t, type == CL_MEM_OBJECT_IMAGE3D ? desc->image_depth : 0);
    case CL_IMAGE_ARRAY_SIZE:
        TUTTI_RETURN_INFO(size_t, has_layers ? desc->image_array_size : 0);
    case CL_IMAGE_BUFFER:
        TUTTI_RETURN_INFO(cl_mem, image->parent);
    case CL_IMAGE_NUM_MIP_LEVELS:
    case CL_IMAGE_NUM_SAMPLES:
        TUTTI_RETURN_INFO(cl_uint, 0);
    default:
        return CL_INVALID_VALUE;
    }
}
