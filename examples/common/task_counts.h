/* SPDX-License-Identifier: MIT */
#ifndef EXAMPLES_TASK_COUNTS_H
#define EXAMPLES_TASK_COUNTS_H

#include "lanes.h"

#define MAX_REAL_DEVICES 32

/* How many commands each real device behind a lane's device executed between begin and end. */
struct task_counts {
    unsigned count; /* 0: the driver does not say */
    char name[MAX_REAL_DEVICES][64];
    cl_ulong commands[MAX_REAL_DEVICES];
};

/*
 * A driver that distributes may tell where commands ran, through an extension function; nothing
 * else in the examples depends on it. Only the first lane is asked.
 */
void task_counts_begin(const struct lanes *lanes);
void task_counts_end(const struct lanes *lanes);
const struct task_counts *task_counts(void);

#endif
