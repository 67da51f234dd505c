/* SPDX-License-Identifier: MIT */
/*
 * What a small command costs on each platform that is named, in µs, interleaved in one process:
 *     overhead [--repeat N] PLATFORM…      (parts of platform names; default: all platforms)
 * Rows: empty kernels back to back on one buffer and on sixteen; on one buffer, each waiting for
 * the event of the one before it, in an in-order and in an out-of-order queue; in sixteen queues in
 * turn; from four threads, each with a queue, a kernel object and a buffer; kernel + clFinish;
 * blocking 4-byte write and read. Then a fresh buffer of 1 KiB for each command: made and written;
 * made, used by a kernel, waited for; and that written before and read after. Last, kernels that
 * keep 64 work-items busy (50 µs on an H100) on sixteen buffers, in one queue and in sixteen. Each
 * number is the median over the repetitions.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST 8
#define BUFFERS 16
#define THREADS 4
#define BURST 2000
#define SINGLE 300
#define LONGER 128

struct target {
    char name[128];
    cl_context context;
    cl_command_queue queue, loose, many[BUFFERS];
    cl_program program;
    cl_kernel kernel, of_thread[THREADS], longer;
    cl_mem buffer[BUFFERS];
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
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void launch_in(cl_command_queue queue, cl_kernel kernel, cl_mem *buffer) {
    size_t items = 64;
    check(clSetKernelArg(kernel, 0, sizeof(cl_mem), buffer), "clSetKernelArg");
    check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &items, 0, NULL, NULL),
          "clEnqueueNDRangeKernel");
}

static void launch(struct target *t, int i) { launch_in(t->queue, t->kernel, &t->buffer[i]); }

static double burst(struct target *t, int buffers) {
    double start = now();
    for (int i = 0; i < BURST; i++)
        launch(t, i % buffers);
    check(clFinish(t->queue), "clFinish");
    return (now() - start) / BURST;
}

static double chained(struct target *t) { return burst(t, 1); }

static double independent(struct target *t) { return burst(t, BUFFERS); }

static double waiting(struct target *t, cl_command_queue queue) {
    size_t items = 64;
    cl_event last = NULL;
    double start = now();
    check(clSetKernelArg(t->kernel, 0, sizeof(cl_mem), &t->buffer[0]), "clSetKernelArg");
    for (int i = 0; i < BURST; i++) {
        cl_event event;
        check(clEnqueueNDRangeKernel(queue, t->kernel, 1, NULL, &items, &items, last ? 1 : 0,
                                     last ? &last : NULL, &event),
              "clEnqueueNDRangeKernel");
        if (last)
            clReleaseEvent(last);
        last = event;
    }
    check(clFinish(queue), "clFinish");
    clReleaseEvent(last);
    return (now() - start) / BURST;
}

static double waiting_in_order(struct target *t) { return waiting(t, t->queue); }

static double waiting_out_of_order(struct target *t) { return waiting(t, t->loose); }

static double in_queues(struct target *t, int queues, cl_kernel kernel, int count) {
    double start = now();
    for (int i = 0; i < count; i++)
        launch_in(t->many[i % queues], kernel, &t->buffer[i % BUFFERS]);
    for (int i = 0; i < queues; i++)
        check(clFinish(t->many[i]), "clFinish");
    return (now() - start) / count;
}

static double in_many_queues(struct target *t) { return in_queues(t, BUFFERS, t->kernel, BURST); }

struct thread {
    pthread_t thread;
    struct target *target;
    int number;
};

static void *run_thread(void *argument) {
    struct thread *thread = argument;
    struct target *t = thread->target;
    int n = thread->number;
    for (int i = 0; i < BURST / THREADS; i++)
        launch_in(t->many[n], t->of_thread[n], &t->buffer[n]);
    check(clFinish(t->many[n]), "clFinish");
    return NULL;
}

static double from_threads(struct target *t) {
    struct thread threads[THREADS];
    double start = now();
    for (int i = 0; i < THREADS; i++) {
        threads[i] = (struct thread){.target = t, .number = i};
        check(pthread_create(&threads[i].thread, NULL, run_thread, &threads[i]), "pthread_create");
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i].thread, NULL);
    return (now() - start) / BURST;
}

static double finish(struct target *t) {
    double start = now();
    for (int i = 0; i < SINGLE; i++) {
        launch(t, 0);
        check(clFinish(t->queue), "clFinish");
    }
    return (now() - start) / SINGLE;
}

static double write4(struct target *t) {
    cl_int value = 1;
    double start = now();
    for (int i = 0; i < SINGLE; i++)
        check(clEnqueueWriteBuffer(t->queue, t->buffer[0], CL_TRUE, 4, sizeof(value), &value, 0,
                                   NULL, NULL),
              "clEnqueueWriteBuffer");
    return (now() - start) / SINGLE;
}

static double read4(struct target *t) {
    cl_int value;
    double start = now();
    for (int i = 0; i < SINGLE; i++)
        check(clEnqueueReadBuffer(t->queue, t->buffer[0], CL_TRUE, 4, sizeof(value), &value, 0,
                                  NULL, NULL),
              "clEnqueueReadBuffer");
    return (now() - start) / SINGLE;
}

enum fresh { WRITE = 1, RUN = 2, READ = 4 };

static double with_fresh_buffers(struct target *t, int how) {
    static char bytes[1024];
    double start = now();
    for (int i = 0; i < SINGLE; i++) {
        cl_int error;
        cl_mem buffer = clCreateBuffer(t->context, CL_MEM_READ_WRITE, sizeof(bytes), NULL, &error);
        check(error, "clCreateBuffer");
        if (how & WRITE)
            check(clEnqueueWriteBuffer(t->queue, buffer, CL_TRUE, 0, sizeof(bytes), bytes, 0, NULL,
                                       NULL),
                  "clEnqueueWriteBuffer");
        if (how & RUN)
            launch_in(t->queue, t->kernel, &buffer);
        if (how & READ)
            check(clEnqueueReadBuffer(t->queue, buffer, CL_TRUE, 0, sizeof(bytes), bytes, 0, NULL,
                                      NULL),
                  "clEnqueueReadBuffer");
        else
            check(clFinish(t->queue), "clFinish");
        clReleaseMemObject(buffer);
    }
    return (now() - start) / SINGLE;
}

static double fresh_written(struct target *t) { return with_fresh_buffers(t, WRITE); }

static double fresh_used(struct target *t) { return with_fresh_buffers(t, RUN); }

static double fresh_life(struct target *t) { return with_fresh_buffers(t, WRITE | RUN | READ); }

static double longer_in_one(struct target *t) { return in_queues(t, 1, t->longer, LONGER); }

static double longer_in_many(struct target *t) { return in_queues(t, BUFFERS, t->longer, LONGER); }

static const struct {
    const char *name;
    double (*run)(struct target *);
} rows[] = {
    {"kernels on one buffer", chained},
    {"kernels on 16 buffers", independent},
    {"waiting for each other", waiting_in_order},
    {"the same out of order", waiting_out_of_order},
    {"in 16 queues", in_many_queues},
    {"from 4 threads", from_threads},
    {"kernel + clFinish", finish},
    {"blocking write, 4 bytes", write4},
    {"blocking read, 4 bytes", read4},
    {"fresh buffer, written", fresh_written},
    {"fresh buffer, kernel", fresh_used},
    {"the same, written and read", fresh_life},
    {"longer, on 16 buffers", longer_in_one},
    {"longer, in 16 queues", longer_in_many},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void open_target(struct target *t, cl_device_id device) {
    static const char *source =
        "__kernel void touch(__global int *a) { if (a[0] == 12345) a[1] = 0; }"
        "__kernel void turn(__global float *a) { float x = a[get_global_id(0)];"
        "  for (int i = 0; i < 20000; i++) x = fma(x, 0.999f, 0.5f); a[get_global_id(0)] = x; }";
    cl_int error;
    t->context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    check(error, "clCreateContext");
    t->queue = clCreateCommandQueue(t->context, device, 0, &error);
    check(error, "clCreateCommandQueue");
    t->loose =
        clCreateCommandQueue(t->context, device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &error);
    check(error, "clCreateCommandQueue, out of order");
    t->program = clCreateProgramWithSource(t->context, 1, &source, NULL, &error);
    check(error, "clCreateProgramWithSource");
    check(clBuildProgram(t->program, 1, &device, "", NULL, NULL), "clBuildProgram");
    t->kernel = clCreateKernel(t->program, "touch", &error);
    check(error, "clCreateKernel");
    t->longer = clCreateKernel(t->program, "turn", &error);
    check(error, "clCreateKernel");
    for (int i = 0; i < THREADS; i++) {
        t->of_thread[i] = clCreateKernel(t->program, "touch", &error);
        check(error, "clCreateKernel");
    }
    for (int i = 0; i < BUFFERS; i++) {
        t->many[i] = clCreateCommandQueue(t->context, device, 0, &error);
        check(error, "clCreateCommandQueue");
        t->buffer[i] = clCreateBuffer(t->context, CL_MEM_READ_WRITE, 4096, NULL, &error);
        check(error, "clCreateBuffer");
    }
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int wanted(const char *name, int argc, char **argv) {
    int named = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--repeat") == 0) {
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
    int targets = 0, repeat = 11;
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "--repeat") == 0 && (repeat = atoi(argv[i + 1])) < 1)
            repeat = 1;
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
        open_target(&target[targets++], device);
    }
    double *times = calloc(ROWS * MOST * (size_t)repeat, sizeof(*times));
    if (!times || targets == 0) {
        fprintf(stderr, "no platform\n");
        return 1;
    }
    for (int r = -1; r < repeat; r++) /* the first round warms up */
        for (size_t row = 0; row < ROWS; row++)
            for (int t = 0; t < targets; t++) {
                double time = rows[row].run(&target[t]);
                if (r >= 0)
                    times[(row * MOST + (size_t)t) * (size_t)repeat + (size_t)r] = time;
            }
    for (size_t row = 0; row < ROWS; row++) {
        printf("%-26s", rows[row].name);
        for (int t = 0; t < targets; t++) {
            double *list = &times[(row * MOST + (size_t)t) * (size_t)repeat];
            qsort(list, (size_t)repeat, sizeof(*list), ascending);
            printf("  %s %.2f us", target[t].name, list[repeat / 2]);
        }
        printf("\n");
    }
    free(times);
    for (int t = 0; t < targets; t++) {
        for (int i = 0; i < BUFFERS; i++) {
            clReleaseMemObject(target[t].buffer[i]);
            clReleaseCommandQueue(target[t].many[i]);
        }
        for (int i = 0; i < THREADS; i++)
            clReleaseKernel(target[t].of_thread[i]);
        clReleaseKernel(target[t].kernel);
        clReleaseKernel(target[t].longer);
        clReleaseProgram(target[t].program);
        clReleaseCommandQueue(target[t].queue);
        clReleaseCommandQueue(target[t].loose);
        clReleaseContext(target[t].context);
    }
    return 0;
}
