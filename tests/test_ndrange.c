/* SPDX-License-Identifier: MIT */
#include "support.h"

#include "task_counts.h"

#define NO_NULL_KERNEL "PoCL 3.1 crashes on a NULL kernel"

static const char source[] =
    "kernel void where(global int *out, int w, int h)\n"
    "{ size_t x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);\n"
    "  size_t ox = get_global_offset(0), oy = get_global_offset(1), oz = get_global_offset(2);\n"
    "  global int *o = out + 8 * (((z - oz) * h + (y - oy)) * w + (x - ox));\n"
    "  o[0] += 1; o[1] = x; o[2] = y; o[3] = z;\n"
    "  o[4] = get_work_dim();\n"
    "  o[5] = get_group_id(0) * get_local_size(0) + get_local_id(0) + ox == x\n"
    "    && get_group_id(1) * get_local_size(1) + get_local_id(1) + oy == y\n"
    "    && get_group_id(2) * get_local_size(2) + get_local_id(2) + oz == z;\n"
    "  o[6] = get_global_size(0) * 10000 + get_global_size(1) * 100 + get_global_size(2);\n"
    "  o[7] = get_local_size(0) * 10000 + get_local_size(1) * 100 + get_local_size(2); }\n"
    "kernel __attribute__((reqd_work_group_size(4, 2, 1))) void fixed(global int *out)\n"
    "{ out[get_global_id(1) * get_global_size(0) + get_global_id(0)] += 1; }\n"
    "kernel void count(global int *out) { atomic_inc(out); }\n";

static cl_program program;
static cl_kernel where;

static void begin(void) {
    program = make_program(source);
    where = make_kernel(program, "where");
}

static void end(void) {
    ck_ok(clReleaseKernel(where));
    ck_ok(clReleaseProgram(program));
}

/* Launches, and checks that each work-item ran once with the right idea of where it is. */
static void check_range(cl_uint dimensions, const size_t *offset, const size_t *global,
                        const size_t *local) {
    size_t full[3] = {1, 1, 1}, from[3] = {0, 0, 0}, items;
    cl_int *seen, width, height;
    cl_mem out;

    for (cl_uint i = 0; i < dimensions; i++) {
        full[i] = global[i];
        from[i] = offset ? offset[i] : 0;
    }
    items = full[0] * full[1] * full[2];
    seen = calloc(items * 8, sizeof(cl_int));
    out = make_buffer(CL_MEM_COPY_HOST_PTR, items * 8 * sizeof(cl_int), seen);
    width = (cl_int)full[0];
    height = (cl_int)full[1];
    ck_ok(clSetKernelArg(where, 0, sizeof(out), &out));
    ck_ok(clSetKernelArg(where, 1, sizeof(width), &width));
    ck_ok(clSetKernelArg(where, 2, sizeof(height), &height));
    ck_ok(clEnqueueNDRangeKernel(queue, where, dimensions, offset, global, local, 0, NULL, NULL));
    read_ints(out, seen, items * 8);
    for (size_t i = 0; i < items; i++) {
        const cl_int *item = seen + 8 * i;

        ck_assert_msg(item[0] == 1, "work-item %zu ran %d times", i, item[0]);
        ck_assert_int_eq(item[1], (cl_int)(from[0] + i % full[0]));
        ck_assert_int_eq(item[2], (cl_int)(from[1] + i / full[0] % full[1]));
        ck_assert_int_eq(item[3], (cl_int)(from[2] + i / full[0] / full[1]));
        ck_assert_int_eq(item[4], (cl_int)dimensions);
        ck_assert_msg(item[5] == 1, "work-item %zu: groups and local ids disagree", i);
        ck_assert_int_eq(item[6], (cl_int)(full[0] * 10000 + full[1] * 100 + full[2]));
        if (local)
            ck_assert_int_eq(item[7],
                             (cl_int)(local[0] * 10000 + (dimensions > 1 ? local[1] : 1) * 100 +
                                      (dimensions > 2 ? local[2] : 1)));
    }
    ck_ok(clReleaseMemObject(out));
    free(seen);
}

