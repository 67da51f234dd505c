/* SPDX-License-Identifier: MIT */
#ifndef AMR_BLOCKS_H
#define AMR_BLOCKS_H

#include "report.h"
#include "solver.h"

#define MAX_PASSES 8

/* So many blocks of so many bytes: a pass of an AMR code over one level. */
struct pass {
    size_t count, bytes;
};

/*
 * "100x5000000,30x2500000" into passes; returns how many, 0 when the text is not of that form.
 */
unsigned passes_parse(const char *text, struct pass pass[MAX_PASSES]);

/*
 * The block workloads of the paper's section 4.1: passes one after the other, each waiting for
 * the one before. A block is a patch that the solver's kernel advances `steps` times. Measures,
 * checks against the exact solution, and reports; false when a result was wrong.
 */
bool blocks_run(const struct solver *solver, const struct pass *pass, unsigned passes,
                unsigned long steps);

#endif
