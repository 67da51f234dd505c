/* SPDX-License-Identifier: MIT */
#include "virtual_device/build_device.h"

#include "clock.h"
#include "log.h"
#include "virtual_device/built.h"
#include "virtual_device/driver.h"
#include "virtual_device/include.h"
#include "virtual_device/merged.h"
#include "virtual_device/pocl.h"
#include "virtual_device/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char argument_option[] = "-cl-kernel-arg-info";

/* Do the options ask for a version of OpenCL C that the virtual device does not promise? */
static bool asks_for_unknown_version(const char *options) {
    static const char prefix[] = "-cl-std=";
    const char *given = options ? strstr(options, prefix) : NULL;
    unsigned major, minor;
    if (!given)
        return false;
    if (sscanf(given + strlen(prefix), "CL%u.%u", &major, &minor) != 2)
        return true;
    return major != 1 && (major != 3 || minor != 0 || tutti_merged()->version < 300);
}

bool tutti_build_part_wanted(struct tutti_build_job *job, const struct tutti_real_device *device,
                             const struct tutti_real_device *lead) {
    struct tutti_build_part *part = &job->part[device->index];
    char name[64];
    part->wanted = false;
    if (!tutti_device_is_driven(device))
        return false;
    for (cl_uint i = 0; part->inputs && i < job->input_count; i++)
        if (!part->inputs[i]) {
            tutti_log(INFO, "program %p: not on %s: one of its parts is not there",
                      (void *)job->program, device->name);
            return false;
        }
    if (job->program->origin == TUTTI_PROGRAM_BINARY &&
        !tutti_binary_find(job->program->loaded, device))
        return false;
    /* OpenCL C 2.0 has variables in program scope, of which each device would have its own. */
    if (job->text && device != lead && asks_for_unknown_version(job->options)) {
        tutti_log(INFO, "program %p: not on %s: a version of OpenCL C that is not promised",
                  (void *)job->program, device->name);
        return false;
    }
    if (job->text &&
        tutti_source_differs(job->text, job->options, lead, device, name, sizeof(name))) {
        tutti_log(INFO, "program %p: not on %s: its source tests %s", (void *)job->program,
                  device->name, name);
        return false;
    }
    part->wanted = true;
    return true;
}

static bool is_options_error(cl_int error) {
    return error == CL_INVALID_BUILD_OPTIONS || error == CL_INVALID_COMPILER_OPTIONS ||
           error == CL_INVALID_LINKER_OPTIONS;
}

/* Is there an option in the name space of the specification (5.6.4) that it does not have? */
static bool has_unknown_option(const char *options) {
    static const char *const known[] = {
        "single-precision-constant",
        "denorms-are-zero",
        "fp32-correctly-rounded-divide-sqrt",
        "opt-disable",
        "strict-aliasing",
        "uniform-work-group-size",
        "no-subgroup-ifp",
        "mad-enable",
        "no-signed-zeros",
        "finite-math-only",
        "unsafe-math-optimizations",
        "fast-relaxed-math",
        "std",
        "kernel-arg-info",
    };
    static const char prefix[] = "-cl-";
    for (const char *p = options; p && (p = strstr(p, prefix)); p++) {
        const char *name = p + strlen(prefix);
        size_t length = strcspn(name, "= \t");
        bool found = p != options && !strchr(" \t", p[-1]);
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
            found = found || (strlen(known[i]) == length && memcmp(known[i], name, length) == 0);
        if (!found)
            return true;
    }
    return false;
}

/*
 * Leaves the errors that the specification has; others become the operation's failure, or the
 * error of an option where a driver (Oclgrind) makes no difference between the two.
 */
static cl_int allowed_error(const struct tutti_build_job *job, cl_int error) {
    enum tutti_build_operation operation = job->operation;
    static const cl_int options[] = {CL_INVALID_BUILD_OPTIONS, CL_INVALID_COMPILER_OPTIONS,
                                     CL_INVALID_LINKER_OPTIONS};
    static const cl_int failure[] = {CL_BUILD_PROGRAM_FAILURE, CL_COMPILE_PROGRAM_FAILURE,
                                     CL_LINK_PROGRAM_FAILURE};
    switch (error) {
    case CL_SUCCESS:
    case CL_OUT_OF_RESOURCES:
    case CL_OUT_OF_HOST_MEMORY:
    case CL_COMPILER_NOT_AVAILABLE:
    case CL_LINKER_NOT_AVAILABLE:
    case CL_INVALID_OPERATION:
    case CL_INVALID_BINARY:
        return error;
    default:
        return is_options_error(error) || has_unknown_option(job->options) ? options[operation]
                                                                           : failure[operation];
    }
}

