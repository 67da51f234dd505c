/* SPDX-License-Identifier: MIT */
#include "sched/copy_task.h"

#include "memory/coherence.h"
#include "memory/transfer_path.h"
#include "memory/version.h"
#include "memory/window.h"
#include "recycler.h"
#include "sched/append.h"
#include "sched/batch.h"
#include "sched/batch_users.h"
#include "sched/transfer.h"
#include "virtual_device/driver.h"

enum { SOURCE, TARGET };

struct copy_task {
    struct tutti_device_task task;
    struct tutti_device_use uses[2];
    cl_mem mem[2]; /* retained */
    size_t offset; /* in the source */
    bool dispatched;
};

/* The memory objects have one command less before them. */
static void leave_ahead(struct copy_task *copy) {
    if (copy->dispatched)
        return;
    copy->dispatched = true;
    atomic_fetch_sub(&copy->mem[SOURCE]->ahead, 1);
    atomic_fetch_sub(&copy->mem[TARGET]->ahead, 1);
}

static void destroy(struct tutti_command *command) {
    struct copy_task *copy = (struct copy_task *)command;
    leave_ahead(copy);
    for (int i = SOURCE; i <= TARGET; i++) {
        tutti_version_give_back(copy->uses[i].view, TUTTI_USER_DEVICE);
        tutti_object_release(copy->mem[i]);
    }
    tutti_recycler_give(copy);
}

static bool use(const struct tutti_command *command, unsigned i, struct tutti_resource_use *use) {
    const struct copy_task *copy = (const struct copy_task *)command;
    if (i > TARGET)
        return false;
    use->resource = tutti_mem_resource(copy->mem[i]);
    use->writes = use->replaces = i == TARGET;
    use->storage = copy->mem[i];
    return true;
}

static void start(struct tutti_command *command) {
    struct copy_task *copy = (struct copy_task *)command;
    size_t size = copy->mem[TARGET]->size;
    leave_ahead(copy);
    if (!tutti_window_note_transfer(copy->mem[SOURCE]) ||
        !tutti_window_note_transfer(copy->mem[TARGET])) {
        tutti_command_done(command, CL_OUT_OF_HOST_MEMORY);
        return;
    }
    struct tutti_view *source = tutti_version_take(copy->mem[SOURCE], false, TUTTI_USER_DEVICE);
    bool several = !tutti_is_one_device(copy->task.devices);
    if (several) {
        tutti_batch_last_of(source);
        tutti_batch_note_seats(tutti_window_storage_of(copy->mem[TARGET]));
    }
    struct tutti_view *target =
        tutti_version_take_for_launch(copy->mem[TARGET], !command->keeps_storage, several,
                                      several && !source->at_home ? source->seat : NULL);
    bool whole = source != target && !tutti_window_is(copy->mem[TARGET]);
    copy->uses[SOURCE] = (struct tutti_device_use){
        .view = source, .window = tutti_window_of(copy->mem[SOURCE]), .mode = STARPU_R};
    copy->uses[TARGET] = (struct tutti_device_use){.view = target,
                                                   .window = tutti_window_of(copy->mem[TARGET]),
                                                   .mode = whole ? STARPU_W : STARPU_RW};
    if (tutti_coherence_is_stale(source, copy->offset, copy->offset + size))
        tutti_batch_flush(&command->event->context->graph);
    if (!tutti_coherence_read(source, copy->offset, copy->offset + size) ||
        !tutti_coherence_write(target, 0, size, true)) {
        tutti_command_done(command, CL_OUT_OF_HOST_MEMORY);
        return;
    }
    target->defined = true;
    tutti_history_overwrite(&copy->mem[TARGET]->history);
    tutti_batch_add(&copy->task);
}

static cl_int enqueue(struct tutti_device_task *task, struct tutti_real_device *device,
                      cl_command_queue queue, const struct tutti_storage *const *storage,
                      cl_event *event) {
    const struct copy_task *copy = (const struct copy_task *)task;
    tutti_driver_take(device);
    cl_int error = device->dispatch->clEnqueueCopyBuffer(queue, storage[SOURCE]->mem,
                                                         storage[TARGET]->mem, copy->offset, 0,
                                                         copy->mem[TARGET]->size, 0, NULL, event);
    tutti_driver_give(device);
    return error;
}

static bool moves(struct tutti_command *command, struct tutti_append_move *move) {
    const struct copy_task *copy = (const struct copy_task *)command;
    *move = (struct tutti_append_move){
        .mem = {copy->mem[SOURCE], copy->mem[TARGET]},
        .count = 2,
        .whole = true,
        .time = tutti_transfer_time_within(copy->mem[TARGET]->size),
    };
    return true;
}

static struct tutti_model *model_of(size_t size) {
    struct tutti_model_key key = {.code = 0, .items = size / sizeof(cl_int) + 1};
    tutti_model_mix(&key, size);
    return tutti_model_find(&key);
}

static cl_mem take(cl_mem mem) {
    atomic_fetch_add(&mem->ahead, 1);
    return tutti_object_retain(mem);
}

struct tutti_command *tutti_copy_task_create(cl_mem source, size_t offset, cl_mem target,
                                             unsigned devices) {
    struct copy_task *copy = tutti_recycler_take_zeroed(sizeof(*copy));
    if (!copy)
        return NULL;
    struct tutti_device_task *task = &copy->task;
    task->command.start = start;
    task->command.destroy = destroy;
    task->command.use = use;
    task->command.joins = true;
    task->command.moves = moves;
    task->enqueue = enqueue;
    task->devices = devices;
    task->use = copy->uses;
    task->count = 2;
    copy->mem[SOURCE] = take(source);
    copy->mem[TARGET] = take(target);
    copy->offset = offset;
    task->model = model_of(target->size);
    return &task->command;
}

unsigned tutti_copy_task_devices(cl_mem source, cl_mem target) {
    const struct tutti_device_list *list = tutti_devices();
    size_t size = tutti_mem_bytes(source) + tutti_mem_bytes(target);
    unsigned near =
        tutti_transfer_path_near(tutti_history_users(&source->history), tutti_mem_bytes(target));
    for (unsigned d = 0; d < list->count; d++)
        if (near & 1u << d && !tutti_transfer_path_has_room(list->device[d], size))
            near &= ~(1u << d);
    return near;
}
