/* SPDX-License-Identifier: MIT */
#include "transfers.h"

#include <string.h>

#define MOST_DEVICES 16

/* What clGetMemObjectTrafficTUTTI tells of a buffer on one real device. */
struct traffic {
    cl_ulong bytes_up, transfers_up, bytes_down, transfers_down, evictions;
};
typedef cl_int(CL_API_CALL *traffic_function)(cl_mem mem, cl_uint count, struct traffic *traffic,
                                              cl_uint *devices);

static traffic_function find_traffic(cl_platform_id platform) {
    void *address =
        clGetExtensionFunctionAddressForPlatform(platform, "clGetMemObjectTrafficTUTTI");
    traffic_function function;
    memcpy(&function, &address, sizeof(function));
    return function;
}

/* How often the buffer went up to a device. */
static cl_ulong uploads(traffic_function traffic, cl_mem mem, cl_uint *devices) {
    struct traffic on[MOST_DEVICES];
    cl_ulong count = 0;
    check(traffic(mem, MOST_DEVICES, on, devices), "clGetMemObjectTrafficTUTTI");
    for (cl_uint d = 0; d < *devices && d < MOST_DEVICES; d++)
        count += on[d].transfers_up;
    return count;
}

/* Each kernel is sent to any device; those count that ran elsewhere than the one before. */
static void wander(struct target *t, traffic_function traffic, size_t size, double seconds,
                   struct sample *sample) {
    cl_int error;
    cl_uint devices = 0;
    cl_mem mem = clCreateBuffer(t->context, CL_MEM_READ_WRITE, size, NULL, &error);
    check(error, "clCreateBuffer");
    touch(t, mem);
    cl_ulong before = uploads(traffic, mem, &devices);
    unsigned warm = 4; /* memory is made and page-locked */
    for (double end = now() + seconds; devices > 1 && now() < end;) {
        double start = now();
        touch(t, mem);
        double length = now() - start;
        cl_ulong after = uploads(traffic, mem, &devices);
        if (after > before && (warm == 0 || warm-- == 0))
            sample_add(sample, length);
        before = after;
    }
    clReleaseMemObject(mem);
}

/* By the driver's own copy, from the one's memory to the other's. */
static void copy_natively(cl_platform_id platform, size_t size, double seconds,
                          struct sample *sample) {
    cl_device_id devices[2];
    cl_uint count = 0;
    cl_int error;
    struct target ends[2];
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 2, devices, &count) != CL_SUCCESS || count < 2)
        return;
    cl_context context = clCreateContext(NULL, 2, devices, NULL, NULL, &error);
    check(error, "clCreateContext");
    static const char *source = "__kernel void touch(__global int *a) { a[0] = a[0] ^ 1; }";
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &error);
    check(error, "clCreateProgramWithSource");
    check(clBuildProgram(program, 2, devices, "", NULL, NULL), "clBuildProgram");
    cl_kernel kernel = clCreateKernel(program, "touch", &error);
    check(error, "clCreateKernel");
    for (int i = 0; i < 2; i++) {
        ends[i] = (struct target){.kernel = kernel};
        ends[i].queue = clCreateCommandQueue(context, devices[i], 0, &error);
        check(error, "clCreateCommandQueue");
        ends[i].buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, size, NULL, &error);
        check(error, "clCreateBuffer");
    }
    unsigned round = 0;
    for (double end = now() + seconds; now() < end || round < 4; round++) {
        touch(&ends[0], ends[0].buffer);
        touch(&ends[1], ends[1].buffer);
        double start = now();
        check(clEnqueueCopyBuffer(ends[1].queue, ends[0].buffer, ends[1].buffer, 0, 0, size, 0,
                                  NULL, NULL),
              "clEnqueueCopyBuffer");
        check(clFinish(ends[1].queue), "clFinish");
        if (round)
            sample_add(sample, now() - start);
    }
    for (int i = 0; i < 2; i++) {
        clReleaseMemObject(ends[i].buffer);
        clReleaseCommandQueue(ends[i].queue);
    }
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseContext(context);
}

void measure_between(struct report *report, const cl_platform_id *platforms, unsigned count,
                     const size_t *sizes, unsigned size_count, double seconds) {
    static struct target targets[8];
    static struct sample samples[8];
    if (count > 8)
        count = 8;
    for (unsigned p = 0; p < count; p++)
        if (!target_open(&targets[p], platforms[p]))
            return;
    for (unsigned s = 0; s < size_count; s++) {
        if (sizes[s] < 4096)
            continue;
        memset(samples, 0, sizeof(samples));
        for (unsigned p = 0; p < count; p++) {
            traffic_function traffic = find_traffic(platforms[p]);
            if (traffic)
                wander(&targets[p], traffic, sizes[s], seconds, &samples[p]);
            else
                copy_natively(platforms[p], sizes[s], seconds, &samples[p]);
        }
        report_row(report, "device to device", sizes[s], (double)sizes[s], targets, samples, count);
    }
    for (unsigned p = 0; p < count; p++)
        target_close(&targets[p]);
}
