/* SPDX-License-Identifier: MIT */
#define CL_TARGET_OPENCL_VERSION 120
#include "turns.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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

/* What the processes have in common. */
struct shared {
    int count; /* of platforms */
    char name[MOST][128];
    double times[]; /* of each row and platform: in each turn `repeat` */
};

struct run {
    const struct turns *turns;
    struct shared *shared;
    int argc;
    char **argv;
    int repeat, turn_count;
};

static double *times_of(const struct run *run, int row, int platform) {
    return &run->shared->times[(row * MOST + platform) * run->turn_count * run->repeat];
}

/* The platforms with devices whose name contains `part`, which are added to those found. */
static int add(const char *part, int found, cl_platform_id *platform, char (*name)[128]) {
    cl_platform_id all[MOST];
    cl_uint count = 0, devices;
    turns_check(clGetPlatformIDs(MOST, all, &count), "clGetPlatformIDs");
    for (cl_uint p = 0; p < count && p < MOST && found < MOST; p++) {
        char *own = name[found];
        turns_check(clGetPlatformInfo(all[p], CL_PLATFORM_NAME, sizeof(*name), own, NULL),
                    "clGetPlatformInfo");
        if (strstr(own, part) &&
            clGetDeviceIDs(all[p], CL_DEVICE_TYPE_ALL, 0, NULL, &devices) == CL_SUCCESS)
            platform[found++] = all[p];
    }
    return found;
}

/* Those that are wanted, in that order. */
static int find(const struct run *run, cl_platform_id *platform, char (*name)[128]) {
    int found = run->argc < 2 ? add("", 0, platform, name) : 0;
    for (int i = 1; i < run->argc; i++)
        found = add(run->argv[i], found, platform, name);
    return found;
}

static void list(const struct run *run, int turn, int platform) {
    cl_platform_id found[MOST];
    (void)turn;
    (void)platform;
    run->shared->count = find(run, found, run->shared->name);
}

static void measure(const struct run *run, int turn, int platform) {
    const struct turns *turns = run->turns;
    cl_platform_id found[MOST];
    char name[MOST][128];
    cl_device_id device;
    find(run, found, name);
    turns_check(clGetDeviceIDs(found[platform], CL_DEVICE_TYPE_ALL, 1, &device, NULL),
                "clGetDeviceIDs");
    struct target *target = turns->open(device);
    for (int r = -1; r < run->repeat; r++) /* the first round warms up */
        for (int row = 0; row < turns->count; row++) {
            double time = turns->rows[row].run(target);
            if (r >= 0)
                times_of(run, row, platform)[turn * run->repeat + r] = time;
        }
    turns->close(target);
}

/* In a process of its own; false: it did not end well. */
static bool apart(const struct run *run, void (*work)(const struct run *, int, int), int turn,
                  int platform) {
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        work(run, turn, platform);
        exit(0);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static void print(const struct run *run) {
    const struct turns *turns = run->turns;
    size_t count = (size_t)(run->turn_count * run->repeat);
    for (int row = 0; row < turns->count; row++) {
        double first = 0;
        printf("%-28s", turns->rows[row].name);
        for (int p = 0; p < run->shared->count; p++) {
            double *list = times_of(run, row, p);
            qsort(list, count, sizeof(*list), ascending);
            double median = list[count / 2];
            printf("  %s %.2f us", run->shared->name[p], median);
            if (p == 0)
                first = median;
            else
                printf(" (%.2f)", median / first);
        }
        printf("\n");
    }
}

int turns_main(int argc, char **argv, const struct turns *turns) {
    struct run run = {.turns = turns, .argv = argv};
    run.repeat = (int)turns_option(&argc, argv, "--repeat", 5);
    run.turn_count = (int)turns_option(&argc, argv, "--turns", 3);
    run.repeat = run.repeat < 1 ? 1 : run.repeat;
    run.turn_count = run.turn_count < 1 ? 1 : run.turn_count;
    run.argc = argc;
    size_t size = sizeof(struct shared) +
                  sizeof(double) * (size_t)(turns->count * MOST * run.turn_count * run.repeat);
    run.shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (run.shared == MAP_FAILED || !apart(&run, list, 0, 0) || run.shared->count == 0) {
        fprintf(stderr, "no platform\n");
        return 1;
    }
    for (int turn = 0; turn < run.turn_count; turn++)
        for (int p = 0; p < run.shared->count; p++)
            if (!apart(&run, measure, turn, p)) {
                fprintf(stderr, "%s: did not end well\n", run.shared->name[p]);
                return 1;
            }
    print(&run);
    return 0;
}
