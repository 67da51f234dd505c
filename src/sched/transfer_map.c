/* SPDX-License-Identifier: MIT */
/* Map and unmap. */
#include "memory/access.h"
#include "memory/coherence.h"
#include "memory/relay.h"
#include "memory/svm_home.h"
#include "memory/version.h"
#include "sched/transfer.h"

static bool map_writes(cl_map_flags flags) {
    return (flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION)) != 0;
}

/* Home memory of a sub-buffer over the program's memory is not what is mapped. */
static bool mapped_elsewhere(cl_mem mem) { return mem->host_ptr && mem->parent; }

/* The home memory that the program sees, and which box of it. */
static struct tutti_view *mapped_view(const struct tutti_transfer *transfer,
                                      struct tutti_mapped *box) {
    struct tutti_view *view = transfer->view[0];
    box->place = transfer->place[0];
    box->region = transfer->region;
    box->written = map_writes(transfer->map.flags);
    if (!mapped_elsewhere(transfer->mem[0]))
        return view;
    box->place.origin[0] += view->origin;
    return view->root;
}

/* Does the map change how a driver has the memory mapped? Then nobody uses it meanwhile. */
static bool remaps(const struct tutti_transfer *transfer, const struct tutti_view *view) {
    return view->svm && map_writes(transfer->map.flags);
}

/*
 * Does home memory never get the mapped bytes? What is brought there from a device while they are
 * mapped leaves them out: none who still want all bytes may come by them there.
 */
static bool invalidates(const struct tutti_transfer *transfer) {
    return transfer->map.flags & CL_MAP_WRITE_INVALIDATE_REGION;
}

/*
 * Where the buffer's home memory is mapped, the map and the unmap use that too: after what was
 * brought there before, and if the map changes bytes of it, after those who read them.
 */
static void use_mapped(struct tutti_transfer *transfer, bool changes) {
    const struct tutti_view *view = transfer->view[0];
    if (!mapped_elsewhere(transfer->mem[0]))
        return;
    size_t begin = view->origin + tutti_transfer_first(transfer, 0);
    size_t end = view->origin + tutti_transfer_end(transfer, 0);
    changes = changes && (invalidates(transfer) || remaps(transfer, view->root) ||
                          tutti_coherence_is_stale(view->root, begin, end));
    tutti_acquisition_add(&transfer->acquisition, view->root, changes ? TUTTI_WRITES : TUTTI_READS);
}

struct choice {
    cl_mem mem;
    cl_command_queue queue;
    struct tutti_wait_list list;
};

/*
 * Will a command be dispatched as soon as it is enqueued, and after all others of the object? Else
 * some of them, or of those that the program adds meanwhile, need what the object contains now.
 * In an in-order queue a map is over after all that the queue has: other storage is no gain then.
 */
static bool starts_at_once(const struct choice *choice) {
    cl_command_queue queue = choice->queue;
    pthread_mutex_lock(&queue->context->graph.lock);
    bool at_once = !queue->first || !(tutti_queue_in_order(queue) || queue->strict || queue->fence);
    pthread_mutex_unlock(&queue->context->graph.lock);
    return at_once && tutti_wait_list_is_complete(choice->list) &&
           atomic_load(&choice->mem->ahead) == 0;
}

static void choose_storage(void *argument) {
    const struct choice *choice = argument;
    tutti_version_pin(choice->mem, starts_at_once(choice));
}

void tutti_transfer_pin(cl_mem mem, const struct tutti_map *map, cl_command_queue queue,
                        struct tutti_wait_list list) {
    struct choice choice = {mem, queue, list};
    bool whole = map->flags & CL_MAP_WRITE_INVALIDATE_REGION && !tutti_mem_is_image(mem) &&
                 map->region.size[0] == mem->size;
    if (!whole)
        tutti_version_pin(mem, false);
    else if (!tutti_version_pin_unused(mem))
        tutti_graph_call(&queue->context->graph, choose_storage, &choice);
}

static bool prepare_map(struct tutti_transfer *transfer) {
    if (!tutti_transfer_prepare_read(transfer))
        return false;
    if (invalidates(transfer) || remaps(transfer, transfer->view[0]))
        tutti_acquisition_add(&transfer->acquisition, transfer->view[0], TUTTI_WRITES);
    use_mapped(transfer, true);
    return true;
}

cl_int tutti_transfer_begin_map(const struct tutti_transfer *transfer) {
    struct tutti_mapped box;
    struct tutti_view *view = mapped_view(transfer, &box);
    cl_int error = tutti_svm_home_use(view, NULL, box.written);
    /* What the program only reads is no other than what a fetch brings, if it is one view's. */
    if (error == CL_SUCCESS && (box.written || mapped_elsewhere(transfer->mem[0]) || view->svm) &&
        !tutti_view_add_mapped(view, &box))
        error = CL_OUT_OF_HOST_MEMORY;
    return error;
}

