/* SPDX-License-Identifier: MIT */
/*
 * Random programs in processes of their own, so that a crash or a hang is a result like any other,
 * and the shrinking of one that fails.
 */
#ifndef TUTTI_TESTS_RANDOM_SHRINK_H
#define TUTTI_TESTS_RANDOM_SHRINK_H

#include "program.h"

struct trial {
    uint32_t seed;     /* of the first program */
    size_t count;      /* programs */
    size_t repeat;     /* runs of each */
    int devices;       /* PoCL's basic devices; 0: as the environment says */
    const bool *keep;  /* the steps to keep, of all programs; NULL for all */
    unsigned patience; /* seconds for one program */
};

struct failure {
    uint32_t seed;
    char text[600];
};

/* True if all went well. */
bool trial_run(const struct trial *trial, struct failure *failure);

/*
 * Prints the failure, the smallest program found that still fails, and how to repeat it. Every line
 * starts with '#'.
 */
void trial_shrink(const struct trial *trial, const struct failure *failure, FILE *out);

/* The program of a trial; NULL, or why the steps that are kept are none. */
const char *trial_program(const struct trial *trial, uint32_t seed, struct program *program);

#endif
