/* SPDX-License-Identifier: MIT */
#include "virtual_device/build.h"

#include "log.h"
#include "signals.h"
#include "virtual_device/build_device.h"
#include "virtual_device/driver.h"
#include "virtual_device/include.h"
#include "virtual_device/kernel.h"
#include "virtual_device/late_build.h"
#include "virtual_device/source.h"

#include <stdlib.h>
#include <string.h>

#define STACK_SIZE ((size_t)8 << 20)

static struct {
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t none;
    unsigned running;
    bool stopped;
} background = {.lock = PTHREAD_MUTEX_INITIALIZER, .none = PTHREAD_COND_INITIALIZER};

bool tutti_build_start_thread(void *(*function)(void *), void *argument, pthread_t *thread) {
    pthread_attr_t attributes;
    sigset_t before;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    if (!thread)
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    tutti_signals_block(&before);
    pthread_t ignored;
    int error = pthread_create(thread ? thread : &ignored, &attributes, function, argument);
    tutti_signals_restore(&before);
    pthread_attr_destroy(&attributes);
    return error == 0;
}

/*
 * LLVM has handlers at exit that it registers as it goes, later than the runtime's: those of what
 * the builds before this one made must not run while it does. The runtime stops builds before all
 * handlers as the main thread ends (main_ends); this is for where that does not run: another thread
 * ends the process, or the main one made no context.
 */
static void stop_at_exit(void) {
    if (!tutti_devices_forked())
        tutti_build_stop();
}

bool tutti_build_start_background(void *(*function)(void *), void *argument) {
    if (atexit(stop_at_exit) != 0)
        return false;
    pthread_mutex_lock(&background.lock);
    bool stopped = background.stopped;
    background.running += !stopped;
    pthread_mutex_unlock(&background.lock);
    if (stopped || tutti_build_start_thread(function, argument, NULL))
        return !stopped;
    tutti_build_end_background();
    return false;
}

void tutti_build_end_background(void) {
    pthread_mutex_lock(&background.lock);
    if (--background.running == 0)
        pthread_cond_broadcast(&background.none);
    pthread_mutex_unlock(&background.lock);
}

static void build_free(struct tutti_build_job *job) {
    const struct tutti_device_list *devices = tutti_devices();
    for (unsigned d = 0; d < devices->count; d++) {
        const struct tutti_real_device *device = devices->device[d];
        struct tutti_build_part *part = &job->part[d];
        for (cl_uint i = 0; part->inputs && i < job->input_count; i++)
            if (part->inputs[i])
                tutti_driver_release_program(device, part->inputs[i]);
        if (part->real)
            tutti_driver_release_program(device, part->real);
        free(part->inputs);
        free(part->log);
    }
    for (cl_uint i = 0; job->inputs && i < job->input_count; i++)
        tutti_object_release(job->inputs[i]);
    for (cl_uint i = 0; job->names && i < job->input_count; i++)
        free(job->names[i]);
    tutti_signatures_clear(&job->hints);
    tutti_object_release(job->program);
    free(job->inputs);
    free(job->names);
    free(job->options);
    free(job->text);
    free(job);
}

static struct tutti_build_job *build_copy(const struct tutti_build_request *request) {
    struct tutti_build_job *job = calloc(1, sizeof(*job));
    if (!job)
        return NULL;
    cl_uint count = request->input_count;
    job->operation = request->operation;
    job->program = tutti_object_retain(request->program);
    job->notify = request->notify;
    job->user_data = request->user_data;
    job->options = request->options ? strdup(request->options) : NULL;
    job->input_count = count;
    job->inputs = count ? calloc(count, sizeof(*job->inputs)) : NULL;
    job->names = count && request->names ? calloc(count, sizeof(*job->names)) : NULL;
    bool done = (!request->options || job->options) && (!count || job->inputs) &&
                (!count || !request->names || job->names);
    for (cl_uint i = 0; done && i < count; i++) {
        job->inputs[i] = tutti_object_retain(request->inputs[i]);
        if (job->names) {
            job->names[i] = strdup(request->names[i]);
            done = job->names[i] != NULL;
        }
    }
    if (!done) {
        build_free(job);
        return NULL;
    }
    return job;
}

