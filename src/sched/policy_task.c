/* SPDX-License-Identifier: MIT */
#include "sched/policy_task.h"

#include "sched/device_task.h"

static void begin(struct tutti_plan_task *task, unsigned able) {
    task->able = able;
    task->others = 0;
    task->tried = 0;
    task->count = 0;
    task->launch = 0;
    for (unsigned d = 0; d < TUTTI_PLAN_DEVICES; d++) {
        task->length[d] = task->delay[d] = task->lost[d] = 0;
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

void tutti_policy_expect_kernel(const struct tutti_model *model, unsigned able,
                                struct tutti_plan_task *task) {
    begin(task, able);
    if (model)
        add(task, model);
}

void tutti_policy_expect(const struct tutti_batch *batch, struct tutti_plan_task *task) {
    begin(task, tutti_batch_devices(batch));
    for (struct tutti_device_task *part = batch->first; part; part = part->next)
        add(task, part->model);
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
                                           .reads = (use->mode & STARPU_R) != 0};
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
            data[i].allocated |= allocated ? 1u << d : 0;
            data[i].valid |= valid ? 1u << d : 0;
            if (valid || !data[i].reads)
                continue;
            starpu_data_query_status(handle, node, NULL, NULL, &coming);
            data[i].coming |= coming ? 1u << d : 0;
        }
    }
}
