/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: a device whose driver has no more memory, as another process has it, while another
 * device has. PoCL stands in for two GPUs. StarPU's policy "random" sends each kernel to any
 * device.
 */
#include "pocl_gpu.h"

#include "task_counts.h"
#include "traffic.h"

#include <stdatomic.h>

enum { LEAST = 1 << 20, MANY = 12 };

/* Other ones each time: what was released is used again without asking the driver. */
static int ints;
#define BYTES ((size_t)ints * sizeof(cl_int))

/* By the number of the device: does it refuse what is large? And how often it did. */
static atomic_bool full[REAL];
static atomic_long refused;

static bool is_refused(cl_context driver_context, size_t size) {
    cl_device_id known[REAL] = {NULL}, of = NULL;
    cl_platform_id pocl;
    cl_uint count = 0;
    real.clGetContextInfo(driver_context, CL_CONTEXT_NUM_DEVICES, sizeof(count), &count, NULL);
    if (size < LEAST || count != 1)
        return false;
    real.clGetContextInfo(driver_context, CL_CONTEXT_DEVICES, sizeof(of), &of, NULL);
    real.clGetDeviceInfo(of, CL_DEVICE_PLATFORM, sizeof(pocl), &pocl, NULL);
    real.clGetDeviceIDs(pocl, CL_DEVICE_TYPE_ALL, REAL, known, NULL);
    for (int d = 0; d < REAL; d++)
        if (known[d] == of && atomic_load(&full[d])) {
            atomic_fetch_add(&refused, 1);
            return true;
        }
    return false;
}

static cl_mem CL_API_CALL create_buffer(cl_context of, cl_mem_flags flags, size_t size, void *host,
                                        cl_int *result) {
    if (!(flags & (CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR)) && is_refused(of, size)) {
        if (result)
            *result = CL_MEM_OBJECT_ALLOCATION_FAILURE;
        return NULL;
    }
    return real.clCreateBuffer(of, flags, size, host, result);
}

static void change(cl_icd_dispatch *table) { table->clCreateBuffer = create_buffer; }

static cl_program program;
static cl_kernel add, copy;

static void set_full(bool first, bool second) {
    atomic_store(&full[0], first);
    atomic_store(&full[1], second);
}

static void open_all(void) {
    static int opened;
    ints = LEAST + 5 + 16 * opened++;
    set_full(false, false);
    atomic_store(&refused, 0);
    program = make_program(common_source);
    add = make_kernel(program, "add");
    copy = make_kernel(program, "copy");
}

static void close_all(void) {
    set_full(false, false);
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseKernel(copy));
    ck_ok(clReleaseProgram(program));
}

