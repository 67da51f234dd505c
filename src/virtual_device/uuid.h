/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_UUID_H
#define TUTTI_UUID_H

#include "virtual_device/device.h"

#include <CL/cl_ext.h>

/* What the driver answers to CL_DEVICE_UUID_KHR; false where it has not cl_khr_device_uuid. */
bool tutti_real_device_uuid(const struct tutti_real_device *device,
                            cl_uchar uuid[CL_UUID_SIZE_KHR]);

/*
 * CL_DEVICE_UUID_KHR of the virtual device: none of its real devices' own, by which a program might
 * take one for the other, but the same whenever the same ones join in the same order, whatever the
 * versions of their drivers.
 */
void tutti_device_uuid(cl_uchar uuid[CL_UUID_SIZE_KHR]);

/* CL_DRIVER_UUID_KHR: the same for all devices of one version of Tutti. */
void tutti_driver_uuid(cl_uchar uuid[CL_UUID_SIZE_KHR]);

#endif
