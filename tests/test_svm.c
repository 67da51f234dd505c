/* SPDX-License-Identifier: MIT */
/* Shared virtual memory, coarse-grained: OpenCL 3.0, sections 5.6 and 5.9.2. */
#define CL_TARGET_OPENCL_VERSION 300
#include "svm_nodes.h"

#include <stdatomic.h>

enum { N = 256 };
#define BYTES (N * sizeof(cl_int))

static bool has_svm(void) {
    cl_device_svm_capabilities svm = 0;
    return clGetDeviceInfo(device, CL_DEVICE_SVM_CAPABILITIES, sizeof(svm), &svm, NULL) ==
               CL_SUCCESS &&
           svm & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER;
}

#define need_svm() skip_if(!has_svm(), "no shared virtual memory")

static cl_int *allocate(void) {
    cl_int *memory = clSVMAlloc(context, CL_MEM_READ_WRITE, BYTES, 0);
    ck_assert_ptr_nonnull(memory);
    return memory;
}

static void fill(cl_int *memory, cl_int value) {
    ck_ok(clEnqueueSVMMemFill(queue, memory, &value, sizeof(value), BYTES, 0, NULL, NULL));
}

/* Maps it, looks, unmaps it. */
static void check_all(cl_int *memory, cl_int value) {
    ck_ok(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, memory, BYTES, 0, NULL, NULL));
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(memory[i], value);
    ck_ok(clEnqueueSVMUnmap(queue, memory, 0, NULL, NULL));
}

static void launch_add(cl_kernel add, void *pointer, cl_int value, size_t count) {
    ck_ok(clSetKernelArgSVMPointer(add, 0, pointer));
    ck_ok(clSetKernelArg(add, 1, sizeof(value), &value));
    launch(add, count);
}

START_TEST(allocation) {
    const struct {
        cl_svm_mem_flags flags;
        size_t size;
        cl_uint alignment;
    } refused[] = {
        {CL_MEM_READ_WRITE, 0, 0},
        {CL_MEM_READ_WRITE, SIZE_MAX, 0},
        {CL_MEM_READ_WRITE | CL_MEM_READ_ONLY, BYTES, 0},
        {CL_MEM_USE_HOST_PTR, BYTES, 0},
        {CL_MEM_READ_WRITE | CL_MEM_SVM_ATOMICS, BYTES, 0},
        {CL_MEM_READ_WRITE, BYTES, 24},
    };
    need_svm();
    for (size_t i = 0; i < COUNT(refused); i++) {
        if (i == 3 && excused(POCL, "PoCL 3.1 allows it"))
            continue;
        ck_assert_ptr_null(
            clSVMAlloc(context, refused[i].flags, refused[i].size, refused[i].alignment));
    }
    ck_assert_ptr_null(clSVMAlloc(NULL, CL_MEM_READ_WRITE, BYTES, 0));
    for (cl_uint alignment = 1; alignment <= 128; alignment *= 2) {
        void *memory = clSVMAlloc(context, CL_MEM_READ_WRITE, 100, alignment);
        ck_assert_ptr_nonnull(memory);
        ck_assert_uint_eq((uintptr_t)memory % alignment, 0);
        clSVMFree(context, memory);
    }
    clSVMFree(context, NULL);
}
END_TEST

