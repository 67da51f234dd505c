/* SPDX-License-Identifier: MIT */
#include "gate.h"

#include <pthread.h>
#include <unistd.h>

START_TEST(a_gate_holds_a_command) {
    cl_event event, after;

    begin();
    event = fill_after(queue, 5, 1, &gate);
    after = fill_after(queue, 6, 0, NULL);
    ck_ok(clFlush(queue));
    usleep(30000);
    ck_assert_int_gt(event_status(event), CL_COMPLETE);
    ck_assert_msg(event_status(after) > CL_COMPLETE, "an in-order queue completes in order");
    ck_assert_int_eq(first_value(), 0);
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    ck_ok(clWaitForEvents(1, &after));
    ck_assert_int_eq(event_status(event), CL_COMPLETE);
    ck_assert_int_eq(first_value(), 6);
    ck_ok(clReleaseEvent(event));
    ck_ok(clReleaseEvent(after));
    end();
}
END_TEST

START_TEST(a_gate_in_each_kind_of_command) {
    const size_t zero[3] = {0, 0, 0}, region[3] = {64, 1, 1}, one = 1;
    cl_int host[64] = {0};
    cl_program program = make_program(common_source);
    cl_kernel set = make_kernel(program, "set");
    cl_mem second = make_buffer(0, 256, NULL);
    cl_event events[12];
    void *mapped;

    begin();
    ck_ok(clSetKernelArg(set, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(set, 1, sizeof(cl_int), host));
    ck_ok(clEnqueueReadBuffer(queue, buffer, CL_FALSE, 0, 256, host, 1, &gate, &events[0]));
    ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, 256, host, 1, &gate, &events[1]));
    ck_ok(clEnqueueCopyBuffer(queue, buffer, second, 0, 0, 256, 1, &gate, &events[2]));
    ck_ok(clEnqueueFillBuffer(queue, buffer, host, 4, 0, 256, 1, &gate, &events[3]));
    ck_ok(clEnqueueReadBufferRect(queue, buffer, CL_FALSE, zero, zero, region, 0, 0, 0, 0, host, 1,
                                  &gate, &events[4]));
    ck_ok(clEnqueueWriteBufferRect(queue, buffer, CL_FALSE, zero, zero, region, 0, 0, 0, 0, host, 1,
                                   &gate, &events[5]));
    ck_ok(clEnqueueCopyBufferRect(queue, buffer, second, zero, zero, region, 0, 0, 0, 0, 1, &gate,
                                  &events[6]));
    ck_ok(clEnqueueNDRangeKernel(queue, set, 1, NULL, &one, NULL, 1, &gate, &events[7]));
    ck_ok(clEnqueueTask(queue, set, 1, &gate, &events[8]));
    ck_ok(clEnqueueMarkerWithWaitList(queue, 1, &gate, &events[9]));
    ck_ok(clEnqueueBarrierWithWaitList(queue, 1, &gate, &events[10]));
    mapped = ck_made(clEnqueueMapBuffer(queue, buffer, CL_FALSE, CL_MAP_READ, 0, 256, 1, &gate,
                                        &events[11], &error));
    ck_ok(clFlush(queue));
    usleep(20000);
    for (size_t i = 0; i < COUNT(events); i++)
        ck_assert_msg(event_status(events[i]) > CL_COMPLETE, "command %zu passed the gate", i);
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    ck_ok(clWaitForEvents(COUNT(events), events));
    ck_ok(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL));
    ck_ok(clFinish(queue));
    for (size_t i = 0; i < COUNT(events); i++) {
        ck_assert_int_eq(event_status(events[i]), CL_COMPLETE);
        ck_ok(clReleaseEvent(events[i]));
    }
    ck_ok(clReleaseMemObject(second));
    ck_ok(clReleaseKernel(set));
    ck_ok(clReleaseProgram(program));
    end();
}
END_TEST

