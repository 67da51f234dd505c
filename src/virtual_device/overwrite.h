/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_OVERWRITE_H
#define TUTTI_OVERWRITE_H

#include "virtual_device/kernel.h"

/*
 * A proof, from a kernel's source, that it writes every element of a buffer and reads none: each
 * work-item stores once, at its own place, whatever happens. Or that it writes nothing there. Never
 * a guess: what the reader does not understand completely is not proven.
 */
struct tutti_overwrite {
    bool only_read; /* it writes nothing; then nothing else is proven */
    size_t element; /* bytes that one work-item stores; 0: nothing is proven */
    /*
     * The index is the global id `inner`, or, with `plane`, that id plus the other one of the first
     * two times the width, which is the global size `inner` or the value of an argument.
     */
    cl_uint inner;
    bool plane;
    bool by_argument;
    unsigned width; /* with `by_argument`: which one */
};

/*
 * Fills `overwrites` for the `count` arguments of the kernel. `options` (may be NULL) are the
 * build's.
 */
void tutti_overwrite_prove(const char *source, const char *options, const char *kernel,
                           const struct tutti_argument_info *info, unsigned count,
                           struct tutti_overwrite *overwrites);

/* Does this launch store to each of `size` bytes? The buffer must not be another argument too. */
bool tutti_overwrite_covers(const struct tutti_overwrite *overwrite,
                            const struct tutti_arguments *arguments, cl_uint dimensions,
                            const size_t *offset, const size_t *global, size_t size);

#endif
