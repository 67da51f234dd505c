/* SPDX-License-Identifier: MIT */
/* How many commands each real device executed, by Tutti's own extension function. */
#ifndef TUTTI_TESTS_TASK_COUNTS_H
#define TUTTI_TESTS_TASK_COUNTS_H

#include "support.h"

enum { REAL = 16 };

typedef cl_int(CL_API_CALL *task_counts_function)(cl_device_id device, cl_uint num_entries,
                                                  cl_ulong *counts, char (*names)[64],
                                                  cl_uint *num_devices);

static inline task_counts_function task_counts(void) {
    void *address =
        clGetExtensionFunctionAddressForPlatform(platform, "clGetDeviceTaskCountsTUTTI");
    task_counts_function function;

    memcpy(&function, &address, sizeof(function));
    return function;
}

static inline cl_uint read_counts(cl_ulong counts[REAL]) {
    task_counts_function function = task_counts();
    char names[REAL][64];
    cl_uint number = 0;

    memset(counts, 0, REAL * sizeof(counts[0]));
    ck_assert_ptr_nonnull(function);
    ck_ok(function(device, REAL, counts, names, &number));
    return number < REAL ? number : REAL;
}

/* Are all real devices of one name? */
static inline bool equal_devices(void) {
    task_counts_function function = task_counts();
    char names[REAL][64];
    cl_ulong counts[REAL];
    cl_uint number = 0;

    ck_ok(function(device, REAL, counts, names, &number));
    for (cl_uint i = 1; i < number && i < REAL; i++)
        if (strcmp(names[0], names[i]) != 0)
            return false;
    return true;
}

#endif