/* Copies what a link needs of its inputs, so that they may be built anew meanwhile. */
static cl_int take_inputs(struct tutti_build_job *job) {
    const struct tutti_device_list *devices = tutti_devices();
    if (job->operation != TUTTI_LINK)
        return CL_SUCCESS;
    for (unsigned d = 0; d < devices->count; d++) {
        job->part[d].inputs = calloc(job->input_count, sizeof(cl_program));
        if (!job->part[d].inputs)
            return CL_OUT_OF_HOST_MEMORY;
    }
    for (cl_uint i = 0; i < job->input_count; i++) {
        cl_program input = job->inputs[i];
        pthread_mutex_lock(&input->lock);
        bool usable = input->status != CL_BUILD_IN_PROGRESS &&
                      (input->type == CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT ||
                       input->type == CL_PROGRAM_BINARY_TYPE_LIBRARY);
        for (unsigned d = 0; usable && d < devices->count; d++) {
            cl_program real = input->real[d];
            if (real && devices->device[d]->dispatch->clRetainProgram(real) == CL_SUCCESS)
                job->part[d].inputs[i] = real;
        }
        job->prints = job->prints || input->prints;
        job->identity = tutti_hash(job->identity, &input->identity, sizeof(input->identity));
        pthread_mutex_unlock(&input->lock);
        if (!usable)
            return CL_INVALID_OPERATION;
        if (!tutti_program_hints(input, &job->hints))
            return CL_OUT_OF_HOST_MEMORY;
    }
    return CL_SUCCESS;
}

/* Joins what the compilers will read. False when there is no memory. */
static bool gather_text(struct tutti_build_job *job) {
    size_t size = strlen(job->program->source) + 1;
    for (cl_uint i = 0; i < job->input_count; i++)
        size += strlen(job->inputs[i]->source) + 1;
    char *joined = malloc(size);
    if (!joined)
        return false;
    char *end = stpcpy(joined, job->program->source);
    for (cl_uint i = 0; i < job->input_count; i++) {
        *end++ = '\n';
        end = stpcpy(end, job->inputs[i]->source);
    }
    job->text = tutti_source_with_includes(joined, job->options);
    free(joined);
    return job->text != NULL;
}

/* What the code is, for its identity, and whether it prints. */
static void describe(struct tutti_build_job *job) {
    cl_program program = job->program;
    uint64_t hash = job->identity;
    if (program->origin == TUTTI_PROGRAM_SOURCE) {
        hash = tutti_hash_string(hash, job->text);
        job->prints = tutti_source_prints(job->text);
    } else if (program->origin == TUTTI_PROGRAM_IL) {
        hash = tutti_hash(hash, program->il, program->il_size);
        job->prints = program->prints;
    } else if (program->origin == TUTTI_PROGRAM_BINARY) {
        job->identity = program->loaded->identity;
        job->prints = program->loaded->prints;
        return;
    }
    job->identity = tutti_hash_string(hash, job->options ? job->options : "");
    job->prints = job->prints || (job->options && strstr(job->options, "printf"));
}

/* Checks and marks the program; see tutti_build. */
static cl_int begin(cl_program program) {
    cl_int error = CL_SUCCESS;
    pthread_mutex_lock(&program->lock);
    if (program->status == CL_BUILD_IN_PROGRESS)
        error = CL_INVALID_OPERATION;
    /* A released kernel that commands in flight still hold is no longer attached. */
    for (struct tutti_kernel_link *link = program->kernels; link; link = link->next)
        if (atomic_load(&link->kernel->object.user_refs) > 0)
            error = CL_INVALID_OPERATION;
    if (error == CL_SUCCESS)
        program->status = CL_BUILD_IN_PROGRESS;
    pthread_mutex_unlock(&program->lock);
    return error;
}

/* Gives the program what was built. */
static void install(struct tutti_build_job *job, const struct tutti_real_device *lead) {
    const struct tutti_device_list *devices = tutti_devices();
    cl_program program = job->program;
    struct tutti_build_part *won = &job->part[lead->index];
    char *log = tutti_build_log(job, lead);
    cl_program_binary_type type =
        won->error == CL_SUCCESS ? tutti_build_type(job, lead) : CL_PROGRAM_BINARY_TYPE_NONE;

    pthread_mutex_lock(&program->lock);
    tutti_function_forget_all(program);
    for (unsigned d = 0; d < devices->count; d++) {
        cl_program old = program->real[d];
        program->real[d] = won->error == CL_SUCCESS ? job->part[d].real : NULL;
        job->part[d].real = won->error == CL_SUCCESS ? old : job->part[d].real;
        if (won->error != CL_SUCCESS && old)
            tutti_driver_release_program(devices->device[d], old);
    }
    free(program->options);
    free(program->log);
    program->options = job->options;
    program->log = log;
    job->options = NULL;
    program->type = type;
    program->prints = job->prints;
    program->identity = job->identity;
    program->build++;
    atomic_store(&program->build_time, job->build_time);
    atomic_store(&program->waited, 0);
    atomic_store(&program->pays, false);
    atomic_store(&program->late, won->error == CL_SUCCESS ? job->late : 0);
    if (program->origin != TUTTI_PROGRAM_BINARY) {
        tutti_signatures_clear(&program->signatures);
        tutti_binary_free(program->binary);
        program->binary = NULL;
    }
    if (program->origin == TUTTI_PROGRAM_LINKED) {
        program->hints = job->hints;
        job->hints = (struct tutti_signatures){0};
    }
    program->status = won->error == CL_SUCCESS ? CL_BUILD_SUCCESS : CL_BUILD_ERROR;
    pthread_mutex_unlock(&program->lock);
}

