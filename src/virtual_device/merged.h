/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_MERGED_H
#define TUTTI_MERGED_H

#include "virtual_device/device.h"

/* Names with their versions; those of extensions, features of OpenCL C, intermediate languages. */
struct tutti_names {
    char *text; /* " a b ", so that " name " can be searched */
    size_t count;
    cl_name_version *list; /* [count] */
};

/* What the virtual device says of itself that no real device says alone. */
struct tutti_merged {
    char name[256];
    cl_uint version;           /* 120; 300 when every real device has it */
    char device_version[64];   /* "OpenCL 3.0 Tutti x.y", the platform's too */
    char opencl_c_version[64]; /* the best that all features of that version stand behind */
    struct tutti_names extensions;
    char extension_text[2048];     /* CL_DEVICE_EXTENSIONS: as it is asked for */
    struct tutti_names features;   /* empty below 3.0 */
    struct tutti_names c_versions; /* "OpenCL C", several times */
    struct tutti_names ils;        /* those that every real device takes */
    char il_version[256];          /* the same as one string: "SPIR-V_1.0 SPIR-V_1.2" */
    struct tutti_limits limits;
};

/*
 * Never NULL. Where there is no real device, or while they are being looked for, an OpenCL 1.2
 * device without anything.
 */
const struct tutti_merged *tutti_merged(void);

/*
 * The answer of a real device to a query for an array of cl_name_version (free); `*count` is 0
 * when it has none or does not know the query.
 */
cl_name_version *tutti_names_ask(const struct tutti_real_device *device, cl_device_info what,
                                 size_t *count);

/* Is the word among the names? */
bool tutti_names_have(const struct tutti_names *names, const char *word);

/*
 * What each source starts with on that device, so that its compiler defines the macros of the
 * virtual device: those of extensions and features that are its alone are taken back, and
 * __OPENCL_VERSION__ is the same everywhere. Lines keep their numbers. Empty where they agree.
 */
const char *tutti_source_prologue(const struct tutti_real_device *device);

#endif
