/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_BUILD_DEVICE_H
#define TUTTI_BUILD_DEVICE_H

#include "virtual_device/build.h"

/* A build on one real device. */
struct tutti_build_part {
    bool wanted;
    cl_program *inputs; /* LINK: the real programs, NULL where one isn't there; retained */
    cl_program real;    /* the outcome, retained; NULL after an error */
    cl_int error;
    uint64_t build_time; /* ns that the driver took, for this one or lately for the same */
    char *log;           /* NULL when there is none */
};

/* A request, with everything that outlives the call copied or retained. */
struct tutti_build_job {
    enum tutti_build_operation operation;
    cl_program program;
    char *options;
    char *text; /* SOURCE: all that is read of it: the source, the headers, the included files */
    cl_uint input_count;
    cl_program *inputs;
    char **names;
    void(CL_CALLBACK *notify)(cl_program, void *);
    void *user_data;
    bool prints;
    uint64_t identity;
    unsigned late;                 /* bit d: device d is left for later (late_build.h) */
    uint64_t build_time;           /* ns */
    struct tutti_signatures hints; /* LINK: those of the inputs */
    struct tutti_build_part part[TUTTI_MAX_DEVICES];
};

/* Is the device to build it? Says in the log why not; remembers the answer in the part. */
bool tutti_build_part_wanted(struct tutti_build_job *job, const struct tutti_real_device *device,
                             const struct tutti_real_device *lead);

/*
 * A thread that compilers can work in: they recurse deeply, and a program may have set a small
 * stack for its own. `thread` NULL: nobody joins it. False when there is none.
 */
bool tutti_build_start_thread(void *(*function)(void *), void *argument, pthread_t *thread);

/*
 * Such a thread of which the process's end waits for the second call, which `function` makes. False
 * when there is none, or the process ends.
 */
bool tutti_build_start_background(void *(*function)(void *), void *argument);
void tutti_build_end_background(void);

/*
 * What the program's real one on that device is compiled from; NULL if that may be other things,
 * too, as files are, which may be others later, or gone.
 */
const char *tutti_build_whole_source(const struct tutti_build_job *job,
                                     const struct tutti_real_device *device);

/* Builds; fills the part of that device, and touches nothing else of the job. */
void tutti_build_part_run(struct tutti_build_job *job, const struct tutti_real_device *device);

/* The lead's log, then those of other devices that say something else (free); NULL: no memory. */
char *tutti_build_log(const struct tutti_build_job *job, const struct tutti_real_device *lead);

/* What the lead's build made. */
cl_program_binary_type tutti_build_type(const struct tutti_build_job *job,
                                        const struct tutti_real_device *lead);

#endif