struct part_thread {
    struct tutti_build_job *job;
    const struct tutti_real_device *device;
    pthread_t thread;
    bool started;
};

static void *part_main(void *argument) {
    struct part_thread *part = argument;
    tutti_build_part_run(part->job, part->device);
    return NULL;
}

/* Does the work; returns the lead's error. */
static cl_int run(struct tutti_build_job *job, const struct tutti_real_device *lead) {
    const struct tutti_device_list *devices = tutti_devices();
    struct part_thread part[TUTTI_MAX_DEVICES];
    job->part[lead->index].wanted = true;
    for (unsigned d = 0; d < devices->count; d++) {
        const struct tutti_real_device *device = devices->device[d];
        part[d] = (struct part_thread){.job = job, .device = device};
        if (device == lead || device->spare || !tutti_build_part_wanted(job, device, lead))
            continue;
        if (tutti_late_build_can_wait(job, device)) {
            job->part[d].wanted = false;
            job->late |= 1u << d;
        } else {
            part[d].started = tutti_build_start_thread(part_main, &part[d], &part[d].thread);
        }
    }
    tutti_build_part_run(job, lead);
    for (unsigned d = 0; d < devices->count; d++) {
        if (part[d].started)
            pthread_join(part[d].thread, NULL);
        else if (job->part[d].wanted && devices->device[d] != lead)
            tutti_build_part_run(job, devices->device[d]);
        if (job->part[d].wanted && job->part[d].error != CL_SUCCESS)
            tutti_log(INFO, "program %p: not on %s: its build failed (%d)", (void *)job->program,
                      devices->device[d]->name, job->part[d].error);
        if (job->part[d].wanted && job->part[d].build_time > job->build_time)
            job->build_time = job->part[d].build_time;
    }
    cl_int error = job->part[lead->index].error;
    install(job, lead);
    return error;
}

static void *background_main(void *argument) {
    struct tutti_build_job *job = argument;
    cl_program program = tutti_object_retain(job->program);
    void(CL_CALLBACK * notify)(cl_program, void *) = job->notify;
    void *user_data = job->user_data;
    run(job, tutti_program_lead());
    build_free(job);
    /* Who waits for builds must not wait for what the program does in its callback. */
    tutti_build_end_background();
    notify(program, user_data);
    tutti_object_release(program);
    return NULL;
}

void tutti_build_stop(void) {
    pthread_mutex_lock(&background.lock);
    background.stopped = true;
    while (background.running)
        pthread_cond_wait(&background.none, &background.lock);
    pthread_mutex_unlock(&background.lock);
}

cl_int tutti_build(const struct tutti_build_request *request) {
    const struct tutti_real_device *lead = tutti_program_lead();
    if (!lead)
        return CL_OUT_OF_RESOURCES;
    struct tutti_build_job *job = build_copy(request);
    if (!job)
        return CL_OUT_OF_HOST_MEMORY;
    job->identity = TUTTI_HASH_START;
    cl_int error = take_inputs(job);
    if (error == CL_SUCCESS && job->program->origin == TUTTI_PROGRAM_SOURCE && !gather_text(job))
        error = CL_OUT_OF_HOST_MEMORY;
    if (error == CL_SUCCESS)
        error = begin(job->program);
    if (error != CL_SUCCESS) {
        build_free(job);
        return error;
    }
    describe(job);
    if (job->notify && tutti_build_start_background(background_main, job))
        return CL_SUCCESS;
    error = run(job, lead);
    if (job->notify) {
        job->notify(job->program, job->user_data);
        error = CL_SUCCESS;
    }
    build_free(job);
    return error;
}
