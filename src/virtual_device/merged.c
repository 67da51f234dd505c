/* SPDX-License-Identifier: MIT */
#include "virtual_device/merged.h"

#include "config.h"

#include <CL/cl_ext.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Extensions that are about what kernels can say. Those with functions or objects of their own
 * would need more of Tutti than passing kernels on.
 */
static const char *const kernel_extensions[] = {
    "cl_khr_byte_addressable_store",
    "cl_khr_global_int32_base_atomics",
    "cl_khr_global_int32_extended_atomics",
    "cl_khr_local_int32_base_atomics",
    "cl_khr_local_int32_extended_atomics",
    "cl_khr_int64_base_atomics",
    "cl_khr_int64_extended_atomics",
    "cl_khr_3d_image_writes",
    "cl_khr_fp16",
    "cl_khr_fp64",
    "cl_khr_expect_assume",
    "cl_khr_extended_async_copies",
    "cl_khr_extended_bit_ops",
    "cl_khr_integer_dot_product",
    "cl_khr_select_fprounding_mode",
    "cl_khr_subgroup_ballot",
    "cl_khr_subgroup_clustered_reduce",
    "cl_khr_subgroup_extended_types",
    "cl_khr_subgroup_non_uniform_arithmetic",
    "cl_khr_subgroup_non_uniform_vote",
    "cl_khr_subgroup_rotate",
    "cl_khr_subgroup_shuffle",
    "cl_khr_subgroup_shuffle_relative",
    "cl_khr_subgroups",
    "cl_ext_float_atomics",
    "cl_amd_media_ops",
    "cl_amd_media_ops2",
    "cl_nv_compiler_options",
    "cl_nv_device_attribute_query",
    "cl_nv_pragma_unroll",
};

/*
 * Features of OpenCL C 3.0 that keep their meaning when one kernel runs here and the next one
 * there. Absent: variables in program scope, of which each real device would have its own; what
 * reaches across devices (memory_scope_all_devices); queues on the device; pipes; and any feature
 * that is not known here.
 */
static const char *const kernel_features[] = {
    "__opencl_c_3d_image_writes",
    "__opencl_c_atomic_order_acq_rel",
    "__opencl_c_atomic_order_seq_cst",
    "__opencl_c_atomic_scope_device",
    "__opencl_c_ext_fp16_global_atomic_add",
    "__opencl_c_ext_fp16_global_atomic_load_store",
    "__opencl_c_ext_fp16_global_atomic_min_max",
    "__opencl_c_ext_fp16_local_atomic_add",
    "__opencl_c_ext_fp16_local_atomic_load_store",
    "__opencl_c_ext_fp16_local_atomic_min_max",
    "__opencl_c_ext_fp32_global_atomic_add",
    "__opencl_c_ext_fp32_global_atomic_min_max",
    "__opencl_c_ext_fp32_local_atomic_add",
    "__opencl_c_ext_fp32_local_atomic_min_max",
    "__opencl_c_ext_fp64_global_atomic_add",
    "__opencl_c_ext_fp64_global_atomic_min_max",
    "__opencl_c_ext_fp64_local_atomic_add",
    "__opencl_c_ext_fp64_local_atomic_min_max",
    "__opencl_c_fp64",
    "__opencl_c_generic_address_space",
    "__opencl_c_images",
    "__opencl_c_int64",
    "__opencl_c_integer_dot_product_input_4x8bit",
    "__opencl_c_integer_dot_product_input_4x8bit_packed",
    "__opencl_c_read_write_images",
    "__opencl_c_subgroups",
    "__opencl_c_work_group_collective_functions",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct tutti_merged merged;
static pthread_once_t once = PTHREAD_ONCE_INIT;

cl_name_version *tutti_names_ask(const struct tutti_real_device *device, cl_device_info what,
                                 size_t *count) {
    size_t size = 0;
    cl_name_version *list = NULL;
    *count = 0;
    if (device->version < 300 ||
        device->dispatch->clGetDeviceInfo(device->id, what, 0, NULL, &size) != CL_SUCCESS ||
        size < sizeof(*list) || !(list = malloc(size)))
        return NULL;
    if (device->dispatch->clGetDeviceInfo(device->id, what, size, list, NULL) != CL_SUCCESS) {
        free(list);
        return NULL;
    }
    *count = size / sizeof(*list);
    for (size_t i = 0; i < *count; i++)
        list[i].name[sizeof(list[i].name) - 1] = '\0';
    return list;
}

bool tutti_names_have(const struct tutti_names *names, const char *word) {
    char spaced[CL_NAME_VERSION_MAX_NAME_SIZE + 2];
    snprintf(spaced, sizeof(spaced), " %s ", word);
    return names->text && strstr(names->text, spaced);
}

/* Where memory ends the name is left out. */
static void add(struct tutti_names *names, const char *name, cl_version version) {
    char *text = NULL;
    cl_name_version *list = realloc(names->list, (names->count + 1) * sizeof(*list));
    if (!list)
        return;
    names->list = list;
    if (asprintf(&text, "%s%s ", names->text ? names->text : " ", name) < 0)
        return;
    free(names->text);
    names->text = text;
    memset(&list[names->count], 0, sizeof(*list));
    list[names->count].version = version;
    snprintf(list[names->count++].name, sizeof(list->name), "%s", name);
}

static bool is_in(const char *name, const char *const *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, list[i]) == 0)
            return true;
    return false;
}

