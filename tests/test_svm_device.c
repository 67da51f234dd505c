/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: shared virtual memory where one device has memory of its own. A PoCL device stands in
 * for it: it says that it is a GPU, and its driver's table is changed so that an allocation has two
 * contents at one address, the host's, which is there while it is mapped, and the device's, which
 * is there while one of its kernels runs. Whatever is used at the wrong time is found to be wrong.
 */
#define CL_TARGET_OPENCL_VERSION 300
#include "pocl_table.h"
#include "svm_nodes.h"

#include <pthread.h>

enum { N = 512, ALLOCATIONS = 4, MOST = 32 };
#define BYTES (N * sizeof(cl_uint))
#define GARBAGE 0xA5

static cl_icd_dispatch *driver, real; /* the driver's table, and what was in it */
static cl_device_id pocl_devices[2];

static struct allocation {
    char *here, *there; /* NULL: free */
    size_t size;
    cl_map_flags mapped;
} allocations[MOST];
/* As they were set last. */
static struct argument {
    cl_kernel kernel; /* NULL: free, as are those behind it */
    cl_uint index;
    const void *pointer;
} arguments[MOST];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all of it */
static unsigned violations, launches[2], maps;

/* Not the basic device, which executes what is ready in whichever thread enqueues. */
static bool is_gpu(cl_device_id of) {
    char name[256] = "";
    real.clGetDeviceInfo(pocl_devices[1], CL_DEVICE_NAME, sizeof(name), name, NULL);
    return of == pocl_devices[strstr(name, "basic") || strstr(name, "minimal") ? 0 : 1];
}

static cl_int CL_API_CALL get_device_info(cl_device_id of, cl_device_info what, size_t size,
                                          void *value, size_t *size_ret) {
    cl_int result = real.clGetDeviceInfo(of, what, size, value, size_ret);
    if (what == CL_DEVICE_TYPE && result == CL_SUCCESS && value && is_gpu(of))
        *(cl_device_type *)value = CL_DEVICE_TYPE_GPU;
    return result;
}

static struct allocation *find(const void *pointer) {
    for (int i = 0; i < MOST; i++)
        if (allocations[i].here &&
            (uintptr_t)pointer - (uintptr_t)allocations[i].here < allocations[i].size)
            return &allocations[i];
    return NULL;
}

static void *CL_API_CALL svm_alloc(cl_context of, cl_svm_mem_flags flags, size_t size,
                                   cl_uint alignment) {
    char *memory = real.clSVMAlloc(of, flags, size, alignment);
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST && memory; i++) {
        if (allocations[i].here)
            continue;
        allocations[i] = (struct allocation){memory, calloc(1, size), size, 0};
        memset(memory, GARBAGE, size);
        break;
    }
    violations += memory && !find(memory);
    pthread_mutex_unlock(&lock);
    return memory;
}

static void CL_API_CALL svm_free(cl_context of, void *pointer) {
    pthread_mutex_lock(&lock);
    struct allocation *allocation = find(pointer);
    if (allocation) {
        violations += allocation->mapped != 0;
        free(allocation->there);
        allocation->here = NULL;
    } else {
        violations++;
    }
    pthread_mutex_unlock(&lock);
    real.clSVMFree(of, pointer);
}

static cl_int CL_API_CALL svm_map(cl_command_queue of, cl_bool blocking, cl_map_flags flags,
                                  void *pointer, size_t size, cl_uint count, const cl_event *list,
                                  cl_event *event) {
    cl_int result = real.clEnqueueSVMMap(of, blocking, flags, pointer, size, count, list, event);
    pthread_mutex_lock(&lock);
    struct allocation *allocation = find(pointer);
    if (allocation && !allocation->mapped && blocking && size == allocation->size) {
        memcpy(pointer, allocation->there, size);
        allocation->mapped = flags;
    } else {
        violations++;
    }
    maps++;
    pthread_mutex_unlock(&lock);
    return result;
}

static cl_int CL_API_CALL svm_unmap(cl_command_queue of, void *pointer, cl_uint count,
                                    const cl_event *list, cl_event *event) {
    pthread_mutex_lock(&lock);
    struct allocation *allocation = find(pointer);
    if (allocation && allocation->mapped) {
        if (allocation->mapped & CL_MAP_WRITE)
            memcpy(allocation->there, pointer, allocation->size);
        allocation->mapped = 0;
        memset(pointer, GARBAGE, allocation->size);
    } else {
        violations++;
    }
    pthread_mutex_unlock(&lock);
    return real.clEnqueueSVMUnmap(of, pointer, count, list, event);
}

