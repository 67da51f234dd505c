/* SPDX-License-Identifier: MIT */
#include "support.h"

static const char kernels_source[] =
    "typedef struct { char c; int i; float f[3]; long l; } thing;\n"
    "kernel void by_value(global int *out, thing t, char c, short s, int4 v, long l, float f)\n"
    "{ out[0] = t.c; out[1] = t.i; out[2] = (int)t.f[2]; out[3] = (int)t.l; out[4] = c;\n"
    "  out[5] = s; out[6] = v.x + v.w; out[7] = (int)l; out[8] = (int)f; }\n"
    "kernel void is_null(global int *out, global int *maybe) { out[0] = maybe == 0; }\n"
    "kernel void twice(global int *a, global int *b)\n"
    "{ size_t i = get_global_id(0); a[i] += 1; b[i] += 10; }\n"
    "kernel void reverse(global int *data, local int *scratch, local int *more)\n"
    "{ size_t i = get_local_id(0), n = get_local_size(0);\n"
    "  scratch[i] = data[get_global_id(0)]; more[i] = 1000;\n"
    "  barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  data[get_global_id(0)] = scratch[n - 1 - i] + more[n - 1 - i]; }\n"
    "kernel void table(constant int *table, global int *out)\n"
    "{ out[get_global_id(0)] = table[get_global_id(0) % 4]; }\n"
    "kernel void sum20(global int *out,\n"
    "  global const int *a1, global const int *a2, global const int *a3, global const int *a4,\n"
    "  global const int *a5, global const int *a6, global const int *a7, global const int *a8,\n"
    "  global const int *a9, global const int *b1, global const int *b2, global const int *b3,\n"
    "  global const int *b4, global const int *b5, global const int *b6, global const int *b7,\n"
    "  global const int *b8, global const int *b9, global const int *c1, global int *last)\n"
    "{ size_t i = get_global_id(0);\n"
    "  out[i] = a1[i] + a2[i] + a3[i] + a4[i] + a5[i] + a6[i] + a7[i] + a8[i] + a9[i] + b1[i]\n"
    "    + b2[i] + b3[i] + b4[i] + b5[i] + b6[i] + b7[i] + b8[i] + b9[i] + c1[i];\n"
    "  last[i] = -out[i]; }\n"
    "kernel __attribute__((reqd_work_group_size(4, 2, 1))) void fixed(global int *out)\n"
    "{ out[get_global_id(0)] = 1; }\n"
    "kernel void nothing(void) {}\n";

struct thing {
    cl_char c;
    cl_int i;
    cl_float f[3];
    cl_long l;
};

static cl_program program;

static void begin(void) { program = make_program(kernels_source); }

static void end(void) {
    ck_ok(clReleaseProgram(program));
    program = NULL;
}

static void set_mem(cl_kernel kernel, cl_uint index, cl_mem buffer) {
    ck_ok(clSetKernelArg(kernel, index, sizeof(buffer), &buffer));
}

START_TEST(create_wrong) {
    const char *text = kernels_source;
    cl_program unbuilt = ck_made(clCreateProgramWithSource(context, 1, &text, NULL, &error));

    begin();
    ck_refused(clCreateKernel(NULL, "nothing", &error), CL_INVALID_PROGRAM);
    ck_refused(clCreateKernel(unbuilt, "nothing", &error), CL_INVALID_PROGRAM_EXECUTABLE);
    ck_refused(clCreateKernel(program, NULL, &error), CL_INVALID_VALUE);
    ck_refused(clCreateKernel(program, "not_there", &error), CL_INVALID_KERNEL_NAME);
    ck_refused(clCreateKernel(program, "", &error), CL_INVALID_KERNEL_NAME);
    ck_refused(clCreateKernel(program, "thing", &error), CL_INVALID_KERNEL_NAME);
    ck_ok(clReleaseProgram(unbuilt));
    end();
}
END_TEST

