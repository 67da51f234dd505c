/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "sched/environment.h"

#include "env.h"
#include "log.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *name, *value;
} wanted[] = {
    {"STARPU_OPENCL_ON_CPUS", "1"},    /* there is no field for it in struct starpu_conf */
    {"STARPU_WORKERS_NOBIND", "1"},    /* else vendors' threads inherit one core from a worker */
    {"STARPU_SILENT", "1"},            /* a driver prints nothing */
    {"STARPU_PERF_MODEL_DIR", NULL},   /* only when the usual place is not writable */
    {"STARPU_LIMIT_OPENCL_MEM", NULL}, /* TUTTI_DEVICE_MEMORY */
};
enum { PERF_MODEL_DIR = 3, DEVICE_MEMORY = 4, WANTED = 5 };

static bool make_directories(const char *path) {
    char copy[PATH_MAX];
    if (snprintf(copy, sizeof(copy), "%s", path) >= (int)sizeof(copy))
        return false;
    for (char *slash = copy + 1; *slash; slash++) {
        if (*slash != '/')
            continue;
        *slash = 0;
        if (mkdir(copy, 0700) != 0 && errno != EEXIST)
            return false;
        *slash = '/';
    }
    return (mkdir(copy, 0700) == 0 || errno == EEXIST) && access(copy, W_OK | X_OK) == 0;
}

/* Where StarPU would write without help: src/common/utils.c and perfmodel.c of StarPU 1.3, 1.4. */
static bool usual_directory_writable(void) {
    char path[PATH_MAX];
    static const char *const places[] = {"XDG_CACHE_HOME", "STARPU_HOME", "HOME",
                                         "TMPDIR",         "TEMP",        "TMP"};
    const char *home = NULL;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !home; i++)
        home = getenv(places[i]);
    snprintf(path, sizeof(path), "%s/.starpu/sampling", home ? home : "/tmp");
    return make_directories(path);
}

/* StarPU counts in MiB, and takes 0 for no limit. */
static void limit_device_memory(struct tutti_environment *environment) {
    size_t limit = tutti_env_size(TUTTI_DEVICE_MEMORY, 0), mib = limit >> 20;
    char text[32];
    if (!limit || getenv(wanted[DEVICE_MEMORY].name))
        return;
    snprintf(text, sizeof(text), "%zu", mib < 1 ? 1 : mib > INT_MAX ? INT_MAX : mib);
    if (setenv(wanted[DEVICE_MEMORY].name, text, 1) == 0)
        environment->set |= 1u << DEVICE_MEMORY;
}

bool tutti_environment_enter(struct tutti_environment *environment) {
    environment->set = 0;
    limit_device_memory(environment);
    for (unsigned i = 0; i < WANTED; i++)
        if (wanted[i].value && !getenv(wanted[i].name) &&
            setenv(wanted[i].name, wanted[i].value, 1) == 0)
            environment->set |= 1u << i;
    const char *chosen = getenv("STARPU_PERF_MODEL_DIR");
    if (chosen ? make_directories(chosen) : usual_directory_writable())
        return true;
    if (!chosen) {
        char path[PATH_MAX];
        snprintf(path, sizeof(path), "/tmp/tutti-%ld/starpu", (long)getuid());
        if (make_directories(path) && setenv("STARPU_PERF_MODEL_DIR", path, 1) == 0) {
            environment->set |= 1u << PERF_MODEL_DIR;
            return true;
        }
    }
    tutti_log(ERROR, "no directory for StarPU's performance files is writable");
    tutti_environment_leave(environment);
    return false;
}

void tutti_environment_leave(struct tutti_environment *environment) {
    for (unsigned i = 0; i < WANTED; i++)
        if (environment->set & 1u << i)
            unsetenv(wanted[i].name);
}
