/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_IMAGE_H
#define TUTTI_IMAGE_H

#include "virtual_device/device.h"

/*
 * What makes two images interchangeable: kind, format and sizes. `type` 0 stands for a buffer.
 * Layers of a 1D array are rows here, layers of a 2D array are slices.
 */
struct tutti_shape {
    cl_mem_object_type type;
    cl_mem_flags access; /* CL_MEM_READ_WRITE, CL_MEM_READ_ONLY or CL_MEM_WRITE_ONLY */
    cl_image_format format;
    size_t element; /* bytes of a pixel */
    size_t size[3]; /* pixels of a row, rows, slices */
};

/*
 * Is it an image to drivers in every respect? Buffers, and 1D images over a buffer, are plain bytes
 * for transfers.
 */
static inline bool tutti_shape_is_boxed(const struct tutti_shape *shape) {
    return shape->type != 0 && shape->type != CL_MEM_OBJECT_IMAGE1D_BUFFER;
}

bool tutti_shape_equal(const struct tutti_shape *a, const struct tutti_shape *b);

/* Its bytes without any padding. */
static inline size_t tutti_shape_bytes(const struct tutti_shape *shape) {
    return shape->element * shape->size[0] * shape->size[1] * shape->size[2];
}

/* Which of the sizes count for the type: 1 to 3, layers included. */
unsigned tutti_image_dimensions(cl_mem_object_type type);

/*
 * Bytes of a pixel of that format (OpenCL 3.0, table "Image Format Descriptors"; 5.3.1.1); 0 when
 * order and data type do not go together.
 */
size_t tutti_image_element(const cl_image_format *format);

/*
 * The lead's answer to clGetSupportedImageFormats (5.3.2), without formats that Tutti can't handle:
 * up to `capacity` of them in `formats` (may be NULL), how many there are in `count`.
 */
cl_int tutti_image_formats(cl_mem_flags access, cl_mem_object_type type, cl_uint capacity,
                           cl_image_format *formats, cl_uint *count);

/* Do the sizes stay within what the device allows for the type? */
bool tutti_image_size_allowed(const struct tutti_real_device *device,
                              const struct tutti_shape *shape);

/* Does the device have the format for images of that type and access? */
bool tutti_image_format_supported(const struct tutti_real_device *device,
                                  const struct tutti_shape *shape);

/* Bit d: real device d can hold such an image. */
unsigned tutti_image_devices(const struct tutti_shape *shape);

/*
 * A real image of that shape in the device's context. `buffer` is the real buffer below a
 * CL_MEM_OBJECT_IMAGE1D_BUFFER, else NULL; `bytes` the host memory to use, without padding, or
 * NULL.
 */
cl_mem tutti_image_create_real(const struct tutti_real_device *device,
                               const struct tutti_shape *shape, cl_mem buffer, void *bytes,
                               cl_int *error);

#endif
