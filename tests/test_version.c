/* SPDX-License-Identifier: MIT */
/* What a device says of its version and of its OpenCL C, and what OpenCL 2.0 to 3.0 brought. */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include "support.h"

#include <stdatomic.h>

#define NO_QUERIES "below OpenCL 3.0"

static const char *const features[] = {
    "__opencl_c_3d_image_writes",
    "__opencl_c_atomic_order_acq_rel",
    "__opencl_c_atomic_order_seq_cst",
    "__opencl_c_atomic_scope_all_devices",
    "__opencl_c_atomic_scope_device",
    "__opencl_c_device_enqueue",
    "__opencl_c_fp64",
    "__opencl_c_generic_address_space",
    "__opencl_c_images",
    "__opencl_c_int64",
    "__opencl_c_pipes",
    "__opencl_c_program_scope_global_variables",
    "__opencl_c_read_write_images",
    "__opencl_c_subgroups",
    "__opencl_c_work_group_collective_functions",
};

static cl_name_version *names(cl_device_info what, size_t *count) {
    size_t bytes = 0;
    cl_name_version *list;

    ck_ok(clGetDeviceInfo(device, what, 0, NULL, &bytes));
    ck_assert_uint_eq(bytes % sizeof(*list), 0);
    list = calloc(1, bytes + 1);
    ck_ok(clGetDeviceInfo(device, what, bytes, list, NULL));
    *count = bytes / sizeof(*list);
    for (size_t i = 0; i < *count; i++)
        ck_assert_ptr_nonnull(memchr(list[i].name, 0, sizeof(list[i].name)));
    return list;
}

static bool has(cl_device_info what, const char *name, cl_version version) {
    size_t count;
    bool found = false;
    cl_name_version *list = names(what, &count);

    for (size_t i = 0; i < count; i++)
        found |= !strcmp(list[i].name, name) && (!version || list[i].version == version);
    free(list);
    return found;
}

START_TEST(versions_agree) {
    char text[1024];
    int version = test_device_version();
    cl_version number;

    ck_ok(clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof(text), text, NULL));
    ck_assert_int_ge(test_version_of(text), version);
    if (version < 300) {
        ck_assert_cl(
            clGetDeviceInfo(device, CL_DEVICE_NUMERIC_VERSION, sizeof(number), &number, NULL),
            CL_INVALID_VALUE);
        return;
    }
    number = get_info(cl_version, clGetDeviceInfo, device, CL_DEVICE_NUMERIC_VERSION);
    ck_assert_int_eq(CL_VERSION_MAJOR(number) * 100 + CL_VERSION_MINOR(number) * 10, version);
    number = get_info(cl_version, clGetPlatformInfo, platform, CL_PLATFORM_NUMERIC_VERSION);
    ck_assert_int_eq(CL_VERSION_MAJOR(number) * 100 + CL_VERSION_MINOR(number) * 10,
                     test_version_of(text));
    check_info_rules(clGetPlatformInfo, platform, CL_PLATFORM_NUMERIC_VERSION);
    check_info_rules(clGetPlatformInfo, platform, CL_PLATFORM_EXTENSIONS_WITH_VERSION);
    check_info_rules(clGetPlatformInfo, platform, CL_PLATFORM_HOST_TIMER_RESOLUTION);
}
END_TEST

