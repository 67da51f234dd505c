/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_PERFORMANCE_FILES_H
#define TUTTI_PERFORMANCE_FILES_H

#include "virtual_device/device.h"

#include <limits.h>

/*
 * Where StarPU keeps what it measured of the links to the devices. It ends the process when it
 * reads a file that another process is writing, or that one left half written; and it measures and
 * writes anew each time that the devices are others than the last time. So each set of devices has
 * a directory of its own, which appears complete or not at all.
 */
struct tutti_performance_files {
    char path[PATH_MAX]; /* for STARPU_PERF_MODEL_DIR */
    char final[PATH_MAX];
    bool fresh; /* `path` is ours alone until it becomes `final` */
};

/* Is it a directory, made now if need be, where files can be written? */
bool tutti_performance_files_usable(const char *path);

/* Returns false when no place for them is writable: StarPU would abort. */
bool tutti_performance_files_find(struct tutti_performance_files *files,
                                  const struct tutti_device_list *list, unsigned seen_by_starpu);

/* After starpu_init: keeps what it wrote for the next process, if it worked. */
void tutti_performance_files_keep(const struct tutti_performance_files *files, bool worked);

#endif
