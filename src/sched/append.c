/* SPDX-License-Identifier: MIT */
#include "sched/append.h"

#include "context.h"
#include "log.h"
#include "memory/version.h"
#include "memory/window.h"
#include "recycler.h"
#include "sched/ahead.h"
#include "sched/batch_users.h"
#include "sched/direct.h"
#include "sched/direct_end.h"
#include "sched/lanes.h"
#include "sched/statistics.h"
#include "virtual_device/driver.h"

#include <string.h>

/*
 * µs of a kernel: a longer one might be on another device, or lane, and a command costs little
 * beside it. Not so what shares the device with others, and comes after the one before it anyway:
 * of fifteen at once each takes no longer than a command.
 */
#define LONGEST (2 * TUTTI_LAUNCH_TIME)
#define LONGEST_SHARING 300.0
/* To one command, and µs that they take: its end is seen no sooner than theirs. */
#define MOST 30
#define MOST_TIME 1000.0

void tutti_append_forget(cl_command_queue queue) {
    for (unsigned d = 0; d < TUTTI_MAX_DEVICES; d++) {
        tutti_batch_release(queue->latest.batch[d]);
        queue->latest.batch[d] = NULL;
    }
}

/* Are all those of the queue in the batch that come after what was noted before? */
static bool follows_latest(const struct tutti_batch *batch, cl_event last) {
    cl_ulong number = last->queue->latest.number;
    for (const struct tutti_device_task *task = batch->first; task; task = task->next)
        number += task->command.event->queue == last->queue;
    return number == last->number;
}

/*
 * What others have of the queue's commands right before it stays, unless the program would see one
 * of them end late, for what is appended to another one before it.
 */
static void note(struct tutti_batch *batch, cl_event event) {
    struct tutti_latest *latest = &event->queue->latest;
    if (latest->seen || !follows_latest(batch, event))
        tutti_append_forget(event->queue);
    atomic_fetch_add(&batch->user.references, 1);
    tutti_batch_release(latest->batch[batch->device->index]);
    latest->batch[batch->device->index] = batch;
    latest->device = batch->device->index;
    latest->number = event->number;
    latest->seen = tutti_event_is_seen(event);
    atomic_store(&event->queue->latest_event, event);
}

void tutti_append_note(struct tutti_batch *batch) {
    const struct tutti_device_task *last = batch->first;
    while (last->next)
        last = last->next;
    bool in_lane =
        TUTTI_FIRST_LANES & tutti_lane_bit(batch->lane) || tutti_lane_is_aside(batch->lane);
    if (!tutti_lanes_are_of_gpu(batch->device) || !in_lane || batch->marked ||
        (batch->lone && !batch->shares) || last->measured || last->command.host ||
        !tutti_queue_in_order(last->command.event->queue))
        return;
    note(batch, last->command.event);
}

/*
 * The caller becomes the dispatching thread, if the queue's last command may be the latest one, and
 * none before the command (NULL: a kernel) writes the memory of the program that it reads.
 */
static bool begin(cl_command_queue queue, const struct tutti_command *command) {
    struct tutti_graph *graph = &queue->context->graph;
    pthread_mutex_lock(&graph->lock);
    cl_event last = queue->last;
    bool able = last && last == atomic_load(&queue->latest_event) && last->dispatched &&
                !last->failed && !tutti_event_is_seen(last) && tutti_queue_is_clear(queue) &&
                (!command || tutti_command_may_read_host(command, queue)) &&
                tutti_graph_begin(graph);
    pthread_mutex_unlock(&graph->lock);
    return able;
}

static void end(cl_command_queue queue) {
    struct tutti_graph *graph = &queue->context->graph;
    pthread_mutex_lock(&graph->lock);
    graph->dispatching = false;
    tutti_graph_run_and_unlock(graph);
}

/* What is appended, to what, and what it uses. */
struct addition {
    struct tutti_batch *batch;
    const struct tutti_invocation *call;  /* a kernel, or NULL: */
    struct tutti_device_task *task;       /* what moves bytes, */
    const struct tutti_append_move *move; /* so */
    const cl_mem *mem;
    unsigned count;
    double time;                  /* µs */
    struct tutti_device_use *use; /* of each; `kept`: the batch lacks it, */
    unsigned fresh;               /* so many at most */
};

/* The batch's use of the view; NULL: it does not use it. */
static struct tutti_device_use *find_use(const struct tutti_batch *batch,
                                         const struct tutti_view *view) {
    struct tutti_device_use *use = batch->use;
    while (use < batch->use + batch->count && use->view != view)
        use++;
    return use < batch->use + batch->count ? use : NULL;
}