START_TEST(one_dimension) {
    const size_t sizes[] = {1, 2, 7, 64, 97, 4096};
    const size_t offset = 1000, local = 8, global = 64;

    begin();
    for (size_t i = 0; i < COUNT(sizes); i++) {
        check_range(1, NULL, &sizes[i], NULL);
        check_range(1, &offset, &sizes[i], NULL);
    }
    check_range(1, NULL, &global, &local);
    check_range(1, &offset, &global, &local);
    end();
}
END_TEST

START_TEST(two_dimensions) {
    const size_t sizes[][2] = {{1, 1}, {5, 3}, {16, 16}, {1, 33}, {31, 1}};
    const size_t offset[2] = {7, 11}, global[2] = {12, 8}, local[2] = {4, 2};

    begin();
    for (size_t i = 0; i < COUNT(sizes); i++) {
        check_range(2, NULL, sizes[i], NULL);
        check_range(2, offset, sizes[i], NULL);
    }
    check_range(2, NULL, global, local);
    check_range(2, offset, global, local);
    end();
}
END_TEST

START_TEST(three_dimensions) {
    const size_t sizes[][3] = {{1, 1, 1}, {5, 3, 2}, {8, 8, 8}, {1, 1, 9}, {2, 7, 1}};
    const size_t offset[3] = {7, 11, 3}, global[3] = {4, 6, 8}, local[3] = {2, 3, 1};

    begin();
    for (size_t i = 0; i < COUNT(sizes); i++) {
        check_range(3, NULL, sizes[i], NULL);
        check_range(3, offset, sizes[i], NULL);
    }
    check_range(3, NULL, global, local);
    check_range(3, offset, global, local);
    end();
}
END_TEST

START_TEST(required_group) {
    const size_t global[2] = {8, 4}, right[2] = {4, 2}, wrong[2] = {2, 4}, small[2] = {1, 1};
    cl_int seen[32] = {0};
    cl_mem out = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(seen), seen);
    cl_kernel fixed;

    begin();
    fixed = make_kernel(program, "fixed");
    ck_ok(clSetKernelArg(fixed, 0, sizeof(out), &out));
    ck_ok(clEnqueueNDRangeKernel(queue, fixed, 2, NULL, global, right, 0, NULL, NULL));
    ck_assert_cl(clEnqueueNDRangeKernel(queue, fixed, 2, NULL, global, wrong, 0, NULL, NULL),
                 CL_INVALID_WORK_GROUP_SIZE);
    ck_assert_cl(clEnqueueNDRangeKernel(queue, fixed, 2, NULL, global, small, 0, NULL, NULL),
                 CL_INVALID_WORK_GROUP_SIZE);
    read_ints(out, seen, 32);
    for (int i = 0; i < 32; i++)
        ck_assert_int_eq(seen[i], 1);
    ck_ok(clReleaseKernel(fixed));
    ck_ok(clReleaseMemObject(out));
    end();
}
END_TEST

START_TEST(wrong) {
    cl_int zero = 0;
    cl_mem out = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(zero), &zero);
    size_t largest = get_info(size_t, clGetDeviceInfo, device, CL_DEVICE_MAX_WORK_GROUP_SIZE);
    const size_t global[4] = {64, 64, 64, 1}, no_divisor[3] = {7, 1, 1}, nought[3] = {0, 1, 1};
    const size_t huge = largest * 4, far[3] = {SIZE_MAX - 32, 0, 0};
    cl_event foreign_event = ck_made(clCreateUserEvent(other_context(), &error));
    cl_kernel count;

    begin();
    count = make_kernel(program, "count");
    ck_ok(clSetKernelArg(count, 0, sizeof(out), &out));
