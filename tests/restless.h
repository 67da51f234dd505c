/* SPDX-License-Identifier: MIT */
/*
 * What several tests share: Tutti gives back what it keeps when the program rests, which a busy
 * machine makes it seem to do. Not while a command waits for the program.
 */
#ifndef TUTTI_TESTS_RESTLESS_H
#define TUTTI_TESTS_RESTLESS_H

#include "support.h"

static cl_command_queue restless_queue;
static cl_event restless_gate;

static inline void be_restless(void) {
    restless_queue = make_queue(0);
    restless_gate = make_user_event();
    ck_ok(clEnqueueMarkerWithWaitList(restless_queue, 1, &restless_gate, NULL));
}

static inline void rest(void) {
    ck_ok(clSetUserEventStatus(restless_gate, CL_COMPLETE));
    ck_ok(clReleaseEvent(restless_gate));
    ck_ok(clFinish(restless_queue));
    ck_ok(clReleaseCommandQueue(restless_queue));
}

#endif
