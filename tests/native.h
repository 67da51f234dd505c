/* SPDX-License-Identifier: MIT */
/* What several tests share: a native kernel that keeps a buffer busy until the test says so. */
#ifndef TUTTI_TESTS_NATIVE_H
#define TUTTI_TESTS_NATIVE_H

#include "support.h"

#include <stdatomic.h>
#include <unistd.h>

static cl_command_queue native_queue;
static atomic_int native_state; /* 1: it runs, 2: it may end, 3: nobody told it to for a minute */

static inline void CL_CALLBACK stay(void *arguments) {
    (void)arguments;
    native_state = 1;
    for (int i = 0; i < 300000 && native_state != 2; i++)
        usleep(200);
    if (native_state != 2)
        native_state = 3;
}

/*
 * In a queue of its own, so that nothing but the buffer orders others behind it. The function,
 * which is given the place of the buffer's address, calls stay().
 */
static inline void occupy_by(void(CL_CALLBACK *function)(void *), cl_mem mem) {
    void *argument = NULL;
    const void *place = &argument;

    native_queue = make_queue(0);
    native_state = 0;
    ck_ok(clEnqueueNativeKernel(native_queue, function, &argument, sizeof(argument), 1, &mem,
                                &place, 0, NULL, NULL));
    ck_ok(clFlush(native_queue));
    while (native_state == 0)
        usleep(200);
}

static inline void occupy(cl_mem mem) { occupy_by(stay, mem); }

static inline void vacate(void) {
    ck_assert_int_eq(native_state, 1);
    native_state = 2;
    ck_ok(clFinish(native_queue));
    ck_ok(clReleaseCommandQueue(native_queue));
}

/*
 * Looks at memory that a command may be writing, as no event tells of it before its turn: not for
 * ThreadSanitizer. Is the element that soon, of so many ms? For what must not happen a few will do.
 */
__attribute__((no_sanitize("thread"), noinline, unused)) static bool
becomes(volatile cl_int *element, cl_int wanted, int ms) {
    for (int i = 0; i < ms && *element != wanted; i++)
        usleep(1000);
    return *element == wanted;
}

#endif
