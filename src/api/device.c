/* SPDX-License-Identifier: MIT */
/* Devices: OpenCL 1.2, sections 4.2 and 4.3; timers of 2.1. */
#include "virtual_device/device.h"
#include "entry_points.h"
#include "object.h"
#include "sched/runtime.h"
#include "virtual_device/device_info.h"

struct _cl_device_id {
    struct tutti_object object;
};

static struct _cl_device_id virtual_device = {
    {.dispatch = &tutti_dispatch, .type = TUTTI_DEVICE, .user_refs = 1, .refs = 1}};

/* What StarPU is told while it starts; set by the thread that starts it, asked by that thread. */
static _Thread_local const struct tutti_hand_over *handed_over;

void tutti_devices_hand_over(const struct tutti_hand_over *list) { handed_over = list; }

cl_device_id tutti_device(void) { return tutti_devices()->count ? &virtual_device : NULL; }

static cl_int answer_starpu(cl_uint num_entries, cl_device_id *devices, cl_uint *num_devices) {
    if (handed_over->count == 0)
        return CL_DEVICE_NOT_FOUND;
    for (cl_uint i = 0; devices && i < num_entries && i < handed_over->count; i++)
        devices[i] = handed_over->id[i];
    if (num_devices)
        *num_devices = handed_over->count;
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clGetDeviceIDs(cl_platform_id platform,
                                                     cl_device_type device_type,
                                                     cl_uint num_entries, cl_device_id *devices,
                                                     cl_uint *num_devices) {
    const cl_device_type known = CL_DEVICE_TYPE_DEFAULT | CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU |
                                 CL_DEVICE_TYPE_ACCELERATOR | CL_DEVICE_TYPE_CUSTOM;
    if (platform && platform != tutti_platform())
        return CL_INVALID_PLATFORM;
    if (handed_over)
        return answer_starpu(num_entries, devices, num_devices);
    if (device_type == 0 || (device_type != CL_DEVICE_TYPE_ALL && device_type & ~known))
        return CL_INVALID_DEVICE_TYPE;
    if ((devices && num_entries == 0) || (!devices && !num_devices))
        return CL_INVALID_VALUE;
    /* A StarPU that is not ours asks for devices to drive: it has the real ones already. */
    bool foreign = starpu_is_initialized() && !tutti_runtime_starting() && !tutti_runtime_started();
    cl_device_id device = foreign ? NULL : tutti_device();
    if (!device || !(device_type == CL_DEVICE_TYPE_ALL || device_type & CL_DEVICE_TYPE_DEFAULT ||
                     device_type & tutti_device_type()))
        return CL_DEVICE_NOT_FOUND;
    if (devices)
        devices[0] = device;
    if (num_devices)
        *num_devices = 1;
    return CL_SUCCESS;
}

static bool is_device(cl_device_id device) { return device == &virtual_device && tutti_device(); }

CL_API_ENTRY cl_int CL_API_CALL tutti_clGetDeviceInfo(cl_device_id device,
                                                      cl_device_info param_name,
                                                      size_t param_value_size, void *param_value,
                                                      size_t *param_value_size_ret) {
    if (!is_device(device))
        return CL_INVALID_DEVICE;
    return tutti_device_info(param_name, param_value_size, param_value, param_value_size_ret);
}

/* A root device is not counted. */
CL_API_ENTRY cl_int CL_API_CALL tutti_clRetainDevice(cl_device_id device) {
    return is_device(device) ? CL_SUCCESS : CL_INVALID_DEVICE;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clReleaseDevice(cl_device_id device) {
    return is_device(device) ? CL_SUCCESS : CL_INVALID_DEVICE;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clRetainDeviceEXT(cl_device_id device) {
    return tutti_clRetainDevice(device);
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clReleaseDeviceEXT(cl_device_id device) {
    return tutti_clReleaseDevice(device);
}

/* No kind of partition is among CL_DEVICE_PARTITION_PROPERTIES, so every one is invalid. */
CL_API_ENTRY cl_int CL_API_CALL
tutti_clCreateSubDevices(cl_device_id in_device, const cl_device_partition_property *properties,
                         cl_uint num_devices, cl_device_id *out_devices, cl_uint *num_devices_ret) {
    (void)properties, (void)num_devices, (void)out_devices, (void)num_devices_ret;
    return is_device(in_device) ? CL_INVALID_VALUE : CL_INVALID_DEVICE;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clCreateSubDevicesEXT(
    cl_device_id in_device, const cl_device_partition_property_ext *properties, cl_uint num_entries,
    cl_device_id *out_devices, cl_uint *num_devices) {
    (void)properties, (void)num_entries, (void)out_devices, (void)num_devices;
    return is_device(in_device) ? CL_INVALID_VALUE : CL_INVALID_DEVICE;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clGetDeviceAndHostTimer(cl_device_id device,
                                                              cl_ulong *device_timestamp,
                                                              cl_ulong *host_timestamp) {
    if (!is_device(device))
        return CL_INVALID_DEVICE;
    if (!device_timestamp || !host_timestamp)
        return CL_INVALID_VALUE;
    /* Profiling times are on the host's clock (tutti_runtime_now). */
    *device_timestamp = *host_timestamp = tutti_runtime_now();
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clGetHostTimer(cl_device_id device,
                                                     cl_ulong *host_timestamp) {
    if (!is_device(device))
        return CL_INVALID_DEVICE;
    if (!host_timestamp)
        return CL_INVALID_VALUE;
    *host_timestamp = tutti_runtime_now();
    return CL_SUCCESS;
}
