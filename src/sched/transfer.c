/* SPDX-License-Identifier: MIT */
#include "sched/transfer.h"

#include "memory/coherence.h"
#include "memory/version.h"
#include "memory/window.h"
#include "recycler.h"
#include "sched/batch.h"
#include "sched/crew.h"
#include "sched/direct_end.h"
#include "sched/runtime.h"

#include <stdlib.h>

/* The memory objects have one command less before them. */
static void leave_ahead(struct tutti_transfer *transfer) {
    if (transfer->dispatched)
        return;
    transfer->dispatched = true;
    for (cl_uint i = 0; i < transfer->mem_count; i++)
        atomic_fetch_sub(&transfer->mems[i]->ahead, 1);
    for (int i = 0; i < 2; i++)
        if (transfer->given[i])
            atomic_fetch_sub(&transfer->given[i]->ahead, 1);
}

static cl_mem take_mem(cl_mem mem) {
    if (mem)
        atomic_fetch_add(&mem->ahead, 1);
    return tutti_object_retain(mem);
}

/* It is done in a call, without StarPU. By the dispatching thread. */
static void enter_call(struct tutti_transfer *transfer) {
    transfer->in_call = true;
    for (int i = 0; i < 2; i++)
        if (transfer->view[i])
            tutti_version_enter_call(transfer->view[i]);
}

static void leave_call(struct tutti_transfer *transfer) {
    for (int i = 0; i < 2; i++)
        if (transfer->in_call && transfer->view[i])
            tutti_version_leave_call(transfer->view[i]);
    transfer->in_call = false;
}

void tutti_transfer_destroy(struct tutti_command *command) {
    struct tutti_transfer *transfer = (struct tutti_transfer *)command;
    leave_ahead(transfer);
    leave_call(transfer);
    for (cl_uint i = 0; i < transfer->mem_count; i++) {
        tutti_version_give_back(transfer->views[i], transfer->user);
        tutti_object_release(transfer->mems[i]);
    }
    tutti_version_give_back(transfer->view[0], transfer->user);
    tutti_version_give_back(transfer->view[1], transfer->user);
    tutti_object_release(transfer->given[0]);
    tutti_object_release(transfer->given[1]);
    free(transfer->mems);
    free(transfer->views);
    free(transfer->acquisition.more);
    tutti_recycler_give(transfer);
}

static void run(struct tutti_job *job) {
    struct tutti_transfer *transfer =
        (void *)((char *)job - offsetof(struct tutti_transfer, command) -
                 offsetof(struct tutti_command, job));
    tutti_command_running(&transfer->command);
    cl_event event = transfer->command.event;
    event->started = tutti_runtime_now();
    cl_int error = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    if (!event->failed || transfer->command.regardless)
        error = transfer->execute(transfer);
    if (error != CL_SUCCESS)
        tutti_event_break(event);
    event->ended = tutti_runtime_now();
    leave_call(transfer);
    tutti_acquisition_release(&transfer->acquisition);
    tutti_pool_end_job(job);
    tutti_command_done(&transfer->command, error == CL_SUCCESS ? CL_COMPLETE : error);
}

/*
 * What moves nothing is done at once: another thread takes longer to wake. But not what its release
 * grants: many of them, one behind the other, would be as many calls deep.
 */
static void granted(struct tutti_acquisition *acquisition) {
    static _Thread_local bool at_once;
    struct tutti_transfer *transfer =
        (void *)((char *)acquisition - offsetof(struct tutti_transfer, acquisition));
    bool short_work = transfer->mapping ? tutti_transfer_moves_nothing(transfer)
                                        : tutti_transfer_is_settled(transfer);
    if (at_once || !short_work) {
        tutti_command_run_on_host(&transfer->command);
        return;
    }
    at_once = true;
    run(&transfer->command.job);
    at_once = false;
}

