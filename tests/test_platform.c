/* SPDX-License-Identifier: MIT */
#include "support.h"

#include <CL/cl_ext.h>

static size_t check_string(size_t size, const char *text, const char *name) {
    ck_assert_msg(size > 0 && memchr(text, 0, size) == text + size - 1,
                  "%s: not one terminated string of %zu bytes", name, size);
    return size;
}

START_TEST(platform_info) {
    const struct {
        cl_platform_info name;
        const char *text;
    } queries[] = {{CL_PLATFORM_PROFILE, "profile"},
                   {CL_PLATFORM_VERSION, "version"},
                   {CL_PLATFORM_NAME, "name"},
                   {CL_PLATFORM_VENDOR, "vendor"},
                   {CL_PLATFORM_EXTENSIONS, "extensions"}};
    char text[8192];
    size_t size;

    for (size_t i = 0; i < COUNT(queries); i++) {
        ck_ok(clGetPlatformInfo(platform, queries[i].name, sizeof(text), text, &size));
        check_string(size, text, queries[i].text);
        check_info_rules(clGetPlatformInfo, platform, queries[i].name);
    }
    ck_ok(clGetPlatformInfo(platform, CL_PLATFORM_PROFILE, sizeof(text), text, NULL));
    ck_assert(!strcmp(text, "FULL_PROFILE") || !strcmp(text, "EMBEDDED_PROFILE"));
    ck_ok(clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof(text), text, NULL));
    {
        int major = 0, minor = 0;
        char space = 0;

        ck_assert_msg(sscanf(text, "OpenCL %d.%d%c", &major, &minor, &space) == 3 && space == ' ',
                      "version \"%s\"", text);
        ck_assert_msg(major * 10 + minor >= 12, "version \"%s\"", text);
    }
    ck_ok(clGetPlatformInfo(platform, CL_PLATFORM_EXTENSIONS, sizeof(text), text, NULL));
    ck_assert_msg(strstr(text, "cl_khr_icd"), "a loaded platform has cl_khr_icd, not \"%s\"", text);
    ck_ok(clGetPlatformInfo(platform, 0x0920 /* CL_PLATFORM_ICD_SUFFIX_KHR */, sizeof(text), text,
                            &size));
    ck_assert_uint_gt(check_string(size, text, "suffix"), 1);
}
END_TEST

START_TEST(device_ids) {
    const cl_device_type types[] = {CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU,
                                    CL_DEVICE_TYPE_ACCELERATOR, CL_DEVICE_TYPE_CUSTOM};
    cl_device_id some[64];
    cl_uint all = 0, count = 0;

    ck_ok(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &all));
    ck_assert_uint_ge(all, 1);
    ck_ok(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, COUNT(some), some, &count));
    ck_assert_uint_eq(all, count);
    ck_ok(clGetDeviceIDs(platform, CL_DEVICE_TYPE_DEFAULT, COUNT(some), some, &count));
    ck_assert_uint_ge(count, 1);

    for (size_t i = 0; i < COUNT(types); i++) {
        cl_int code = clGetDeviceIDs(platform, types[i], COUNT(some), some, &count);

        if (code != CL_SUCCESS) {
            ck_assert_cl(code, CL_DEVICE_NOT_FOUND);
            continue;
        }
        ck_assert_uint_ge(count, 1);
        for (cl_uint j = 0; j < count && j < COUNT(some); j++)
            ck_assert(get_info(cl_device_type, clGetDeviceInfo, some[j], CL_DEVICE_TYPE) &
                      types[i]);
    }
    ck_assert_cl(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, some, &count), CL_INVALID_VALUE);
    ck_assert_cl(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, NULL, NULL), CL_INVALID_VALUE);
}
END_TEST

START_TEST(device_type_undefined) {
    cl_device_id one;
    cl_uint count;

    skip_on(POCL, "PoCL 3.1 takes an unknown type for one that it has not");
    skip_on(OCLGRIND, "Oclgrind takes an unknown type for one that it has not");
    ck_assert_cl(clGetDeviceIDs(platform, 0, 1, &one, &count), CL_INVALID_DEVICE_TYPE);
    ck_assert_cl(clGetDeviceIDs(platform, (cl_device_type)1 << 20, 1, &one, &count),
                 CL_INVALID_DEVICE_TYPE);
}
END_TEST