START_TEST(create_all) {
    const char *text = kernels_source;
    cl_program unbuilt = ck_made(clCreateProgramWithSource(context, 1, &text, NULL, &error));
    cl_kernel some[16];
    cl_uint count = 0;
    bool found = false;

    begin();
    ck_ok(clCreateKernelsInProgram(program, 0, NULL, &count));
    ck_assert_uint_eq(count, 8);
    ck_ok(clCreateKernelsInProgram(program, COUNT(some), some, &count));
    ck_assert_uint_eq(count, 8);
    for (cl_uint i = 0; i < count; i++) {
        char name[64];

        ck_ok(clGetKernelInfo(some[i], CL_KERNEL_FUNCTION_NAME, sizeof(name), name, NULL));
        found = found || !strcmp(name, "sum20");
        ck_ok(clReleaseKernel(some[i]));
    }
    ck_assert(found);
    ck_ok(clCreateKernelsInProgram(program, 8, some, NULL));
    for (cl_uint i = 0; i < 8; i++)
        ck_ok(clReleaseKernel(some[i]));
    ck_assert_cl(clCreateKernelsInProgram(program, 7, some, &count), CL_INVALID_VALUE);
    ck_assert_cl(clCreateKernelsInProgram(NULL, 7, some, &count), CL_INVALID_PROGRAM);
    ck_assert_cl(clCreateKernelsInProgram(unbuilt, 7, some, &count), CL_INVALID_PROGRAM_EXECUTABLE);
    ck_ok(clReleaseProgram(unbuilt));
    end();
}
END_TEST

START_TEST(info) {
    const cl_kernel_info names[] = {CL_KERNEL_FUNCTION_NAME,   CL_KERNEL_NUM_ARGS,
                                    CL_KERNEL_REFERENCE_COUNT, CL_KERNEL_CONTEXT,
                                    CL_KERNEL_PROGRAM,         CL_KERNEL_ATTRIBUTES};
    cl_kernel kernel;
    char text[128];
    size_t size;

    begin();
    kernel = make_kernel(program, "sum20");
    ck_ok(clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof(text), text, &size));
    ck_assert_str_eq(text, "sum20");
    ck_assert_uint_eq(size, 6);
    ck_assert(get_info(cl_uint, clGetKernelInfo, kernel, CL_KERNEL_NUM_ARGS) == 21);
    ck_assert(get_info(cl_uint, clGetKernelInfo, kernel, CL_KERNEL_REFERENCE_COUNT) == 1);
    ck_assert(get_info(cl_context, clGetKernelInfo, kernel, CL_KERNEL_CONTEXT) == context);
    ck_assert(get_info(cl_program, clGetKernelInfo, kernel, CL_KERNEL_PROGRAM) == program);
    ck_ok(clGetKernelInfo(kernel, CL_KERNEL_ATTRIBUTES, sizeof(text), text, &size));
    ck_assert_uint_eq(size, strlen(text) + 1);
    for (size_t i = 0; i < COUNT(names); i++)
        check_info_rules(clGetKernelInfo, kernel, names[i]);
    ck_ok(clReleaseKernel(kernel));
    kernel = make_kernel(program, "nothing");
    ck_assert(get_info(cl_uint, clGetKernelInfo, kernel, CL_KERNEL_NUM_ARGS) == 0);
    ck_ok(clReleaseKernel(kernel));
    end();
}
END_TEST

START_TEST(set_arg_wrong) {
    cl_mem buffer = make_buffer(0, 64, NULL);
    cl_kernel by_value, reverse;
    struct thing thing = {0};
    cl_int value = 1;

    begin();
    by_value = make_kernel(program, "by_value");
    reverse = make_kernel(program, "reverse");
    ck_assert_cl(clSetKernelArg(NULL, 0, sizeof(buffer), &buffer), CL_INVALID_KERNEL);
    ck_assert_cl(clSetKernelArg(by_value, 7, sizeof(value), &value), CL_INVALID_ARG_INDEX);
    ck_assert_cl(clSetKernelArg(by_value, UINT32_MAX, sizeof(value), &value), CL_INVALID_ARG_INDEX);
    ck_assert_cl(clSetKernelArg(by_value, 0, sizeof(buffer) / 2, &buffer), CL_INVALID_ARG_SIZE);
    ck_assert_cl(clSetKernelArg(by_value, 0, 0, &buffer), CL_INVALID_ARG_SIZE);
    ck_assert_cl(clSetKernelArg(by_value, 1, sizeof(thing), NULL), CL_INVALID_ARG_VALUE);
    ck_assert_cl(clSetKernelArg(by_value, 2, 4, &value), CL_INVALID_ARG_SIZE);
    ck_assert_cl(clSetKernelArg(by_value, 2, 1, NULL), CL_INVALID_ARG_VALUE);
    ck_assert_cl(clSetKernelArg(by_value, 5, 4, &value), CL_INVALID_ARG_SIZE);
    ck_assert_cl(clSetKernelArg(reverse, 1, 0, NULL), CL_INVALID_ARG_SIZE);
    ck_assert_cl(clSetKernelArg(reverse, 1, 64, &value), CL_INVALID_ARG_VALUE);
    ck_ok(clReleaseKernel(by_value));
    ck_ok(clReleaseKernel(reverse));
    ck_ok(clReleaseMemObject(buffer));
    end();
}
END_TEST

