/* SPDX-License-Identifier: MIT */
#include "virtual_device/device_info.h"

#include "config.h"

#include <CL/cl_ext.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How the real devices' answers become one. */
enum rule {
    LEAD,     /* a program that runs on the lead device runs here */
    SUM,      /* cl_uint or cl_ulong: the devices together */
    LARGEST,  /* cl_uint: what suits every device */
    SMALLEST, /* cl_uint, size_t or cl_ulong */
    NUMBER,   /* `number`, of `size` bytes: so it is, whatever the real devices say */
    TEXT,     /* `text` */
    HANDLES,  /* see answer_handle */
    NAME,
    EXTENSIONS,
};

static const struct query {
    cl_device_info what;
    enum rule rule;
    size_t size; /* of a number, in bytes */
    cl_ulong number;
    const char *text;
} queries[] = {
    {.what = CL_DEVICE_TYPE, .rule = LEAD},
    {.what = CL_DEVICE_VENDOR_ID, .rule = LEAD},
    {.what = CL_DEVICE_MAX_COMPUTE_UNITS, .rule = SUM, .size = sizeof(cl_uint)},
    {.what = CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS,
     .rule = NUMBER,
     .size = sizeof(cl_uint),
     .number = 3},
    {.what = CL_DEVICE_MAX_WORK_ITEM_SIZES, .rule = HANDLES},
    {.what = CL_DEVICE_MAX_WORK_GROUP_SIZE, .rule = LEAD},
    {.what = CL_DEVICE_PREFERRED_VECTOR_WIDTH_CHAR, .rule = LEAD},
    {.what = CL_DEVICE_PREFERRED_VECTOR_WIDTH_SHORT, .rule = LEAD},
    {.what = CL_DEVICE_PREFERRED_VECTOR_WIDTH_INT, .rule = LEAD},
    {.what = CL_DEVICE_PREFERRED_VECTOR_WIDTH_LONG, .rule = LEAD},
    {.what = CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT, .rule = LEAD},
    {.what = CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE, .rule = LEAD},
    {.what = CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF, .rule = LEAD},
    {.what = CL_DEVICE_NATIVE_VECTOR_WIDTH_CHAR, .rule = LEAD},
    {.what = CL_DEVICE_NATIVE_VECTOR_WIDTH_SHORT, .rule = LEAD},
    {.what = CL_DEVICE_NATIVE_VECTOR_WIDTH_INT, .rule = LEAD},
    {.what = CL_DEVICE_NATIVE_VECTOR_WIDTH_LONG, .rule = LEAD},
    {.what = CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, .rule = LEAD},
    {.what = CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE, .rule = LEAD},
    {.what = CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF, .rule = LEAD},
    {.what = CL_DEVICE_MAX_CLOCK_FREQUENCY, .rule = LEAD},
    {.what = CL_DEVICE_ADDRESS_BITS, .rule = LEAD},
    {.what = CL_DEVICE_MAX_MEM_ALLOC_SIZE, .rule = LEAD},
    {.what = CL_DEVICE_IMAGE_SUPPORT, .rule = LEAD},
    {.what = CL_DEVICE_MAX_READ_IMAGE_ARGS, .rule = LEAD},
    {.what = CL_DEVICE_MAX_WRITE_IMAGE_ARGS, .rule = LEAD},
    {.what = CL_DEVICE_IMAGE2D_MAX_WIDTH, .rule = LEAD},
    {.what = CL_DEVICE_IMAGE2D_MAX_HEIGHT, .rule = LEAD},
    {.what = CL_DEVICE_IMAGE3D_MAX_WIDTH, .rule = LEAD},
    {.what = CL_DEVICE_IMAGE3D_MAX_HEIGHT, .rule = LEAD},
    {.what = CL_DEVICE_IMAGE3D_MAX_DEPTH, .rule = LEAD},
    {.what = CL_DEVICE_IMAGE_MAX_BUFFER_SIZE, .rule = LEAD},
    {.what = CL_DEVICE_IMAGE_MAX_ARRAY_SIZE, .rule = LEAD},
    {.what = CL_DEVICE_MAX_SAMPLERS, .rule = LEAD},
    {.what = CL_DEVICE_MAX_PARAMETER_SIZE, .rule = LEAD},
    {.what = CL_DEVICE_MEM_BASE_ADDR_ALIGN, .rule = LARGEST, .size = sizeof(cl_uint)},
    {.what = CL_DEVICE_MIN_DATA_TYPE_ALIGN_SIZE, .rule = LARGEST, .size = sizeof(cl_uint)},
    {.what = CL_DEVICE_SINGLE_FP_CONFIG, .rule = LEAD},
    {.what = CL_DEVICE_DOUBLE_FP_CONFIG, .rule = LEAD},
    {.what = CL_DEVICE_HALF_FP_CONFIG, .rule = LEAD},
    {.what = CL_DEVICE_GLOBAL_MEM_CACHE_TYPE, .rule = LEAD},
    {.what = CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE, .rule = LEAD},
    {.what = CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, .rule = LEAD},
    {.what = CL_DEVICE_GLOBAL_MEM_SIZE, .rule = SUM, .size = sizeof(cl_ulong)},
    {.what = CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE, .rule = LEAD},
    {.what = CL_DEVICE_MAX_CONSTANT_ARGS, .rule = LEAD},
    {.what = CL_DEVICE_LOCAL_MEM_TYPE, .rule = LEAD},
    {.what = CL_DEVICE_LOCAL_MEM_SIZE, .rule = LEAD},
    {.what = CL_DEVICE_ERROR_CORRECTION_SUPPORT, .rule = SMALLEST, .size = sizeof(cl_bool)},
    {.what = CL_DEVICE_HOST_UNIFIED_MEMORY, .rule = SMALLEST, .size = sizeof(cl_bool)},
    {.what = CL_DEVICE_PROFILING_TIMER_RESOLUTION, .rule = LEAD},
    {.what = CL_DEVICE_ENDIAN_LITTLE, .rule = LEAD},
    {.what = CL_DEVICE_AVAILABLE, .rule = NUMBER, .size = sizeof(cl_bool), .number = CL_TRUE},
    {.what = CL_DEVICE_COMPILER_AVAILABLE,
     .rule = NUMBER,
     .size = sizeof(cl_bool),
     .number = CL_TRUE},
    {.what = CL_DEVICE_LINKER_AVAILABLE, .rule = LEAD},
    {.what = CL_DEVICE_EXECUTION_CAPABILITIES,
     .rule = NUMBER,
     .size = sizeof(cl_device_exec_capabilities),
     .number = CL_EXEC_KERNEL | CL_EXEC_NATIVE_KERNEL},
    {.what = CL_DEVICE_QUEUE_PROPERTIES,
     .rule = NUMBER,
     .size = sizeof(cl_command_queue_properties),
     .number = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE},
    {.what = CL_DEVICE_BUILT_IN_KERNELS, .rule = TEXT, .text = ""},
    {.what = CL_DEVICE_PLATFORM, .rule = HANDLES},
    {.what = CL_DEVICE_NAME, .rule = NAME},
    {.what = CL_DEVICE_VENDOR, .rule = LEAD},
    {.what = CL_DRIVER_VERSION, .rule = TEXT, .text = PACKAGE_VERSION},
    {.what = CL_DEVICE_PROFILE, .rule = LEAD},
    {.what = CL_DEVICE_VERSION, .rule = TEXT, .text = "OpenCL 1.2 Tutti " PACKAGE_VERSION},
    {.what = CL_DEVICE_OPENCL_C_VERSION, .rule = TEXT, .text = "OpenCL C 1.2 Tutti"},
    {.what = CL_DEVICE_EXTENSIONS, .rule = EXTENSIONS},
    {.what = CL_DEVICE_PRINTF_BUFFER_SIZE, .rule = LEAD},
    {.what = CL_DEVICE_PREFERRED_INTEROP_USER_SYNC,
     .rule = NUMBER,
     .size = sizeof(cl_bool),
     .number = CL_TRUE},
    {.what = CL_DEVICE_PARENT_DEVICE, .rule = HANDLES},
    {.what = CL_DEVICE_PARTITION_MAX_SUB_DEVICES, .rule = NUMBER, .size = sizeof(cl_uint)},
    {.what = CL_DEVICE_PARTITION_PROPERTIES,
     .rule = NUMBER,
     .size = sizeof(cl_device_partition_property)},
    {.what = CL_DEVICE_PARTITION_AFFINITY_DOMAIN,
     .rule = NUMBER,
     .size = sizeof(cl_device_affinity_domain)},
    {.what = CL_DEVICE_PARTITION_TYPE,
     .rule = NUMBER,
     .size = sizeof(cl_device_partition_property)},
    {.what = CL_DEVICE_REFERENCE_COUNT, .rule = NUMBER, .size = sizeof(cl_uint), .number = 1},
};