START_TEST(kernel_argument) {
    need_svm();
    cl_program program = make_program(common_source);
    cl_kernel add = make_kernel(program, "add"), set = make_kernel(program, "set");
    cl_int *memory = allocate(), value = 7, local;

    fill(memory, 5);
    for (int i = 0; i < 10; i++)
        launch_add(add, memory, 1, N);
    check_all(memory, 15);
    /* From the middle on, and a pointer that takes the place of a buffer and of none. */
    launch_add(add, memory + N / 2, 1, N / 2);
    ck_ok(
        clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, memory, BYTES, 0, NULL, NULL));
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(memory[i], i < N / 2 ? 15 : 16);
    memory[3] = 100;
    ck_ok(clEnqueueSVMUnmap(queue, memory, 0, NULL, NULL));
    launch_add(add, memory, 1, N);
    ck_ok(clEnqueueSVMMemcpy(queue, CL_TRUE, &local, memory + 3, sizeof(local), 0, NULL, NULL));
    ck_assert_int_eq(local, 101);
    ck_ok(clSetKernelArgSVMPointer(set, 0, NULL));
    ck_ok(clSetKernelArgSVMPointer(set, 0, memory));
    ck_ok(clSetKernelArg(set, 1, sizeof(value), &value));
    launch(set, N);
    check_all(memory, 7);
    ck_assert_cl(clSetKernelArgSVMPointer(NULL, 0, memory), CL_INVALID_KERNEL);
    ck_assert_cl(clSetKernelArgSVMPointer(set, 2, memory), CL_INVALID_ARG_INDEX);
    if (!excused(POCL, "PoCL 3.1 takes any pointer"))
        ck_assert_cl(clSetKernelArgSVMPointer(set, 0, &value), CL_INVALID_ARG_VALUE);
    ck_ok(clFinish(queue));
    clSVMFree(context, memory);
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseKernel(set));
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(pointers_in_data) {
    need_svm();
    cl_program program = make_program(WALK_SOURCE);
    cl_kernel walk = make_kernel(program, "walk"), clone;
    struct node *node[NODES];

    make_nodes(node, walk, 1);
    clone = ck_made(clCloneKernel(walk, &error));
    for (int i = 0; i < 5; i++) {
        launch(walk, 1);
        launch(clone, 1);
    }
    check_nodes(node, 10);
    /* A set is replaced as a whole, also by none. */
    ck_ok(clSetKernelExecInfo(walk, CL_KERNEL_EXEC_INFO_SVM_PTRS, 0, NULL));
    ck_assert_cl(clSetKernelExecInfo(NULL, CL_KERNEL_EXEC_INFO_SVM_PTRS, 0, NULL),
                 CL_INVALID_KERNEL);
    if (!excused(POCL, "PoCL 3.1 checks none of it")) {
        ck_assert_cl(clSetKernelExecInfo(walk, CL_KERNEL_EXEC_INFO_SVM_PTRS, 8, NULL),
                     CL_INVALID_VALUE);
        ck_assert_cl(clSetKernelExecInfo(walk, CL_KERNEL_EXEC_INFO_SVM_PTRS, 7, node),
                     CL_INVALID_VALUE);
        ck_assert_cl(clSetKernelExecInfo(walk, 4242, sizeof(node), node), CL_INVALID_VALUE);
    }
    free_nodes(node);
    ck_ok(clReleaseKernel(walk));
    ck_ok(clReleaseKernel(clone));
    ck_ok(clReleaseProgram(program));
}
END_TEST

static void check_type(cl_event event, cl_command_type type) {
    ck_assert_uint_eq(get_info(cl_command_type, clGetEventInfo, event, CL_EVENT_COMMAND_TYPE),
                      type);
    ck_ok(clReleaseEvent(event));
}

START_TEST(copies) {
    need_svm();
    cl_int *one = allocate(), *two = allocate(), host[N], other[N], value = 3;
    const void *both[] = {one, two};
    cl_event event;

    ck_ok(clEnqueueSVMMemFill(queue, one, &value, sizeof(value), BYTES, 0, NULL, &event));
    check_type(event, CL_COMMAND_SVM_MEMFILL);
    ck_ok(clEnqueueSVMMemcpy(queue, CL_FALSE, two, one, BYTES, 0, NULL, &event));
    check_type(event, CL_COMMAND_SVM_MEMCPY);
    ck_ok(clEnqueueSVMMigrateMem(queue, 2, both, NULL, 0, 0, NULL, &event));
    check_type(event, CL_COMMAND_SVM_MIGRATE_MEM);
    ck_ok(clEnqueueSVMMemcpy(queue, CL_FALSE, host, two, BYTES, 0, NULL, NULL));
    ck_ok(clEnqueueSVMMemcpy(queue, CL_TRUE, other, host, BYTES, 0, NULL, NULL));
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(other[i], 3);
    for (int i = 0; i < N; i++)
        host[i] = 8;
    ck_ok(clEnqueueSVMMemcpy(queue, CL_TRUE, one, host, BYTES, 0, NULL, NULL));
    check_all(one, 8);
    ck_ok(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, one, BYTES, 0, NULL, &event));
    check_type(event, CL_COMMAND_SVM_MAP);
    ck_ok(clEnqueueSVMUnmap(queue, one, 0, NULL, &event));
    check_type(event, CL_COMMAND_SVM_UNMAP);
    ck_ok(clFinish(queue));
    clSVMFree(context, one);
    clSVMFree(context, two);
}
END_TEST

