/* SPDX-License-Identifier: MIT */
#include "transfers.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

void check(cl_int error, const char *what) {
    if (error == CL_SUCCESS)
        return;
    fprintf(stderr, "%s: error %d\n", what, error);
    exit(1);
}

double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

bool target_open(struct target *t, cl_platform_id platform) {
    static const char *source = "__kernel void touch(__global int *a) { a[0] = a[0] ^ 1; }";
    cl_int error;
    memset(t, 0, sizeof(*t));
    t->platform = platform;
    t->right = true;
    check(clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof(t->name), t->name, NULL),
          "clGetPlatformInfo");
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &t->device, NULL) != CL_SUCCESS)
        return false;
    t->context = clCreateContext(NULL, 1, &t->device, NULL, NULL, &error);
    check(error, "clCreateContext");
    t->queue = clCreateCommandQueue(t->context, t->device, 0, &error);
    check(error, "clCreateCommandQueue");
    t->other = clCreateCommandQueue(t->context, t->device, 0, &error);
    check(error, "clCreateCommandQueue");
    t->program = clCreateProgramWithSource(t->context, 1, &source, NULL, &error);
    check(error, "clCreateProgramWithSource");
    check(clBuildProgram(t->program, 1, &t->device, "", NULL, NULL), "clBuildProgram");
    t->kernel = clCreateKernel(t->program, "touch", &error);
    check(error, "clCreateKernel");
    return true;
}

static void release(cl_mem *mem) {
    if (*mem)
        clReleaseMemObject(*mem);
    *mem = NULL;
}

static void drop_memory(struct target *t) {
    for (int i = 0; i < 2; i++) {
        if (t->fast[i])
            clEnqueueUnmapMemObject(t->queue, t->locked[i], t->fast[i], 0, NULL, NULL);
        t->fast[i] = NULL;
    }
    clFinish(t->queue);
    release(&t->buffer);
    release(&t->second);
    release(&t->mapped);
    release(&t->over);
    release(&t->locked[0]);
    release(&t->locked[1]);
    free(t->pages);
    free(t->back);
    free(t->own);
    t->pages = t->back = t->own = NULL;
}

void target_close(struct target *t) {
    drop_memory(t);
    clReleaseKernel(t->kernel);
    clReleaseProgram(t->program);
    clReleaseCommandQueue(t->queue);
    clReleaseCommandQueue(t->other);
    clReleaseContext(t->context);
}

static cl_mem make(const struct target *t, cl_mem_flags flags, void *host) {
    cl_int error;
    cl_mem mem = clCreateBuffer(t->context, CL_MEM_READ_WRITE | flags, t->size, host, &error);
    return error == CL_SUCCESS ? mem : NULL;
}

bool target_resize(struct target *t, size_t size) {
    cl_ulong most = 0, memory = 0;
    drop_memory(t);
    check(clGetDeviceInfo(t->device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(most), &most, NULL),
          "clGetDeviceInfo");
    check(clGetDeviceInfo(t->device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(memory), &memory, NULL),
          "clGetDeviceInfo");
    t->size = size;
    t->pages = malloc(size);
    t->back = malloc(size);
    t->own = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
    if (size > most || size > memory / 8 || !t->pages || !t->back || !t->own)
        return false;
    for (size_t i = 0; i < size; i++)
        t->pages[i] = (unsigned char)(i * 7 + i / 4096);
    memcpy(t->own, t->pages, size);
    memset(t->back, 0, size);
    t->buffer = make(t, 0, NULL);
    t->second = make(t, 0, NULL);
    t->mapped = make(t, CL_MEM_ALLOC_HOST_PTR, NULL);
    t->over = make(t, CL_MEM_USE_HOST_PTR, t->own);
    if (!t->buffer || !t->second || !t->mapped || !t->over)
        return false;
    for (int i = 0; i < 2; i++) {
        cl_int error = CL_OUT_OF_HOST_MEMORY;
        t->locked[i] = make(t, CL_MEM_ALLOC_HOST_PTR, NULL);
        if (t->locked[i])
            t->fast[i] =
                clEnqueueMapBuffer(t->queue, t->locked[i], CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                   size, 0, NULL, NULL, &error);
        if (error != CL_SUCCESS)
            return false;
        memcpy(t->fast[i], t->pages, size);
    }
    return true;
}

void touch(struct target *t, cl_mem buffer) {
    size_t one = 1;
    check(clSetKernelArg(t->kernel, 0, sizeof(cl_mem), &buffer), "clSetKernelArg");
    check(clEnqueueNDRangeKernel(t->queue, t->kernel, 1, NULL, &one, NULL, 0, NULL, NULL),
          "clEnqueueNDRangeKernel");
    check(clFinish(t->queue), "clFinish");
}
