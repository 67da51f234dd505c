/* SPDX-License-Identifier: MIT */
#include "virtual_device/device_info.h"

#include "config.h"
#include "virtual_device/merged.h"
#include "virtual_device/uuid.h"

/* How the real devices' answers become one. */
enum rule {
    LEAD,     /* a program that runs on the lead device runs here */
    SUM,      /* cl_uint or cl_ulong: the devices together */
    LARGEST,  /* cl_uint: what suits every device */
    SMALLEST, /* cl_uint, size_t or cl_ulong */
    NUMBER,   /* `number`, of `size` bytes: so it is, whatever the real devices say */
    MASK,     /* cl_bitfield: those of the lead's bits that are in `number` */
    TEXT,     /* `text` */
    OTHER,    /* see answer_other */
};

static const struct query {
    cl_device_info what;
    enum rule rule;
    size_t size; /* of a number, in bytes */
    cl_ulong number;
    const char *text;
    cl_uint since; /* the version that brought the query; below it the query is unknown */
} queries[] = {
    {.what = CL_DEVICE_TYPE, .rule = LEAD},
    {.what = CL_DEVICE_VENDOR_ID, .rule = LEAD},
    {.what = CL_DEVICE_MAX_COMPUTE_UNITS, .rule = SUM, .size = sizeof(cl_uint)},
    {.what = CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS,
     .rule = NUMBER,
     .size = sizeof(cl_uint),
     .number = 3},
    {.what = CL_DEVICE_MAX_WORK_ITEM_SIZES, .rule = OTHER},
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
    {.what = CL_DEVICE_PLATFORM, .rule = OTHER},
    {.what = CL_DEVICE_NAME, .rule = OTHER},
    {.what = CL_DEVICE_VENDOR, .rule = LEAD},
    {.what = CL_DRIVER_VERSION, .rule = TEXT, .text = PACKAGE_VERSION},
    {.what = CL_DEVICE_PROFILE, .rule = LEAD},
    {.what = CL_DEVICE_VERSION, .rule = OTHER},
    {.what = CL_DEVICE_OPENCL_C_VERSION, .rule = OTHER},
    {.what = CL_DEVICE_EXTENSIONS, .rule = OTHER},
    {.what = CL_DEVICE_PRINTF_BUFFER_SIZE, .rule = LEAD},
    {.what = CL_DEVICE_PREFERRED_INTEROP_USER_SYNC,
     .rule = NUMBER,
     .size = sizeof(cl_bool),
     .number = CL_TRUE},
    {.what = CL_DEVICE_PARENT_DEVICE, .rule = OTHER},
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

    /* OpenCL 2.0 to 3.0; what is optional and 0 here is not supported. */
    {.what = CL_DEVICE_MAX_READ_WRITE_IMAGE_ARGS, .rule = LEAD, .since = 200},
    /* Of 2D images made from buffers, which there are not. */
    {.what = CL_DEVICE_IMAGE_PITCH_ALIGNMENT,
     .rule = NUMBER,
     .size = sizeof(cl_uint),
     .since = 200},
    {.what = CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT,
     .rule = NUMBER,
     .size = sizeof(cl_uint),
     .since = 200},
    {.what = CL_DEVICE_SVM_CAPABILITIES, .rule = OTHER, .since = 200},
    {.what = CL_DEVICE_PREFERRED_PLATFORM_ATOMIC_ALIGNMENT, .rule = LEAD, .since = 200},
    {.what = CL_DEVICE_PREFERRED_GLOBAL_ATOMIC_ALIGNMENT, .rule = LEAD, .since = 200},
    {.what = CL_DEVICE_PREFERRED_LOCAL_ATOMIC_ALIGNMENT, .rule = LEAD, .since = 200},
    /* Each real device would have variables in program scope of its own. */
    {.what = CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE,
     .rule = NUMBER,
     .size = sizeof(size_t),
     .since = 200},
    {.what = CL_DEVICE_GLOBAL_VARIABLE_PREFERRED_TOTAL_SIZE,
     .rule = NUMBER,
     .size = sizeof(size_t),
     .since = 200},
    {.what = CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES,
     .rule = NUMBER,
     .size = sizeof(cl_command_queue_properties),
     .since = 200},
    {.what = CL_DEVICE_QUEUE_ON_DEVICE_PREFERRED_SIZE,
     .rule = NUMBER,
     .size = sizeof(cl_uint),
     .since = 200},
    {.what = CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE,
     .rule = NUMBER,
     .size = sizeof(cl_uint),
     .since = 200},
    {.what = CL_DEVICE_MAX_ON_DEVICE_QUEUES, .rule = NUMBER, .size = sizeof(cl_uint), .since = 200},
    {.what = CL_DEVICE_MAX_ON_DEVICE_EVENTS, .rule = NUMBER, .size = sizeof(cl_uint), .since = 200},
    {.what = CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES,
     .rule = NUMBER,
     .size = sizeof(cl_device_device_enqueue_capabilities),
     .since = 300},
    {.what = CL_DEVICE_PIPE_SUPPORT, .rule = NUMBER, .size = sizeof(cl_bool), .since = 300},
    {.what = CL_DEVICE_MAX_PIPE_ARGS, .rule = NUMBER, .size = sizeof(cl_uint), .since = 200},
    {.what = CL_DEVICE_PIPE_MAX_ACTIVE_RESERVATIONS,
     .rule = NUMBER,
     .size = sizeof(cl_uint),
     .since = 200},
    {.what = CL_DEVICE_PIPE_MAX_PACKET_SIZE, .rule = NUMBER, .size = sizeof(cl_uint), .since = 200},
    {.what = CL_DEVICE_MAX_NUM_SUB_GROUPS, .rule = LEAD, .since = 210},
    {.what = CL_DEVICE_SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS, .rule = LEAD, .since = 210},
    {.what = CL_DEVICE_IL_VERSION, .rule = OTHER},
    {.what = CL_DEVICE_ILS_WITH_VERSION, .rule = OTHER, .since = 300},
    {.what = CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES,
     .rule = MASK,
     .number = ~(cl_ulong)CL_DEVICE_ATOMIC_SCOPE_ALL_DEVICES,
     .since = 300},
    {.what = CL_DEVICE_ATOMIC_FENCE_CAPABILITIES,
     .rule = MASK,
     .number = ~(cl_ulong)CL_DEVICE_ATOMIC_SCOPE_ALL_DEVICES,
     .since = 300},
    {.what = CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT,
     .rule = SMALLEST,
     .size = sizeof(cl_bool),
     .since = 300},
    {.what = CL_DEVICE_WORK_GROUP_COLLECTIVE_FUNCTIONS_SUPPORT, .rule = LEAD, .since = 300},
    {.what = CL_DEVICE_GENERIC_ADDRESS_SPACE_SUPPORT, .rule = LEAD, .since = 300},
    {.what = CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, .rule = LEAD, .since = 300},
    {.what = CL_DEVICE_NUMERIC_VERSION,
     .rule = NUMBER,
     .size = sizeof(cl_version),
     .number = CL_MAKE_VERSION(3, 0, 0),
     .since = 300},
    {.what = CL_DEVICE_OPENCL_C_ALL_VERSIONS, .rule = OTHER, .since = 300},
    {.what = CL_DEVICE_OPENCL_C_FEATURES, .rule = OTHER, .since = 300},
    {.what = CL_DEVICE_EXTENSIONS_WITH_VERSION, .rule = OTHER, .since = 300},
    {.what = CL_DEVICE_BUILT_IN_KERNELS_WITH_VERSION, .rule = OTHER, .since = 300},
    /* Tutti itself was never submitted; drivers that were not say it so. */
    {.what = CL_DEVICE_LATEST_CONFORMANCE_VERSION_PASSED,
     .rule = TEXT,
     .text = "v0000-01-01-00",
     .since = 300},

    /* Of cl_khr_device_uuid; LUIDs are Windows'. */
    {.what = CL_DEVICE_UUID_KHR, .rule = OTHER},
    {.what = CL_DRIVER_UUID_KHR, .rule = OTHER},
    {.what = CL_DEVICE_LUID_VALID_KHR, .rule = NUMBER, .size = sizeof(cl_bool)},
    {.what = CL_DEVICE_LUID_KHR, .rule = NUMBER, .size = CL_LUID_SIZE_KHR},
    {.what = CL_DEVICE_NODE_MASK_KHR, .rule = NUMBER, .size = sizeof(cl_uint)},

    /* Of extensions that are passed on; the lead's error where it has not the extension. */
    {.what = CL_DEVICE_INTEGER_DOT_PRODUCT_CAPABILITIES_KHR, .rule = LEAD},
    {.what = CL_DEVICE_INTEGER_DOT_PRODUCT_ACCELERATION_PROPERTIES_8BIT_KHR, .rule = LEAD},
    {.what = CL_DEVICE_INTEGER_DOT_PRODUCT_ACCELERATION_PROPERTIES_4x8BIT_PACKED_KHR, .rule = LEAD},
    {.what = 0x4231 /* CL_DEVICE_SINGLE_FP_ATOMIC_CAPABILITIES_EXT */, .rule = LEAD},
    {.what = 0x4232 /* CL_DEVICE_DOUBLE_FP_ATOMIC_CAPABILITIES_EXT */, .rule = LEAD},
    {.what = 0x4233 /* CL_DEVICE_HALF_FP_ATOMIC_CAPABILITIES_EXT */, .rule = LEAD},
    {.what = CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV, .rule = LEAD},
    {.what = CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV, .rule = LEAD},
    {.what = CL_DEVICE_REGISTERS_PER_BLOCK_NV, .rule = LEAD},
    {.what = CL_DEVICE_WARP_SIZE_NV, .rule = LEAD},
    {.what = CL_DEVICE_GPU_OVERLAP_NV, .rule = LEAD},
    {.what = CL_DEVICE_KERNEL_EXEC_TIMEOUT_NV, .rule = LEAD},
    {.what = CL_DEVICE_INTEGRATED_MEMORY_NV, .rule = LEAD},
};

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

