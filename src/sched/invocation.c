/* SPDX-License-Identifier: MIT */
#include "sched/invocation.h"

#include "memory/coherence.h"
#include "memory/window.h"
#include "sched/runtime.h"
#include "virtual_device/driver.h"
#include "virtual_device/given.h"
#include "virtual_device/overwrite.h"
#include "virtual_device/program.h"
#include "virtual_device/sampler.h"

#include <stdlib.h>
#include <string.h>

bool tutti_invocation_has_address(cl_mem mem) {
    return !tutti_mem_is_image(mem) && tutti_mem_whole(mem)->is_svm;
}

unsigned tutti_invocation_add(struct tutti_invocation *call, unsigned index) {
    cl_mem given = call->arguments->argument[index].mem;
    return tutti_invocation_add_object(
        call, index, tutti_invocation_has_address(given) ? tutti_mem_whole(given) : given);
}

bool tutti_invocation_may_write(const struct tutti_invocation *call, unsigned index) {
    cl_kernel kernel = call->kernel;
    cl_mem mem = call->arguments->argument[index].mem;
    bool declared = index < kernel->argument_count;
    if (declared && kernel->info[index].reads_only)
        return false;
    if (!(mem->flags & CL_MEM_READ_ONLY))
        return true;
    return declared && !tutti_mem_is_image(mem) && kernel->program->source &&
           !kernel->overwrites[index].only_read;
}

/* With any integer arguments. */
static struct tutti_model *find_base(const struct tutti_invocation *call) {
    const struct tutti_range *range = call->range;
    struct tutti_model_key key = {tutti_kernel_identity(call->kernel), 0, 1};
    size_t offset = 0, widest = 0;
    for (cl_uint d = 0; d < range->dimensions; d++) {
        key.items *= range->global[d];
        offset |= range->offset[d];
        widest = range->global[d] > widest ? range->global[d] : widest;
        tutti_model_mix(&key, range->local_given ? range->local[d] : range->global[d]);
    }
    bool small = widest < TUTTI_POCL_SMALL;
    tutti_model_mix(&key, range->local_given | (offset != 0) << 1 | small << 2);
    uint64_t shape = key.sizes;
    for (cl_uint d = 0; d < range->dimensions && range->local_given; d++)
        tutti_model_mix(&key, range->global[d]);
    for (unsigned i = 0; i < call->count; i++)
        tutti_model_mix(&key, tutti_mem_bytes(call->mem[i]));
    tutti_model_shape(&key, shape);
    return tutti_model_find(&key);
}

struct tutti_model *tutti_invocation_model(const struct tutti_invocation *call) {
    return tutti_model_of_integers(find_base(call), call->arguments->integers);
}

unsigned tutti_invocation_devices(const struct tutti_invocation *call) {
    const struct tutti_device_list *list = tutti_devices();
    const struct tutti_function *function = call->kernel->function;
    const struct tutti_range *range = call->range;
    unsigned devices = atomic_load(&function->devices);
    if (!range->local_given)
        return devices;
    size_t items = 1;
    for (cl_uint d = 0; d < range->dimensions; d++)
        items *= range->local[d];
    for (unsigned i = 0; i < list->count; i++) {
        const struct tutti_real_device *device = list->device[i];
        if (!(devices & 1u << i))
            continue;
        bool allowed = items <= function->work_group[i].most;
        for (cl_uint d = 0; d < range->dimensions; d++)
            allowed = allowed && range->local[d] <= device->max_work_item_sizes[d];
        if (!allowed)
            devices &= ~(1u << i);
    }
    return devices;
}

/* A launch, and what was found of it. */
struct recent {
    struct tutti_range range;
    unsigned of_function; /* devices that had the kernel */
    unsigned count;
    uint64_t sizes;    /* of the memory objects */
    uint64_t integers; /* among the other arguments */
    unsigned devices;
    struct tutti_model *base, *model;
};

/* To the model, and to what devices allow. */
static bool is_like(const struct tutti_range *a, const struct tutti_range *b) {
    bool like = a->dimensions == b->dimensions && a->local_given == b->local_given;
    for (cl_uint d = 0; like && d < a->dimensions; d++)
        like = a->global[d] == b->global[d] && !a->offset[d] == !b->offset[d] &&
               (!a->local_given || a->local[d] == b->local[d]);
    return like;
}