START_TEST(set_arg_to_another_kind_of_object) {
    cl_kernel twice;

    skip_on(POCL, "PoCL 3.1 takes any object for a memory object");
    skip_on(OCLGRIND, "Oclgrind takes any object for a memory object");
    begin();
    twice = make_kernel(program, "twice");
    ck_assert_cl(clSetKernelArg(twice, 0, sizeof(queue), &queue), CL_INVALID_MEM_OBJECT);
    ck_assert_cl(clSetKernelArg(twice, 0, sizeof(twice), &twice), CL_INVALID_MEM_OBJECT);
    ck_ok(clReleaseKernel(twice));
    end();
}
END_TEST

START_TEST(unset_arguments) {
    cl_mem buffer = make_buffer(0, 64, NULL);
    cl_kernel twice;
    const size_t one = 1;

    begin();
    twice = make_kernel(program, "twice");
    ck_assert_cl(clEnqueueNDRangeKernel(queue, twice, 1, NULL, &one, NULL, 0, NULL, NULL),
                 CL_INVALID_KERNEL_ARGS);
    set_mem(twice, 1, buffer);
    ck_assert_cl(clEnqueueNDRangeKernel(queue, twice, 1, NULL, &one, NULL, 0, NULL, NULL),
                 CL_INVALID_KERNEL_ARGS);
    ck_assert_cl(clEnqueueTask(queue, twice, 0, NULL, NULL), CL_INVALID_KERNEL_ARGS);
    /* A wrong value leaves the argument unset. */
    ck_assert_cl(clSetKernelArg(twice, 0, 3, &buffer), CL_INVALID_ARG_SIZE);
    ck_assert_cl(clEnqueueNDRangeKernel(queue, twice, 1, NULL, &one, NULL, 0, NULL, NULL),
                 CL_INVALID_KERNEL_ARGS);
    set_mem(twice, 0, buffer);
    launch(twice, 1);
    ck_ok(clFinish(queue));
    ck_ok(clReleaseKernel(twice));
    ck_ok(clReleaseMemObject(buffer));
    end();
}
END_TEST

START_TEST(arguments_by_value) {
    cl_mem buffer = make_buffer(0, 9 * sizeof(cl_int), NULL);
    const struct thing thing = {-3, 70000, {1, 2, 33}, 12345};
    const cl_char c = -8;
    const cl_short s = -3000;
    const cl_int4 v = {{1, 2, 3, 400}};
    const cl_long l = -77;
    const cl_float f = 19.5f;
    const cl_int expected[] = {-3, 70000, 33, 12345, -8, -3000, 401, -77, 19};
    cl_kernel kernel;
    cl_int seen[9];

    begin();
    kernel = make_kernel(program, "by_value");
    set_mem(kernel, 0, buffer);
    ck_ok(clSetKernelArg(kernel, 1, sizeof(thing), &thing));
    ck_ok(clSetKernelArg(kernel, 2, sizeof(c), &c));
    ck_ok(clSetKernelArg(kernel, 3, sizeof(s), &s));
    ck_ok(clSetKernelArg(kernel, 4, sizeof(v), &v));
    ck_ok(clSetKernelArg(kernel, 5, sizeof(l), &l));
    ck_ok(clSetKernelArg(kernel, 6, sizeof(f), &f));
    launch(kernel, 1);
    read_ints(buffer, seen, 9);
    for (int i = 0; i < 9; i++)
        ck_assert_msg(seen[i] == expected[i], "value %d is %d, expected %d", i, seen[i],
                      expected[i]);
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseMemObject(buffer));
    end();
}
END_TEST

