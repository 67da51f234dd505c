/* SPDX-License-Identifier: MIT */
#include "sched/blocking_write.h"

#include "sched/queue.h"

static bool uses_memory(cl_command_type type) {
    switch (type) {
    case CL_COMMAND_READ_BUFFER:
    case CL_COMMAND_READ_BUFFER_RECT:
    case CL_COMMAND_READ_IMAGE:
    case CL_COMMAND_MAP_BUFFER:
    case CL_COMMAND_MAP_IMAGE:
    case CL_COMMAND_SVM_MAP:
    case CL_COMMAND_SVM_MEMCPY:
    case CL_COMMAND_NATIVE_KERNEL:
        return true;
    default:
        return tutti_is_write(type);
    }
}

void tutti_memory_user_enter(cl_event event) {
    cl_command_queue queue = event->queue;
    event->uses_memory = uses_memory(event->type);
    if (event->frees && queue->memory_users > 0) {
        event->users_before = queue->memory_users;
        event->next_behind = queue->behind_users;
        queue->behind_users = event;
    }
    queue->memory_users += event->uses_memory;
}

void tutti_blocking_write_free(cl_event event) {
    if (event->frees && event->reached <= CL_COMPLETE && event->users_before == 0) {
        atomic_store(&event->freed, event->reached);
        tutti_event_wake(event);
    }
}

void tutti_memory_user_leave(cl_event event) {
    cl_command_queue queue = event->queue;
    cl_event *link = &queue->behind_users;
    queue->memory_users--;
    while (*link) {
        cl_event behind = *link;
        if (behind->number > event->number && --behind->users_before == 0) {
            *link = behind->next_behind;
            tutti_blocking_write_free(behind);
        } else {
            link = &behind->next_behind;
        }
    }
}