/* Apart from what is done each time. NULL when out of memory. */
static __attribute__((noinline)) struct recent *remember(const struct tutti_invocation *call,
                                                         unsigned of_function, uint64_t sizes) {
    struct recent *recent = call->kernel->recent;
    if (!recent)
        recent = call->kernel->recent = malloc(sizeof(*recent));
    if (recent)
        *recent = (struct recent){.range = *call->range,
                                  .of_function = of_function,
                                  .count = call->count,
                                  .sizes = sizes,
                                  .devices = tutti_invocation_devices(call),
                                  .base = find_base(call)};
    return recent;
}

struct tutti_model *tutti_invocation_recall(const struct tutti_invocation *call,
                                            unsigned *devices) {
    struct recent *recent = call->kernel->recent;
    uint64_t integers = call->arguments->integers;
    unsigned of_function = atomic_load(&call->kernel->function->devices);
    struct tutti_model_key key = {0};
    for (unsigned i = 0; i < call->count; i++)
        tutti_model_mix(&key, tutti_mem_bytes(call->mem[i]));
    if (!recent || recent->of_function != of_function || recent->count != call->count ||
        recent->sizes != key.sizes || !is_like(&recent->range, call->range))
        recent = remember(call, of_function, key.sizes);
    if (recent && (!recent->model || recent->integers != integers)) {
        recent->integers = integers;
        recent->model = tutti_model_of_integers(recent->base, integers);
    }
    *devices = recent ? recent->devices : 0;
    return recent ? recent->model : NULL;
}

static cl_int set_memory(const struct tutti_invocation *call,
                         const struct tutti_real_device *device, unsigned index, cl_mem value) {
    return tutti_given_set(call->kernel, device, index, sizeof(value), &value, TUTTI_GIVEN_MEMORY);
}

/*
 * Shared virtual memory is set anew each time. Beside an image buffers are memory objects: PoCL
 * (3.1) ends the process when an image over a buffer is a launch's only one.
 */
static cl_int set_buffer(const struct tutti_invocation *call,
                         const struct tutti_real_device *device, unsigned index,
                         const struct tutti_storage *const *storage) {
    const struct tutti_argument *argument = &call->arguments->argument[index];
    if (!argument->mem)
        return set_memory(call, device, index, NULL);
    if (tutti_invocation_has_address(argument->mem)) {
        tutti_given_forget(call->kernel, device, index);
        return device->dispatch->clSetKernelArgSVMPointer(
            call->kernel->function->real[device->index], index,
            argument->pointer ? argument->pointer : argument->mem->host_ptr);
    }
    const struct tutti_storage *own = storage[call->mem_of[index]];
    return own->bytes && device->takes_addresses && !call->kernel->function->takes_images
               ? tutti_given_set(call->kernel, device, index, sizeof(own->bytes), &own->bytes,
                                 TUTTI_GIVEN_ADDRESS)
               : set_memory(call, device, index, own->argument);
}

/* Local memory and samplers are set anew each time, too. */
static cl_int set_other(const struct tutti_invocation *call, const struct tutti_real_device *device,
                        unsigned index, size_t size, const void *value) {
    tutti_given_forget(call->kernel, device, index);
    return device->dispatch->clSetKernelArg(call->kernel->function->real[device->index], index,
                                            size, value);
}

static cl_int set_argument(const struct tutti_invocation *call,
                           const struct tutti_real_device *device, unsigned index,
                           const struct tutti_storage *const *storage) {
    const struct tutti_argument *argument = &call->arguments->argument[index];
    switch (call->kernel->info[index].kind) {
    case TUTTI_ARGUMENT_BUFFER:
        return set_buffer(call, device, index, storage);
    case TUTTI_ARGUMENT_IMAGE:
        return set_memory(call, device, index,
                          argument->mem ? storage[call->mem_of[index]]->argument : NULL);
    case TUTTI_ARGUMENT_LOCAL:
        return set_other(call, device, index, argument->size, NULL);
    case TUTTI_ARGUMENT_SAMPLER: {
        cl_sampler value = argument->sampler->real[device->index];
        return set_other(call, device, index, sizeof(value), &value);
    }
    case TUTTI_ARGUMENT_VALUE:
        break;
    }
    return tutti_given_set(call->kernel, device, index, argument->size, argument->value,
                           TUTTI_GIVEN_VALUE);
}

/*
 * Tells the driver what the kernel reaches by pointers in its data. One whose devices work in the
 * host's memory need not know, and has not allocated it.
 */
