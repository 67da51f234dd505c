/* SPDX-License-Identifier: MIT */
#include "support.h"

#include <pthread.h>
#include <unistd.h>

#define NO_WAIT_FOR_EVENTS "PoCL 3.1 aborts in clEnqueueWaitForEvents"
#define ENDED_BY_ANOTHER CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST

static cl_mem buffer;
static cl_event gate;

/* A fill of the whole buffer that waits for these events. */
static cl_event fill_after(cl_command_queue on, cl_int value, cl_uint count, const cl_event *list) {
    cl_event event;

    ck_ok(clEnqueueFillBuffer(on, buffer, &value, sizeof(value), 0, 256, count, list, &event));
    return event;
}

static void begin(void) {
    cl_int zero[64] = {0};

    buffer = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(zero), zero);
    gate = make_user_event();
}

static void end(void) {
    ck_ok(clReleaseEvent(gate));
    ck_ok(clReleaseMemObject(buffer));
}

static cl_int first_value(void) {
    cl_command_queue fresh = make_queue(0);
    cl_int value = -1;

    ck_ok(clEnqueueReadBuffer(fresh, buffer, CL_TRUE, 0, sizeof(value), &value, 0, NULL, NULL));
    ck_ok(clReleaseCommandQueue(fresh));
    return value;
}

/* Callbacks may come after the wait has returned. */
struct seen {
    pthread_mutex_t lock;
    int calls;
    cl_int status[8];
    cl_event events[8];
};

static void CL_CALLBACK note(cl_event event, cl_int status, void *data) {
    struct seen *seen = data;

    pthread_mutex_lock(&seen->lock);
    if (seen->calls < 8) {
        seen->status[seen->calls] = status;
        seen->events[seen->calls] = event;
    }
    seen->calls++;
    pthread_mutex_unlock(&seen->lock);
}

static int calls_of(struct seen *seen) {
    int calls;

    pthread_mutex_lock(&seen->lock);
    calls = seen->calls;
    pthread_mutex_unlock(&seen->lock);
    return calls;
}

static void wait_for_calls(struct seen *seen, int wanted) {
    for (int i = 0; i < 5000 && calls_of(seen) < wanted; i++)
        usleep(2000);
    ck_assert_int_eq(calls_of(seen), wanted);
}

START_TEST(user_event_info) {
    const cl_event_info names[] = {CL_EVENT_CONTEXT, CL_EVENT_COMMAND_TYPE,
                                   CL_EVENT_REFERENCE_COUNT, CL_EVENT_COMMAND_EXECUTION_STATUS};

    begin();
    ck_assert(get_info(cl_command_type, clGetEventInfo, gate, CL_EVENT_COMMAND_TYPE) ==
              CL_COMMAND_USER);
    ck_assert(get_info(cl_context, clGetEventInfo, gate, CL_EVENT_CONTEXT) == context);
    ck_assert(get_info(cl_command_queue, clGetEventInfo, gate, CL_EVENT_COMMAND_QUEUE) == NULL);
    ck_assert(get_info(cl_uint, clGetEventInfo, gate, CL_EVENT_REFERENCE_COUNT) == 1);
    ck_assert_int_eq(event_status(gate), CL_SUBMITTED);
    for (size_t i = 0; i < COUNT(names); i++)
        check_info_rules(clGetEventInfo, gate, names[i]);
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    ck_assert_int_eq(event_status(gate), CL_COMPLETE);
    ck_ok(clWaitForEvents(1, &gate));
    end();
}
END_TEST

