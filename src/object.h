/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_OBJECT_H
#define TUTTI_OBJECT_H

#include <CL/cl.h>
#include <CL/cl_icd.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * What every OpenCL object of Tutti starts with.
 *
 * The loader reads the first pointer of an object (cl_khr_icd); version 2.0 of that extension
 * lets it use the second. Two counts are kept: `user_refs` is what the program sees as
 * CL_*_REFERENCE_COUNT, `refs` keeps the object alive (the program's references together count
 * as one, each command or child object that uses the object adds one). A third keeps only its
 * bytes, for those who must find out whether it is still alive: arguments of kernels.
 */
enum tutti_object_type {
    TUTTI_PLATFORM = 0x54550001,
    TUTTI_DEVICE,
    TUTTI_CONTEXT,
    TUTTI_QUEUE,
    TUTTI_MEM,
    TUTTI_SAMPLER,
    TUTTI_PROGRAM,
    TUTTI_KERNEL,
    TUTTI_EVENT,
};

struct tutti_object {
    const cl_icd_dispatch *dispatch;
    void *dispatch_data;
    _Atomic uint32_t type;
    atomic_uint user_refs;
    atomic_uint refs;
    atomic_uint byte_refs; /* the living object counts as one */
    /* Called once, when `refs` reaches zero; ends in tutti_object_free. */
    void (*destroy)(void *object);
};

/* Every slot filled; generated (see icd/local.mk). */
extern const cl_icd_dispatch tutti_dispatch;

void tutti_object_init(struct tutti_object *object, enum tutti_object_type type,
                       void (*destroy)(void *object));

/* The program's references (clRetain*, clRelease*). Release is false when it has none left. */
void tutti_object_user_retain(void *object);
bool tutti_object_user_release(void *object);

/* Tutti's own references; release may destroy the object. NULL is allowed. */
void *tutti_object_retain(void *object);
void tutti_object_release(void *object);

/* Keeps the bytes, not the object. */
void tutti_object_retain_bytes(void *object);
void tutti_object_free(void *object);

/*
 * Is this a living object of that type? NULL is not. One that the program has released lives while
 * others use it, as a context does while it has queues.
 */
static inline bool tutti_object_is(const void *object, enum tutti_object_type type) {
    const struct tutti_object *o = object;
    return o && atomic_load_explicit(&o->type, memory_order_relaxed) == (uint32_t)type;
}

#define TUTTI_IS_CONTEXT(o) tutti_object_is((o), TUTTI_CONTEXT)
#define TUTTI_IS_QUEUE(o) tutti_object_is((o), TUTTI_QUEUE)
#define TUTTI_IS_MEM(o) tutti_object_is((o), TUTTI_MEM)
#define TUTTI_IS_SAMPLER(o) tutti_object_is((o), TUTTI_SAMPLER)
#define TUTTI_IS_PROGRAM(o) tutti_object_is((o), TUTTI_PROGRAM)
#define TUTTI_IS_KERNEL(o) tutti_object_is((o), TUTTI_KERNEL)
#define TUTTI_IS_EVENT(o) tutti_object_is((o), TUTTI_EVENT)

/*
 * The tail of each clGet*Info: copies `length` bytes of `source` (OpenCL 1.2, for example 5.1,
 * clGetContextInfo). Returns CL_INVALID_VALUE when `value` is given but `value_size` is too small.
 */
cl_int tutti_info_return(const void *source, size_t length, size_t value_size, void *value,
                         size_t *value_size_ret);
cl_int tutti_info_return_string(const char *string, size_t value_size, void *value,
                                size_t *value_size_ret);

#define TUTTI_RETURN_INFO(type, expression)                                                        \
    do {                                                                                           \
        type tutti_info_value = (expression);                                                      \
        return tutti_info_return(&tutti_info_value, sizeof(tutti_info_value), param_value_size,    \
                                 param_value, param_value_size_ret);                               \
    } while (0)

#endif
