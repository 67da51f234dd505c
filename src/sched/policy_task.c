/* SPDX-License-Identifier: MIT */
#include "sched/policy_task.h"

#include "sched/device_task.h"
#include "sched/environment.h"
#include "sched/lanes.h"

static void begin(struct tutti_plan_task *task, unsigned able) {
    task->able = able;
    task->others = 0;
    task->tried = 0;
    task->count = 0;
    task->launch = 0;
    for (unsigned d = 0; d < TUTTI_PLAN_DEVICES; d++) {
        task->length[d] = task->beside[d] = task->delay[d] = task->lost[d] = 0;
        task->certainty[d] = TUTTI_MEASURED;
    }
}

static void add(struct tutti_plan_task *task, const struct tutti_model *model) {
    const struct tutti_device_list *list = tutti_devices();
    task->launch += TUTTI_LAUNCH_TIME;
    for (unsigned d = 0; d < list->count; d++) {
        enum tutti_certainty certainty;
        if (!(task->able & 1u << d))
            continue;
        task->length[d] += tutti_model_estimate(model, list->device[d], &certainty);
        if (certainty > task->certainty[d])
            task->certainty[d] = certainty;
        if (certainty != TUTTI_MEASURED && tutti_model_is_tried(model, list->device[d]))
            task->tried |= 1u << d;
    }
}

/* Does one of those before it begin with the same first launch? */
static bool is_repeated(const struct tutti_batch *batch, const struct tutti_device_task *part,
                        const struct tutti_first_launch *first) {
    const struct tutti_device_task *other = batch->first;
    while (other != part && tutti_model_first_launch(other->model) != first)
        other = other->next;
    return other != part;
}

/* What devices need before they execute that, unless it is in their line already. */
static void add_first(struct tutti_plan_task *task, const struct tutti_first_launch *first,
                      unsigned delayed) {
    const struct tutti_device_list *list = tutti_devices();
    for (unsigned d = 0; d < list->count; d++) {
        const struct tutti_real_device *device = list->device[d];
        if (!(task->able & 1u << d) ||
            (tutti_first_launch_is_planned(first, device) && !(delayed & 1u << d)))
            continue;
        task->delay[d] += tutti_first_launch_delay(first, device);
        task->lost[d] += tutti_first_launch_lost(first, device);
    }
}

void tutti_policy_expect_kernel(const struct tutti_model *model, unsigned able,
                                struct tutti_plan_task *task) {
    const struct tutti_first_launch *first = tutti_model_first_launch(model);
    begin(task, able);
    if (model)
        add(task, model);
    if (!tutti_first_launch_is_over(first, able))
        add_first(task, first, 0);
}

/* StarPU lets so many of them be under way. */
static void add_lanes(struct tutti_plan_task *task, const struct tutti_batch *batch) {
    const struct tutti_device_list *list = tutti_devices();
    for (unsigned d = 0; d < list->count; d++) {
        unsigned lanes = task->able & 1u << d ? tutti_lanes_for(batch, list->device[d]) : 1;
        if (lanes > TUTTI_PIPELINE)
            lanes = TUTTI_PIPELINE;
        task->beside[d] = task->length[d] * (1 - 1.0 / lanes);
    }
}

void tutti_policy_expect(const struct tutti_batch *batch, struct tutti_plan_task *task) {
    begin(task, tutti_batch_devices(batch));
    for (struct tutti_device_task *part = batch->first; part; part = part->next) {
        const struct tutti_first_launch *first = tutti_model_first_launch(part->model);
        add(task, part->model);
        if (!tutti_first_launch_is_over(first, task->able) && !is_repeated(batch, part, first))
            add_first(task, first, batch->delayed);
    }
    if (tutti_lanes_are_for(batch))
        add_lanes(task, batch);
}

void tutti_policy_delay(struct tutti_batch *batch, unsigned device, double delay) {
    const struct tutti_device_list *list = tutti_devices();
    for (struct tutti_device_task *part = batch->first; part; part = part->next) {
        struct tutti_first_launch *first = tutti_model_first_launch(part->model);
        if (batch->delayed)
            tutti_first_launch_plan(first, list->device[__builtin_ctz(batch->delayed)], false);
        if (delay > 0)
            tutti_first_launch_plan(first, list->device[device], true);
    }
    batch->delayed = delay > 0 ? 1u << device : 0;
    batch->delay = delay;
}

void tutti_policy_miss(const struct tutti_batch *batch, const struct tutti_plan *plan, double now) {
    const struct tutti_real_device *device = tutti_devices()->device[plan->missed];
    unsigned count = 0; /* of first launches that it would take */
    for (struct tutti_device_task *part = batch->first; part && plan->loss > 0; part = part->next) {
        const struct tutti_first_launch *first = tutti_model_first_launch(part->model);
        count += !tutti_first_launch_is_over(first, 1u << device->index) &&
                 !is_repeated(batch, part, first);
    }
    for (struct tutti_device_task *part = batch->first; part && count > 0; part = part->next)
        tutti_first_launch_miss(tutti_model_first_launch(part->model), device, plan->loss / count,
                                now);
}

/* Bytes that only move do so from where they are. */
static void leave_where_it_is(struct tutti_plan_task *task) {
    const struct tutti_device_list *list = tutti_devices();
    unsigned at_home = 0, able = task->able;
    for (unsigned d = 0; d < list->count; d++)
        at_home |= list->device[d]->at_home ? 1u << d : 0;
    for (unsigned i = 0; i < task->count; i++) {
        const struct tutti_plan_data *data = &task->data[i];
        if (data->reads)
            able &= data->valid | data->coming | (data->valid & TUTTI_PLAN_HOME ? at_home : 0);
    }
    if (able)
        task->able = able;
}

void tutti_policy_locate(const struct tutti_batch *batch, struct tutti_plan_task *task,
                         struct tutti_plan_data data[TUTTI_MOST_DATA]) {
    const struct tutti_device_list *list = tutti_devices();
    task->data = data;
    task->count = batch->count < TUTTI_MOST_DATA ? batch->count : TUTTI_MOST_DATA;
    if (batch->at_home || (list->count == 1 && list->device[0]->at_home))
        task->count = 0; /* there is nothing to bring, or no choice */
    for (unsigned i = 0; i < task->count; i++) {
        const struct tutti_device_use *use = &batch->use[i];
        data[i] = (struct tutti_plan_data){.bytes = use->view->size,
                                           .reads = (use->mode & STARPU_R) != 0,
                                           .fresh = tutti_history_users(use->view->history) == 0};
        starpu_data_handle_t handle = tutti_view_handle(use->view);
        int allocated, valid, coming;
        starpu_data_query_status(handle, STARPU_MAIN_RAM, NULL, &valid, NULL);
        data[i].valid = valid ? TUTTI_PLAN_HOME : 0;
        for (unsigned d = 0; d < list->count; d++) {
            const struct tutti_real_device *device = list->device[d];
            if (device->place.devid < 0)
                continue;
            int node = (int)device->place.node;
            starpu_data_query_status(handle, node, &allocated, &valid, NULL);
            if (allocated && tutti_interface_is_missing(handle, device)) {
                data[i].valid |= valid ? TUTTI_PLAN_HOME : 0;
                continue;
            }
            data[i].allocated |= allocated ? 1u << d : 0;
            data[i].valid |= valid ? 1u << d : 0;
            if (valid || !data[i].reads)
                continue;
            starpu_data_query_status(handle, node, NULL, NULL, &coming);
            data[i].coming |= coming ? 1u << d : 0;
        }
    }
    if (!batch->computes)
        leave_where_it_is(task);
}
