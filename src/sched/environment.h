/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_ENVIRONMENT_H
#define TUTTI_ENVIRONMENT_H

#include "sched/performance_files.h"

/*
 * Settings that StarPU takes from the environment only. They are made for the time of
 * starpu_init and undone after it, so that a child process finds the environment that the program
 * had; what the user set is never changed.
 */
struct tutti_environment {
    unsigned set; /* bit i: entry i of the table in environment.c was set by us */
    struct tutti_performance_files files;
};

/* Tasks that one of StarPU's workers may have under way, with Tutti's own policy: StarPU's most. */
#define TUTTI_PIPELINE 4

/* Returns false when StarPU would abort: no directory for its performance files is writable. */
bool tutti_environment_enter(struct tutti_environment *environment,
                             const struct tutti_device_list *list, unsigned seen_by_starpu);
/* Between the two: where StarPU keeps files for this machine, and other things may be kept. */
const char *tutti_environment_directory(void);
void tutti_environment_leave(struct tutti_environment *environment, bool worked);

#endif
