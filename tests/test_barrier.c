/* SPDX-License-Identifier: MIT */
/* Markers, barriers and flushes. */
#include "gate.h"

#include <unistd.h>

#define NO_WAIT_FOR_EVENTS "PoCL 3.1 aborts in clEnqueueWaitForEvents"

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

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        marker_waits_for_all_before_it,
        barriers_hold_what_follows,
        markers_and_barriers_wrong,
        flush_makes_progress,
    };

    return test_main(argc, argv, tests, COUNT(tests));
}
