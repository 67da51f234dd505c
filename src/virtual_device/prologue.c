/* SPDX-License-Identifier: MIT */
#include "virtual_device/merged.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *prologues[TUTTI_MAX_DEVICES];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void undefine(FILE *out, const char *name) { fprintf(out, "#undef %s\n", name); }

/* The words of " a b " that the virtual device has not. */
static void undefine_hidden(FILE *out, const char *words, const struct tutti_names *shown) {
    char *copy = strdup(words ? words : ""), *rest = NULL;
    for (char *word = copy ? strtok_r(copy, " ", &rest) : NULL; word;
         word = strtok_r(NULL, " ", &rest))
        if (!tutti_names_have(shown, word))
            undefine(out, word);
    free(copy);
}

/* Macros that Oclgrind's compiler defines though its device has not the extensions. */
static const char more_of_oclgrind[] =
    "cl_khr_3d_image_writes cl_khr_depth_images cl_khr_fp16 cl_khr_fp64 cl_khr_gl_msaa_sharing "
    "cl_khr_int64_base_atomics cl_khr_int64_extended_atomics cl_khr_mipmap_image "
    "cl_khr_mipmap_image_writes cl_khr_srgb_image_writes cl_khr_subgroups";

/*
 * Directives, not options: PoCL knows no -U. Compilers take the macros back without a word, also
 * under -Werror.
 */
static char *write_prologue(const struct tutti_real_device *device) {
    const struct tutti_merged *merged = tutti_merged();
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    undefine_hidden(out, device->extensions, &merged->extensions);
    undefine_hidden(out, device->features, &merged->features);
    if (tutti_device_interprets(device))
        undefine_hidden(out, more_of_oclgrind, &merged->extensions);
    if (!merged->limits.image_support && device->image_support)
        undefine(out, "__IMAGE_SUPPORT__");
    if (device->version != merged->version)
        fprintf(out, "#undef __OPENCL_VERSION__\n#define __OPENCL_VERSION__ %u\n", merged->version);
    if (ftell(out) > 0)
        fprintf(out, "#line 1\n");
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static void write_all(void) {
    const struct tutti_device_list *devices = tutti_devices();
    for (unsigned d = 0; d < devices->count; d++)
        prologues[d] = write_prologue(devices->device[d]);
}

const char *tutti_source_prologue(const struct tutti_real_device *device) {
    pthread_once(&once, write_all);
    return prologues[device->index] ? prologues[device->index] : "";
}
