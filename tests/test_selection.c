/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: TUTTI_DEVICES and TUTTI_DEVICE_TYPE choose and order the real devices. Each setting
 * is tried in a process of its own, as it is read once; it prints how many real devices joined.
 */
#include "support.h"

#include "task_counts.h"

#include <CL/cl_ext.h>
#include <stdio.h>
#include <unistd.h>

/* What CL_DEVICE_UUID_KHR and CL_DRIVER_UUID_KHR answer, as text. */
static void print_uuid(const char *title, cl_device_id found, cl_device_info what) {
    cl_uchar uuid[CL_UUID_SIZE_KHR];
    size_t bytes = 0;

    printf("%s ", title);
    if (clGetDeviceInfo(found, what, sizeof(uuid), uuid, &bytes) != CL_SUCCESS)
        bytes = 0;
    for (size_t i = 0; i < bytes; i++)
        printf("%02x", uuid[i]);
    printf("\n");
}

/* The child: prints the number of real devices, 0 where there is no device, and its UUIDs. */
static int print_count(void) {
    cl_platform_id platforms[16];
    cl_device_id found;
    cl_uint count = 0, joined = 0;
    char name[128];
    task_counts_function ask;
    void *address;

    clGetPlatformIDs(16, platforms, &count);
    for (cl_uint i = 0; i < count; i++) {
        clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof(name), name, NULL);
        if (strcmp(name, "Tutti"))
            continue;
        address =
            clGetExtensionFunctionAddressForPlatform(platforms[i], "clGetDeviceTaskCountsTUTTI");
        if (!address)
            return 1;
        memcpy(&ask, &address, sizeof(address));
        if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 1, &found, NULL) == CL_SUCCESS) {
            ask(found, 0, NULL, NULL, &joined);
            print_uuid("device", found, CL_DEVICE_UUID_KHR);
            print_uuid("driver", found, CL_DRIVER_UUID_KHR);
        }
        printf("joined %u\n", joined);
        return 0;
    }
    return 1;
}

struct child {
    int joined;
    char device[128], driver[128]; /* UUIDs */
};

/* What a process says for which PoCL is told to make three devices, with these settings. */
static struct child child(const char *settings) {
    char all[256], line[128];
    struct child said = {.joined = -1};

    snprintf(all, sizeof(all), "POCL_DEVICES='basic basic pthread' %s", settings);
    FILE *pipe = test_start_again(all, "--count");
    while (fgets(line, sizeof(line), pipe))
        if (sscanf(line, "joined %d", &said.joined) < 1 &&
            sscanf(line, "device %127s", said.device) < 1)
            sscanf(line, "driver %127s", said.driver);
    pclose(pipe);
    return said;
}

static int joined(const char *settings) { return child(settings).joined; }

/* PoCL alone makes the devices that it is told to make. */
#define SKIP_BESIDE_OTHERS()                                                                       \
    test_choose_device();                                                                          \
    skip_if(!all_are_pocl(), "there are devices that PoCL didn't make")

START_TEST(all_by_default) {
    SKIP_BESIDE_OTHERS();
    ck_assert_int_eq(joined(""), 3);
    ck_assert_int_eq(joined("TUTTI_DEVICES="), 3);
    ck_assert_int_eq(joined("TUTTI_DEVICE_TYPE=all"), 3);
}
END_TEST

START_TEST(by_index) {
    SKIP_BESIDE_OTHERS();
    ck_assert_int_eq(joined("TUTTI_DEVICES=0"), 1);
    ck_assert_int_eq(joined("TUTTI_DEVICES=2,0"), 2);
    ck_assert_int_eq(joined("TUTTI_DEVICES=0,0"), 1);
    ck_assert_int_eq(joined("TUTTI_DEVICES=7"), 0);
}
END_TEST

START_TEST(by_name) {
    SKIP_BESIDE_OTHERS();
    ck_assert_int_eq(joined("TUTTI_DEVICES=BASIC"), 2);
    ck_assert_int_eq(joined("TUTTI_DEVICES=pthread"), 1);
    ck_assert_int_eq(joined("TUTTI_DEVICES='portable computing'"), 3);
    ck_assert_int_eq(joined("TUTTI_DEVICES=nothing-like-it"), 0);
}
END_TEST

START_TEST(by_type) {
    SKIP_BESIDE_OTHERS();
    ck_assert_int_eq(joined("TUTTI_DEVICES=cpu"), 3);
    ck_assert_int_eq(joined("TUTTI_DEVICES=gpu"), 0);
    ck_assert_int_eq(joined("TUTTI_DEVICE_TYPE=cpu"), 3);
    ck_assert_int_eq(joined("TUTTI_DEVICE_TYPE=gpu"), 0);
}
END_TEST

START_TEST(all_but) {
    SKIP_BESIDE_OTHERS();
    ck_assert_int_eq(joined("TUTTI_DEVICES=-basic"), 1);
    ck_assert_int_eq(joined("TUTTI_DEVICES='cpu, !pthread'"), 2);
    ck_assert_int_eq(joined("TUTTI_DEVICES=-cpu"), 0);
}
END_TEST

/* cl_khr_device_uuid: immutable from one process to the next, and another device's is another. */
START_TEST(uuids) {
    SKIP_BESIDE_OTHERS();
    struct child all = child("TUTTI_DEVICES=0,1,2"), again = child("");
    struct child two = child("TUTTI_DEVICES=1,2"), turned = child("TUTTI_DEVICES=2,0,1");

    ck_assert_uint_eq(strlen(all.device), 2 * CL_UUID_SIZE_KHR);
    ck_assert_uint_eq(strlen(all.driver), 2 * CL_UUID_SIZE_KHR);
    ck_assert_str_eq(again.device, all.device);
    ck_assert_str_ne(two.device, all.device);
    ck_assert_str_ne(turned.device, all.device);
    ck_assert_str_eq(two.driver, all.driver);
    ck_assert_str_ne(all.driver, all.device);
}
END_TEST

/* A child of the next test: one that gets as far as a context. */
static int make_context(void) {
    cl_context made;
    test_choose_device();
    made = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    if (made)
        clReleaseContext(made);
    return made ? 0 : 1;
}

/* Programs that start together, on different devices, and for the first time on this machine. */
START_TEST(together) {
    SKIP_BESIDE_OTHERS();
    char cache[] = "/tmp/tutti-test-XXXXXX", command[1024], line[128];
    unsigned started = 0;
    FILE *pipe;

    ck_assert_ptr_nonnull(mkdtemp(cache));
    snprintf(command, sizeof(command),
             "export POCL_DEVICES='basic basic' XDG_CACHE_HOME=%s; x=/proc/%ld/exe;"
             "for i in 1 2 3; do for d in 0 1 all; do"
             " (TUTTI_DEVICES=$d $x --start && echo started) & done; done 2>/dev/null; wait;"
             " rm -r %s",
             cache, (long)getpid(), cache);
    pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    while (fgets(line, sizeof(line), pipe))
        started += !strcmp(line, "started\n");
    pclose(pipe);
    ck_assert_uint_eq(started, 9);
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {all_by_default, by_index, by_name, by_type,
                                  all_but,        uuids,    together};

    if (argc == 2 && !strcmp(argv[1], "--count"))
        return print_count();
    if (argc == 2 && !strcmp(argv[1], "--start"))
        return make_context();
    return test_main_bare(argc, argv, tests, COUNT(tests));
}