/*
 * Extensions that are about what kernels can say. Those with functions, queries or objects of
 * their own would need more of Tutti than passing kernels on.
 */
static const char *const kernel_extensions[] = {
    "cl_khr_byte_addressable_store",
    "cl_khr_global_int32_base_atomics",
    "cl_khr_global_int32_extended_atomics",
    "cl_khr_local_int32_base_atomics",
    "cl_khr_local_int32_extended_atomics",
    "cl_khr_int64_base_atomics",
    "cl_khr_int64_extended_atomics",
    "cl_khr_3d_image_writes",
    "cl_khr_fp16",
    "cl_khr_fp64",
    "cl_khr_expect_assume",
    "cl_khr_extended_bit_ops",
    "cl_khr_select_fprounding_mode",
    "cl_amd_media_ops",
    "cl_amd_media_ops2",
    "cl_nv_compiler_options",
    "cl_nv_pragma_unroll",
};

static struct {
    char name[256];
    char extensions[2048];
    struct tutti_limits limits;
} merged;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void append(char *text, size_t size, const char *more) {
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s", more);
}

/* Programs often give a name 64 bytes, its end included. */
#define LONGEST_NAME 63

/* "Tutti (2 x A, B)"; where that is too long the lead's name, cut, and how many join it. */
static void merge_name(const struct tutti_device_list *list) {
    append(merged.name, sizeof(merged.name), "Tutti (");
    for (unsigned d = 0; d < list->count; d++) {
        unsigned alike = 0, first = 1;
        for (unsigned e = 0; e < list->count; e++) {
            if (strcmp(list->device[d]->name, list->device[e]->name) != 0)
                continue;
            alike++;
            if (e < d)
                first = 0;
        }
        if (!first)
            continue;
        char one[160];
        if (alike > 1)
            snprintf(one, sizeof(one), "%s%u x %s", d ? ", " : "", alike, list->device[d]->name);
        else
            snprintf(one, sizeof(one), "%s%s", d ? ", " : "", list->device[d]->name);
        append(merged.name, sizeof(merged.name) - 2, one);
    }
    append(merged.name, sizeof(merged.name), ")");
    if (strlen(merged.name) <= LONGEST_NAME)
        return;
    char more[32] = "...)";
    if (list->count > 1)
        snprintf(more, sizeof(more), "... + %u more)", list->count - 1);
    snprintf(merged.name, sizeof(merged.name), "Tutti (%.*s%s",
             LONGEST_NAME - (int)strlen("Tutti (") - (int)strlen(more), list->device[0]->name,
             more);
}

