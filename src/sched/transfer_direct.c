/* SPDX-License-Identifier: MIT */
/*
 * Small reads, writes, maps and unmaps of a buffer that short kernels use: as commands of the
 * device, among its kernels. A loop that sets a parameter, runs a kernel and reads a residual has
 * no other delay then than the driver's.
 */
#include "sched/transfer.h"

#include "memory/device_copy.h"
#include "memory/locked_pages.h"
#include "memory/pinned.h"
#include "memory/version.h"
#include "sched/ahead.h"
#include "sched/append.h"
#include "sched/batch.h"
#include "sched/batch_users.h"
#include "sched/direct.h"
#include "sched/lanes.h"
#include "sched/runtime.h"
#include "virtual_device/driver.h"

/*
 * Larger ones go on queues of their own, at the same time as kernels, which costs the waking of
 * threads: 130 µs with 4 MiB, and 210 with 16 (H200). Ten of 1 MiB that nobody waited for, each
 * with a kernel, took 1.35 to 1.5 times as long there as with an H100's driver, and take as long
 * here. Between two page-locked buffers both directions may be wanted at once. What a device
 * streams may be larger, as its kernels want all cores anyway.
 */
#define LARGEST ((size_t)1 << 20)
#define LARGEST_PINNED ((size_t)4 << 20)
#define LARGEST_APART ((size_t)1 << 30) /* on a lane of its own */
#define LARGEST_MAPPED ((size_t)16 << 20)
#define LARGEST_STREAMED ((size_t)4 << 20)
#define LEAST_BESIDE ((size_t)1 << 20)   /* of a stream: less is not worth the driver's waits */
#define LARGEST_COPIED ((size_t)4 << 10) /* in the call, where that spares a command */
#define LEAST_BLOCKING_WRITE ((size_t)16 << 10)
#define MOST_BLOCKING ((size_t)4 << 20) /* device_copy.c says why */
#define MOST_BEHIND 1000.0              /* µs of longer kernels, which a blocking one waits for */
#define RATE 25000.0                    /* bytes per µs */

static char *host_memory(const struct tutti_transfer *transfer) {
    return transfer->mapping ? transfer->map.pointer : transfer->target;
}

static bool is_pinned(const struct tutti_transfer *transfer) {
    size_t first = tutti_transfer_first(transfer, 1);
    return tutti_pinned_covers(host_memory(transfer) + first,
                               tutti_transfer_end(transfer, 1) - first);
}

/* Which way bytes go, if any do. */
static enum { NOWHERE, UP, DOWN } direction(const struct tutti_transfer *transfer) {
    if (transfer->mapping == TUTTI_MAP)
        return transfer->map.flags & CL_MAP_WRITE_INVALIDATE_REGION ? NOWHERE : DOWN;
    return transfer->writes ? UP : DOWN;
}

/*
 * What the program waits for is a blocking command: NVIDIA's driver takes half the time for it, but
 * for small writes. Whoever wants the device's other lanes waits meanwhile (driver.h).
 */
static bool blocks(const struct tutti_transfer *transfer, const struct tutti_real_device *device,
                   cl_command_queue queue) {
    const struct tutti_device_task *task = &transfer->task;
    size_t size = tutti_region_bytes(&transfer->region);
    if (!(queue == device->place.kernels || queue == device->place.measured) ||
        tutti_ahead_busy(device) > MOST_BEHIND ||
        (tutti_lanes_are_slow(device) && tutti_driver_is_wanted(device)))
        return false;
    return task->command.event->caller_runs && !task->next && !task->measured &&
           size <= MOST_BLOCKING && (direction(transfer) == DOWN || size > LEAST_BLOCKING_WRITE);
}

static cl_int move(struct tutti_transfer *transfer, struct tutti_real_device *device,
                   cl_command_queue queue, cl_mem mem, bool blocking, cl_event *event) {
    struct tutti_copy copy = {.device = device, .mem = mem};
    if (blocking && direction(transfer) == DOWN) /* after a write the memory can be used, no more */
        transfer->task.result = CL_COMPLETE;
    if (!transfer->mapping) /* else it is the buffer's memory */
        tutti_locked_pages_use_part(device, host_memory(transfer), &transfer->place[1],
                                    &transfer->region);
    tutti_driver_take(device);
    cl_int error = tutti_copy_enqueue(&copy, queue, direction(transfer) == UP, &transfer->place[0],
                                      host_memory(transfer), &transfer->place[1], &transfer->region,
                                      blocking, blocking ? NULL : event);
    tutti_driver_give(device);
    return error;
}

