/* SPDX-License-Identifier: MIT */
#include "virtual_device/vendor.h"

#include "env.h"
#include "log.h"
#include "virtual_device/device.h"

#include <CL/cl_ext.h>
#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_VENDORS "/etc/OpenCL/vendors"
#define MOST_PLATFORMS 32

typedef cl_int(CL_API_CALL *get_platforms)(cl_uint, cl_platform_id *, cl_uint *);

struct visit {
    void (*found)(cl_platform_id, const cl_icd_dispatch *, const char *, void *);
    void *argument;
    unsigned platforms;
    /* One driver is often named twice, by its file and by its soname. */
    cl_platform_id seen[MOST_PLATFORMS];
};

static bool is_one_of_us(const char *name) {
    /* Another copy of Tutti would gather the same devices; SOCL starts StarPU when it is asked. */
    return strcmp(name, "Tutti") == 0 || strcmp(name, "SOCL Platform") == 0;
}

static void visit_platform(struct visit *visit, cl_platform_id platform, const char *library) {
    char name[256] = "";
    if (!platform || platform == tutti_platform() || visit->platforms == MOST_PLATFORMS)
        return;
    for (unsigned i = 0; i < visit->platforms; i++)
        if (visit->seen[i] == platform)
            return;
    const cl_icd_dispatch *dispatch = *(const cl_icd_dispatch *const *)(const void *)platform;
    if (!dispatch || !dispatch->clGetPlatformInfo || !dispatch->clGetDeviceIDs ||
        !dispatch->clGetDeviceInfo ||
        dispatch->clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof(name), name, NULL) !=
            CL_SUCCESS) {
        tutti_log(WARNING, "%s: a platform without a usable dispatch table", library);
        return;
    }
    if (is_one_of_us(name))
        return;
    visit->seen[visit->platforms++] = platform;
    visit->found(platform, dispatch, name, visit->argument);
}

static void visit_library(struct visit *visit, const char *library) {
    /* Never closed: drivers do not survive it, and their objects are in use until the end. */
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        tutti_log(WARNING, "%s", dlerror());
        return;
    }
    void *(CL_API_CALL * find)(const char *) = NULL;
    *(void **)&find = dlsym(handle, "clGetExtensionFunctionAddress");
    get_platforms ask = NULL;
    *(void **)&ask = find ? find("clIcdGetPlatformIDsKHR") : NULL;
    if (!ask)
        *(void **)&ask = dlsym(handle, "clIcdGetPlatformIDsKHR");
    cl_platform_id platforms[MOST_PLATFORMS];
    cl_uint count = 0;
    if (!ask || ask(MOST_PLATFORMS, platforms, &count) != CL_SUCCESS) {
        tutti_log(WARNING, "%s: no platform", library);
        return;
    }
    for (cl_uint i = 0; i < count && i < MOST_PLATFORMS; i++)
        visit_platform(visit, platforms[i], library);
}

/* An .icd file names a library in its first line. */
static void visit_icd_file(struct visit *visit, const char *path) {
    char line[PATH_MAX];
    FILE *file = fopen(path, "re");
    if (!file) {
        tutti_log(WARNING, "%s can't be read", path);
        return;
    }
    if (fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\r\n")] = 0;
        if (line[0])
            visit_library(visit, line);
    }
    fclose(file);
}

static bool ends_in_icd(const char *name) {
    size_t length = strlen(name);
    return length > 4 && strcmp(name + length - 4, ".icd") == 0;
}

static int names_icd(const struct dirent *entry) { return ends_in_icd(entry->d_name); }

static void visit_place(struct visit *visit, const char *path) {
    struct stat status;
    bool there = stat(path, &status) == 0;
    if (there && S_ISDIR(status.st_mode)) {
        struct dirent **entries;
        int count = scandir(path, &entries, names_icd, alphasort);
        for (int i = 0; i < count; i++) {
            char file[PATH_MAX];
            if (snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name) < (int)sizeof(file))
                visit_icd_file(visit, file);
            free(entries[i]);
        }
        if (count >= 0)
            free(entries);
    } else if (ends_in_icd(path)) {
        visit_icd_file(visit, path);
    } else {
        visit_library(visit, path);
    }
}

/* ocl-icd's own name for the directory comes first. */
static const char *default_vendors(void) {
    const char *path = getenv("OPENCL_VENDOR_PATH");
    return path && *path ? path : DEFAULT_VENDORS;
}

/* OCL_ICD_VENDORS as ocl-icd reads it: the bare name of an .icd file may mean one of the default
 * directory. */
static void visit_setting(struct visit *visit, const char *setting) {
    char file[PATH_MAX];
    if (ends_in_icd(setting) && !strchr(setting, '/') &&
        snprintf(file, sizeof(file), "%s/%s", default_vendors(), setting) < (int)sizeof(file) &&
        access(file, R_OK) == 0)
        visit_place(visit, file);
    else
        visit_place(visit, setting);
}

/* A list of libraries, as the Khronos loader takes it. */
static void visit_list(struct visit *visit, const char *list) {
    while (*list) {
        char path[PATH_MAX];
        size_t length = strcspn(list, ":");
        if (length > 0 && length < sizeof(path)) {
            memcpy(path, list, length);
            path[length] = 0;
            visit_place(visit, path);
        }
        list += length + (list[length] == ':');
    }
}

void tutti_vendors_visit(void (*found)(cl_platform_id, const cl_icd_dispatch *, const char *,
                                       void *),
                         void *argument) {
    struct visit visit = {.found = found, .argument = argument};
    const char *place = tutti_env_string(TUTTI_VENDORS);
    if (place && *place) {
        visit_place(&visit, place);
        return;
    }
    const char *libraries = getenv("OCL_ICD_FILENAMES");
    if (libraries)
        visit_list(&visit, libraries);
    place = getenv("OCL_ICD_VENDORS");
    if (place && *place)
        visit_setting(&visit, place);
    else
        visit_place(&visit, default_vendors());
    /* OCL_ICD_VENDORS=…/libtutti.so shows the program Tutti alone, over all real devices. */
    if (visit.platforms == 0)
        visit_place(&visit, default_vendors());
}
