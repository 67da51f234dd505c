/* SPDX-License-Identifier: MIT */
/* What the tests of events share: one small buffer, and a user event that holds commands on it. */
#ifndef TUTTI_TESTS_GATE_H
#define TUTTI_TESTS_GATE_H

#include "support.h"

#define ENDED_BY_ANOTHER CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST

static cl_mem buffer;
static cl_event gate;

/* A fill of the whole buffer that waits for these events. */
static inline cl_event fill_after(cl_command_queue on, cl_int value, cl_uint count,
                                  const cl_event *list) {
    cl_event event;

    ck_ok(clEnqueueFillBuffer(on, buffer, &value, sizeof(value), 0, 256, count, list, &event));
    return event;
}

static inline void begin(void) {
    cl_int zero[64] = {0};

    buffer = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(zero), zero);
    gate = make_user_event();
}

static inline void end(void) {
    ck_ok(clReleaseEvent(gate));
    ck_ok(clReleaseMemObject(buffer));
}

static inline cl_int first_value(void) {
    cl_command_queue fresh = make_queue(0);
    cl_int value = -1;

    ck_ok(clEnqueueReadBuffer(fresh, buffer, CL_TRUE, 0, sizeof(value), &value, 0, NULL, NULL));
    ck_ok(clReleaseCommandQueue(fresh));
    return value;
}

#endif