static cl_int call(const struct tutti_build_job *job, const struct tutti_real_device *device,
                   cl_program real, const char *options, const cl_program *headers) {
    const cl_icd_dispatch *dispatch = device->dispatch;
    if (job->operation == TUTTI_BUILD)
        return dispatch->clBuildProgram
                   ? dispatch->clBuildProgram(real, 1, &device->id, options, NULL, NULL)
                   : CL_COMPILER_NOT_AVAILABLE;
    return dispatch->clCompileProgram
               ? dispatch->clCompileProgram(real, 1, &device->id, options, job->input_count,
                                            headers, (const char **)job->names, NULL, NULL)
               : CL_COMPILER_NOT_AVAILABLE;
}

/*
 * The driver's own words before the program's. A source without a version of OpenCL C is 1.2,
 * but PoCL takes it for 3.0 on a device that has it, also where the virtual device does not.
 */
static char *extended_options(const struct tutti_build_job *job,
                              const struct tutti_real_device *device, bool informed) {
    bool kept = tutti_program_source_entry(job->program, device) != NULL;
    const char *given = kept ? job->program->loaded->options : job->options ? job->options : "";
    cl_uint shown = tutti_merged()->version;
    bool older =
        (job->text || kept) && shown < 300 && device->version > shown && !strstr(given, "-cl-std=");
    char *options = NULL;
    if (asprintf(&options, "%s %s%s", informed ? argument_option : "",
                 older ? "-cl-std=CL1.2 " : "", given) < 0)
        return NULL;
    return options;
}

static cl_int call_extended(const struct tutti_build_job *job,
                            const struct tutti_real_device *device, cl_program real,
                            const cl_program *headers, bool informed) {
    char *options = extended_options(job, device, informed);
    if (!options)
        return CL_OUT_OF_HOST_MEMORY;
    cl_int error = call(job, device, real, options, headers);
    free(options);
    return error;
}

static bool asks_for_arguments(const struct tutti_build_job *job) {
    return job->options && strstr(job->options, argument_option);
}

/* Builds or compiles so that the real kernels tell their arguments. */
static cl_int call_informed(const struct tutti_build_job *job,
                            const struct tutti_real_device *device, cl_program real,
                            const cl_program *headers) {
    /* Of a binary the options say only that they are those of its build. */
    if (job->program->origin == TUTTI_PROGRAM_BINARY &&
        !tutti_program_source_entry(job->program, device))
        return call(job, device, real, job->options, headers);
    bool asked = asks_for_arguments(job);
    cl_int error = call_extended(job, device, real, headers, !asked);
    /* The option itself may be what fails: NVIDIA's compiler refuses some sources with it only. */
    bool may_be_refused = !asked && !tutti_pocl_is(device);
    return error == CL_SUCCESS || !may_be_refused
               ? error
               : call_extended(job, device, real, headers, false);
}

const char *tutti_build_whole_source(const struct tutti_build_job *job,
                                     const struct tutti_real_device *device) {
    cl_program program = job->program;
    if (program->origin == TUTTI_PROGRAM_SOURCE)
        return tutti_source_reads_files(program->source, job->options) ? NULL : program->source;
    const struct tutti_binary_entry *entry = tutti_program_source_entry(program, device);
    return entry ? (const char *)entry->bytes : NULL;
}

static cl_int compile(struct tutti_build_job *job, const struct tutti_real_device *device,
                      struct tutti_build_part *part) {
    cl_int error = CL_SUCCESS;
    cl_program *headers = NULL;
    part->real = tutti_program_make_real(job->program, device, &error);
    if (!part->real)
        return error;
    if (job->input_count) {
        headers = calloc(job->input_count, sizeof(*headers));
        if (!headers)
            return CL_OUT_OF_HOST_MEMORY;
    }
    for (cl_uint i = 0; error == CL_SUCCESS && i < job->input_count; i++)
        headers[i] = tutti_program_make_real(job->inputs[i], device, &error);
    if (error == CL_SUCCESS)
        error = call_informed(job, device, part->real, headers);
    for (cl_uint i = 0; headers && i < job->input_count; i++)
        if (headers[i])
            device->dispatch->clReleaseProgram(headers[i]);
    free(headers);
    return error;
}

static cl_int link_inputs(struct tutti_build_job *job, const struct tutti_real_device *device,
                          struct tutti_build_part *part) {
    cl_int error = CL_LINK_PROGRAM_FAILURE;
    if (!device->dispatch->clLinkProgram)
        return CL_LINKER_NOT_AVAILABLE;
    for (cl_uint i = 0; i < job->input_count; i++)
        if (!part->inputs[i])
            return CL_INVALID_OPERATION;
    part->real =
        device->dispatch->clLinkProgram(device->place.context, 1, &device->id, job->options,
                                        job->input_count, part->inputs, NULL, NULL, &error);
    return part->real || error != CL_SUCCESS ? error : CL_LINK_PROGRAM_FAILURE;
}