/* Bytes within the host's memory that cost no more to copy than to have a thread wake for them. */
#define LARGEST_AT_ONCE ((size_t)512 << 10)
#define LARGEST_BLOCKING_AT_ONCE ((size_t)1 << 20)
#define LARGEST_BLOCKING_APART ((size_t)4 << 20) /* while others dispatch */
/* Where callers execute kernels (crew.h). More is copied by two threads. */
#define LARGEST_OF_CREW ((size_t)2 << 20)

static bool is_as_small(const struct tutti_transfer *transfer, size_t most) {
    return tutti_region_bytes(&transfer->region) <= most;
}

/*
 * Does the dispatching thread copy it itself? Other commands, which might go beside it, wait
 * meanwhile; but to have another thread do what is short takes longer. The program waits for its
 * own blocking commands anyway.
 */
static bool is_little(const struct tutti_transfer *transfer) {
    return is_as_small(transfer, transfer->command.event->caller_runs ? LARGEST_BLOCKING_AT_ONCE
                                                                      : LARGEST_AT_ONCE);
}

static bool is_for_crew(const struct tutti_transfer *transfer) {
    return tutti_crew_serves() && is_as_small(transfer, LARGEST_OF_CREW);
}

bool tutti_transfer_is_crews(const struct tutti_transfer *transfer) {
    return is_little(transfer) || is_for_crew(transfer);
}

/* Nothing has to be asked of StarPU. */
static bool is_free(const struct tutti_transfer *transfer) {
    if (transfer->mapping && !transfer->prepare) /* there is nothing to do */
        return true;
    return transfer->mem[0] && transfer->mem_count == 0 &&
           tutti_version_is_free(transfer->mem[0]) &&
           (!transfer->mem[1] || tutti_version_is_free(transfer->mem[1]));
}

static bool is_done_at_once(const struct tutti_command *command, bool blocking) {
    const struct tutti_transfer *transfer = (const struct tutti_transfer *)command;
    size_t most = blocking ? LARGEST_BLOCKING_APART : LARGEST_AT_ONCE;
    return (transfer->mapping || is_as_small(transfer, most) || is_for_crew(transfer)) &&
           is_free(transfer);
}

static bool is_prepared(struct tutti_transfer *transfer) {
    return !transfer->prepare || transfer->prepare(transfer);
}

/* Nothing is acquired, and so nothing let go of. */
static cl_int begin_at_once(struct tutti_command *command) {
    struct tutti_transfer *transfer = (struct tutti_transfer *)command;
    if (!is_prepared(transfer))
        return CL_OUT_OF_HOST_MEMORY;
    transfer->acquisition.count = 0;
    enter_call(transfer);
    /* What the program has mapped is noted by the dispatching thread. */
    command->apart = !transfer->mapping;
    return CL_SUCCESS;
}

static cl_int do_at_once(struct tutti_command *command) {
    struct tutti_transfer *transfer = (struct tutti_transfer *)command;
    return transfer->execute(transfer);
}

/* A box from one part of a buffer to another: within one, drivers want it to lie alike in both. */
static bool is_box_within(const struct tutti_transfer *transfer) {
    cl_mem from = transfer->mem[0], to = transfer->mem[1];
    return from && to && from != to && tutti_mem_whole(from) == tutti_mem_whole(to) &&
           !tutti_region_is_linear(&transfer->region);
}

/* What is a window becomes a place in its buffer. False when out of memory. */
static bool settle_windows(struct tutti_transfer *transfer) {
    if (is_box_within(transfer) && !tutti_window_close(transfer->mem[0]))
        return false;
    for (int i = 0; i < 2; i++) {
        cl_mem mem = transfer->mem[i];
        if (!mem || !mem->parent)
            continue;
        if (!tutti_window_note_transfer(mem))
            return false;
        cl_mem whole = tutti_window_storage_of(mem);
        if (whole == mem)
            continue;
        transfer->mem[i] = whole; /* its parts keep it */
        transfer->place[i].origin[0] += mem->origin;
    }
    return true;
}