START_TEST(wait_lists_cross_queues) {
    cl_command_queue queues[4];
    cl_event previous = NULL, next;
    cl_program program = make_program(common_source);
    cl_kernel add = make_kernel(program, "add");
    const size_t all = 64;
    cl_int one = 1;

    begin();
    for (size_t i = 0; i < COUNT(queues); i++)
        queues[i] = make_queue(0);
    ck_ok(clSetKernelArg(add, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(add, 1, sizeof(one), &one));
    for (int i = 0; i < 100; i++) {
        ck_ok(clEnqueueNDRangeKernel(queues[i % COUNT(queues)], add, 1, NULL, &all, NULL,
                                     previous ? 1 : 0, previous ? &previous : NULL, &next));
        /* An event that only a wait list still needs may be released. */
        if (previous)
            ck_ok(clReleaseEvent(previous));
        previous = next;
        ck_ok(clFlush(queues[i % COUNT(queues)]));
    }
    ck_ok(clWaitForEvents(1, &previous));
    ck_ok(clReleaseEvent(previous));
    ck_assert_int_eq(first_value(), 100);
    for (size_t i = 0; i < COUNT(queues); i++)
        ck_ok(clReleaseCommandQueue(queues[i]));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
    end();
}
END_TEST

START_TEST(the_same_event_several_times_in_a_list) {
    cl_event list[4], event;

    begin();
    for (size_t i = 0; i < COUNT(list); i++)
        list[i] = gate;
    event = fill_after(queue, 9, COUNT(list), list);
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    ck_ok(clWaitForEvents(1, &event));
    ck_ok(clWaitForEvents(COUNT(list), list));
    ck_assert_int_eq(first_value(), 9);
    ck_ok(clReleaseEvent(event));
    end();
}
END_TEST

START_TEST(a_failed_event_ends_its_dependants) {
    cl_command_queue second = make_queue(0);
    cl_event first, chained, independent;

    begin();
    first = fill_after(queue, 5, 1, &gate);
    chained = fill_after(second, 6, 1, &first);
    ck_ok(clFlush(queue));
    ck_ok(clFlush(second));
    ck_ok(clSetUserEventStatus(gate, -1234));
    ck_assert_cl(clWaitForEvents(1, &first), ENDED_BY_ANOTHER);
    ck_assert_cl(clWaitForEvents(1, &chained), ENDED_BY_ANOTHER);
    ck_assert_int_eq(event_status(gate), -1234);
    ck_assert_int_lt(event_status(first), 0);
    ck_assert_int_lt(event_status(chained), 0);
    if (!excused(POCL, "PoCL 3.1 gives the terminated commands status -1")) {
        ck_assert_int_eq(event_status(first), ENDED_BY_ANOTHER);
        ck_assert_int_eq(event_status(chained), ENDED_BY_ANOTHER);
    }
    ck_assert_msg(first_value() == 0, "a command that failed changed its buffer");
    /* Another queue goes on, and the buffer is good. */
    {
        cl_command_queue third = make_queue(0);

        independent = fill_after(third, 8, 0, NULL);
        ck_ok(clWaitForEvents(1, &independent));
        ck_ok(clReleaseCommandQueue(third));
    }
    ck_assert_int_eq(first_value(), 8);
    ck_ok(clReleaseEvent(first));
    ck_ok(clReleaseEvent(chained));
    ck_ok(clReleaseEvent(independent));
    ck_ok(clReleaseCommandQueue(second));
    end();
}
END_TEST

START_TEST(a_failed_event_ends_blocking_calls) {
    cl_int host[64] = {0};

    skip_on(POCL, "PoCL 3.1 hangs on a command enqueued behind a failed event");
    begin();
    ck_ok(clSetUserEventStatus(gate, -1));
    ck_assert_cl(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 256, host, 1, &gate, NULL),
                 ENDED_BY_ANOTHER);
    ck_assert_cl(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, 256, host, 1, &gate, NULL),
                 ENDED_BY_ANOTHER);
    ck_refused(
        clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 0, 256, 1, &gate, NULL, &error),
        ENDED_BY_ANOTHER);
    end();
}
END_TEST

static void *open_gate_later(void *nothing) {
    (void)nothing;
    usleep(30000);
    clSetUserEventStatus(gate, CL_COMPLETE);
    return NULL;
}

