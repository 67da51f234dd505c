/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: the memory that a released buffer had on a GPU serves the next one, no more than a
 * part of the GPU's is kept so, and none once the program rests. PoCL stands in for the GPU, whose
 * driver counts what it makes.
 */
#include "pocl_gpu.h"
#include "restless.h"

#include <pthread.h>

enum { MIB = 1 << 20, FIRST = 20, ROUNDS = 80, NEVER = 60000 /* ms */ };
enum { GPU_MEMORY = 256 * MIB, KEPT_MEMORY = GPU_MEMORY / 8, KEPT_OBJECTS = 1024 };

static struct {
    pthread_mutex_t lock; /* guards what follows */
    struct {
        cl_mem mem;
        size_t size;
    } object[2048];
    size_t bytes; /* of all that there are */
    unsigned objects, created;
} made = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Not those over memory of the host's. */
static cl_mem CL_API_CALL create(cl_context in, cl_mem_flags flags, size_t size, void *host,
                                 cl_int *result) {
    cl_mem mem = real.clCreateBuffer(in, flags, size, host, result);
    unsigned place = 0;
    if (!mem || flags & (CL_MEM_ALLOC_HOST_PTR | CL_MEM_USE_HOST_PTR))
        return mem;
    pthread_mutex_lock(&made.lock);
    while (made.object[place].mem)
        place++;
    made.object[place].mem = mem;
    made.object[place].size = size;
    made.bytes += size;
    made.objects++;
    made.created++;
    pthread_mutex_unlock(&made.lock);
    return mem;
}

static cl_int CL_API_CALL release(cl_mem mem) {
    pthread_mutex_lock(&made.lock);
    for (unsigned i = 0; i < COUNT(made.object); i++)
        if (made.object[i].mem == mem) {
            made.object[i].mem = NULL;
            made.bytes -= made.object[i].size;
            made.objects--;
        }
    pthread_mutex_unlock(&made.lock);
    return real.clReleaseMemObject(mem);
}

static cl_int CL_API_CALL tell_memory(cl_device_id of, cl_device_info what, size_t size,
                                      void *value, size_t *size_ret) {
    cl_int result = get_device_info(of, what, size, value, size_ret);
    if (result == CL_SUCCESS && value && what == CL_DEVICE_GLOBAL_MEM_SIZE && is_gpu(of))
        *(cl_ulong *)value = GPU_MEMORY;
    return result;
}

static void change(cl_icd_dispatch *table) {
    table->clCreateBuffer = create;
    table->clReleaseMemObject = release;
    table->clGetDeviceInfo = tell_memory;
}

static unsigned count_created(void) {
    pthread_mutex_lock(&made.lock);
    unsigned created = made.created;
    pthread_mutex_unlock(&made.lock);
    return created;
}

static bool is_within(size_t bytes, unsigned objects) {
    pthread_mutex_lock(&made.lock);
    bool within = made.bytes <= bytes && made.objects <= objects;
    pthread_mutex_unlock(&made.lock);
    return within;
}

static cl_program program;
static cl_kernel set;

static void begin(void) {
    program = make_program(common_source);
    set = make_kernel(program, "set");
}

static void end(void) {
    ck_ok(clReleaseKernel(set));
    ck_ok(clReleaseProgram(program));
}

static void set_all(cl_mem buffer, size_t size, cl_int value) {
    ck_ok(clSetKernelArg(set, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(set, 1, sizeof(value), &value));
    launch(set, size / sizeof(cl_int));
}

static void use_once(size_t size, cl_int value) {
    cl_mem buffer = make_buffer(0, size, NULL);
    cl_int seen = -1;
    set_all(buffer, size, value);
    ck_ok(clEnqueueReadBuffer(queue, buffer, CL_TRUE, size - sizeof(seen), sizeof(seen), &seen, 0,
                              NULL, NULL));
    ck_assert_int_eq(seen, value);
    ck_ok(clReleaseMemObject(buffer));
}

START_TEST(the_next_one_gets_it) {
    const size_t size[] = {4 * MIB, 32 << 10, 4 << 10, 4 * MIB - 4};
    begin();
    for (size_t s = 0; s < COUNT(size); s++) {
        unsigned before = 0;
        be_restless();
        for (cl_int round = 0; round < FIRST + ROUNDS; round++) {
            if (round == FIRST)
                before = count_created();
            use_once(size[s], round);
        }
        ck_assert_uint_eq(count_created(), before);
        rest();
    }
    end();
}
END_TEST

/* Many at the same time; then there is a little more work, as a program that rests keeps nothing.
 */
static void use_many(size_t size, unsigned count) {
    cl_mem *buffer = malloc(count * sizeof(cl_mem));
    cl_mem other = make_buffer(0, 64, NULL);
    for (unsigned i = 0; i < count; i++) {
        buffer[i] = make_buffer(0, size, NULL);
        set_all(buffer[i], size, (cl_int)i);
    }
    ck_ok(clFinish(queue));
    ck_assert(!is_within(size * (count - 1), count - 1));
    for (unsigned i = 0; i < count; i++)
        ck_ok(clReleaseMemObject(buffer[i]));
    for (int i = 0; i < 100; i++) {
        set_all(other, 64, i);
        ck_ok(clFinish(queue));
    }
    ck_ok(clReleaseMemObject(other));
    free(buffer);
}

/* With some that other cases left, and what the library has for itself. */
START_TEST(little_of_the_memory_is_kept) {
    begin();
    use_many(4 * MIB, 2 * KEPT_MEMORY / (4 * MIB));
    ck_assert(is_within(KEPT_MEMORY + MIB, KEPT_OBJECTS));
    end();
}
END_TEST

START_TEST(a_thousand_are_kept) {
    begin();
    use_many(4096, KEPT_OBJECTS + 400);
    ck_assert(is_within(KEPT_MEMORY + MIB, KEPT_OBJECTS + 8));
    end();
}
END_TEST

START_TEST(none_is_while_the_program_rests) {
    begin();
    be_restless();
    use_once(4 * MIB, 1);
    ck_assert(!is_within(4 * MIB - 1, KEPT_OBJECTS));
    rest();
    for (int ms = 0; ms < NEVER && !is_within(0, 0); ms++)
        usleep(1000);
    ck_assert(is_within(0, 0));
    end();
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {the_next_one_gets_it, little_of_the_memory_is_kept,
                                  a_thousand_are_kept, none_is_while_the_program_rests};
    return test_main_gpu(argc, argv, tests, COUNT(tests), change);
}