static void add_to(cl_mem buffer, cl_int value, cl_event *event) {
    size_t items = ints;
    ck_ok(clSetKernelArg(add, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(add, 1, sizeof(value), &value));
    ck_ok(clEnqueueNDRangeKernel(queue, add, 1, NULL, &items, NULL, 0, NULL, event));
}

static void ck_ramp(cl_mem buffer, cl_int first) {
    cl_int *seen = malloc(BYTES);
    int wrong = 0;
    read_ints(buffer, seen, ints);
    while (wrong < ints && seen[wrong] == first + wrong)
        wrong++;
    ck_assert_msg(wrong == ints, "[%d] is %d, expected %d", wrong, seen[wrong], first + wrong);
    free(seen);
}

static cl_mem make_ramp(void) {
    cl_int *values = malloc(BYTES);
    cl_mem buffer = make_buffer(0, BYTES, NULL);
    for (int i = 0; i < ints; i++)
        values[i] = i;
    write_ints(buffer, values, ints);
    free(values);
    return buffer;
}

static int instead(void) { return test_log_count("executes instead"); }

static bool own_policy; /* which avoids it */

static void ck_instead(void) { ck_assert(instead() > 0 || own_policy); }

/* Each of them is right, whichever device it was meant for; nobody asks the driver all the time. */
static void run_while_full(int which) {
    cl_mem buffer[MANY];
    skip_if(real_devices() < 2, "one real device only");
    open_all();
    instead();
    set_full(which == 0, which == 1);
    for (int i = 0; i < MANY; i++) {
        buffer[i] = make_ramp();
        add_to(buffer[i], 7, NULL);
    }
    ck_ok(clFinish(queue));
    for (int i = 0; i < MANY; i++)
        add_to(buffer[i], i, NULL);
    ck_ok(clFinish(queue));
    for (int i = 0; i < MANY; i++) {
        ck_ramp(buffer[i], 7 + i);
        ck_ok(clReleaseMemObject(buffer[i]));
    }
    ck_instead();
    ck_assert_int_lt(atomic_load(&refused), 40000);
    close_all();
}

START_TEST(the_first_is_full) { run_while_full(0); }
END_TEST

START_TEST(the_second_is_full) { run_while_full(1); }
END_TEST

/* What was there before stays, is read from there, and makes room or is changed elsewhere. */
START_TEST(what_was_there) {
    skip_if(real_devices() < 2, "one real device only");
    open_all();
    cl_mem a = make_ramp(), b = make_ramp(), made[MANY];
    for (int i = 0; i < MANY; i++) {
        add_to(a, 1, NULL);
        add_to(b, 2, NULL);
    }
    ck_ok(clFinish(queue));
    for (int i = 0; i < MANY; i++) {
        size_t items = ints;
        made[i] = make_buffer(0, BYTES, NULL);
        set_full(i % 2, !(i % 2));
        ck_ok(clSetKernelArg(copy, 0, sizeof(a), &a));
        ck_ok(clSetKernelArg(copy, 1, sizeof(cl_mem), &made[i]));
        ck_ok(clEnqueueNDRangeKernel(queue, copy, 1, NULL, &items, NULL, 0, NULL, NULL));
        add_to(made[i], 1, NULL);
        ck_ok(clEnqueueCopyBuffer(queue, made[i], a, 0, 0, BYTES, 0, NULL, NULL));
        add_to(b, 2, NULL);
        ck_ok(clFinish(queue));
        ck_ramp(made[i], MANY + i + 1);
    }
    ck_assert_int_gt(atomic_load(&refused), 0);
    for (int i = 0; i < MANY; i++)
        ck_ok(clReleaseMemObject(made[i]));
    ck_ramp(a, 2 * MANY);
    ck_ramp(b, 4 * MANY);
    ck_ok(clReleaseMemObject(a));
    ck_ok(clReleaseMemObject(b));
    close_all();
}
END_TEST

/* The command fails, and its buffer is as it was. */
START_TEST(both_are_full) {
    skip_if(real_devices() < 2, "one real device only");
    open_all();
    cl_mem buffer = make_ramp();
    cl_event event;
    cl_int status;
    set_full(true, true);
    add_to(buffer, 1, &event);
    ck_assert_int_eq(clWaitForEvents(1, &event), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    ck_ok(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL));
    ck_assert_int_eq(status, CL_MEM_OBJECT_ALLOCATION_FAILURE);
    ck_ok(clReleaseEvent(event));
    clFinish(queue);
    ck_ramp(buffer, 0);
    set_full(false, false);
    add_to(buffer, 1, NULL);
    ck_ok(clFinish(queue));
    ck_ramp(buffer, 1);
    ck_ok(clReleaseMemObject(buffer));
    close_all();
}
END_TEST

/* Its times are those of its execution. */
START_TEST(with_times) {
    skip_if(real_devices() < 2, "one real device only");
    open_all();
    cl_command_queue own = make_queue(CL_QUEUE_PROFILING_ENABLE);
    cl_mem buffer = make_ramp();
    instead();
    for (int i = 0; i < MANY; i++) {
        cl_event event;
        cl_ulong start, end;
        size_t items = ints;
        cl_int one = 1;
        cl_mem fresh = make_buffer(0, BYTES, NULL);
        set_full(true, false);
        ck_ok(clEnqueueCopyBuffer(own, buffer, fresh, 0, 0, BYTES, 0, NULL, NULL));
        ck_ok(clSetKernelArg(add, 0, sizeof(fresh), &fresh));
        ck_ok(clSetKernelArg(add, 1, sizeof(one), &one));
        ck_ok(clEnqueueNDRangeKernel(own, add, 1, NULL, &items, NULL, 0, NULL, &event));
        ck_ok(clWaitForEvents(1, &event));
        ck_ok(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof(start), &start,
                                      NULL));
        ck_ok(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(end), &end, NULL));
        ck_assert_uint_gt(start, 0);
        ck_assert_uint_gt(end, start);
        ck_ok(clReleaseEvent(event));
        ck_ramp(fresh, 1);
        ck_ok(clReleaseMemObject(fresh));
    }
    ck_instead();
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseCommandQueue(own));
    close_all();
}
END_TEST

