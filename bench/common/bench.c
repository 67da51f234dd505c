/* SPDX-License-Identifier: MIT */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

static const struct writing *choose(const struct writing *const *writings, unsigned count,
                                    const char *name) {
    for (unsigned i = 0; i < count; i++)
        if (!name || strcmp(writings[i]->name, name) == 0)
            return writings[i];
    die("there is no writing '%s'", name);
}

static bool choose_memory(const char *memory, const struct writing *writing) {
    if (memory && strcmp(memory, "plain") != 0 && strcmp(memory, "pinned") != 0)
        die("--memory must be plain or pinned");
    return strcmp(memory ? memory : writing->name, memory ? "pinned" : "by-hand") == 0;
}

static bool executes_native(cl_device_id device) {
    cl_device_exec_capabilities able = 0;
    cl_check(clGetDeviceInfo(device, CL_DEVICE_EXECUTION_CAPABILITIES, sizeof(able), &able, NULL),
             "clGetDeviceInfo");
    return (able & CL_EXEC_NATIVE_KERNEL) != 0;
}

void bench_open(struct bench *bench, int argc, char **argv, const char *summary,
                const struct option_entry *own, unsigned own_count,
                const struct writing *const *writings, unsigned writing_count, const char *source) {
    const char *writing = NULL, *memory = NULL;
    const struct option_entry shared[] = {
        {"writing", OPTION_TEXT, &writing, "HOW", "blocking, naive or by-hand"},
        {"memory", OPTION_TEXT, &memory, "KIND",
         "of the host: plain or pinned (by-hand: pinned, else plain)"},
    };
    const unsigned shared_count = sizeof(shared) / sizeof(shared[0]);
    struct option_entry *entry = allocate((own_count + shared_count) * sizeof(*entry));
    memcpy(entry, own, own_count * sizeof(*entry));
    memcpy(entry + own_count, shared, sizeof(shared));
    options_parse(argc, argv, summary, entry, own_count + shared_count, &bench->options);
    free(entry);

    bench->options.in_order = true;
    bench->options.distribution = DISTRIBUTION_TUTTI; /* one device, of Tutti if it is there */
    lanes_open(&bench->options, &bench->lanes);
    const struct lane *lane = &bench->lanes.lane[0];
    lanes_build(&bench->lanes, source, "");
    if (strcmp(lane->platform_name, "Tutti") != 0)
        bench->lanes.distribution = DISTRIBUTION_SINGLE;
    bench->context = lane->context;
    bench->device = lane->device;
    bench->queue = lane->queue;
    bench->writing = choose(writings, writing_count, writing);
    bench->native = executes_native(lane->device);
    bench->pinned = choose_memory(memory, bench->writing);
}

void bench_close(struct bench *bench) { lanes_close(&bench->lanes); }

cl_kernel bench_kernel(const struct bench *bench, const char *name) {
    return lane_kernel(&bench->lanes.lane[0], name);
}

cl_mem bench_buffer(const struct bench *bench, size_t bytes) {
    cl_int status;
    cl_mem buffer = clCreateBuffer(bench->context, CL_MEM_READ_WRITE, bytes, NULL, &status);
    cl_check(status, "clCreateBuffer");
    return buffer;
}

cl_command_queue bench_queue(const struct bench *bench) {
    cl_int status;
    cl_command_queue queue = clCreateCommandQueue(bench->context, bench->device, 0, &status);
    cl_check(status, "clCreateCommandQueue");
    return queue;
}

void bench_launch(cl_command_queue queue, cl_kernel kernel, size_t width, size_t height,
                  cl_uint wait_count, const cl_event *wait, cl_event *event) {
    const size_t global[2] = {width, height};
    cl_check(clEnqueueNDRangeKernel(queue, kernel, 2, NULL, global, NULL, wait_count,
                                    wait_count ? wait : NULL, event),
             "clEnqueueNDRangeKernel");
}

void bench_wait(cl_event *event) {
    if (*event)
        cl_check(clWaitForEvents(1, event), "clWaitForEvents");
    bench_forget(event);
}

void bench_forget(cl_event *event) {
    if (*event)
        cl_check(clReleaseEvent(*event), "clReleaseEvent");
    *event = NULL;
}

struct host_memory host_memory_new(const struct bench *bench, size_t bytes) {
    struct host_memory memory = {NULL, NULL};
    cl_int status;
    if (!bench->pinned) {
        memory.pointer = allocate_pages(bytes);
    } else {
        memory.buffer = clCreateBuffer(bench->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                       bytes, NULL, &status);
        cl_check(status, "clCreateBuffer");
        memory.pointer =
            clEnqueueMapBuffer(bench->queue, memory.buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                               bytes, 0, NULL, NULL, &status);
        cl_check(status, "clEnqueueMapBuffer");
    }
    /* No page is met for the first time inside the measured part. */
    memset(memory.pointer, 0, bytes);
    return memory;
}

void host_memory_free(const struct bench *bench, struct host_memory *memory) {
    if (!memory->buffer) {
        free(memory->pointer);
        return;
    }
    cl_check(clEnqueueUnmapMemObject(bench->queue, memory->buffer, memory->pointer, 0, NULL, NULL),
             "clEnqueueUnmapMemObject");
    cl_check(clFinish(bench->queue), "clFinish");
    cl_check(clReleaseMemObject(memory->buffer), "clReleaseMemObject");
}

struct once {
    const struct writing *writing;
    void *user;
};

static double run_once(void *user) {
    const struct once *once = user;
    const double start = now();
    once->writing->run(once->user);
    return now() - start;
}

void bench_measure(struct bench *bench, void *user, struct measure *measured) {
    struct once once = {bench->writing, user};
    measure(&bench->options, &bench->lanes, run_once, &once, measured);
}

void bench_report_begin(struct report *report, const struct bench *bench, const char *workload) {
    report_begin(report, workload, &bench->lanes);
    report_text(report, "writing", bench->writing->name);
    report_text(report, "memory", bench->pinned ? "pinned" : "plain");
}

cl_ulong bench_checksum(cl_ulong seed, const void *bytes, size_t size) {
    const unsigned char *byte = bytes;
    cl_ulong sum = seed, word;
    for (size_t i = 0; i + sizeof(word) <= size; i += sizeof(word)) {
        memcpy(&word, byte + i, sizeof(word));
        sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
        sum ^= sum >> 29;
    }
    for (size_t i = size - size % sizeof(word); i < size; i++)
        sum = (sum ^ byte[i]) * 0x9e3779b97f4a7c15u;
    return sum;
}
