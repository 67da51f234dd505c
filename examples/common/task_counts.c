/* SPDX-License-Identifier: MIT */
#include "task_counts.h"

#include <string.h>

typedef cl_int(CL_API_CALL *counts_function)(cl_device_id device, cl_uint num_entries,
                                             cl_ulong *counts, char (*names)[64],
                                             cl_uint *num_devices);

static struct task_counts before, between;

static void ask(const struct lanes *lanes, struct task_counts *counts) {
    *counts = (struct task_counts){.count = 0};
    const struct lane *lane = &lanes->lane[0];
    union {
        void *pointer;
        counts_function call;
    } function = {
        clGetExtensionFunctionAddressForPlatform(lane->platform, "clGetDeviceTaskCountsTUTTI")};
    cl_uint devices = 0;
    if (lanes->distribution != DISTRIBUTION_TUTTI || !function.pointer)
        return;
    if (function.call(lane->device, MAX_REAL_DEVICES, counts->commands, counts->name, &devices) !=
        CL_SUCCESS)
        return;
    counts->count = devices < MAX_REAL_DEVICES ? devices : MAX_REAL_DEVICES;
    for (unsigned i = 0; i < counts->count; i++)
        counts->name[i][sizeof(counts->name[i]) - 1] = '\0';
}

void task_counts_begin(const struct lanes *lanes) { ask(lanes, &before); }

void task_counts_end(const struct lanes *lanes) {
    ask(lanes, &between);
    for (unsigned i = 0; i < between.count && i < before.count; i++)
        between.commands[i] -= before.commands[i];
}

const struct task_counts *task_counts(void) { return &between; }
