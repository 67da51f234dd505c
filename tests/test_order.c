/* SPDX-License-Identifier: MIT */
/*
 * What a program can observe of the order of its commands, above all in an in-order queue, which
 * a driver may relax only where nobody can tell.
 */
#include "support.h"

enum { N = 4096, BYTES = N * sizeof(cl_int) };

static cl_program program;
static cl_kernel set, add, copy, slow;

static void begin(void) {
    program = make_program(common_source);
    set = make_kernel(program, "set");
    add = make_kernel(program, "add");
    copy = make_kernel(program, "copy");
    slow = make_kernel(program, "slow");
}

static void end(void) {
    ck_ok(clReleaseKernel(set));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseKernel(copy));
    ck_ok(clReleaseKernel(slow));
    ck_ok(clReleaseProgram(program));
}

static void run(cl_kernel kernel, cl_mem buffer, cl_int value) {
    ck_ok(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(kernel, 1, sizeof(value), &value));
    launch(kernel, N);
}

static void run_copy(cl_mem from, cl_mem to) {
    ck_ok(clSetKernelArg(copy, 0, sizeof(from), &from));
    ck_ok(clSetKernelArg(copy, 1, sizeof(to), &to));
    launch(copy, N);
}

/* Keeps the device busy with this buffer for a while, and leaves it full of this value. */
static void occupy(cl_mem buffer, cl_int value) {
    run(slow, buffer, 20000);
    run(set, buffer, value);
}

static void all_equal(const cl_int *values, cl_int wanted, const char *what) {
    for (int i = 0; i < N; i++)
        ck_assert_msg(values[i] == wanted, "%s: element %d is %d, expected %d", what, i, values[i],
                      wanted);
}

START_TEST(read_then_write_of_the_same_host_memory) {
    cl_mem a = make_buffer(0, BYTES, NULL), b = make_buffer(0, BYTES, NULL);
    cl_int *host = calloc(1, BYTES), *seen = calloc(1, BYTES);

    begin();
    /* The write needs what the read brings, and only the host memory says so. */
    for (cl_int round = 1; round <= 10; round++) {
        occupy(a, round);
        ck_ok(clEnqueueReadBuffer(queue, a, CL_FALSE, 0, BYTES, host, 0, NULL, NULL));
        ck_ok(clEnqueueWriteBuffer(queue, b, CL_FALSE, 0, BYTES, host, 0, NULL, NULL));
        ck_ok(clEnqueueReadBuffer(queue, b, CL_TRUE, 0, BYTES, seen, 0, NULL, NULL));
        all_equal(seen, round, "what came back");
    }
    free(host);
    free(seen);
    ck_ok(clReleaseMemObject(a));
    ck_ok(clReleaseMemObject(b));
    end();
}
END_TEST

START_TEST(write_then_read_of_the_same_host_memory) {
    cl_mem a = make_buffer(0, BYTES, NULL), b = make_buffer(0, BYTES, NULL);
    cl_int *host = calloc(1, BYTES), *seen = calloc(1, BYTES);

    begin();
    /* The read must not overwrite what the write still has to take. */
    for (cl_int round = 1; round <= 10; round++) {
        for (int i = 0; i < N; i++)
            host[i] = -round;
        run(set, b, round);
        run(slow, a, 20000);
        ck_ok(clEnqueueWriteBuffer(queue, a, CL_FALSE, 0, BYTES, host, 0, NULL, NULL));
        ck_ok(clEnqueueReadBuffer(queue, b, CL_FALSE, 0, BYTES, host, 0, NULL, NULL));
        ck_ok(clEnqueueReadBuffer(queue, a, CL_FALSE, 0, BYTES, seen, 0, NULL, NULL));
        ck_ok(clFinish(queue));
        all_equal(seen, -round, "what was written");
        all_equal(host, round, "what was read");
    }
    free(host);
    free(seen);
    ck_ok(clReleaseMemObject(a));
    ck_ok(clReleaseMemObject(b));
    end();
}
END_TEST

START_TEST(two_reads_into_the_same_host_memory) {
    cl_mem a = make_buffer(0, BYTES, NULL), b = make_buffer(0, BYTES, NULL);
    cl_int *host = calloc(1, BYTES);

    begin();
    for (cl_int round = 1; round <= 10; round++) {
        run(set, b, -round);
        occupy(a, round);
        ck_ok(clEnqueueReadBuffer(queue, a, CL_FALSE, 0, BYTES, host, 0, NULL, NULL));
        ck_ok(clEnqueueReadBuffer(queue, b, CL_FALSE, 0, BYTES, host, 0, NULL, NULL));
        ck_ok(clFinish(queue));
        all_equal(host, -round, "the later read");
    }
    free(host);
    ck_ok(clReleaseMemObject(a));
    ck_ok(clReleaseMemObject(b));
    end();
}
END_TEST

