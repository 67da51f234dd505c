/* SPDX-License-Identifier: MIT */
#include "lanes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_PLATFORMS 16
#define TUTTI_PLATFORM_NAME "Tutti"

static void platform_text(cl_platform_id platform, cl_platform_info what, char *text) {
    size_t length = 0;
    cl_check(clGetPlatformInfo(platform, what, 0, NULL, &length), "clGetPlatformInfo");
    char *whole = allocate(length + 1);
    cl_check(clGetPlatformInfo(platform, what, length, whole, NULL), "clGetPlatformInfo");
    whole[length] = '\0';
    snprintf(text, MAX_NAME, "%s", whole);
    free(whole);
}

static char *device_text(cl_device_id device, cl_device_info what) {
    size_t length = 0;
    cl_check(clGetDeviceInfo(device, what, 0, NULL, &length), "clGetDeviceInfo");
    char *text = allocate(length + 1);
    cl_check(clGetDeviceInfo(device, what, length, text, NULL), "clGetDeviceInfo");
    text[length] = '\0';
    return text;
}

static bool is_tutti(cl_platform_id platform) {
    char name[MAX_NAME];
    platform_text(platform, CL_PLATFORM_NAME, name);
    return strcmp(name, TUTTI_PLATFORM_NAME) == 0;
}

static bool name_has(cl_platform_id platform, const char *part) {
    char name[MAX_NAME];
    platform_text(platform, CL_PLATFORM_NAME, name);
    return strcasestr(name, part) != NULL;
}

/* Which platforms the options mean; returns how many. */
static unsigned choose_platforms(const struct common_options *options, cl_platform_id *chosen) {
    cl_platform_id all[MAX_PLATFORMS];
    cl_uint count = 0;
    cl_check(clGetPlatformIDs(MAX_PLATFORMS, all, &count), "clGetPlatformIDs");
    if (count > MAX_PLATFORMS)
        count = MAX_PLATFORMS;

    const bool by_hand = options->distribution == DISTRIBUTION_SINGLE ||
                         options->distribution == DISTRIBUTION_BLOCK ||
                         options->distribution == DISTRIBUTION_CYCLIC ||
                         options->distribution == DISTRIBUTION_DYNAMIC;
    unsigned used = 0;
    if (options->platforms == 0 && !by_hand) {
        for (cl_uint i = 0; i < count && used == 0; i++)
            if (is_tutti(all[i]))
                chosen[used++] = all[i];
        if (used == 0 && count > 0)
            chosen[used++] = all[0];
        return used;
    }
    for (cl_uint i = 0; i < count; i++) {
        bool wanted = options->platforms == 0 && !is_tutti(all[i]);
        for (unsigned k = 0; k < options->platforms; k++) {
            if (strcmp(options->platform[k], "all") == 0)
                wanted = wanted || !is_tutti(all[i]);
            else
                wanted = wanted || name_has(all[i], options->platform[k]);
        }
        if (wanted)
            chosen[used++] = all[i];
    }
    for (unsigned k = 0; k < options->platforms; k++) {
        bool met = strcmp(options->platform[k], "all") == 0;
        for (cl_uint i = 0; i < count; i++)
            met = met || name_has(all[i], options->platform[k]);
        if (!met)
            die("no platform has '%s' in its name", options->platform[k]);
    }
    return used;
}

static void CL_CALLBACK context_error(const char *message, const void *data, size_t bytes,
                                      void *user) {
    (void)data;
    (void)bytes;
    (void)user;
    fprintf(stderr, "OpenCL: %s\n", message);
}

static void find_devices(const struct common_options *options, struct lanes *lanes,
                         cl_platform_id platform) {
    cl_device_id device[MAX_LANES];
    const cl_uint room = MAX_LANES - lanes->count;
    cl_uint count = 0;
    cl_int status = clGetDeviceIDs(platform, options->device_type, room, device, &count);
    if (status == CL_DEVICE_NOT_FOUND)
        return;
    cl_check(status, "clGetDeviceIDs");
    for (cl_uint i = 0; i < count && i < room; i++) {
        struct lane *lane = &lanes->lane[lanes->count++];
        *lane = (struct lane){.platform = platform, .device = device[i]};
        char *name = device_text(device[i], CL_DEVICE_NAME);
        char *version = device_text(device[i], CL_DRIVER_VERSION);
        snprintf(lane->name, sizeof(lane->name), "%s", name);
        snprintf(lane->driver_version, sizeof(lane->driver_version), "%s", version);
        free(name);
        free(version);
        platform_text(platform, CL_PLATFORM_NAME, lane->platform_name);
    }
}

/* One context for all lanes of the platform of lanes->lane[first], where it has none yet. */
static void open_context(struct lanes *lanes, unsigned first) {
    cl_device_id device[MAX_LANES];
    cl_uint count = 0;
    if (lanes->lane[first].context)
        return;
    const cl_platform_id platform = lanes->lane[first].platform;
    for (unsigned i = first; i < lanes->count; i++)
        if (lanes->lane[i].platform == platform)
            device[count++] = lanes->lane[i].device;

    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                (cl_context_properties)platform, 0};
    cl_int status;
    cl_context context = clCreateContext(properties, count, device, context_error, NULL, &status);
    cl_check(status, "clCreateContext");
    for (unsigned i = first; i < lanes->count; i++) {
        if (lanes->lane[i].platform != platform)
            continue;
        lanes->lane[i].context = context;
        if (i > first)
            cl_check(clRetainContext(context), "clRetainContext");
    }
}