#define REFUSED(code, queue_, kernel_, dimensions, offset, global_, local, number, list)           \
    ck_assert_cl(clEnqueueNDRangeKernel(queue_, kernel_, dimensions, offset, global_, local,       \
                                        number, list, NULL),                                       \
                 code)
    REFUSED(CL_INVALID_COMMAND_QUEUE, NULL, count, 1, NULL, global, NULL, 0, NULL);
    if (!excused(POCL, NO_NULL_KERNEL))
        REFUSED(CL_INVALID_KERNEL, queue, NULL, 1, NULL, global, NULL, 0, NULL);
    REFUSED(CL_INVALID_CONTEXT, other_queue(), count, 1, NULL, global, NULL, 0, NULL);
    if (!excused(POCL, "PoCL 3.1 lets a kernel wait for an event of another context"))
        REFUSED(CL_INVALID_CONTEXT, queue, count, 1, NULL, global, NULL, 1, &foreign_event);
    REFUSED(CL_INVALID_WORK_DIMENSION, queue, count, 0, NULL, global, NULL, 0, NULL);
    REFUSED(CL_INVALID_WORK_DIMENSION, queue, count, 4, NULL, global, NULL, 0, NULL);
    REFUSED(CL_INVALID_WORK_GROUP_SIZE, queue, count, 1, NULL, global, no_divisor, 0, NULL);
    if (!excused(POCL, "PoCL 3.1 takes a local size of 0 for none"))
        REFUSED(CL_INVALID_WORK_GROUP_SIZE, queue, count, 1, NULL, global, nought, 0, NULL);
    if (!excused(POCL, "PoCL 3.1 crashes when the wait list of a kernel is missing")) {
        REFUSED(CL_INVALID_EVENT_WAIT_LIST, queue, count, 1, NULL, global, NULL, 1, NULL);
        REFUSED(CL_INVALID_EVENT_WAIT_LIST, queue, count, 1, NULL, global, NULL, 0, &foreign_event);
    }
    if (!excused(POCL, "PoCL 3.1 lets an offset wrap around"))
        REFUSED(CL_INVALID_GLOBAL_OFFSET, queue, count, 1, far, global, NULL, 0, NULL);
#undef REFUSED
    {
        cl_int code = clEnqueueNDRangeKernel(queue, count, 1, NULL, &huge, &huge, 0, NULL, NULL);

        ck_assert_msg(code == CL_INVALID_WORK_GROUP_SIZE || code == CL_INVALID_WORK_ITEM_SIZE,
                      "too large a work-group gave %s", cl_error_name(code));
    }
    read_ints(out, &zero, 1);
    ck_assert_msg(zero == 0, "%d work-items of refused launches ran", zero);
    ck_ok(clReleaseEvent(foreign_event));
    ck_ok(clReleaseKernel(count));
    ck_ok(clReleaseMemObject(out));
    end();
}
END_TEST

START_TEST(nothing_to_do) {
    cl_int zero = 0;
    cl_mem out = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(zero), &zero);
    const size_t none[3] = {0, 1, 1};
    cl_kernel count;

    begin();
    count = make_kernel(program, "count");
    ck_ok(clSetKernelArg(count, 0, sizeof(out), &out));
    /* OpenCL 1.2 refuses an empty range, 2.1 accepts it; no work-item runs on either. */
    cl_int wanted = test_device_version() < 210 ? CL_INVALID_GLOBAL_WORK_SIZE : CL_SUCCESS;
    if (!excused(POCL, "refuses some empty ranges")) {
        ck_assert_cl(clEnqueueNDRangeKernel(queue, count, 2, NULL, none, NULL, 0, NULL, NULL),
                     wanted);
        ck_assert_cl(clEnqueueNDRangeKernel(queue, count, 1, NULL, NULL, NULL, 0, NULL, NULL),
                     wanted);
    }
    read_ints(out, &zero, 1);
    ck_assert_int_eq(zero, 0);
    ck_ok(clReleaseKernel(count));
    ck_ok(clReleaseMemObject(out));
    end();
}
END_TEST

