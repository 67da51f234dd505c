/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: kernels on PoCL's devices are given the addresses of their buffers, as the driver
 * does less for those than for memory objects; beside an image they are not. Its calls are counted.
 */
#define CL_TARGET_OPENCL_VERSION 300
#include "pocl_table.h"

#include <stdatomic.h>

enum { N = 256, BYTES = N * sizeof(cl_int), PART = N / 4, ROUNDS = 20, MOST_DEVICES = 8 };

static cl_icd_dispatch real;
static atomic_uint addresses, others; /* arguments that were set, since that was asked */

static cl_int CL_API_CALL set_address(cl_kernel kernel, cl_uint index, const void *value) {
    atomic_fetch_add(&addresses, 1);
    return real.clSetKernelArgSVMPointer(kernel, index, value);
}

static cl_int CL_API_CALL set_other(cl_kernel kernel, cl_uint index, size_t size,
                                    const void *value) {
    atomic_fetch_add(&others, 1);
    return real.clSetKernelArg(kernel, index, size, value);
}

static void forget(void) {
    atomic_store(&addresses, 0);
    atomic_store(&others, 0);
}

static const char source[] = "kernel void add(global int *to, global const int *from) {"
                             "    to[get_global_id(0)] += from[get_global_id(0)]; }"
                             "kernel void add_first(global int *to, constant int *from) {"
                             "    to[get_global_id(0)] += from ? from[0] : 1000; }";
static const char of_image[] =
    "kernel void add_image(global int *to, read_only image1d_t from) {"
    "    to[get_global_id(0)] += read_imagei(from, (int)get_global_id(0)).x; }";

static cl_program program;
static cl_kernel add, add_first;
static cl_int ones[N];

static cl_mem make_ones(void) { return make_buffer(CL_MEM_COPY_HOST_PTR, BYTES, ones); }

static void begin(void) {
    program = make_program(source);
    add = make_kernel(program, "add");
    add_first = make_kernel(program, "add_first");
    for (int i = 0; i < N; i++)
        ones[i] = 1;
    forget();
}

static void end(void) {
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseKernel(add_first));
    ck_ok(clReleaseProgram(program));
}

static void run(cl_kernel kernel, cl_mem to, cl_mem from, size_t items) {
    ck_ok(clSetKernelArg(kernel, 0, sizeof(to), &to));
    ck_ok(clSetKernelArg(kernel, 1, sizeof(from), from ? &from : NULL));
    launch(kernel, items);
}

static void ck_holds(cl_mem object, size_t first, size_t count, cl_int expected) {
    cl_int seen[N];
    read_ints(object, seen, N);
    for (size_t i = first; i < first + count; i++)
        ck_assert_int_eq(seen[i], expected);
}

/* Each device is told once of each argument that stays. */
START_TEST(instead_of_memory_objects) {
    begin();
    cl_mem to = make_ones(), from = make_ones();
    for (int i = 0; i < ROUNDS; i++)
        run(add, to, from, N);
    ck_holds(to, 0, N, 1 + ROUNDS);
    ck_assert_uint_ge(atomic_load(&addresses), 2);
    ck_assert_uint_le(atomic_load(&addresses), 2 * MOST_DEVICES);
    ck_assert_uint_eq(atomic_load(&others), 0);
    ck_ok(clReleaseMemObject(to));
    ck_ok(clReleaseMemObject(from));
    end();
}
END_TEST

START_TEST(of_parts) {
    begin();
    cl_mem to = make_ones(), from = make_ones(), part[2];
    for (size_t i = 0; i < 2; i++) {
        const cl_buffer_region region = {(2 * i + 1) * PART * sizeof(cl_int),
                                         PART * sizeof(cl_int)};
        part[i] = ck_made(clCreateSubBuffer(to, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error));
    }
    for (int i = 0; i < ROUNDS; i++) {
        run(add, part[0], from, PART);
        run(add, part[1], part[0], PART);
        run(add, to, from, PART); /* the first quarter of all */
    }
    ck_holds(to, 0, PART, 1 + ROUNDS);
    ck_holds(to, PART, PART, 1 + ROUNDS);
    ck_holds(to, 2 * PART, PART, 1);
    ck_holds(to, 3 * PART, PART, 1 + ROUNDS * (ROUNDS + 3) / 2); /* 2 + 3 + … were added */
    for (int i = 0; i < 2; i++)
        ck_ok(clReleaseMemObject(part[i]));
    ck_ok(clReleaseMemObject(to));
    ck_ok(clReleaseMemObject(from));
    end();
}
END_TEST

