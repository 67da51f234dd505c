/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_ARGUMENT_INFO_H
#define TUTTI_ARGUMENT_INFO_H

#include "virtual_device/kernel.h"

/* What is known of a kernel before one is created: its name and its arguments. */
struct tutti_signature {
    char *name;
    unsigned argument_count;
    struct tutti_argument_info *info; /* [argument_count] */
};

struct tutti_signatures {
    size_t count;
    struct tutti_signature *signature; /* [count] */
};

/* Fills `kind`, `reads_only` and `writes_only` from the rest. */
void tutti_argument_info_classify(struct tutti_argument_info *info);

/* Deep copy; NULL when there is no memory, or count is 0. */
struct tutti_argument_info *tutti_argument_info_copy(const struct tutti_argument_info *info,
                                                     unsigned count);
void tutti_argument_info_free(struct tutti_argument_info *info, unsigned count);

void tutti_signature_clear(struct tutti_signature *signature);
const struct tutti_signature *tutti_signatures_find(const struct tutti_signatures *list,
                                                    const char *name);
/* Takes what the signature holds over, also when it fails: false when there is no memory. */
bool tutti_signatures_add(struct tutti_signatures *list, struct tutti_signature *signature);
bool tutti_signatures_append(struct tutti_signatures *list, const struct tutti_signatures *more);
void tutti_signatures_clear(struct tutti_signatures *list);

/*
 * Asks a real kernel (clGetKernelArgInfo). CL_KERNEL_ARG_INFO_NOT_AVAILABLE when its driver
 * doesn't know; otherwise that driver's error. The signature is filled on success only.
 */
cl_int tutti_signature_ask(const struct tutti_real_device *device, cl_kernel kernel,
                           const char *name, struct tutti_signature *signature);

/*
 * Reads the kernel declarations of a source, as well as that can be done without the
 * preprocessor: for drivers that give no argument information. Kernels whose declaration can't be
 * read are left out. False when there is no memory.
 */
bool tutti_signatures_read(const char *source, struct tutti_signatures *list);

#endif