static atomic_int calls;

static void CL_CALLBACK free_both(cl_command_queue of, cl_uint count, void *pointers[],
                                  void *user_data) {
    if (of == queue && count == 2 && user_data == &calls)
        atomic_fetch_add(&calls, 1);
    for (cl_uint i = 0; i < count; i++)
        clSVMFree(context, pointers[i]);
}

START_TEST(free_in_queue) {
    need_svm();
    cl_event event;
    atomic_store(&calls, 0);
    for (int i = 0; i < 10; i++) {
        void *pair[] = {allocate(), allocate()};
        fill(pair[0], i);
        ck_ok(clEnqueueSVMMemcpy(queue, CL_FALSE, pair[1], pair[0], BYTES, 0, NULL, NULL));
        ck_ok(clEnqueueSVMFree(queue, 2, pair, i % 2 ? free_both : NULL, i % 2 ? &calls : NULL, 0,
                               NULL, &event));
        pair[0] = pair[1] = NULL;
        ck_assert_uint_eq(get_info(cl_command_type, clGetEventInfo, event, CL_EVENT_COMMAND_TYPE),
                          CL_COMMAND_SVM_FREE);
        ck_ok(clWaitForEvents(1, &event));
        ck_ok(clReleaseEvent(event));
    }
    ck_assert_int_eq(atomic_load(&calls), 5);
}
END_TEST

static cl_int status_at_free;

static void CL_CALLBACK look_and_free(cl_command_queue of, cl_uint count, void *pointers[],
                                      void *user_data) {
    (void)of;
    (void)count;
    status_at_free = event_status(user_data);
    clSVMFree(context, pointers[0]);
}

/* In an in-order queue all that came before is over by then. */
START_TEST(free_comes_last) {
    need_svm();
    cl_program program = make_program(common_source);
    cl_kernel slow = make_kernel(program, "slow");
    void *memory = allocate();
    const size_t count = N;
    cl_int rounds = 20000;
    cl_event event;

    fill(memory, 1);
    ck_ok(clSetKernelArgSVMPointer(slow, 0, memory));
    ck_ok(clSetKernelArg(slow, 1, sizeof(rounds), &rounds));
    ck_ok(clEnqueueNDRangeKernel(queue, slow, 1, NULL, &count, NULL, 0, NULL, &event));
    status_at_free = -1;
    ck_ok(clEnqueueSVMFree(queue, 1, &memory, look_and_free, event, 0, NULL, NULL));
    ck_ok(clFinish(queue));
    ck_assert_int_eq(status_at_free, CL_COMPLETE);
    ck_ok(clReleaseEvent(event));
    ck_ok(clReleaseKernel(slow));
    ck_ok(clReleaseProgram(program));
}
END_TEST