START_TEST(host_ranges_that_overlap_in_part) {
    cl_mem a = make_buffer(0, BYTES, NULL), b = make_buffer(0, BYTES, NULL);
    cl_int *host = calloc(2, BYTES), *seen = calloc(1, BYTES);

    begin();
    occupy(a, 5);
    run(set, b, 0);
    ck_ok(clEnqueueReadBuffer(queue, a, CL_FALSE, 0, BYTES, host + N / 2, 0, NULL, NULL));
    ck_ok(clEnqueueWriteBuffer(queue, b, CL_FALSE, 0, BYTES, host, 0, NULL, NULL));
    ck_ok(clEnqueueReadBuffer(queue, b, CL_TRUE, 0, BYTES, seen, 0, NULL, NULL));
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(seen[i], i < N / 2 ? 0 : 5);
    free(host);
    free(seen);
    ck_ok(clReleaseMemObject(a));
    ck_ok(clReleaseMemObject(b));
    end();
}
END_TEST

START_TEST(the_last_reader_is_not_the_only_one) {
    cl_mem x = make_buffer(0, BYTES, NULL), y = make_buffer(0, BYTES, NULL);
    cl_int *host = calloc(1, BYTES), *back = calloc(1, BYTES), *seen = calloc(1, BYTES);

    begin();
    /* A kernel reads x, then a transfer reads it; a write waits for both. */
    for (cl_int round = 1; round <= 20; round++) {
        for (int i = 0; i < N; i++)
            host[i] = -round;
        run(set, x, round);
        run(slow, y, 20000);
        run_copy(x, y);
        ck_ok(clEnqueueReadBuffer(queue, x, CL_FALSE, 0, BYTES, back, 0, NULL, NULL));
        ck_ok(clEnqueueWriteBuffer(queue, x, CL_FALSE, 0, BYTES, host, 0, NULL, NULL));
        ck_ok(clEnqueueReadBuffer(queue, y, CL_FALSE, 0, BYTES, seen, 0, NULL, NULL));
        ck_ok(clFinish(queue));
        all_equal(seen, round, "the kernel's copy");
        all_equal(back, round, "the transfer's copy");
    }
    free(host);
    free(back);
    free(seen);
    ck_ok(clReleaseMemObject(x));
    ck_ok(clReleaseMemObject(y));
    end();
}
END_TEST

START_TEST(a_chain_over_many_buffers) {
    enum { MANY = 16 };
    cl_mem buffers[MANY];
    cl_int *seen = calloc(1, BYTES);

    begin();
    for (int i = 0; i < MANY; i++) {
        buffers[i] = make_buffer(0, BYTES, NULL);
        run(set, buffers[i], -1);
    }
    run(set, buffers[0], 0);
    for (int i = 0; i < 10 * MANY; i++) {
        run(add, buffers[i % MANY], 1);
        run_copy(buffers[i % MANY], buffers[(i + 1) % MANY]);
    }
    ck_ok(clEnqueueReadBuffer(queue, buffers[0], CL_TRUE, 0, BYTES, seen, 0, NULL, NULL));
    all_equal(seen, 10 * MANY, "the end of the chain");
    for (int i = 0; i < MANY; i++)
        ck_ok(clReleaseMemObject(buffers[i]));
    free(seen);
    end();
}
END_TEST

START_TEST(events_of_an_in_order_queue_complete_in_order) {
    enum { MANY = 32 };
    cl_mem buffers[MANY];
    cl_event events[MANY];

    begin();
    for (int i = 0; i < MANY; i++)
        buffers[i] = make_buffer(0, BYTES, NULL);
    for (int i = 0; i < MANY; i++) {
        /* The first ones are long, the later ones short and on other buffers. */
        if (i % 4 == 0)
            run(slow, buffers[i], 5000);
        ck_ok(clEnqueueFillBuffer(queue, buffers[i], &i, 4, 0, BYTES, 0, NULL, &events[i]));
    }
    ck_ok(clFlush(queue));
    for (;;) {
        cl_int status[MANY];
        int done;

        /* Read from the last to the first: a completed one proves all before it. */
        for (int i = MANY - 1; i >= 0; i--)
            status[i] = event_status(events[i]);
        for (done = MANY; done > 0 && status[done - 1] != CL_COMPLETE; done--)
            continue;
        for (int i = 0; i < done; i++)
            ck_assert_msg(status[i] == CL_COMPLETE, "command %d completed before %d", done - 1, i);
        if (done == MANY)
            break;
    }
    ck_ok(clFinish(queue));
    for (int i = 0; i < MANY; i++) {
        ck_ok(clReleaseEvent(events[i]));
        ck_ok(clReleaseMemObject(buffers[i]));
    }
    end();
}
END_TEST

