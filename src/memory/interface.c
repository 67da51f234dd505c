/* SPDX-License-Identifier: MIT */
/*
 * StarPU's data interface for a view: bytes in home memory on the main node, a cl_mem of StarPU's
 * context on a device, a buffer or an image. StarPU aborts the process when an OpenCL call of its
 * own fails; so every call is made here, and a failure is kept for the command that meets it.
 */
#include "memory/view.h"

#include "log.h"
#include "memory/relay.h"
#include "memory/room.h"
#include "memory/stay.h"
#include "sched/runtime.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#if STARPU_MAJOR_VERSION > 1 || STARPU_MINOR_VERSION >= 4
typedef int home_node_number; /* negative: there is none */
#else
typedef unsigned home_node_number;
#endif

static void register_view(starpu_data_handle_t handle, home_node_number home_node,
                          void *data_interface) {
    (void)home_node;
    for (unsigned node = 0; node < STARPU_MAXNODES; node++)
        memcpy(starpu_data_get_interface_on_node(handle, node), data_interface,
               sizeof(struct tutti_interface));
}

static starpu_ssize_t allocate(void *data_interface, unsigned node) {
    struct tutti_interface *interface = data_interface;
    struct tutti_view *view = interface->view;
    struct tutti_real_device *device = tutti_runtime_device_of_node(node);
    if (!device)
        return -ENOMEM;
    tutti_view_take_over(view);
    memset(&interface->storage, 0, sizeof(interface->storage));
    if (!tutti_room_take(device, view->size))
        return -ENOMEM;
    cl_int error = tutti_stay_hand_out(view, device, &interface->storage)
                       ? CL_SUCCESS
                       : tutti_view_create_storage(view, device, &interface->storage);
    if (error == CL_SUCCESS) {
        tutti_room_filled(device);
        tutti_view_hand_over(view);
        return (starpu_ssize_t)view->size;
    }
    if (!tutti_room_refused(device)) {
        starpu_memory_deallocate(node, view->size); /* it was never there */
        return -ENOMEM;
    }
    tutti_log(ERROR, "%s: no memory for %zu bytes (error %d)", device->name, view->size, error);
    tutti_view_hand_over(view);
    return (starpu_ssize_t)view->size;
}

static void deallocate(void *data_interface, unsigned node) {
    struct tutti_interface *interface = data_interface;
    struct tutti_view *view = interface->view;
    struct tutti_real_device *device = tutti_runtime_device_of_node(node);
    if (!device)
        return;
    tutti_view_take_over(view);
    if (!view->leaving)
        tutti_relay_leave(view, device);
    if (!view->leaving && interface->storage.mem && !interface->storage.at_home)
        tutti_history_evict(view->history, device);
    tutti_view_release_storage(view, device, &interface->storage);
    tutti_view_hand_over(view);
    tutti_room_give_back(device, view->size);
}

static int ram_to_opencl_async(void *source, unsigned source_node, void *target,
                               unsigned target_node, cl_event *event) {
    (void)source_node;
    struct tutti_real_device *device = tutti_runtime_device_of_node(target_node);
    struct tutti_view *view = ((struct tutti_interface *)source)->view;
    if (atomic_exchange(&view->ahead, false)) /* it was brought before StarPU had it */
        return 0;
    return device
               ? tutti_relay_up(view, device, &((struct tutti_interface *)target)->storage, event)
               : 0;
}

static int opencl_to_ram_async(void *source, unsigned source_node, void *target,
                               unsigned target_node, cl_event *event) {
    (void)target_node;
    struct tutti_real_device *device = tutti_runtime_device_of_node(source_node);
    struct tutti_view *view = ((struct tutti_interface *)target)->view;
    return device
               ? tutti_relay_down(view, device, &((struct tutti_interface *)source)->storage, event)
               : 0;
}

static int ram_to_opencl(void *source, unsigned source_node, void *target, unsigned target_node) {
    return ram_to_opencl_async(source, source_node, target, target_node, NULL);
}

static int opencl_to_ram(void *source, unsigned source_node, void *target, unsigned target_node) {
    return opencl_to_ram_async(source, source_node, target, target_node, NULL);
}

static size_t get_size(starpu_data_handle_t handle) {
    struct tutti_interface *interface = starpu_data_get_interface_on_node(handle, STARPU_MAIN_RAM);
    return atomic_load_explicit(&interface->size, memory_order_relaxed);
}