/* Commands on a buffer over such memory, on its sub-buffer and on the memory keep their order. */
START_TEST(buffer_over_it) {
    need_svm();
    const size_t align =
        get_info(cl_uint, clGetDeviceInfo, device, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
    const cl_buffer_region region = {align, align};
    cl_program program = make_program(common_source);
    cl_kernel add = make_kernel(program, "add");
    cl_int *memory = allocate(), seen[N], one = 1;
    cl_mem buffer = ck_made(clCreateBuffer(context, CL_MEM_USE_HOST_PTR, BYTES, memory, &error));
    cl_mem part =
        ck_made(clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error));
    cl_mem plain = make_buffer(0, BYTES, NULL);

    ck_assert(get_info(cl_bool, clGetMemObjectInfo, buffer, CL_MEM_USES_SVM_POINTER));
    if (!excused(POCL, "PoCL 3.1 says it of the whole buffer only"))
        ck_assert(get_info(cl_bool, clGetMemObjectInfo, part, CL_MEM_USES_SVM_POINTER));
    ck_assert(!get_info(cl_bool, clGetMemObjectInfo, plain, CL_MEM_USES_SVM_POINTER));
    ck_assert_ptr_null(get_info(cl_mem, clGetMemObjectInfo, buffer, CL_MEM_ASSOCIATED_MEMOBJECT));
    ck_assert_ptr_eq(get_info(cl_mem, clGetMemObjectInfo, part, CL_MEM_ASSOCIATED_MEMOBJECT),
                     buffer);
    ck_assert_ptr_eq(get_info(void *, clGetMemObjectInfo, buffer, CL_MEM_HOST_PTR), memory);
    ck_ok(clSetKernelArg(add, 1, sizeof(one), &one));
    fill(memory, 0);
    for (int i = 0; i < 5; i++) {
        ck_ok(clSetKernelArg(add, 0, sizeof(buffer), &buffer));
        launch(add, N);
        ck_ok(clSetKernelArgSVMPointer(add, 0, memory));
        launch(add, N);
        ck_ok(clSetKernelArg(add, 0, sizeof(part), &part));
        launch(add, align / sizeof(cl_int));
    }
    read_ints(buffer, seen, N);
    for (size_t i = 0; i < N; i++)
        ck_assert_int_eq(seen[i], i * 4 >= align && i * 4 < 2 * align ? 15 : 10);
    for (int i = 0; i < N; i++)
        seen[i] = i;
    write_ints(buffer, seen, N);
    ck_ok(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, memory, BYTES, 0, NULL, NULL));
    ck_assert_mem_eq(memory, seen, BYTES);
    ck_ok(clEnqueueSVMUnmap(queue, memory, 0, NULL, NULL));
    ck_refused(clCreateBuffer(context, CL_MEM_USE_HOST_PTR, BYTES + 1, memory, &error),
               CL_INVALID_BUFFER_SIZE);
    ck_ok(clFinish(queue));
    ck_ok(clReleaseMemObject(part));
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseMemObject(plain));
    clSVMFree(context, memory);
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}
END_TEST

