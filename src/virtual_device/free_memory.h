/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_FREE_MEMORY_H
#define TUTTI_FREE_MEMORY_H

#include "virtual_device/device.h"

/*
 * Is so little of the GPU's memory left, as other processes have it, that its driver may fail to
 * make a context? OpenCL does not tell: AMD's extension does, and of NVIDIA's GPUs their management
 * library, if it is there (17 ms). Of others nothing is known: false.
 */
bool tutti_free_memory_is_scarce(const struct tutti_real_device *device);

#endif