static void start(struct tutti_command *command) {
    struct tutti_transfer *transfer = (struct tutti_transfer *)command;
    leave_ahead(transfer);
    if (!settle_windows(transfer)) {
        tutti_command_done(command, CL_OUT_OF_HOST_MEMORY);
        return;
    }
    if ((transfer->mapping || is_little(transfer)) && is_free(transfer)) {
        tutti_direct_drain(command->follows);
        cl_int error = begin_at_once(command);
        if (error != CL_SUCCESS)
            tutti_command_done(command, error);
        else
            run(&command->job);
        return;
    }
    if (command->joins) {
        if (transfer->go_direct(transfer))
            return;
        tutti_direct_drain(command->follows);
        tutti_batch_flush(&command->event->context->graph);
    }
    if (!is_prepared(transfer)) {
        tutti_command_done(command, CL_OUT_OF_HOST_MEMORY);
        return;
    }
    tutti_acquisition_take(&transfer->acquisition);
}

static bool use(const struct tutti_command *command, unsigned i, struct tutti_resource_use *use) {
    const struct tutti_transfer *transfer = (const struct tutti_transfer *)command;
    unsigned own = (transfer->given[0] != NULL) + (transfer->given[1] != NULL);
    if (i >= own + transfer->mem_count)
        return false;
    cl_mem mem = i < own ? transfer->given[i] : transfer->mems[i - own];
    use->resource = tutti_mem_resource(mem);
    use->writes = use->replaces = transfer->writes || (i == 1 && transfer->given[1]);
    use->storage = transfer->later ? NULL : mem;
    return true;
}

struct tutti_transfer *tutti_transfer_create(cl_int (*execute)(struct tutti_transfer *),
                                             bool (*prepare)(struct tutti_transfer *), cl_mem first,
                                             cl_mem second) {
    struct tutti_transfer *transfer = tutti_recycler_take_zeroed(sizeof(*transfer));
    if (!transfer)
        return NULL;
    transfer->command.start = start;
    transfer->command.destroy = tutti_transfer_destroy;
    transfer->command.use = use;
    transfer->command.job.run = run;
    transfer->command.is_done_at_once = is_done_at_once;
    transfer->command.begin_at_once = begin_at_once;
    transfer->command.do_at_once = do_at_once;
    transfer->acquisition.granted = granted;
    transfer->execute = execute;
    transfer->prepare = prepare;
    /* What has several objects may wait for one of them while it holds the others. */
    transfer->user = first && !second ? TUTTI_USER_TRANSFER : TUTTI_USER_HOST;
    transfer->mem[0] = transfer->given[0] = take_mem(first);
    transfer->mem[1] = transfer->given[1] = take_mem(second);
    return transfer;
}

void tutti_transfer_note_host(struct tutti_transfer *transfer, const void *base, bool written) {
    transfer->command.host = (const char *)base + tutti_transfer_first(transfer, 1);
    transfer->command.host_size =
        tutti_transfer_end(transfer, 1) - tutti_transfer_first(transfer, 1);
    transfer->command.host_written = written;
}

struct tutti_view *tutti_transfer_take(struct tutti_transfer *transfer) {
    return transfer->view[0] = tutti_version_take(transfer->mem[0], false, transfer->user);
}

bool tutti_transfer_prepare_read(struct tutti_transfer *transfer) {
    struct tutti_view *view = tutti_transfer_take(transfer);
    tutti_acquisition_add(&transfer->acquisition, view, TUTTI_READS);
    return tutti_coherence_read(view, tutti_transfer_first(transfer, 0),
                                tutti_transfer_end(transfer, 0));
}

bool tutti_transfer_add_mems(struct tutti_transfer *transfer, cl_uint count, const cl_mem *mems) {
    if (count == 0)
        return true;
    transfer->mems = calloc(count, sizeof(*transfer->mems));
    transfer->views = calloc(count, sizeof(*transfer->views));
    if (count > 2)
        transfer->acquisition.more = calloc(count, sizeof(*transfer->acquisition.more));
    if (!transfer->mems || !transfer->views || (count > 2 && !transfer->acquisition.more))
        return false;
    for (cl_uint i = 0; i < count; i++)
        transfer->mems[i] = take_mem(mems[i]);
    transfer->mem_count = count;
    return true;
}
