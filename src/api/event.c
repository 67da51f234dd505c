/* SPDX-License-Identifier: MIT */
/* Event objects, markers, barriers, profiling: OpenCL 1.2, sections 5.9, 5.10 and 5.12. */
#include "sched/event.h"

#include "entry_points.h"
#include "sched/command.h"

CL_API_ENTRY cl_event CL_API_CALL tutti_clCreateUserEvent(cl_context context, cl_int *errcode_ret) {
    cl_event event = NULL;
    cl_int error = CL_INVALID_CONTEXT;
    if (TUTTI_IS_CONTEXT(context)) {
        event = tutti_event_create_user(context);
        error = event ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
    }
    if (errcode_ret)
        *errcode_ret = error;
    return event;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clSetUserEventStatus(cl_event event,
                                                           cl_int execution_status) {
    if (!TUTTI_IS_EVENT(event) || event->queue)
        return CL_INVALID_EVENT;
    if (execution_status > CL_COMPLETE)
        return CL_INVALID_VALUE;
    /* Only the first of several threads sets it. */
    pthread_mutex_lock(&event->context->graph.lock);
    bool set = event->reached <= CL_COMPLETE;
    if (!set)
        event->reached = execution_status;
    pthread_mutex_unlock(&event->context->graph.lock);
    if (set)
        return CL_INVALID_OPERATION;
    tutti_object_retain(event);
    tutti_event_finish(1, &event, &execution_status);
    tutti_object_release(event);
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clWaitForEvents(cl_uint num_events,
                                                      const cl_event *event_list) {
    if (num_events == 0 || !event_list)
        return CL_INVALID_VALUE;
    for (cl_uint i = 0; i < num_events; i++)
        if (!TUTTI_IS_EVENT(event_list[i]))
            return CL_INVALID_EVENT;
    for (cl_uint i = 1; i < num_events; i++)
        if (event_list[i]->context != event_list[0]->context)
            return CL_INVALID_CONTEXT;
    cl_int result = CL_SUCCESS;
    tutti_graph_note_wait(&event_list[0]->context->graph);
    for (cl_uint i = 0; i < num_events; i++)
        if (tutti_event_wait(event_list[i]) < 0)
            result = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    return result;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clGetEventInfo(cl_event event, cl_event_info param_name,
                                                     size_t param_value_size, void *param_value,
                                                     size_t *param_value_size_ret) {
    if (!TUTTI_IS_EVENT(event))
        return CL_INVALID_EVENT;
    switch (param_name) {
    case CL_EVENT_COMMAND_QUEUE:
        TUTTI_RETURN_INFO(cl_command_queue, event->queue);
    case CL_EVENT_CONTEXT:
        TUTTI_RETURN_INFO(cl_context, event->context);
    case CL_EVENT_COMMAND_TYPE:
        TUTTI_RETURN_INFO(cl_command_type, event->type);
    case CL_EVENT_COMMAND_EXECUTION_STATUS:
        TUTTI_RETURN_INFO(cl_int, tutti_event_look(event));
    case CL_EVENT_REFERENCE_COUNT:
        TUTTI_RETURN_INFO(cl_uint, atomic_load(&event->object.user_refs));
    default:
        return CL_INVALID_VALUE;
    }
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clRetainEvent(cl_event event) {
    if (!TUTTI_IS_EVENT(event))
        return CL_INVALID_EVENT;
    tutti_object_user_retain(event);
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clReleaseEvent(cl_event event) {
    if (!TUTTI_IS_EVENT(event))
        return CL_INVALID_EVENT;
    return tutti_object_user_release(event) ? CL_SUCCESS : CL_INVALID_EVENT;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clSetEventCallback(
    cl_event event, cl_int command_exec_callback_type,
    void(CL_CALLBACK *pfn_event_notify)(cl_event, cl_int, void *), void *user_data) {
    if (!TUTTI_IS_EVENT(event))
        return CL_INVALID_EVENT;
    if (!pfn_event_notify ||
        (command_exec_callback_type != CL_SUBMITTED && command_exec_callback_type != CL_RUNNING &&
         command_exec_callback_type != CL_COMPLETE))
        return CL_INVALID_VALUE;
    return tutti_event_add_callback(event, command_exec_callback_type, pfn_event_notify, user_data);
}

/* Times that a command skipped (one without work is never submitted) take the next one's place. */
static cl_ulong at_least(cl_ulong time, cl_ulong earlier) {
    return time > earlier ? time : earlier;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clGetEventProfilingInfo(cl_event event,
                                                              cl_profiling_info param_name,
                                                              size_t param_value_size,
                                                              void *param_value,
                                                              size_t *param_value_size_ret) {
    if (!TUTTI_IS_EVENT(event))
        return CL_INVALID_EVENT;
    if (!event->profiled || tutti_event_status(event) != CL_COMPLETE)
        return CL_PROFILING_INFO_NOT_AVAILABLE;
    pthread_mutex_lock(&event->context->graph.lock);
    cl_ulong queued = event->queued;
    cl_ulong submitted = at_least(event->submitted, queued);
    cl_ulong started = at_least(event->started ? event->started : event->ended, submitted);
    started = at_least(started, event->earliest);
    cl_ulong ended = at_least(event->ended, started);
    pthread_mutex_unlock(&event->context->graph.lock);
    switch (param_name) {
    case CL_PROFILING_COMMAND_QUEUED:
        TUTTI_RETURN_INFO(cl_ulong, queued);
    case CL_PROFILING_COMMAND_SUBMIT:
        TUTTI_RETURN_INFO(cl_ulong, submitted);
    case CL_PROFILING_COMMAND_START:
        TUTTI_RETURN_INFO(cl_ulong, started);
    case CL_PROFILING_COMMAND_END:
    case CL_PROFILING_COMMAND_COMPLETE:
        TUTTI_RETURN_INFO(cl_ulong, ended);
    default:
        return CL_INVALID_VALUE;
    }
}

/* What the six functions below share: a command without work. */
static cl_int synchronize(cl_command_queue queue, cl_command_type type, struct tutti_wait_list list,
                          bool fence, cl_event *event) {
    if (!TUTTI_IS_QUEUE(queue))
        return CL_INVALID_COMMAND_QUEUE;
    cl_int error = tutti_wait_list_check(queue->context, list);
    if (error != CL_SUCCESS)
        return error;
    struct tutti_command *command = tutti_command_create_empty();
    if (!command)
        return CL_OUT_OF_HOST_MEMORY;
    command->waits_for_all = list.count == 0;
    command->fence = fence;
    return tutti_command_enqueue(command, queue, type, list, false, event);
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clEnqueueMarkerWithWaitList(cl_command_queue command_queue,
                                                                  cl_uint num_events_in_wait_list,
                                                                  const cl_event *event_wait_list,
                                                                  cl_event *event) {
    struct tutti_wait_list list = {num_events_in_wait_list, event_wait_list};
    return synchronize(command_queue, CL_COMMAND_MARKER, list, false, event);
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clEnqueueBarrierWithWaitList(cl_command_queue command_queue,
                                                                   cl_uint num_events_in_wait_list,
                                                                   const cl_event *event_wait_list,
                                                                   cl_event *event) {
    struct tutti_wait_list list = {num_events_in_wait_list, event_wait_list};
    return synchronize(command_queue, CL_COMMAND_BARRIER, list, true, event);
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clEnqueueMarker(cl_command_queue command_queue,
                                                      cl_event *event) {
    if (!TUTTI_IS_QUEUE(command_queue))
        return CL_INVALID_COMMAND_QUEUE;
    if (!event)
        return CL_INVALID_VALUE;
    return synchronize(command_queue, CL_COMMAND_MARKER, (struct tutti_wait_list){0, NULL}, false,
                       event);
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clEnqueueBarrier(cl_command_queue command_queue) {
    return synchronize(command_queue, CL_COMMAND_BARRIER, (struct tutti_wait_list){0, NULL}, true,
                       NULL);
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clEnqueueWaitForEvents(cl_command_queue command_queue,
                                                             cl_uint num_events,
                                                             const cl_event *event_list) {
    if (!TUTTI_IS_QUEUE(command_queue))
        return CL_INVALID_COMMAND_QUEUE;
    if (num_events == 0 || !event_list)
        return CL_INVALID_VALUE;
    struct tutti_wait_list list = {num_events, event_list};
    cl_int error = synchronize(command_queue, CL_COMMAND_BARRIER, list, true, NULL);
    return error == CL_INVALID_EVENT_WAIT_LIST ? CL_INVALID_EVENT : error;
}
