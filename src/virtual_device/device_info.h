/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_DEVICE_INFO_H
#define TUTTI_DEVICE_INFO_H

#include "virtual_device/device.h"

/*
 * clGetDeviceInfo of the virtual device (OpenCL 1.2, 4.2): the lead device's answer, unless what
 * all real devices have together is meant. CL_INVALID_VALUE for unknown queries.
 */
cl_int tutti_device_info(cl_device_info param_name, size_t param_value_size, void *param_value,
                         size_t *param_value_size_ret);

/* The type of the lead device; what clGetDeviceIDs selects by. */
cl_device_type tutti_device_type(void);

#endif
