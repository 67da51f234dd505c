/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: a program that does the same again and again makes the driver allocate nothing anew.
 * The C library's allocator is this program's, which counts calls that come from the driver.
 */
#define _GNU_SOURCE
#include "support.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>

enum { ITEMS = 64, BYTES = ITEMS * sizeof(cl_int), BURST = 50, WARM = 40, ROUNDS = 120 };

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED true /* it has an allocator of its own */
#endif
#endif
#ifndef SANITIZED
#define SANITIZED false
#endif

static struct { uintptr_t begin, end; } driver; /* its code */
static atomic_bool counting;
static atomic_uint calls;

#if !SANITIZED

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t number, size_t size);
void *__libc_realloc(void *memory, size_t size);

static void count(const void *caller) {
    if (atomic_load(&counting) && (uintptr_t)caller >= driver.begin &&
        (uintptr_t)caller < driver.end)
        atomic_fetch_add(&calls, 1);
}

void *malloc(size_t size) {
    count(__builtin_return_address(0));
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    count(__builtin_return_address(0));
    return __libc_calloc(number, size);
}

void *realloc(void *memory, size_t size) {
    count(__builtin_return_address(0));
    return __libc_realloc(memory, size);
}

#endif

static int find_driver(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size;
    (void)unused;
    if (!strstr(info->dlpi_name, "libtutti"))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
            driver.begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            driver.end = driver.begin + info->dlpi_phdr[i].p_memsz;
        }
    return 1;
}

static cl_command_queue plain;
static cl_program program;
static cl_kernel kernel;
static cl_mem data, other;

static void begin(void) {
    cl_int one = 1;

    dl_iterate_phdr(find_driver, NULL);
    ck_assert(driver.begin != 0);
    plain = ck_made(clCreateCommandQueue(context, device, 0, &error));
    program = make_program("kernel void add(global int *data, int by) {"
                           "    data[get_global_id(0)] += by;"
                           "}");
    kernel = ck_made(clCreateKernel(program, "add", &error));
    data = make_buffer(CL_MEM_READ_WRITE, BYTES, NULL);
    other = make_buffer(CL_MEM_READ_WRITE, BYTES, NULL);
    ck_ok(clEnqueueFillBuffer(plain, data, &one, sizeof(one), 0, BYTES, 0, NULL, NULL));
    ck_ok(clEnqueueFillBuffer(plain, other, &one, sizeof(one), 0, BYTES, 0, NULL, NULL));
    ck_ok(clFinish(plain));
}

static void end(void) {
    ck_ok(clReleaseMemObject(data));
    ck_ok(clReleaseMemObject(other));
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(program));
    ck_ok(clReleaseCommandQueue(plain));
}

static void add_one(cl_command_queue on, cl_mem buffer, const cl_event *after, cl_event *event) {
    size_t items = ITEMS;
    cl_int by = 1;

    ck_ok(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(kernel, 1, sizeof(by), &by));
    ck_ok(clEnqueueNDRangeKernel(on, kernel, 1, NULL, &items, NULL, after ? 1 : 0, after, event));
}

/*
 * Where each took several blocks, one in five commands may: on a busy machine other threads come to
 * it, which keep a few.
 */
static void ck_allocates_nothing(void (*round)(void), unsigned commands) {
    skip_if(SANITIZED, "the sanitizer's allocator is not counted");
    begin();
    for (int i = 0; i < WARM; i++)
        round();
    atomic_store(&calls, 0);
    atomic_store(&counting, true);
    for (int i = 0; i < ROUNDS; i++)
        round();
    atomic_store(&counting, false);
    unsigned seen = atomic_load(&calls);
    ck_assert_uint_le(seen, ROUNDS * commands / 5);
    end();
}

static void kernels_in_a_row(void) {
    for (int i = 0; i < BURST; i++)
        add_one(plain, i % 2 ? data : other, NULL, NULL);
    ck_ok(clFinish(plain));
}

START_TEST(kernels) { ck_allocates_nothing(kernels_in_a_row, BURST); }
END_TEST

static void kernels_with_events(void) {
    cl_event event[BURST];

    for (int i = 0; i < BURST; i++)
        add_one(queue, data, i ? &event[i - 1] : NULL, &event[i]);
    ck_ok(clWaitForEvents(1, &event[BURST - 1]));
    for (int i = 0; i < BURST; i++)
        ck_ok(clReleaseEvent(event[i]));
}

START_TEST(events) { ck_allocates_nothing(kernels_with_events, BURST); }
END_TEST

static void loop_with_a_residual(void) {
    cl_int value = 0;

    for (int i = 0; i < BURST / 2; i++) {
        ck_ok(clEnqueueWriteBuffer(plain, data, CL_FALSE, 0, sizeof(value), &value, 0, NULL, NULL));
        add_one(plain, data, NULL, NULL);
        ck_ok(clEnqueueReadBuffer(plain, data, CL_TRUE, 0, sizeof(value), &value, 0, NULL, NULL));
        ck_assert_int_eq(value, i + 1);
    }
}

START_TEST(small_transfers) { ck_allocates_nothing(loop_with_a_residual, 3 * (BURST / 2)); }
END_TEST

static void kernels_and_maps(void) {
    for (int i = 0; i < BURST / 2; i++) {
        add_one(plain, data, NULL, NULL);
        cl_int *mapped = ck_made(
            clEnqueueMapBuffer(plain, data, CL_TRUE, CL_MAP_READ, 0, BYTES, 0, NULL, NULL, &error));
        ck_ok(clEnqueueUnmapMemObject(plain, data, mapped, 0, NULL, NULL));
    }
    ck_ok(clFinish(plain));
}

START_TEST(maps) { ck_allocates_nothing(kernels_and_maps, 3 * (BURST / 2)); }
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {kernels, events, small_transfers, maps};

    return test_main(argc, argv, tests, COUNT(tests));
}
