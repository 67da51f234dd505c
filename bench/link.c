/* SPDX-License-Identifier: MIT */
/*
 * How fast bytes go between a program's memory and a device, on each platform that is named, in
 * GB/s (10^9 bytes), interleaved in one process:
 *     link [--repeat N] [--mib SIZE] PLATFORM…      (parts of platform names; default: all)
 * Each row ends with a kernel that reads the first word, or begins after one that wrote it, so that
 * the bytes really are on the device. Each number is the median over the repetitions. The last
 * column is NO when what was read back is not what was written.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST 8

struct target {
    char name[128];
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernel;
    cl_mem buffer, host; /* on the device; CL_MEM_ALLOC_HOST_PTR */
    size_t size;
    unsigned char *pages, *back;
    int right;
};

static void check(cl_int error, const char *what) {
    if (error == CL_SUCCESS)
        return;
    fprintf(stderr, "%s: error %d\n", what, error);
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void touch(struct target *t, cl_mem buffer) {
    size_t one = 1;
    check(clSetKernelArg(t->kernel, 0, sizeof(cl_mem), &buffer), "clSetKernelArg");
    check(clEnqueueNDRangeKernel(t->queue, t->kernel, 1, NULL, &one, NULL, 0, NULL, NULL),
          "clEnqueueNDRangeKernel");
    check(clFinish(t->queue), "clFinish");
}

static double write_pages(struct target *t) {
    double start = now();
    check(clEnqueueWriteBuffer(t->queue, t->buffer, CL_TRUE, 0, t->size, t->pages, 0, NULL, NULL),
          "clEnqueueWriteBuffer");
    touch(t, t->buffer);
    return now() - start;
}

static double read_pages(struct target *t) {
    touch(t, t->buffer);
    double start = now();
    check(clEnqueueReadBuffer(t->queue, t->buffer, CL_TRUE, 0, t->size, t->back, 0, NULL, NULL),
          "clEnqueueReadBuffer");
    double length = now() - start;
    t->right = t->right && memcmp(t->pages + 4, t->back + 4, t->size - 4) == 0;
    memset(t->back, 0, t->size);
    return length;
}

/* The part leaves out the first and the last kilobyte. */
static double write_part(struct target *t) {
    touch(t, t->buffer);
    double start = now();
    check(clEnqueueWriteBuffer(t->queue, t->buffer, CL_TRUE, 1024, t->size - 2048, t->pages + 1024,
                               0, NULL, NULL),
          "clEnqueueWriteBuffer");
    touch(t, t->buffer);
    return now() - start;
}

#define ROW 4096
#define PITCH 8192

/* Every other 4 KiB; counted are the bytes that move. */
static double rows(struct target *t, int reading) {
    size_t origin[3] = {0, 0, 0}, region[3] = {ROW, t->size / PITCH, 1};
    touch(t, t->buffer);
    double start = now();
    if (reading)
        check(clEnqueueReadBufferRect(t->queue, t->buffer, CL_TRUE, origin, origin, region, PITCH,
                                      0, PITCH, 0, t->back, 0, NULL, NULL),
              "clEnqueueReadBufferRect");
    else
        check(clEnqueueWriteBufferRect(t->queue, t->buffer, CL_TRUE, origin, origin, region, PITCH,
                                       0, PITCH, 0, t->pages, 0, NULL, NULL),
              "clEnqueueWriteBufferRect");
    return (now() - start) * 2; /* half of the bytes */
}

static double write_rows(struct target *t) { return rows(t, 0); }
static double read_rows(struct target *t) { return rows(t, 1); }

static double map_write(struct target *t) {
    cl_int error;
    double start = now();
    void *mapped = clEnqueueMapBuffer(t->queue, t->host, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 0,
                                      t->size, 0, NULL, NULL, &error);
    check(error, "clEnqueueMapBuffer");
    double mapping = now() - start;
    memcpy(mapped, t->pages, t->size); /* the program's own time */
    start = now();
    check(clEnqueueUnmapMemObject(t->queue, t->host, mapped, 0, NULL, NULL), "unmap");
    touch(t, t->host);
    return now() - start + mapping;
}

static double map_read(struct target *t) {
    cl_int error;
    touch(t, t->host);
    double start = now();
    void *mapped = clEnqueueMapBuffer(t->queue, t->host, CL_TRUE, CL_MAP_READ, 0, t->size, 0, NULL,
                                      NULL, &error);
    check(error, "clEnqueueMapBuffer");
    double length = now() - start;
    t->right = t->right && memcmp((char *)mapped + 4, t->pages + 4, t->size - 4) == 0;
    check(clEnqueueUnmapMemObject(t->queue, t->host, mapped, 0, NULL, NULL), "unmap");
    check(clFinish(t->queue), "clFinish");
    return length;
}

static const struct {
    const char *name;
    double (*run)(struct target *);
} table[] = {
    {"write, pageable memory", write_pages},
    {"read, pageable memory", read_pages},
    {"write a part", write_part},
    {"write rows of 4 KiB", write_rows},
    {"read rows of 4 KiB", read_rows},
    {"map for writing, unmap", map_write},
    {"map for reading", map_read},
};
#define ROWS (sizeof(table) / sizeof(table[0]))

static void open_target(struct target *t, cl_device_id device, size_t size) {
    static const char *source = "__kernel void touch(__global int *a) { a[0] = a[0] ^ 1; }";
    cl_int error;
    t->context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    check(error, "clCreateContext");
    t->queue = clCreateCommandQueue(t->context, device, 0, &error);
    check(error, "clCreateCommandQueue");
    t->program = clCreateProgramWithSource(t->context, 1, &source, NULL, &error);
    check(error, "clCreateProgramWithSource");
    check(clBuildProgram(t->program, 1, &device, "", NULL, NULL), "clBuildProgram");
    t->kernel = clCreateKernel(t->program, "touch", &error);
    check(error, "clCreateKernel");
    t->buffer = clCreateBuffer(t->context, CL_MEM_READ_WRITE, size, NULL, &error);
    check(error, "clCreateBuffer");
    t->host =
        clCreateBuffer(t->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, size, NULL, &error);
    check(error, "clCreateBuffer");
    t->size = size;
    t->right = 1;
    t->pages = malloc(size);
    t->back = malloc(size);
    if (!t->pages || !t->back)
        check(CL_OUT_OF_HOST_MEMORY, "malloc");
    for (size_t i = 0; i < size; i++)
        t->pages[i] = (unsigned char)(i * 7 + i / 4096);
    memset(t->back, 0, size);
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int wanted(const char *name, int argc, char **argv) {
    int named = 0;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) == 0) {
            i++;
            continue;
        }
        named = 1;
        if (strstr(name, argv[i]))
            return 1;
    }
    return !named;
}