START_TEST(null_buffer) {
    cl_mem out = make_buffer(0, 4, NULL), none = NULL;
    cl_kernel kernel;
    cl_int seen = -1;

    begin();
    kernel = make_kernel(program, "is_null");
    set_mem(kernel, 0, out);
    ck_ok(clSetKernelArg(kernel, 1, sizeof(cl_mem), NULL));
    launch(kernel, 1);
    read_ints(out, &seen, 1);
    ck_assert_int_eq(seen, 1);
    set_mem(kernel, 1, out);
    launch(kernel, 1);
    read_ints(out, &seen, 1);
    ck_assert_int_eq(seen, 0);
    ck_ok(clSetKernelArg(kernel, 1, sizeof(cl_mem), &none));
    launch(kernel, 1);
    read_ints(out, &seen, 1);
    ck_assert_int_eq(seen, 1);
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseMemObject(out));
    end();
}
END_TEST

START_TEST(same_buffer_twice) {
    cl_int zero[8] = {0};
    cl_mem buffer = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(zero), zero);
    cl_kernel kernel;

    begin();
    kernel = make_kernel(program, "twice");
    set_mem(kernel, 0, buffer);
    set_mem(kernel, 1, buffer);
    for (int i = 0; i < 10; i++)
        launch(kernel, 8);
    read_ints(buffer, zero, 8);
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(zero[i], 110);
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseMemObject(buffer));
    end();
}
END_TEST

START_TEST(twenty_one_buffers) {
    cl_mem buffers[21];
    cl_kernel kernel;
    cl_int values[4], wanted = 0;

    begin();
    kernel = make_kernel(program, "sum20");
    for (cl_int i = 0; i < 21; i++) {
        for (int j = 0; j < 4; j++)
            values[j] = 1 << i % 20;
        buffers[i] = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(values), values);
        set_mem(kernel, i, buffers[i]);
        if (i >= 1 && i <= 19)
            wanted += 1 << i;
    }
    launch(kernel, 4);
    read_ints(buffers[0], values, 4);
    for (int j = 0; j < 4; j++)
        ck_assert_int_eq(values[j], wanted);
    read_ints(buffers[20], values, 4);
    for (int j = 0; j < 4; j++)
        ck_assert_int_eq(values[j], -wanted);
    for (int i = 0; i < 21; i++)
        ck_ok(clReleaseMemObject(buffers[i]));
    ck_ok(clReleaseKernel(kernel));
    end();
}
END_TEST

START_TEST(local_memory) {
    cl_int values[64];
    cl_mem buffer;
    cl_kernel kernel;
    const size_t global = 64, local = 16;

    skip_if(get_info(size_t, clGetDeviceInfo, device, CL_DEVICE_MAX_WORK_GROUP_SIZE) < 16,
            "work-groups are smaller than 16 here");
    for (int i = 0; i < 64; i++)
        values[i] = i;
    buffer = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(values), values);
    begin();
    kernel = make_kernel(program, "reverse");
    set_mem(kernel, 0, buffer);
    ck_ok(clSetKernelArg(kernel, 1, local * sizeof(cl_int), NULL));
    ck_ok(clSetKernelArg(kernel, 2, local * sizeof(cl_int), NULL));
    ck_ok(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL));
    read_ints(buffer, values, 64);
    for (int i = 0; i < 64; i++)
        ck_assert_int_eq(values[i], i / 16 * 16 + 15 - i % 16 + 1000);
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseMemObject(buffer));
    end();
}
END_TEST

START_TEST(constant_memory) {
    const cl_int numbers[4] = {9, 8, 7, 6};
    cl_mem table = make_buffer(CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof(numbers),
                               (void *)(uintptr_t)numbers);
    cl_mem out = make_buffer(CL_MEM_WRITE_ONLY, 16 * sizeof(cl_int), NULL);
    cl_int seen[16];
    cl_kernel kernel;

    begin();
    kernel = make_kernel(program, "table");
    set_mem(kernel, 0, table);
    set_mem(kernel, 1, out);
    launch(kernel, 16);
    read_ints(out, seen, 16);
    for (int i = 0; i < 16; i++)
        ck_assert_int_eq(seen[i], numbers[i % 4]);
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseMemObject(table));
    ck_ok(clReleaseMemObject(out));
    end();
}
END_TEST

