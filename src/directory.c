/* SPDX-License-Identifier: MIT */
#include "directory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool make(const char *path) { return mkdir(path, 0700) == 0 || errno == EEXIST; }

bool tutti_directory_make_for(const char *file) {
    char copy[PATH_MAX];
    if (snprintf(copy, sizeof(copy), "%s", file) >= (int)sizeof(copy))
        return false;
    for (char *slash = strchr(*copy == '/' ? copy + 1 : copy, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (!make(copy))
            return false;
        *slash = '/';
    }
    return true;
}

bool tutti_directory_make(const char *path) { return tutti_directory_make_for(path) && make(path); }

int tutti_directory_cached(char path[PATH_MAX], const char *name) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && *cache)
        return snprintf(path, PATH_MAX, "%s/tutti/%s", cache, name);
    if (home && *home)
        return snprintf(path, PATH_MAX, "%s/.cache/tutti/%s", home, name);
    return -1;
}