START_TEST(user_event_wrong) {
    cl_event command;

    begin();
    ck_refused(clCreateUserEvent(NULL, &error), CL_INVALID_CONTEXT);
    ck_assert_cl(clSetUserEventStatus(NULL, CL_COMPLETE), CL_INVALID_EVENT);
    ck_assert_cl(clSetUserEventStatus(gate, CL_RUNNING), CL_INVALID_VALUE);
    ck_assert_cl(clSetUserEventStatus(gate, CL_SUBMITTED), CL_INVALID_VALUE);
    ck_assert_cl(clSetUserEventStatus(gate, 77), CL_INVALID_VALUE);
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    ck_assert_cl(clSetUserEventStatus(gate, CL_COMPLETE), CL_INVALID_OPERATION);
    ck_assert_cl(clSetUserEventStatus(gate, -7), CL_INVALID_OPERATION);
    ck_assert_int_eq(event_status(gate), CL_COMPLETE);
    command = fill_after(queue, 1, 0, NULL);
    ck_assert_cl(clSetUserEventStatus(command, CL_COMPLETE), CL_INVALID_EVENT);
    ck_ok(clReleaseEvent(command));
    ck_ok(clFinish(queue));
    end();
}
END_TEST

START_TEST(user_event_failed_twice) {
    begin();
    ck_ok(clSetUserEventStatus(gate, -7));
    ck_assert_int_eq(event_status(gate), -7);
    ck_assert_cl(clSetUserEventStatus(gate, CL_COMPLETE), CL_INVALID_OPERATION);
    ck_assert_cl(clSetUserEventStatus(gate, -8), CL_INVALID_OPERATION);
    ck_assert_int_eq(event_status(gate), -7);
    ck_assert_cl(clWaitForEvents(1, &gate), ENDED_BY_ANOTHER);
    end();
}
END_TEST

START_TEST(command_info) {
    const cl_event_info names[] = {CL_EVENT_CONTEXT, CL_EVENT_COMMAND_QUEUE, CL_EVENT_COMMAND_TYPE,
                                   CL_EVENT_REFERENCE_COUNT, CL_EVENT_COMMAND_EXECUTION_STATUS};
    cl_event event;

    begin();
    event = fill_after(queue, 3, 0, NULL);
    ck_assert(get_info(cl_command_type, clGetEventInfo, event, CL_EVENT_COMMAND_TYPE) ==
              CL_COMMAND_FILL_BUFFER);
    ck_assert(get_info(cl_context, clGetEventInfo, event, CL_EVENT_CONTEXT) == context);
    ck_assert(get_info(cl_command_queue, clGetEventInfo, event, CL_EVENT_COMMAND_QUEUE) == queue);
    ck_assert(get_info(cl_uint, clGetEventInfo, event, CL_EVENT_REFERENCE_COUNT) >= 1);
    ck_assert_int_ge(event_status(event), CL_COMPLETE);
    ck_assert_int_le(event_status(event), CL_QUEUED);
    for (size_t i = 0; i < COUNT(names); i++)
        check_info_rules(clGetEventInfo, event, names[i]);
    ck_ok(clWaitForEvents(1, &event));
    ck_assert_int_eq(event_status(event), CL_COMPLETE);
    ck_ok(clReleaseEvent(event));
    end();
}
END_TEST

START_TEST(wait_wrong) {
    cl_event foreign = ck_made(clCreateUserEvent(other_context(), &error));
    cl_event mixed[2], with_null[2];

    begin();
    mixed[0] = gate;
    mixed[1] = foreign;
    with_null[0] = gate;
    with_null[1] = NULL;
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    ck_ok(clSetUserEventStatus(foreign, CL_COMPLETE));
    ck_assert_cl(clWaitForEvents(0, &gate), CL_INVALID_VALUE);
    ck_assert_cl(clWaitForEvents(1, NULL), CL_INVALID_VALUE);
    ck_assert_cl(clWaitForEvents(2, mixed), CL_INVALID_CONTEXT);
    ck_assert_cl(clWaitForEvents(2, with_null), CL_INVALID_EVENT);
    ck_ok(clReleaseEvent(foreign));
    end();
}
END_TEST

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

