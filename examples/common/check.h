/* SPDX-License-Identifier: MIT */
#ifndef EXAMPLES_CHECK_H
#define EXAMPLES_CHECK_H

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>
#include <stddef.h>

/* Prints "program: message" on stderr and exits with 1. Callable from any thread. */
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Exits with a message that names the call and its OpenCL error, unless `status` is CL_SUCCESS. */
void cl_check(cl_int status, const char *call);

/* "CL_INVALID_VALUE" for -30; "unknown error" for a value that OpenCL 1.2 does not define. */
const char *cl_error_name(cl_int status);

/* malloc and calloc that exit when there is no memory. */
void *allocate(size_t bytes);
void *allocate_zeroed(size_t count, size_t bytes);

/*
 * Memory for CL_MEM_USE_HOST_PTR, to be freed with free(): on a page boundary, because drivers
 * pin and share whole pages and copy what begins elsewhere.
 */
void *allocate_pages(size_t bytes);

#endif
