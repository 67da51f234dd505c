/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_TRANSFER_PATH_H
#define TUTTI_TRANSFER_PATH_H

#include "virtual_device/device.h"

/*
 * Which way bytes go between the program's memory and a device (TUTTI_TRANSFER): by one command of
 * the driver on the program's pages, or in chunks through page-locked memory, copied there by
 * several threads while the link is busy with other chunks.
 */

/* Do transfers of the device gain by page-locked memory? GPUs; with "staged" all but PoCL. */
bool tutti_transfer_path_pins(const struct tutti_real_device *device);

/*
 * How many threads copy for a transfer of that many bytes; 0: the driver's own command is better,
 * or was asked for.
 */
unsigned tutti_transfer_path_threads(const struct tutti_real_device *device, size_t size);

/* The same for copying that many bytes between two pieces of host memory; 0: one thread does it. */
unsigned tutti_transfer_path_copy_threads(size_t size);

#endif
