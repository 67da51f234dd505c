/* SPDX-License-Identifier: MIT */
/* Buffer objects and what all memory objects share: OpenCL 1.2, sections 5.2.1 and 5.4. */
#include "api/check.h"
#include "entry_points.h"
#include "memory/svm.h"
#include "sched/runtime.h"
#include "virtual_device/device.h"

#include <stdlib.h>
#include <string.h>

static cl_int check_buffer(cl_context context, cl_mem_flags flags, size_t size,
                           const void *host_ptr) {
    if (!TUTTI_IS_CONTEXT(context))
        return CL_INVALID_CONTEXT;
    cl_int error = tutti_check_mem_flags(flags);
    if (error != CL_SUCCESS)
        return error;
    if (size == 0 || size > tutti_device_limits()->max_mem_alloc_size)
        return CL_INVALID_BUFFER_SIZE;
    if ((host_ptr != NULL) != ((flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR)) != 0))
        return CL_INVALID_HOST_PTR;
    return tutti_runtime_usable() ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
}

/* A buffer over shared virtual memory is a part of it, so that commands on both keep their order.
 */
static cl_mem create_over_svm(cl_mem svm, cl_mem_flags flags, size_t offset, size_t size,
                              cl_mem_properties *properties, size_t property_bytes, cl_int *error) {
    cl_mem mem = NULL;
    *error = CL_INVALID_BUFFER_SIZE;
    if (size <= svm->size - offset)
        mem = tutti_mem_create_part(svm, flags, offset, size, error);
    if (!mem) {
        free(properties);
        return NULL;
    }
    mem->properties = properties;
    mem->property_bytes = property_bytes;
    return mem;
}

static cl_mem create_buffer(cl_context context, const cl_mem_properties *properties, size_t count,
                            cl_mem_flags flags, size_t size, void *host_ptr, cl_int *errcode_ret) {
    cl_mem mem = NULL;
    cl_int error = check_buffer(context, flags, size, host_ptr);
    if (error == CL_SUCCESS) {
        if (!(flags & TUTTI_ACCESS_FLAGS))
            flags |= CL_MEM_READ_WRITE;
        cl_mem_properties *copy = NULL;
        size_t offset;
        cl_mem svm =
            flags & CL_MEM_USE_HOST_PTR ? tutti_svm_find(context, host_ptr, &offset) : NULL;
        if (count && (copy = malloc(count * sizeof(*copy))))
            memcpy(copy, properties, count * sizeof(*copy));
        if (svm && (!count || copy))
            mem = create_over_svm(svm, flags, offset, size, copy, count * sizeof(*copy), &error);
        else if (!count || copy)
            mem = tutti_mem_create_buffer(context, flags, size, host_ptr, copy,
                                          count * sizeof(*copy), &error);
        else
            error = CL_OUT_OF_HOST_MEMORY;
    }
    if (errcode_ret)
        *errcode_ret = error;
    return mem;
}

CL_API_ENTRY cl_mem CL_API_CALL tutti_clCreateBuffer(cl_context context, cl_mem_flags flags,
                                                     size_t size, void *host_ptr,
                                                     cl_int *errcode_ret) {
    return create_buffer(context, NULL, 0, flags, size, host_ptr, errcode_ret);
}

CL_API_ENTRY cl_mem CL_API_CALL tutti_clCreateBufferWithProperties(
    cl_context context, const cl_mem_properties *properties, cl_mem_flags flags, size_t size,
    void *host_ptr, cl_int *errcode_ret) {
    /* No property is defined for buffers without extensions. */
    if (properties && properties[0]) {
        if (errcode_ret)
            *errcode_ret = TUTTI_IS_CONTEXT(context) ? CL_INVALID_PROPERTY : CL_INVALID_CONTEXT;
        return NULL;
    }
    return create_buffer(context, properties, properties ? 1 : 0, flags, size, host_ptr,
                         errcode_ret);
}

