/* SPDX-License-Identifier: MIT */
#include "sched/launch.h"

#include "memory/coherence.h"
#include "memory/stay.h"
#include "memory/version.h"
#include "memory/window.h"
#include "recycler.h"
#include "sched/batch.h"
#include "sched/batch_users.h"
#include "sched/lanes.h"
#include "sched/policy.h"
#include "sched/runtime.h"
#include "virtual_device/late_build.h"
#include "virtual_device/overwrite.h"
#include "virtual_device/program.h"
#include "virtual_device/sampler.h"

struct launch {
    struct tutti_device_task task;
    struct tutti_invocation call; /* its memory objects, retained by the arguments, are the uses */
    struct tutti_range range;
    enum starpu_data_access_mode *declared; /* of each use, as the dispatch finds it */
    bool ahead;                             /* counted in its memory objects as not dispatched */
};

static void count_ahead(struct launch *launch, bool ahead) {
    if (launch->ahead == ahead)
        return;
    launch->ahead = ahead;
    for (unsigned i = 0; i < launch->call.arguments->count; i++) {
        cl_mem mem = launch->call.arguments->argument[i].mem;
        if (mem)
            atomic_fetch_add(&mem->ahead, ahead ? 1u : -1u);
    }
}

static void destroy(struct tutti_command *command) {
    struct launch *launch = (struct launch *)command;
    count_ahead(launch, false);
    for (unsigned i = 0; i < launch->task.count; i++)
        tutti_version_give_back(launch->task.use[i].view, TUTTI_USER_DEVICE);
    tutti_arguments_free(launch->call.arguments);
    tutti_object_release(launch->call.kernel);
    tutti_recycler_give(launch);
}

/* Is the whole object written, and nothing of what is there read? A part's whole needs the rest. */
static bool overwrites(const struct launch *launch, unsigned index) {
    const struct tutti_range *range = launch->call.range;
    cl_mem mem = launch->call.arguments->argument[index].mem;
    return index < launch->call.kernel->argument_count && mem->type == CL_MEM_OBJECT_BUFFER &&
           !mem->parent && !tutti_invocation_has_address(mem) &&
           tutti_overwrite_covers(&launch->call.kernel->overwrites[index], launch->call.arguments,
                                  range->dimensions, range->offset, range->global, mem->size);
}

static void add_use(struct launch *launch, unsigned index) {
    struct tutti_device_task *task = &launch->task;
    enum starpu_data_access_mode mode = !tutti_invocation_may_write(&launch->call, index) ? STARPU_R
                                        : overwrites(launch, index)                       ? STARPU_W
                                                                    : STARPU_RW;
    unsigned i = tutti_invocation_add(&launch->call, index);
    if (i == task->count) {
        launch->declared[i] = mode;
        task->use[i] = (struct tutti_device_use){.mode = mode};
        task->count++;
    } else if (mode != STARPU_R || launch->declared[i] != STARPU_R) {
        launch->declared[i] = STARPU_RW; /* one of the arguments may read what the other writes */
    }
}

static bool use(const struct tutti_command *command, unsigned i, struct tutti_resource_use *use) {
    const struct launch *launch = (const struct launch *)command;
    const struct tutti_device_task *task = &launch->task;
    if (i < task->count) {
        use->resource = tutti_mem_resource(launch->call.mem[i]);
        use->writes = launch->declared[i] != STARPU_R;
        use->storage = launch->call.mem[i];
        use->replaces = launch->declared[i] == STARPU_W;
        return true;
    }
    use->resource = &command->event->context->printing;
    use->writes = true;
    use->storage = NULL; /* past StarPU nothing orders those who print */
    use->replaces = false;
    return i == task->count && task->prints;
}

/* Does the kernel come after the last one that used this view, whatever view it gets itself? */
static bool waits_anyway(const struct tutti_device_task *task, const struct tutti_view *view) {
    for (unsigned i = 0; view->last_user && i < task->count; i++) {
        const struct tutti_device_use *use = &task->use[i];
        if (use->mode != STARPU_W && use->view->last_writer == view->last_user->order)
            return true;
    }
    return false;
}

