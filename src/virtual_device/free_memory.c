/* SPDX-License-Identifier: MIT */
#include "virtual_device/free_memory.h"

#include "virtual_device/uuid.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Bytes; a context of NVIDIA's driver (580) takes some 600 MiB. */
#define SCARCE ((cl_ulong)2 << 30)

/* cl_amd_device_attribute_query: KiB in all, and in one piece. */
#define FREE_MEMORY_AMD 0x4039

/* What is used of NVIDIA's management library (NVML); functions return 0 for success. */
struct nvml_memory {
    unsigned long long total, free, used;
};
static struct {
    int (*find)(const char *uuid, void **device);
    int (*get_memory)(void *device, struct nvml_memory *memory);
    bool there;
} nvml;
static pthread_once_t nvml_once = PTHREAD_ONCE_INIT;

/* It stays open, as its start takes half of the time. */
static void open_nvml(void) {
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return;
    int (*init)(void) = (int (*)(void))dlsym(library, "nvmlInit_v2");
    nvml.find = (int (*)(const char *, void **))dlsym(library, "nvmlDeviceGetHandleByUUID");
    nvml.get_memory =
        (int (*)(void *, struct nvml_memory *))dlsym(library, "nvmlDeviceGetMemoryInfo");
    nvml.there = init && nvml.find && nvml.get_memory && init() == 0;
}

/* As "GPU-ca97db10-5893-4976-75c5-68b53720f6a5". */
static void write_uuid(const cl_uchar uuid[CL_UUID_SIZE_KHR], char text[48]) {
    int at = snprintf(text, 48, "GPU-");
    for (int i = 0; i < CL_UUID_SIZE_KHR; i++)
        at += snprintf(text + at, (size_t)(48 - at), "%s%02x",
                       i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

static bool ask_nvml(const struct tutti_real_device *device, cl_ulong *bytes) {
    cl_uchar uuid[CL_UUID_SIZE_KHR];
    char text[48];
    struct nvml_memory memory;
    void *found;
    if (strcmp(device->platform_name, "NVIDIA CUDA") != 0 || !tutti_real_device_uuid(device, uuid))
        return false;
    pthread_once(&nvml_once, open_nvml);
    write_uuid(uuid, text);
    if (!nvml.there || nvml.find(text, &found) != 0 || nvml.get_memory(found, &memory) != 0)
        return false;
    *bytes = memory.free;
    return true;
}

bool tutti_free_memory_is_scarce(const struct tutti_real_device *device) {
    size_t free[2] = {0, 0};
    cl_ulong bytes;
    if (device->dispatch->clGetDeviceInfo(device->id, FREE_MEMORY_AMD, sizeof(free), free, NULL) ==
        CL_SUCCESS)
        bytes = (cl_ulong)free[0] << 10;
    else if (!ask_nvml(device, &bytes))
        return false;
    return bytes < SCARCE;
}