CL_API_ENTRY cl_mem CL_API_CALL tutti_clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags,
                                                        cl_buffer_create_type buffer_create_type,
                                                        const void *buffer_create_info,
                                                        cl_int *errcode_ret) {
    const cl_buffer_region *region = buffer_create_info;
    cl_mem mem = NULL;
    cl_int error = CL_SUCCESS;
    if (!TUTTI_IS_MEM(buffer) || tutti_mem_is_image(buffer) || tutti_mem_seen_parent(buffer))
        error = CL_INVALID_MEM_OBJECT;
    else if (tutti_check_mem_flags(flags) != CL_SUCCESS || flags & TUTTI_HOST_PTR_FLAGS ||
             !tutti_inherit_mem_flags(buffer->flags, flags) || !region ||
             buffer_create_type != CL_BUFFER_CREATE_TYPE_REGION)
        error = CL_INVALID_VALUE;
    else if (region->size == 0)
        error = CL_INVALID_BUFFER_SIZE;
    else if (region->origin > buffer->size || region->size > buffer->size - region->origin)
        error = CL_INVALID_VALUE;
    else if (region->origin % (tutti_device_limits()->mem_base_addr_align / 8))
        error = CL_MISALIGNED_SUB_BUFFER_OFFSET;
    else if (!tutti_runtime_usable())
        error = CL_OUT_OF_RESOURCES;
    else
        mem = tutti_mem_create_part(buffer, tutti_inherit_mem_flags(buffer->flags, flags),
                                    region->origin, region->size, &error);
    if (errcode_ret)
        *errcode_ret = error;
    return mem;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clRetainMemObject(cl_mem memobj) {
    if (!TUTTI_IS_MEM(memobj))
        return CL_INVALID_MEM_OBJECT;
    tutti_object_user_retain(memobj);
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clReleaseMemObject(cl_mem memobj) {
    if (!TUTTI_IS_MEM(memobj))
        return CL_INVALID_MEM_OBJECT;
    return tutti_mem_release(memobj) ? CL_SUCCESS : CL_INVALID_MEM_OBJECT;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clSetMemObjectDestructorCallback(
    cl_mem memobj, void(CL_CALLBACK *pfn_notify)(cl_mem, void *), void *user_data) {
    if (!TUTTI_IS_MEM(memobj))
        return CL_INVALID_MEM_OBJECT;
    if (!pfn_notify)
        return CL_INVALID_VALUE;
    struct tutti_mem_callback *callback = malloc(sizeof(*callback));
    if (!callback)
        return CL_OUT_OF_HOST_MEMORY;
    callback->function = pfn_notify;
    callback->user_data = user_data;
    pthread_mutex_lock(&memobj->lock);
    callback->next = memobj->callbacks;
    memobj->callbacks = callback;
    pthread_mutex_unlock(&memobj->lock);
    return CL_SUCCESS;
}

static cl_uint map_count(cl_mem mem) {
    pthread_mutex_lock(&mem->lock);
    cl_uint count = mem->map_count;
    pthread_mutex_unlock(&mem->lock);
    return count;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clGetMemObjectInfo(cl_mem memobj, cl_mem_info param_name,
                                                         size_t param_value_size, void *param_value,
                                                         size_t *param_value_size_ret) {
    if (!TUTTI_IS_MEM(memobj))
        return CL_INVALID_MEM_OBJECT;
    switch (param_name) {
    case CL_MEM_TYPE:
        TUTTI_RETURN_INFO(cl_mem_object_type, memobj->type);
    case CL_MEM_FLAGS:
        TUTTI_RETURN_INFO(cl_mem_flags, memobj->flags);
    case CL_MEM_SIZE:
        TUTTI_RETURN_INFO(size_t, memobj->size);
    case CL_MEM_HOST_PTR:
        TUTTI_RETURN_INFO(void *, memobj->host_ptr);
    case CL_MEM_MAP_COUNT:
        TUTTI_RETURN_INFO(cl_uint, map_count(memobj));
    case CL_MEM_REFERENCE_COUNT:
        TUTTI_RETURN_INFO(cl_uint, atomic_load(&memobj->object.user_refs));
    case CL_MEM_CONTEXT:
        TUTTI_RETURN_INFO(cl_context, memobj->context);
    case CL_MEM_ASSOCIATED_MEMOBJECT:
        TUTTI_RETURN_INFO(cl_mem, tutti_mem_seen_parent(memobj));
    case CL_MEM_OFFSET:
        TUTTI_RETURN_INFO(size_t, tutti_mem_seen_parent(memobj) ? memobj->origin : 0);
    case CL_MEM_USES_SVM_POINTER:
        TUTTI_RETURN_INFO(cl_bool, tutti_mem_whole(memobj)->is_svm);
    case CL_MEM_PROPERTIES:
        return tutti_info_return(memobj->properties, memobj->property_bytes, param_value_size,
                                 param_value, param_value_size_ret);
    default:
        return CL_INVALID_VALUE;
    }
}