/*
 * The device where all was used last that the kernel reads, of several that may execute it; NULL:
 * there is none.
 */
static const struct tutti_real_device *seat_of_reads(const struct tutti_device_task *task) {
    const struct tutti_real_device *seat = NULL;
    for (unsigned i = 0; i < task->count; i++) {
        struct tutti_view *view = task->use[i].view;
        if (task->use[i].mode == STARPU_W)
            continue;
        tutti_batch_last_of(view);
        if (!view->seat || view->at_home || (seat && view->seat != seat))
            return NULL;
        seat = view->seat;
    }
    return seat;
}

/* Chooses the storage of all arguments. */
static void take_versions(struct launch *launch) {
    struct tutti_device_task *task = &launch->task;
    bool several = !tutti_is_one_device(task->devices | task->late.devices);
    for (unsigned i = 0; i < task->count; i++) {
        struct tutti_device_use *use = &task->use[i];
        cl_mem mem = launch->call.mem[i];
        use->window = tutti_window_of(mem);
        use->mode = launch->declared[i];
        if (use->mode == STARPU_W && tutti_mem_has_siblings(mem))
            use->mode = STARPU_RW; /* it has parts since the enqueue, which may be windows */
        if (use->mode != STARPU_W)
            use->view = tutti_version_take_for_launch(mem, false, false, NULL);
    }
    const struct tutti_real_device *seat = several ? seat_of_reads(task) : NULL;
    for (unsigned i = 0; i < task->count; i++) {
        cl_mem mem = launch->call.mem[i];
        if (task->use[i].mode != STARPU_W)
            continue;
        if (seat)
            tutti_batch_note_seats(tutti_window_storage_of(mem));
        bool elsewhere =
            (several && !waits_anyway(task, mem->view)) || tutti_stay_is_downloaded(mem->view);
        task->use[i].view =
            tutti_version_take_for_launch(mem, !task->command.keeps_storage, elsewhere, seat);
    }
}

/* Parts become windows, or windows parts, where that is better. False when out of memory. */
static bool settle_windows(struct launch *launch) {
    struct tutti_device_task *task = &launch->task;
    bool done = true, looked = false;
    for (unsigned i = 0; i < task->count && done; i++) {
        cl_mem mem = launch->call.mem[i];
        if (!tutti_mem_has_siblings(mem))
            continue;
        if (!looked)
            tutti_lanes_look_at(task);
        looked = true;
        done = task->count <= TUTTI_WINDOWS_AT_ONCE
                   ? tutti_window_note_kernel(mem, task->devices | task->late.devices, task->shares)
                   : tutti_window_close(mem);
    }
    return done;
}

/* Do other views of a buffer have newer bytes? Then those come before what is still collected. */
static bool is_stale(const struct tutti_device_task *task) {
    bool stale = false;
    for (unsigned i = 0; i < task->count && !stale; i++)
        stale = tutti_coherence_is_stale(task->use[i].view, 0, task->use[i].view->size);
    return stale;
}

static void start(struct tutti_command *command) {
    struct launch *launch = (struct launch *)command;
    struct tutti_device_task *task = &launch->task;
    count_ahead(launch, false);
    if (!settle_windows(launch)) {
        tutti_command_done(command, CL_OUT_OF_HOST_MEMORY);
        return;
    }
    take_versions(launch);
    if (is_stale(task))
        tutti_batch_flush(&command->event->context->graph);
    for (unsigned i = 0; i < task->count; i++) {
        struct tutti_view *view = task->use[i].view;
        if (!tutti_coherence_read(view, 0, view->size)) {
            tutti_command_done(command, CL_OUT_OF_HOST_MEMORY);
            return;
        }
    }
    for (unsigned i = 0; i < task->count; i++) {
        struct tutti_view *view = task->use[i].view;
        if (task->use[i].mode != STARPU_R) {
            if (!tutti_coherence_write(view, 0, view->size, true)) {
                tutti_command_done(command, CL_OUT_OF_HOST_MEMORY);
                return;
            }
        }
        /* Nobody wrote it yet: there is nothing to bring, whatever the kernel does with it. */
        if (!view->defined) {
            task->use[i].mode = STARPU_W;
            view->defined = true;
        }
    }
    tutti_batch_add(task);
}

