/* SPDX-License-Identifier: MIT */
#include "support.h"

START_TEST(create_with_each_flag) {
    const cl_mem_flags access[] = {0, CL_MEM_READ_WRITE, CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY};
    const cl_mem_flags host[] = {0, CL_MEM_HOST_NO_ACCESS, CL_MEM_HOST_READ_ONLY,
                                 CL_MEM_HOST_WRITE_ONLY};
    const cl_mem_flags place[] = {0, CL_MEM_ALLOC_HOST_PTR, CL_MEM_COPY_HOST_PTR,
                                  CL_MEM_USE_HOST_PTR,
                                  CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR};
    static char memory[256] __attribute__((aligned(256)));

    for (size_t i = 0; i < COUNT(access); i++) {
        for (size_t j = 0; j < COUNT(host); j++) {
            for (size_t k = 0; k < COUNT(place); k++) {
                cl_mem_flags flags = access[i] | host[j] | place[k], seen;
                void *pointer =
                    place[k] & (CL_MEM_COPY_HOST_PTR | CL_MEM_USE_HOST_PTR) ? memory : NULL;
                cl_mem made = make_buffer(flags, sizeof(memory), pointer);

                seen = get_info(cl_mem_flags, clGetMemObjectInfo, made, CL_MEM_FLAGS);
                ck_assert(seen == flags || (access[i] == 0 && seen == (flags | CL_MEM_READ_WRITE)));
                ck_assert(get_info(void *, clGetMemObjectInfo, made, CL_MEM_HOST_PTR) ==
                          (place[k] & CL_MEM_USE_HOST_PTR ? memory : NULL));
                ck_ok(clReleaseMemObject(made));
            }
        }
    }
}
END_TEST

START_TEST(create_with_flags_that_exclude_each_other) {
    const cl_mem_flags wrong[] = {CL_MEM_READ_WRITE | CL_MEM_READ_ONLY,
                                  CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY,
                                  CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY,
                                  CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR,
                                  CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR,
                                  CL_MEM_HOST_NO_ACCESS | CL_MEM_HOST_READ_ONLY,
                                  CL_MEM_HOST_NO_ACCESS | CL_MEM_HOST_WRITE_ONLY,
                                  CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY,
                                  (cl_mem_flags)1 << 50};
    char memory[64];

    for (size_t i = 0; i < COUNT(wrong); i++) {
        bool pointer = wrong[i] & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR);

        ck_refused(
            clCreateBuffer(context, wrong[i], sizeof(memory), pointer ? memory : NULL, &error),
            CL_INVALID_VALUE);
    }
}
END_TEST

START_TEST(create_wrong) {
    cl_ulong largest = get_info(cl_ulong, clGetDeviceInfo, device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    char memory[64];

    ck_refused(clCreateBuffer(NULL, 0, 64, NULL, &error), CL_INVALID_CONTEXT);
    ck_refused(clCreateBuffer(context, 0, 0, NULL, &error), CL_INVALID_BUFFER_SIZE);
    ck_refused(clCreateBuffer(context, 0, (size_t)largest + 1, NULL, &error),
               CL_INVALID_BUFFER_SIZE);
    ck_refused(clCreateBuffer(context, 0, SIZE_MAX, NULL, &error), CL_INVALID_BUFFER_SIZE);
    ck_refused(clCreateBuffer(context, CL_MEM_USE_HOST_PTR, 64, NULL, &error), CL_INVALID_HOST_PTR);
    ck_refused(clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, 64, NULL, &error),
               CL_INVALID_HOST_PTR);
    ck_refused(clCreateBuffer(context, 0, 64, memory, &error), CL_INVALID_HOST_PTR);
    ck_refused(clCreateBuffer(context, CL_MEM_ALLOC_HOST_PTR, 64, memory, &error),
               CL_INVALID_HOST_PTR);
    ck_assert_ptr_null(clCreateBuffer(context, 0, 0, NULL, NULL));
}
END_TEST

