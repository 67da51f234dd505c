/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_SVM_H
#define TUTTI_SVM_H

#include "memory/mem.h"

/*
 * Coarse-grained shared virtual memory (OpenCL 3.0, 5.6), where all real devices work in the host's
 * memory itself. An allocation is a buffer over memory of ours that the program has no cl_mem of:
 * its commands are those of that buffer, and so are the order and the copies.
 */

/* clSVMAlloc; flags and size are checked. NULL when out of memory. */
void *tutti_svm_allocate(cl_context context, cl_mem_flags flags, size_t size);

/*
 * clSVMFree: gives up what tutti_svm_allocate returned, once no command uses it. Anything else is
 * left alone.
 */
void tutti_svm_free(cl_context context, const void *pointer);

/* The allocation that has the byte, and where in it; NULL when there is none. */
cl_mem tutti_svm_find(cl_context context, const void *pointer, size_t *offset);

#endif