/* Does only its order count? What is mapped may be the device's memory. `bytes` may be NULL. */
static bool moves_nothing(const struct tutti_transfer *transfer, const char *bytes) {
    return direction(transfer) == NOWHERE ||
           (bytes && bytes + tutti_place_first(&transfer->place[0]) ==
                         host_memory(transfer) + tutti_place_first(&transfer->place[1]));
}

cl_int tutti_transfer_by_host(struct tutti_transfer *transfer,
                              const struct tutti_real_device *device, cl_command_queue queue,
                              void (*work)(const struct tutti_transfer *transfer,
                                           const struct tutti_storage *const *storage),
                              const struct tutti_storage *const *storage) {
    cl_event event = transfer->command.event;
    transfer->task.result = CL_COMPLETE;
    cl_int error = tutti_driver_finish(device, queue);
    if (event->profiled)
        event->started = tutti_runtime_now();
    if (work)
        work(transfer, storage);
    if (event->profiled)
        event->ended = tutti_runtime_now();
    return error;
}

static void move_by_host(const struct tutti_transfer *transfer,
                         const struct tutti_storage *const *storage) {
    const struct tutti_place *there = &transfer->place[0], *here = &transfer->place[1];
    char *memory = host_memory(transfer), *bytes = storage[0]->bytes;
    if (direction(transfer) == UP)
        tutti_region_copy(bytes, there, memory, here, &transfer->region);
    else
        tutti_region_copy(memory, here, bytes, there, &transfer->region);
}

/* The end of all that is on the queue. */
static cl_int mark(const struct tutti_device_task *task, const struct tutti_real_device *device,
                   cl_command_queue queue, cl_event *event) {
    if (!event)
        return CL_SUCCESS;
    cl_event tail = task->measured ? NULL : tutti_lanes_tail(device, queue);
    if (tail) {
        *event = tail;
        return device->dispatch->clRetainEvent(tail);
    }
    tutti_driver_take(device);
    cl_int error = device->dispatch->clEnqueueMarkerWithWaitList(queue, 0, NULL, event);
    tutti_driver_give(device);
    return error;
}

static cl_int enqueue(struct tutti_device_task *task, struct tutti_real_device *device,
                      cl_command_queue queue, const struct tutti_storage *const *storage,
                      cl_event *event) {
    struct tutti_transfer *transfer = (struct tutti_transfer *)task;
    if (!storage[0]->at_home && direction(transfer) != NOWHERE)
        tutti_history_move(task->use->view->history, device,
                           direction(transfer) == UP ? TUTTI_UPLOAD : TUTTI_DOWNLOAD,
                           tutti_region_bytes(&transfer->region));
    cl_int error;
    /* Host memory has no times but those of the host, for who asks. */
    bool by_host = storage[0]->bytes && !tutti_direct_streams(device);
    bool timed = by_host && task->command.event->profiled;
    bool still = moves_nothing(transfer, storage[0]->bytes);
    if (still && !timed) {
        error = mark(task, device, queue, event);
    } else if (by_host) {
        error =
            tutti_transfer_by_host(transfer, device, queue, still ? NULL : move_by_host, storage);
    } else {
        tutti_view_lock_home(task->use->view, device, tutti_region_bytes(&transfer->region));
        error = move(transfer, device, queue, storage[0]->mem,
                     !storage[0]->bytes && blocks(transfer, device, queue), event);
    }
    /* Nobody can bring anything to the mapped bytes before the command is over. */
    if (transfer->mapping == TUTTI_UNMAP)
        tutti_transfer_end_map(transfer);
    else if (transfer->mapping == TUTTI_MAP && error == CL_SUCCESS)
        error = tutti_transfer_begin_map(transfer);
    return error;
}

/* Then the program's thread may move what is too much, or too scattered, for others. */
static bool is_at_home(const struct tutti_view *view) {
    return view->at_home || (view->seat && view->seat->at_home);
}

bool tutti_transfer_is_streamed(const struct tutti_transfer *transfer) {
    return tutti_direct_streams(tutti_devices()->device[0]) &&
           tutti_region_bytes(&transfer->region) <= LARGEST_STREAMED;
}