static void merge(void) {
    const struct tutti_device_list *list = tutti_devices();
    const struct tutti_real_device *lead = list->device[0];
    struct tutti_limits *limits = &merged.limits;
    merge_name(list);
    append(merged.extensions, sizeof(merged.extensions), "cl_khr_icd");
    for (size_t i = 0; i < sizeof(kernel_extensions) / sizeof(kernel_extensions[0]); i++) {
        char spaced[64];
        snprintf(spaced, sizeof(spaced), " %s ", kernel_extensions[i]);
        if (!strstr(lead->extensions, spaced))
            continue;
        spaced[strlen(spaced) - 1] = 0;
        append(merged.extensions, sizeof(merged.extensions), spaced);
    }
    limits->max_work_group_size = lead->max_work_group_size;
    memcpy(limits->max_work_item_sizes, lead->max_work_item_sizes,
           sizeof(limits->max_work_item_sizes));
    limits->max_mem_alloc_size = lead->max_mem_alloc_size;
    limits->image_support = lead->image_support;
    limits->version = 120;
    for (unsigned d = 0; d < list->count; d++) {
        limits->global_mem_size += list->device[d]->global_mem_size;
        if (list->device[d]->mem_base_addr_align > limits->mem_base_addr_align)
            limits->mem_base_addr_align = list->device[d]->mem_base_addr_align;
    }
}