static cl_int execute_map(struct tutti_transfer *transfer) {
    cl_mem mem = transfer->mem[0];
    cl_int error = CL_SUCCESS;
    if (invalidates(transfer))
        ; /* the program writes all of it */
    else if (mapped_elsewhere(mem))
        error = tutti_access_read(transfer->view[0], &transfer->place[0], transfer->map.pointer,
                                  &transfer->place[1], &transfer->region);
    else
        error = tutti_access_pull(transfer->view[0], &transfer->place[0], &transfer->region);
    return error == CL_SUCCESS ? tutti_transfer_begin_map(transfer) : error;
}

static void note_map(struct tutti_transfer *transfer, const struct tutti_map *map, bool written) {
    static const struct tutti_place start;
    const struct tutti_view *view = transfer->mem[0]->view; /* it is pinned */
    transfer->writes = map_writes(map->flags);
    transfer->place[0] = map->place;
    transfer->place[1] = tutti_view_at_home(view, &start); /* of the pointer */
    transfer->region = map->region;
    transfer->map.pointer = map->pointer;
    transfer->map.flags = map->flags;
    tutti_transfer_note_host(transfer, map->pointer, written);
}

bool tutti_transfer_moves_nothing(const struct tutti_transfer *transfer) {
    struct tutti_view *view = transfer->view[0];
    struct tutti_copies copies;
    if (view->svm || mapped_elsewhere(transfer->mem[0]))
        return false;
    if (tutti_relay_debtor(view))
        return false;
    tutti_view_copies(view, &copies);
    return transfer->mapping == TUTTI_MAP ? copies.home || !copies.count : !copies.count;
}

struct tutti_command *tutti_transfer_map(cl_mem mem, const struct tutti_map *map) {
    struct tutti_transfer *transfer = tutti_transfer_create(execute_map, prepare_map, mem, NULL);
    if (!transfer)
        return NULL;
    note_map(transfer, map, true);
    transfer->later = transfer->writes;
    transfer->mapping = TUTTI_MAP;
    tutti_transfer_offer(transfer);
    return &transfer->command;
}

static bool prepare_unmap(struct tutti_transfer *transfer) {
    struct tutti_view *view = tutti_transfer_take(transfer);
    use_mapped(transfer, false);
    if (!map_writes(transfer->map.flags)) {
        tutti_acquisition_add(&transfer->acquisition, view, TUTTI_READS);
        return true;
    }
    if (!tutti_coherence_write(view, tutti_transfer_first(transfer, 0),
                               tutti_transfer_end(transfer, 0), true))
        return false;
    view->defined = true;
    tutti_acquisition_add(&transfer->acquisition, view, TUTTI_WRITES);
    return true;
}

bool tutti_transfer_is_mapped(const struct tutti_transfer *transfer) {
    struct tutti_mapped box;
    return tutti_view_is_mapped(mapped_view(transfer, &box), &box);
}

void tutti_transfer_end_map(struct tutti_transfer *transfer) {
    struct tutti_mapped box;
    tutti_view_remove_mapped(mapped_view(transfer, &box), &box);
    transfer->mapping = TUTTI_NO_MAP;
}

static cl_int execute_unmap(struct tutti_transfer *transfer) {
    cl_int error = CL_SUCCESS;
    /* A map that failed brought nothing to be given back. */
    if (transfer->writes && tutti_transfer_is_mapped(transfer))
        error =
            mapped_elsewhere(transfer->mem[0])
                ? tutti_access_write(transfer->view[0], &transfer->place[0], transfer->map.pointer,
                                     &transfer->place[1], &transfer->region)
                : tutti_access_push(transfer->view[0], &transfer->place[0], &transfer->region);
    tutti_transfer_end_map(transfer);
    return error;
}

void tutti_transfer_unpin(struct tutti_transfer *transfer) {
    if (transfer->pins)
        tutti_version_unpin(transfer->mem[0]);
    transfer->pins = false;
}

static void destroy_unmap(struct tutti_command *command) {
    struct tutti_transfer *transfer = (struct tutti_transfer *)command;
    if (transfer->view[0] && transfer->mapping) /* a device could not execute it */
        tutti_transfer_end_map(transfer);
    tutti_transfer_unpin(transfer);
    tutti_transfer_destroy(command);
}

static cl_int execute_nothing(struct tutti_transfer *transfer) {
    (void)transfer;
    return CL_SUCCESS;
}

struct tutti_command *tutti_transfer_unmap(cl_mem mem, const struct tutti_map *map) {
    /* What the program could only read, in home memory itself, goes nowhere. */
    bool nothing = !map_writes(map->flags) && !mem->view->svm && !mapped_elsewhere(mem);
    struct tutti_transfer *transfer =
        nothing ? tutti_transfer_create(execute_nothing, NULL, mem, NULL)
                : tutti_transfer_create(execute_unmap, prepare_unmap, mem, NULL);
    if (!transfer)
        return NULL;
    transfer->command.destroy = destroy_unmap;
    transfer->command.regardless = true; /* the program uses the pointer no more */
    note_map(transfer, map, false);
    transfer->mapping = TUTTI_UNMAP;
    transfer->pins = true;
    if (nothing)
        transfer->command.joins = true;
    else
        tutti_transfer_offer(transfer);
    return &transfer->command;
}
