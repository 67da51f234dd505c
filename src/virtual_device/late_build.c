/* SPDX-License-Identifier: MIT */
#include "virtual_device/late_build.h"

#include "env.h"
#include "log.h"
#include "virtual_device/driver.h"
#include "virtual_device/kernel_create.h"
#include "virtual_device/pocl.h"

#include <stdlib.h>
#include <string.h>

/* Kernels waited for so many times as long as the build took: two devices share what waits. */
#define LEAST_WAIT 2

static bool has_alike(const struct tutti_build_job *job, const struct tutti_real_device *device,
                      const struct tutti_real_device *lead) {
    const struct tutti_device_list *devices = tutti_devices();
    for (unsigned d = 0; d < device->index; d++)
        if ((devices->device[d] == lead || job->part[d].wanted) &&
            devices->device[d]->identity == device->identity)
            return true;
    return false;
}

static bool is_early(void) {
    const char *wanted = tutti_env_string(TUTTI_BUILDS);
    return wanted && strcmp(wanted, "early") == 0;
}

/* The line that goes on before this place of the text: lines may be joined. */
static const char *line_start(const char *text, const char *at) {
    while (at > text && (at[-1] != '\n' || (at - 1 > text && strchr("\\\r", at[-2]))))
        at--;
    return at;
}

/* May the word there be a directive's, or the end of __has_include? Not in "this includes". */
static bool directs(const char *text, const char *word) {
    static const char *const signs[] = {"#", "%:", "\?\?=", "*/", "__has_"};
    const char *start = line_start(text, word);
    bool found = false;
    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]) && !found; i++)
        found = memmem(start, (size_t)(word - start), signs[i], strlen(signs[i]));
    return found;
}

/* Files may be others then, or gone. */
static bool reads_files(const struct tutti_build_job *job) {
    static const char *const words[] = {"include", "import"};
    const char *source = job->program->source;
    bool reads = job->options && strstr(job->options, "include");
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        for (const char *at = source; !reads && (at = strstr(at, words[i])); at++)
            reads = directs(source, at);
    return reads;
}

bool tutti_late_build_can_wait(const struct tutti_build_job *job,
                               const struct tutti_real_device *device,
                               const struct tutti_real_device *lead) {
    return job->operation == TUTTI_BUILD && job->program->origin == TUTTI_PROGRAM_SOURCE &&
           !is_early() && tutti_pocl_is(device) && device->at_home && !reads_files(job) &&
           has_alike(job, device, lead);
}

void tutti_late_build_note(cl_program program, double waited) {
    uint64_t enough = LEAST_WAIT * program->build_time;
    uint64_t more = waited * 1000 < (double)enough ? (uint64_t)(waited * 1000) : enough;
    atomic_fetch_add(&program->waited, more);
}

bool tutti_late_build_pays(cl_program program) {
    return atomic_load(&program->waited) >= LEAST_WAIT * program->build_time;
}

static void install(cl_program program, const struct tutti_real_device *device, cl_program real) {
    program->real[device->index] = real;
    for (struct tutti_function *function = program->functions; function; function = function->next)
        tutti_function_extend(function, program, device);
}

static void build(cl_program program) {
    const struct tutti_device_list *devices = tutti_devices();
    struct tutti_build_job job = {.operation = TUTTI_BUILD, .program = program};
    pthread_mutex_lock(&program->lock);
    unsigned late = atomic_exchange(&program->late, 0), build = program->build;
    job.options = program->options ? strdup(program->options) : NULL;
    if (program->options && !job.options)
        late = 0;
    pthread_mutex_unlock(&program->lock);
    job.text = program->source;
    for (unsigned d = 0; d < devices->count; d++) {
        const struct tutti_real_device *device = devices->device[d];
        struct tutti_build_part *part = &job.part[d];
        if (!(late & 1u << d))
            continue;
        tutti_build_part_run(&job, device);
        free(part->log);
        tutti_log(INFO, "program %p: built for %s too (%d)", (void *)program, device->name,
                  part->error);
        pthread_mutex_lock(&program->lock);
        bool current = program->build == build && part->real;
        if (current)
            install(program, device, part->real);
        pthread_mutex_unlock(&program->lock);
        if (!current && part->real)
            tutti_driver_release_program(device, part->real);
    }
    free(job.options);
}

static void *build_main(void *program) {
    build(program);
    return NULL;
}

void tutti_late_build_run(cl_program program) {
    pthread_t thread;
    if (tutti_build_start_thread(build_main, program, &thread))
        pthread_join(thread, NULL);
    else
        build(program);
}
