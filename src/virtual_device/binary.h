/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_BINARY_H
#define TUTTI_BINARY_H

#include "virtual_device/argument_info.h"

/* A real device's part of a program binary. */
struct tutti_binary_entry {
    uint64_t identity; /* struct tutti_real_device */
    const char *device_name;
    bool is_source; /* `bytes` are a string, to be built with the options of the binary */
    const void *bytes;
    size_t size;
};

/*
 * The binary of a program of the one virtual device: the binaries of the real devices, and what
 * Tutti must know of the kernels that drivers don't tell of a program loaded from a binary.
 */
struct tutti_binary {
    cl_program_binary_type type;
    bool prints;
    uint64_t identity;   /* of the code: tutti_kernel_identity */
    const char *options; /* of the build that made it */
    unsigned count;
    struct tutti_binary_entry entry[TUTTI_MAX_DEVICES];
    struct tutti_signatures signatures;
    void *bytes; /* the encoded form, owned */
    size_t size;
};

/*
 * Decodes a copy of `bytes`. CL_INVALID_BINARY for anything that tutti_binary_encode of this
 * version did not write, CL_OUT_OF_HOST_MEMORY.
 */
cl_int tutti_binary_decode(const void *bytes, size_t size, struct tutti_binary **binary);
void tutti_binary_free(struct tutti_binary *binary);

/* Sets `bytes` and `size` (malloc) from the rest. False when there is no memory. */
bool tutti_binary_encode(struct tutti_binary *binary);

/* The part of that device; NULL when there is none. */
const struct tutti_binary_entry *tutti_binary_find(const struct tutti_binary *binary,
                                                   const struct tutti_real_device *device);

/* FNV-1a; start with TUTTI_HASH_START and pass the result on. */
#define TUTTI_HASH_START UINT64_C(0xcbf29ce484222325)
uint64_t tutti_hash(uint64_t hash, const void *bytes, size_t size);
uint64_t tutti_hash_string(uint64_t hash, const char *string);

#endif