const struct tutti_limits *tutti_device_limits(void) {
    pthread_once(&once, merge);
    return &merged.limits;
}

/* One real device's number, widened. */
static cl_int ask_number(const struct tutti_real_device *device, const struct query *query,
                         cl_ulong *number) {
    cl_uint small = 0;
    if (query->size == sizeof(cl_ulong))
        return device->dispatch->clGetDeviceInfo(device->id, query->what, sizeof(*number), number,
                                                 NULL);
    cl_int error =
        device->dispatch->clGetDeviceInfo(device->id, query->what, sizeof(small), &small, NULL);
    *number = small;
    return error;
}

static cl_int merge_numbers(const struct query *query, cl_ulong *result) {
    const struct tutti_device_list *list = tutti_devices();
    for (unsigned d = 0; d < list->count; d++) {
        cl_ulong number;
        cl_int error = ask_number(list->device[d], query, &number);
        if (error != CL_SUCCESS)
            return error;
        if (d == 0)
            *result = number;
        else if (query->rule == SUM)
            *result += number;
        else if ((query->rule == LARGEST) == (number > *result))
            *result = number;
    }
    return CL_SUCCESS;
}

static cl_int answer_handle(cl_device_info what, size_t size, void *value, size_t *size_ret) {
    void *handle = what == CL_DEVICE_PLATFORM ? tutti_platform() : NULL;
    if (what == CL_DEVICE_MAX_WORK_ITEM_SIZES)
        return tutti_info_return(merged.limits.max_work_item_sizes,
                                 sizeof(merged.limits.max_work_item_sizes), size, value, size_ret);
    return tutti_info_return(&handle, sizeof(handle), size, value, size_ret);
}

cl_int tutti_device_info(cl_device_info param_name, size_t param_value_size, void *param_value,
                         size_t *param_value_size_ret) {
    const struct query *query = NULL;
    for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]) && !query; i++)
        if (queries[i].what == param_name)
            query = &queries[i];
    if (!query)
        return CL_INVALID_VALUE;
    pthread_once(&once, merge);
    const struct tutti_real_device *lead = tutti_devices()->device[0];
    cl_ulong number = query->number;
    cl_int error = CL_SUCCESS;
    switch (query->rule) {
    case LEAD:
        return lead->dispatch->clGetDeviceInfo(lead->id, param_name, param_value_size, param_value,
                                               param_value_size_ret);
    case SUM:
    case LARGEST:
    case SMALLEST:
        error = merge_numbers(query, &number);
        break;
    case NUMBER:
        break;
    case TEXT:
        return tutti_info_return_string(query->text, param_value_size, param_value,
                                        param_value_size_ret);
    case NAME:
        return tutti_info_return_string(merged.name, param_value_size, param_value,
                                        param_value_size_ret);
    case EXTENSIONS:
        return tutti_info_return_string(merged.extensions, param_value_size, param_value,
                                        param_value_size_ret);
    case HANDLES:
        return answer_handle(param_name, param_value_size, param_value, param_value_size_ret);
    }
    if (error != CL_SUCCESS)
        return error;
    cl_uint small = (cl_uint)number;
    return tutti_info_return(query->size == sizeof(small) ? (const void *)&small : &number,
                             query->size, param_value_size, param_value, param_value_size_ret);
}

cl_device_type tutti_device_type(void) {
    return tutti_devices()->device[0]->type & ~(cl_device_type)CL_DEVICE_TYPE_DEFAULT;
}