#define SCALAR(name, type)                                                                         \
    { name, sizeof(type), #name }

/* Those of OpenCL 2.0 to 3.0 that have one value. */
START_TEST(scalars) {
    static const struct {
        cl_device_info name;
        size_t size;
        const char *text;
    } all[] = {
        SCALAR(CL_DEVICE_MAX_READ_WRITE_IMAGE_ARGS, cl_uint),
        SCALAR(CL_DEVICE_IMAGE_PITCH_ALIGNMENT, cl_uint),
        SCALAR(CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT, cl_uint),
        SCALAR(CL_DEVICE_MAX_PIPE_ARGS, cl_uint),
        SCALAR(CL_DEVICE_PIPE_MAX_ACTIVE_RESERVATIONS, cl_uint),
        SCALAR(CL_DEVICE_PIPE_MAX_PACKET_SIZE, cl_uint),
        SCALAR(CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE, size_t),
        SCALAR(CL_DEVICE_GLOBAL_VARIABLE_PREFERRED_TOTAL_SIZE, size_t),
        SCALAR(CL_DEVICE_QUEUE_ON_HOST_PROPERTIES, cl_command_queue_properties),
        SCALAR(CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES, cl_command_queue_properties),
        SCALAR(CL_DEVICE_QUEUE_ON_DEVICE_PREFERRED_SIZE, cl_uint),
        SCALAR(CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE, cl_uint),
        SCALAR(CL_DEVICE_MAX_ON_DEVICE_QUEUES, cl_uint),
        SCALAR(CL_DEVICE_MAX_ON_DEVICE_EVENTS, cl_uint),
        SCALAR(CL_DEVICE_SVM_CAPABILITIES, cl_device_svm_capabilities),
        SCALAR(CL_DEVICE_PREFERRED_PLATFORM_ATOMIC_ALIGNMENT, cl_uint),
        SCALAR(CL_DEVICE_PREFERRED_GLOBAL_ATOMIC_ALIGNMENT, cl_uint),
        SCALAR(CL_DEVICE_PREFERRED_LOCAL_ATOMIC_ALIGNMENT, cl_uint),
        SCALAR(CL_DEVICE_MAX_NUM_SUB_GROUPS, cl_uint),
        SCALAR(CL_DEVICE_SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS, cl_bool),
        SCALAR(CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES, cl_device_atomic_capabilities),
        SCALAR(CL_DEVICE_ATOMIC_FENCE_CAPABILITIES, cl_device_atomic_capabilities),
        SCALAR(CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT, cl_bool),
        SCALAR(CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, size_t),
        SCALAR(CL_DEVICE_WORK_GROUP_COLLECTIVE_FUNCTIONS_SUPPORT, cl_bool),
        SCALAR(CL_DEVICE_GENERIC_ADDRESS_SPACE_SUPPORT, cl_bool),
        SCALAR(CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES, cl_device_device_enqueue_capabilities),
        SCALAR(CL_DEVICE_PIPE_SUPPORT, cl_bool),
    };

    skip_if(test_device_version() < 300, NO_QUERIES);
    for (size_t i = 0; i < COUNT(all); i++) {
        cl_ulong value;
        size_t bytes = 0;

        ck_assert_msg(clGetDeviceInfo(device, all[i].name, sizeof(value), &value, &bytes) ==
                          CL_SUCCESS,
                      "%s", all[i].text);
        if (all[i].name == CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES &&
            excused(POCL, "PoCL 3.1 answers four bytes"))
            continue;
        ck_assert_msg(bytes == all[i].size, "%s: %zu bytes", all[i].text, bytes);
    }
    /* 4.2: the least that each device of 3.0 has. */
    ck_assert(!(~get_info(cl_device_atomic_capabilities, clGetDeviceInfo, device,
                          CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES) &
                (CL_DEVICE_ATOMIC_ORDER_RELAXED | CL_DEVICE_ATOMIC_SCOPE_WORK_GROUP)));
}
END_TEST

START_TEST(extensions_with_versions) {
    char text[16384], *rest = NULL;
    size_t count, words = 0;

    skip_if(test_device_version() < 300, NO_QUERIES);
    free(names(CL_DEVICE_EXTENSIONS_WITH_VERSION, &count));
    ck_ok(clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof(text), text, NULL));
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        ck_assert_msg(has(CL_DEVICE_EXTENSIONS_WITH_VERSION, word, 0), "%s", word);
        words++;
    }
    ck_assert_uint_eq(words, count);
}
END_TEST