START_TEST(a_failed_event_and_its_callbacks) {
    struct seen on_gate = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct seen on_command = {.lock = PTHREAD_MUTEX_INITIALIZER};
    cl_event event;

    skip_on(POCL, "PoCL 3.1 calls no callback of a failed event");
    begin();
    event = fill_after(queue, 5, 1, &gate);
    ck_ok(clSetEventCallback(gate, CL_COMPLETE, note, &on_gate));
    ck_ok(clSetEventCallback(event, CL_COMPLETE, note, &on_command));
    ck_ok(clSetUserEventStatus(gate, -99));
    wait_for_calls(&on_gate, 1);
    wait_for_calls(&on_command, 1);
    ck_assert_int_eq(on_gate.status[0], -99);
    ck_assert_int_eq(on_command.status[0], ENDED_BY_ANOTHER);
    ck_ok(clReleaseEvent(event));
    end();
}
END_TEST

START_TEST(callbacks_for_each_status) {
    const cl_int wanted[] = {CL_SUBMITTED, CL_RUNNING, CL_COMPLETE};
    struct seen seen[3] = {{.lock = PTHREAD_MUTEX_INITIALIZER},
                           {.lock = PTHREAD_MUTEX_INITIALIZER},
                           {.lock = PTHREAD_MUTEX_INITIALIZER}};
    cl_event event;

    begin();
    event = fill_after(queue, 4, 1, &gate);
    for (size_t i = 0; i < COUNT(wanted); i++)
        ck_ok(clSetEventCallback(event, wanted[i], note, &seen[i]));
    usleep(10000);
    ck_assert_int_eq(calls_of(&seen[2]), 0);
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    ck_ok(clWaitForEvents(1, &event));
    for (size_t i = 0; i < COUNT(wanted); i++) {
        wait_for_calls(&seen[i], 1);
        ck_assert_int_eq(seen[i].status[0], wanted[i]);
        ck_assert(seen[i].events[0] == event);
    }
    ck_ok(clReleaseEvent(event));
    end();
}
END_TEST

START_TEST(callbacks_after_the_end) {
    const cl_int wanted[] = {CL_SUBMITTED, CL_RUNNING, CL_COMPLETE};
    struct seen seen = {.lock = PTHREAD_MUTEX_INITIALIZER};
    cl_event event;

    begin();
    event = fill_after(queue, 4, 0, NULL);
    ck_ok(clWaitForEvents(1, &event));
    for (int i = 0; i < 3; i++)
        ck_ok(clSetEventCallback(event, wanted[i], note, &seen));
    wait_for_calls(&seen, 3);
    ck_ok(clReleaseEvent(event));
    end();
}
END_TEST

START_TEST(several_callbacks_and_an_event_let_go) {
    struct seen seen = {.lock = PTHREAD_MUTEX_INITIALIZER};
    cl_event event;

    begin();
    event = fill_after(queue, 4, 1, &gate);
    for (int i = 0; i < 5; i++)
        ck_ok(clSetEventCallback(event, CL_COMPLETE, note, &seen));
    ck_ok(clReleaseEvent(event));
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    ck_ok(clFinish(queue));
    wait_for_calls(&seen, 5);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(seen.status[i], CL_COMPLETE);
    end();
}
END_TEST

START_TEST(callback_wrong) {
    struct seen seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

    begin();
    ck_assert_cl(clSetEventCallback(NULL, CL_COMPLETE, note, &seen), CL_INVALID_EVENT);
    ck_assert_cl(clSetEventCallback(gate, CL_COMPLETE, NULL, &seen), CL_INVALID_VALUE);
    ck_assert_cl(clSetEventCallback(gate, CL_QUEUED, note, &seen), CL_INVALID_VALUE);
    ck_assert_cl(clSetEventCallback(gate, -1, note, &seen), CL_INVALID_VALUE);
    ck_assert_cl(clSetEventCallback(gate, 17, note, &seen), CL_INVALID_VALUE);
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    ck_assert_int_eq(calls_of(&seen), 0);
    end();
}
END_TEST

