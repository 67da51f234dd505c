/* SPDX-License-Identifier: MIT */
#include "check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define PAGE_BYTES 4096

void die(const char *format, ...) {
    va_list arguments;
    fprintf(stderr, "%s: ", program_invocation_short_name);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    /* Not exit(): other threads may be inside the driver, whose exit handlers would wait. */
    fflush(NULL);
    _Exit(1);
}

const char *cl_error_name(cl_int status) {
    static const struct {
        cl_int status;
        const char *name;
    } errors[] = {
#define ERROR(name) {name, #name}
        ERROR(CL_DEVICE_NOT_FOUND),
        ERROR(CL_DEVICE_NOT_AVAILABLE),
        ERROR(CL_COMPILER_NOT_AVAILABLE),
        ERROR(CL_MEM_OBJECT_ALLOCATION_FAILURE),
        ERROR(CL_OUT_OF_RESOURCES),
        ERROR(CL_OUT_OF_HOST_MEMORY),
        ERROR(CL_PROFILING_INFO_NOT_AVAILABLE),
        ERROR(CL_MEM_COPY_OVERLAP),
        ERROR(CL_BUILD_PROGRAM_FAILURE),
        ERROR(CL_MAP_FAILURE),
        ERROR(CL_MISALIGNED_SUB_BUFFER_OFFSET),
        ERROR(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
        ERROR(CL_KERNEL_ARG_INFO_NOT_AVAILABLE),
        ERROR(CL_INVALID_VALUE),
        ERROR(CL_INVALID_DEVICE_TYPE),
        ERROR(CL_INVALID_PLATFORM),
        ERROR(CL_INVALID_DEVICE),
        ERROR(CL_INVALID_CONTEXT),
        ERROR(CL_INVALID_QUEUE_PROPERTIES),
        ERROR(CL_INVALID_COMMAND_QUEUE),
        ERROR(CL_INVALID_HOST_PTR),
        ERROR(CL_INVALID_MEM_OBJECT),
        ERROR(CL_INVALID_BUILD_OPTIONS),
        ERROR(CL_INVALID_PROGRAM),
        ERROR(CL_INVALID_PROGRAM_EXECUTABLE),
        ERROR(CL_INVALID_KERNEL_NAME),
        ERROR(CL_INVALID_KERNEL),
        ERROR(CL_INVALID_ARG_INDEX),
        ERROR(CL_INVALID_ARG_VALUE),
        ERROR(CL_INVALID_ARG_SIZE),
        ERROR(CL_INVALID_KERNEL_ARGS),
        ERROR(CL_INVALID_WORK_DIMENSION),
        ERROR(CL_INVALID_WORK_GROUP_SIZE),
        ERROR(CL_INVALID_WORK_ITEM_SIZE),
        ERROR(CL_INVALID_GLOBAL_OFFSET),
        ERROR(CL_INVALID_EVENT_WAIT_LIST),
        ERROR(CL_INVALID_EVENT),
        ERROR(CL_INVALID_OPERATION),
        ERROR(CL_INVALID_BUFFER_SIZE),
        ERROR(CL_INVALID_GLOBAL_WORK_SIZE),
#undef ERROR
        {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
    };
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        if (errors[i].status == status)
            return errors[i].name;
    return "unknown error";
}

void cl_check(cl_int status, const char *call) {
    if (status != CL_SUCCESS)
        die("%s: %s (%d)", call, cl_error_name(status), status);
}

void *allocate(size_t bytes) {
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory)
        die("no memory for %zu bytes", bytes);
    return memory;
}

void *allocate_zeroed(size_t count, size_t bytes) {
    void *memory = calloc(count ? count : 1, bytes ? bytes : 1);
    if (!memory)
        die("no memory for %zu times %zu bytes", count, bytes);
    return memory;
}

void *allocate_pages(size_t bytes) {
    void *memory;
    if (posix_memalign(&memory, PAGE_BYTES, bytes ? bytes : 1) != 0)
        die("no memory for %zu bytes", bytes);
    return memory;
}
