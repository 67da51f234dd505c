/* SPDX-License-Identifier: MIT */
#include "sched/environment.h"

#include "env.h"
#include "log.h"
#include "sched/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PERF_MODEL_DIR, DEVICE_MEMORY, PIPELINE, WANTED = 8 };
static const struct {
    const char *name, *value;
} wanted[WANTED] = {
    [PERF_MODEL_DIR] = {"STARPU_PERF_MODEL_DIR", NULL},  /* see performance_files.h */
    [DEVICE_MEMORY] = {"STARPU_LIMIT_OPENCL_MEM", NULL}, /* TUTTI_DEVICE_MEMORY */
    [PIPELINE] = {"STARPU_OPENCL_PIPELINE", NULL},
    {"STARPU_OPENCL_ON_CPUS", "1"}, /* there is no field for it in struct starpu_conf */
    {"STARPU_WORKERS_NOBIND", "1"}, /* else vendors' threads inherit one core from a worker */
    {"STARPU_SILENT", "1"},         /* a driver prints nothing */
    /*
     * Else idle workers copy to host memory what only their device has, for the case that it must
     * leave: over and over, as kernels write it again, and into pages that are locked for it.
     */
    {"STARPU_MINIMUM_CLEAN_BUFFERS", "0"},
    /*
     * hwloc looks at each PCI device and graphics card, which takes longer than all else of
     * StarPU's start, and StarPU uses nothing of it: its devices come from us, in another order
     * than hwloc's. And it moves this thread to each core in turn, to ask it what the kernel tells.
     */
    {"HWLOC_COMPONENTS", "-linuxio,-pci,-opencl,-gl,-cuda,-nvml,-rsmi,-levelzero,-x86"},
};

static void set(struct tutti_environment *environment, unsigned i, const char *value) {
    if (!getenv(wanted[i].name) && setenv(wanted[i].name, value, 1) == 0)
        environment->set |= 1u << i;
}

/* StarPU counts in MiB, and takes 0 for no limit. */
static void limit_device_memory(struct tutti_environment *environment) {
    size_t limit = tutti_env_size(TUTTI_DEVICE_MEMORY, 0), mib = limit >> 20;
    char text[32];
    snprintf(text, sizeof(text), "%zu", mib < 1 ? 1 : mib > INT_MAX ? INT_MAX : mib);
    if (limit)
        set(environment, DEVICE_MEMORY, text);
}

/* Tutti's policy says itself which tasks a device gets so early (policy_line.c). */
static void set_pipeline(struct tutti_environment *environment) {
    const char *policy = tutti_env_string(TUTTI_SCHED);
    char text[8];
    snprintf(text, sizeof(text), "%d", TUTTI_PIPELINE);
    if (!policy || !*policy || strcmp(policy, tutti_policy.policy_name) == 0)
        set(environment, PIPELINE, text);
}

bool tutti_environment_enter(struct tutti_environment *environment,
                             const struct tutti_device_list *list, unsigned seen_by_starpu) {
    environment->set = 0;
    const char *chosen = getenv(wanted[PERF_MODEL_DIR].name);
    if (chosen ? !tutti_performance_files_usable(chosen)
               : !tutti_performance_files_find(&environment->files, list, seen_by_starpu)) {
        tutti_log(ERROR, "no directory for StarPU's performance files is writable");
        return false;
    }
    if (!chosen)
        set(environment, PERF_MODEL_DIR, environment->files.path);
    limit_device_memory(environment);
    set_pipeline(environment);
    for (unsigned i = 0; i < WANTED; i++)
        if (wanted[i].value)
            set(environment, i, wanted[i].value);
    return true;
}

const char *tutti_environment_directory(void) { return getenv(wanted[PERF_MODEL_DIR].name); }

void tutti_environment_leave(struct tutti_environment *environment, bool worked) {
    if (environment->set & 1u << PERF_MODEL_DIR)
        tutti_performance_files_keep(&environment->files, worked);
    for (unsigned i = 0; i < WANTED; i++)
        if (environment->set & 1u << i)
            unsetenv(wanted[i].name);
}
