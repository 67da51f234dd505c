/* SPDX-License-Identifier: MIT */
#include "object.h"

#include "recycler.h"

#include <string.h>

void tutti_object_init(struct tutti_object *object, enum tutti_object_type type,
                       void (*destroy)(void *object)) {
    object->dispatch = &tutti_dispatch;
    object->dispatch_data = NULL;
    object->destroy = destroy;
    atomic_init(&object->type, (uint32_t)type);
    atomic_init(&object->user_refs, 1);
    atomic_init(&object->refs, 1);
    atomic_init(&object->byte_refs, 1);
}

void tutti_object_user_retain(void *object) {
    struct tutti_object *o = object;
    /* The program may have released the last reference of an object that others keep alive. */
    if (atomic_fetch_add_explicit(&o->user_refs, 1, memory_order_relaxed) == 0)
        tutti_object_retain(o);
}

bool tutti_object_user_release(void *object) {
    struct tutti_object *o = object;
    unsigned refs = atomic_load_explicit(&o->user_refs, memory_order_relaxed);
    do {
        if (refs == 0)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&o->user_refs, &refs, refs - 1,
                                                    memory_order_acq_rel, memory_order_relaxed));
    if (refs == 1)
        tutti_object_release(o);
    return true;
}

void tutti_object_retain_bytes(void *object) {
    struct tutti_object *o = object;
    if (o)
        atomic_fetch_add_explicit(&o->byte_refs, 1, memory_order_relaxed);
}

void tutti_object_free(void *object) {
    struct tutti_object *o = object;
    if (o && atomic_fetch_sub_explicit(&o->byte_refs, 1, memory_order_acq_rel) == 1)
        tutti_recycler_give(o);
}

void *tutti_object_retain(void *object) {
    struct tutti_object *o = object;
    if (o)
        atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
    return object;
}

void tutti_object_release(void *object) {
    struct tutti_object *o = object;
    if (!o || atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) != 1)
        return;
    /* A handle used after this is refused for as long as the allocator leaves the bytes alone. */
    atomic_store_explicit(&o->type, 0, memory_order_relaxed);
    o->destroy(o);
}

cl_int tutti_info_return(const void *source, size_t length, size_t value_size, void *value,
                         size_t *value_size_ret) {
    if (value) {
        if (value_size < length)
            return CL_INVALID_VALUE;
        if (length)
            memcpy(value, source, length);
    }
    if (value_size_ret)
        *value_size_ret = length;
    return CL_SUCCESS;
}

cl_int tutti_info_return_string(const char *string, size_t value_size, void *value,
                                size_t *value_size_ret) {
    return tutti_info_return(string, strlen(string) + 1, value_size, value, value_size_ret);
}
