/* SPDX-License-Identifier: MIT */
#include "virtual_device/late_build.h"

#include "env.h"
#include "log.h"
#include "sched/model.h"
#include "virtual_device/driver.h"
#include "virtual_device/kernel_create.h"
#include "virtual_device/pocl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ns: PoCL takes up to ten times as long as a GPU's driver, and to end the process waits for it. */
#define LEAST_BESIDE_GPU 100000000u

unsigned tutti_late_build_like(unsigned devices, unsigned able) {
    const struct tutti_device_list *list = tutti_devices();
    unsigned like = 0;
    for (unsigned d = 0; d < list->count; d++)
        for (unsigned e = 0; e < list->count && devices & 1u << d; e++)
            if (able & 1u << e && list->device[e]->identity == list->device[d]->identity)
                like |= 1u << d;
    return like;
}

static bool has_alike(const struct tutti_build_job *job, const struct tutti_real_device *device) {
    unsigned before = 0;
    for (unsigned d = 0; d < device->index; d++)
        if (job->part[d].wanted)
            before |= 1u << d;
    return tutti_late_build_like(1u << device->index, before) != 0;
}

static bool is_early(void) {
    const char *wanted = tutti_env_string(TUTTI_BUILDS);
    return wanted && strcmp(wanted, "early") == 0;
}

/* How long the program's kernels waited for one of such devices, when they did so long enough. */
static struct tutti_model *model_of(uint64_t program) {
    const struct tutti_model_key key = {.code = program};
    return tutti_model_find(&key);
}

/*
 * Is that (bits, not 0) a CPU where a GPU leads? It is so much slower that many programs have no
 * use for it; whether it has the kernels at all is known once they are built.
 */
static bool helps_gpu(unsigned late) {
    const struct tutti_real_device *lead = tutti_program_lead();
    const struct tutti_real_device *device = tutti_devices()->device[__builtin_ctz(late)];
    return lead && lead->type & CL_DEVICE_TYPE_GPU && !(device->type & CL_DEVICE_TYPE_GPU);
}

bool tutti_late_build_can_wait(const struct tutti_build_job *job,
                               const struct tutti_real_device *device) {
    return job->operation == TUTTI_BUILD && !is_early() && tutti_pocl_is(device) &&
           device->at_home && tutti_build_whole_source(job, device) &&
           (helps_gpu(1u << device->index) ||
            (has_alike(job, device) && !tutti_model_is_measured(model_of(job->identity), device)));
}

bool tutti_late_build_note(cl_program program, double waited) {
    unsigned late = tutti_late_build_devices(program);
    if (!late)
        return false;
    uint64_t enough = atomic_load(&program->build_time);
    if (helps_gpu(late)) {
        if (!isfinite(waited))
            return false;
        enough = enough > LEAST_BESIDE_GPU ? enough : LEAST_BESIDE_GPU;
    }
    uint64_t more = waited * 1000 < (double)enough ? (uint64_t)(waited * 1000) : enough;
    uint64_t before = atomic_fetch_add(&program->waited, more);
    if (before + more < enough)
        return false;
    if (before < enough && isfinite(waited))
        atomic_store(&program->pays, true);
    return !atomic_load(&program->builds_late);
}

static void install(cl_program program, const struct tutti_real_device *device, cl_program real) {
    program->real[device->index] = real;
    for (struct tutti_function *function = program->functions; function; function = function->next)
        tutti_function_extend(function, program, device);
}

/* Returns the devices that have it now, as bits. */
static unsigned build(cl_program program) {
    const struct tutti_device_list *devices = tutti_devices();
    struct tutti_build_job job = {.operation = TUTTI_BUILD, .program = program};
    pthread_mutex_lock(&program->lock);
    unsigned late = tutti_late_build_devices(program), count = program->build, built = 0;
    job.identity = program->identity;
    job.options = program->options ? strdup(program->options) : NULL;
    bool able = job.options || !program->options;
    pthread_mutex_unlock(&program->lock);
    if (late && !helps_gpu(late) && atomic_load(&program->pays))
        tutti_model_learn(model_of(job.identity), devices->device[__builtin_ctz(late)],
                          (double)atomic_load(&program->waited) / 1000);
    job.text = program->source;
    for (unsigned d = 0; d < devices->count && able; d++) {
        if (!(late & 1u << d))
            continue;
        tutti_build_part_run(&job, devices->device[d]);
        free(job.part[d].log);
        tutti_log(INFO, "program %p: built for %s too (%d)", (void *)program,
                  devices->device[d]->name, job.part[d].error);
    }
    pthread_mutex_lock(&program->lock);
    bool current = program->build == count;
    for (unsigned d = 0; d < devices->count && current; d++) {
        if (!job.part[d].real)
            continue;
        install(program, devices->device[d], job.part[d].real);
        built |= 1u << d;
    }
    if (current)
        atomic_store(&program->late, 0);
    pthread_mutex_unlock(&program->lock);
    for (unsigned d = 0; d < devices->count && !current; d++)
        if (job.part[d].real)
            tutti_driver_release_program(devices->device[d], job.part[d].real);
    free(job.options);
    return built;
}

/* A build, for a thread of its own: compilers need its stack. */
struct late_build {
    cl_program program; /* retained, in the background */
    void (*built)(const struct tutti_real_device *device);
};

static void *background_main(void *argument) {
    struct late_build late = *(struct late_build *)argument;
    const struct tutti_device_list *devices = tutti_devices();
    free(argument);
    unsigned built = build(late.program);
    atomic_store(&late.program->builds_late, false);
    for (unsigned d = 0; d < devices->count; d++)
        if (built & 1u << d)
            late.built(devices->device[d]);
    tutti_object_release(late.program);
    tutti_build_end_background();
    return NULL;
}

void tutti_late_build_start(cl_program program,
                            void (*built)(const struct tutti_real_device *device)) {
    struct late_build *late = malloc(sizeof(*late));
    if (!late || atomic_exchange(&program->builds_late, true)) {
        free(late);
        return;
    }
    *late = (struct late_build){.program = tutti_object_retain(program), .built = built};
    if (tutti_build_start_background(background_main, late))
        return;
    atomic_store(&program->builds_late, false);
    tutti_object_release(program);
    free(late);
}

static void *foreground_main(void *program) {
    build(program);
    return NULL;
}

void tutti_late_build_run(cl_program program) {
    pthread_t thread;
    if (atomic_exchange(&program->builds_late, true))
        return;
    if (tutti_build_start_thread(foreground_main, program, &thread))
        pthread_join(thread, NULL);
    else
        build(program);
    atomic_store(&program->builds_late, false);
}
