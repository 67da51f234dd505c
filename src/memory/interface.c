/* SPDX-License-Identifier: MIT */
/*
 * StarPU's data interface for a view: bytes in home memory on the main node, a cl_mem of StarPU's
 * context on a device. StarPU aborts the process when an OpenCL call of its own fails; so every
 * call is made here, and a failure is kept for the command that meets it.
 */
#include "memory/view.h"

#include "log.h"
#include "memory/block.h"
#include "memory/traffic.h"
#include "sched/runtime.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * When a driver refuses memory that StarPU believes is there, StarPU frees what it can and asks
 * again, for ever. After as many refusals in a row the command is failed instead.
 */
#define REFUSALS 16
static atomic_uint refusals[STARPU_MAXNODES];

static void register_view(starpu_data_handle_t handle, unsigned home_node, void *data_interface) {
    const struct tutti_interface *given = data_interface;
    for (unsigned node = 0; node < STARPU_MAXNODES; node++) {
        struct tutti_interface *interface = starpu_data_get_interface_on_node(handle, node);
        *interface = *given;
        if (node != home_node)
            interface->view = NULL;
    }
}

static starpu_ssize_t allocate(void *data_interface, unsigned node) {
    struct tutti_interface *interface = data_interface;
    struct tutti_real_device *device = tutti_runtime_device_of_node(node);
    if (!device)
        return -ENOMEM;
    interface->mem = NULL;
    interface->bytes = NULL;
    interface->failed = false;
    if (starpu_memory_allocate(node, interface->size, 0) != 0)
        return -ENOMEM;
    cl_int error = CL_OUT_OF_HOST_MEMORY;
    cl_mem_flags flags = CL_MEM_READ_WRITE;
    if (device->place.shares_host) {
        interface->bytes = tutti_block_allocate(interface->size);
        flags |= CL_MEM_USE_HOST_PTR;
    }
    if (interface->bytes || !device->place.shares_host)
        interface->mem = device->dispatch->clCreateBuffer(
            device->place.context, flags, interface->size, interface->bytes, &error);
    if (error == CL_SUCCESS) {
        atomic_store(&refusals[node], 0);
        return (starpu_ssize_t)interface->size;
    }
    interface->mem = NULL;
    tutti_block_free(interface->bytes, interface->size);
    interface->bytes = NULL;
    if (atomic_fetch_add(&refusals[node], 1) + 1 < REFUSALS) {
        starpu_memory_deallocate(node, interface->size);
        return -ENOMEM;
    }
    atomic_store(&refusals[node], 0);
    tutti_log(ERROR, "%s: no memory for %zu bytes (error %d)", device->name, interface->size,
              error);
    interface->failed = true;
    return (starpu_ssize_t)interface->size;
}

static void deallocate(void *data_interface, unsigned node) {
    struct tutti_interface *interface = data_interface;
    struct tutti_real_device *device = tutti_runtime_device_of_node(node);
    if (device && interface->mem)
        device->dispatch->clReleaseMemObject(interface->mem);
    tutti_block_free(interface->bytes, interface->size);
    interface->mem = NULL;
    interface->bytes = NULL;
    starpu_memory_deallocate(node, interface->size);
}

/*
 * `real` was enqueued on `queue`. Returns what StarPU wants: 0, done; -EAGAIN, it polls `event`.
 * StarPU aborts when that event fails, so the copy is waited for here where a driver could fail it
 * without having lost the whole device; a user event in between, completed by a callback, was
 * measured on NVIDIA's driver to add 10 ms to some copies.
 */
static int hand_to_starpu(struct tutti_real_device *device, cl_command_queue queue, cl_event real,
                          cl_event *event) {
    const cl_icd_dispatch *driver = device->dispatch;
    if (event && device->type & CL_DEVICE_TYPE_GPU) {
        driver->clFlush(queue);
        *event = real;
        return -EAGAIN;
    }
    cl_int error = driver->clWaitForEvents(1, &real);
    if (error != CL_SUCCESS)
        tutti_log(ERROR, "%s: a transfer failed with %d", device->name, error);
    driver->clReleaseEvent(real);
    return 0;
}

static int upload(void *source, void *target, unsigned target_node, cl_event *event) {
    struct tutti_interface *from = source, *to = target;
    struct tutti_real_device *device = tutti_runtime_device_of_node(target_node);
    void *home = tutti_view_home(from->view);
    if (!device || !to->mem || !home)
        return 0;
    tutti_traffic_count(device, TUTTI_UPLOAD, from->size);
    if (to->bytes) {
        memcpy(to->bytes, home, from->size);
        return 0;
    }
    cl_event real;
    cl_int error = device->dispatch->clEnqueueWriteBuffer(device->place.uploads, to->mem, CL_FALSE,
                                                          0, from->size, home, 0, NULL, &real);
    if (error != CL_SUCCESS) {
        tutti_log(ERROR, "%s: clEnqueueWriteBuffer failed with %d", device->name, error);
        return 0;
    }
    return hand_to_starpu(device, device->place.uploads, real, event);
}