static void CL_CALLBACK enqueue_more(cl_event event, cl_int status, void *data) {
    cl_int value = 31;
    cl_event *made = data;

    (void)event;
    (void)status;
    if (clEnqueueFillBuffer(queue, buffer, &value, sizeof(value), 0, 256, 0, NULL, made) ==
        CL_SUCCESS)
        clFlush(queue);
    clSetUserEventStatus(gate, CL_COMPLETE);
}

START_TEST(a_callback_may_enqueue) {
    cl_event event, made = NULL;

    begin();
    event = fill_after(queue, 4, 0, NULL);
    ck_ok(clSetEventCallback(event, CL_COMPLETE, enqueue_more, &made));
    ck_ok(clFlush(queue));
    ck_ok(clWaitForEvents(1, &gate));
    ck_assert_ptr_nonnull(made);
    ck_ok(clWaitForEvents(1, &made));
    ck_assert_int_eq(first_value(), 31);
    ck_ok(clReleaseEvent(made));
    ck_ok(clReleaseEvent(event));
    end();
}
END_TEST

START_TEST(profiling) {
    const cl_profiling_info names[] = {CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_SUBMIT,
                                       CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_END};
    cl_ulong times[4];
    cl_event event;

    begin();
    for (int round = 0; round < 10; round++) {
        event = fill_after(queue, round, 0, NULL);
        ck_ok(clWaitForEvents(1, &event));
        for (size_t i = 0; i < 4; i++) {
            times[i] = get_info(cl_ulong, clGetEventProfilingInfo, event, names[i]);
            check_info_rules(clGetEventProfilingInfo, event, names[i]);
        }
        ck_assert_uint_gt(times[0], 0);
        for (size_t i = 1; i < 4; i++)
            ck_assert_msg(times[i - 1] <= times[i], "time %zu is %llu, after %llu", i - 1,
                          (unsigned long long)times[i - 1], (unsigned long long)times[i]);
        ck_ok(clReleaseEvent(event));
    }
    end();
}
END_TEST

START_TEST(profiling_measures_a_kernel) {
    cl_program program = make_program(common_source);
    cl_kernel slow = make_kernel(program, "slow");
    cl_int rounds[2] = {1000, 10000000};
    cl_ulong lengths[2];
    const size_t one = 1;

    begin();
    ck_ok(clSetKernelArg(slow, 0, sizeof(buffer), &buffer));
    for (int i = 0; i < 2; i++) {
        cl_event event;

        ck_ok(clSetKernelArg(slow, 1, sizeof(rounds[i]), &rounds[i]));
        ck_ok(clEnqueueNDRangeKernel(queue, slow, 1, NULL, &one, NULL, 0, NULL, NULL));
        ck_ok(clEnqueueNDRangeKernel(queue, slow, 1, NULL, &one, NULL, 0, NULL, &event));
        ck_ok(clWaitForEvents(1, &event));
        lengths[i] = get_info(cl_ulong, clGetEventProfilingInfo, event, CL_PROFILING_COMMAND_END) -
                     get_info(cl_ulong, clGetEventProfilingInfo, event, CL_PROFILING_COMMAND_START);
        ck_ok(clReleaseEvent(event));
    }
    ck_assert_msg(lengths[1] > lengths[0], "10000 times the work took %llu ns after %llu ns",
                  (unsigned long long)lengths[1], (unsigned long long)lengths[0]);
    ck_ok(clReleaseKernel(slow));
    ck_ok(clReleaseProgram(program));
    end();
}
END_TEST

START_TEST(profiling_not_available) {
    cl_command_queue plain = make_queue(0);
    cl_event event;
    cl_ulong time;

    begin();
    event = fill_after(plain, 1, 0, NULL);
    ck_ok(clWaitForEvents(1, &event));
    ck_assert_cl(
        clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof(time), &time, NULL),
        CL_PROFILING_INFO_NOT_AVAILABLE);
    ck_ok(clReleaseEvent(event));
    ck_assert_cl(
        clGetEventProfilingInfo(gate, CL_PROFILING_COMMAND_START, sizeof(time), &time, NULL),
        CL_PROFILING_INFO_NOT_AVAILABLE);
    event = fill_after(queue, 1, 1, &gate);
    ck_assert_cl(
        clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(time), &time, NULL),
        CL_PROFILING_INFO_NOT_AVAILABLE);
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    ck_ok(clWaitForEvents(1, &event));
    ck_ok(clReleaseEvent(event));
    ck_ok(clReleaseCommandQueue(plain));
    end();
}
END_TEST