/* Where what it uses is, or may be, the last one of the queue's; NULL: there is none. */
static struct tutti_batch *find_latest(cl_command_queue queue, const cl_mem *mem, unsigned count) {
    const struct tutti_latest *latest = &queue->latest;
    const struct tutti_real_device *seat = NULL;
    for (unsigned i = 0; i < count && !seat; i++)
        seat = tutti_window_storage_of(mem[i])->view->seat;
    return latest->batch[seat ? seat->index : latest->device];
}

/* Was it used last, if it still is, by what is before the kernel on the device's queue? */
static bool is_in_order(struct tutti_view *view, const struct tutti_stay *stay,
                        const struct tutti_batch *batch) {
    const struct tutti_batch *last = tutti_batch_last_of(view);
    tutti_lane_set elsewhere = stay->lanes & ~tutti_lane_bit(batch->lane);
    return (!last ||
            (last->direct && last->device == batch->device && last->lane == batch->lane)) &&
           !(elsewhere && atomic_load(&stay->under_way) > 0);
}

/* Does it come after the batch, by what both use, or is the device theirs alone? */
static bool is_no_better_beside(const struct addition *addition, unsigned found) {
    const struct tutti_batch *batch = addition->batch;
    bool after = !batch->shares;
    for (unsigned i = 0; i < found && !after; i++) {
        const struct tutti_device_use *use = &addition->use[i], *own = find_use(batch, use->view);
        after = own && (own->mode != STARPU_R || use->mode != STARPU_R);
    }
    return after;
}

static bool writes_to(const struct addition *addition, unsigned i) {
    return addition->call ? tutti_invocation_writes(addition->call, addition->mem[i])
                          : i == addition->count - 1;
}

/* Are a buffer's bytes just what its view has on its device, and is nobody else at them? */
static bool is_plain(cl_mem mem) {
    return mem->type == CL_MEM_OBJECT_BUFFER && !tutti_mem_has_siblings(mem) &&
           mem->view->defined && tutti_version_pins(mem) == 0;
}

/* False: it has to be a command. References to stays that were taken are to be released. */
static bool find(struct addition *addition, unsigned i) {
    struct tutti_batch *batch = addition->batch;
    struct tutti_device_use *use = &addition->use[i];
    cl_mem mem = addition->mem[i];
    struct tutti_view *view = tutti_window_storage_of(mem)->view;
    bool writes = writes_to(addition, i);
    unsigned own_command = addition->task ? 1 : 0;
    use->kept = NULL;
    if (view->svm || atomic_load(&mem->ahead) > own_command || (addition->task && !is_plain(mem)))
        return false;
    const struct tutti_device_use *own = find_use(batch, view);
    enum starpu_data_access_mode mode = writes ? STARPU_RW : STARPU_R;
    struct tutti_stay *stay = own ? own->stay : tutti_stay_take(view, batch->device, mode);
    *use = (struct tutti_device_use){.view = view,
                                     .window = tutti_window_of(mem),
                                     .mode = mode,
                                     .stay = stay,
                                     .kept = own ? NULL : mem};
    addition->fresh += !own;
    if (!stay || (writes && !stay->writes) || (stay->early && !stay->brought) ||
        (own && !tutti_stay_goes_on(stay)) || !is_in_order(view, stay, batch))
        return false;
    use->storage = atomic_load(&stay->storage);
    return use->storage && (addition->task ? use->storage->mem && !use->storage->bytes
                                           : use->storage->argument != NULL);
}

static void let_go(struct addition *addition, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        if (addition->use[i].kept)
            tutti_stay_release(addition->use[i].stay);
}

static bool is_confusing(const struct tutti_invocation *call,
                         const struct tutti_real_device *device) {
    if (!tutti_pocl_is(device))
        return false;
    struct tutti_pocl_launch launch = tutti_range_for_pocl(call->range, call->kernel->name);
    return tutti_pocl_confuses(&launch);
}

