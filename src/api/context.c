/* SPDX-License-Identifier: MIT */
/* Contexts: OpenCL 1.2, section 4.4. */
#include "context.h"

#include "entry_points.h"
#include "sched/runtime.h"
#include "virtual_device/device.h"

#include <stdlib.h>
#include <string.h>

static void destroy(void *object) {
    cl_context context = object;
    while (context->callbacks) {
        struct tutti_context_callback *callback = context->callbacks;
        context->callbacks = callback->next;
        callback->function(context, callback->user_data);
        free(callback);
    }
    if (context->console && tutti_runtime_usable())
        starpu_data_unregister_submit(context->console);
    tutti_graph_destroy(&context->graph);
    pthread_mutex_destroy(&context->lock);
    free(context->svm);
    free(context->properties);
    free(context);
}

/* Sets `count` to the number of entries with the final 0; 0 for no list. */
static cl_int check_properties(const cl_context_properties *properties, size_t *count) {
    bool platform_seen = false, sync_seen = false;
    *count = 0;
    if (!properties)
        return CL_SUCCESS;
    size_t i = 0;
    for (; properties[i]; i += 2) {
        switch (properties[i]) {
        case CL_CONTEXT_PLATFORM:
            if (platform_seen)
                return CL_INVALID_PROPERTY;
            platform_seen = true;
            if ((cl_platform_id)properties[i + 1] != tutti_platform())
                return CL_INVALID_PLATFORM;
            break;
        case CL_CONTEXT_INTEROP_USER_SYNC:
            if (sync_seen || (properties[i + 1] != CL_TRUE && properties[i + 1] != CL_FALSE))
                return CL_INVALID_PROPERTY;
            sync_seen = true;
            break;
        default:
            return CL_INVALID_PROPERTY;
        }
    }
    *count = i + 1;
    return CL_SUCCESS;
}

static cl_context create(const cl_context_properties *properties, size_t count,
                         void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *),
                         void *notify_data, cl_int *error) {
    *error = tutti_runtime_start();
    if (*error != CL_SUCCESS)
        return NULL;
    *error = CL_OUT_OF_HOST_MEMORY;
    cl_context context = calloc(1, sizeof(*context));
    if (!context)
        return NULL;
    tutti_object_init(&context->object, TUTTI_CONTEXT, destroy);
    pthread_mutex_init(&context->lock, NULL);
    tutti_graph_init(&context->graph);
    context->notify = notify;
    context->notify_data = notify_data;
    if (count) {
        context->property_bytes = count * sizeof(*properties);
        context->properties = malloc(context->property_bytes);
        if (!context->properties) {
            tutti_object_user_release(context);
            return NULL;
        }
        memcpy(context->properties, properties, context->property_bytes);
    }
    starpu_void_data_register(&context->console);
    *error = CL_SUCCESS;
    return context;
}

CL_API_ENTRY cl_context CL_API_CALL tutti_clCreateContext(
    const cl_context_properties *properties, cl_uint num_devices, const cl_device_id *devices,
    void(CL_CALLBACK *pfn_notify)(const char *, const void *, size_t, void *), void *user_data,
    cl_int *errcode_ret) {
    size_t count;
    cl_context context = NULL;
    cl_int error = check_properties(properties, &count);
    if (error == CL_SUCCESS && (!devices || num_devices == 0 || (!pfn_notify && user_data)))
        error = CL_INVALID_VALUE;
    for (cl_uint i = 0; error == CL_SUCCESS && i < num_devices; i++)
        if (!devices[i] || devices[i] != tutti_device())
            error = CL_INVALID_DEVICE;
    if (error == CL_SUCCESS)
        context = create(properties, count, pfn_notify, user_data, &error);
    if (errcode_ret)
        *errcode_ret = error;
    return context;
}

CL_API_ENTRY cl_context CL_API_CALL tutti_clCreateContextFromType(
    const cl_context_properties *properties, cl_device_type device_type,
    void(CL_CALLBACK *pfn_notify)(const char *, const void *, size_t, void *), void *user_data,
    cl_int *errcode_ret) {
    size_t count;
    cl_context context = NULL;
    cl_int error = check_properties(properties, &count);
    if (error == CL_SUCCESS && !pfn_notify && user_data)
        error = CL_INVALID_VALUE;
    cl_device_id device;
    if (error == CL_SUCCESS)
        error = tutti_clGetDeviceIDs(tutti_platform(), device_type, 1, &device, NULL);
    if (error == CL_SUCCESS)
        context = create(properties, count, pfn_notify, user_data, &error);
    if (errcode_ret)
        *errcode_ret = error;
    return context;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clRetainContext(cl_context context) {
    if (!TUTTI_IS_CONTEXT(context))
        return CL_INVALID_CONTEXT;
    tutti_object_user_retain(context);
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clReleaseContext(cl_context context) {
    if (!TUTTI_IS_CONTEXT(context))
        return CL_INVALID_CONTEXT;
    return tutti_object_user_release(context) ? CL_SUCCESS : CL_INVALID_CONTEXT;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clGetContextInfo(cl_context context,
                                                       cl_context_info param_name,
                                                       size_t param_value_size, void *param_value,
                                                       size_t *param_value_size_ret) {
    if (!TUTTI_IS_CONTEXT(context))
        return CL_INVALID_CONTEXT;
    switch (param_name) {
    case CL_CONTEXT_REFERENCE_COUNT:
        TUTTI_RETURN_INFO(cl_uint, atomic_load(&context->object.user_refs));
    case CL_CONTEXT_NUM_DEVICES:
        TUTTI_RETURN_INFO(cl_uint, 1);
    case CL_CONTEXT_DEVICES:
        TUTTI_RETURN_INFO(cl_device_id, tutti_device());
    case CL_CONTEXT_PROPERTIES:
        return tutti_info_return(context->properties, context->property_bytes, param_value_size,
                                 param_value, param_value_size_ret);
    default:
        return CL_INVALID_VALUE;
    }
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clSetContextDestructorCallback(
    cl_context context, void(CL_CALLBACK *pfn_notify)(cl_context, void *), void *user_data) {
    if (!TUTTI_IS_CONTEXT(context))
        return CL_INVALID_CONTEXT;
    if (!pfn_notify)
        return CL_INVALID_VALUE;
    struct tutti_context_callback *callback = malloc(sizeof(*callback));
    if (!callback)
        return CL_OUT_OF_HOST_MEMORY;
    callback->function = pfn_notify;
    callback->user_data = user_data;
    pthread_mutex_lock(&context->lock);
    callback->next = context->callbacks;
    context->callbacks = callback;
    pthread_mutex_unlock(&context->lock);
    return CL_SUCCESS;
}
