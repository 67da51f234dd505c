/* SPDX-License-Identifier: MIT */
#include "virtual_device/device.h"

#include "env.h"
#include "log.h"
#include "sched/policy.h"
#include "virtual_device/merged.h"
#include "virtual_device/pocl.h"
#include "virtual_device/selection.h"
#include "virtual_device/vendor.h"

#include <CL/cl_ext.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct tutti_device_list list;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_bool discovered; /* each command asks for the list */
/* A driver that asks its own loader for devices while we ask it comes back to us. */
static _Thread_local bool discovering;

static atomic_bool forked;

static void in_child(void) { atomic_store(&forked, true); }

bool tutti_devices_forked(void) { return atomic_load(&forked); }

static cl_int ask(const struct tutti_real_device *device, cl_device_info what, size_t size,
                  void *value) {
    return device->dispatch->clGetDeviceInfo(device->id, what, size, value, NULL);
}

static char *ask_string(const struct tutti_real_device *device, cl_device_info what) {
    size_t size = 0;
    char *string = NULL;
    if (device->dispatch->clGetDeviceInfo(device->id, what, 0, NULL, &size) == CL_SUCCESS &&
        (string = calloc(1, size + 1)) && size &&
        device->dispatch->clGetDeviceInfo(device->id, what, size, string, NULL) != CL_SUCCESS)
        string[0] = 0;
    return string;
}

/* " a b ": so that " name " can be searched. */
static char *ask_extensions(const struct tutti_real_device *device) {
    char *bare = ask_string(device, CL_DEVICE_EXTENSIONS), *spaced = NULL;
    if (bare && asprintf(&spaced, " %s ", bare) < 0)
        spaced = NULL;
    free(bare);
    return spaced;
}

/* The names of CL_DEVICE_OPENCL_C_FEATURES, likewise. */
static char *ask_features(const struct tutti_real_device *device) {
    size_t count, size = 2;
    cl_name_version *features = tutti_names_ask(device, CL_DEVICE_OPENCL_C_FEATURES, &count);
    for (size_t i = 0; i < count; i++)
        size += strlen(features[i].name) + 1;
    char *spaced = malloc(size), *end = spaced;
    if (spaced)
        end = stpcpy(end, " ");
    for (size_t i = 0; spaced && i < count; i++) {
        end = stpcpy(end, features[i].name);
        end = stpcpy(end, " ");
    }
    free(features);
    return spaced;
}

/* The intermediate languages, likewise. */
static char *ask_ils(const struct tutti_real_device *device) {
    bool can = device->version >= 210 || strstr(device->extensions, " cl_khr_il_program ");
    char *bare = can ? ask_string(device, CL_DEVICE_IL_VERSION) : NULL, *spaced = NULL;
    if (asprintf(&spaced, " %s ", bare ? bare : "") < 0)
        spaced = NULL;
    free(bare);
    return spaced;
}

static uint64_t hash(uint64_t seed, const char *string) {
    for (; *string; string++)
        seed = (seed ^ (unsigned char)*string) * 0x100000001b3u;
    return seed * 0x100000001b3u;
}

static void free_device(struct tutti_real_device *device) {
    free(device->name);
    free(device->platform_name);
    free(device->driver_version);
    free(device->extensions);
    free(device->features);
    free(device->ils);
    free(device);
}

static cl_uint version_of(const struct tutti_real_device *device) {
    unsigned major = 0, minor = 0;
    char *version = ask_string(device, CL_DEVICE_VERSION);
    if (version && sscanf(version, "OpenCL %u.%u", &major, &minor) != 2)
        major = 0;
    free(version);
    return major * 100 + minor * 10;
}

/* Should devices that could work in home memory have memory of their own, for tests? */
static bool stands_in(void) {
    const char *transfer = tutti_env_string(TUTTI_TRANSFER);
    return tutti_env_size(TUTTI_DEVICE_MEMORY, 0) > 0 ||
           (transfer && strcmp(transfer, "staged") == 0);
}

/* With CL_MEM_USE_HOST_PTR, do the platform's CPU devices work in that memory itself? */
static bool uses_host_memory(const char *platform_name) {
    static const char *const known[] = {"Portable Computing Language", "Intel(R) OpenCL"};
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (strcmp(platform_name, known[i]) == 0)
            return true;
    return false;
}

static bool read_properties(struct tutti_real_device *device) {
    cl_int error = ask(device, CL_DEVICE_TYPE, sizeof(device->type), &device->type);
#define ASK(what, field) error |= ask(device, what, sizeof(device->field), &device->field)
    ASK(CL_DEVICE_MAX_COMPUTE_UNITS, compute_units);
    ASK(CL_DEVICE_GLOBAL_MEM_SIZE, global_mem_size);
    ASK(CL_DEVICE_MAX_MEM_ALLOC_SIZE, max_mem_alloc_size);
    ASK(CL_DEVICE_LOCAL_MEM_SIZE, local_mem_size);
    ASK(CL_DEVICE_MAX_WORK_GROUP_SIZE, max_work_group_size);
    ASK(CL_DEVICE_MEM_BASE_ADDR_ALIGN, mem_base_addr_align);
    ASK(CL_DEVICE_ADDRESS_BITS, address_bits);
    ASK(CL_DEVICE_IMAGE_SUPPORT, image_support);
#undef ASK
    size_t sizes[16] = {0};
    error |= ask(device, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof(sizes), sizes);
    memcpy(device->max_work_item_sizes, sizes, sizeof(device->max_work_item_sizes));
    ask(device, CL_DEVICE_MAX_CLOCK_FREQUENCY, sizeof(device->clock_mhz), &device->clock_mhz);
    if (device->version < 200 ||
        ask(device, CL_DEVICE_SVM_CAPABILITIES, sizeof(device->svm), &device->svm) != CL_SUCCESS)
        device->svm = 0;
    device->shares_host =
        device->type & CL_DEVICE_TYPE_CPU && uses_host_memory(device->platform_name);
    device->takes_addresses = device->shares_host && tutti_pocl_is(device) &&
                              device->svm & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER;
    device->at_home = device->shares_host && !stands_in();
    return error == CL_SUCCESS;
}