START_TEST(info) {
    cl_mem made = make_buffer(CL_MEM_READ_ONLY, 12345, NULL);
    const cl_mem_info names[] = {CL_MEM_TYPE,      CL_MEM_FLAGS,   CL_MEM_SIZE,
                                 CL_MEM_HOST_PTR,  CL_MEM_CONTEXT, CL_MEM_REFERENCE_COUNT,
                                 CL_MEM_MAP_COUNT, CL_MEM_OFFSET,  CL_MEM_ASSOCIATED_MEMOBJECT};

    ck_assert(get_info(cl_mem_object_type, clGetMemObjectInfo, made, CL_MEM_TYPE) ==
              CL_MEM_OBJECT_BUFFER);
    ck_assert(get_info(cl_mem_flags, clGetMemObjectInfo, made, CL_MEM_FLAGS) == CL_MEM_READ_ONLY);
    ck_assert(get_info(size_t, clGetMemObjectInfo, made, CL_MEM_SIZE) == 12345);
    ck_assert(get_info(void *, clGetMemObjectInfo, made, CL_MEM_HOST_PTR) == NULL);
    ck_assert(get_info(cl_uint, clGetMemObjectInfo, made, CL_MEM_MAP_COUNT) == 0);
    ck_assert(get_info(cl_uint, clGetMemObjectInfo, made, CL_MEM_REFERENCE_COUNT) == 1);
    ck_assert(get_info(cl_context, clGetMemObjectInfo, made, CL_MEM_CONTEXT) == context);
    ck_assert(get_info(cl_mem, clGetMemObjectInfo, made, CL_MEM_ASSOCIATED_MEMOBJECT) == NULL);
    ck_assert(get_info(size_t, clGetMemObjectInfo, made, CL_MEM_OFFSET) == 0);
    for (size_t i = 0; i < COUNT(names); i++)
        check_info_rules(clGetMemObjectInfo, made, names[i]);
    if (!excused(POCL, "PoCL 3.1 answers clGetImageInfo about a buffer"))
        ck_assert_cl(clGetImageInfo(made, CL_IMAGE_WIDTH, 0, NULL, NULL), CL_INVALID_MEM_OBJECT);
    ck_ok(clReleaseMemObject(made));
}
END_TEST

START_TEST(copy_host_ptr_copies_at_once) {
    cl_int in[256], out[256];
    cl_mem made, pinned;

    for (int i = 0; i < 256; i++)
        in[i] = i;
    made = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(in), in);
    pinned = make_buffer(CL_MEM_COPY_HOST_PTR | CL_MEM_ALLOC_HOST_PTR, sizeof(in), in);
    memset(in, 0, sizeof(in));
    read_ints(made, out, 256);
    for (int i = 0; i < 256; i++)
        ck_assert_int_eq(out[i], i);
    read_ints(pinned, out, 256);
    for (int i = 0; i < 256; i++)
        ck_assert_int_eq(out[i], i);
    ck_ok(clReleaseMemObject(made));
    ck_ok(clReleaseMemObject(pinned));
}
END_TEST

