/* SPDX-License-Identifier: MIT */
#include "gate.h"

#include <pthread.h>
#include <unistd.h>

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

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        user_event_info,
        user_event_wrong,
        user_event_failed_twice,
        command_info,
        wait_wrong,
        a_failed_event_and_its_callbacks,
        callbacks_for_each_status,
        callbacks_after_the_end,
        several_callbacks_and_an_event_let_go,
        callback_wrong,
        a_callback_may_enqueue,
        profiling,
        profiling_measures_a_kernel,
        profiling_not_available,
    };

    return test_main(argc, argv, tests, COUNT(tests));
}
