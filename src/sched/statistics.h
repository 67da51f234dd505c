/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_STATISTICS_H
#define TUTTI_STATISTICS_H

#include "sched/model.h"

/*
 * A kernel of that model ended on the device, after so many µs of its time; 0: not measured, taken
 * from the model. `able`: the devices that could have executed it, as bits.
 */
void tutti_statistics_count(const struct tutti_model *model, unsigned able,
                            const struct tutti_real_device *device, double time);

/* With TUTTI_STATS, says at exit what each device did. */
void tutti_statistics_print(void);

/*
 * Extension function "clGetDeviceTaskCountsTUTTI": what ran where. For each real device, in the
 * order of TUTTI_DEVICES, the number of commands that it executed in this process since the
 * start (counts) and its name, cut to 63 bytes (names); at most `num_entries` of each, and each
 * may be NULL. `num_devices` (may be NULL) receives the number of real devices.
 * CL_INVALID_DEVICE when `device` is not Tutti's; CL_INVALID_VALUE when `counts` or `names` is
 * given with `num_entries` 0.
 */
cl_int CL_API_CALL tutti_clGetDeviceTaskCountsTUTTI(cl_device_id device, cl_uint num_entries,
                                                    cl_ulong *counts, char (*names)[64],
                                                    cl_uint *num_devices);

#endif
