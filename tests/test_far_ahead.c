/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: a program that sends frame after frame through a GPU and waits once, in the end. It
 * is far ahead of the GPU, which gets all the same each command as it comes, past StarPU, in the
 * order that the program's arrays ask for. PoCL stands in for the GPU, with kernels of 12 µs.
 */
enum { N = 256, FEW = 4 };

#include "frame_stream.h"

START_TEST(many_commands_under_way) { ck_given_as_it_comes(500000000, 14, SLOTS, warm); }
END_TEST

/* The program waits then, as in a driver, for the GPU not to be too far behind. */
START_TEST(more_than_that) { ck_given_as_it_comes(20000000, FRAMES, SLOTS, warm); }
END_TEST

/* A read to where another one reads to need not wait for that to end. */
START_TEST(the_devices_queue_keeps_the_order) {
    ck_given_as_it_comes(500000000, 3 * FEW, FEW, warm);
}
END_TEST

static cl_command_queue plain;

static void run_alone(int i) {
    const size_t items = N;
    cl_event event;
    ck_ok(clSetKernelArg(next, 0, sizeof(cl_mem), &between[i % 2]));
    ck_ok(clSetKernelArg(next, 1, sizeof(cl_mem), &between[(i + 1) % 2]));
    ck_ok(clEnqueueNDRangeKernel(plain, next, 1, NULL, &items, NULL, 0, NULL, &event));
    ck_ok(clReleaseEvent(event));
}

/*
 * Kernels with events, and no transfer among them, are collected while the GPU works, and given to
 * StarPU's worker many at a time: to enqueue each would take the program's thread longer.
 */
START_TEST(kernels_with_events_are_collected) {
    enum { MANY = 2000 };
    int past = MANY;
    begin();
    plain = make_queue(0);         /* the suite's own is profiled */
    for (int i = 0; i < 20; i++) { /* how long they take is known then */
        run_alone(i);
        ck_ok(clFinish(plain));
    }
    for (int attempt = 0; attempt < 5 && past > MANY / 2; attempt++) {
        test_went_directly();
        slow_set_length(50000000);
        run_alone(0);
        slow_set_length(kernel_length);
        for (int i = 0; i < MANY; i++)
            run_alone(i + 1);
        ck_ok(clFinish(plain));
        past = test_went_directly();
    }
    ck_assert_int_le(past, MANY / 2);
    ck_ok(clReleaseCommandQueue(plain));
    end();
}
END_TEST

/* All of one array: what was read to it is what is written next. */
START_TEST(one_array_there_and_back) {
    enum { ROUNDS = 200 };
    int wrong = 0;
    begin();
    for (int attempt = 0; attempt < 5; attempt++) {
        for (int i = 0; i < N; i++)
            back[0][i] = i;
        for (int r = 0; r < ROUNDS; r++) {
            write_later(frame, back[0]);
            run(next, frame, between[r % 2]);
            read_later(between[r % 2], back[0]);
        }
        ck_ok(clFinish(queue));
        for (int i = 0; i < N; i++)
            wrong += back[0][i] != i + ROUNDS;
    }
    ck_assert_int_eq(wrong, 0);
    end();
}
END_TEST

/* The same with kernels that StarPU places, and the host's work, among them. */
static void CL_CALLBACK add_two(void *arguments) {
    (void)arguments;
    for (int i = 0; i < N; i++)
        back[0][i] += 2;
}

START_TEST(and_with_others_among_them) {
    enum { ROUNDS = 120 };
    int wrong = 0, more = 0;
    begin();
    cl_mem large = make_buffer(0, (size_t)4 << 20, NULL);
    for (int i = 0; i < N; i++)
        back[0][i] = i;
    for (int r = 0; r < ROUNDS; r++) {
        const cl_int pattern = r;
        write_later(frame, back[0]);
        run(next, frame, between[r % 2]);
        read_later(between[r % 2], back[0]);
        if (r % 7 == 3) {
            ck_ok(clEnqueueNativeKernel(queue, add_two, NULL, 0, 0, NULL, NULL, 0, NULL, NULL));
            more += 2;
        }
        if (r % 5 == 1)
            ck_ok(clEnqueueFillBuffer(queue, large, &pattern, sizeof(pattern), 0, (size_t)4 << 20,
                                      0, NULL, NULL));
        if (r % 11 == 2)
            run(count, between[r % 2], large);
    }
    ck_ok(clFinish(queue));
    for (int i = 0; i < N; i++)
        wrong += back[0][i] != i + ROUNDS + more;
    ck_assert_int_eq(wrong, 0);
    ck_ok(clReleaseMemObject(large));
    end();
}
END_TEST

static void CL_CALLBACK free_bytes(cl_event event, cl_int status, void *bytes) {
    (void)event;
    (void)status;
    free(bytes);
}

/* NVIDIA's driver takes the bytes of small writes as they are when it is called. */
static cl_int CL_API_CALL write_early(cl_command_queue on, cl_mem to, cl_bool blocking,
                                      size_t offset, size_t size, const void *from, cl_uint waits,
                                      const cl_event *list, cl_event *event) {
    cl_event own;
    void *bytes = malloc(size);
    if (!bytes)
        return CL_OUT_OF_HOST_MEMORY;
    memcpy(bytes, from, size);
    cl_int result =
        real.clEnqueueWriteBuffer(on, to, blocking, offset, size, bytes, waits, list, &own);
    if (result != CL_SUCCESS) {
        free(bytes);
        return result;
    }
    real.clSetEventCallback(own, CL_COMPLETE, free_bytes, bytes);
    if (event)
        *event = own;
    else
        real.clReleaseEvent(own);
    return result;
}

static void change(cl_icd_dispatch *driver) {
    slow_change(driver);
    driver->clEnqueueWriteBuffer = write_early;
    slow.length = kernel_length;
}

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        many_commands_under_way,           more_than_that,
        the_devices_queue_keeps_the_order, kernels_with_events_are_collected,
        one_array_there_and_back,          and_with_others_among_them};
    return pocl_gpu_begin("pthread", change) ? test_main_logged(argc, argv, tests, COUNT(tests))
                                             : 0;
}
