/* SPDX-License-Identifier: MIT */
/* What a program leaves that can be observed: by the serial interpreter, and by OpenCL. */
#ifndef TUTTI_TESTS_RANDOM_OUTCOME_H
#define TUTTI_TESTS_RANDOM_OUTCOME_H

#include "order.h"

struct outcome {
    uint8_t *object[MAX_OBJECTS]; /* final bytes of the buffers; NULL where nobody can look */
    uint8_t *host[MAX_HOSTS];     /* of program->host_size bytes */
    uint32_t seen[MAX_STEPS];     /* by steps that look: a hash of the bytes */
    cl_int status[MAX_STEPS];     /* of commands: final, where the program keeps the event */
    char fault[512];              /* an OpenCL call that did not do as it should */
};

void outcome_begin(struct outcome *outcome, const struct program *program);
void outcome_end(struct outcome *outcome);

void outcome_interpret(struct outcome *outcome, const struct program *program,
                       const struct order *order);

/* Runs the program on the device; a stuck program is for the caller's alarm. */
void outcome_execute(struct outcome *outcome, const struct program *program,
                     const struct order *order);

/* True if they agree; else says in `text` where they don't. */
bool outcome_compare(const struct program *program, const struct order *order,
                     const struct outcome *expected, const struct outcome *seen, char *text,
                     size_t size);

/* The final bytes of this buffer can be compared. */
bool outcome_shows(const struct program *program, const struct order *order, int object);
/* The program keeps this command's event, or another step needs it. */
bool outcome_keeps_event(const struct program *program, int step);

/* What a map for overwriting holds that the program never wrote. */
enum { UNWRITTEN = 0xA5 };

uint32_t kernel_work(uint32_t value, unsigned rounds);

#endif