/* What was given before does not stay. */
START_TEST(of_other_buffers_and_of_none) {
    begin();
    cl_mem to = make_ones();
    for (int i = 0; i < ROUNDS; i++) {
        cl_int number = i;
        cl_mem from = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(number), &number);
        run(add_first, to, from, N);
        run(add_first, to, NULL, N);
        ck_ok(clFinish(queue));
        ck_ok(clReleaseMemObject(from));
    }
    ck_holds(to, 0, N, 1 + ROUNDS * (ROUNDS - 1) / 2 + ROUNDS * 1000);
    ck_ok(clReleaseMemObject(to));
    end();
}
END_TEST

/* Not aligned as the driver would have it. */
START_TEST(of_the_programs_memory) {
    begin();
    cl_int *memory = malloc(BYTES + sizeof(cl_int));
    ck_assert_ptr_nonnull(memory);
    for (size_t off = 0; off < 2; off++) {
        memcpy(memory + off, ones, BYTES);
        cl_mem to = make_buffer(CL_MEM_USE_HOST_PTR, BYTES, memory + off), from = make_ones();
        for (int i = 0; i < ROUNDS; i++)
            run(add, to, from, N);
        ck_holds(to, 0, N, 1 + ROUNDS);
        ck_ok(clReleaseMemObject(to));
        ck_ok(clReleaseMemObject(from));
    }
    free(memory);
    end();
}
END_TEST

START_TEST(not_beside_an_image) {
    skip_if(!get_info(cl_bool, clGetDeviceInfo, device, CL_DEVICE_IMAGE_SUPPORT),
            "the device has no images");
    begin();
    const cl_image_format format = {CL_R, CL_SIGNED_INT32};
    const cl_image_desc line = {.image_type = CL_MEM_OBJECT_IMAGE1D, .image_width = N};
    cl_program images = make_program(of_image);
    cl_kernel add_image = make_kernel(images, "add_image");
    cl_mem to = make_ones(),
           from =
               ck_made(clCreateImage(context, CL_MEM_COPY_HOST_PTR, &format, &line, ones, &error));
    forget();
    for (int i = 0; i < ROUNDS; i++)
        run(add_image, to, from, N);
    ck_holds(to, 0, N, 1 + ROUNDS);
    ck_assert_uint_eq(atomic_load(&addresses), 0);
    ck_assert_uint_ge(atomic_load(&others), 2);
    ck_ok(clReleaseMemObject(to));
    ck_ok(clReleaseMemObject(from));
    ck_ok(clReleaseKernel(add_image));
    ck_ok(clReleaseProgram(images));
    end();
}
END_TEST

/* All of its devices execute in the host's memory, and share virtual memory. */
static bool takes_addresses(cl_platform_id pocl) {
    cl_device_id devices[MOST_DEVICES];
    cl_uint count = 0;
    if (real.clGetDeviceIDs(pocl, CL_DEVICE_TYPE_CPU, MOST_DEVICES, devices, &count) != CL_SUCCESS)
        return false;
    bool takes = true;
    for (cl_uint d = 0; d < count && d < MOST_DEVICES; d++) {
        cl_device_svm_capabilities svm = 0;
        real.clGetDeviceInfo(devices[d], CL_DEVICE_SVM_CAPABILITIES, sizeof(svm), &svm, NULL);
        takes = takes && svm & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER;
    }
    return takes;
}

int main(int argc, char **argv) {
    const TTest *const tests[] = {instead_of_memory_objects, of_parts, of_other_buffers_and_of_none,
                                  of_the_programs_memory, not_beside_an_image};
    cl_platform_id pocl;
    setenv("TUTTI_DEVICES", "portable", 1);
    cl_icd_dispatch *table = pocl_table(&pocl);
    if (table)
        real = *table;
    if (!table || !takes_addresses(pocl)) {
        puts("1..0 # SKIP no PoCL whose devices share virtual memory");
        return 0;
    }
    table->clSetKernelArgSVMPointer = set_address;
    table->clSetKernelArg = set_other;
    return test_main(argc, argv, tests, COUNT(tests));
}