/*
 * Too large to be among kernels, but so that the device's queues order it, and no thread has to
 * wake, or look for its end, before what comes behind it. Where another GPU might get what is
 * written, or what the program waits for, it is no gain.
 */
static bool goes_apart(const struct tutti_transfer *transfer, const struct tutti_view *view) {
    size_t size = tutti_region_bytes(&transfer->region);
    return size > LARGEST_PINNED && size <= LARGEST_APART && view->seat &&
           tutti_lanes_are_of_gpu(view->seat) &&
           tutti_devices_apart(transfer->mem[0]->devices) == 1 &&
           !transfer->command.event->caller_runs;
}

/* What batches take for its µs, or 0: too long for its neighbours. */
static double time_of(const struct tutti_transfer *transfer, const struct tutti_view *view) {
    size_t size = tutti_region_bytes(&transfer->region);
    bool at_home = is_at_home(view);
    /* What the program may write is noted: not before it is known that the map did not fail. */
    if (transfer->mapping == TUTTI_MAP && transfer->writes && !at_home)
        return 0;
    if (transfer->mapping && (at_home || direction(transfer) == NOWHERE))
        return TUTTI_TRANSFER_TIME;
    if (at_home && tutti_transfer_is_streamed(transfer) &&
        tutti_region_is_linear(&transfer->region))
        return TUTTI_TRANSFER_TIME; /* it waits for nothing else */
    if (at_home)
        return tutti_transfer_is_crews(transfer) ? tutti_transfer_time_at_home(size) : 0;
    if (!tutti_region_is_linear(&transfer->region) &&
        (transfer->region.size[2] > 1 ||
         tutti_copy_overhangs(view, &transfer->place[0], &transfer->region)))
        return 0;
    if (size <= LARGEST)
        return TUTTI_TRANSFER_TIME + (double)size / RATE;
    bool apart = transfer->task.apart ||
                 (!transfer->mapping && view->seat && tutti_lanes_are_long(view->seat));
    size_t most = apart ? LARGEST_APART : transfer->mapping ? LARGEST_MAPPED : LARGEST_PINNED;
    return size <= most && is_pinned(transfer) ? TUTTI_TRANSFER_TIME : 0;
}

/*
 * An unmap is done even if a command failed that it waits for, which is not known yet of those that
 * only its end waits for. It gives back what a map that did not fail noted.
 */
static bool is_doubtful(const struct tutti_transfer *transfer) {
    cl_event event = transfer->command.event;
    pthread_mutex_lock(&event->context->graph.lock);
    bool doubtful = event->unresolved > 0 || event->failed;
    pthread_mutex_unlock(&event->context->graph.lock);
    return doubtful || !tutti_transfer_is_mapped(transfer);
}

/*
 * Of a stream, the next upload need not wait for the kernels of the last one: fresh storage, which
 * is on the same device. Unless it would be collected with those.
 */
static struct tutti_view *take_version(struct tutti_transfer *transfer, bool whole) {
    struct tutti_device_task *task = &transfer->task;
    struct tutti_device_use *use = &transfer->direct[0];
    struct tutti_real_device *seat = use->view->seat;
    bool fresh = whole && task->streams && !task->command.keeps_storage && seat &&
                 tutti_lanes_download(seat) && tutti_direct_would_take(task);
    if (fresh)
        tutti_batch_note_seats(transfer->mem[0]);
    struct tutti_view *view = tutti_version_take_there(transfer->mem[0], fresh);
    if (!view->seat)
        view->seat = seat;
    view->defined = true;
    return use->view = view;
}

/* May it be on a lane of its own? Of a small one that is asked only where it may gain. */
static void choose_beside(struct tutti_transfer *transfer, const struct tutti_view *view) {
    struct tutti_device_task *task = &transfer->task;
    bool large = tutti_region_bytes(&transfer->region) >= LEAST_BESIDE;
    bool may = large || (view->seat && tutti_lanes_are_long(view->seat));
    if (!(transfer->mapping ? task->apart : may) || is_at_home(view) || !is_pinned(transfer))
        return;
    task->beside =
        tutti_lane_of_transfers(direction(transfer) == UP, task->command.event->profiled);
    task->streams = large && !transfer->mapping;
}

