/* SPDX-License-Identifier: MIT */
#include "sched/wait_list.h"

#include "sched/command.h"

cl_int tutti_wait_list_look(cl_context context, struct tutti_wait_list list) {
    if ((list.count > 0) != (list.events != NULL))
        return CL_INVALID_EVENT_WAIT_LIST;
    for (cl_uint i = 0; i < list.count; i++)
        if (!TUTTI_IS_EVENT(list.events[i]))
            return CL_INVALID_EVENT_WAIT_LIST;
    for (cl_uint i = 0; i < list.count; i++)
        if (list.events[i]->context != context)
            return CL_INVALID_CONTEXT;
    return CL_SUCCESS;
}

/*
 * May the command be dispatched as soon as the earlier one is, if StarPU orders the two? What comes
 * after it in its own queue then comes after the earlier one too: in an in-order queue that holds
 * for a predecessor of the same queue, while one of another queue stands for all before it there,
 * and has to be before all that follows here.
 */
static bool may_follow(cl_command_queue queue, cl_event earlier) {
    if (!earlier->queue || queue->strict)
        return false;
    return earlier->queue == queue ||
           !(tutti_queue_in_order(queue) || tutti_queue_in_order(earlier->queue));
}

/* Is a use of the command ordered after one of the earlier command? */
static bool uses_after(const struct tutti_resource_use *use, const struct tutti_command *earlier) {
    struct tutti_resource_use other;
    for (unsigned i = 0; use->storage && earlier->use(earlier, i, &other); i++)
        if (other.storage == use->storage && (use->writes || other.writes))
            return true;
    return false;
}

/*
 * Does StarPU execute the command after the earlier one? By a memory object that both use: the
 * later one finds it as the earlier one, or what the program ordered in between, left it. If it is
 * only one that this command overwrites, it must not get other storage for that.
 */
static bool is_ordered_by_storage(struct tutti_command *command, cl_event event) {
    const struct tutti_command *earlier = event->command;
    struct tutti_resource_use use;
    bool found = false;
    if (!earlier || !earlier->use || !command->use)
        return false;
    for (unsigned i = 0; command->use(command, i, &use); i++) {
        if (!uses_after(&use, earlier))
            continue;
        if (!use.replaces)
            return true;
        found = true;
    }
    command->keeps_storage |= found;
    return found;
}

bool tutti_wait_list_order(struct tutti_wait_list list, struct tutti_command *command) {
    cl_event event = command->event;
    bool complete = true;
    for (cl_uint i = 0; i < list.count; i++) {
        cl_event earlier = list.events[i];
        if (!earlier->published && may_follow(event->queue, earlier) &&
            is_ordered_by_storage(command, earlier)) {
            complete &= tutti_event_add_dependant(earlier, event, TUTTI_DISPATCHED, false) &&
                        tutti_event_add_late_dependant(earlier, event);
        } else {
            command->awaits |= !earlier->published;
            complete &= tutti_event_add_dependant(earlier, event, TUTTI_PUBLISHED, true);
        }
    }
    return complete;
}

bool tutti_wait_list_is_outside(struct tutti_wait_list list, cl_command_queue queue) {
    for (cl_uint i = 0; i < list.count; i++)
        if (!list.events[i]->published && list.events[i]->queue != queue)
            return true;
    return false;
}
