/* SPDX-License-Identifier: MIT */
#include "sched/launch.h"

#include "memory/coherence.h"
#include "memory/mem.h"
#include "memory/version.h"
#include "sched/batch.h"
#include "sched/model.h"
#include "sched/policy.h"
#include "sched/runtime.h"
#include "virtual_device/given.h"
#include "virtual_device/late_build.h"
#include "virtual_device/overwrite.h"
#include "virtual_device/pocl.h"
#include "virtual_device/program.h"
#include "virtual_device/sampler.h"

#include <stdlib.h>

struct launch {
    struct tutti_device_task task;
    cl_kernel kernel;
    struct tutti_arguments *arguments;
    struct tutti_range range;
    unsigned *use_of; /* [arguments->count]: which use the memory argument is */
    cl_mem *mem;      /* of each use; the arguments retain them */
    enum starpu_data_access_mode *declared; /* of each use, as the dispatch finds it */
    bool ahead;                             /* counted in its memory objects as not dispatched */
};

static void count_ahead(struct launch *launch, bool ahead) {
    if (launch->ahead == ahead)
        return;
    launch->ahead = ahead;
    for (unsigned i = 0; i < launch->arguments->count; i++) {
        cl_mem mem = launch->arguments->argument[i].mem;
        if (mem)
            atomic_fetch_add(&mem->ahead, ahead ? 1u : -1u);
    }
}

static void destroy(struct tutti_command *command) {
    struct launch *launch = (struct launch *)command;
    count_ahead(launch, false);
    for (unsigned i = 0; i < launch->task.count; i++)
        tutti_version_give_back(launch->task.use[i].view, TUTTI_USER_DEVICE);
    tutti_arguments_free(launch->arguments);
    tutti_object_release(launch->kernel);
    free(launch);
}

/*
 * Not what is `const` or `__constant`. A kernel must not write to a CL_MEM_READ_ONLY buffer either,
 * but no driver minds, and programs do (hashcat): that is taken at its word only where the source
 * agrees, or there is none.
 */
static bool may_write(const struct launch *launch, unsigned index) {
    cl_kernel kernel = launch->kernel;
    cl_mem mem = launch->arguments->argument[index].mem;
    bool declared = index < kernel->argument_count;
    if (declared && kernel->info[index].reads_only)
        return false;
    if (!(mem->flags & CL_MEM_READ_ONLY))
        return true;
    return declared && !tutti_mem_is_image(mem) && kernel->program->source &&
           !kernel->overwrites[index].only_read;
}

/*
 * A buffer over shared virtual memory is that memory for kernels, by its address: pointers into it
 * may lie in what they read.
 */
static bool has_address(cl_mem mem) {
    return !tutti_mem_is_image(mem) && tutti_mem_whole(mem)->is_svm;
}

static cl_mem storage_of(cl_mem mem) { return has_address(mem) ? tutti_mem_whole(mem) : mem; }

/* Is the whole object written, and nothing of what is there read? A part's whole needs the rest. */
static bool overwrites(const struct launch *launch, unsigned index) {
    const struct tutti_range *range = &launch->range;
    cl_mem mem = launch->arguments->argument[index].mem;
    return index < launch->kernel->argument_count && mem->type == CL_MEM_OBJECT_BUFFER &&
           !mem->parent && !has_address(mem) &&
           tutti_overwrite_covers(&launch->kernel->overwrites[index], launch->arguments,
                                  range->dimensions, range->offset, range->global, mem->size);
}

static void add_use(struct launch *launch, unsigned index) {
    struct tutti_device_task *task = &launch->task;
    cl_mem mem = storage_of(launch->arguments->argument[index].mem);
    enum starpu_data_access_mode mode = !may_write(launch, index)   ? STARPU_R
                                        : overwrites(launch, index) ? STARPU_W
                                                                    : STARPU_RW;
    unsigned i = 0;
    while (i < task->count && launch->mem[i] != mem)
        i++;
    launch->use_of[index] = i;
    if (i == task->count) {
        launch->mem[i] = mem;
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
        use->resource = tutti_mem_resource(launch->mem[i]);
        use->writes = launch->declared[i] != STARPU_R;
        use->storage = launch->mem[i];
        use->replaces = launch->declared[i] == STARPU_W;
        return true;
    }
    use->resource = &command->event->context->printing;
    use->writes = true;
    use->storage = use->resource;
    use->replaces = false;
    return i == task->count && task->prints;
}

/* Does the kernel come after the last one that used this view, whatever view it gets itself? */
static bool waits_anyway(const struct tutti_device_task *task, const struct tutti_view *view) {
    for (unsigned i = 0; i < task->count; i++) {
        const struct tutti_device_use *use = &task->use[i];
        if (use->mode != STARPU_W && use->view->last_user && use->view->last_writes &&
            use->view->last_user == view->last_user)
            return true;
    }
    return false;
}