START_TEST(arguments_are_taken_at_enqueue) {
    cl_program common = make_program(common_source);
    cl_kernel set = make_kernel(common, "set");
    cl_mem buffers[50];
    cl_event gate = make_user_event();
    const size_t one = 1;
    cl_int seen;

    for (cl_int i = 0; i < 50; i++) {
        buffers[i] = make_buffer(0, 4, NULL);
        set_mem(set, 0, buffers[i]);
        ck_ok(clSetKernelArg(set, 1, sizeof(i), &i));
        ck_ok(clEnqueueNDRangeKernel(queue, set, 1, NULL, &one, NULL, 1, &gate, NULL));
    }
    seen = -5;
    ck_ok(clSetKernelArg(set, 1, sizeof(seen), &seen));
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    for (cl_int i = 0; i < 50; i++) {
        read_ints(buffers[i], &seen, 1);
        ck_assert_int_eq(seen, i);
        ck_ok(clReleaseMemObject(buffers[i]));
    }
    ck_ok(clReleaseEvent(gate));
    ck_ok(clReleaseKernel(set));
    ck_ok(clReleaseProgram(common));
}
END_TEST

START_TEST(two_kernels_of_one_function) {
    cl_program common = make_program(common_source);
    cl_kernel first = make_kernel(common, "set"), second = make_kernel(common, "set");
    cl_mem a = make_buffer(0, 4, NULL), b = make_buffer(0, 4, NULL);
    cl_int one = 1, two = 2, seen;

    set_mem(first, 0, a);
    set_mem(second, 0, b);
    ck_ok(clSetKernelArg(first, 1, sizeof(one), &one));
    ck_ok(clSetKernelArg(second, 1, sizeof(two), &two));
    launch(first, 1);
    launch(second, 1);
    read_ints(a, &seen, 1);
    ck_assert_int_eq(seen, 1);
    read_ints(b, &seen, 1);
    ck_assert_int_eq(seen, 2);
    ck_ok(clReleaseKernel(first));
    ck_ok(clReleaseKernel(second));
    ck_ok(clReleaseProgram(common));
    ck_ok(clReleaseMemObject(a));
    ck_ok(clReleaseMemObject(b));
}
END_TEST

START_TEST(work_group_info) {
    const cl_kernel_work_group_info names[] = {
        CL_KERNEL_WORK_GROUP_SIZE, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, CL_KERNEL_LOCAL_MEM_SIZE,
        CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, CL_KERNEL_PRIVATE_MEM_SIZE};
    const size_t sizes[] = {sizeof(size_t), 3 * sizeof(size_t), sizeof(cl_ulong), sizeof(size_t),
                            sizeof(cl_ulong)};
    cl_kernel kernel;
    size_t group[3], size;

    begin();
    kernel = make_kernel(program, "fixed");
    for (size_t i = 0; i < COUNT(names); i++) {
        for (int with_device = 0; with_device < 2; with_device++) {
            ck_ok(clGetKernelWorkGroupInfo(kernel, with_device ? device : NULL, names[i],
                                           sizeof(group), group, &size));
            ck_assert_uint_eq(size, sizes[i]);
            ck_assert_cl(clGetKernelWorkGroupInfo(kernel, with_device ? device : NULL, names[i],
                                                  sizes[i] - 1, group, NULL),
                         CL_INVALID_VALUE);
        }
    }
    ck_ok(clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof(group),
                                   group, NULL));
    ck_assert(group[0] == 4 && group[1] == 2 && group[2] == 1);
    ck_ok(clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_WORK_GROUP_SIZE, sizeof(size), &size,
                                   NULL));
    ck_assert_uint_ge(size, 8);
    ck_assert_cl(clGetKernelWorkGroupInfo(kernel, device, 0x7777, sizeof(group), group, NULL),
                 CL_INVALID_VALUE);
    ck_assert_cl(clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_GLOBAL_WORK_SIZE, sizeof(group),
                                          group, NULL),
                 CL_INVALID_VALUE);
    ck_assert_cl(clGetKernelWorkGroupInfo(NULL, device, names[0], sizeof(group), group, NULL),
                 CL_INVALID_KERNEL);
    ck_ok(clReleaseKernel(kernel));
    end();
}
END_TEST