START_TEST(another_thread_opens_the_gate) {
    pthread_t thread;
    cl_int value = 0;

    begin();
    ck_ok(clReleaseEvent(fill_after(queue, 12, 1, &gate)));
    ck_assert_int_eq(pthread_create(&thread, NULL, open_gate_later, NULL), 0);
    ck_ok(clFinish(queue));
    ck_ok(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(value), &value, 0, NULL, NULL));
    ck_assert_int_eq(value, 12);
    pthread_join(thread, NULL);
    end();
}
END_TEST

START_TEST(a_blocking_call_waits_for_its_list) {
    pthread_t thread;
    cl_int value = 0;

    begin();
    ck_ok(clReleaseEvent(fill_after(queue, 12, 1, &gate)));
    ck_assert_int_eq(pthread_create(&thread, NULL, open_gate_later, NULL), 0);
    ck_ok(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(value), &value, 1, &gate, NULL));
    ck_assert_int_eq(value, 12);
    pthread_join(thread, NULL);
    end();
}
END_TEST

START_TEST(many_events_in_one_list) {
    enum { MANY = 1000 };
    cl_event *list = calloc(MANY, sizeof(cl_event)), marker;

    begin();
    for (int i = 0; i < MANY; i++)
        list[i] = fill_after(queue, i, 0, NULL);
    ck_ok(clEnqueueMarkerWithWaitList(queue, MANY, list, &marker));
    ck_ok(clWaitForEvents(1, &marker));
    ck_ok(clWaitForEvents(MANY, list));
    for (int i = 0; i < MANY; i++) {
        ck_assert_int_eq(event_status(list[i]), CL_COMPLETE);
        ck_ok(clReleaseEvent(list[i]));
    }
    ck_assert_int_eq(first_value(), MANY - 1);
    ck_ok(clReleaseEvent(marker));
    free(list);
    end();
}
END_TEST

/*
 * Commands of every kind, each of which waits for the one before it, and all on one buffer: what an
 * implementation may leave to the order of the buffer's users must look the same (5.11).
 */
enum { LINKS = 120 };

static const cl_int pattern = 7;
static cl_int from_host[64], to_host[LINKS][64];
static cl_kernel add_kernel;
static cl_mem second;

static cl_event add_link(cl_command_queue on, int i, const cl_event *previous) {
    cl_uint count = previous ? 1 : 0;
    const size_t all = 64;
    cl_event event;

    switch (i % 8) {
    case 2:
        ck_ok(
            clEnqueueReadBuffer(on, buffer, CL_FALSE, 0, 256, to_host[i], count, previous, &event));
        break;
    case 3:
        ck_ok(
            clEnqueueWriteBuffer(on, buffer, CL_FALSE, 0, 256, from_host, count, previous, &event));
        break;
    case 5:
        ck_ok(clEnqueueCopyBuffer(on, buffer, second, 0, 0, 256, count, previous, &event));
        break;
    case 6:
        ck_ok(clEnqueueFillBuffer(on, buffer, &pattern, 4, 0, 256, count, previous, &event));
        break;
    case 7:
        ck_ok(clEnqueueCopyBuffer(on, second, buffer, 0, 64, 128, count, previous, &event));
        break;
    default:
        ck_ok(clEnqueueNDRangeKernel(on, add_kernel, 1, NULL, &all, NULL, count, previous, &event));
    }
    return event;
}

/* What the reads of such a chain must bring, from its start on. */
static void check_links(const cl_int *start) {
    cl_int first[64], other[64] = {0};

    memcpy(first, start, sizeof(first));
    for (int i = 0; i < LINKS; i++)
        for (int k = 0; k < 64; k++)
            switch (i % 8) {
            case 2:
                ck_assert_msg(to_host[i][k] == first[k], "link %d read %d, not %d", i,
                              to_host[i][k], first[k]);
                break;
            case 3:
                first[k] = from_host[k];
                break;
            case 5:
                other[k] = first[k];
                break;
            case 6:
                first[k] = pattern;
                break;
            case 7:
                if (k >= 16 && k < 48)
                    first[k] = other[k - 16];
                break;
            default:
                first[k]++;
            }
}

