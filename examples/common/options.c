/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OPTIONS 48

static const char *const distribution_names[] = {"single",  "block", "cyclic",
                                                 "dynamic", "tutti", "default"};

const char *distribution_name(enum distribution distribution) {
    return distribution_names[distribution];
}

static void wrong(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

static void wrong(const char *format, ...) {
    va_list arguments;
    fprintf(stderr, "%s: ", program_invocation_short_name);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\nTry '%s --help'.\n", program_invocation_short_name);
    exit(2);
}

static void help(const char *summary, const struct option_entry *entry, unsigned count) {
    printf("Usage: %s [OPTION]...\n%s\n\n", program_invocation_short_name, summary);
    for (unsigned i = 0; i < count; i++) {
        char left[64];
        snprintf(left, sizeof(left), "--%s%s%s", entry[i].name, entry[i].argument ? " " : "",
                 entry[i].argument ? entry[i].argument : "");
        printf("  %-26s %s", left, entry[i].help);
        if (entry[i].kind == OPTION_COUNT)
            printf(" [%lu]", *(unsigned long *)entry[i].value);
        if (entry[i].kind == OPTION_REAL)
            printf(" [%g]", *(double *)entry[i].value);
        putchar('\n');
    }
    puts("  --help                     print this and exit\n\n"
         "Exit status: 0 if the result was right, 1 if it was wrong or OpenCL failed,\n"
         "2 if the command line was wrong.");
    exit(0);
}

static unsigned long count_of(const char *name, const char *text) {
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno || end == text || *end || text[0] == '-')
        wrong("--%s needs a whole number, not '%s'", name, text);
    return value;
}

static double real_of(const char *name, const char *text) {
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (errno || end == text || *end)
        wrong("--%s needs a number, not '%s'", name, text);
    return value;
}

static cl_device_type device_type_of(const char *text) {
    static const struct {
        const char *name;
        cl_device_type type;
    } types[] = {{"all", CL_DEVICE_TYPE_ALL},
                 {"cpu", CL_DEVICE_TYPE_CPU},
                 {"gpu", CL_DEVICE_TYPE_GPU},
                 {"accelerator", CL_DEVICE_TYPE_ACCELERATOR}};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(text, types[i].name) == 0)
            return types[i].type;
    wrong("unknown device type '%s'", text);
}

static enum distribution distribution_of(const char *text) {
    for (unsigned i = 0; i < DISTRIBUTION_DEFAULT; i++)
        if (strcmp(text, distribution_names[i]) == 0)
            return (enum distribution)i;
    wrong("unknown distribution '%s'", text);
}

static void store(const struct option_entry *entry, const char *text) {
    switch (entry->kind) {
    case OPTION_COUNT:
        *(unsigned long *)entry->value = count_of(entry->name, text);
        break;
    case OPTION_REAL:
        *(double *)entry->value = real_of(entry->name, text);
        break;
    case OPTION_TEXT:
        *(const char **)entry->value = text;
        break;
    case OPTION_FLAG:
        *(bool *)entry->value = true;
        break;
    }
}

void options_parse(int argc, char **argv, const char *summary, const struct option_entry *own,
                   unsigned count, struct common_options *common) {
    const char *platform = NULL, *type = NULL, *distribution = NULL;
    *common = (struct common_options){.device_type = CL_DEVICE_TYPE_ALL,
                                      .distribution = DISTRIBUTION_DEFAULT,
                                      .depth = 2,
                                      .repeat = 10,
                                      .warmup = 1};
    const struct option_entry shared[] = {
        {"platform", OPTION_TEXT, &platform, "NAME",
         "part of a platform's name, or all; may be given again"},
        {"device-type", OPTION_TEXT, &type, "TYPE", "all, cpu, gpu or accelerator"},
        {"distribution", OPTION_TEXT, &distribution, "HOW",
         "single, block, cyclic, dynamic or tutti"},
        {"device", OPTION_COUNT, &common->device, "N",
         "with single or tutti: the number of the device"},
        {"depth", OPTION_COUNT, &common->depth, "N", "with dynamic: tasks in flight on a device"},
        {"in-order", OPTION_FLAG, &common->in_order, NULL,
         "use in-order queues even where out-of-order ones exist"},
        {"repeat", OPTION_COUNT, &common->repeat, "N", "measured runs of the main loop"},
        {"warmup", OPTION_COUNT, &common->warmup, "N",
         "runs before those; the first is the cold one"},
        {"json", OPTION_TEXT, &common->json, "FILE", "append the JSON line to FILE too"},
        {"quiet", OPTION_FLAG, &common->quiet, NULL, "print nothing but the JSON line"},
    };
    const unsigned shared_count = sizeof(shared) / sizeof(shared[0]);
    struct option_entry entry[MAX_OPTIONS];
    if (count + shared_count > MAX_OPTIONS)
        die("more than %d options", MAX_OPTIONS);
    memcpy(entry, own, count * sizeof(entry[0]));
    memcpy(entry + count, shared, sizeof(shared));
    count += shared_count;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0)
            help(summary, entry, count);
        if (strncmp(argv[i], "--", 2) != 0)
            wrong("unexpected argument '%s'", argv[i]);
        const char *name = argv[i] + 2, *equals = strchr(name, '=');
        size_t length = equals ? (size_t)(equals - name) : strlen(name);
        const struct option_entry *found = NULL;
        for (unsigned k = 0; k < count; k++)
            if (strlen(entry[k].name) == length && memcmp(entry[k].name, name, length) == 0)
                found = &entry[k];
        if (!found)
            wrong("unknown option '%s'", argv[i]);
        const char *text = equals ? equals + 1 : NULL;
        if (found->kind == OPTION_FLAG && text)
            wrong("--%s takes no value", found->name);
        if (found->kind != OPTION_FLAG && !text) {
            if (++i == argc)
                wrong("--%s needs a value", found->name);
            text = argv[i];
        }
        store(found, text);
        if (found->value == &platform) {
            if (common->platforms == MAX_PLATFORM_OPTIONS)
                wrong("more than %d platforms", MAX_PLATFORM_OPTIONS);
            common->platform[common->platforms++] = platform;
        }
    }
    if (type)
        common->device_type = device_type_of(type);
    if (distribution)
        common->distribution = distribution_of(distribution);
    if (common->repeat == 0 || common->depth == 0)
        wrong("--repeat and --depth must be at least 1");
}

void progress(const struct common_options *common, const char *format, ...) {
    if (common->quiet)
        return;
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
}
