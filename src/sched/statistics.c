/* SPDX-License-Identifier: MIT */
#include "sched/statistics.h"

#include <stdio.h>

static atomic_ullong executed[TUTTI_MAX_DEVICES];

void tutti_statistics_count(const struct tutti_real_device *device) {
    atomic_fetch_add_explicit(&executed[device->index], 1, memory_order_relaxed);
}

cl_int CL_API_CALL tutti_clGetDeviceTaskCountsTUTTI(cl_device_id device, cl_uint num_entries,
                                                    cl_ulong *counts, char (*names)[64],
                                                    cl_uint *num_devices) {
    if (!device || device != tutti_device())
        return CL_INVALID_DEVICE;
    if ((counts || names) && num_entries == 0)
        return CL_INVALID_VALUE;
    const struct tutti_device_list *list = tutti_devices();
    for (cl_uint d = 0; d < list->count && d < num_entries; d++) {
        if (counts)
            counts[d] = atomic_load_explicit(&executed[d], memory_order_relaxed);
        if (names)
            snprintf(names[d], sizeof(names[d]), "%s", list->device[d]->name);
    }
    if (num_devices)
        *num_devices = list->count;
    return CL_SUCCESS;
}