START_TEST(marker_waits_for_all_before_it) {
    cl_command_queue loose = make_queue(
        get_info(cl_command_queue_properties, clGetDeviceInfo, device, CL_DEVICE_QUEUE_PROPERTIES) &
        CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    cl_event held, marker, old_marker;

    begin();
    held = fill_after(loose, 2, 1, &gate);
    ck_ok(clEnqueueMarkerWithWaitList(loose, 0, NULL, &marker));
    ck_ok(clEnqueueMarker(loose, &old_marker));
    ck_assert(get_info(cl_command_type, clGetEventInfo, marker, CL_EVENT_COMMAND_TYPE) ==
              CL_COMMAND_MARKER);
    ck_ok(clFlush(loose));
    usleep(20000);
    ck_assert_int_gt(event_status(marker), CL_COMPLETE);
    ck_assert_int_gt(event_status(old_marker), CL_COMPLETE);
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    ck_ok(clWaitForEvents(1, &marker));
    ck_assert_int_eq(event_status(held), CL_COMPLETE);
    ck_ok(clWaitForEvents(1, &old_marker));
    ck_ok(clReleaseEvent(held));
    ck_ok(clReleaseEvent(marker));
    ck_ok(clReleaseEvent(old_marker));
    ck_ok(clReleaseCommandQueue(loose));
    end();
}
END_TEST

/* After each kind of barrier of an out-of-order queue, nothing passes. */
START_TEST(barriers_hold_what_follows) {
    cl_command_queue_properties offered =
        get_info(cl_command_queue_properties, clGetDeviceInfo, device, CL_DEVICE_QUEUE_PROPERTIES);

    for (int kind = 0; kind < 4; kind++) {
        cl_command_queue loose;
        cl_event first, second, barrier = NULL;
        cl_mem other;
        cl_int value = 1;

        if (kind == 2 && excused(POCL, NO_WAIT_FOR_EVENTS))
            continue;
        begin();
        loose = make_queue(offered & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
        other = make_buffer(0, 256, NULL);
        first = fill_after(loose, 2, 1, &gate);
        if (kind == 0)
            ck_ok(clEnqueueBarrierWithWaitList(loose, 0, NULL, &barrier));
        else if (kind == 1)
            ck_ok(clEnqueueBarrier(loose));
        else if (kind == 2)
            ck_ok(clEnqueueWaitForEvents(loose, 1, &gate));
        else
            ck_ok(clEnqueueBarrierWithWaitList(loose, 1, &gate, &barrier));
        ck_ok(clEnqueueFillBuffer(loose, other, &value, sizeof(value), 0, 256, 0, NULL, &second));
        ck_ok(clFlush(loose));
        usleep(20000);
        ck_assert_int_gt(event_status(first), CL_COMPLETE);
        ck_assert_msg(event_status(second) > CL_COMPLETE, "a command passed barrier kind %d", kind);
        ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
        ck_ok(clFinish(loose));
        ck_assert_int_eq(event_status(second), CL_COMPLETE);
        if (barrier) {
            ck_assert(get_info(cl_command_type, clGetEventInfo, barrier, CL_EVENT_COMMAND_TYPE) ==
                      CL_COMMAND_BARRIER);
            ck_assert_int_eq(event_status(barrier), CL_COMPLETE);
            ck_ok(clReleaseEvent(barrier));
        }
        ck_ok(clReleaseEvent(first));
        ck_ok(clReleaseEvent(second));
        ck_ok(clReleaseMemObject(other));
        ck_ok(clReleaseCommandQueue(loose));
        end();
    }
}
END_TEST

START_TEST(markers_and_barriers_wrong) {
    cl_event foreign = ck_made(clCreateUserEvent(other_context(), &error)), none = NULL;

    ck_assert_cl(clEnqueueMarkerWithWaitList(queue, 1, NULL, NULL), CL_INVALID_EVENT_WAIT_LIST);
    ck_assert_cl(clEnqueueMarkerWithWaitList(queue, 0, &foreign, NULL), CL_INVALID_EVENT_WAIT_LIST);
    ck_assert_cl(clEnqueueMarkerWithWaitList(queue, 1, &none, NULL), CL_INVALID_EVENT_WAIT_LIST);
    ck_assert_cl(clEnqueueMarkerWithWaitList(queue, 1, &foreign, NULL), CL_INVALID_CONTEXT);
    ck_assert_cl(clEnqueueBarrierWithWaitList(queue, 1, NULL, NULL), CL_INVALID_EVENT_WAIT_LIST);
    ck_assert_cl(clEnqueueBarrierWithWaitList(queue, 0, &foreign, NULL),
                 CL_INVALID_EVENT_WAIT_LIST);
    ck_assert_cl(clEnqueueBarrierWithWaitList(queue, 1, &none, NULL), CL_INVALID_EVENT_WAIT_LIST);
    ck_assert_cl(clEnqueueBarrierWithWaitList(queue, 1, &foreign, NULL), CL_INVALID_CONTEXT);
    ck_assert_cl(clEnqueueMarker(queue, NULL), CL_INVALID_VALUE);
    if (!excused(POCL, NO_WAIT_FOR_EVENTS)) {
        ck_assert_cl(clEnqueueWaitForEvents(queue, 0, &foreign), CL_INVALID_VALUE);
        ck_assert_cl(clEnqueueWaitForEvents(queue, 1, NULL), CL_INVALID_VALUE);
        ck_assert_cl(clEnqueueWaitForEvents(queue, 1, &none), CL_INVALID_EVENT);
        ck_assert_cl(clEnqueueWaitForEvents(queue, 1, &foreign), CL_INVALID_CONTEXT);
    }
    ck_assert_cl(clEnqueueMarkerWithWaitList(NULL, 0, NULL, NULL), CL_INVALID_COMMAND_QUEUE);
    ck_assert_cl(clEnqueueBarrierWithWaitList(NULL, 0, NULL, NULL), CL_INVALID_COMMAND_QUEUE);
    ck_ok(clReleaseEvent(foreign));
}
END_TEST

START_TEST(flush_makes_progress) {
    cl_event event;
    int i;

    begin();
    event = fill_after(queue, 3, 0, NULL);
    ck_ok(clFlush(queue));
    for (i = 0; i < 10000 && event_status(event) != CL_COMPLETE; i++)
        usleep(1000);
    ck_assert_int_eq(event_status(event), CL_COMPLETE);
    ck_ok(clReleaseEvent(event));
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

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        user_event_info,
        user_event_wrong,
        user_event_failed_twice,
        command_info,
        wait_wrong,
        a_gate_holds_a_command,
        a_gate_in_each_kind_of_command,
        wait_lists_cross_queues,
        the_same_event_several_times_in_a_list,
        a_failed_event_ends_its_dependants,
        a_failed_event_ends_blocking_calls,
        a_failed_event_and_its_callbacks,
        callbacks_for_each_status,
        callbacks_after_the_end,
        several_callbacks_and_an_event_let_go,
        callback_wrong,
        a_callback_may_enqueue,
        profiling,
        profiling_measures_a_kernel,
        profiling_not_available,
        marker_waits_for_all_before_it,
        barriers_hold_what_follows,
        markers_and_barriers_wrong,
        flush_makes_progress,
        another_thread_opens_the_gate,
        a_blocking_call_waits_for_its_list,
        many_events_in_one_list,
    };

    return test_main(argc, argv, tests, COUNT(tests));
}
