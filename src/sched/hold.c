/* SPDX-License-Identifier: MIT */
#include "sched/hold.h"

#include "recycler.h"
#include "sched/command.h"

/* The held commands of one queue that use one resource, in queue order. */
struct tutti_line {
    struct tutti_line *next; /* of the same resource */
    cl_command_queue queue;
    struct tutti_hold *first, *last;
    struct tutti_hold *writer; /* the last one that writes, if it is still held */
};

/* One use of a resource by a held command. */
struct tutti_hold {
    struct tutti_hold *previous, *next; /* in its line */
    struct tutti_line *line;
    struct tutti_resource *resource;
    cl_event event;
    bool writes;
};

static struct tutti_line *find(const struct tutti_resource *resource, cl_command_queue queue) {
    struct tutti_line *line = resource->lines;
    while (line && line->queue != queue)
        line = line->next;
    return line;
}

static bool follow(struct tutti_hold *hold, struct tutti_command *command) {
    return tutti_event_add_dependant(hold->event, command->event, TUTTI_DISPATCHED, false);
}

bool tutti_hold_order(struct tutti_command *command) {
    cl_command_queue queue = command->event->queue;
    struct tutti_resource_use use;
    for (unsigned i = 0; queue->held && command->use && command->use(command, i, &use); i++) {
        const struct tutti_line *line = find(use.resource, queue);
        if (!line)
            continue;
        if (line->writer && !follow(line->writer, command))
            return false;
        /* Readers since then are passed only once: after this command, it is the last writer. */
        for (struct tutti_hold *hold = line->last; hold != line->writer && use.writes;
             hold = hold->previous)
            if (!follow(hold, command))
                return false;
    }
    return true;
}

static struct tutti_line *line_of(struct tutti_resource *resource, cl_command_queue queue) {
    struct tutti_line *line = find(resource, queue);
    if (!line && (line = tutti_recycler_take_zeroed(sizeof(*line)))) {
        line->queue = queue;
        line->next = resource->lines;
        resource->lines = line;
    }
    return line;
}

static void join(struct tutti_hold *hold) {
    struct tutti_line *line = hold->line;
    hold->previous = line->last;
    if (line->last)
        line->last->next = hold;
    else
        line->first = hold;
    line->last = hold;
    if (hold->writes)
        line->writer = hold;
}

static void leave(struct tutti_hold *hold) {
    struct tutti_line *line = hold->line;
    if (hold->previous)
        hold->previous->next = hold->next;
    else
        line->first = hold->next;
    if (hold->next)
        hold->next->previous = hold->previous;
    else
        line->last = hold->previous;
    if (line->writer == hold)
        line->writer = NULL;
    if (line->first)
        return;
    struct tutti_line **link = &hold->resource->lines;
    while (*link != line)
        link = &(*link)->next;
    *link = line->next;
    tutti_recycler_give(line);
}

bool tutti_hold_enter(struct tutti_command *command) {
    cl_command_queue queue = command->event->queue;
    struct tutti_resource_use use;
    unsigned count = 0;
    while (command->use && command->use(command, count, &use))
        count++;
    command->held = true;
    queue->held++;
    if (count == 0)
        return true;
    command->holds = tutti_recycler_take_zeroed(count * sizeof(*command->holds));
    if (!command->holds)
        return false;
    for (unsigned i = 0; i < count; i++) {
        struct tutti_hold *hold = &command->holds[i];
        command->use(command, i, &use);
        hold->resource = use.resource;
        hold->event = command->event;
        hold->writes = use.writes;
        hold->line = line_of(use.resource, queue);
        if (!hold->line)
            return false;
        join(hold);
        command->hold_count++;
    }
    return true;
}

void tutti_hold_leave(struct tutti_command *command) {
    if (!command->held)
        return;
    command->held = false;
    command->event->queue->held--;
    for (unsigned i = 0; i < command->hold_count; i++)
        leave(&command->holds[i]);
    command->hold_count = 0;
    tutti_recycler_give(command->holds);
    command->holds = NULL;
}