static cl_int enqueue(struct tutti_device_task *task, struct tutti_real_device *device,
                      cl_command_queue queue, const struct tutti_storage *const *storage,
                      cl_event *event) {
    struct launch *launch = (struct launch *)task;
    struct tutti_invocation_times times = {0, 0};
    cl_int error = tutti_invocation_enqueue(&launch->call, device, queue, storage, false, 0, NULL,
                                            event, task->timed ? &times : NULL);
    if (task->timed)
        task->enqueued = task->real_queued = task->real_start = times.start;
    task->real_end = times.end;
    return error;
}

/*
 * Leaves those devices to the task that can execute it; notes the ones for which its program is
 * built later, if that ever pays. Policies of StarPU's choose among all devices, at once.
 */
static void choose_devices(struct launch *launch) {
    struct tutti_device_task *task = &launch->task;
    cl_program program = launch->call.kernel->program;
    unsigned late = tutti_late_build_devices(program);
    if (late && !tutti_policy_is_active()) {
        tutti_late_build_run(program);
        late = 0;
    }
    late &= task->devices;
    task->devices &= tutti_invocation_devices(&launch->call);
    late &= ~task->devices;
    if (late) {
        task->late.program = program;
        task->late.devices = tutti_late_build_like(late, task->devices);
        task->late.built = &launch->call.kernel->function->devices;
    }
}

struct tutti_command *tutti_launch_create(cl_kernel kernel, struct tutti_arguments *arguments,
                                          const struct tutti_range *range) {
    struct launch *launch;
    /* One block: this is done for each command. */
    size_t count = arguments->count;
    size_t each = sizeof(*launch->task.use) + sizeof(*launch->call.mem) +
                  sizeof(*launch->declared) + sizeof(*launch->call.mem_of);
    launch = tutti_recycler_take(sizeof(*launch) + count * each);
    if (!launch) {
        tutti_arguments_free(arguments);
        return NULL;
    }
    *launch = (struct launch){
        .call = {.kernel = tutti_object_retain(kernel), .arguments = arguments}, .range = *range};
    launch->call.range = &launch->range;
    launch->task.use = (struct tutti_device_use *)(launch + 1);
    launch->call.mem = (cl_mem *)(launch->task.use + count);
    launch->declared = (enum starpu_data_access_mode *)(launch->call.mem + count);
    launch->call.mem_of = (unsigned *)(launch->declared + count);
    struct tutti_device_task *task = &launch->task;
    task->command.start = start;
    task->command.destroy = destroy;
    task->command.use = use;
    task->command.joins = true;
    task->enqueue = enqueue;
    task->kernel = kernel;
    task->range = launch->call.range;
    task->prints = kernel->prints;
    if (task->prints) { /* a byte that only native kernels share, for they may print too */
        task->command.host = (const char *)&kernel->program->context->printing;
        task->command.host_size = 1;
        task->command.host_written = true;
    }
    task->devices = ~0u;
    for (unsigned i = 0; i < arguments->count; i++) {
        const struct tutti_argument *argument = &arguments->argument[i];
        if (argument->mem) {
            add_use(launch, i);
            task->devices &= argument->mem->devices;
        }
        if (argument->sampler)
            task->devices &= tutti_sampler_devices(argument->sampler);
    }
    count_ahead(launch, true);
    task->model = tutti_invocation_model(&launch->call);
    choose_devices(launch);
    return &task->command;
}
