/* SPDX-License-Identifier: MIT */
/*
 * StarPU's data interface for a view: bytes in home memory on the main node, a cl_mem of StarPU's
 * context on a device, a buffer or an image. StarPU aborts the process when an OpenCL call of its
 * own fails; so every call is made here, and a failure is kept for the command that meets it.
 */
#include "memory/view.h"

#include "log.h"
#include "memory/device_copy.h"
#include "memory/image.h"
#include "memory/room.h"
#include "memory/transfer_path.h"
#include "sched/runtime.h"
#include "virtual_device/driver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* All of a view, and where it lies in packed memory and in home memory. */
static struct tutti_region whole(const struct tutti_view *view, struct tutti_place *packed,
                                 struct tutti_place *at_home) {
    struct tutti_place start = tutti_place_linear(0, view->size);
    *packed = tutti_view_packed(view, &start);
    *at_home = tutti_view_at_home(view, &start);
    return tutti_view_whole(view);
}

static void register_view(starpu_data_handle_t handle, unsigned home_node, void *data_interface) {
    (void)home_node;
    for (unsigned node = 0; node < STARPU_MAXNODES; node++)
        *(struct tutti_interface *)starpu_data_get_interface_on_node(handle, node) =
            *(const struct tutti_interface *)data_interface;
}

