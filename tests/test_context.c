/* SPDX-License-Identifier: MIT */
#include "support.h"

static void CL_CALLBACK on_error(const char *what, const void *info, size_t size, void *data) {
    (void)what;
    (void)info;
    (void)size;
    (void)data;
}

START_TEST(create_from_devices) {
    cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)platform, 0};
    cl_context_properties empty[] = {0};
    cl_context made;

    made = ck_made(clCreateContext(properties, 1, &device, on_error, &error, &error));
    ck_ok(clReleaseContext(made));
    made = ck_made(clCreateContext(NULL, 1, &device, NULL, NULL, &error));
    ck_ok(clReleaseContext(made));
    made = ck_made(clCreateContext(empty, 1, &device, NULL, NULL, &error));
    ck_ok(clReleaseContext(made));
    made = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    ck_assert_ptr_nonnull(made);
    ck_ok(clReleaseContext(made));
}
END_TEST

START_TEST(create_from_devices_wrong) {
    cl_context_properties unknown[] = {0x7777, 1, 0};
    cl_context_properties twice[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)platform,
                                     CL_CONTEXT_PLATFORM, (cl_context_properties)platform, 0};
    cl_device_id with_null[] = {device, NULL};

    ck_refused(clCreateContext(NULL, 0, &device, NULL, NULL, &error), CL_INVALID_VALUE);
    ck_refused(clCreateContext(NULL, 1, NULL, NULL, NULL, &error), CL_INVALID_VALUE);
    ck_refused(clCreateContext(NULL, 1, &device, NULL, &error, &error), CL_INVALID_VALUE);
    ck_refused(clCreateContext(NULL, 2, with_null, NULL, NULL, &error), CL_INVALID_DEVICE);
    if (!excused(OCLGRIND, "Oclgrind takes an unknown context property"))
        ck_refused(clCreateContext(unknown, 1, &device, NULL, NULL, &error), CL_INVALID_PROPERTY);
    if (!excused(POCL, "PoCL 3.1 takes a property given twice") &&
        !excused(OCLGRIND, "Oclgrind takes a property given twice"))
        ck_refused(clCreateContext(twice, 1, &device, NULL, NULL, &error), CL_INVALID_PROPERTY);
}
END_TEST

START_TEST(create_with_a_device_twice) {
    cl_device_id twice[] = {device, device};
    cl_context made = ck_made(clCreateContext(NULL, 2, twice, NULL, NULL, &error));

    /* "Duplicate devices specified in devices are ignored." */
    skip_on(POCL, "PoCL 3.1 counts a device given twice as two");
    ck_assert_uint_eq(get_info(cl_uint, clGetContextInfo, made, CL_CONTEXT_NUM_DEVICES), 1);
    ck_ok(clReleaseContext(made));
}
END_TEST

START_TEST(create_from_type) {
    cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)platform, 0};
    cl_device_type type = get_info(cl_device_type, clGetDeviceInfo, device, CL_DEVICE_TYPE);
    const cl_device_type types[] = {CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_DEFAULT, type};
    cl_context made;

    for (size_t i = 0; i < COUNT(types); i++) {
        made = ck_made(clCreateContextFromType(properties, types[i], on_error, &error, &error));
        ck_assert_uint_ge(get_info(cl_uint, clGetContextInfo, made, CL_CONTEXT_NUM_DEVICES), 1);
        ck_ok(clReleaseContext(made));
    }
    made = clCreateContextFromType(properties, CL_DEVICE_TYPE_ALL, NULL, NULL, NULL);
    ck_assert_ptr_nonnull(made);
    ck_ok(clReleaseContext(made));
}
END_TEST