/* A kernel of the device sees the device's contents; what is mapped for writing it must not use. */
static cl_int launch_there(cl_command_queue of, cl_kernel kernel, cl_uint dimensions,
                           const size_t *offset, const size_t *global, const size_t *local,
                           cl_event *event) {
    for (int i = 0; i < MOST; i++) {
        const struct allocation *used = find(arguments[i].pointer);
        violations += arguments[i].kernel == kernel && used && used->mapped & CL_MAP_WRITE;
    }
    for (int i = 0; i < MOST; i++)
        if (allocations[i].here && !allocations[i].mapped)
            memcpy(allocations[i].here, allocations[i].there, allocations[i].size);
    cl_int result =
        real.clEnqueueNDRangeKernel(of, kernel, dimensions, offset, global, local, 0, NULL, event);
    real.clFinish(of);
    for (int i = 0; i < MOST; i++) {
        struct allocation *allocation = &allocations[i];
        if (!allocation->here)
            continue;
        if (!allocation->mapped) {
            memcpy(allocation->there, allocation->here, allocation->size);
            memset(allocation->here, GARBAGE, allocation->size);
        } else if (allocation->mapped == CL_MAP_READ) {
            violations += memcmp(allocation->there, allocation->here, allocation->size) != 0;
        }
    }
    return result;
}

static cl_int CL_API_CALL enqueue_kernel(cl_command_queue of, cl_kernel kernel, cl_uint dimensions,
                                         const size_t *offset, const size_t *global,
                                         const size_t *local, cl_uint count, const cl_event *list,
                                         cl_event *event) {
    cl_device_id on = NULL;
    real.clGetCommandQueueInfo(of, CL_QUEUE_DEVICE, sizeof(on), &on, NULL);
    bool there = is_gpu(on);
    cl_int result;
    pthread_mutex_lock(&lock);
    launches[there]++;
    if (there) {
        violations += count != 0;
        result = launch_there(of, kernel, dimensions, offset, global, local, event);
    }
    pthread_mutex_unlock(&lock);
    if (!there)
        result = real.clEnqueueNDRangeKernel(of, kernel, dimensions, offset, global, local, count,
                                             list, event);
    return result;
}

static cl_int CL_API_CALL set_pointer(cl_kernel kernel, cl_uint index, const void *value) {
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < MOST && arguments[i].kernel &&
           (arguments[i].kernel != kernel || arguments[i].index != index))
        i++;
    if (i < MOST)
        arguments[i] = (struct argument){kernel, index, value};
    violations += i == MOST || (value && !find(value));
    pthread_mutex_unlock(&lock);
    return real.clSetKernelArgSVMPointer(kernel, index, value);
}

static bool change_driver(void) {
    cl_platform_id pocl;
    cl_uint count = 0;
    driver = pocl_table(&pocl);
    if (!driver || !driver->clSVMAlloc)
        return false;
    real = *driver;
    if (real.clGetDeviceIDs(pocl, CL_DEVICE_TYPE_ALL, 2, pocl_devices, &count) != CL_SUCCESS ||
        count != 2)
        return false;
    driver->clGetDeviceInfo = get_device_info;
    driver->clSVMAlloc = svm_alloc;
    driver->clSVMFree = svm_free;
    driver->clEnqueueSVMMap = svm_map;
    driver->clEnqueueSVMUnmap = svm_unmap;
    driver->clEnqueueNDRangeKernel = enqueue_kernel;
    driver->clSetKernelArgSVMPointer = set_pointer;
    return true;
}

static unsigned count(unsigned *counter) {
    pthread_mutex_lock(&lock);
    unsigned value = *counter;
    pthread_mutex_unlock(&lock);
    return value;
}

static cl_uint *allocate(void) {
    cl_uint *memory = clSVMAlloc(context, CL_MEM_READ_WRITE, BYTES, 0);
    ck_assert_ptr_nonnull(memory);
    return memory;
}

static const char source[] =
    "kernel void add(global uint *a, uint value) { a[get_global_id(0)] += value; }"
    "kernel void sum(global uint *a, global const uint *b) {"
    "  a[get_global_id(0)] += b[get_global_id(0)]; }";

/* What a program may do with some allocations, in any order, against the same done serially. */
static struct {
    cl_uint *memory[ALLOCATIONS], expected[ALLOCATIONS][N];
    cl_mem over[ALLOCATIONS]; /* a buffer over the upper half */
    cl_kernel add, sum;
} play;

static void map_and_look(int i, cl_map_flags flags) {
    ck_ok(clEnqueueSVMMap(queue, CL_TRUE, flags, play.memory[i], BYTES, 0, NULL, NULL));
    ck_assert_mem_eq(play.memory[i], play.expected[i], BYTES);
    for (int j = 0; j < N && flags & CL_MAP_WRITE; j++)
        play.memory[i][j] = play.expected[i][j] *= 3;
}