/* With the device's lock held, as what follows. */
static cl_int enqueue_kernel(const struct addition *addition) {
    struct tutti_real_device *device = addition->batch->device;
    const struct tutti_storage *storage[TUTTI_PLAIN_ARGUMENTS];
    struct tutti_storage windows[TUTTI_PLAIN_ARGUMENTS];
    unsigned count = addition->count;
    for (unsigned i = 0; i < count; i++)
        if (addition->use[i].window)
            tutti_window_make_room(addition->use[i].view, device);
    for (unsigned i = 0; i < count; i++) {
        const struct tutti_device_use *use = &addition->use[i];
        storage[i] = use->window ? &windows[i] : use->storage;
        cl_int error = use->window ? tutti_window_find(use->view, use->window, device, use->storage,
                                                       &windows[i])
                                   : CL_SUCCESS;
        if (error != CL_SUCCESS)
            return error;
    }
    return tutti_invocation_enqueue(addition->call, device, addition->batch->queue, storage, false,
                                    0, NULL, NULL, NULL);
}

/* The copy that it reads is the batch's then. */
static cl_int enqueue_move(const struct addition *addition) {
    const struct tutti_append_move *move = addition->move;
    struct tutti_batch *batch = addition->batch;
    const struct tutti_storage *storage[] = {addition->use[0].storage,
                                             addition->count > 1 ? addition->use[1].storage : NULL};
    if (!move->bytes)
        return addition->task->enqueue(addition->task, batch->device, batch->queue, storage, NULL);
    struct tutti_batch_bytes *bytes = tutti_recycler_take(sizeof(*bytes) + move->size);
    if (!bytes)
        return CL_OUT_OF_HOST_MEMORY;
    memcpy(bytes->bytes, move->bytes, move->size);
    cl_int error =
        move->write(addition->task, batch->device, batch->queue, storage[0], bytes->bytes);
    if (error == CL_SUCCESS) {
        bytes->next = batch->bytes;
        batch->bytes = bytes;
    } else {
        tutti_recycler_give(bytes);
    }
    return error;
}

static cl_int enqueue(const struct addition *addition) {
    struct tutti_real_device *device = addition->batch->device;
    for (unsigned i = 0; i < addition->count; i++)
        tutti_view_take_over(addition->use[i].view);
    pthread_mutex_lock(&device->place.enqueues);
    tutti_driver_lock(device);
    cl_int error = addition->call ? enqueue_kernel(addition) : enqueue_move(addition);
    if (error == CL_SUCCESS)
        tutti_lanes_append(addition->batch);
    tutti_driver_unlock(device);
    pthread_mutex_unlock(&device->place.enqueues);
    for (unsigned i = 0; i < addition->count; i++)
        tutti_view_hand_over(addition->use[i].view);
    return error;
}

/* There is room. The reference to its stay is the batch's then. */
static void add_use(struct tutti_batch *batch, const struct tutti_device_use *use) {
    struct tutti_device_use *own = &batch->use[batch->count++];
    *own = *use;
    own->window = NULL;
    tutti_object_retain(own->kept);
    tutti_version_take_for_launch(own->kept, false, false, NULL);
    tutti_direct_count_use(own);
}

/* It is on its way: the batch uses all that it does. */
static void join(const struct addition *addition) {
    struct tutti_batch *batch = addition->batch;
    batch->appended++;
    batch->appended_time += addition->time;
    tutti_ahead_append(batch, addition->time);
    batch->length++;
    for (unsigned i = 0; i < addition->count; i++) {
        const struct tutti_device_use *use = &addition->use[i];
        struct tutti_device_use *own = find_use(batch, use->view);
        bool writes = use->mode != STARPU_R;
        if (!own)
            add_use(batch, use);
        else if (use->kept) /* another part of the same buffer has added it */
            tutti_stay_release(use->stay);
        if (own && writes)
            tutti_direct_note_write(own);
        tutti_direct_note_lane(batch, use->stay, writes);
        tutti_history_use(use->view->history, batch->device, 0);
        tutti_batch_take_over(use->view, batch, writes);
        use->view->seat = batch->device;
        use->view->defined = true;
        use->view->unread = false;
    }
}

/* The batch is reopened (direct_end.h). */
static bool append(struct addition *addition) {
    unsigned found = 0;
    bool good = true;
    while (good && found < addition->count)
        good = find(addition, found++);
    good = good && is_no_better_beside(addition, found);
    if (!good || !tutti_batch_make_room(addition->batch, addition->fresh) ||
        enqueue(addition) != CL_SUCCESS) {
        let_go(addition, found);
        return false;
    }
    join(addition);
    return true;
}

static bool may_go_on(const struct tutti_batch *batch) {
    return batch && batch->appended < MOST && batch->appended_time < MOST_TIME &&
           atomic_load(&batch->state) == TUTTI_BATCH_SUBMITTED;
}

