/* SPDX-License-Identifier: MIT */
#include "virtual_device/binary.h"

#include <stdlib.h>
#include <string.h>

/*
 * Layout: magic, version, checksum of all that follows; then the fields in the order of encode().
 * Numbers are 64 bits in the machine's order, strings and blobs a length, then the bytes; strings
 * keep their final zero, so that they can be used in place.
 */
static const char magic[8] = "TUTTIBIN";
#define CONTAINER_VERSION 2
#define HEADER_SIZE (sizeof(magic) + 2 * sizeof(uint64_t))

/* Far above any real kernel; keeps a forged count from reserving memory. */
#define MAX_ARGUMENTS 4096

uint64_t tutti_hash(uint64_t hash, const void *bytes, size_t size) {
    const unsigned char *p = bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
    return hash;
}

uint64_t tutti_hash_string(uint64_t hash, const char *string) {
    return tutti_hash(hash, string, strlen(string) + 1);
}

struct writer {
    unsigned char *bytes;
    size_t size;
    size_t room;
    bool failed;
};

static void put(struct writer *w, const void *bytes, size_t size) {
    if (!w->failed && size > w->room - w->size) {
        size_t room = 2 * w->room + size;
        unsigned char *grown = realloc(w->bytes, room);
        if (grown) {
            w->bytes = grown;
            w->room = room;
        } else {
            w->failed = true;
        }
    }
    if (w->failed || !size)
        return;
    memcpy(w->bytes + w->size, bytes, size);
    w->size += size;
}

static void put_number(struct writer *w, uint64_t number) { put(w, &number, sizeof(number)); }

static void put_blob(struct writer *w, const void *bytes, size_t size) {
    put_number(w, size);
    put(w, bytes, size);
}

static void put_string(struct writer *w, const char *string) {
    put_blob(w, string, strlen(string) + 1);
}

static void put_signature(struct writer *w, const struct tutti_signature *signature) {
    put_string(w, signature->name);
    put_number(w, signature->argument_count);
    for (unsigned i = 0; i < signature->argument_count; i++) {
        const struct tutti_argument_info *info = &signature->info[i];
        put_number(w, info->address);
        put_number(w, info->access);
        put_number(w, info->type_qualifier);
        put_string(w, info->type_name);
        put_string(w, info->name);
    }
}

bool tutti_binary_encode(struct tutti_binary *binary) {
    struct writer w = {0};
    put(&w, magic, sizeof(magic));
    put_number(&w, CONTAINER_VERSION);
    put_number(&w, 0); /* the checksum's place */
    put_number(&w, binary->type);
    put_number(&w, binary->prints);
    put_number(&w, binary->identity);
    put_string(&w, binary->options);
    put_number(&w, binary->count);
    for (unsigned i = 0; i < binary->count; i++) {
        put_number(&w, binary->entry[i].identity);
        put_string(&w, binary->entry[i].device_name);
        put_number(&w, binary->entry[i].is_source);
        put_blob(&w, binary->entry[i].bytes, binary->entry[i].size);
    }
    put_number(&w, binary->signatures.count);
    for (size_t i = 0; i < binary->signatures.count; i++)
        put_signature(&w, &binary->signatures.signature[i]);
    if (w.failed) {
        free(w.bytes);
        return false;
    }
    uint64_t checksum = tutti_hash(TUTTI_HASH_START, w.bytes + HEADER_SIZE, w.size - HEADER_SIZE);
    memcpy(w.bytes + HEADER_SIZE - sizeof(checksum), &checksum, sizeof(checksum));
    binary->bytes = w.bytes;
    binary->size = w.size;
    return true;
}

struct cursor {
    const unsigned char *at;
    size_t left;
    bool failed;
};

static const void *take(struct cursor *c, size_t size) {
    if (c->failed || size > c->left) {
        c->failed = true;
        return NULL;
    }
    const void *bytes = c->at;
    c->at += size;
    c->left -= size;
    return bytes;
}

static uint64_t take_number(struct cursor *c) {
    uint64_t number = 0;
    const void *bytes = take(c, sizeof(number));
    if (bytes)
        memcpy(&number, bytes, sizeof(number));
    return number;
}

static const void *take_blob(struct cursor *c, size_t *size) {
    *size = (size_t)take_number(c);
    return take(c, *size);
}

/* "" after a failure. */
static const char *take_string(struct cursor *c) {
    size_t size;
    const char *string = take_blob(c, &size);
    if (!string || !size || string[size - 1]) {
        c->failed = true;
        return "";
    }
    return string;
}