/* Every scalar query of table 4.3 of OpenCL 1.2, with its size and the least value allowed. */
#define SCALAR(name, type, least)                                                                  \
    { name, sizeof(type), least, #name }
static const struct {
    cl_device_info name;
    size_t size;
    uint64_t least;
    const char *text;
} scalars[] = {
    SCALAR(CL_DEVICE_TYPE, cl_device_type, 1),
    SCALAR(CL_DEVICE_VENDOR_ID, cl_uint, 0),
    SCALAR(CL_DEVICE_MAX_COMPUTE_UNITS, cl_uint, 1),
    SCALAR(CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS, cl_uint, 3),
    SCALAR(CL_DEVICE_MAX_WORK_GROUP_SIZE, size_t, 1),
    SCALAR(CL_DEVICE_PREFERRED_VECTOR_WIDTH_CHAR, cl_uint, 1),
    SCALAR(CL_DEVICE_PREFERRED_VECTOR_WIDTH_SHORT, cl_uint, 1),
    SCALAR(CL_DEVICE_PREFERRED_VECTOR_WIDTH_INT, cl_uint, 1),
    SCALAR(CL_DEVICE_PREFERRED_VECTOR_WIDTH_LONG, cl_uint, 1),
    SCALAR(CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT, cl_uint, 1),
    SCALAR(CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE, cl_uint, 0),
    SCALAR(CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF, cl_uint, 0),
    SCALAR(CL_DEVICE_NATIVE_VECTOR_WIDTH_CHAR, cl_uint, 1),
    SCALAR(CL_DEVICE_NATIVE_VECTOR_WIDTH_SHORT, cl_uint, 1),
    SCALAR(CL_DEVICE_NATIVE_VECTOR_WIDTH_INT, cl_uint, 1),
    SCALAR(CL_DEVICE_NATIVE_VECTOR_WIDTH_LONG, cl_uint, 1),
    SCALAR(CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, cl_uint, 1),
    SCALAR(CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE, cl_uint, 0),
    SCALAR(CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF, cl_uint, 0),
    SCALAR(CL_DEVICE_MAX_CLOCK_FREQUENCY, cl_uint, 0),
    SCALAR(CL_DEVICE_ADDRESS_BITS, cl_uint, 32),
    SCALAR(CL_DEVICE_MAX_MEM_ALLOC_SIZE, cl_ulong, 1 << 20),
    SCALAR(CL_DEVICE_IMAGE_SUPPORT, cl_bool, 0),
    SCALAR(CL_DEVICE_MAX_READ_IMAGE_ARGS, cl_uint, 0),
    SCALAR(CL_DEVICE_MAX_WRITE_IMAGE_ARGS, cl_uint, 0),
    SCALAR(CL_DEVICE_IMAGE2D_MAX_WIDTH, size_t, 0),
    SCALAR(CL_DEVICE_IMAGE2D_MAX_HEIGHT, size_t, 0),
    SCALAR(CL_DEVICE_IMAGE3D_MAX_WIDTH, size_t, 0),
    SCALAR(CL_DEVICE_IMAGE3D_MAX_HEIGHT, size_t, 0),
    SCALAR(CL_DEVICE_IMAGE3D_MAX_DEPTH, size_t, 0),
    SCALAR(CL_DEVICE_IMAGE_MAX_BUFFER_SIZE, size_t, 0),
    SCALAR(CL_DEVICE_IMAGE_MAX_ARRAY_SIZE, size_t, 0),
    SCALAR(CL_DEVICE_MAX_SAMPLERS, cl_uint, 0),
    SCALAR(CL_DEVICE_MAX_PARAMETER_SIZE, size_t, 256),
    SCALAR(CL_DEVICE_MEM_BASE_ADDR_ALIGN, cl_uint, 8),
    SCALAR(CL_DEVICE_MIN_DATA_TYPE_ALIGN_SIZE, cl_uint, 1),
    SCALAR(CL_DEVICE_SINGLE_FP_CONFIG, cl_device_fp_config, 1),
    SCALAR(CL_DEVICE_DOUBLE_FP_CONFIG, cl_device_fp_config, 0),
    SCALAR(CL_DEVICE_GLOBAL_MEM_CACHE_TYPE, cl_device_mem_cache_type, 0),
    SCALAR(CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE, cl_uint, 0),
    SCALAR(CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, cl_ulong, 0),
    SCALAR(CL_DEVICE_GLOBAL_MEM_SIZE, cl_ulong, 1 << 20),
    SCALAR(CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE, cl_ulong, 1 << 10),
    SCALAR(CL_DEVICE_MAX_CONSTANT_ARGS, cl_uint, 4),
    SCALAR(CL_DEVICE_LOCAL_MEM_TYPE, cl_device_local_mem_type, CL_LOCAL),
    SCALAR(CL_DEVICE_LOCAL_MEM_SIZE, cl_ulong, 1 << 10),
    SCALAR(CL_DEVICE_ERROR_CORRECTION_SUPPORT, cl_bool, 0),
    SCALAR(CL_DEVICE_HOST_UNIFIED_MEMORY, cl_bool, 0),
    SCALAR(CL_DEVICE_PROFILING_TIMER_RESOLUTION, size_t, 0),
    SCALAR(CL_DEVICE_ENDIAN_LITTLE, cl_bool, 0),
    SCALAR(CL_DEVICE_AVAILABLE, cl_bool, 1),
    SCALAR(CL_DEVICE_COMPILER_AVAILABLE, cl_bool, 0),
    SCALAR(CL_DEVICE_LINKER_AVAILABLE, cl_bool, 0),
    SCALAR(CL_DEVICE_EXECUTION_CAPABILITIES, cl_device_exec_capabilities, CL_EXEC_KERNEL),
    SCALAR(CL_DEVICE_QUEUE_PROPERTIES, cl_command_queue_properties, CL_QUEUE_PROFILING_ENABLE),
    SCALAR(CL_DEVICE_PLATFORM, cl_platform_id, 1),
    SCALAR(CL_DEVICE_PRINTF_BUFFER_SIZE, size_t, 1 << 10),
    SCALAR(CL_DEVICE_PREFERRED_INTEROP_USER_SYNC, cl_bool, 0),
    SCALAR(CL_DEVICE_PARENT_DEVICE, cl_device_id, 0),
    SCALAR(CL_DEVICE_PARTITION_MAX_SUB_DEVICES, cl_uint, 0),
    SCALAR(CL_DEVICE_PARTITION_AFFINITY_DOMAIN, cl_device_affinity_domain, 0),
    SCALAR(CL_DEVICE_REFERENCE_COUNT, cl_uint, 1),
};

START_TEST(device_scalars) {
    for (size_t i = 0; i < COUNT(scalars); i++) {
        uint64_t value = 0;
        size_t size = 0;
        cl_int code = clGetDeviceInfo(device, scalars[i].name, sizeof(value), &value, &size);

        ck_assert_msg(code == CL_SUCCESS, "%s gave %s", scalars[i].text, cl_error_name(code));
        ck_assert_msg(size == scalars[i].size, "%s: %zu bytes, expected %zu", scalars[i].text, size,
                      scalars[i].size);
        ck_assert_msg(value >= scalars[i].least, "%s: %llu, at least %llu", scalars[i].text,
                      (unsigned long long)value, (unsigned long long)scalars[i].least);
        check_info_rules(clGetDeviceInfo, device, scalars[i].name);
    }
}
END_TEST

START_TEST(device_strings) {
    const cl_device_info names[] = {CL_DEVICE_NAME,       CL_DEVICE_VENDOR,
                                    CL_DRIVER_VERSION,    CL_DEVICE_PROFILE,
                                    CL_DEVICE_VERSION,    CL_DEVICE_OPENCL_C_VERSION,
                                    CL_DEVICE_EXTENSIONS, CL_DEVICE_BUILT_IN_KERNELS};
    char text[16384];
    size_t size;

    for (size_t i = 0; i < COUNT(names); i++) {
        char label[32];

        snprintf(label, sizeof(label), "query %#x", names[i]);
        ck_ok(clGetDeviceInfo(device, names[i], sizeof(text), text, &size));
        check_string(size, text, label);
        check_info_rules(clGetDeviceInfo, device, names[i]);
    }
    ck_ok(clGetDeviceInfo(device, CL_DEVICE_VERSION, sizeof(text), text, NULL));
    ck_assert_msg(!strncmp(text, "OpenCL ", 7), "device version \"%s\"", text);
    ck_ok(clGetDeviceInfo(device, CL_DEVICE_OPENCL_C_VERSION, sizeof(text), text, NULL));
    ck_assert_msg(!strncmp(text, "OpenCL C ", 9), "OpenCL C version \"%s\"", text);
    ck_ok(clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof(text), text, &size));
    ck_assert_uint_gt(size, 1);
}
END_TEST