/*
 * Devices, as bits. What is read is where it was used last, or where its kernel is likely to be: so
 * the reads of a program's results go together, though another device that takes far longer may
 * execute those kernels.
 */
static unsigned find_likely(struct tutti_view *view, bool up) {
    if (up || is_at_home(view))
        return 0;
    const struct tutti_batch *last = tutti_batch_last_of(view);
    return last ? last->likely : view->seat ? 1u << view->seat->index : 0;
}

static bool go_direct(struct tutti_transfer *transfer) {
    cl_mem mem = transfer->mem[0];
    struct tutti_device_task *task = &transfer->task;
    struct tutti_view *view = mem->view;
    bool up = direction(transfer) == UP;
    bool whole =
        up && tutti_region_is_linear(&transfer->region) && transfer->region.size[0] == mem->size;
    tutti_batch_last_of(view); /* which may be over: then it is known where that was */
    task->apart = goes_apart(transfer, view);
    task->time = time_of(transfer, view);
    if (mem->parent || view->sibling || view->svm || !view->defined || task->time == 0 ||
        (whole && tutti_batch_is_kept_long(view)) ||
        (!view->at_home && tutti_version_pins(mem) > (transfer->mapping ? 1 : 0)))
        return false;
    task->devices = mem->devices & (view->seat && is_at_home(view) ? 1u << view->seat->index : ~0u);
    task->likely = task->devices & find_likely(view, up);
    transfer->direct[0] = (struct tutti_device_use){
        .view = view,
        .mode = whole ? STARPU_W
                : up  ? STARPU_RW
                      : STARPU_R,
    };
    choose_beside(transfer, view);
    if (!tutti_batch_would_take(task) || (task->apart && !tutti_direct_would_take(task)))
        return false;
    transfer->view[0] = take_version(transfer, whole);
    if (transfer->mapping == TUTTI_UNMAP && is_doubtful(transfer)) {
        tutti_version_give_back(transfer->view[0], TUTTI_USER_DEVICE);
        transfer->view[0] = NULL;
        return false;
    }
    transfer->user = TUTTI_USER_DEVICE;
    if (whole && !transfer->mapping)
        tutti_history_overwrite(&mem->history);
    tutti_transfer_unpin(transfer); /* the device brings its bytes before all that comes now */
    tutti_batch_add(task);
    return true;
}

/* Its order among what uses the program's memory counts no more: the bytes are a copy. */
static cl_int write_copy(const struct tutti_device_task *task, struct tutti_real_device *device,
                         cl_command_queue queue, const struct tutti_storage *to,
                         const char *bytes) {
    const struct tutti_transfer *transfer = (const struct tutti_transfer *)task;
    const struct tutti_copy copy = {.device = device, .mem = to->mem};
    const struct tutti_place here = tutti_place_linear(0, transfer->region.size[0]);
    tutti_history_move(transfer->mem[0]->view->history, device, TUTTI_UPLOAD,
                       transfer->region.size[0]);
    tutti_driver_take(device);
    cl_int error = tutti_copy_enqueue(&copy, queue, true, &transfer->place[0], (char *)bytes, &here,
                                      &transfer->region, false, NULL);
    tutti_driver_give(device);
    return error;
}

static bool moves(struct tutti_command *command, struct tutti_append_move *move) {
    struct tutti_transfer *transfer = (struct tutti_transfer *)command;
    size_t size = transfer->region.size[0];
    *move = (struct tutti_append_move){
        .mem = {transfer->mem[0]},
        .count = 1,
        .whole = size == transfer->mem[0]->size,
        .time = TUTTI_TRANSFER_TIME,
        .bytes = (const char *)transfer->source + tutti_transfer_first(transfer, 1),
        .size = size,
        .write = write_copy,
    };
    return true;
}

void tutti_transfer_offer(struct tutti_transfer *transfer) {
    cl_mem mem = transfer->mem[0];
    struct tutti_device_task *task = &transfer->task;
    if (mem->type != CL_MEM_OBJECT_BUFFER || (mem->host_ptr && !transfer->mapping))
        return;
    transfer->go_direct = go_direct;
    task->enqueue = enqueue;
    task->command.joins = true;
    task->use = transfer->direct;
    task->count = 1;
    if (transfer->writes && !transfer->mapping && tutti_region_is_linear(&transfer->region) &&
        transfer->region.size[0] <= LARGEST_COPIED)
        task->command.moves = moves;
}