static uint32_t footprint(starpu_data_handle_t handle) {
    size_t size = get_size(handle);
    return starpu_hash_crc32c_be_n(&size, sizeof(size), 0);
}

/*
 * StarPU asks this to give one view's memory on a full device to another view, and would copy the
 * interface with it: whose view it is, and maybe home memory. tutti_storage_release keeps memory
 * for reuse as well.
 */
static int compare(void *a, void *b) {
    (void)a;
    (void)b;
    return 0;
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
    .dontcache = 1, /* tutti_storage_release keeps some; StarPU's cache has no bound */
    .name = "tutti_view",
};

static void number_interface(void) {
    tutti_interface_ops.interfaceid =
        (enum starpu_data_interface_id)starpu_data_interface_get_next_id();
}

/*
 * Handles of views at home that went, for those that come: to register one and to unregister it
 * costs 2 µs, and a wait for StarPU to be done with it. There is nothing in one but the view and
 * its size, as StarPU has no copy elsewhere; it orders the new view's users behind the old one's,
 * which are over.
 */
#define KEPT 256
static struct {
    pthread_mutex_t lock; /* guards what follows */
    starpu_data_handle_t handle[KEPT];
    unsigned first, count; /* the oldest, which StarPU is done with by now */
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static starpu_data_handle_t take_kept(void) {
    starpu_data_handle_t handle = NULL;
    pthread_mutex_lock(&kept.lock);
    if (kept.count > 0) {
        handle = kept.handle[kept.first];
        kept.first = (kept.first + 1) % KEPT;
        kept.count--;
    }
    pthread_mutex_unlock(&kept.lock);
    return handle;
}

static bool keep(starpu_data_handle_t handle) {
    pthread_mutex_lock(&kept.lock);
    bool room = kept.count < KEPT;
    if (room)
        kept.handle[(kept.first + kept.count++) % KEPT] = handle;
    pthread_mutex_unlock(&kept.lock);
    return room;
}

bool tutti_interface_is_missing(starpu_data_handle_t handle,
                                const struct tutti_real_device *device) {
    const struct tutti_interface *interface =
        starpu_data_get_interface_on_node(handle, device->place.node);
    return tutti_storage_is_missing(&interface->storage);
}

bool tutti_interface_is_elsewhere(starpu_data_handle_t handle) {
    const struct tutti_device_list *list = tutti_devices();
    int allocated = 0;
    for (unsigned d = 0; d < list->count && !allocated; d++)
        if (list->device[d]->place.devid >= 0)
            starpu_data_query_status(handle, (int)list->device[d]->place.node, &allocated, NULL,
                                     NULL);
    return allocated;
}

/* With the view's lock held. */
static starpu_data_handle_t make_handle(struct tutti_view *view) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, number_interface);
    starpu_data_handle_t handle = view->at_home ? take_kept() : NULL;
    for (unsigned node = 0; handle && node < STARPU_MAXNODES; node++) {
        struct tutti_interface *there = starpu_data_get_interface_on_node(handle, node);
        there->view = view;
        atomic_store_explicit(&there->size, view->size, memory_order_relaxed);
    }
    if (handle)
        return handle;
    struct tutti_interface interface = {
        .id = (int)tutti_interface_ops.interfaceid,
        .view = view,
    };
    atomic_init(&interface.size, view->size);
    starpu_data_register(&handle, STARPU_MAIN_RAM, &interface, &tutti_interface_ops);
    return handle;
}

starpu_data_handle_t tutti_interface_register(struct tutti_view *view) {
    pthread_mutex_lock(&view->lock);
    starpu_data_handle_t handle = atomic_load_explicit(&view->handle, memory_order_relaxed);
    if (!handle) {
        handle = make_handle(view);
        atomic_store_explicit(&view->handle, handle, memory_order_release);
    }
    pthread_mutex_unlock(&view->lock);
    return handle;
}

void tutti_interface_unregister(struct tutti_view *view, bool wait) {
    starpu_data_handle_t handle = atomic_load_explicit(&view->handle, memory_order_acquire);
    if (!handle)
        return;
    if (wait)
        starpu_data_unregister_no_coherency(handle);
    else if (!keep(handle))
        starpu_data_unregister_submit(handle); /* once StarPU is done with it */
}