START_TEST(use_host_ptr_holds_its_contents) {
    static cl_int memory[256] __attribute__((aligned(4096)));
    cl_int out[256], value = 7;
    cl_program program = make_program(common_source);
    cl_kernel add = make_kernel(program, "add");
    cl_mem made;

    for (int i = 0; i < 256; i++)
        memory[i] = i;
    made = make_buffer(CL_MEM_USE_HOST_PTR, sizeof(memory), memory);
    ck_ok(clSetKernelArg(add, 0, sizeof(made), &made));
    ck_ok(clSetKernelArg(add, 1, sizeof(value), &value));
    launch(add, 256);
    read_ints(made, out, 256);
    for (int i = 0; i < 256; i++)
        ck_assert_int_eq(out[i], i + 7);
    ck_ok(clReleaseMemObject(made));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(use_host_ptr_at_any_address) {
    char *memory = malloc(1024 + 1), out[1024];
    cl_mem made;

    for (int i = 0; i < 1024; i++)
        memory[i + 1] = (char)(i * 7);
    made = make_buffer(CL_MEM_USE_HOST_PTR, 1024, memory + 1);
    ck_ok(clEnqueueReadBuffer(queue, made, CL_TRUE, 0, 1024, out, 0, NULL, NULL));
    ck_assert_mem_eq(out, memory + 1, 1024);
    ck_ok(clReleaseMemObject(made));
    free(memory);
}
END_TEST

START_TEST(host_access_is_refused) {
    cl_mem no_access = make_buffer(CL_MEM_HOST_NO_ACCESS, 64, NULL);
    cl_mem read_only = make_buffer(CL_MEM_HOST_READ_ONLY, 64, NULL);
    cl_mem write_only = make_buffer(CL_MEM_HOST_WRITE_ONLY, 64, NULL);
    const size_t zero[3] = {0}, region[3] = {8, 1, 1};
    char host[64] = {0};

    ck_assert_cl(clEnqueueReadBuffer(queue, no_access, CL_TRUE, 0, 64, host, 0, NULL, NULL),
                 CL_INVALID_OPERATION);
    ck_assert_cl(clEnqueueReadBuffer(queue, write_only, CL_TRUE, 0, 64, host, 0, NULL, NULL),
                 CL_INVALID_OPERATION);
    ck_assert_cl(clEnqueueWriteBuffer(queue, no_access, CL_TRUE, 0, 64, host, 0, NULL, NULL),
                 CL_INVALID_OPERATION);
    ck_assert_cl(clEnqueueWriteBuffer(queue, read_only, CL_TRUE, 0, 64, host, 0, NULL, NULL),
                 CL_INVALID_OPERATION);
    ck_assert_cl(clEnqueueReadBufferRect(queue, no_access, CL_TRUE, zero, zero, region, 0, 0, 0, 0,
                                         host, 0, NULL, NULL),
                 CL_INVALID_OPERATION);
    ck_assert_cl(clEnqueueReadBufferRect(queue, write_only, CL_TRUE, zero, zero, region, 0, 0, 0, 0,
                                         host, 0, NULL, NULL),
                 CL_INVALID_OPERATION);
    ck_assert_cl(clEnqueueWriteBufferRect(queue, no_access, CL_TRUE, zero, zero, region, 0, 0, 0, 0,
                                          host, 0, NULL, NULL),
                 CL_INVALID_OPERATION);
    ck_assert_cl(clEnqueueWriteBufferRect(queue, read_only, CL_TRUE, zero, zero, region, 0, 0, 0, 0,
                                          host, 0, NULL, NULL),
                 CL_INVALID_OPERATION);
    ck_refused(
        clEnqueueMapBuffer(queue, no_access, CL_TRUE, CL_MAP_READ, 0, 64, 0, NULL, NULL, &error),
        CL_INVALID_OPERATION);
    ck_refused(
        clEnqueueMapBuffer(queue, write_only, CL_TRUE, CL_MAP_READ, 0, 64, 0, NULL, NULL, &error),
        CL_INVALID_OPERATION);
    ck_refused(
        clEnqueueMapBuffer(queue, read_only, CL_TRUE, CL_MAP_WRITE, 0, 64, 0, NULL, NULL, &error),
        CL_INVALID_OPERATION);
    ck_refused(clEnqueueMapBuffer(queue, read_only, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 0, 64,
                                  0, NULL, NULL, &error),
               CL_INVALID_OPERATION);
    ck_ok(clReleaseMemObject(no_access));
    ck_ok(clReleaseMemObject(read_only));
    ck_ok(clReleaseMemObject(write_only));
}
END_TEST

START_TEST(odd_sizes) {
    const size_t sizes[] = {1, 3, 5, 63, 65, 4095, 4097, 1000003};
    char *in = malloc(1000003), *out = malloc(1000003);

    for (size_t i = 0; i < 1000003; i++)
        in[i] = (char)(i * 31 + i / 257);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        cl_mem made = make_buffer(CL_MEM_READ_WRITE, sizes[i], NULL);

        memset(out, 0, sizes[i]);
        ck_ok(clEnqueueWriteBuffer(queue, made, CL_FALSE, 0, sizes[i], in, 0, NULL, NULL));
        ck_ok(clEnqueueReadBuffer(queue, made, CL_TRUE, 0, sizes[i], out, 0, NULL, NULL));
        ck_assert_mem_eq(in, out, sizes[i]);
        ck_assert(get_info(size_t, clGetMemObjectInfo, made, CL_MEM_SIZE) == sizes[i]);
        ck_ok(clReleaseMemObject(made));
    }
    free(in);
    free(out);
}
END_TEST

START_TEST(many_buffers_at_once) {
    cl_mem some[1000];
    cl_int value;

    for (cl_int i = 0; i < 1000; i++) {
        some[i] = make_buffer(CL_MEM_READ_WRITE, 64, NULL);
        ck_ok(clEnqueueFillBuffer(queue, some[i], &i, sizeof(i), 0, 64, 0, NULL, NULL));
    }
    for (cl_int i = 0; i < 1000; i++) {
        read_ints(some[i], &value, 1);
        ck_assert_int_eq(value, i);
        ck_ok(clReleaseMemObject(some[i]));
    }
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        create_with_each_flag,
        create_with_flags_that_exclude_each_other,
        create_wrong,
        info,
        copy_host_ptr_copies_at_once,
        use_host_ptr_holds_its_contents,
        use_host_ptr_at_any_address,
        host_access_is_refused,
        odd_sizes,
        many_buffers_at_once,
    };

    return test_main(argc, argv, tests, COUNT(tests));
}