START_TEST(device_arrays) {
    cl_uint dimensions =
        get_info(cl_uint, clGetDeviceInfo, device, CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS);
    size_t *sizes = calloc(dimensions, sizeof(size_t)), size = 0;
    cl_device_partition_property partitions[16];

    ck_ok(clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_ITEM_SIZES, dimensions * sizeof(size_t), sizes,
                          &size));
    ck_assert_uint_eq(size, dimensions * sizeof(size_t));
    for (cl_uint i = 0; i < dimensions; i++)
        ck_assert_uint_ge(sizes[i], 1);
    free(sizes);
    check_info_rules(clGetDeviceInfo, device, CL_DEVICE_MAX_WORK_ITEM_SIZES);

    ck_ok(clGetDeviceInfo(device, CL_DEVICE_PARTITION_PROPERTIES, sizeof(partitions), partitions,
                          &size));
    ck_assert_uint_ge(size, sizeof(partitions[0]));
    ck_assert_uint_eq(size % sizeof(partitions[0]), 0);

    /* A device that is no sub-device may answer nothing at all, or a single 0. */
    partitions[0] = 1;
    ck_ok(clGetDeviceInfo(device, CL_DEVICE_PARTITION_TYPE, sizeof(partitions), partitions, &size));
    ck_assert(size == 0 || (size >= sizeof(partitions[0]) && partitions[0] == 0));
}
END_TEST

