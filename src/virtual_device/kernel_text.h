/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_KERNEL_TEXT_H
#define TUTTI_KERNEL_TEXT_H

#include "virtual_device/source.h"

/*
 * The tokens of a source in which the definition of one kernel means what it says: no macro is
 * used in it, nothing conditional or included is around it, nothing hides what it does.
 */
struct tutti_kernel_text {
    struct tutti_token *token; /* owned; directives are left out */
    unsigned *depth; /* [of each token] open brackets around it, those of its own kind in */
    size_t count;
    size_t first;     /* the word "kernel" */
    size_t body, end; /* its outermost braces */
    bool straight;    /* nothing leaves the body early, or declares types in it */
};

/* False when the kernel isn't there once, can't be taken at its word, or memory is short. */
bool tutti_kernel_text_read(const char *source, const char *options, const char *kernel,
                            struct tutti_kernel_text *text);
void tutti_kernel_text_free(struct tutti_kernel_text *text);

#endif