static void CL_CALLBACK increment_all(void *data) {
    cl_int *values = *(cl_int **)data;

    for (int i = 0; i < N; i++)
        values[i] += 1;
}

START_TEST(native_kernels_keep_their_place) {
    cl_mem buffer = make_buffer(0, BYTES, NULL);
    cl_int *seen = calloc(1, BYTES);
    void *pointer = NULL;
    const void *place = &pointer;

    skip_if(!(get_info(cl_device_exec_capabilities, clGetDeviceInfo, device,
                       CL_DEVICE_EXECUTION_CAPABILITIES) &
              CL_EXEC_NATIVE_KERNEL),
            "this device has no native kernels");
    begin();
    run(set, buffer, 0);
    for (int i = 0; i < 50; i++) {
        run(add, buffer, 100);
        ck_ok(clEnqueueNativeKernel(queue, increment_all, &pointer, sizeof(pointer), 1, &buffer,
                                    &place, 0, NULL, NULL));
    }
    ck_ok(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, BYTES, seen, 0, NULL, NULL));
    all_equal(seen, 50 * 101, "kernels and native kernels");
    free(seen);
    ck_ok(clReleaseMemObject(buffer));
    end();
}
END_TEST

/* A kernel of `on` behind which the copy of a to b comes; `wait` holds it. */
static void copy_behind(cl_command_queue on, cl_event wait, cl_mem other, cl_mem a, cl_mem b) {
    const size_t all = N;
    cl_int value = 1;

    ck_ok(clSetKernelArg(set, 0, sizeof(other), &other));
    ck_ok(clSetKernelArg(set, 1, sizeof(value), &value));
    ck_ok(clEnqueueNDRangeKernel(on, set, 1, NULL, &all, NULL, 1, &wait, NULL));
    ck_ok(clEnqueueCopyBuffer(on, a, b, 0, 0, BYTES, 0, NULL, NULL));
}

START_TEST(behind_a_command_that_waits_for_another_queue) {
    cl_mem a = make_buffer(0, BYTES, NULL), b = make_buffer(0, BYTES, NULL);
    cl_mem other = make_buffer(0, BYTES, NULL);
    cl_command_queue second = make_queue(0);
    cl_event gate = make_user_event(), written;
    cl_int seven = 7, *seen = calloc(1, BYTES);

    begin();
    run(set, a, 1);
    ck_ok(clFinish(queue));
    /* The copy has nothing in common with the command before it, which waits for a's new value. */
    ck_ok(clEnqueueFillBuffer(second, a, &seven, 4, 0, BYTES, 1, &gate, &written));
    copy_behind(queue, written, other, a, b);
    ck_ok(clFlush(queue));
    ck_ok(clFlush(second));
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    read_ints(b, seen, N);
    all_equal(seen, 7, "what was copied");
    free(seen);
    ck_ok(clReleaseEvent(gate));
    ck_ok(clReleaseEvent(written));
    ck_ok(clReleaseCommandQueue(second));
    ck_ok(clReleaseMemObject(a));
    ck_ok(clReleaseMemObject(b));
    ck_ok(clReleaseMemObject(other));
    end();
}
END_TEST

START_TEST(behind_a_command_that_waits_for_the_program) {
    cl_mem a = make_buffer(0, BYTES, NULL), b = make_buffer(0, BYTES, NULL);
    cl_mem other = make_buffer(0, BYTES, NULL);
    cl_command_queue second = make_queue(0);
    cl_event gate = make_user_event();
    cl_int *host = malloc(BYTES), *seen = calloc(1, BYTES);

    begin();
    run(set, a, 1);
    ck_ok(clFinish(queue));
    copy_behind(queue, gate, other, a, b);
    ck_ok(clFlush(queue));
    /* The program lets the first command go only when it has written what the copy reads. */
    for (int i = 0; i < N; i++)
        host[i] = 7;
    ck_ok(clEnqueueWriteBuffer(second, a, CL_TRUE, 0, BYTES, host, 0, NULL, NULL));
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    read_ints(b, seen, N);
    all_equal(seen, 7, "what was copied");
    free(host);
    free(seen);
    ck_ok(clReleaseEvent(gate));
    ck_ok(clReleaseCommandQueue(second));
    ck_ok(clReleaseMemObject(a));
    ck_ok(clReleaseMemObject(b));
    ck_ok(clReleaseMemObject(other));
    end();
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        read_then_write_of_the_same_host_memory,
        write_then_read_of_the_same_host_memory,
        two_reads_into_the_same_host_memory,
        host_ranges_that_overlap_in_part,
        the_last_reader_is_not_the_only_one,
        a_chain_over_many_buffers,
        events_of_an_in_order_queue_complete_in_order,
        native_kernels_keep_their_place,
        behind_a_command_that_waits_for_another_queue,
        behind_a_command_that_waits_for_the_program,
    };

    return test_main(argc, argv, tests, COUNT(tests));
}