static void merge_extensions(const struct tutti_real_device *lead) {
    size_t count;
    cl_name_version *known = tutti_names_ask(lead, CL_DEVICE_EXTENSIONS_WITH_VERSION, &count);
    add(&merged.extensions, "cl_khr_icd", CL_MAKE_VERSION(1, 0, 0));
    /* Not cl_khr_pci_bus_info: several devices have no one place. */
    add(&merged.extensions, "cl_khr_device_uuid", CL_MAKE_VERSION(1, 0, 0));
    for (size_t i = 0; i < COUNT(kernel_extensions); i++) {
        char spaced[CL_NAME_VERSION_MAX_NAME_SIZE + 2];
        cl_version version = CL_MAKE_VERSION(1, 0, 0);
        snprintf(spaced, sizeof(spaced), " %s ", kernel_extensions[i]);
        if (!strstr(lead->extensions, spaced))
            continue;
        for (size_t k = 0; k < count; k++)
            if (strcmp(known[k].name, kernel_extensions[i]) == 0)
                version = known[k].version;
        add(&merged.extensions, kernel_extensions[i], version);
    }
    free(known);
}

static void merge_features(const struct tutti_real_device *lead) {
    size_t count;
    cl_name_version *known = tutti_names_ask(lead, CL_DEVICE_OPENCL_C_FEATURES, &count);
    for (size_t i = 0; i < count; i++)
        if (is_in(known[i].name, kernel_features, COUNT(kernel_features)) &&
            !tutti_names_have(&merged.features, known[i].name))
            add(&merged.features, known[i].name, known[i].version);
    free(known);
}

/*
 * OpenCL C 2.0 is all its features together, some of which are never here; so it is not among the
 * versions, and CL_DEVICE_OPENCL_C_VERSION, which stands for all features too, is 1.2.
 */
static void merge_c_versions(const struct tutti_real_device *lead) {
    size_t count;
    cl_name_version *known = tutti_names_ask(lead, CL_DEVICE_OPENCL_C_ALL_VERSIONS, &count);
    for (size_t i = 0; i < count; i++) {
        cl_version major = CL_VERSION_MAJOR(known[i].version);
        bool passes = major == 1 || (major == 3 && CL_VERSION_MINOR(known[i].version) == 0);
        if (passes)
            add(&merged.c_versions, known[i].name, known[i].version);
    }
    free(known);
}

