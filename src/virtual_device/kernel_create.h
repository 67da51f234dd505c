/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_KERNEL_CREATE_H
#define TUTTI_KERNEL_CREATE_H

#include "virtual_device/kernel.h"
#include "virtual_device/program.h"

/*
 * The new kernel retains the program. NULL and an error of clCreateKernel (OpenCL 1.2, 5.7.1):
 * CL_INVALID_PROGRAM_EXECUTABLE, CL_INVALID_KERNEL_NAME, CL_INVALID_KERNEL_DEFINITION (nothing
 * tells what its arguments are), CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES.
 */
cl_kernel tutti_kernel_create(cl_program program, const char *name, cl_int *error);

/*
 * The function of the program's last build, with a reference; made at its first use. NULL and the
 * same errors. With the program's lock held.
 */
struct tutti_function *tutti_function_take(cl_program program, const char *name, cl_int *error);
void tutti_function_release(struct tutti_function *function);

/* A device has the program only now: so it may have the kernel. With the program's lock held. */
void tutti_function_extend(struct tutti_function *function, cl_program program,
                           const struct tutti_real_device *device);

/* A kernel of the same function with the same arguments (clCloneKernel, OpenCL 2.1, 9.5). */
cl_kernel tutti_kernel_clone(cl_kernel kernel, cl_int *error);

/*
 * Sets one argument whose index is valid (clSetKernelArg, 5.7.2), checked against what the kernel
 * declares. On an error the argument stays as it was.
 */
cl_int tutti_kernel_set_argument(cl_kernel kernel, cl_uint index, size_t size, const void *value);

/*
 * The same for a pointer into shared virtual memory, whose allocation is `mem`; both may be NULL
 * (clSetKernelArgSVMPointer). CL_INVALID_ARG_VALUE where the kernel declares no pointer.
 */
cl_int tutti_kernel_set_pointer(cl_kernel kernel, cl_uint index, cl_mem mem, void *pointer);

/* The allocations that the kernel reaches besides its arguments, in place of any set before. */
cl_int tutti_kernel_set_reached(cl_kernel kernel, const cl_mem *mem, unsigned count);

/* The kernel's own arguments, none of them set; NULL when there is no memory. */
struct tutti_arguments *tutti_kernel_arguments_new(unsigned count);
void tutti_kernel_arguments_destroy(struct tutti_arguments *arguments);

#endif