static void step(uint32_t *seed) {
    int i = (int)(next_random(seed) % ALLOCATIONS), j = (i + 1) % ALLOCATIONS;
    cl_uint value = next_random(seed) % 100, half[N / 2];
    switch (next_random(seed) % 10) {
    case 0:
        map_and_look(i, CL_MAP_READ);
        map_and_look(j, CL_MAP_READ | CL_MAP_WRITE);
        ck_ok(clEnqueueSVMUnmap(queue, play.memory[i], 0, NULL, NULL));
        ck_ok(clEnqueueSVMUnmap(queue, play.memory[j], 0, NULL, NULL));
        break;
    case 1:
        ck_ok(clEnqueueSVMMemFill(queue, play.memory[i] + N / 4, &value, sizeof(value), BYTES / 2,
                                  0, NULL, NULL));
        for (int k = N / 4; k < 3 * N / 4; k++)
            play.expected[i][k] = value;
        break;
    case 2:
        ck_ok(clEnqueueSVMMemcpy(queue, CL_FALSE, play.memory[i], play.memory[j], BYTES, 0, NULL,
                                 NULL));
        memcpy(play.expected[i], play.expected[j], BYTES);
        break;
    case 3:
        ck_ok(clEnqueueReadBuffer(queue, play.over[i], CL_TRUE, 0, BYTES / 2, half, 0, NULL, NULL));
        ck_assert_mem_eq(half, play.expected[i] + N / 2, BYTES / 2);
        break;
    case 4: /* one of them mapped for reading, or not */
    case 5:
        if (value % 2)
            map_and_look(j, CL_MAP_READ);
        ck_ok(clSetKernelArgSVMPointer(play.sum, 0, play.memory[i]));
        ck_ok(clSetKernelArgSVMPointer(play.sum, 1, play.memory[j]));
        launch(play.sum, N);
        for (int k = 0; k < N; k++)
            play.expected[i][k] += play.expected[j][k];
        if (value % 2)
            ck_ok(clEnqueueSVMUnmap(queue, play.memory[j], 0, NULL, NULL));
        break;
    default:
        ck_ok(clSetKernelArgSVMPointer(play.add, 0, play.memory[i] + N / 2));
        ck_ok(clSetKernelArg(play.add, 1, sizeof(value), &value));
        launch(play.add, N / 2);
        for (int k = N / 2; k < N; k++)
            play.expected[i][k] += value;
    }
}

START_TEST(two_contents) {
    uint32_t seed = 12345;
    cl_uint zero = 0;
    ck_assert_uint_eq(
        get_info(cl_device_svm_capabilities, clGetDeviceInfo, device, CL_DEVICE_SVM_CAPABILITIES),
        CL_DEVICE_SVM_COARSE_GRAIN_BUFFER);
    cl_program program = make_program(source);
    play.add = make_kernel(program, "add");
    play.sum = make_kernel(program, "sum");
    for (int i = 0; i < ALLOCATIONS; i++) {
        play.memory[i] = allocate();
        play.over[i] = make_buffer(CL_MEM_USE_HOST_PTR, BYTES / 2, play.memory[i] + N / 2);
        ck_ok(
            clEnqueueSVMMemFill(queue, play.memory[i], &zero, sizeof(zero), BYTES, 0, NULL, NULL));
    }
    for (int n = 0; n < 600 || (n < 20000 && (!count(&launches[0]) || !count(&launches[1]))); n++)
        step(&seed);
    for (int i = 0; i < ALLOCATIONS; i++) {
        map_and_look(i, CL_MAP_READ);
        ck_ok(clEnqueueSVMUnmap(queue, play.memory[i], 0, NULL, NULL));
    }
    ck_ok(clFinish(queue));
    for (int i = 0; i < ALLOCATIONS; i++) {
        ck_ok(clReleaseMemObject(play.over[i]));
        clSVMFree(context, play.memory[i]);
    }
    ck_ok(clReleaseKernel(play.add));
    ck_ok(clReleaseKernel(play.sum));
    ck_ok(clReleaseProgram(program));
    ck_assert_uint_gt(count(&launches[0]), 0);
    ck_assert_uint_gt(count(&launches[1]), 0);
    ck_assert_uint_gt(count(&maps), 0);
    ck_assert_uint_eq(count(&violations), 0);
}
END_TEST

/* The device must have what pointers in its data lead to. */
START_TEST(pointers_in_data) {
    cl_program program = make_program(WALK_SOURCE);
    cl_kernel walk = make_kernel(program, "walk");
    struct node *node[NODES];

    make_nodes(node, walk, 1);
    for (int i = 0; i < 10; i++)
        launch(walk, 1);
    check_nodes(node, 10);
    free_nodes(node);
    ck_ok(clReleaseKernel(walk));
    ck_ok(clReleaseProgram(program));
    ck_assert_uint_eq(count(&violations), 0);
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {two_contents, pointers_in_data};
    setenv("POCL_DEVICES", "pthread basic", 1);
    setenv("TUTTI_DEVICES", "portable", 1);
    setenv("TUTTI_SCHED", "random", 1);
    setenv("TUTTI_MODELS", "none", 1);
    if (!change_driver()) {
        puts("1..0 # SKIP PoCL is not there with two devices");
        return 0;
    }
    return test_main(argc, argv, tests, COUNT(tests));
}