START_TEST(argument_info) {
    const char *text = "kernel void f(global const float *restrict in, local int *scratch,\n"
                       "  constant char4 *table, global volatile uint *out, int count) {}\n";
    const struct {
        cl_kernel_arg_address_qualifier address;
        const char *type, *name;
        cl_kernel_arg_type_qualifier qualifier;
    } wanted[] = {{CL_KERNEL_ARG_ADDRESS_GLOBAL, "float*", "in",
                   CL_KERNEL_ARG_TYPE_CONST | CL_KERNEL_ARG_TYPE_RESTRICT},
                  {CL_KERNEL_ARG_ADDRESS_LOCAL, "int*", "scratch", 0},
                  {CL_KERNEL_ARG_ADDRESS_CONSTANT, "char4*", "table", CL_KERNEL_ARG_TYPE_CONST},
                  {CL_KERNEL_ARG_ADDRESS_GLOBAL, "uint*", "out", CL_KERNEL_ARG_TYPE_VOLATILE},
                  {CL_KERNEL_ARG_ADDRESS_PRIVATE, "int", "count", 0}};
    cl_program built = make_program_with(text, "-cl-kernel-arg-info");
    cl_kernel kernel = make_kernel(built, "f");
    union {
        cl_kernel_arg_address_qualifier address;
        cl_kernel_arg_access_qualifier access;
        cl_kernel_arg_type_qualifier type;
        char text[64];
    } seen;
    size_t size;

    for (cl_uint i = 0; i < COUNT(wanted); i++) {
        ck_ok(clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof(seen), &seen,
                                 &size));
        ck_assert_uint_eq(size, sizeof(seen.address));
        ck_assert_uint_eq(seen.address, wanted[i].address);
        ck_ok(clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_ACCESS_QUALIFIER, sizeof(seen), &seen,
                                 &size));
        ck_assert_uint_eq(size, sizeof(seen.access));
        ck_assert_uint_eq(seen.access, CL_KERNEL_ARG_ACCESS_NONE);
        ck_ok(clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_TYPE_NAME, sizeof(seen), &seen, &size));
        ck_assert_str_eq(seen.text, wanted[i].type);
        ck_assert_uint_eq(size, strlen(wanted[i].type) + 1);
        ck_ok(clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_NAME, sizeof(seen), &seen, &size));
        ck_assert_str_eq(seen.text, wanted[i].name);
        ck_assert_uint_eq(size, strlen(wanted[i].name) + 1);
        ck_ok(clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_TYPE_QUALIFIER, sizeof(seen), &seen,
                                 &size));
        ck_assert_uint_eq(size, sizeof(seen.type));
        ck_assert_msg(seen.type == wanted[i].qualifier, "argument %u has qualifiers %llu", i,
                      (unsigned long long)seen.type);
    }
    ck_assert_cl(clGetKernelArgInfo(kernel, 5, CL_KERNEL_ARG_NAME, sizeof(seen), &seen, NULL),
                 CL_INVALID_ARG_INDEX);
    ck_assert_cl(clGetKernelArgInfo(kernel, 0, 0x7777, sizeof(seen), &seen, NULL),
                 CL_INVALID_VALUE);
    ck_assert_cl(clGetKernelArgInfo(kernel, 0, CL_KERNEL_ARG_NAME, 2, &seen, NULL),
                 CL_INVALID_VALUE);
    ck_assert_cl(clGetKernelArgInfo(NULL, 0, CL_KERNEL_ARG_NAME, sizeof(seen), &seen, NULL),
                 CL_INVALID_KERNEL);
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(built));
    built = make_program("kernel void untold(int a) {}");
    kernel = make_kernel(built, "untold");
    if (!excused(OCLGRIND, "Oclgrind 21.10 always tells") && !excused(POCL, "PoCL 3.1 may tell"))
        ck_assert_cl(clGetKernelArgInfo(kernel, 0, CL_KERNEL_ARG_NAME, sizeof(seen), &seen, NULL),
                     CL_KERNEL_ARG_INFO_NOT_AVAILABLE);
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(built));
}
END_TEST

START_TEST(released_while_it_runs) {
    cl_program common = make_program(common_source);
    cl_kernel set = make_kernel(common, "set");
    cl_mem buffer = make_buffer(0, 4, NULL);
    cl_event gate = make_user_event();
    const size_t one = 1;
    cl_int value = 41, seen = 0;

    set_mem(set, 0, buffer);
    ck_ok(clSetKernelArg(set, 1, sizeof(value), &value));
    ck_ok(clEnqueueNDRangeKernel(queue, set, 1, NULL, &one, NULL, 1, &gate, NULL));
    ck_ok(clEnqueueReadBuffer(queue, buffer, CL_FALSE, 0, sizeof(seen), &seen, 0, NULL, NULL));
    ck_ok(clReleaseKernel(set));
    ck_ok(clReleaseProgram(common));
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    ck_ok(clReleaseEvent(gate));
    ck_ok(clFinish(queue));
    ck_assert_int_eq(seen, 41);
}
END_TEST

