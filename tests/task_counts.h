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

static inline cl_uint read_names(char names[REAL][64]) {
    cl_ulong counts[REAL];
    cl_uint number = 0;

    ck_ok(task_counts()(device, REAL, counts, names, &number));
    return number < REAL ? number : REAL;
}

/* Are all real devices of one name? */
static inline bool equal_devices(void) {
    char names[REAL][64];
    cl_uint number = read_names(names);

    for (cl_uint i = 1; i < number; i++)
        if (strcmp(names[0], names[i]) != 0)
            return false;
    return true;
}

/* Are they PoCL's CPU devices? */
static inline bool all_are_pocl(void) {
    static const char *const pocl[] = {"basic", "pthread", "cpu"};
    char names[REAL][64];
    cl_uint number = read_names(names);

    for (cl_uint d = 0; d < number; d++) {
        bool known = false;
        for (size_t i = 0; i < COUNT(pocl); i++)
            known = known || strncmp(names[d], pocl[i], strlen(pocl[i])) == 0;
        if (!known)
            return false;
    }
    return true;
}

#endif
