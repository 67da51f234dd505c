/* SPDX-License-Identifier: MIT */
#include "virtual_device/driver.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static bool needs_lock(const struct tutti_real_device *device) {
    return strcmp(device->platform_name, "Oclgrind") == 0;
}

void tutti_driver_lock(const struct tutti_real_device *device) {
    if (needs_lock(device))
        pthread_mutex_lock(&lock);
}

void tutti_driver_unlock(const struct tutti_real_device *device) {
    if (needs_lock(device))
        pthread_mutex_unlock(&lock);
}

cl_kernel tutti_driver_create_kernel(const struct tutti_real_device *device, cl_program program,
                                     const char *name, cl_int *error) {
    tutti_driver_lock(device);
    cl_kernel kernel = device->dispatch->clCreateKernel(program, name, error);
    tutti_driver_unlock(device);
    return kernel;
}

void tutti_driver_release_kernel(const struct tutti_real_device *device, cl_kernel kernel) {
    tutti_driver_lock(device);
    device->dispatch->clReleaseKernel(kernel);
    tutti_driver_unlock(device);
}

void tutti_driver_release_program(const struct tutti_real_device *device, cl_program program) {
    tutti_driver_lock(device);
    device->dispatch->clReleaseProgram(program);
    tutti_driver_unlock(device);
}