START_TEST(device_values_agree) {
    char extensions[16384];
    cl_ulong global = get_info(cl_ulong, clGetDeviceInfo, device, CL_DEVICE_GLOBAL_MEM_SIZE);
    cl_ulong largest = get_info(cl_ulong, clGetDeviceInfo, device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    bool doubles;

    ck_assert(get_info(cl_platform_id, clGetDeviceInfo, device, CL_DEVICE_PLATFORM) == platform);
    ck_assert(get_info(cl_device_id, clGetDeviceInfo, device, CL_DEVICE_PARENT_DEVICE) == NULL);
    ck_assert(get_info(cl_uint, clGetDeviceInfo, device, CL_DEVICE_REFERENCE_COUNT) == 1);
    ck_assert_uint_le(largest, global);
    ck_assert_msg(largest >= global / 4 || largest >= ((cl_ulong)128 << 20),
                  "largest allocation %llu of %llu", (unsigned long long)largest,
                  (unsigned long long)global);

    ck_ok(clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof(extensions), extensions, NULL));
    doubles = strstr(extensions, "cl_khr_fp64") != NULL;
    ck_assert_int_eq(
        get_info(cl_device_fp_config, clGetDeviceInfo, device, CL_DEVICE_DOUBLE_FP_CONFIG) != 0,
        doubles);
    ck_assert_int_eq(
        get_info(cl_uint, clGetDeviceInfo, device, CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE) != 0,
        doubles);
    if (get_info(cl_bool, clGetDeviceInfo, device, CL_DEVICE_COMPILER_AVAILABLE))
        ck_assert(get_info(cl_bool, clGetDeviceInfo, device, CL_DEVICE_LINKER_AVAILABLE));
}
END_TEST

