/* SPDX-License-Identifier: MIT */
#include "api/traffic.h"

#include "memory/mem.h"

cl_int CL_API_CALL tutti_clGetMemObjectTrafficTUTTI(cl_mem mem, cl_uint num_entries,
                                                    struct tutti_traffic *traffic,
                                                    cl_uint *num_devices) {
    if (!TUTTI_IS_MEM(mem))
        return CL_INVALID_MEM_OBJECT;
    if (traffic && num_entries == 0)
        return CL_INVALID_VALUE;
    cl_uint count = tutti_devices()->count;
    for (cl_uint d = 0; traffic && d < count && d < num_entries; d++) {
        const atomic_ullong *bytes = mem->history.on[d].bytes;
        const atomic_ullong *transfers = mem->history.on[d].transfers;
        traffic[d] = (struct tutti_traffic){
            .bytes_to_device = atomic_load(&bytes[TUTTI_UPLOAD]),
            .transfers_to_device = atomic_load(&transfers[TUTTI_UPLOAD]),
            .bytes_from_device = atomic_load(&bytes[TUTTI_DOWNLOAD]),
            .transfers_from_device = atomic_load(&transfers[TUTTI_DOWNLOAD]),
            .evictions = atomic_load(&mem->history.on[d].evictions),
        };
    }
    if (num_devices)
        *num_devices = count;
    return CL_SUCCESS;
}