/* Has its device time for more? Then nobody completes the batch until it is closed. */
static bool reopen(struct tutti_batch *batch) {
    return tutti_ahead_may_append(batch) && tutti_direct_reopen(batch);
}

/* Is it, which takes so many µs there, short enough, and not to be measured? */
static bool may_follow(const struct tutti_batch *batch, struct tutti_model *model, double time,
                       unsigned able) {
    return able & 1u << batch->device->index && time > 0 &&
           time <= (batch->shares ? LONGEST_SHARING : LONGEST) &&
           tutti_model_measures(model, batch->device) == TUTTI_NOT_MEASURED;
}

/* The batch is reopened (direct_end.h). */
static bool append_kernel(struct tutti_batch *batch, const struct tutti_invocation *call,
                          const struct tutti_model *model, double time, unsigned able) {
    struct tutti_device_use use[TUTTI_PLAIN_ARGUMENTS]; /* zeroing all would be a tenth of this */
    struct addition addition = {.batch = batch,
                                .call = call,
                                .mem = call->mem,
                                .count = call->count,
                                .time = time,
                                .use = use};
    bool good = !is_confusing(call, batch->device);
    for (unsigned i = 0; good && i < call->count; i++)
        good = !tutti_mem_has_siblings(call->mem[i]) ||
               tutti_invocation_settle_part(call, call->mem[i], able);
    if (!good || !append(&addition))
        return false;
    tutti_log(DEBUG, "%s: a kernel past StarPU, behind another one", batch->device->name);
    tutti_statistics_count(model, able, batch->device, 0);
    return true;
}

/* With the kernel's lock held. */
static bool try(cl_command_queue queue, struct tutti_invocation *call, bool *began) {
    unsigned able, holding = ~0u;
    bool done = false;
    if (!tutti_invocation_take_plain(call, queue->context, &holding) || call->count == 0)
        return false;
    struct tutti_model *model = tutti_invocation_recall(call, &able);
    able &= holding;
    *began = model && begin(queue, NULL);
    struct tutti_batch *batch = *began ? find_latest(queue, call->mem, call->count) : NULL;
    double time = batch ? tutti_model_time(model, batch->device) : 0;
    if (may_go_on(batch) && may_follow(batch, model, time, able) && reopen(batch)) {
        done = append_kernel(batch, call, model, time, able);
        tutti_direct_close(batch, done, time);
    }
    return done;
}

/* Is there what may be appended to? Without a lock. */
static bool is_worth_beginning(cl_command_queue queue) {
    return tutti_queue_in_order(queue) && atomic_load(&queue->holds) &&
           atomic_load_explicit(&queue->latest_event, memory_order_relaxed);
}

bool tutti_append_kernel(cl_command_queue queue, struct tutti_invocation *call) {
    bool began = false;
    if (!is_worth_beginning(queue))
        return false;
    pthread_mutex_lock(&call->kernel->lock);
    bool done = try(queue, call, &began);
    pthread_mutex_unlock(&call->kernel->lock);
    if (began)
        end(queue);
    if (done)
        tutti_ahead_keep_close();
    return done;
}

static bool append_move(struct tutti_batch *batch, struct tutti_device_task *task,
                        const struct tutti_append_move *move) {
    struct tutti_device_use use[TUTTI_PLAIN_ARGUMENTS];
    struct addition addition = {.batch = batch,
                                .task = task,
                                .move = move,
                                .mem = move->mem,
                                .count = move->count,
                                .time = move->time,
                                .use = use};
    if (!append(&addition))
        return false;
    if (move->whole)
        tutti_history_overwrite(&move->mem[move->count - 1]->history);
    tutti_log(DEBUG, "%s: a transfer past StarPU, behind other commands", batch->device->name);
    return true;
}

bool tutti_append_transfer(cl_command_queue queue, struct tutti_device_task *task) {
    bool done = false;
    if (!is_worth_beginning(queue) || !begin(queue, &task->command))
        return false;
    struct tutti_append_move move = {.count = 0};
    struct tutti_batch *batch = NULL;
    if (task->command.moves(&task->command, &move) && move.time <= LONGEST)
        batch = find_latest(queue, move.mem, move.count);
    if (may_go_on(batch) && !batch->shares && TUTTI_FIRST_LANES & tutti_lane_bit(batch->lane) &&
        reopen(batch)) {
        done = append_move(batch, task, &move);
        tutti_direct_close(batch, done, move.time);
    }
    end(queue);
    if (done)
        tutti_ahead_keep_close();
    return done;
}