START_TEST(create_from_type_wrong) {
    cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)platform, 0};
    cl_context_properties unknown[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)platform, 0x7777,
                                       1, 0};
    cl_uint count;

    ck_refused(clCreateContextFromType(properties, CL_DEVICE_TYPE_ALL, NULL, &error, &error),
               CL_INVALID_VALUE);
    if (!excused(OCLGRIND, "Oclgrind takes an unknown context property"))
        ck_refused(clCreateContextFromType(unknown, CL_DEVICE_TYPE_ALL, NULL, NULL, &error),
                   CL_INVALID_PROPERTY);
    if (!excused(POCL, "PoCL 3.1 takes an unknown type for one that it has not") &&
        !excused(OCLGRIND, "Oclgrind takes an unknown type for one that it has not"))
        ck_refused(clCreateContextFromType(properties, 0, NULL, NULL, &error),
                   CL_INVALID_DEVICE_TYPE);
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ACCELERATOR, 0, NULL, &count) ==
            CL_DEVICE_NOT_FOUND &&
        !excused(POCL, "PoCL 3.1 returns an empty context where no device is found"))
        ck_refused(
            clCreateContextFromType(properties, CL_DEVICE_TYPE_ACCELERATOR, NULL, NULL, &error),
            CL_DEVICE_NOT_FOUND);
}
END_TEST

START_TEST(info) {
    cl_context_properties properties[3] = {0};
    size_t size;

    ck_assert_uint_eq(get_info(cl_uint, clGetContextInfo, context, CL_CONTEXT_NUM_DEVICES), 1);
    ck_assert(get_info(cl_device_id, clGetContextInfo, context, CL_CONTEXT_DEVICES) == device);
    ck_assert_uint_ge(get_info(cl_uint, clGetContextInfo, context, CL_CONTEXT_REFERENCE_COUNT), 1);
    ck_ok(clGetContextInfo(context, CL_CONTEXT_PROPERTIES, sizeof(properties), properties, &size));
    ck_assert_uint_eq(size, sizeof(properties));
    ck_assert(properties[0] == CL_CONTEXT_PLATFORM);
    ck_assert(properties[1] == (cl_context_properties)platform);
    ck_assert(properties[2] == 0);
    check_info_rules(clGetContextInfo, context, CL_CONTEXT_REFERENCE_COUNT);
    check_info_rules(clGetContextInfo, context, CL_CONTEXT_NUM_DEVICES);
    check_info_rules(clGetContextInfo, context, CL_CONTEXT_DEVICES);
    check_info_rules(clGetContextInfo, context, CL_CONTEXT_PROPERTIES);
}
END_TEST

START_TEST(info_without_properties) {
    cl_context made = ck_made(clCreateContext(NULL, 1, &device, NULL, NULL, &error));
    cl_context_properties properties[3] = {7};
    size_t size = 77;

    /* Given no properties, a driver may answer nothing or a single 0. */
    ck_ok(clGetContextInfo(made, CL_CONTEXT_PROPERTIES, sizeof(properties), properties, &size));
    ck_assert(size == 0 || (size == sizeof(properties[0]) && properties[0] == 0));
    ck_ok(clReleaseContext(made));
}
END_TEST

START_TEST(every_device_of_the_platform) {
    cl_device_id all[16], seen[16];
    cl_uint count;
    cl_context made;
    size_t size;

    ck_ok(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, COUNT(all), all, &count));
    if (count > COUNT(all))
        count = COUNT(all);
    made = ck_made(clCreateContext(NULL, count, all, NULL, NULL, &error));
    ck_assert_uint_eq(get_info(cl_uint, clGetContextInfo, made, CL_CONTEXT_NUM_DEVICES), count);
    ck_ok(clGetContextInfo(made, CL_CONTEXT_DEVICES, sizeof(seen), seen, &size));
    ck_assert_uint_eq(size, count * sizeof(cl_device_id));
    for (cl_uint i = 0; i < count; i++)
        ck_assert(seen[i] == all[i]);
    ck_ok(clReleaseContext(made));
}
END_TEST

START_TEST(many) {
    cl_context some[200];

    for (size_t i = 0; i < COUNT(some); i++)
        some[i] = ck_made(clCreateContext(NULL, 1, &device, NULL, NULL, &error));
    for (size_t i = 0; i < COUNT(some); i++)
        ck_ok(clReleaseContext(some[i]));
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        create_from_devices,     create_from_devices_wrong,    create_with_a_device_twice,
        create_from_type,        create_from_type_wrong,       info,
        info_without_properties, every_device_of_the_platform, many,
    };

    return test_main(argc, argv, tests, COUNT(tests));
}
