/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "sched/performance_files.h"

#include "directory.h"
#include "virtual_device/binary.h"

#include <ftw.h>
#include <sched.h>
#include <starpu.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

bool tutti_performance_files_usable(const char *path) {
    return tutti_directory_make(path) && access(path, W_OK | X_OK) == 0;
}

/* All that StarPU compares with what its files say, and more. */
static uint64_t key_of(const struct tutti_device_list *list, unsigned seen_by_starpu) {
    char host[256] = "", text[512];
    int major, minor, release;
    cpu_set_t cpus;
    const char *numa = getenv("STARPU_USE_NUMA");
    starpu_get_version(&major, &minor, &release);
    gethostname(host, sizeof(host) - 1);
    CPU_ZERO(&cpus);
    sched_getaffinity(0, sizeof(cpus), &cpus);
    snprintf(text, sizeof(text), "%s %d.%d.%d %u %ld %d %s", host, major, minor, release,
             seen_by_starpu, sysconf(_SC_NPROCESSORS_ONLN), CPU_COUNT(&cpus), numa ? numa : "");
    uint64_t key = tutti_hash_string(0, text);
    for (unsigned d = 0; d < list->count; d++) {
        snprintf(text, sizeof(text), "%d %llx", list->device[d]->place.devid,
                 (unsigned long long)list->device[d]->identity);
        key = tutti_hash_string(key, text);
    }
    return key;
}

/* Sets the two paths below `base`. */
static bool find_below(struct tutti_performance_files *files, const char *base, uint64_t key) {
    struct stat status;
    if (!tutti_performance_files_usable(base) ||
        snprintf(files->final, sizeof(files->final), "%s/%016llx", base, (unsigned long long)key) >=
            (int)sizeof(files->final))
        return false;
    files->fresh = stat(files->final, &status) != 0;
    if (!files->fresh) {
        snprintf(files->path, sizeof(files->path), "%s", files->final);
        return access(files->path, W_OK | X_OK) == 0;
    }
    return snprintf(files->path, sizeof(files->path), "%s.XXXXXX", files->final) <
               (int)sizeof(files->path) &&
           mkdtemp(files->path) != NULL;
}

bool tutti_performance_files_find(struct tutti_performance_files *files,
                                  const struct tutti_device_list *list, unsigned seen_by_starpu) {
    /* Those where StarPU would look: src/common/utils.c of StarPU 1.3, 1.4. */
    static const char *const places[] = {"XDG_CACHE_HOME", "STARPU_HOME", "HOME",
                                         "TMPDIR",         "TEMP",        "TMP"};
    const char *home = NULL;
    char base[PATH_MAX];
    uint64_t key = key_of(list, seen_by_starpu);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !home; i++)
        home = getenv(places[i]);
    if (snprintf(base, sizeof(base), "%s/.starpu/tutti", home ? home : "/tmp") <
            (int)sizeof(base) &&
        find_below(files, base, key))
        return true;
    snprintf(base, sizeof(base), "/tmp/tutti-%ld/starpu", (long)getuid());
    return find_below(files, base, key);
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *ftw) {
    (void)status;
    (void)type;
    (void)ftw;
    return remove(path);
}

void tutti_performance_files_keep(const struct tutti_performance_files *files, bool worked) {
    /* Another process may have been quicker: then theirs stays. */
    if (files->fresh && (!worked || rename(files->path, files->final) != 0))
        nftw(files->path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}