/* Bytes [begin, end) of a device's copy, now. */
static void fetch(struct tutti_real_device *device, const struct tutti_interface *from, char *home,
                  size_t begin, size_t end) {
    if (from->bytes)
        memcpy(home + begin, from->bytes + begin, end - begin);
    else
        device->dispatch->clEnqueueReadBuffer(device->place.downloads, from->mem, CL_TRUE, begin,
                                              end - begin, home + begin, 0, NULL, NULL);
}

/* Reads all but what the program has mapped for writing: those bytes are the program's. */
static void fetch_around_maps(struct tutti_real_device *device, const struct tutti_interface *from,
                              struct tutti_view *view, char *home) {
    pthread_mutex_lock(&view->lock);
    for (size_t at = 0; at < view->size;) {
        size_t end = view->size, next = view->size;
        for (struct tutti_mapped *m = view->mapped; m; m = m->next) {
            if (m->begin <= at && at < m->end) {
                end = at;
                next = m->end;
                break;
            }
            if (m->begin > at && m->begin < end) {
                end = m->begin;
                next = m->end;
            }
        }
        if (end > at)
            fetch(device, from, home, at, end);
        at = next;
    }
    pthread_mutex_unlock(&view->lock);
}

static int download(void *source, unsigned source_node, void *target, cl_event *event) {
    struct tutti_interface *from = source, *to = target;
    struct tutti_real_device *device = tutti_runtime_device_of_node(source_node);
    char *home = tutti_view_home(to->view);
    if (!device || !from->mem || !home)
        return 0;
    tutti_traffic_count(device, TUTTI_DOWNLOAD, from->size);
    pthread_mutex_lock(&to->view->lock);
    bool mapped = to->view->mapped != NULL;
    pthread_mutex_unlock(&to->view->lock);
    if (mapped || from->bytes) {
        fetch_around_maps(device, from, to->view, home);
        return 0;
    }
    cl_event real;
    cl_int error = device->dispatch->clEnqueueReadBuffer(
        device->place.downloads, from->mem, CL_FALSE, 0, from->size, home, 0, NULL, &real);
    if (error != CL_SUCCESS) {
        tutti_log(ERROR, "%s: clEnqueueReadBuffer failed with %d", device->name, error);
        return 0;
    }
    return hand_to_starpu(device, device->place.downloads, real, event);
}

static int ram_to_opencl_async(void *source, unsigned source_node, void *target,
                               unsigned target_node, cl_event *event) {
    (void)source_node;
    return upload(source, target, target_node, event);
}

static int opencl_to_ram_async(void *source, unsigned source_node, void *target,
                               unsigned target_node, cl_event *event) {
    (void)target_node;
    return download(source, source_node, target, event);
}

static int ram_to_opencl(void *source, unsigned source_node, void *target, unsigned target_node) {
    return ram_to_opencl_async(source, source_node, target, target_node, NULL);
}

static int opencl_to_ram(void *source, unsigned source_node, void *target, unsigned target_node) {
    return opencl_to_ram_async(source, source_node, target, target_node, NULL);
}

static size_t get_size(starpu_data_handle_t handle) {
    struct tutti_interface *interface = starpu_data_get_interface_on_node(handle, STARPU_MAIN_RAM);
    return interface->size;
}

static uint32_t footprint(starpu_data_handle_t handle) {
    size_t size = get_size(handle);
    return starpu_hash_crc32c_be_n(&size, sizeof(size), 0);
}

static int compare(void *a, void *b) {
    struct tutti_interface *x = a, *y = b;
    return x->size == y->size && !x->failed && !y->failed;
}

static void display(starpu_data_handle_t handle, FILE *file) {
    fprintf(file, "%zu\t", get_size(handle));
}

static const struct starpu_data_copy_methods copy_methods = {
    .ram_to_opencl = ram_to_opencl,
    .opencl_to_ram = opencl_to_ram,
    .ram_to_opencl_async = ram_to_opencl_async,
    .opencl_to_ram_async = opencl_to_ram_async,
};

struct starpu_data_interface_ops tutti_interface_ops = {
    .register_data_handle = register_view,
    .allocate_data_on_node = allocate,
    .free_data_on_node = deallocate,
    .copy_methods = &copy_methods,
    .get_size = get_size,
    .footprint = footprint,
    .compare = compare,
    .display = display,
    .interfaceid = STARPU_UNKNOWN_INTERFACE_ID,
    .interface_size = sizeof(struct tutti_interface),
    .name = "tutti_view",
};

static void number_interface(void) {
    tutti_interface_ops.interfaceid =
        (enum starpu_data_interface_id)starpu_data_interface_get_next_id();
}

void tutti_interface_register(struct tutti_view *view) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, number_interface);
    struct tutti_interface interface = {
        .id = (int)tutti_interface_ops.interfaceid, .view = view, .size = view->size};
    starpu_data_register(&view->handle, STARPU_MAIN_RAM, &interface, &tutti_interface_ops);
}
