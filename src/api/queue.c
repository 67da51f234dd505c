/* SPDX-License-Identifier: MIT */
/* Command-queues: OpenCL 1.2, sections 5.1 and 5.13; 3.0 for queues with properties. */
#include "sched/queue.h"

#include "entry_points.h"
#include "sched/command.h"
#include "sched/direct_end.h"
#include "sched/row.h"
#include "virtual_device/device.h"

#include <stdlib.h>
#include <string.h>

#define KNOWN_PROPERTIES                                                                           \
    (CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE | CL_QUEUE_ON_DEVICE |     \
     CL_QUEUE_ON_DEVICE_DEFAULT)
#define SUPPORTED_PROPERTIES (CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE)

static cl_int check_properties(cl_command_queue_properties properties) {
    if (properties & ~(cl_command_queue_properties)KNOWN_PROPERTIES)
        return CL_INVALID_VALUE;
    if (properties & ~(cl_command_queue_properties)SUPPORTED_PROPERTIES)
        return CL_INVALID_QUEUE_PROPERTIES;
    return CL_SUCCESS;
}

static cl_command_queue create(cl_context context, cl_device_id device,
                               cl_command_queue_properties properties,
                               const cl_queue_properties *list, size_t count, cl_int *errcode_ret) {
    cl_command_queue queue = NULL;
    cl_int error = CL_SUCCESS;
    if (!TUTTI_IS_CONTEXT(context))
        error = CL_INVALID_CONTEXT;
    else if (!device || device != tutti_device())
        error = CL_INVALID_DEVICE;
    else
        error = check_properties(properties);
    if (error == CL_SUCCESS) {
        cl_queue_properties *copy = NULL;
        if (count && (copy = malloc(count * sizeof(*copy))))
            memcpy(copy, list, count * sizeof(*copy));
        if (!count || copy)
            queue = tutti_queue_create(context, properties, copy, count * sizeof(*copy));
        if (!queue)
            error = CL_OUT_OF_HOST_MEMORY;
    }
    if (errcode_ret)
        *errcode_ret = error;
    return queue;
}

CL_API_ENTRY cl_command_queue CL_API_CALL
tutti_clCreateCommandQueue(cl_context context, cl_device_id device,
                           cl_command_queue_properties properties, cl_int *errcode_ret) {
    return create(context, device, properties, NULL, 0, errcode_ret);
}

CL_API_ENTRY cl_command_queue CL_API_CALL tutti_clCreateCommandQueueWithProperties(
    cl_context context, cl_device_id device, const cl_queue_properties *properties,
    cl_int *errcode_ret) {
    cl_command_queue_properties bits = 0;
    bool bits_seen = false, size_seen = false, known = true;
    size_t i = 0;
    for (; properties && properties[i]; i += 2) {
        if (properties[i] == CL_QUEUE_PROPERTIES && !bits_seen) {
            bits = properties[i + 1];
            bits_seen = true;
        } else if (properties[i] == CL_QUEUE_SIZE && !size_seen) {
            size_seen = true; /* of a queue on the device, which we refuse */
        } else {
            known = false;
            break;
        }
    }
    if (!known || (size_seen && !(bits & CL_QUEUE_ON_DEVICE))) {
        cl_int error = !TUTTI_IS_CONTEXT(context)            ? CL_INVALID_CONTEXT
                       : !device || device != tutti_device() ? CL_INVALID_DEVICE
                                                             : CL_INVALID_VALUE;
        if (errcode_ret)
            *errcode_ret = error;
        return NULL;
    }
    return create(context, device, bits, properties, properties ? i + 1 : 0, errcode_ret);
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clRetainCommandQueue(cl_command_queue command_queue) {
    if (!TUTTI_IS_QUEUE(command_queue))
        return CL_INVALID_COMMAND_QUEUE;
    tutti_object_user_retain(command_queue);
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clReleaseCommandQueue(cl_command_queue command_queue) {
    if (!TUTTI_IS_QUEUE(command_queue))
        return CL_INVALID_COMMAND_QUEUE;
    tutti_row_finish(command_queue); /* else its events would keep it */
    return tutti_object_user_release(command_queue) ? CL_SUCCESS : CL_INVALID_COMMAND_QUEUE;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clGetCommandQueueInfo(cl_command_queue command_queue,
                                                            cl_command_queue_info param_name,
                                                            size_t param_value_size,
                                                            void *param_value,
                                                            size_t *param_value_size_ret) {
    if (!TUTTI_IS_QUEUE(command_queue))
        return CL_INVALID_COMMAND_QUEUE;
    switch (param_name) {
    case CL_QUEUE_CONTEXT:
        TUTTI_RETURN_INFO(cl_context, command_queue->context);
    case CL_QUEUE_DEVICE:
        TUTTI_RETURN_INFO(cl_device_id, tutti_device());
    case CL_QUEUE_REFERENCE_COUNT:
        TUTTI_RETURN_INFO(cl_uint, atomic_load(&command_queue->object.user_refs));
    case CL_QUEUE_PROPERTIES:
        TUTTI_RETURN_INFO(cl_command_queue_properties, command_queue->properties);
    case CL_QUEUE_PROPERTIES_ARRAY:
        return tutti_info_return(command_queue->property_list, command_queue->property_bytes,
                                 param_value_size, param_value, param_value_size_ret);
    case CL_QUEUE_DEVICE_DEFAULT:
        TUTTI_RETURN_INFO(cl_command_queue, NULL);
    case CL_QUEUE_SIZE:
        return CL_INVALID_COMMAND_QUEUE; /* not a queue on the device */
    default:
        return CL_INVALID_VALUE;
    }
}

/* Deprecated since 1.1, whose specification lets it wait; what is queued keeps its order. */
CL_API_ENTRY cl_int CL_API_CALL tutti_clSetCommandQueueProperty(
    cl_command_queue command_queue, cl_command_queue_properties properties, cl_bool enable,
    cl_command_queue_properties *old_properties) {
    if (!TUTTI_IS_QUEUE(command_queue))
        return CL_INVALID_COMMAND_QUEUE;
    cl_int error = check_properties(properties);
    if (error != CL_SUCCESS)
        return error;
    cl_int result = tutti_queue_finish(command_queue);
    pthread_mutex_lock(&command_queue->context->graph.lock);
    if (old_properties)
        *old_properties = command_queue->properties;
    if (enable)
        command_queue->properties |= properties;
    else
        command_queue->properties &= ~properties;
    pthread_mutex_unlock(&command_queue->context->graph.lock);
    return result;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clFlush(cl_command_queue command_queue) {
    if (!TUTTI_IS_QUEUE(command_queue))
        return CL_INVALID_COMMAND_QUEUE;
    tutti_direct_flush(); /* others go on their way when they are enqueued */
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clFinish(cl_command_queue command_queue) {
    if (!TUTTI_IS_QUEUE(command_queue))
        return CL_INVALID_COMMAND_QUEUE;
    return tutti_queue_finish(command_queue);
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clSetDefaultDeviceCommandQueue(
    cl_context context, cl_device_id device, cl_command_queue command_queue) {
    if (!TUTTI_IS_CONTEXT(context))
        return CL_INVALID_CONTEXT;
    if (!device || device != tutti_device())
        return CL_INVALID_DEVICE;
    (void)command_queue;
    return CL_INVALID_OPERATION; /* no queues on the device */
}
