/* SPDX-License-Identifier: MIT */
#ifndef EXAMPLES_LANES_H
#define EXAMPLES_LANES_H

#include "options.h"

#define MAX_LANES 32
#define MAX_NAME 128

/*
 * A lane is a device with what the program needs to use it. Devices of one platform share a
 * context, as OpenCL allows; those of different platforms cannot.
 */
struct lane {
    unsigned index;
    cl_platform_id platform;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    char name[MAX_NAME];
    char platform_name[MAX_NAME];
    char driver_version[MAX_NAME];
    cl_ulong tasks; /* given to this lane in the measured runs */
};

struct lanes {
    unsigned count;
    enum distribution distribution; /* never DISTRIBUTION_DEFAULT */
    struct lane lane[MAX_LANES];
};

/* Finds the devices that the options name and opens a context and a queue for each, or exits. */
void lanes_open(const struct common_options *options, struct lanes *lanes);

/* Builds the program for every lane; exits with the build log if that fails. */
void lanes_build(struct lanes *lanes, const char *source, const char *build_options);

/* True when every device has the extension. */
bool lanes_have_extension(const struct lanes *lanes, const char *extension);

void lanes_close(struct lanes *lanes);

/* A kernel of the lane's program, or exits. To be released by the caller. */
cl_kernel lane_kernel(const struct lane *lane, const char *name);

/* Sets an argument, or exits. */
void kernel_argument(cl_kernel kernel, cl_uint index, size_t size, const void *value);

#endif
