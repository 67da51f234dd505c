/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_DEVICE_H
#define TUTTI_DEVICE_H

#include "object.h"

#include <string.h>

/* StarPU as Debian builds it drives at most 8 OpenCL devices. */
#define TUTTI_MAX_DEVICES 8

/* One of the devices behind the virtual one. Read-only once discovered, but for `place`. */
struct tutti_real_device {
    unsigned index; /* in the order of TUTTI_DEVICES; 0 is the lead device */
    cl_device_id id;
    cl_platform_id platform;
    const cl_icd_dispatch *dispatch; /* the driver's own: our symbols never capture our calls */
    char *name;                      /* CL_DEVICE_NAME */
    char *platform_name;             /* CL_PLATFORM_NAME */
    char *driver_version;            /* CL_DRIVER_VERSION */
    char *extensions;                /* CL_DEVICE_EXTENSIONS, spaces around each: " a b " */
    char *features;                  /* the same of CL_DEVICE_OPENCL_C_FEATURES; " " before 3.0 */
    char *ils;                       /* the same of CL_DEVICE_IL_VERSION; " " where it takes none */
    cl_device_type type;
    cl_uint version; /* of the device: 120, 200, 300 */
    cl_uint compute_units;
    cl_uint clock_mhz; /* 0 where the driver doesn't know */
    cl_ulong global_mem_size;
    cl_ulong max_mem_alloc_size;
    cl_ulong local_mem_size;
    size_t max_work_group_size;
    size_t max_work_item_sizes[3];
    cl_uint mem_base_addr_align; /* bits */
    cl_uint address_bits;
    cl_bool image_support;
    /*
     * A driver whose buffers over our host memory (CL_MEM_USE_HOST_PTR) are that memory: bytes are
     * moved by memcpy, without the driver. So it is with PoCL and Intel's runtime on the CPU; with
     * PoCL it is needed, too: a basic device executes whatever is ready in whichever thread
     * enqueues, and two such threads can lock each other out for ever.
     */
    bool shares_host;
    /*
     * And it does work in the host's copy of a buffer: always, unless TUTTI_TRANSFER=staged or
     * TUTTI_DEVICE_MEMORY makes it a stand-in for a device with memory of its own.
     */
    bool at_home;
    /*
     * Kernels may be given the address of any host memory, as a pointer of shared virtual memory.
     * So it is with PoCL's CPU devices, which do less for it than for a memory object: these they
     * look at, order and keep for each launch.
     */
    bool takes_addresses;
    /*
     * Given nothing by our policy: an interpreter, or a CPU device that works in copies beside ones
     * that work in home memory and have its cores already. It keeps nothing from being at home:
     * `at_home` is set.
     */
    bool spare;
    cl_device_svm_capabilities svm;
    uint64_t identity; /* hash of name, platform and driver version: the same on the next run */
    unsigned kind;     /* the first device of that identity, which stands for all: its index */

    /* Where StarPU drives it; written once by src/sched/runtime.c while it starts. */
    struct {
        int devid;          /* StarPU's OpenCL device number; −1: StarPU does not drive it */
        int workerid;       /* StarPU's worker */
        unsigned node;      /* StarPU's memory node */
        /* StarPU's of this one device, or one with others (peers.h): its memory, programs, queues */
        cl_context context;
        /*
         * In order. An event on a queue with profiling costs NVIDIA's driver 9 µs, on another one
         * nothing. But PoCL must not execute some kernels of a device at once (pocl.h): both are the
         * same but for a basic device, which executes in the call, and calls come one at a time.
         */
        cl_command_queue kernels;
        cl_command_queue measured; /* with profiling */
        pthread_mutex_t enqueues;  /* held by who enqueues there, as kernels have one object each */
        pthread_mutex_t ends; /* guards `last_end` */
        cl_ulong last_end;    /* of the commands executed so far: host's clock */
        cl_command_queue uploads;   /* in order; any thread */
        cl_command_queue downloads; /* the same: both directions of the link at once */
        cl_command_queue takes; /* what takes the memory of new buffers; NULL: nothing does */
        /* A basic device, or Oclgrind: commands are waited for at once, by who enqueues them. */
        bool synchronous;
    } place;
};

/* Does it execute a command in the call that enqueues it? So a basic device does (pocl.h). */
static inline bool tutti_device_executes_in_call(const struct tutti_real_device *device) {
    return device->place.synchronous && device->shares_host; /* Oclgrind's don't */
}

/* Does it execute by itself what is on its one queue for kernels, measured ones and others? */
static inline bool tutti_device_has_one_queue(const struct tutti_real_device *device) {
    return !device->place.synchronous && device->place.kernels == device->place.measured;
}

/* An interpreter of instructions, whatever else it says of itself: each takes 0.1 µs and more. */
static inline bool tutti_device_interprets(const struct tutti_real_device *device) {
    return strcmp(device->platform_name, "Oclgrind") == 0;
}

/* Of bits for real devices: is it exactly one? */
static inline bool tutti_is_one_device(unsigned devices) {
    return devices && (devices & (devices - 1)) == 0;
}

struct tutti_device_list {
    unsigned count;
    unsigned serving; /* of them, all but the spare ones */
    struct tutti_real_device *device[TUTTI_MAX_DEVICES];
};

/*
 * The real devices, found at the first call without the loader and without StarPU: the vendor
 * directory is read, each other ICD opened and asked. Thread-safe. Never NULL; count may be 0.
 */
const struct tutti_device_list *tutti_devices(void);

/* How many do not work in home memory, as GPUs? And do all? Of bits for real devices. */
unsigned tutti_devices_apart(unsigned devices);
bool tutti_devices_are_at_home(unsigned devices);

/*
 * Was this process forked from one that had found the devices? Then the drivers' threads, and
 * StarPU's, stayed behind: queries still answer, but nothing can run.
 */
bool tutti_devices_forked(void);

/* The one platform; always there. */
cl_platform_id tutti_platform(void);

/* The one device; NULL when there is no real device. */
cl_device_id tutti_device(void);

/*
 * True from `tutti_devices_hand_over(list)` until `tutti_devices_hand_over(NULL)`: while StarPU
 * starts, our clGetDeviceIDs answers these real devices to it instead of the virtual one
 * (CL_DEVICE_NOT_FOUND when the list is empty). Called by src/sched/runtime.c alone.
 */
struct tutti_hand_over {
    unsigned count;
    cl_device_id id[TUTTI_MAX_DEVICES];
};
void tutti_devices_hand_over(const struct tutti_hand_over *list);

/*
 * Limits of the virtual device that argument checks need; those of clGetDeviceInfo.
 */
struct tutti_limits {
    size_t max_work_group_size;
    size_t max_work_item_sizes[3];
    cl_ulong max_mem_alloc_size;
    cl_ulong global_mem_size;
    cl_uint mem_base_addr_align; /* bits: the maximum over the real devices */
    cl_bool image_support;
    cl_uint version;                /* 120 or 300 */
    cl_device_svm_capabilities svm; /* 0: no shared virtual memory */
};
const struct tutti_limits *tutti_device_limits(void);

#endif