/* Chooses the storage of all arguments. */
static void take_versions(struct launch *launch) {
    struct tutti_device_task *task = &launch->task;
    bool several = !tutti_is_one_device(task->devices | task->late.devices);
    for (unsigned i = 0; i < task->count; i++) {
        struct tutti_device_use *use = &task->use[i];
        use->mode = launch->declared[i];
        if (use->mode == STARPU_W && launch->mem[i]->view->sibling)
            use->mode = STARPU_RW; /* it has parts since the enqueue */
        if (use->mode != STARPU_W)
            use->view = tutti_version_take_for_launch(launch->mem[i], false, false);
    }
    for (unsigned i = 0; i < task->count; i++)
        if (task->use[i].mode == STARPU_W)
            task->use[i].view =
                tutti_version_take_for_launch(launch->mem[i], !task->command.keeps_storage,
                                              several && !waits_anyway(task, launch->mem[i]->view));
}

static void start(struct tutti_command *command) {
    struct launch *launch = (struct launch *)command;
    struct tutti_device_task *task = &launch->task;
    count_ahead(launch, false);
    take_versions(launch);
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

static cl_int set_argument(const struct launch *launch, const struct tutti_real_device *device,
                           cl_kernel real, unsigned index,
                           const struct tutti_storage *const *storage) {
    const cl_icd_dispatch *driver = device->dispatch;
    const struct tutti_argument *argument = &launch->arguments->argument[index];
    enum tutti_argument_kind kind = launch->kernel->info[index].kind;
    bool svm = argument->mem && kind == TUTTI_ARGUMENT_BUFFER && has_address(argument->mem);
    if (svm || kind == TUTTI_ARGUMENT_LOCAL || kind == TUTTI_ARGUMENT_SAMPLER)
        tutti_given_forget(launch->kernel, device, index);
    switch (kind) {
    case TUTTI_ARGUMENT_BUFFER:
    case TUTTI_ARGUMENT_IMAGE: {
        if (svm)
            return driver->clSetKernelArgSVMPointer(
                real, index, argument->pointer ? argument->pointer : argument->mem->host_ptr);
        cl_mem value = argument->mem ? storage[launch->use_of[index]]->argument : NULL;
        return tutti_given_set(launch->kernel, device, index, sizeof(value), &value, true);
    }
    case TUTTI_ARGUMENT_LOCAL:
        return driver->clSetKernelArg(real, index, argument->size, NULL);
    case TUTTI_ARGUMENT_SAMPLER: {
        cl_sampler value = argument->sampler->real[device->index];
        return driver->clSetKernelArg(real, index, sizeof(value), &value);
    }
    case TUTTI_ARGUMENT_VALUE:
        break;
    }
    return tutti_given_set(launch->kernel, device, index, argument->size, argument->value, false);
}

static void enter_pocl(const struct launch *launch, const struct tutti_real_device *device) {
    const struct tutti_range *range = &launch->range;
    struct tutti_pocl_launch result = {.kernel = launch->kernel->name};
    for (cl_uint d = 0; d < 3; d++) {
        bool used = d < range->dimensions;
        result.global[d] = used ? range->global[d] : 1;
        result.local[d] = !range->local_given ? 0 : used ? range->local[d] : 1;
        result.offset |= used && range->offset[d] != 0;
    }
    tutti_pocl_enter(device, &result);
}

/*
 * Tells the driver what the kernel reaches by pointers in its data. One whose devices work in the
 * host's memory need not know, and has not allocated it.
 */
static cl_int set_reached(const struct launch *launch, const struct tutti_real_device *device,
                          cl_kernel real) {
    const struct tutti_arguments *arguments = launch->arguments;
    unsigned declared = launch->kernel->argument_count, count = 0;
    bool *reaches = &launch->kernel->function->reaches[device->index];
    if (device->at_home || (arguments->count == declared && !*reaches))
        return CL_SUCCESS;
    void **pointers = malloc((arguments->count - declared + 1) * sizeof(*pointers));
    if (!pointers)
        return CL_OUT_OF_HOST_MEMORY;
    for (unsigned i = declared; i < arguments->count; i++)
        if (arguments->argument[i].mem)
            pointers[count++] = arguments->argument[i].mem->host_ptr;
    cl_int error = device->dispatch->clSetKernelExecInfo(
        real, CL_KERNEL_EXEC_INFO_SVM_PTRS, count * sizeof(*pointers), count ? pointers : NULL);
    free(pointers);
    *reaches = count > 0;
    return count ? error : CL_SUCCESS; /* a driver may not know how to forget */
}

static cl_int enqueue(struct tutti_device_task *task, struct tutti_real_device *device,
                      cl_command_queue queue, const struct tutti_storage *const *storage,
                      cl_event *event) {
    struct launch *launch = (struct launch *)task;
    const struct tutti_range *range = &launch->range;
    cl_kernel real = launch->kernel->function->real[device->index];
    cl_int error = set_reached(launch, device, real);
    for (unsigned i = 0; i < launch->kernel->argument_count && error == CL_SUCCESS; i++)
        error = set_argument(launch, device, real, i, storage);
    if (error != CL_SUCCESS)
        return error;
    bool by_itself = tutti_pocl_is_safe(device);
    if (!by_itself)
        enter_pocl(launch, device);
    if (task->timed)
        task->enqueued = task->real_queued = task->real_start = tutti_runtime_now();
    error = device->dispatch->clEnqueueNDRangeKernel(
        queue, real, range->dimensions, range->offset, range->global,
        range->local_given ? range->local : NULL, 0, NULL, event);
    if (task->timed)
        task->real_end = tutti_runtime_now();
    if (!by_itself)
        tutti_pocl_leave(device);
    return error;
}

static struct tutti_model *model_of(const struct launch *launch) {
    struct tutti_model_key key = {tutti_kernel_identity(launch->kernel), 0, 1};
    for (cl_uint d = 0; d < launch->range.dimensions; d++) {
        key.items *= launch->range.global[d];
        tutti_model_mix(&key, launch->range.global[d]);
        tutti_model_mix(&key, launch->range.local_given ? launch->range.local[d] : 0);
    }
    for (unsigned i = 0; i < launch->task.count; i++)
        tutti_model_mix(&key, tutti_mem_bytes(launch->mem[i]));
    return tutti_model_find(&key);
}

/* Devices on which the work-group size is allowed. */
static unsigned devices_for(cl_kernel kernel, const struct tutti_range *range) {
    const struct tutti_device_list *list = tutti_devices();
    unsigned devices = atomic_load(&kernel->function->devices);
    if (!range->local_given)
        return devices;
    size_t items = 1;
    for (cl_uint d = 0; d < range->dimensions; d++)
        items *= range->local[d];
    for (unsigned i = 0; i < list->count; i++) {
        const struct tutti_real_device *device = list->device[i];
        if (!(devices & 1u << i))
            continue;
        bool allowed = items <= kernel->function->work_group[i].most;
        for (cl_uint d = 0; d < range->dimensions; d++)
            allowed = allowed && range->local[d] <= device->max_work_item_sizes[d];
        if (!allowed)
            devices &= ~(1u << i);
    }
    return devices;
}

/*
 * Leaves those devices to the task that can execute it; notes the ones for which its program is
 * built later, if that ever pays. Policies of StarPU's choose among all devices, at once.
 */
static void choose_devices(struct launch *launch) {
    struct tutti_device_task *task = &launch->task;
    cl_program program = launch->kernel->program;
    unsigned late = tutti_late_build_devices(program);
    if (late && !tutti_policy_is_active()) {
        tutti_late_build_run(program);
        late = 0;
    }
    late &= task->devices;
    task->devices &= devices_for(launch->kernel, &launch->range);
    late = tutti_late_build_like(late & ~task->devices, task->devices);
    if (late) {
        task->late.program = program;
        task->late.devices = late;
        task->late.built = &launch->kernel->function->devices;
    }
}

struct tutti_command *tutti_launch_create(cl_kernel kernel, struct tutti_arguments *arguments,
                                          const struct tutti_range *range) {
    struct launch *launch;
    /* One block: this is done for each command. */
    size_t count = arguments->count;
    size_t each = sizeof(*launch->task.use) + sizeof(*launch->mem) + sizeof(*launch->declared) +
                  sizeof(*launch->use_of);
    launch = malloc(sizeof(*launch) + count * each);
    if (!launch) {
        tutti_arguments_free(arguments);
        return NULL;
    }
    *launch = (struct launch){.range = *range};
    launch->task.use = (struct tutti_device_use *)(launch + 1);
    launch->mem = (cl_mem *)(launch->task.use + count);
    launch->declared = (enum starpu_data_access_mode *)(launch->mem + count);
    launch->use_of = (unsigned *)(launch->declared + count);
    launch->kernel = tutti_object_retain(kernel);
    launch->arguments = arguments;
    struct tutti_device_task *task = &launch->task;
    task->command.start = start;
    task->command.destroy = destroy;
    task->command.use = use;
    task->command.joins = true;
    task->enqueue = enqueue;
    task->is_kernel = true;
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
    task->model = model_of(launch);
    choose_devices(launch);
    return &task->command;
}