static cl_program built(const char *source, const char *options) {
    cl_program program = ck_made(clCreateProgramWithSource(context, 1, &source, NULL, &error));

    ck_ok(clBuildProgram(program, 1, &device, options, NULL, NULL));
    return program;
}

/* What the expression is for the preprocessor, as the device executes it. */
static cl_int macro(const char *condition, const char *options) {
    char source[512];
    cl_int seen = -1;
    cl_mem buffer = make_buffer(CL_MEM_READ_WRITE, sizeof(seen), NULL);
    cl_program program;
    cl_kernel kernel;
    size_t one = 1;

    snprintf(source, sizeof(source),
             "#if %s\n#define SEEN 1\n#else\n#define SEEN 0\n#endif\n"
             "kernel void k(global int *a) { a[0] = SEEN; }\n",
             condition);
    program = built(source, options);
    kernel = ck_made(clCreateKernel(program, "k", &error));
    ck_ok(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
    ck_ok(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL));
    read_ints(buffer, &seen, 1);
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(program));
    ck_ok(clReleaseMemObject(buffer));
    return seen;
}

START_TEST(each_version_of_the_language_compiles) {
    const cl_version required[] = {CL_MAKE_VERSION(1, 0, 0), CL_MAKE_VERSION(1, 1, 0),
                                   CL_MAKE_VERSION(1, 2, 0), CL_MAKE_VERSION(3, 0, 0)};
    size_t count;
    cl_name_version *list;

    skip_if(test_device_version() < 300, NO_QUERIES);
    for (size_t i = 0; i < COUNT(required); i++)
        ck_assert(has(CL_DEVICE_OPENCL_C_ALL_VERSIONS, "OpenCL C", required[i]));
    list = names(CL_DEVICE_OPENCL_C_ALL_VERSIONS, &count);
    for (size_t i = 0; i < count; i++) {
        char option[64], condition[64];
        unsigned major = CL_VERSION_MAJOR(list[i].version);
        unsigned minor = CL_VERSION_MINOR(list[i].version);

        if (major == 1 && minor == 0)
            continue; /* there is no -cl-std=CL1.0 */
        snprintf(option, sizeof(option), "-cl-std=CL%u.%u", major, minor);
        snprintf(condition, sizeof(condition), "__OPENCL_C_VERSION__ == %u",
                 major * 100 + minor * 10);
        ck_assert_msg(macro(condition, option) == 1, "%s with %s", condition, option);
    }
    free(list);
}
END_TEST

START_TEST(features_are_what_sources_see) {
    skip_if(test_device_version() < 300, NO_QUERIES);
    for (size_t i = 0; i < COUNT(features); i++) {
        char condition[128];

        snprintf(condition, sizeof(condition), "defined(%s)", features[i]);
        ck_assert_msg(macro(condition, "-cl-std=CL3.0") ==
                          has(CL_DEVICE_OPENCL_C_FEATURES, features[i], 0),
                      "%s", features[i]);
    }
}
END_TEST

/* clBuildProgram: without -cl-std the highest version 1.x, which PoCL takes for all that it has. */
START_TEST(a_source_without_a_version) {
    if (test_device_version() < 300) {
        ck_assert_int_eq(macro("__OPENCL_C_VERSION__ == 120", NULL), 1);
        return;
    }
    ck_assert(macro("__OPENCL_C_VERSION__ == 120", NULL) == 1 ||
              macro("__OPENCL_C_VERSION__ == 300", NULL) == 1);
}
END_TEST

START_TEST(macros_of_the_device) {
    char condition[64];

    snprintf(condition, sizeof(condition), "__OPENCL_VERSION__ == %d", test_device_version());
    ck_assert_msg(macro(condition, NULL) == 1, "%s", condition);
    ck_assert_int_eq(macro("defined(__IMAGE_SUPPORT__)", NULL),
                     get_info(cl_bool, clGetDeviceInfo, device, CL_DEVICE_IMAGE_SUPPORT) != 0);
}
END_TEST

