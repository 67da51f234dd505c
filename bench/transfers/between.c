/* SPDX-License-Identifier: MIT */
#include "transfers.h"

#include <string.h>

#define MOST_DEVICES 16
#define CHUNK ((size_t)4 << 20)

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
    double end = now() + seconds;
    for (unsigned round = 0; devices > 1 && (now() < end || (sample->count < 4 && round < 64));
         round++) {
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

/* Two devices of one platform in one context, each with a queue and a buffer. */
struct pair {
    cl_context context;
    cl_program program;
    cl_kernel kernel;
    struct target ends[2];
    cl_mem locked; /* for copies by hand: page-locked, mapped at */
    char *pinned;
    size_t size;
};

static bool pair_open(struct pair *pair, cl_platform_id platform, size_t size) {
    static const char *source = "__kernel void touch(__global int *a) { a[0] = a[0] ^ 1; }";
    cl_device_id devices[2];
    cl_uint count = 0;
    cl_int error;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 2, devices, &count) != CL_SUCCESS || count < 2)
        return false;
    *pair = (struct pair){.size = size};
    pair->context = clCreateContext(NULL, 2, devices, NULL, NULL, &error);
    check(error, "clCreateContext");
    pair->program = clCreateProgramWithSource(pair->context, 1, &source, NULL, &error);
    check(error, "clCreateProgramWithSource");
    check(clBuildProgram(pair->program, 2, devices, "", NULL, NULL), "clBuildProgram");
    pair->kernel = clCreateKernel(pair->program, "touch", &error);
    check(error, "clCreateKernel");
    for (int i = 0; i < 2; i++) {
        struct target *end = &pair->ends[i];
        *end = (struct target){.kernel = pair->kernel};
        end->queue = clCreateCommandQueue(pair->context, devices[i], 0, &error);
        check(error, "clCreateCommandQueue");
        end->buffer = clCreateBuffer(pair->context, CL_MEM_READ_WRITE, size, NULL, &error);
        check(error, "clCreateBuffer");
    }
    pair->locked = clCreateBuffer(pair->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, size,
                                  NULL, &error);
    check(error, "clCreateBuffer");
    pair->pinned = clEnqueueMapBuffer(pair->ends[0].queue, pair->locked, CL_TRUE, CL_MAP_READ, 0,
                                      size, 0, NULL, NULL, &error);
    check(error, "clEnqueueMapBuffer");
    return true;
}

static void pair_close(struct pair *pair) {
    clEnqueueUnmapMemObject(pair->ends[0].queue, pair->locked, pair->pinned, 0, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        clFinish(pair->ends[i].queue);
        clReleaseMemObject(pair->ends[i].buffer);
        clReleaseCommandQueue(pair->ends[i].queue);
    }
    clReleaseMemObject(pair->locked);
    clReleaseKernel(pair->kernel);
    clReleaseProgram(pair->program);
    clReleaseContext(pair->context);
}

/* The driver's own copy, from the one's memory to the other's. */
static void copy(struct pair *pair) {
    check(clEnqueueCopyBuffer(pair->ends[1].queue, pair->ends[0].buffer, pair->ends[1].buffer, 0, 0,
                              pair->size, 0, NULL, NULL),
          "clEnqueueCopyBuffer");
    check(clFinish(pair->ends[1].queue), "clFinish");
}

/* A kernel uses what the other device wrote: the driver brings it. */
static void use(struct pair *pair) { touch(&pair->ends[1], pair->ends[0].buffer); }

/* What a program can do itself: chunks through page-locked memory, on both links at once. */
static void chunks(struct pair *pair) {
    size_t chunk = pair->size / 8 < CHUNK ? pair->size / 8 : CHUNK;
    for (size_t at = 0; at < pair->size; at += chunk) {
        size_t length = pair->size - at < chunk ? pair->size - at : chunk;
        cl_event down;
        check(clEnqueueReadBuffer(pair->ends[0].queue, pair->ends[0].buffer, CL_FALSE, at, length,
                                  pair->pinned + at, 0, NULL, &down),
              "clEnqueueReadBuffer");
        check(clFlush(pair->ends[0].queue), "clFlush");
        check(clEnqueueWriteBuffer(pair->ends[1].queue, pair->ends[1].buffer, CL_FALSE, at, length,
                                   pair->pinned + at, 1, &down, NULL),
              "clEnqueueWriteBuffer");
        check(clFlush(pair->ends[1].queue), "clFlush");
        clReleaseEvent(down);
    }
    check(clFinish(pair->ends[1].queue), "clFinish");
}

static const struct way {
    const char *name;
    void (*run)(struct pair *pair);
} ways[] = {{"device to device", copy},
            {"device to device: by use", use},
            {"device to device: by hand", chunks}};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

static void move_natively(const struct way *way, cl_platform_id platform, size_t size,
                          double seconds, struct sample *sample) {
    struct pair pair;
    if (!pair_open(&pair, platform, size))
        return;
    unsigned round = 0;
    for (double end = now() + seconds; now() < end || round < 4; round++) {
        touch(&pair.ends[0], pair.ends[0].buffer);
        if (way->run != use)
            touch(&pair.ends[1], pair.ends[1].buffer);
        double start = now();
        way->run(&pair);
        if (round)
            sample_add(sample, now() - start);
    }
    pair_close(&pair);
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
        for (size_t w = 0; w < WAYS; w++) {
            for (unsigned p = 0; p < count; p++) {
                traffic_function traffic = find_traffic(platforms[p]);
                if (traffic && w) /* there it is one way */
                    continue;
                samples[p].count = 0;
                if (traffic)
                    wander(&targets[p], traffic, sizes[s], seconds, &samples[p]);
                else
                    move_natively(&ways[w], platforms[p], sizes[s], seconds, &samples[p]);
            }
            report_row(report, ways[w].name, sizes[s], (double)sizes[s], targets, samples, count);
        }
    }
    for (unsigned p = 0; p < count; p++)
        target_close(&targets[p]);
}