/* Out-of-order queues where they exist: programs here order their commands with events. */
static void open_queue(const struct common_options *options, struct lane *lane) {
    cl_command_queue_properties offered = 0;
    cl_int status;
    cl_check(
        clGetDeviceInfo(lane->device, CL_DEVICE_QUEUE_PROPERTIES, sizeof(offered), &offered, NULL),
        "clGetDeviceInfo");
    lane->queue = clCreateCommandQueue(
        lane->context, lane->device,
        options->in_order ? 0 : offered & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &status);
    cl_check(status, "clCreateCommandQueue");
}

void lanes_open(const struct common_options *options, struct lanes *lanes) {
    cl_platform_id platform[MAX_PLATFORMS];
    unsigned platforms = choose_platforms(options, platform);
    *lanes = (struct lanes){.distribution = options->distribution};
    for (unsigned i = 0; i < platforms && lanes->count < MAX_LANES; i++)
        find_devices(options, lanes, platform[i]);
    if (lanes->count == 0)
        die("no OpenCL device found");

    if (lanes->distribution == DISTRIBUTION_DEFAULT) {
        if (is_tutti(lanes->lane[0].platform))
            lanes->distribution = DISTRIBUTION_TUTTI;
        else
            lanes->distribution = lanes->count > 1 ? DISTRIBUTION_CYCLIC : DISTRIBUTION_SINGLE;
    }
    if (lanes->distribution == DISTRIBUTION_SINGLE || lanes->distribution == DISTRIBUTION_TUTTI) {
        if (options->device >= lanes->count)
            die("there is no device %lu: %u found", options->device, lanes->count);
        lanes->lane[0] = lanes->lane[options->device];
        lanes->count = 1;
    }
    for (unsigned i = 0; i < lanes->count; i++) {
        struct lane *lane = &lanes->lane[i];
        lane->index = i;
        open_context(lanes, i);
        open_queue(options, lane);
        progress(options, "device %u: %s (%s, %s)\n", i, lane->name, lane->platform_name,
                 lane->driver_version);
    }
    progress(options, "distribution: %s\n", distribution_name(lanes->distribution));
}

static void build_failed(const struct lane *lane, cl_int status) {
    size_t length = 0;
    clGetProgramBuildInfo(lane->program, lane->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &length);
    char *log = allocate_zeroed(length + 1, 1);
    clGetProgramBuildInfo(lane->program, lane->device, CL_PROGRAM_BUILD_LOG, length, log, NULL);
    die("clBuildProgram for %s: %s (%d)\n%s", lane->name, cl_error_name(status), status, log);
}

void lanes_build(struct lanes *lanes, const char *source, const char *build_options) {
    for (unsigned i = 0; i < lanes->count; i++) {
        struct lane *lane = &lanes->lane[i];
        for (unsigned k = 0; k < i && !lane->program; k++)
            if (lanes->lane[k].context == lane->context) {
                lane->program = lanes->lane[k].program;
                cl_check(clRetainProgram(lane->program), "clRetainProgram");
            }
        cl_int status;
        if (!lane->program) {
            lane->program = clCreateProgramWithSource(lane->context, 1, &source, NULL, &status);
            cl_check(status, "clCreateProgramWithSource");
        }
        cl_build_status built = CL_BUILD_NONE;
        cl_check(clGetProgramBuildInfo(lane->program, lane->device, CL_PROGRAM_BUILD_STATUS,
                                       sizeof(built), &built, NULL),
                 "clGetProgramBuildInfo");
        if (built == CL_BUILD_SUCCESS)
            continue;
        /* All devices of the context at once: a second build would discard the first. */
        cl_device_id device[MAX_LANES];
        cl_uint count = 0;
        for (unsigned k = i; k < lanes->count; k++)
            if (lanes->lane[k].context == lane->context)
                device[count++] = lanes->lane[k].device;
        status = clBuildProgram(lane->program, count, device, build_options, NULL, NULL);
        if (status != CL_SUCCESS)
            build_failed(lane, status);
    }
}

bool lanes_have_extension(const struct lanes *lanes, const char *extension) {
    for (unsigned i = 0; i < lanes->count; i++) {
        char *extensions = device_text(lanes->lane[i].device, CL_DEVICE_EXTENSIONS);
        bool found = strstr(extensions, extension) != NULL;
        free(extensions);
        if (!found)
            return false;
    }
    return true;
}

void lanes_close(struct lanes *lanes) {
    for (unsigned i = 0; i < lanes->count; i++) {
        struct lane *lane = &lanes->lane[i];
        if (lane->program)
            cl_check(clReleaseProgram(lane->program), "clReleaseProgram");
        cl_check(clReleaseCommandQueue(lane->queue), "clReleaseCommandQueue");
        cl_check(clReleaseContext(lane->context), "clReleaseContext");
    }
    lanes->count = 0;
}

cl_kernel lane_kernel(const struct lane *lane, const char *name) {
    cl_int status;
    cl_kernel kernel = clCreateKernel(lane->program, name, &status);
    cl_check(status, "clCreateKernel");
    return kernel;
}

void kernel_argument(cl_kernel kernel, cl_uint index, size_t size, const void *value) {
    cl_int status = clSetKernelArg(kernel, index, size, value);
    if (status != CL_SUCCESS)
        die("clSetKernelArg(%u): %s (%d)", index, cl_error_name(status), status);
}
