/* SPDX-License-Identifier: MIT */
#define CL_TARGET_OPENCL_VERSION 120
#include "turns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST 8

void turns_check(cl_int error, const char *what) {
    if (error == CL_SUCCESS)
        return;
    fprintf(stderr, "%s: error %d\n", what, error);
    exit(1);
}

double turns_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

cl_context turns_context(cl_device_id device) {
    cl_int error;
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    turns_check(error, "clCreateContext");
    return context;
}

cl_command_queue turns_queue(cl_context context, cl_device_id device,
                             cl_command_queue_properties properties) {
    cl_int error;
    cl_command_queue queue = clCreateCommandQueue(context, device, properties, &error);
    turns_check(error, "clCreateCommandQueue");
    return queue;
}

cl_program turns_program(cl_context context, cl_device_id device, const char *source) {
    cl_int error;
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &error);
    turns_check(error, "clCreateProgramWithSource");
    turns_check(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
    return program;
}

cl_kernel turns_kernel(cl_program program, const char *name) {
    cl_int error;
    cl_kernel kernel = clCreateKernel(program, name, &error);
    turns_check(error, "clCreateKernel");
    return kernel;
}

cl_mem turns_buffer(cl_context context, size_t size, void *content) {
    cl_int error;
    cl_mem_flags flags = CL_MEM_READ_WRITE | (content ? CL_MEM_COPY_HOST_PTR : 0);
    cl_mem buffer = clCreateBuffer(context, flags, size, content, &error);
    turns_check(error, "clCreateBuffer");
    return buffer;
}

long turns_option(int *argc, char **argv, const char *name, long otherwise) {
    for (int i = 1; i + 1 < *argc; i++) {
        if (strcmp(argv[i], name) != 0)
            continue;
        otherwise = strtol(argv[i + 1], NULL, 0);
        *argc -= 2;
        memmove(argv + i, argv + i + 2, (size_t)(*argc - i) * sizeof(*argv));
    }
    return otherwise;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int is_wanted(const char *platform, int argc, char **argv) {
    int wanted = argc < 2;
    for (int i = 1; i < argc && !wanted; i++)
        wanted = strstr(platform, argv[i]) != NULL;
    return wanted;
}

/* Those that were opened, and their platforms' names. */
static int open_all(int argc, char **argv, const struct turns *turns, struct target **target,
                    char (*name)[128]) {
    cl_platform_id platforms[MOST];
    cl_uint count = 0;
    int opened = 0;
    turns_check(clGetPlatformIDs(MOST, platforms, &count), "clGetPlatformIDs");
    for (cl_uint p = 0; p < count && p < MOST; p++) {
        cl_device_id device;
        turns_check(
            clGetPlatformInfo(platforms[p], CL_PLATFORM_NAME, sizeof(*name), name[opened], NULL),
            "clGetPlatformInfo");
        if (is_wanted(name[opened], argc, argv) &&
            clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS)
            target[opened++] = turns->open(device);
    }
    return opened;
}

int turns_main(int argc, char **argv, const struct turns *turns) {
    struct target *target[MOST];
    char name[MOST][128];
    int repeat = (int)turns_option(&argc, argv, "--repeat", 11);
    repeat = repeat < 1 ? 1 : repeat;
    int targets = open_all(argc, argv, turns, target, name);
    double *times = calloc((size_t)(turns->count * MOST * repeat), sizeof(*times));
    if (!times || targets == 0) {
        fprintf(stderr, "no platform\n");
        return 1;
    }
    for (int r = -1; r < repeat; r++) /* the first round warms up */
        for (int row = 0; row < turns->count; row++)
            for (int t = 0; t < targets; t++) {
                double time = turns->rows[row].run(target[t]);
                if (r >= 0)
                    times[(row * MOST + t) * repeat + r] = time;
            }
    for (int row = 0; row < turns->count; row++) {
        printf("%-28s", turns->rows[row].name);
        for (int t = 0; t < targets; t++) {
            double *list = &times[(row * MOST + t) * repeat];
            qsort(list, (size_t)repeat, sizeof(*list), ascending);
            printf("  %s %.2f us", name[t], list[repeat / 2]);
        }
        printf("\n");
    }
    free(times);
    for (int t = 0; t < targets; t++)
        turns->close(target[t]);
    return 0;
}
