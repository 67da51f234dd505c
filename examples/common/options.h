/* SPDX-License-Identifier: MIT */
#ifndef EXAMPLES_OPTIONS_H
#define EXAMPLES_OPTIONS_H

#include "check.h"

#include <stdbool.h>

#define MAX_PLATFORM_OPTIONS 8

/* How tasks find their device; the first five words of WORKLOADS.md. */
enum distribution {
    DISTRIBUTION_SINGLE,  /* everything to one real device */
    DISTRIBUTION_BLOCK,   /* device d of D gets the d-th of D runs of tasks */
    DISTRIBUTION_CYCLIC,  /* task t goes to device t mod D: round-robin */
    DISTRIBUTION_DYNAMIC, /* each device pulls its next task when it has finished one */
    DISTRIBUTION_TUTTI,   /* everything to one device; the driver behind it distributes */
    DISTRIBUTION_DEFAULT  /* tutti on the platform "Tutti", else cyclic, else single */
};

const char *distribution_name(enum distribution distribution);

/* What all examples have in common. */
struct common_options {
    const char *platform[MAX_PLATFORM_OPTIONS]; /* parts of names, or "all" */
    unsigned platforms;
    cl_device_type device_type;
    enum distribution distribution;
    unsigned long device; /* for DISTRIBUTION_SINGLE and _TUTTI: which of the devices found */
    unsigned long depth;  /* for DISTRIBUTION_DYNAMIC: tasks in flight on a device */
    unsigned long repeat;
    unsigned long warmup;
    const char *json; /* a file to which the JSON line is appended; NULL: none */
    bool in_order;
    bool quiet;
};

/* An option of one example. `value` holds the default and receives what the user gives. */
struct option_entry {
    const char *name;
    enum { OPTION_COUNT, OPTION_REAL, OPTION_TEXT, OPTION_FLAG } kind;
    void *value;          /* unsigned long, double, const char *, bool */
    const char *argument; /* its name in the help text; NULL for a flag */
    const char *help;
};

/*
 * Reads the command line into `common` and the `count` entries of `own`. --help prints `summary`
 * and all options and exits with 0; a wrong command line exits with 2.
 */
void options_parse(int argc, char **argv, const char *summary, const struct option_entry *own,
                   unsigned count, struct common_options *common);

/* Prints on stderr unless --quiet was given. */
void progress(const struct common_options *common, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