START_TEST(extensions_are_what_sources_see) {
    const char *const some[] = {"cl_khr_fp64",
                                "cl_khr_fp16",
                                "cl_khr_int64_base_atomics",
                                "cl_khr_3d_image_writes",
                                "cl_khr_subgroups",
                                "cl_khr_command_buffer",
                                "cl_khr_spir"};
    char text[16384];

    skip_on(POCL, "PoCL 3.1 defines no macro for cl_khr_command_buffer");
    ck_ok(clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof(text), text, NULL));
    for (size_t i = 0; i < COUNT(some); i++) {
        char condition[64];

        snprintf(condition, sizeof(condition), "defined(%s)", some[i]);
        ck_assert_msg(macro(condition, NULL) == (strstr(text, some[i]) != NULL), "%s", some[i]);
    }
}
END_TEST

/* Whatever comes before a source, what is said of it keeps its line, and its text is its own. */
START_TEST(lines_keep_their_numbers) {
    const char *source = "#if __LINE__ != 1\n#error moved\n#endif\n"
                         "kernel void k(global int *a) { a[0] = __LINE__; }\n";
    cl_program program = built(source, NULL);
    char text[256];

    ck_ok(clGetProgramInfo(program, CL_PROGRAM_SOURCE, sizeof(text), text, NULL));
    ck_assert_str_eq(text, source);
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(byte_order_mark) {
    ck_ok(clReleaseProgram(built("\xef\xbb\xbf"
                                 "kernel void k(global int *a) { a[0] = 1; }",
                                 NULL)));
}
END_TEST

/* Built for a version that is not promised it does what the first device does, or fails. */
START_TEST(an_unknown_version) {
    const char *source = "kernel void k(global int *a) { a[0] = 1; }";
    cl_program program = ck_made(clCreateProgramWithSource(context, 1, &source, NULL, &error));

    ck_assert(clBuildProgram(program, 1, &device, "-cl-std=CL9.9", NULL, NULL) != CL_SUCCESS);
    error = clBuildProgram(program, 1, &device, "-cl-std=CL2.0", NULL, NULL);
    ck_assert(error == CL_SUCCESS || error == CL_INVALID_BUILD_OPTIONS ||
              error == CL_BUILD_PROGRAM_FAILURE);
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(queue_with_properties) {
    const cl_queue_properties none[] = {0}, unknown[] = {0x7777, 0, 0},
                              bits[] = {CL_QUEUE_PROPERTIES, (cl_queue_properties)1 << 40, 0},
                              profiled[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
    cl_queue_properties seen[8];
    size_t bytes;
    cl_command_queue made;

    skip_if(test_device_version() < 200, "below OpenCL 2.0");
    made = ck_made(clCreateCommandQueueWithProperties(context, device, NULL, &error));
    ck_ok(clGetCommandQueueInfo(made, CL_QUEUE_PROPERTIES_ARRAY, sizeof(seen), seen, &bytes));
    ck_assert_uint_eq(bytes, 0);
    ck_assert_cl(clGetCommandQueueInfo(made, CL_QUEUE_SIZE, sizeof(seen), seen, NULL),
                 CL_INVALID_COMMAND_QUEUE);
    ck_assert(get_info(cl_command_queue, clGetCommandQueueInfo, made, CL_QUEUE_DEVICE_DEFAULT) ==
              NULL);
    ck_ok(clReleaseCommandQueue(made));
    made = ck_made(clCreateCommandQueueWithProperties(context, device, none, &error));
    ck_ok(clReleaseCommandQueue(made));
    made = ck_made(clCreateCommandQueueWithProperties(context, device, profiled, &error));
    ck_ok(clGetCommandQueueInfo(made, CL_QUEUE_PROPERTIES_ARRAY, sizeof(seen), seen, &bytes));
    ck_assert_uint_eq(bytes, sizeof(profiled));
    ck_assert_mem_eq(seen, profiled, sizeof(profiled));
    ck_ok(clReleaseCommandQueue(made));
    ck_refused(clCreateCommandQueueWithProperties(NULL, device, none, &error), CL_INVALID_CONTEXT);
    ck_refused(clCreateCommandQueueWithProperties(context, NULL, none, &error), CL_INVALID_DEVICE);
    ck_refused(clCreateCommandQueueWithProperties(context, device, unknown, &error),
               CL_INVALID_VALUE);
    ck_refused(clCreateCommandQueueWithProperties(context, device, bits, &error), CL_INVALID_VALUE);
}
END_TEST

START_TEST(queue_on_the_device) {
    const cl_queue_properties properties[] = {
        CL_QUEUE_PROPERTIES, CL_QUEUE_ON_DEVICE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0};

    skip_on(POCL, "PoCL 3.1 ends the process");
    skip_if(test_device_version() < 300, NO_QUERIES);
    skip_if(get_info(cl_uint, clGetDeviceInfo, device, CL_DEVICE_MAX_ON_DEVICE_QUEUES) > 0,
            "there are such queues");
    ck_refused(clCreateCommandQueueWithProperties(context, device, properties, &error),
               CL_INVALID_QUEUE_PROPERTIES);
    ck_assert_cl(clSetDefaultDeviceCommandQueue(context, device, queue), CL_INVALID_OPERATION);
}
END_TEST

START_TEST(buffer_with_properties) {
    const cl_mem_properties none[] = {0}, unknown[] = {0x7777, 1, 0};
    cl_mem made;
    size_t bytes = 1;

    skip_if(test_device_version() < 300, NO_QUERIES);
    made =
        ck_made(clCreateBufferWithProperties(context, NULL, CL_MEM_READ_WRITE, 64, NULL, &error));
    ck_ok(clGetMemObjectInfo(made, CL_MEM_PROPERTIES, 0, NULL, &bytes));
    ck_assert_uint_eq(bytes, 0);
    ck_ok(clReleaseMemObject(made));
    made =
        ck_made(clCreateBufferWithProperties(context, none, CL_MEM_READ_WRITE, 64, NULL, &error));
    ck_ok(clReleaseMemObject(made));
    ck_refused(clCreateBufferWithProperties(context, unknown, CL_MEM_READ_WRITE, 64, NULL, &error),
               CL_INVALID_PROPERTY);
}
END_TEST

static atomic_int ended;

static void CL_CALLBACK at_end(cl_context ending, void *data) {
    (void)ending;
    if (data == &ended)
        atomic_fetch_add(&ended, 1);
}

START_TEST(context_destructor) {
    cl_context made;

    skip_if(test_device_version() < 300, NO_QUERIES);
    made = ck_made(clCreateContext(NULL, 1, &device, NULL, NULL, &error));
    atomic_store(&ended, 0);
    ck_assert_cl(clSetContextDestructorCallback(NULL, at_end, &ended), CL_INVALID_CONTEXT);
    ck_assert_cl(clSetContextDestructorCallback(made, NULL, &ended), CL_INVALID_VALUE);
    ck_ok(clSetContextDestructorCallback(made, at_end, &ended));
    ck_ok(clSetContextDestructorCallback(made, at_end, &ended));
    ck_assert_int_eq(atomic_load(&ended), 0);
    ck_ok(clReleaseContext(made));
    ck_assert_int_eq(atomic_load(&ended), 2);
}
END_TEST

START_TEST(clone_of_a_kernel) {
    cl_int value = 3, seen = 0;
    cl_mem buffer;
    cl_program program;
    cl_kernel kernel, clone;
    size_t one = 1;

    skip_on(POCL, "PoCL 3.1 clones no kernels");
    skip_if(test_device_version() < 210, "below OpenCL 2.1");
    buffer = make_buffer(CL_MEM_READ_WRITE, sizeof(seen), NULL);
    program = built("kernel void k(global int *a, int b) { a[0] = b; }", NULL);
    kernel = ck_made(clCreateKernel(program, "k", &error));
    ck_ok(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(kernel, 1, sizeof(value), &value));
    clone = ck_made(clCloneKernel(kernel, &error));
    value = 4;
    ck_ok(clSetKernelArg(kernel, 1, sizeof(value), &value));
    ck_ok(clEnqueueNDRangeKernel(queue, clone, 1, NULL, &one, NULL, 0, NULL, NULL));
    read_ints(buffer, &seen, 1);
    ck_assert_int_eq(seen, 3);
    ck_refused(clCloneKernel(NULL, &error), CL_INVALID_KERNEL);
    ck_ok(clReleaseKernel(clone));
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(program));
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(sub_groups_absent) {
    cl_program program;
    cl_kernel kernel;
    size_t local = 8, count;

    skip_on(POCL, "PoCL 3.1 has no such entry point");
    skip_if(test_device_version() < 300, NO_QUERIES);
    skip_if(get_info(cl_uint, clGetDeviceInfo, device, CL_DEVICE_MAX_NUM_SUB_GROUPS) > 0,
            "there are sub-groups");
    program = built("kernel void k(global int *a) { a[0] = 1; }", NULL);
    kernel = ck_made(clCreateKernel(program, "k", &error));
    ck_assert_cl(clGetKernelSubGroupInfo(kernel, device, CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE,
                                         sizeof(local), &local, sizeof(count), &count, NULL),
                 CL_INVALID_OPERATION);
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(timers) {
    cl_ulong host = 0, both = 0, first = 0, second = 0;

    skip_on(POCL, "PoCL 3.1 has no timers");
    skip_if(test_device_version() < 210, "below OpenCL 2.1");
    ck_ok(clGetDeviceAndHostTimer(device, &first, &both));
    ck_ok(clGetHostTimer(device, &host));
    ck_ok(clGetDeviceAndHostTimer(device, &second, &both));
    ck_assert(first && first < second && host <= both);
    ck_assert_cl(clGetHostTimer(NULL, &host), CL_INVALID_DEVICE);
    ck_assert_cl(clGetHostTimer(device, NULL), CL_INVALID_VALUE);
    ck_assert_cl(clGetDeviceAndHostTimer(NULL, &first, &both), CL_INVALID_DEVICE);
    ck_assert_cl(clGetDeviceAndHostTimer(device, NULL, &both), CL_INVALID_VALUE);
    ck_assert_cl(clGetDeviceAndHostTimer(device, &first, NULL), CL_INVALID_VALUE);
    ck_assert_uint_gt(
        get_info(cl_ulong, clGetPlatformInfo, platform, CL_PLATFORM_HOST_TIMER_RESOLUTION), 0);
}
END_TEST

/* Since 2.1 (5.8) such a command succeeds after what it waits for, and has an event. */
START_TEST(kernel_without_work_items) {
    const size_t none[3] = {8, 0, 1}, local[3] = {4, 1, 1};
    cl_int seven = 7, seen = 0;
    cl_mem buffer;
    cl_program program;
    cl_kernel kernel;
    cl_event gate, events[2];

    skip_on(POCL, "PoCL 3.1's basic devices hang");
    skip_if(test_device_version() < 210, "below OpenCL 2.1");
    buffer = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(seven), &seven);
    program = built("kernel void k(global int *a) { a[0] = 1; }", NULL);
    kernel = ck_made(clCreateKernel(program, "k", &error));
    ck_ok(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
    gate = ck_made(clCreateUserEvent(context, &error));
    ck_ok(clEnqueueNDRangeKernel(queue, kernel, 2, NULL, none, local, 1, &gate, &events[0]));
    ck_ok(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, NULL, NULL, 0, NULL, &events[1]));
    ck_assert(get_info(cl_command_type, clGetEventInfo, events[0], CL_EVENT_COMMAND_TYPE) ==
              CL_COMMAND_NDRANGE_KERNEL);
    ck_assert(get_info(cl_int, clGetEventInfo, events[0], CL_EVENT_COMMAND_EXECUTION_STATUS) !=
              CL_COMPLETE);
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    ck_ok(clWaitForEvents(2, events));
    ck_assert_uint_gt(
        get_info(cl_ulong, clGetEventProfilingInfo, events[0], CL_PROFILING_COMMAND_END), 0);
    read_ints(buffer, &seen, 1);
    ck_assert_int_eq(seen, 7);
    ck_ok(clReleaseEvent(gate));
    ck_ok(clReleaseEvent(events[0]));
    ck_ok(clReleaseEvent(events[1]));
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(program));
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

static void CL_CALLBACK at_release(cl_program ending, void *data) { (void)ending, (void)data; }

START_TEST(optional_parts_of_programs) {
    cl_program program;
    char il[256] = "";
    cl_int value = 1;

    skip_on(POCL, "PoCL 3.1 has none of these entry points");
    skip_if(test_device_version() < 300, NO_QUERIES);
    program = built("kernel void k(global int *a) { a[0] = 1; }", NULL);
    ck_assert_cl(clSetProgramReleaseCallback(NULL, at_release, NULL), CL_INVALID_PROGRAM);
    ck_assert_cl(clSetProgramReleaseCallback(program, NULL, NULL), CL_INVALID_VALUE);
    ck_assert_cl(clSetProgramReleaseCallback(program, at_release, NULL), CL_INVALID_OPERATION);
    ck_assert(!get_info(cl_bool, clGetProgramInfo, program, CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT));
    ck_assert(!get_info(cl_bool, clGetProgramInfo, program, CL_PROGRAM_SCOPE_GLOBAL_DTORS_PRESENT));
    ck_ok(clGetDeviceInfo(device, CL_DEVICE_IL_VERSION, sizeof(il), il, NULL));
    ck_assert_cl(clSetProgramSpecializationConstant(NULL, 0, sizeof(value), &value),
                 CL_INVALID_PROGRAM);
    ck_assert_cl(clSetProgramSpecializationConstant(program, 0, sizeof(value), &value),
                 il[0] ? CL_INVALID_PROGRAM : CL_INVALID_OPERATION);
    if (il[0] == '\0')
        ck_refused(clCreateProgramWithIL(context, il, sizeof(il), &error), CL_INVALID_OPERATION);
    else
        ck_refused(clCreateProgramWithIL(context, NULL, sizeof(il), &error), CL_INVALID_VALUE);
    ck_refused(clCreateProgramWithIL(NULL, il, sizeof(il), &error), CL_INVALID_CONTEXT);
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(absent_memory) {
    skip_if(test_device_version() < 300, NO_QUERIES);
    if (!get_info(cl_device_svm_capabilities, clGetDeviceInfo, device, CL_DEVICE_SVM_CAPABILITIES))
        ck_assert_ptr_null(clSVMAlloc(context, CL_MEM_READ_WRITE, 64, 0));
    if (!get_info(cl_bool, clGetDeviceInfo, device, CL_DEVICE_PIPE_SUPPORT) &&
        !excused(POCL, "PoCL 3.1 has no clCreatePipe"))
        ck_refused(clCreatePipe(context, 0, 4, 16, NULL, &error), CL_INVALID_OPERATION);
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        versions_agree,
        scalars,
        extensions_with_versions,
        each_version_of_the_language_compiles,
        features_are_what_sources_see,
        macros_of_the_device,
        a_source_without_a_version,
        extensions_are_what_sources_see,
        lines_keep_their_numbers,
        byte_order_mark,
        an_unknown_version,
        queue_with_properties,
        queue_on_the_device,
        buffer_with_properties,
        context_destructor,
        clone_of_a_kernel,
        kernel_without_work_items,
        sub_groups_absent,
        timers,
        optional_parts_of_programs,
        absent_memory,
    };

    return test_main(argc, argv, tests, COUNT(tests));
}
