/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_TRAFFIC_H
#define TUTTI_TRAFFIC_H

#include <CL/cl.h>

/* What went between host memory and one real device for one memory object. */
struct tutti_traffic {
    cl_ulong bytes_to_device, transfers_to_device;
    cl_ulong bytes_from_device, transfers_from_device;
    cl_ulong evictions; /* how often its copy left the device's memory to make room */
};

/*
 * Extension function "clGetMemObjectTrafficTUTTI": for each real device, in the order of
 * TUTTI_DEVICES, the traffic of a memory object since its creation; at most `num_entries`. Copies
 * inside one memory are not counted, nor is what a CPU device does in the host's copy.
 * `num_devices` (may be NULL) receives the number of real devices. A sub-buffer has its own count.
 * Exact once the commands that use the object are complete. CL_INVALID_MEM_OBJECT; CL_INVALID_VALUE
 * when `traffic` is given with `num_entries` 0.
 */
cl_int CL_API_CALL tutti_clGetMemObjectTrafficTUTTI(cl_mem mem, cl_uint num_entries,
                                                    struct tutti_traffic *traffic,
                                                    cl_uint *num_devices);

#endif