int main(int argc, char **argv) {
    static struct target target[MOST];
    cl_platform_id platforms[MOST];
    cl_uint count = 0;
    int targets = 0, repeat = 7;
    size_t size = 256;
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], "--repeat") == 0 && (repeat = atoi(argv[i + 1])) < 1)
            repeat = 1;
        if (strcmp(argv[i], "--mib") == 0 && (size = (size_t)atoi(argv[i + 1])) < 1)
            size = 1;
    }
    check(clGetPlatformIDs(MOST, platforms, &count), "clGetPlatformIDs");
    for (cl_uint p = 0; p < count && p < MOST; p++) {
        cl_device_id device;
        char name[128];
        check(clGetPlatformInfo(platforms[p], CL_PLATFORM_NAME, sizeof(name), name, NULL),
              "clGetPlatformInfo");
        if (!wanted(name, argc, argv) ||
            clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS)
            continue;
        memcpy(target[targets].name, name, sizeof(name));
        open_target(&target[targets++], device, size << 20);
    }
    double *times = calloc((size_t)(targets * repeat) * ROWS + 1, sizeof(*times));
    if (!times)
        return 1;
    for (int r = -1; r < repeat; r++) /* the first round is for pages and caches */
        for (size_t row = 0; row < ROWS; row++)
            for (int t = 0; t < targets; t++) {
                double seconds = table[row].run(&target[t]);
                if (r >= 0)
                    times[(row * (size_t)targets + (size_t)t) * (size_t)repeat + (size_t)r] =
                        seconds;
            }
    printf("%zu MiB, GB/s%14s", size, "");
    for (int t = 0; t < targets; t++)
        printf("%28.27s", target[t].name);
    printf("\n");
    for (size_t row = 0; row < ROWS; row++) {
        printf("%-26s", table[row].name);
        for (int t = 0; t < targets; t++) {
            double *of = times + (row * (size_t)targets + (size_t)t) * (size_t)repeat;
            qsort(of, (size_t)repeat, sizeof(*of), ascending);
            printf("%28.2f", (double)(size << 20) / of[repeat / 2] / 1e9);
        }
        printf("\n");
    }
    printf("%-26s", "right");
    for (int t = 0; t < targets; t++)
        printf("%28s", target[t].right ? "yes" : "NO");
    printf("\n");
    return 0;
}