/* Tutti's own policy sends what follows to the other device at once. */
START_TEST(what_follows) {
    cl_mem buffer[2 * MANY];
    open_all();
    for (int which = 0; which < 2; which++) {
        set_full(which == 0, which == 1);
        for (int i = 0; i < 2 * MANY; i++) {
            buffer[i] = make_ramp();
            add_to(buffer[i], 1, NULL);
        }
        ck_ok(clFinish(queue));
        instead();
        for (int i = 0; i < 2 * MANY; i++)
            ck_ok(clReleaseMemObject(buffer[i]));
        for (int i = 0; i < MANY; i++) {
            buffer[i] = make_ramp();
            add_to(buffer[i], 2, NULL);
        }
        ck_ok(clFinish(queue));
        ck_assert_int_le(instead(), MANY / 4);
        for (int i = 0; i < MANY; i++) {
            ck_ramp(buffer[i], 2);
            ck_ok(clReleaseMemObject(buffer[i]));
        }
    }
    close_all();
}
END_TEST

/* The only device has memory again: the buffer that it had none for is like any other. */
static void have_again(bool content) {
    cl_int *values = malloc(BYTES);
    for (int i = 0; i < ints; i++)
        values[i] = i;
    cl_mem buffer = make_buffer(content ? CL_MEM_COPY_HOST_PTR : 0, BYTES, content ? values : NULL);
    cl_event event;
    set_full(true, true);
    add_to(buffer, 1, &event);
    clWaitForEvents(1, &event);
    ck_assert_int_eq(event_status(event), CL_MEM_OBJECT_ALLOCATION_FAILURE);
    ck_ok(clReleaseEvent(event));
    clFinish(queue);
    set_full(false, false);
    if (!content)
        write_ints(buffer, values, (size_t)ints);
    add_to(buffer, 1, NULL);
    ck_ok(clFinish(queue));
    ck_ramp(buffer, 1);
    ck_ok(clReleaseMemObject(buffer));
    free(values);
}

START_TEST(there_is_some_again) {
    open_all();
    have_again(false);
    ints += 16;
    have_again(true);
    close_all();
}
END_TEST

START_TEST(with_one_device) { test_run_again("", "--one"); }
END_TEST

START_TEST(by_our_policy) { test_run_again("TUTTI_SCHED=tutti", "--policy"); }
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {the_first_is_full, the_second_is_full, what_was_there,
                                  both_are_full,     with_times,         by_our_policy,
                                  with_one_device};
    const TTest *const again[] = {the_first_is_full, the_second_is_full, what_was_there,
                                  both_are_full,     with_times,         what_follows};
    const TTest *const lone[] = {there_is_some_again};
    bool one = argc == 2 && strcmp(argv[1], "--one") == 0;
    own_policy = argc == 2 && strcmp(argv[1], "--policy") == 0;
    setenv("TUTTI_SCHED", own_policy ? "tutti" : "random", 1);
    setenv("TUTTI_TRANSFER", "staged", 1); /* else both share a context */
    if (!pocl_gpu_begin(one ? "pthread" : "pthread pthread", change))
        return 0;
    if (one)
        return test_main_logged(1, argv, lone, COUNT(lone));
    return own_policy ? test_main_logged(1, argv, again, COUNT(again))
                      : test_main_logged(argc, argv, tests, COUNT(tests));
}