static void append(char *text, size_t size, const char *format, ...) {
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

/* Those of the lead that all take, as CL_DEVICE_IL_VERSION writes them: "SPIR-V_1.2". */
static void merge_ils(const struct tutti_device_list *list) {
    char *copy = strdup(list->device[0]->ils), *rest = NULL;
    for (char *word = copy ? strtok_r(copy, " ", &rest) : NULL; word;
         word = strtok_r(NULL, " ", &rest)) {
        char spaced[CL_NAME_VERSION_MAX_NAME_SIZE + 2], name[CL_NAME_VERSION_MAX_NAME_SIZE];
        unsigned major, minor;
        bool all = true;
        snprintf(spaced, sizeof(spaced), " %s ", word);
        for (unsigned d = 1; d < list->count; d++)
            all = all && strstr(list->device[d]->ils, spaced);
        if (!all || sscanf(word, "%62[^_]_%u.%u", name, &major, &minor) != 3)
            continue;
        add(&merged.ils, name, CL_MAKE_VERSION(major, minor, 0));
        append(merged.il_version, sizeof(merged.il_version), "%s%s",
               merged.il_version[0] ? " " : "", word);
    }
    free(copy);
    /* Before 2.1 an extension. */
    if (merged.ils.count && merged.version < 210)
        add(&merged.extensions, "cl_khr_il_program", CL_MAKE_VERSION(1, 0, 0));
}

/* Programs often give a name 64 bytes, its end included. */
#define LONGEST_NAME 63

/* "Tutti (2 x A, B)"; where that is too long the lead's name, cut, and how many join it. */
static void merge_name(const struct tutti_device_list *list) {
    append(merged.name, sizeof(merged.name), "Tutti (");
    for (unsigned d = 0; d < list->count; d++) {
        unsigned alike = 0;
        bool first = true;
        for (unsigned e = 0; e < list->count; e++) {
            if (strcmp(list->device[d]->name, list->device[e]->name) != 0)
                continue;
            alike++;
            first = first && e >= d;
        }
        if (!first)
            continue;
        append(merged.name, sizeof(merged.name) - 2, "%s", d ? ", " : "");
        if (alike > 1)
            append(merged.name, sizeof(merged.name) - 2, "%u x ", alike);
        append(merged.name, sizeof(merged.name) - 2, "%s", list->device[d]->name);
    }
    append(merged.name, sizeof(merged.name), ")");
    if (strlen(merged.name) <= LONGEST_NAME)
        return;
    char more[32] = "...)";
    if (list->count > 1)
        snprintf(more, sizeof(more), "... + %u more)", list->count - 1);
    snprintf(merged.name, sizeof(merged.name), "Tutti (%.*s%s",
             LONGEST_NAME - (int)strlen("Tutti (") - (int)strlen(more), list->device[0]->name,
             more);
}

static void merge_limits(const struct tutti_device_list *list) {
    const struct tutti_real_device *lead = list->device[0];
    struct tutti_limits *limits = &merged.limits;
    limits->max_work_group_size = lead->max_work_group_size;
    memcpy(limits->max_work_item_sizes, lead->max_work_item_sizes,
           sizeof(limits->max_work_item_sizes));
    limits->max_mem_alloc_size = lead->max_mem_alloc_size;
    limits->image_support = lead->image_support;
    limits->version = merged.version;
    limits->svm = merged.version >= 300 ? CL_DEVICE_SVM_COARSE_GRAIN_BUFFER : 0;
    unsigned distant = 0;
    for (unsigned d = 0; d < list->count; d++) {
        if (list->device[d]->spare)
            continue;
        /* One address for all: in the host's memory, or where the driver of one device says. */
        distant += !list->device[d]->at_home;
        limits->svm &= distant <= 1 ? list->device[d]->svm : 0;
        limits->global_mem_size += list->device[d]->global_mem_size;
        if (list->device[d]->mem_base_addr_align > limits->mem_base_addr_align)
            limits->mem_base_addr_align = list->device[d]->mem_base_addr_align;
    }
}

static void merge_version(cl_uint version) {
    merged.version = version;
    snprintf(merged.device_version, sizeof(merged.device_version), "OpenCL %u.%u Tutti %s",
             version / 100, version / 10 % 10, PACKAGE_VERSION);
    snprintf(merged.opencl_c_version, sizeof(merged.opencl_c_version), "OpenCL C 1.2 Tutti");
}

static void merge(void) {
    const struct tutti_device_list *list = tutti_devices();
    cl_uint version = 300;
    for (unsigned d = 0; d < list->count; d++)
        if (list->device[d]->version < 300)
            version = 120;
    merge_version(version);
    merge_name(list);
    merge_extensions(list->device[0]);
    if (version >= 300) {
        merge_features(list->device[0]);
        merge_c_versions(list->device[0]);
    }
    merge_ils(list);
    for (size_t i = 0; i < merged.extensions.count; i++)
        append(merged.extension_text, sizeof(merged.extension_text), "%s%s", i ? " " : "",
               merged.extensions.list[i].name);
    merge_limits(list);
}

const struct tutti_merged *tutti_merged(void) {
    static const struct tutti_merged nothing = {
        .version = 120,
        .device_version = "OpenCL 1.2 Tutti " PACKAGE_VERSION,
        .opencl_c_version = "OpenCL C 1.2 Tutti",
    };
    if (!tutti_devices()->count)
        return &nothing;
    pthread_once(&once, merge);
    return &merged;
}

const struct tutti_limits *tutti_device_limits(void) { return &tutti_merged()->limits; }
