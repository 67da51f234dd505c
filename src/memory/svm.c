/* SPDX-License-Identifier: MIT */
#include "memory/svm.h"

#include "memory/svm_home.h"

#include <stdlib.h>
#include <string.h>

/* How many allocations begin at or before the address. With the context's lock held. */
static size_t count_before(cl_context context, const void *pointer) {
    size_t low = 0, high = context->svm_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)context->svm[middle]->host_ptr <= (uintptr_t)pointer)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool insert(cl_context context, cl_mem mem) {
    pthread_mutex_lock(&context->lock);
    cl_mem *list = realloc(context->svm, (context->svm_count + 1) * sizeof(*list));
    if (list) {
        context->svm = list;
        size_t at = count_before(context, mem->host_ptr);
        memmove(&list[at + 1], &list[at], (context->svm_count - at) * sizeof(*list));
        list[at] = mem;
        context->svm_count++;
    }
    pthread_mutex_unlock(&context->lock);
    return list != NULL;
}

static void CL_CALLBACK free_home(cl_mem mem, void *home) {
    (void)mem;
    tutti_svm_home_destroy(home);
}

void *tutti_svm_allocate(cl_context context, cl_mem_flags flags, size_t size) {
    struct tutti_svm_home *home = tutti_svm_home_create(size);
    struct tutti_mem_callback *callback = malloc(sizeof(*callback));
    cl_mem mem = NULL;
    cl_int error;
    if (home && callback)
        mem = tutti_mem_create_buffer(context, flags | CL_MEM_USE_HOST_PTR, size,
                                      tutti_svm_home_bytes(home), NULL, 0, &error);
    if (!mem) {
        tutti_svm_home_destroy(home);
        free(callback);
        return NULL;
    }
    *callback = (struct tutti_mem_callback){.function = free_home, .user_data = home};
    mem->callbacks = callback;
    mem->is_svm = true;
    mem->view->svm = home;
    if (insert(context, mem))
        return mem->host_ptr;
    tutti_object_user_release(mem);
    return NULL;
}

void tutti_svm_free(cl_context context, const void *pointer) {
    cl_mem mem = NULL;
    pthread_mutex_lock(&context->lock);
    size_t at = count_before(context, pointer);
    if (at > 0 && context->svm[at - 1]->host_ptr == pointer) {
        mem = context->svm[at - 1];
        context->svm_count--;
        memmove(&context->svm[at - 1], &context->svm[at],
                (context->svm_count - (at - 1)) * sizeof(cl_mem));
    }
    pthread_mutex_unlock(&context->lock);
    if (mem)
        tutti_object_user_release(mem);
}

cl_mem tutti_svm_find(cl_context context, const void *pointer, size_t *offset) {
    cl_mem mem = NULL;
    pthread_mutex_lock(&context->lock);
    size_t before = count_before(context, pointer);
    if (before > 0) {
        *offset = (uintptr_t)pointer - (uintptr_t)context->svm[before - 1]->host_ptr;
        if (*offset < context->svm[before - 1]->size)
            mem = context->svm[before - 1];
    }
    pthread_mutex_unlock(&context->lock);
    return mem;
}