static const char *unusable(const struct tutti_real_device *device) {
    cl_bool available = CL_FALSE, compiler = CL_FALSE;
    ask(device, CL_DEVICE_AVAILABLE, sizeof(available), &available);
    ask(device, CL_DEVICE_COMPILER_AVAILABLE, sizeof(compiler), &compiler);
    if (!available)
        return "it is not available";
    if (!compiler)
        return "it has no compiler";
    return device->version < 120 ? "it is older than OpenCL 1.2" : NULL;
}

static struct tutti_real_device *describe(cl_platform_id platform, const cl_icd_dispatch *dispatch,
                                          const char *platform_name, cl_device_id id) {
    struct tutti_real_device *device = calloc(1, sizeof(*device));
    if (!device)
        return NULL;
    device->id = id;
    device->platform = platform;
    device->dispatch = dispatch;
    device->place.devid = -1;
    device->name = ask_string(device, CL_DEVICE_NAME);
    device->platform_name = strdup(platform_name);
    device->driver_version = ask_string(device, CL_DRIVER_VERSION);
    device->extensions = ask_extensions(device);
    device->version = version_of(device);
    if (device->extensions) {
        device->features = ask_features(device);
        device->ils = ask_ils(device);
    }
    if (!device->name || !device->platform_name || !device->driver_version || !device->extensions ||
        !device->features || !device->ils || !read_properties(device)) {
        tutti_log(WARNING, "%s: a device that can't be asked", platform_name);
        free_device(device);
        return NULL;
    }
    device->identity =
        hash(hash(hash(0xcbf29ce484222325u, device->name), platform_name), device->driver_version);
    const char *reason = unusable(device);
    if (reason) {
        tutti_log(INFO, "%s is left out: %s", device->name, reason);
        free_device(device);
        return NULL;
    }
    return device;
}

static void found_platform(cl_platform_id platform, const cl_icd_dispatch *dispatch,
                           const char *name, void *argument) {
    const cl_device_type types =
        CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR | CL_DEVICE_TYPE_CPU;
    struct tutti_candidates *candidates = argument;
    cl_device_id ids[64];
    cl_uint count = 0;
    if (dispatch->clGetDeviceIDs(platform, types, 64, ids, &count) != CL_SUCCESS) {
        tutti_log(INFO, "%s: no devices", name);
        return;
    }
    for (cl_uint i = 0; i < count && i < 64; i++) {
        struct tutti_real_device *device = describe(platform, dispatch, name, ids[i]);
        if (device && (tutti_candidates_has_same(candidates, device) ||
                       !tutti_candidates_add(candidates, device)))
            free_device(device);
    }
}

static unsigned find_kind(const struct tutti_real_device *device) {
    unsigned kind = 0;
    while (list.device[kind]->identity != device->identity)
        kind++;
    return kind;
}

static void discover(void) {
    struct tutti_candidates candidates = {0};
    discovering = true;
    pthread_atfork(NULL, NULL, in_child);
    tutti_vendors_visit(found_platform, &candidates);
    tutti_candidates_sort(&candidates);
    for (unsigned i = 0; i < candidates.count; i++)
        tutti_log(INFO, "real device %u: %s (%s)", i, candidates.device[i]->name,
                  candidates.device[i]->platform_name);
    tutti_candidates_select(&candidates, &list);
    for (unsigned i = 0; i < list.count; i++) {
        list.device[i]->index = i;
        list.device[i]->kind = find_kind(list.device[i]);
        tutti_log(INFO, "joins%s: %s", i ? "" : " as lead", list.device[i]->name);
    }
    tutti_selection_find_spare(&list, tutti_policy_is_wanted());
    for (unsigned i = 0; i < candidates.count; i++)
        if (candidates.device[i])
            free_device(candidates.device[i]);
    discovering = false;
    atomic_store_explicit(&discovered, true, memory_order_release);
}

const struct tutti_device_list *tutti_devices(void) {
    static const struct tutti_device_list none;
    if (atomic_load_explicit(&discovered, memory_order_acquire))
        return &list;
    if (discovering)
        return &none;
    pthread_once(&once, discover);
    return &list;
}

unsigned tutti_devices_apart(unsigned devices) {
    unsigned apart = 0;
    for (unsigned d = 0; d < tutti_devices()->count; d++)
        apart += devices & 1u << d && !list.device[d]->at_home;
    return apart;
}

bool tutti_devices_are_at_home(unsigned devices) { return tutti_devices_apart(devices) == 0; }