/* A failure of the cursor, or CL_OUT_OF_HOST_MEMORY, leaves what was read in the signature. */
static cl_int take_signature(struct cursor *c, struct tutti_signature *signature) {
    signature->name = strdup(take_string(c));
    uint64_t count = take_number(c);
    if (c->failed || count > MAX_ARGUMENTS)
        return CL_INVALID_BINARY;
    if (!signature->name)
        return CL_OUT_OF_HOST_MEMORY;
    if (!count)
        return CL_SUCCESS;
    signature->info = calloc(count, sizeof(*signature->info));
    if (!signature->info)
        return CL_OUT_OF_HOST_MEMORY;
    signature->argument_count = (unsigned)count;
    for (unsigned i = 0; i < count; i++) {
        struct tutti_argument_info *info = &signature->info[i];
        info->address = (cl_kernel_arg_address_qualifier)take_number(c);
        info->access = (cl_kernel_arg_access_qualifier)take_number(c);
        info->type_qualifier = take_number(c);
        info->type_name = strdup(take_string(c));
        info->name = strdup(take_string(c));
        if (!info->type_name || !info->name)
            return CL_OUT_OF_HOST_MEMORY;
        if (c->failed)
            return CL_INVALID_BINARY;
        tutti_argument_info_classify(info);
    }
    return CL_SUCCESS;
}

static cl_int take_all(struct cursor *c, struct tutti_binary *binary) {
    binary->type = (cl_program_binary_type)take_number(c);
    binary->prints = take_number(c) != 0;
    binary->identity = take_number(c);
    binary->options = take_string(c);
    uint64_t count = take_number(c);
    if (c->failed || count > TUTTI_MAX_DEVICES ||
        (binary->type != CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT &&
         binary->type != CL_PROGRAM_BINARY_TYPE_LIBRARY &&
         binary->type != CL_PROGRAM_BINARY_TYPE_EXECUTABLE))
        return CL_INVALID_BINARY;
    for (; binary->count < count; binary->count++) {
        struct tutti_binary_entry *entry = &binary->entry[binary->count];
        entry->identity = take_number(c);
        entry->device_name = take_string(c);
        entry->is_source = take_number(c) != 0;
        entry->bytes = entry->is_source ? take_string(c) : take_blob(c, &entry->size);
        if (c->failed)
            return CL_INVALID_BINARY;
    }
    uint64_t kernels = take_number(c);
    for (uint64_t i = 0; !c->failed && i < kernels; i++) {
        struct tutti_signature signature = {0};
        cl_int error = take_signature(c, &signature);
        if (error != CL_SUCCESS) {
            tutti_signature_clear(&signature);
            return error;
        }
        if (!tutti_signatures_add(&binary->signatures, &signature))
            return CL_OUT_OF_HOST_MEMORY;
    }
    return c->failed || c->left ? CL_INVALID_BINARY : CL_SUCCESS;
}

cl_int tutti_binary_decode(const void *bytes, size_t size, struct tutti_binary **binary) {
    uint64_t number[2];
    if (size < HEADER_SIZE || memcmp(bytes, magic, sizeof(magic)) != 0)
        return CL_INVALID_BINARY;
    memcpy(number, (const unsigned char *)bytes + sizeof(magic), sizeof(number));
    if (number[0] != CONTAINER_VERSION ||
        number[1] != tutti_hash(TUTTI_HASH_START, (const unsigned char *)bytes + HEADER_SIZE,
                                size - HEADER_SIZE))
        return CL_INVALID_BINARY;

    struct tutti_binary *result = calloc(1, sizeof(*result));
    if (!result)
        return CL_OUT_OF_HOST_MEMORY;
    cl_int error = CL_OUT_OF_HOST_MEMORY;
    result->bytes = malloc(size);
    result->size = size;
    if (result->bytes) {
        memcpy(result->bytes, bytes, size);
        struct cursor c = {.at = (unsigned char *)result->bytes + HEADER_SIZE,
                           .left = size - HEADER_SIZE};
        error = take_all(&c, result);
    }
    if (error != CL_SUCCESS) {
        tutti_binary_free(result);
        return error;
    }
    *binary = result;
    return CL_SUCCESS;
}

void tutti_binary_free(struct tutti_binary *binary) {
    if (!binary)
        return;
    tutti_signatures_clear(&binary->signatures);
    free(binary->bytes);
    free(binary);
}

const struct tutti_binary_entry *tutti_binary_find(const struct tutti_binary *binary,
                                                   const struct tutti_real_device *device) {
    for (unsigned i = 0; i < binary->count; i++)
        if (binary->entry[i].identity == device->identity &&
            strcmp(binary->entry[i].device_name, device->name) == 0)
            return &binary->entry[i];
    return NULL;
}