static void begin_links(void) {
    cl_program program = make_program(common_source);
    const cl_int one = 1;

    begin();
    add_kernel = make_kernel(program, "add");
    second = make_buffer(0, 256, NULL);
    ck_ok(clSetKernelArg(add_kernel, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(add_kernel, 1, sizeof(one), &one));
    ck_ok(clReleaseProgram(program));
    for (int k = 0; k < 64; k++)
        from_host[k] = 100 + k;
    memset(to_host, 0, sizeof(to_host));
}

static void end_links(void) {
    ck_ok(clReleaseKernel(add_kernel));
    ck_ok(clReleaseMemObject(second));
    end();
}

static void check_chain(cl_command_queue_properties kind) {
    cl_command_queue on = make_queue(kind | CL_QUEUE_PROFILING_ENABLE);
    cl_int zero[64] = {0};
    cl_event events[LINKS];
    cl_ulong ended = 0;

    begin_links();
    for (int i = 0; i < LINKS; i++)
        events[i] = add_link(on, i, i > 0 ? &events[i - 1] : NULL);
    ck_ok(clFlush(on));
    /* None runs before the one that it waits for is complete. */
    for (int i = LINKS - 1; i > 0; i--)
        if (event_status(events[i]) <= CL_RUNNING)
            ck_assert_int_eq(event_status(events[i - 1]), CL_COMPLETE);
    ck_ok(clWaitForEvents(1, &events[LINKS - 1]));
    for (int i = 0; i < LINKS; i++) {
        cl_ulong start =
            get_info(cl_ulong, clGetEventProfilingInfo, events[i], CL_PROFILING_COMMAND_START);

        ck_assert_int_eq(event_status(events[i]), CL_COMPLETE);
        ck_assert_msg(start >= ended, "link %d started %llu ns before the one before it ended", i,
                      (unsigned long long)(ended - start));
        ended = get_info(cl_ulong, clGetEventProfilingInfo, events[i], CL_PROFILING_COMMAND_END);
        ck_ok(clReleaseEvent(events[i]));
    }
    check_links(zero);
    ck_ok(clReleaseCommandQueue(on));
    end_links();
}

START_TEST(a_chain_of_waits_in_order) {
    for (int round = 0; round < 10; round++)
        check_chain(0);
}
END_TEST

START_TEST(a_chain_of_waits_out_of_order) {
    skip_if(!(get_info(cl_command_queue_properties, clGetDeviceInfo, device,
                       CL_DEVICE_QUEUE_PROPERTIES) &
              CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE),
            "this device has no out-of-order queues");
    for (int round = 0; round < 10; round++)
        check_chain(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
}
END_TEST

/* The first of a chain waits for an event that fails: so do all. */
START_TEST(a_failed_event_ends_a_chain) {
    cl_int untouched[64];
    cl_event events[LINKS];

    skip_on(POCL, "PoCL 3.1 hangs on a command enqueued behind a failed event");
    begin_links();
    for (int i = 0; i < LINKS; i++)
        events[i] = add_link(queue, i, i > 0 ? &events[i - 1] : &gate);
    ck_ok(clFlush(queue));
    ck_ok(clSetUserEventStatus(gate, -5));
    ck_ok(clFinish(queue));
    for (int i = 0; i < LINKS; i++) {
        ck_assert_int_eq(event_status(events[i]), ENDED_BY_ANOTHER);
        ck_ok(clReleaseEvent(events[i]));
    }
    read_ints(buffer, untouched, 64);
    for (int k = 0; k < 64; k++)
        ck_assert_int_eq(untouched[k], 0);
    end_links();
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        a_gate_holds_a_command,
        a_gate_in_each_kind_of_command,
        wait_lists_cross_queues,
        the_same_event_several_times_in_a_list,
        a_failed_event_ends_its_dependants,
        a_failed_event_ends_blocking_calls,
        another_thread_opens_the_gate,
        a_blocking_call_waits_for_its_list,
        many_events_in_one_list,
        a_chain_of_waits_in_order,
        a_chain_of_waits_out_of_order,
        a_failed_event_ends_a_chain,
    };

    return test_main(argc, argv, tests, COUNT(tests));
}
