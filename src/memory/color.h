/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_COLOR_H
#define TUTTI_COLOR_H

#include <CL/cl.h>

/* The largest pixel: four channels of four bytes. */
#define TUTTI_LARGEST_PIXEL 16

/*
 * The bytes of a pixel that has the color, as clEnqueueFillImage takes it (OpenCL 1.2, 5.3.4): four
 * floats, for signed and unsigned integer formats four cl_int or cl_uint; one float for CL_DEPTH.
 * Conversion by the rules of 8.3, rounding to nearest even.
 */
void tutti_color_pack(const cl_image_format *format, const void *color,
                      unsigned char pixel[TUTTI_LARGEST_PIXEL]);

#endif
