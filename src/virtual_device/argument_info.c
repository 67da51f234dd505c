/* SPDX-License-Identifier: MIT */
#include "virtual_device/argument_info.h"

#include <stdlib.h>
#include <string.h>

/* What the program names itself may be. */
static bool may_be_integer(const char *type_name) {
    static const char *const real[] = {"float", "double", "half"};
    bool may = true;
    for (size_t i = 0; i < sizeof(real) / sizeof(real[0]); i++)
        may = may && strncmp(type_name, real[i], strlen(real[i])) != 0;
    return may;
}

void tutti_argument_info_classify(struct tutti_argument_info *info) {
    info->reads_only = info->writes_only = info->may_be_integer = false;
    if (info->access != CL_KERNEL_ARG_ACCESS_NONE) {
        info->kind = TUTTI_ARGUMENT_IMAGE;
        info->reads_only = info->access == CL_KERNEL_ARG_ACCESS_READ_ONLY;
        info->writes_only = info->access == CL_KERNEL_ARG_ACCESS_WRITE_ONLY;
    } else if (strcmp(info->type_name, "sampler_t") == 0) {
        info->kind = TUTTI_ARGUMENT_SAMPLER;
    } else if (info->address == CL_KERNEL_ARG_ADDRESS_LOCAL) {
        info->kind = TUTTI_ARGUMENT_LOCAL;
    } else if (info->address == CL_KERNEL_ARG_ADDRESS_GLOBAL ||
               info->address == CL_KERNEL_ARG_ADDRESS_CONSTANT) {
        info->kind = TUTTI_ARGUMENT_BUFFER;
        info->reads_only = info->address == CL_KERNEL_ARG_ADDRESS_CONSTANT ||
                           (info->type_qualifier & CL_KERNEL_ARG_TYPE_CONST) != 0;
    } else {
        info->kind = TUTTI_ARGUMENT_VALUE;
        info->may_be_integer = may_be_integer(info->type_name);
    }
}

struct tutti_argument_info *tutti_argument_info_copy(const struct tutti_argument_info *info,
                                                     unsigned count) {
    struct tutti_argument_info *copy = count ? calloc(count, sizeof(*copy)) : NULL;
    for (unsigned i = 0; copy && i < count; i++) {
        copy[i] = info[i];
        copy[i].type_name = strdup(info[i].type_name);
        copy[i].name = strdup(info[i].name);
        if (!copy[i].type_name || !copy[i].name) {
            tutti_argument_info_free(copy, i + 1);
            return NULL;
        }
    }
    return copy;
}

void tutti_argument_info_free(struct tutti_argument_info *info, unsigned count) {
    for (unsigned i = 0; info && i < count; i++) {
        free(info[i].type_name);
        free(info[i].name);
    }
    free(info);
}

void tutti_signature_clear(struct tutti_signature *signature) {
    free(signature->name);
    tutti_argument_info_free(signature->info, signature->argument_count);
    *signature = (struct tutti_signature){0};
}

const struct tutti_signature *tutti_signatures_find(const struct tutti_signatures *list,
                                                    const char *name) {
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->signature[i].name, name) == 0)
            return &list->signature[i];
    return NULL;
}

bool tutti_signatures_add(struct tutti_signatures *list, struct tutti_signature *signature) {
    struct tutti_signature *grown =
        realloc(list->signature, (list->count + 1) * sizeof(*list->signature));
    if (!grown) {
        tutti_signature_clear(signature);
        return false;
    }
    list->signature = grown;
    list->signature[list->count++] = *signature;
    *signature = (struct tutti_signature){0};
    return true;
}

bool tutti_signatures_append(struct tutti_signatures *list, const struct tutti_signatures *more) {
    for (size_t i = 0; i < more->count; i++) {
        const struct tutti_signature *from = &more->signature[i];
        struct tutti_signature copy = {
            .name = strdup(from->name),
            .argument_count = from->argument_count,
            .info = tutti_argument_info_copy(from->info, from->argument_count),
        };
        if (!copy.name || (copy.argument_count && !copy.info)) {
            tutti_signature_clear(&copy);
            return false;
        }
        if (!tutti_signatures_add(list, &copy))
            return false;
    }
    return true;
}

void tutti_signatures_clear(struct tutti_signatures *list) {
    for (size_t i = 0; i < list->count; i++)
        tutti_signature_clear(&list->signature[i]);
    free(list->signature);
    *list = (struct tutti_signatures){0};
}

static cl_int ask_string(const struct tutti_real_device *device, cl_kernel kernel, cl_uint index,
                         cl_kernel_arg_info what, char **answer) {
    size_t size = 0;
    cl_int error = device->dispatch->clGetKernelArgInfo(kernel, index, what, 0, NULL, &size);
    if (error != CL_SUCCESS)
        return error;
    char *string = calloc(1, size + 1);
    if (!string)
        return CL_OUT_OF_HOST_MEMORY;
    if (size) {
        error = device->dispatch->clGetKernelArgInfo(kernel, index, what, size, string, NULL);
        if (error != CL_SUCCESS) {
            free(string);
            return error;
        }
    }
    *answer = string;
    return CL_SUCCESS;
}

static cl_int ask_argument(const struct tutti_real_device *device, cl_kernel kernel, cl_uint index,
                           struct tutti_argument_info *info) {
    const cl_icd_dispatch *dispatch = device->dispatch;
    cl_int error = dispatch->clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER,
                                                sizeof(info->address), &info->address, NULL);
    if (error == CL_SUCCESS)
        error = dispatch->clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ACCESS_QUALIFIER,
                                             sizeof(info->access), &info->access, NULL);
    if (error == CL_SUCCESS)
        error =
            dispatch->clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_TYPE_QUALIFIER,
                                         sizeof(info->type_qualifier), &info->type_qualifier, NULL);
    if (error == CL_SUCCESS)
        error = ask_string(device, kernel, index, CL_KERNEL_ARG_TYPE_NAME, &info->type_name);
    if (error == CL_SUCCESS)
        error = ask_string(device, kernel, index, CL_KERNEL_ARG_NAME, &info->name);
    if (error == CL_SUCCESS)
        tutti_argument_info_classify(info);
    return error;
}

cl_int tutti_signature_ask(const struct tutti_real_device *device, cl_kernel kernel,
                           const char *name, struct tutti_signature *signature) {
    cl_uint count = 0;
    if (!device->dispatch->clGetKernelInfo || !device->dispatch->clGetKernelArgInfo)
        return CL_KERNEL_ARG_INFO_NOT_AVAILABLE;
    cl_int error =
        device->dispatch->clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof(count), &count, NULL);
    if (error != CL_SUCCESS)
        return error;

    struct tutti_signature answer = {
        .name = strdup(name),
        .argument_count = count,
        .info = count ? calloc(count, sizeof(*answer.info)) : NULL,
    };
    error = !answer.name || (count && !answer.info) ? CL_OUT_OF_HOST_MEMORY : CL_SUCCESS;
    for (cl_uint i = 0; error == CL_SUCCESS && i < count; i++)
        error = ask_argument(device, kernel, i, &answer.info[i]);
    if (error != CL_SUCCESS)
        tutti_signature_clear(&answer);
    else
        *signature = answer;
    return error;
}