/* Home memory that a device which shares host memory can work in: without padding. */
static void *packed_home(struct tutti_view *view) {
    struct tutti_place packed, at_home;
    whole(view, &packed, &at_home);
    return packed.row_pitch == at_home.row_pitch && packed.slice_pitch == at_home.slice_pitch
               ? tutti_view_home(view)
               : NULL;
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
    cl_int error =
        tutti_storage_create(device, &view->shape, view->size,
                             device->at_home ? packed_home(view) : NULL, &interface->storage);
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
    if (!view->leaving && interface->storage.mem && !interface->storage.at_home)
        tutti_history_evict(view->history, device);
    tutti_storage_release(device, &view->shape, view->size, &interface->storage);
    tutti_view_hand_over(view);
    tutti_room_give_back(device, view->size);
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

static int upload(struct tutti_real_device *device, void *source, void *target, cl_event *event) {
    struct tutti_interface *from = source, *to = target;
    void *home = tutti_view_home(from->view);
    const struct tutti_storage *storage = &to->storage;
    if (!storage->mem || !home || storage->at_home)
        return 0;
    tutti_history_move(from->view->history, device, TUTTI_UPLOAD, from->view->size);
    struct tutti_place packed, at_home;
    struct tutti_region region = whole(from->view, &packed, &at_home);
    if (storage->bytes) {
        tutti_region_copy(storage->bytes, &packed, home, &at_home, &region);
        return 0;
    }
    cl_event real;
    cl_int error =
        tutti_shape_is_boxed(&to->view->shape)
            ? tutti_image_write(device, &to->view->shape, storage->mem, &packed, home, &at_home,
                                &region, &real)
            : device->dispatch->clEnqueueWriteBuffer(device->place.uploads, storage->mem, CL_FALSE,
                                                     0, from->view->size, home, 0, NULL, &real);
    if (error != CL_SUCCESS) {
        tutti_log(ERROR, "%s: an upload failed with %d", device->name, error);
        return 0;
    }
    return hand_to_starpu(device, device->place.uploads, real, event);
}

/*
 * Reads all but what the program has mapped for writing: those bytes are the program's. Packed
 * bytes come from `source`, those of a buffer from the device.
 */
static void fetch_around_maps(const struct tutti_real_device *device,
                              const struct tutti_storage *from, const char *source,
                              struct tutti_view *view, char *home) {
    struct tutti_place packed, at_home;
    struct tutti_region region = whole(view, &packed, &at_home);
    pthread_mutex_lock(&view->lock);
    for (size_t z = 0; z < region.size[2]; z++)
        for (size_t y = 0; y < region.size[1]; y++) {
            size_t there = z * packed.slice_pitch + y * packed.row_pitch;
            size_t here = z * at_home.slice_pitch + y * at_home.row_pitch;
            size_t begin = 0, end = 0, width = region.size[0];
            while (end < width) {
                end = tutti_view_next_unmapped(view, y, z, end, width, &begin);
                if (end > begin && source)
                    memcpy(home + here + begin, source + there + begin, end - begin);
                else if (end > begin)
                    device->dispatch->clEnqueueReadBuffer(device->place.downloads, from->mem,
                                                          CL_TRUE, there + begin, end - begin,
                                                          home + here + begin, 0, NULL, NULL);
            }
        }
    pthread_mutex_unlock(&view->lock);
}

/* The same for a real image, which is read as a whole first. */
static void fetch_image_around_maps(const struct tutti_real_device *device,
                                    const struct tutti_storage *from, struct tutti_view *view,
                                    char *home) {
    struct tutti_place packed, at_home;
    struct tutti_region region = whole(view, &packed, &at_home);
    char *bounce = malloc(view->size);
    cl_int error = bounce ? tutti_image_read(device, &view->shape, from->mem, &packed, bounce,
                                             &packed, &region, NULL)
                          : CL_OUT_OF_HOST_MEMORY;
    if (error == CL_SUCCESS)
        fetch_around_maps(device, from, bounce, view, home);
    else
        tutti_log(ERROR, "%s: a download failed with %d", device->name, error);
    free(bounce);
}

static int download(struct tutti_real_device *device, void *source, void *target, cl_event *event) {
    struct tutti_interface *from = source, *to = target;
    char *home = tutti_view_home(to->view);
    const struct tutti_storage *storage = &from->storage;
    if (!storage->mem || !home || storage->at_home)
        return 0;
    tutti_history_move(to->view->history, device, TUTTI_DOWNLOAD, to->view->size);
    pthread_mutex_lock(&to->view->lock);
    bool mapped = to->view->mapped != NULL;
    pthread_mutex_unlock(&to->view->lock);
    if (storage->bytes || (mapped && !tutti_shape_is_boxed(&to->view->shape))) {
        fetch_around_maps(device, storage, storage->bytes, to->view, home);
        return 0;
    }
    if (mapped) {
        fetch_image_around_maps(device, storage, to->view, home);
        return 0;
    }
    struct tutti_place packed, at_home;
    struct tutti_region region = whole(to->view, &packed, &at_home);
    cl_event real;
    cl_int error =
        tutti_shape_is_boxed(&to->view->shape)
            ? tutti_image_read(device, &to->view->shape, storage->mem, &packed, home, &at_home,
                               &region, &real)
            : device->dispatch->clEnqueueReadBuffer(device->place.downloads, storage->mem, CL_FALSE,
                                                    0, to->view->size, home, 0, NULL, &real);
    if (error != CL_SUCCESS) {
        tutti_log(ERROR, "%s: a download failed with %d", device->name, error);
        return 0;
    }
    return hand_to_starpu(device, device->place.downloads, real, event);
}

/*
 * The program's memory that is not page-locked goes in chunks where that is faster. The worker
 * waits for it, as it does in drivers' commands on such memory. Not with the driver's lock.
 */
static bool staged(struct tutti_real_device *device, const struct tutti_storage *storage,
                   struct tutti_view *view, bool to_device) {
    struct tutti_copy copy = {.device = device, .mem = storage->mem};
    struct tutti_place packed, at_home;
    struct tutti_region region = whole(view, &packed, &at_home);
    pthread_mutex_lock(&view->lock);
    bool pageable = view->home_is_users && !view->pinned && !view->mapped;
    pthread_mutex_unlock(&view->lock);
    if (!pageable || !storage->mem || storage->bytes ||
        !tutti_transfer_path_threads(device, view->size))
        return false;
    cl_int error = to_device ? tutti_copy_write(view, &copy, &packed, view->home, &at_home, &region)
                             : tutti_copy_read(view, &copy, &packed, view->home, &at_home, &region);
    if (error != CL_SUCCESS)
        tutti_log(ERROR, "%s: a transfer failed with %d", device->name, error);
    return true;
}

static int ram_to_opencl_async(void *source, unsigned source_node, void *target,
                               unsigned target_node, cl_event *event) {
    (void)source_node;
    struct tutti_real_device *device = tutti_runtime_device_of_node(target_node);
    if (!device)
        return 0;
    struct tutti_view *view = ((struct tutti_interface *)source)->view;
    tutti_view_take_over(view);
    tutti_view_lock_home(view);
    int result = 0;
    if (!staged(device, &((struct tutti_interface *)target)->storage, view, true)) {
        tutti_driver_lock(device);
        result = upload(device, source, target, event);
        tutti_driver_unlock(device);
    }
    tutti_view_hand_over(view);
    return result;
}

static int opencl_to_ram_async(void *source, unsigned source_node, void *target,
                               unsigned target_node, cl_event *event) {
    (void)target_node;
    struct tutti_real_device *device = tutti_runtime_device_of_node(source_node);
    if (!device)
        return 0;
    struct tutti_view *view = ((struct tutti_interface *)target)->view;
    tutti_view_take_over(view);
    tutti_view_lock_home(view);
    int result = 0;
    if (!staged(device, &((struct tutti_interface *)source)->storage, view, false)) {
        tutti_driver_lock(device);
        result = download(device, source, target, event);
        tutti_driver_unlock(device);
    }
    tutti_view_hand_over(view);
    return result;
}

static int ram_to_opencl(void *source, unsigned source_node, void *target, unsigned target_node) {
    return ram_to_opencl_async(source, source_node, target, target_node, NULL);
}

static int opencl_to_ram(void *source, unsigned source_node, void *target, unsigned target_node) {
    return opencl_to_ram_async(source, source_node, target, target_node, NULL);
}

static size_t get_size(starpu_data_handle_t handle) {
    struct tutti_interface *interface = starpu_data_get_interface_on_node(handle, STARPU_MAIN_RAM);
    return interface->view->size;
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

void tutti_interface_register(struct tutti_view *view) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, number_interface);
    struct tutti_interface interface = {
        .id = (int)tutti_interface_ops.interfaceid,
        .view = view,
    };
    starpu_data_register(&view->handle, STARPU_MAIN_RAM, &interface, &tutti_interface_ops);
}