START_TEST(task) {
    cl_int zero = 0;
    cl_mem out = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(zero), &zero);
    cl_kernel count;
    cl_event event;

    begin();
    count = make_kernel(program, "count");
    ck_ok(clSetKernelArg(count, 0, sizeof(out), &out));
    ck_ok(clEnqueueTask(queue, count, 0, NULL, &event));
    ck_ok(clEnqueueTask(queue, count, 1, &event, NULL));
    read_ints(out, &zero, 1);
    ck_assert_int_eq(zero, 2);
    if (!excused(POCL, "PoCL 3.1 makes a task an NDRange"))
        ck_assert(get_info(cl_command_type, clGetEventInfo, event, CL_EVENT_COMMAND_TYPE) ==
                  CL_COMMAND_TASK);
    ck_assert_cl(clEnqueueTask(NULL, count, 0, NULL, NULL), CL_INVALID_COMMAND_QUEUE);
    if (!excused(POCL, NO_NULL_KERNEL))
        ck_assert_cl(clEnqueueTask(queue, NULL, 0, NULL, NULL), CL_INVALID_KERNEL);
    ck_ok(clReleaseEvent(event));
    ck_ok(clReleaseKernel(count));
    ck_ok(clReleaseMemObject(out));
    end();
}
END_TEST

struct native {
    int *out;
    const cl_int *data;
    cl_int factor;
};

static void CL_CALLBACK sum_native(void *data) {
    const struct native *native = data;

    *native->out = 0;
    for (int i = 0; i < 16; i++)
        *native->out += native->data[i] * native->factor;
}

static void CL_CALLBACK scale_native(void *data) {
    cl_int *values = *(cl_int **)data;

    for (int i = 0; i < 16; i++)
        values[i] *= 2;
}

static bool has_native(void) {
    return get_info(cl_device_exec_capabilities, clGetDeviceInfo, device,
                    CL_DEVICE_EXECUTION_CAPABILITIES) &
           CL_EXEC_NATIVE_KERNEL;
}

START_TEST(native_kernel) {
    cl_int values[16];
    int sum = -1;
    struct native native = {&sum, NULL, 3};
    void *scaled = NULL;
    const void *place, *scaled_place = &scaled;
    cl_event event;
    cl_mem buffer;

    if (!has_native()) {
        ck_assert_cl(clEnqueueNativeKernel(queue, sum_native, &native, sizeof(native), 0, NULL,
                                           NULL, 0, NULL, NULL),
                     CL_INVALID_OPERATION);
        return;
    }
    for (int i = 0; i < 16; i++)
        values[i] = i;
    buffer = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(values), values);
    place = &native.data;
    ck_ok(clEnqueueNativeKernel(queue, scale_native, &scaled, sizeof(scaled), 1, &buffer,
                                &scaled_place, 0, NULL, NULL));
    ck_ok(clEnqueueNativeKernel(queue, sum_native, &native, sizeof(native), 1, &buffer, &place, 0,
                                NULL, &event));
    /* The block of arguments was copied. */
    native.factor = 1000;
    ck_ok(clWaitForEvents(1, &event));
    ck_assert(get_info(cl_command_type, clGetEventInfo, event, CL_EVENT_COMMAND_TYPE) ==
              CL_COMMAND_NATIVE_KERNEL);
    ck_assert_int_eq(sum, 120 * 2 * 3);
    ck_assert_ptr_null(native.data);
    read_ints(buffer, values, 16);
    for (int i = 0; i < 16; i++)
        ck_assert_int_eq(values[i], 2 * i);
    ck_ok(clReleaseEvent(event));
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

static int native_calls;

static void CL_CALLBACK count_native(void *data) {
    if (!data)
        native_calls++;
}

START_TEST(native_kernel_without_arguments) {
    skip_if(!has_native(), "this device has no native kernels");
    native_calls = 0;
    for (int i = 0; i < 10; i++)
        ck_ok(clEnqueueNativeKernel(queue, count_native, NULL, 0, 0, NULL, NULL, 0, NULL, NULL));
    ck_ok(clFinish(queue));
    ck_assert_int_eq(native_calls, 10);
}
END_TEST