/* cl_khr_device_uuid has them all; where it is not reported, none is known. */
START_TEST(device_uuid) {
    const struct {
        cl_device_info name;
        size_t size;
    } all[] = {{CL_DEVICE_UUID_KHR, CL_UUID_SIZE_KHR},
               {CL_DRIVER_UUID_KHR, CL_UUID_SIZE_KHR},
               {CL_DEVICE_LUID_VALID_KHR, sizeof(cl_bool)},
               {CL_DEVICE_LUID_KHR, CL_LUID_SIZE_KHR},
               {CL_DEVICE_NODE_MASK_KHR, sizeof(cl_uint)}};
    char extensions[16384];
    size_t size;

    ck_ok(clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof(extensions), extensions, NULL));
    skip_if(!strstr(extensions, "cl_khr_device_uuid"), "no cl_khr_device_uuid");
    for (size_t i = 0; i < COUNT(all); i++) {
        ck_ok(clGetDeviceInfo(device, all[i].name, 0, NULL, &size));
        ck_assert_uint_eq(size, all[i].size);
        check_info_rules(clGetDeviceInfo, device, all[i].name);
    }
}
END_TEST

START_TEST(root_device_counts_nothing) {
    ck_ok(clRetainDevice(device));
    ck_assert_uint_eq(get_info(cl_uint, clGetDeviceInfo, device, CL_DEVICE_REFERENCE_COUNT), 1);
    for (int i = 0; i < 3; i++)
        ck_ok(clReleaseDevice(device));
    ck_assert_uint_eq(get_info(cl_uint, clGetDeviceInfo, device, CL_DEVICE_REFERENCE_COUNT), 1);
}
END_TEST

START_TEST(sub_devices_refused) {
    const cl_device_partition_property kinds[][4] = {
        {CL_DEVICE_PARTITION_EQUALLY, 1, 0, 0},
        {CL_DEVICE_PARTITION_BY_COUNTS, 1, CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0},
        {CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN, CL_DEVICE_AFFINITY_DOMAIN_NUMA, 0, 0}};
    const cl_device_partition_property none[] = {0}, unknown[] = {0x7777, 1, 0};
    cl_device_partition_property supported[16] = {0};
    cl_device_id parts[256];
    cl_uint count;

    ck_assert_cl(clCreateSubDevices(device, NULL, COUNT(parts), parts, &count), CL_INVALID_VALUE);
    ck_assert_cl(clCreateSubDevices(device, none, COUNT(parts), parts, &count), CL_INVALID_VALUE);
    ck_assert_cl(clCreateSubDevices(device, unknown, COUNT(parts), parts, &count),
                 CL_INVALID_VALUE);
    ck_ok(clGetDeviceInfo(device, CL_DEVICE_PARTITION_PROPERTIES, sizeof(supported), supported,
                          NULL));
    skip_if(supported[0] != 0, "this device can be partitioned");
    for (size_t i = 0; i < COUNT(kinds); i++)
        ck_assert_cl(clCreateSubDevices(device, kinds[i], COUNT(parts), parts, &count),
                     CL_INVALID_VALUE);
}
END_TEST

START_TEST(platform_functions) {
    ck_assert_ptr_null(clGetExtensionFunctionAddressForPlatform(platform, "clNoSuchThingEXT"));
    ck_assert_ptr_null(clGetExtensionFunctionAddress("clNoSuchThingEXT"));
    ck_ok(clUnloadPlatformCompiler(platform));
    ck_ok(clUnloadCompiler());
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        platform_info,       device_ids,         device_type_undefined,
        device_scalars,      device_strings,     device_arrays,
        device_values_agree, device_uuid,        root_device_counts_nothing,
        sub_devices_refused, platform_functions,
    };

    return test_main(argc, argv, tests, COUNT(tests));
}