static cl_int set_reached(const struct tutti_invocation *call,
                          const struct tutti_real_device *device) {
    const struct tutti_arguments *arguments = call->arguments;
    unsigned declared = call->kernel->argument_count, count = 0;
    bool *reaches = &call->kernel->function->reaches[device->index];
    if (device->at_home || (arguments->count == declared && !*reaches))
        return CL_SUCCESS;
    void **pointers = malloc((arguments->count - declared + 1) * sizeof(*pointers));
    if (!pointers)
        return CL_OUT_OF_HOST_MEMORY;
    for (unsigned i = declared; i < arguments->count; i++)
        if (arguments->argument[i].mem)
            pointers[count++] = arguments->argument[i].mem->host_ptr;
    cl_int error = device->dispatch->clSetKernelExecInfo(
        call->kernel->function->real[device->index], CL_KERNEL_EXEC_INFO_SVM_PTRS,
        count * sizeof(*pointers), count ? pointers : NULL);
    free(pointers);
    *reaches = count > 0;
    return count ? error : CL_SUCCESS; /* a driver may not know how to forget */
}

bool tutti_invocation_writes(const struct tutti_invocation *call, cl_mem mem) {
    bool writes = false;
    for (unsigned i = 0; i < call->arguments->count && !writes; i++)
        writes = call->arguments->argument[i].mem == mem && tutti_invocation_may_write(call, i);
    return writes;
}

static bool is_stale(cl_mem mem) {
    const struct tutti_view *view = tutti_window_storage_of(mem)->view;
    return tutti_coherence_is_stale(view, 0, view->size);
}

bool tutti_invocation_settle_part(const struct tutti_invocation *call, cl_mem mem, unsigned able) {
    if (is_stale(mem) || !tutti_window_note_kernel(mem, able, false) || is_stale(mem))
        return false;
    struct tutti_view *view = tutti_window_storage_of(mem)->view;
    return !tutti_invocation_writes(call, mem) || tutti_coherence_write(view, 0, view->size, true);
}

bool tutti_invocation_take_plain(struct tutti_invocation *call, cl_context context,
                                 unsigned *able) {
    struct tutti_arguments *arguments = call->kernel->arguments;
    unsigned count = arguments->count;
    if (count > TUTTI_PLAIN_ARGUMENTS || count != call->kernel->argument_count)
        return false;
    call->arguments = arguments;
    call->count = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct tutti_argument *argument = &arguments->argument[i];
        cl_mem mem = argument->mem;
        if (!argument->set || argument->pointer || argument->sampler)
            return false;
        if (!mem)
            continue;
        if (!TUTTI_IS_MEM(mem) || mem->context != context || mem->type != CL_MEM_OBJECT_BUFFER ||
            tutti_invocation_has_address(mem))
            return false;
        *able &= mem->devices;
        tutti_invocation_add_object(call, i, mem);
    }
    return true;
}

struct tutti_pocl_launch tutti_range_for_pocl(const struct tutti_range *range, const char *kernel) {
    struct tutti_pocl_launch launch = {.kernel = kernel};
    for (cl_uint d = 0; d < 3; d++) {
        bool used = d < range->dimensions;
        launch.global[d] = used ? range->global[d] : 1;
        launch.local[d] = !range->local_given ? 0 : used ? range->local[d] : 1;
        launch.offset |= used && range->offset[d] != 0;
    }
    return launch;
}

cl_int tutti_invocation_enqueue(const struct tutti_invocation *call,
                                struct tutti_real_device *device, cl_command_queue queue,
                                const struct tutti_storage *const *storage, bool alone,
                                cl_uint count, const cl_event *waited, cl_event *event,
                                struct tutti_invocation_times *times) {
    const struct tutti_range *range = call->range;
    cl_int error = set_reached(call, device);
    for (unsigned i = 0; i < call->kernel->argument_count && error == CL_SUCCESS; i++)
        error = set_argument(call, device, i, storage);
    if (error != CL_SUCCESS)
        return error;
    alone = alone || tutti_pocl_is_safe(device);
    if (!alone) {
        struct tutti_pocl_launch launch = tutti_range_for_pocl(range, call->kernel->name);
        tutti_pocl_enter(device, &launch);
    }
    if (times)
        times->start = tutti_runtime_now();
    tutti_driver_take(device);
    error = device->dispatch->clEnqueueNDRangeKernel(
        queue, call->kernel->function->real[device->index], range->dimensions, range->offset,
        range->global, range->local_given ? range->local : NULL, count, count > 0 ? waited : NULL,
        event);
    tutti_driver_give(device);
    if (times)
        times->end = tutti_runtime_now();
    if (!alone)
        tutti_pocl_leave(device);
    return error;
}
