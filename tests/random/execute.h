/* SPDX-License-Identifier: MIT */
/* A program at work on the device; execute.c makes and ends it, commands.c makes its calls. */
#ifndef TUTTI_TESTS_RANDOM_EXECUTE_H
#define TUTTI_TESTS_RANDOM_EXECUTE_H

#include "outcome.h"

#include <pthread.h>

struct run {
    const struct program *program;
    const struct order *order;
    struct outcome *outcome;
    cl_command_queue queue[MAX_QUEUES];
    cl_mem mem[MAX_OBJECTS]; /* sub-buffers are made at their first use */
    cl_event gate[MAX_GATES];
    cl_event event[MAX_STEPS];
    void *mapped[MAX_STEPS];
    uint8_t *users[MAX_OBJECTS]; /* memory of CL_MEM_USE_HOST_PTR */
    pthread_mutex_t lock;        /* guards what follows, and the making of sub-buffers */
    pthread_cond_t returned;
    bool done[MAX_STEPS];
    int event_uses[MAX_STEPS], queue_uses[MAX_QUEUES], object_uses[MAX_OBJECTS];
};

struct run_thread {
    struct run *run;
    int number;
    cl_kernel kernel[KERNEL_KINDS];
};

/* The first call that misbehaves is kept. */
void run_fault(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
void run_must(struct run *run, int step, const char *what, cl_int code);

cl_mem run_object(struct run *run, int object);

/* The image's format, and what clCreateImage wants besides (commands_image.c). */
cl_image_format image_format(const struct object *image);
cl_image_desc image_desc(const struct object *image);

/* The transfer or map with the wait list, as of commands.c. */
cl_int image_transfer(struct run *run, const struct step *step, cl_command_queue on,
                      cl_uint wait_count, const cl_event *list, cl_event *event);
cl_int image_map(struct run *run, int number, cl_command_queue on, cl_uint wait_count,
                 const cl_event *list, cl_event *event);

/* Makes the call of step i. */
void run_call(struct run_thread *thread, int i);

#endif
