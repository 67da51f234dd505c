/* SPDX-License-Identifier: MIT */
#include "memory/hop.h"

#include "log.h"
#include "memory/carry.h"
#include "memory/device_copy.h"
#include "memory/image.h"
#include "memory/pinned.h"
#include "memory/transfer_path.h"
#include "sched/link.h"
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

/*
 * `real` was enqueued for a transfer. Returns what StarPU wants: 0, done; -EAGAIN, it polls
 * `event`. StarPU aborts when that event fails, so the copy is waited for here where a driver could
 * fail it without having lost the whole device; a user event in between, completed by a callback,
 * was measured on NVIDIA's driver to add 10 ms to some copies.
 */
static int hand_to_starpu(struct tutti_real_device *device, enum tutti_direction direction,
                          size_t bytes, cl_event real, cl_event *event) {
    const cl_icd_dispatch *driver = device->dispatch;
    cl_command_queue queue =
        direction == TUTTI_UPLOAD ? device->place.uploads : device->place.downloads;
    driver->clFlush(queue);
    if (event && device->type & CL_DEVICE_TYPE_GPU) {
        tutti_link_begin_unseen(device, direction, bytes);
        *event = real;
        return -EAGAIN;
    }
    tutti_link_begin(device, direction, bytes);
    cl_int error = tutti_driver_wait(device, real);
    tutti_link_end(device, direction, bytes);
    if (error != CL_SUCCESS)
        tutti_log(ERROR, "%s: a transfer failed with %d", device->name, error);
    return 0;
}

static int upload(struct tutti_view *view, struct tutti_real_device *device,
                  const struct tutti_storage *storage, cl_event *event) {
    void *home = tutti_view_home(view);
    if (!storage->mem || !home || storage->at_home)
        return 0;
    tutti_history_move(view->history, device, TUTTI_UPLOAD, view->size);
    struct tutti_place packed, at_home;
    struct tutti_region region = whole(view, &packed, &at_home);
    if (storage->bytes) {
        tutti_link_begin(device, TUTTI_UPLOAD, view->size);
        tutti_region_copy(storage->bytes, &packed, home, &at_home, &region);
        tutti_link_end(device, TUTTI_UPLOAD, view->size);
        return 0;
    }
    cl_event real;
    cl_int error =
        tutti_shape_is_boxed(&view->shape)
            ? tutti_image_write(device, &view->shape, storage->mem, &packed, home, &at_home,
                                &region, &real)
            : device->dispatch->clEnqueueWriteBuffer(device->place.uploads, storage->mem, CL_FALSE,
                                                     0, view->size, home, 0, NULL, &real);
    if (error != CL_SUCCESS) {
        tutti_log(ERROR, "%s: an upload failed with %d", device->name, error);
        return 0;
    }
    return hand_to_starpu(device, TUTTI_UPLOAD, view->size, real, event);
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
                end = tutti_view_next_unmapped(view, false, y, z, end, width, &begin);
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

static int download(struct tutti_view *view, struct tutti_real_device *device,
                    const struct tutti_storage *storage, cl_event *event) {
    char *home = tutti_view_home(view);
    if (!storage->mem || !home || storage->at_home)
        return 0;
    tutti_history_move(view->history, device, TUTTI_DOWNLOAD, view->size);
    pthread_mutex_lock(&view->lock);
    bool mapped = view->mapped != NULL;
    pthread_mutex_unlock(&view->lock);
    if (storage->bytes || (mapped && !tutti_shape_is_boxed(&view->shape))) {
        tutti_link_begin(device, TUTTI_DOWNLOAD, view->size);
        fetch_around_maps(device, storage, storage->bytes, view, home);
        tutti_link_end(device, TUTTI_DOWNLOAD, view->size);
        return 0;
    }
    if (mapped) {
        fetch_image_around_maps(device, storage, view, home);
        return 0;
    }
    struct tutti_place packed, at_home;
    struct tutti_region region = whole(view, &packed, &at_home);
    cl_event real;
    cl_int error =
        tutti_shape_is_boxed(&view->shape)
            ? tutti_image_read(device, &view->shape, storage->mem, &packed, home, &at_home, &region,
                               &real)
            : device->dispatch->clEnqueueReadBuffer(device->place.downloads, storage->mem, CL_FALSE,
                                                    0, view->size, home, 0, NULL, &real);
    if (error != CL_SUCCESS) {
        tutti_log(ERROR, "%s: a download failed with %d", device->name, error);
        return 0;
    }
    return hand_to_starpu(device, TUTTI_DOWNLOAD, view->size, real, event);
}

/* Home memory that is not page-locked goes in chunks where that is faster. */
static bool is_staged(struct tutti_real_device *device, const struct tutti_storage *storage,
                      struct tutti_view *view) {
    pthread_mutex_lock(&view->lock);
    bool pageable = view->home && !view->pinned && !view->mapped;
    pthread_mutex_unlock(&view->lock);
    return pageable && storage->mem && !storage->bytes &&
           tutti_transfer_path_threads(device, view->size) &&
           !tutti_pinned_covers(view->home, view->size);
}

/* One at a time each way, as all threads take part and others would lock memory of their own. */
static pthread_mutex_t staging[TUTTI_MAX_DEVICES][TUTTI_DIRECTIONS] = {
    [0 ... TUTTI_MAX_DEVICES - 1] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER}};

