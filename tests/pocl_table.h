/* SPDX-License-Identifier: MIT */
/* The dispatch table of PoCL in this process, for tests that put calls of theirs in between. */
#ifndef TUTTI_TESTS_POCL_TABLE_H
#define TUTTI_TESTS_POCL_TABLE_H

#include "support.h"

#include <CL/cl_icd.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

/* Before any call of OpenCL's; writable. NULL where PoCL is not there. */
static cl_icd_dispatch *pocl_table(cl_platform_id *pocl) {
    char path[1024], name[256] = "";
    const char *vendors = getenv("OCL_ICD_VENDORS");
    snprintf(path, sizeof(path), "%s/pocl.icd", vendors ? vendors : ".");
    FILE *file = fopen(path, "r");
    if (!file)
        return NULL;
    int read = fscanf(file, "%255s", name);
    fclose(file);
    void *library = read == 1 ? dlopen(name, RTLD_NOW) : NULL;
    void *(*address)(const char *) =
        library ? (void *(*)(const char *))dlsym(library, "clGetExtensionFunctionAddress") : NULL;
    clIcdGetPlatformIDsKHR_fn get = NULL;
    if (address)
        get = (clIcdGetPlatformIDsKHR_fn)address("clIcdGetPlatformIDsKHR");
    if (!get || get(1, pocl, NULL) != CL_SUCCESS)
        return NULL;
    cl_icd_dispatch *table = *(cl_icd_dispatch **)*pocl; /* an object begins with it */
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = (uintptr_t)table / page * page, end = (uintptr_t)(table + 1);
    return mprotect((void *)begin, end - begin, PROT_READ | PROT_WRITE) == 0 ? table : NULL;
}

#endif