static char *read_log(cl_program real, const struct tutti_real_device *device) {
    size_t size = 0;
    if (device->dispatch->clGetProgramBuildInfo(real, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL,
                                                &size) != CL_SUCCESS ||
        !size)
        return NULL;
    char *log = calloc(1, size + 1);
    if (log && device->dispatch->clGetProgramBuildInfo(real, device->id, CL_PROGRAM_BUILD_LOG, size,
                                                       log, NULL) != CL_SUCCESS) {
        free(log);
        log = NULL;
    }
    return log;
}

static void run(struct tutti_build_job *job, const struct tutti_real_device *device,
                struct tutti_build_part *part) {
    uint64_t begin = tutti_clock_now();
    int lock = tutti_pocl_is(device) ? tutti_pocl_begin_build(job->identity) : -1;
    tutti_driver_lock(device);
    cl_int error =
        job->operation == TUTTI_LINK ? link_inputs(job, device, part) : compile(job, device, part);
    part->error = allowed_error(job, error);
    if (part->real)
        part->log = read_log(part->real, device);
    if (part->real && part->error != CL_SUCCESS) {
        device->dispatch->clReleaseProgram(part->real);
        part->real = NULL;
    }
    tutti_driver_unlock(device);
    tutti_pocl_end_build(lock);
    part->build_time = tutti_clock_now() - begin;
}

void tutti_build_part_run(struct tutti_build_job *job, const struct tutti_real_device *device) {
    struct tutti_build_part *part = &job->part[device->index];
    const char *source =
        job->operation == TUTTI_BUILD ? tutti_build_whole_source(job, device) : NULL;
    char *options = source ? extended_options(job, device, !asks_for_arguments(job)) : NULL;
    part->real = options ? tutti_built_find(device, source, options, &part->build_time) : NULL;
    if (part->real) {
        part->log = read_log(part->real, device);
    } else {
        run(job, device, part);
        if (options && part->real)
            tutti_built_keep(device, source, options, part->real, part->build_time);
    }
    free(options);
}

/* Does the log of device d say what no log before it does? */
static bool says_more(const struct tutti_build_job *job, unsigned d, unsigned lead) {
    const struct tutti_device_list *devices = tutti_devices();
    const struct tutti_build_part *part = &job->part[d];
    if (d == lead || !part->wanted || !part->log || part->log[strspn(part->log, " \t\r\n")] == '\0')
        return false;
    for (unsigned k = 0; k < devices->count; k++) {
        if (k != lead && k >= d)
            continue;
        /* The same driver says the same, but for the names of its temporary files. */
        bool same_driver = devices->device[k]->identity == devices->device[d]->identity &&
                           job->part[k].error == part->error;
        bool same_log = job->part[k].log && strcmp(job->part[k].log, part->log) == 0;
        if (job->part[k].wanted && (same_driver || same_log))
            return false;
    }
    return true;
}

char *tutti_build_log(const struct tutti_build_job *job, const struct tutti_real_device *lead) {
    const struct tutti_device_list *devices = tutti_devices();
    const char *first = job->part[lead->index].log;
    size_t size = strlen(first ? first : "") + 1;
    for (unsigned d = 0; d < devices->count; d++)
        if (says_more(job, d, lead->index))
            size += strlen(job->part[d].log) + strlen(devices->device[d]->name) + 4;
    char *log = malloc(size);
    if (!log)
        return NULL;
    size_t end = (size_t)snprintf(log, size, "%s", first ? first : "");
    for (unsigned d = 0; d < devices->count; d++)
        if (says_more(job, d, lead->index))
            end += (size_t)snprintf(log + end, size - end, "%s%s:\n%s",
                                    end && log[end - 1] != '\n' ? "\n" : "",
                                    devices->device[d]->name, job->part[d].log);
    return log;
}

cl_program_binary_type tutti_build_type(const struct tutti_build_job *job,
                                        const struct tutti_real_device *lead) {
    cl_program_binary_type type = CL_PROGRAM_BINARY_TYPE_NONE;
    cl_program real = job->part[lead->index].real;
    if (lead->dispatch->clGetProgramBuildInfo(real, lead->id, CL_PROGRAM_BINARY_TYPE, sizeof(type),
                                              &type, NULL) == CL_SUCCESS &&
        type != CL_PROGRAM_BINARY_TYPE_NONE)
        return type;
    if (job->operation == TUTTI_COMPILE)
        return CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT;
    if (job->operation == TUTTI_LINK && job->options && strstr(job->options, "-create-library"))
        return CL_PROGRAM_BINARY_TYPE_LIBRARY;
    return CL_PROGRAM_BINARY_TYPE_EXECUTABLE;
}