static cl_int answer_names(const struct tutti_names *names, size_t size, void *value,
                           size_t *size_ret) {
    return tutti_info_return(names->list, names->count * sizeof(*names->list), size, value,
                             size_ret);
}

static cl_int answer_other(cl_device_info what, size_t size, void *value, size_t *size_ret) {
    static const struct tutti_names none;
    const struct tutti_merged *merged = tutti_merged();
    void *handle = NULL;
    cl_uchar uuid[CL_UUID_SIZE_KHR];
    switch (what) {
    case CL_DEVICE_PLATFORM:
        handle = tutti_platform();
        return tutti_info_return(&handle, sizeof(handle), size, value, size_ret);
    case CL_DEVICE_PARENT_DEVICE:
        return tutti_info_return(&handle, sizeof(handle), size, value, size_ret);
    case CL_DEVICE_MAX_WORK_ITEM_SIZES:
        return tutti_info_return(merged->limits.max_work_item_sizes,
                                 sizeof(merged->limits.max_work_item_sizes), size, value, size_ret);
    case CL_DEVICE_UUID_KHR:
        tutti_device_uuid(uuid);
        return tutti_info_return(uuid, sizeof(uuid), size, value, size_ret);
    case CL_DRIVER_UUID_KHR:
        tutti_driver_uuid(uuid);
        return tutti_info_return(uuid, sizeof(uuid), size, value, size_ret);
    case CL_DEVICE_SVM_CAPABILITIES:
        return tutti_info_return(&merged->limits.svm, sizeof(merged->limits.svm), size, value,
                                 size_ret);
    case CL_DEVICE_NAME:
        return tutti_info_return_string(merged->name, size, value, size_ret);
    case CL_DEVICE_VERSION:
        return tutti_info_return_string(merged->device_version, size, value, size_ret);
    case CL_DEVICE_OPENCL_C_VERSION:
        return tutti_info_return_string(merged->opencl_c_version, size, value, size_ret);
    case CL_DEVICE_EXTENSIONS:
        return tutti_info_return_string(merged->extension_text, size, value, size_ret);
    case CL_DEVICE_EXTENSIONS_WITH_VERSION:
        return answer_names(&merged->extensions, size, value, size_ret);
    case CL_DEVICE_OPENCL_C_ALL_VERSIONS:
        return answer_names(&merged->c_versions, size, value, size_ret);
    case CL_DEVICE_OPENCL_C_FEATURES:
        return answer_names(&merged->features, size, value, size_ret);
    case CL_DEVICE_BUILT_IN_KERNELS_WITH_VERSION:
        return answer_names(&none, size, value, size_ret);
    case CL_DEVICE_ILS_WITH_VERSION:
        return answer_names(&merged->ils, size, value, size_ret);
    case CL_DEVICE_IL_VERSION: /* before 2.1 cl_khr_il_program's */
        return merged->version >= 210 || merged->ils.count
                   ? tutti_info_return_string(merged->il_version, size, value, size_ret)
                   : CL_INVALID_VALUE;
    default:
        return CL_INVALID_VALUE;
    }
}

cl_int tutti_device_info(cl_device_info param_name, size_t param_value_size, void *param_value,
                         size_t *param_value_size_ret) {
    const struct query *query = NULL;
    for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]) && !query; i++)
        if (queries[i].what == param_name)
            query = &queries[i];
    if (!query || query->since > tutti_merged()->version)
        return CL_INVALID_VALUE;
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
    case MASK:
        error =
            lead->dispatch->clGetDeviceInfo(lead->id, param_name, sizeof(number), &number, NULL);
        number &= query->number;
        break;
    case OTHER:
        return answer_other(param_name, param_value_size, param_value, param_value_size_ret);
    }
    if (error != CL_SUCCESS)
        return error;
    cl_uint small = (cl_uint)number;
    size_t size = query->rule == MASK ? sizeof(number) : query->size;
    return tutti_info_return(size == sizeof(small) ? (const void *)&small : &number, size,
                             param_value_size, param_value, param_value_size_ret);
}

cl_device_type tutti_device_type(void) {
    return tutti_devices()->device[0]->type & ~(cl_device_type)CL_DEVICE_TYPE_DEFAULT;
}