/* Only buffers refuse it (5.4.3); programs map again what they never unmapped (Hetero-Mark). */
START_TEST(mapped_twice) {
    need_svm();
    cl_program program = make_program(common_source);
    cl_kernel add = make_kernel(program, "add");
    cl_int *memory = allocate(), one = 1;

    ck_ok(clSetKernelArgSVMPointer(add, 0, memory));
    ck_ok(clSetKernelArg(add, 1, sizeof(one), &one));
    for (cl_int round = 0; round < 3; round++) {
        for (int i = 0; i < 2; i++)
            ck_ok(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, memory, BYTES, 0,
                                  NULL, NULL));
        for (int i = 0; i < N; i++)
            memory[i] = round + i;
        for (int i = 0; i < 2; i++)
            ck_ok(clEnqueueSVMUnmap(queue, memory, 0, NULL, NULL));
        launch(add, N);
        ck_ok(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_WRITE | CL_MAP_READ, memory, BYTES, 0, NULL,
                              NULL));
        ck_ok(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_WRITE, memory + 1, 64, 0, NULL, NULL));
        for (int i = 0; i < N; i++)
            ck_assert_int_eq(memory[i], round + i + 1);
        ck_ok(clEnqueueSVMUnmap(queue, memory, 0, NULL, NULL));
        ck_ok(clEnqueueSVMUnmap(queue, memory + 1, 0, NULL, NULL));
    }
    ck_ok(clFinish(queue));
    clSVMFree(context, memory);
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(wrong) {
    need_svm();
    skip_on(POCL, "PoCL 3.1 checks less");
    cl_int *memory = allocate(), value = 1, host[2];
    void *pointers[] = {memory};
    const void *strangers[] = {host};

#define MAP(queue_, flags, pointer, size)                                                          \
    clEnqueueSVMMap(queue_, CL_TRUE, flags, pointer, size, 0, NULL, NULL)
    ck_assert_cl(MAP(NULL, CL_MAP_READ, memory, BYTES), CL_INVALID_COMMAND_QUEUE);
    ck_assert_cl(MAP(queue, CL_MAP_READ, NULL, BYTES), CL_INVALID_VALUE);
    ck_assert_cl(MAP(queue, CL_MAP_READ, memory, 0), CL_INVALID_VALUE);
    ck_assert_cl(MAP(queue, CL_MAP_READ, memory, BYTES + 1), CL_INVALID_VALUE);
    ck_assert_cl(MAP(queue, CL_MAP_READ, host, sizeof(host)), CL_INVALID_VALUE);
    ck_assert_cl(MAP(queue, (cl_map_flags)1 << 40, memory, BYTES), CL_INVALID_VALUE);
    ck_assert_cl(clEnqueueSVMUnmap(queue, NULL, 0, NULL, NULL), CL_INVALID_VALUE);
    ck_assert_cl(clEnqueueSVMUnmap(queue, memory, 1, NULL, NULL), CL_INVALID_EVENT_WAIT_LIST);
#define FILL(pointer, pattern, pattern_size, size)                                                 \
    clEnqueueSVMMemFill(queue, pointer, pattern, pattern_size, size, 0, NULL, NULL)
    ck_assert_cl(FILL(NULL, &value, 4, 4), CL_INVALID_VALUE);
    ck_assert_cl(FILL(memory, NULL, 4, 4), CL_INVALID_VALUE);
    ck_assert_cl(FILL(memory, &value, 0, 4), CL_INVALID_VALUE);
    ck_assert_cl(FILL(memory, &value, 3, 3), CL_INVALID_VALUE);
    ck_assert_cl(FILL((char *)memory + 1, &value, 4, 4), CL_INVALID_VALUE);
    ck_assert_cl(FILL(memory, &value, 4, 6), CL_INVALID_VALUE);
    ck_assert_cl(FILL(memory, &value, 4, BYTES + 4), CL_INVALID_VALUE);
#define COPY(target, source, size)                                                                 \
    clEnqueueSVMMemcpy(queue, CL_TRUE, target, source, size, 0, NULL, NULL)
    ck_assert_cl(COPY(NULL, memory, 4), CL_INVALID_VALUE);
    ck_assert_cl(COPY(memory, NULL, 4), CL_INVALID_VALUE);
    ck_assert_cl(COPY(memory, memory + 1, 8), CL_MEM_COPY_OVERLAP);
    ck_assert_cl(clEnqueueSVMMigrateMem(queue, 0, NULL, NULL, 0, 0, NULL, NULL), CL_INVALID_VALUE);
    ck_assert_cl(clEnqueueSVMMigrateMem(queue, 1, strangers, NULL, 0, 0, NULL, NULL),
                 CL_INVALID_VALUE);
    ck_assert_cl(clEnqueueSVMFree(queue, 1, NULL, NULL, NULL, 0, NULL, NULL), CL_INVALID_VALUE);
    ck_assert_cl(clEnqueueSVMFree(queue, 0, pointers, NULL, NULL, 0, NULL, NULL), CL_INVALID_VALUE);
    clSVMFree(context, memory);
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        allocation,      kernel_argument, pointers_in_data, copies, free_in_queue,
        free_comes_last, buffer_over_it,  mapped_twice,     wrong,
    };
    return test_main(argc, argv, tests, COUNT(tests));
}
