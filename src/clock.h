/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_CLOCK_H
#define TUTTI_CLOCK_H

#include <CL/cl.h>
#include <time.h>

/* Host time in ns, from some moment on; of CLOCK_MONOTONIC, or of a clock of its kind. */
static inline cl_ulong tutti_clock_read(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (cl_ulong)now.tv_sec * 1000000000u + (cl_ulong)now.tv_nsec;
}

static inline cl_ulong tutti_clock_now(void) { return tutti_clock_read(CLOCK_MONOTONIC); }

/* The moment so many ns from now, as timed waits for conditions take it. */
static inline struct timespec tutti_clock_deadline(cl_ulong length) {
    cl_ulong end = tutti_clock_read(CLOCK_REALTIME) + length;
    return (struct timespec){.tv_sec = (time_t)(end / 1000000000u),
                             .tv_nsec = (long)(end % 1000000000u)};
}

#endif
