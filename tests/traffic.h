/* SPDX-License-Identifier: MIT */
/* What Tutti tells of the traffic of a memory object, by its own extension function. */
#ifndef TUTTI_TESTS_TRAFFIC_H
#define TUTTI_TESTS_TRAFFIC_H

#include "support.h"

enum { MOST_REAL = 16 };

struct traffic {
    cl_ulong bytes_to_device, transfers_to_device;
    cl_ulong bytes_from_device, transfers_from_device;
    cl_ulong evictions;
};

typedef cl_int(CL_API_CALL *traffic_function)(cl_mem mem, cl_uint num_entries,
                                              struct traffic *traffic, cl_uint *num_devices);

static inline traffic_function find_traffic(void) {
    void *address =
        clGetExtensionFunctionAddressForPlatform(platform, "clGetMemObjectTrafficTUTTI");
    traffic_function function;

    memcpy(&function, &address, sizeof(function));
    ck_assert_ptr_nonnull(address);
    return function;
}

static inline cl_uint real_devices(void) {
    cl_mem any = make_buffer(0, sizeof(cl_int), NULL);
    cl_uint count = 0;

    ck_ok(find_traffic()(any, 0, NULL, &count));
    ck_ok(clReleaseMemObject(any));
    return count;
}

/* On all real devices together. */
static inline struct traffic traffic_of(cl_mem mem) {
    struct traffic on[MOST_REAL], sum = {0, 0, 0, 0, 0};
    cl_uint count = 0;

    ck_ok(find_traffic()(mem, MOST_REAL, on, &count));
    for (cl_uint d = 0; d < count && d < MOST_REAL; d++) {
        sum.bytes_to_device += on[d].bytes_to_device;
        sum.transfers_to_device += on[d].transfers_to_device;
        sum.bytes_from_device += on[d].bytes_from_device;
        sum.transfers_from_device += on[d].transfers_from_device;
        sum.evictions += on[d].evictions;
    }
    return sum;
}

static inline void ck_all(const cl_int *values, int count, cl_int expected) {
    int wrong = 0;

    while (wrong < count && values[wrong] == expected)
        wrong++;
    ck_assert_msg(wrong == count, "[%d] is %d, expected %d", wrong, values[wrong], expected);
}

#endif
