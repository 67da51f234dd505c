/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_MODEL_STORE_H
#define TUTTI_MODEL_STORE_H

#include "sched/model.h"

/*
 * What was learnt, on disk (TUTTI_MODELS): a text file with a line for each kernel, sizes and kind
 * of device, the newest last. It is replaced as a whole, so that readers see the old or the new
 * one, and one process at a time replaces it, so that none loses what another learnt. What is not
 * such a file is ignored.
 */
struct tutti_model_entry {
    struct tutti_model_key key;
    uint64_t identity; /* of the real device */
    double time;       /* µs */
};

/* Calls `take` for each entry of the file. */
void tutti_model_store_read(void (*take)(const struct tutti_model_entry *entry, void *argument),
                            void *argument);

/*
 * Appends `count` entries, in place of those of the file for which `is_newer` says that they are
 * among them. The oldest ones give way when there are too many.
 */
void tutti_model_store_add(const struct tutti_model_entry *entries, size_t count,
                           bool (*is_newer)(const struct tutti_model_entry *entry));

#endif