START_TEST(a_buffer_argument_outlives_nothing) {
    cl_program common = make_program(common_source);
    cl_kernel set = make_kernel(common, "set");
    cl_int value = 1;

    /* clSetKernelArg doesn't retain: a buffer replaced and released is gone, the kernel works. */
    for (int i = 0; i < 20; i++) {
        cl_mem buffer = make_buffer(0, 64, NULL);

        set_mem(set, 0, buffer);
        ck_ok(clSetKernelArg(set, 1, sizeof(value), &value));
        launch(set, 16);
        ck_ok(clReleaseMemObject(buffer));
    }
    ck_ok(clFinish(queue));
    ck_ok(clReleaseKernel(set));
    ck_ok(clReleaseProgram(common));
}
END_TEST

/* Another buffer may have the handle of one that is gone, and arguments may stay as they were. */
START_TEST(buffers_that_follow_one_another) {
    cl_program common = make_program(common_source);
    cl_kernel add = make_kernel(common, "add");
    enum { N = 64, KEPT = 3 };
    cl_int zeros[N] = {0}, seen[N];
    cl_mem kept[KEPT];

    for (int i = 0; i < KEPT; i++)
        kept[i] = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(zeros), zeros);
    for (cl_int round = 0; round < 60; round++) {
        cl_mem passing = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(zeros), zeros);
        cl_int value = round / 4 + 1;

        set_mem(add, 0, passing);
        if (round % 4 == 0)
            ck_ok(clSetKernelArg(add, 1, sizeof(value), &value));
        launch(add, N);
        read_ints(passing, seen, N);
        for (int i = 0; i < N; i++)
            ck_assert_int_eq(seen[i], value);
        ck_ok(clReleaseMemObject(passing));
        set_mem(add, 0, kept[round % KEPT]);
        launch(add, N);
        launch(add, N);
    }
    for (int k = 0; k < KEPT; k++) {
        cl_int sum = 0;

        for (cl_int round = k; round < 60; round += KEPT)
            sum += 2 * (round / 4 + 1);
        read_ints(kept[k], seen, N);
        for (int i = 0; i < N; i++)
            ck_assert_int_eq(seen[i], sum);
        ck_ok(clReleaseMemObject(kept[k]));
    }
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(common));
}
END_TEST

/* Storage is aligned for any type, wherever it is (5.2.1), and compilers count on that. */
START_TEST(wide_vectors) {
    static const char source[] =
        "kernel void wide(global long16 *out, long n) { out[get_global_id(0)] = (long16)(n); }";
    enum { BUFFERS = 6, VECTORS = 2048, WORDS = 16 * VECTORS };
    static cl_long seen[WORDS];
    cl_kernel wide;
    cl_mem buffer[BUFFERS];

    program = make_program(source);
    wide = make_kernel(program, "wide");
    for (int b = 0; b < BUFFERS; b++) {
        cl_long value = b;

        buffer[b] = make_buffer(0, sizeof(seen), NULL);
        ck_ok(clSetKernelArg(wide, 0, sizeof(cl_mem), &buffer[b]));
        ck_ok(clSetKernelArg(wide, 1, sizeof(value), &value));
        launch(wide, VECTORS);
    }
    for (int b = 0; b < BUFFERS; b++) {
        ck_ok(clEnqueueReadBuffer(queue, buffer[b], CL_TRUE, 0, sizeof(seen), seen, 0, NULL, NULL));
        for (int i = 0; i < WORDS; i++)
            ck_assert_int_eq(seen[i], b);
        ck_ok(clReleaseMemObject(buffer[b]));
    }
    ck_ok(clReleaseKernel(wide));
    ck_ok(clReleaseProgram(program));
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        create_wrong,
        create_all,
        info,
        set_arg_wrong,
        set_arg_to_another_kind_of_object,
        unset_arguments,
        arguments_by_value,
        null_buffer,
        same_buffer_twice,
        twenty_one_buffers,
        local_memory,
        constant_memory,
        arguments_are_taken_at_enqueue,
        two_kernels_of_one_function,
        work_group_info,
        argument_info,
        released_while_it_runs,
        a_buffer_argument_outlives_nothing,
        buffers_that_follow_one_another,
        wide_vectors,
    };

    return test_main(argc, argv, tests, COUNT(tests));
}