/* Not with the driver's lock. */
static void stage(struct tutti_real_device *device, const struct tutti_storage *storage,
                  struct tutti_view *view, bool to_device) {
    struct tutti_copy copy = {.device = device, .mem = storage->mem};
    struct tutti_place packed, at_home;
    struct tutti_region region = whole(view, &packed, &at_home);
    pthread_mutex_t *own = &staging[device->index][to_device ? TUTTI_UPLOAD : TUTTI_DOWNLOAD];
    pthread_mutex_lock(own);
    cl_int error = to_device ? tutti_copy_write(view, &copy, &packed, view->home, &at_home, &region)
                             : tutti_copy_read(view, &copy, &packed, view->home, &at_home, &region);
    pthread_mutex_unlock(own);
    if (error != CL_SUCCESS)
        tutti_log(ERROR, "%s: a transfer failed with %d", device->name, error);
}

struct staged {
    struct tutti_carry carry;
    struct tutti_real_device *device;
    const struct tutti_storage *storage;
    struct tutti_view *view;
    bool to_device;
};

static void run_staged(struct tutti_carry *carry) {
    const struct staged *job = (const struct staged *)(const void *)carry;
    tutti_view_take_over(job->view);
    stage(job->device, job->storage, job->view, job->to_device);
    tutti_view_hand_over(job->view);
}

/* In a thread of its own: a worker that copied itself would start no kernel meanwhile. */
static bool start_staged(struct tutti_real_device *device, const struct tutti_storage *storage,
                         struct tutti_view *view, bool to_device, cl_event *event) {
    struct staged *job = event && tutti_carry_possible(device) ? malloc(sizeof(*job)) : NULL;
    if (!job)
        return false;
    *job = (struct staged){{.run = run_staged}, device, storage, view, to_device};
    if (tutti_carry_start(&job->carry, device, event))
        return true;
    free(job);
    return false;
}

static int move(struct tutti_view *view, struct tutti_real_device *device,
                const struct tutti_storage *storage, bool to_device, cl_event *event) {
    int result = 0;
    tutti_view_take_over(view);
    tutti_view_lock_home(view, device, view->size);
    if (!is_staged(device, storage, view)) {
        tutti_driver_lock(device);
        result = to_device ? upload(view, device, storage, event)
                           : download(view, device, storage, event);
        tutti_driver_unlock(device);
    } else if (start_staged(device, storage, view, to_device, event)) {
        result = -EAGAIN;
    } else {
        stage(device, storage, view, to_device);
    }
    tutti_view_hand_over(view);
    return result;
}

int tutti_hop_up(struct tutti_view *view, struct tutti_real_device *device,
                 const struct tutti_storage *storage, cl_event *event) {
    return move(view, device, storage, true, event);
}

int tutti_hop_down(struct tutti_view *view, struct tutti_real_device *device,
                   const struct tutti_storage *storage, cl_event *event) {
    return move(view, device, storage, false, event);
}

cl_int tutti_hop_before(struct tutti_view *view, struct tutti_real_device *device,
                        const struct tutti_storage *storage, cl_command_queue queue) {
    void *home = tutti_view_home(view);
    if (!home)
        return CL_OUT_OF_HOST_MEMORY;
    tutti_history_move(view->history, device, TUTTI_UPLOAD, view->size);
    if (storage->bytes) {
        memcpy(storage->bytes, home, view->size);
        return CL_SUCCESS;
    }
    tutti_driver_take(device);
    cl_int error = device->dispatch->clEnqueueWriteBuffer(queue, storage->mem, CL_FALSE, 0,
                                                          view->size, home, 0, NULL, NULL);
    tutti_driver_give(device);
    return error;
}