START_TEST(native_kernel_wrong) {
    struct native native = {0};
    cl_mem buffer = make_buffer(0, 64, NULL), none = NULL;
    const void *place = &native.data;

    skip_if(!has_native(), "this device has no native kernels");
#define REFUSED(code, queue_, function, block, size, count, list, places)                          \
    ck_assert_cl(                                                                                  \
        clEnqueueNativeKernel(queue_, function, block, size, count, list, places, 0, NULL, NULL),  \
        code)
    REFUSED(CL_INVALID_COMMAND_QUEUE, NULL, sum_native, &native, sizeof(native), 0, NULL, NULL);
    REFUSED(CL_INVALID_VALUE, queue, NULL, &native, sizeof(native), 0, NULL, NULL);
    REFUSED(CL_INVALID_VALUE, queue, sum_native, NULL, sizeof(native), 0, NULL, NULL);
    REFUSED(CL_INVALID_VALUE, queue, sum_native, NULL, 0, 1, &buffer, &place);
    REFUSED(CL_INVALID_VALUE, queue, sum_native, &native, 0, 0, NULL, NULL);
    REFUSED(CL_INVALID_VALUE, queue, sum_native, &native, sizeof(native), 1, NULL, &place);
    REFUSED(CL_INVALID_VALUE, queue, sum_native, &native, sizeof(native), 1, &buffer, NULL);
    REFUSED(CL_INVALID_VALUE, queue, sum_native, &native, sizeof(native), 0, &buffer, NULL);
    REFUSED(CL_INVALID_VALUE, queue, sum_native, &native, sizeof(native), 0, NULL, &place);
    REFUSED(CL_INVALID_MEM_OBJECT, queue, sum_native, &native, sizeof(native), 1, &none, &place);
#undef REFUSED
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(large_range) {
    cl_int zero = 0;
    cl_mem out = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(zero), &zero);
    const size_t global = test_size("TUTTI_TEST_LARGE_RANGE", 1 << 20);
    cl_kernel count;

    begin();
    count = make_kernel(program, "count");
    ck_ok(clSetKernelArg(count, 0, sizeof(out), &out));
    launch(count, global);
    read_ints(out, &zero, 1);
    ck_assert_int_eq(zero, (cl_int)global);
    ck_ok(clReleaseKernel(count));
    ck_ok(clReleaseMemObject(out));
    end();
}
END_TEST

/* From version 4 on its CPU devices have these names; behind Tutti's they may be any of several. */
static bool is_newer_pocl(void) {
    task_counts_function function = task_counts();
    char name[256] = "", names[REAL][64];
    cl_ulong counts[REAL];
    cl_uint number = 0;

    ck_ok(clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof(name), name, NULL));
    if (function)
        ck_ok(function(device, REAL, counts, names, &number));
    bool newer = strstr(name, "cpu-") != NULL;
    for (cl_uint i = 0; i < number && i < REAL; i++)
        newer = newer || strstr(names[i], "cpu-") != NULL;
    return newer;
}

/* Its result is not defined, but nothing else happens (OpenCL C, 6.3.a). */
START_TEST(division_by_zero) {
    enum { ITEMS = 64 };

    skip_if(is_newer_pocl(), "PoCL 5 and 6 let it end the process");
    cl_program division = make_program("kernel void divide(global int *data) {"
                                       "  int i = get_global_id(0); data[i] = 7 / data[i]; }");
    cl_kernel divide = make_kernel(division, "divide");
    cl_int data[ITEMS];
    cl_mem buffers[4];

    for (int i = 0; i < ITEMS; i++)
        data[i] = i % 2;
    for (size_t b = 0; b < COUNT(buffers); b++) {
        buffers[b] = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(data), data);
        ck_ok(clSetKernelArg(divide, 0, sizeof(buffers[b]), &buffers[b]));
        launch(divide, ITEMS);
    }
    for (size_t b = 0; b < COUNT(buffers); b++) {
        read_ints(buffers[b], data, ITEMS);
        for (int i = 1; i < ITEMS; i += 2)
            ck_assert_int_eq(data[i], 7);
        ck_ok(clReleaseMemObject(buffers[b]));
    }
    ck_ok(clReleaseKernel(divide));
    ck_ok(clReleaseProgram(division));
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        one_dimension,
        two_dimensions,
        three_dimensions,
        required_group,
        wrong,
        nothing_to_do,
        task,
        native_kernel,
        native_kernel_without_arguments,
        native_kernel_wrong,
        large_range,
        division_by_zero,
    };

    return test_main(argc, argv, tests, COUNT(tests));
}
