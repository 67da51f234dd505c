/* SPDX-License-Identifier: MIT */
#include "sched/transfer_command.h"

#include "memory/access.h"
#include "memory/acquisition.h"
#include "memory/coherence.h"
#include "memory/version.h"
#include "sched/runtime.h"

#include <stdlib.h>
#include <string.h>

#define LARGEST_PATTERN 128 /* double16 */

struct transfer {
    struct tutti_command command;
    struct tutti_acquisition acquisition;
    bool (*prepare)(struct transfer *transfer); /* coherence, in dispatch order; may be NULL */
    cl_int (*execute)(struct transfer *transfer);

    cl_mem mem[2];               /* retained; [1]: the target of a copy */
    bool writes;                 /* its memory objects; of a copy the target is always written */
    struct tutti_view *view[2];  /* their storage, from the dispatch on */
    struct tutti_place place[2]; /* in mem[0]; in the host's memory or in mem[1] */
    struct tutti_region region;
    union {
        void *target;
        const void *source;
        struct {
            char bytes[LARGEST_PATTERN];
            size_t size;
        } pattern;
        struct {
            char *pointer;
            cl_map_flags flags;
        } map;
        bool to_host;
        struct {
            void(CL_CALLBACK *function)(void *);
            void *arguments;
            cl_uint count;
            size_t *places; /* offsets in `arguments` */
        } native;
    };
    cl_mem *mems; /* of migrate and native kernels; retained */
    struct tutti_view **views;
    cl_uint mem_count;
    bool dispatched;
};

/* The memory objects have one command less before them. */
static void leave_ahead(struct transfer *transfer) {
    if (transfer->dispatched)
        return;
    transfer->dispatched = true;
    for (cl_uint i = 0; i < transfer->mem_count; i++)
        atomic_fetch_sub(&transfer->mems[i]->ahead, 1);
    for (int i = 0; i < 2; i++)
        if (transfer->mem[i])
            atomic_fetch_sub(&transfer->mem[i]->ahead, 1);
}

static cl_mem take_mem(cl_mem mem) {
    if (mem)
        atomic_fetch_add(&mem->ahead, 1);
    return tutti_object_retain(mem);
}

static void destroy(struct tutti_command *command) {
    struct transfer *transfer = (struct transfer *)command;
    leave_ahead(transfer);
    for (cl_uint i = 0; i < transfer->mem_count; i++) {
        tutti_version_give_back(transfer->views[i]);
        tutti_object_release(transfer->mems[i]);
    }
    tutti_version_give_back(transfer->view[0]);
    tutti_version_give_back(transfer->view[1]);
    tutti_object_release(transfer->mem[0]);
    tutti_object_release(transfer->mem[1]);
    free(transfer->mems);
    free(transfer->views);
    free(transfer->acquisition.more);
    free(transfer);
}

static void run(struct tutti_job *job) {
    struct transfer *transfer = (void *)((char *)job - offsetof(struct transfer, command) -
                                         offsetof(struct tutti_command, job));
    tutti_command_running(&transfer->command);
    transfer->command.event->started = tutti_runtime_now();
    cl_int error = transfer->execute(transfer);
    transfer->command.event->ended = tutti_runtime_now();
    tutti_acquisition_release(&transfer->acquisition);
    tutti_command_done(&transfer->command, error == CL_SUCCESS ? CL_COMPLETE : error);
}

static void granted(struct tutti_acquisition *acquisition) {
    struct transfer *transfer =
        (void *)((char *)acquisition - offsetof(struct transfer, acquisition));
    tutti_command_run_on_host(&transfer->command);
}

static void start(struct tutti_command *command) {
    struct transfer *transfer = (struct transfer *)command;
    leave_ahead(transfer);
    if (transfer->prepare && !transfer->prepare(transfer)) {
        tutti_command_done(command, CL_OUT_OF_HOST_MEMORY);
        return;
    }
    tutti_acquisition_take(&transfer->acquisition);
}

static bool use(const struct tutti_command *command, unsigned i, struct tutti_resource_use *use) {
    const struct transfer *transfer = (const struct transfer *)command;
    unsigned own = (transfer->mem[0] != NULL) + (transfer->mem[1] != NULL);
    if (i >= own + transfer->mem_count)
        return false;
    use->resource = tutti_mem_resource(i < own ? transfer->mem[i] : transfer->mems[i - own]);
    use->writes = transfer->writes || (i == 1 && transfer->mem[1]);
    return true;
}

static struct transfer *create(cl_int (*execute)(struct transfer *),
                               bool (*prepare)(struct transfer *), cl_mem first, cl_mem second) {
    struct transfer *transfer = calloc(1, sizeof(*transfer));
    if (!transfer)
        return NULL;
    transfer->command.start = start;
    transfer->command.destroy = destroy;
    transfer->command.use = use;
    transfer->command.job.run = run;
    transfer->acquisition.granted = granted;
    transfer->execute = execute;
    transfer->prepare = prepare;
    transfer->mem[0] = take_mem(first);
    transfer->mem[1] = take_mem(second);
    return transfer;
}

/* The bytes between the first and the last one touched, in mem[i] and in the host's memory. */
static size_t first_byte(const struct transfer *transfer, int i) {
    return tutti_place_first(&transfer->place[i]);
}

static size_t end_byte(const struct transfer *transfer, int i) {
    return tutti_place_end(&transfer->place[i], &transfer->region);
}

static void note_host(struct transfer *transfer, const void *base, bool written) {
    transfer->command.host = (const char *)base + first_byte(transfer, 1);
    transfer->command.host_size = end_byte(transfer, 1) - first_byte(transfer, 1);
    transfer->command.host_written = written;
}

static struct tutti_view *take(struct transfer *transfer, int i) {
    return transfer->view[i] = tutti_version_take(transfer->mem[i], false);
}

static struct tutti_view *take_of_many(struct transfer *transfer, cl_uint i) {
    return transfer->views[i] = tutti_version_take(transfer->mems[i], false);
}

/* Before a write of mem[i]'s part that `transfer` names: what it makes of the views. */
static bool prepare_write(struct transfer *transfer, int i) {
    const struct tutti_region *region = &transfer->region;
    bool linear = tutti_region_is_linear(region);
    bool whole = linear && region->size[0] == transfer->mem[i]->size;
    struct tutti_view *view = transfer->view[i] = tutti_version_take(transfer->mem[i], whole);
    size_t begin = first_byte(transfer, i), end = end_byte(transfer, i);
    if (!tutti_coherence_write(view, begin, end, linear))
        return false;
    whole = tutti_view_is_whole(view, &transfer->place[i], region);
    view->defined = true;
    tutti_acquisition_add(&transfer->acquisition, view, whole ? TUTTI_OVERWRITES : TUTTI_WRITES);
    return true;
}

static bool prepare_read(struct transfer *transfer) {
    struct tutti_view *view = take(transfer, 0);
    tutti_acquisition_add(&transfer->acquisition, view, TUTTI_READS);
    return tutti_coherence_read(view, first_byte(transfer, 0), end_byte(transfer, 0));
}

static cl_int execute_read(struct transfer *transfer) {
    return tutti_access_read(transfer->view[0], &transfer->place[0], transfer->target,
                             &transfer->place[1], &transfer->region);
}

struct tutti_command *tutti_transfer_read(cl_mem mem, const struct tutti_place *from, void *target,
                                          const struct tutti_place *to,
                                          const struct tutti_region *region) {
    struct transfer *transfer = create(execute_read, prepare_read, mem, NULL);
    if (!transfer)
        return NULL;
    transfer->place[0] = *from;
    transfer->place[1] = *to;
    transfer->region = *region;
    transfer->target = target;
    note_host(transfer, target, true);
    return &transfer->command;
}

static bool prepare_host_write(struct transfer *transfer) { return prepare_write(transfer, 0); }

static cl_int execute_write(struct transfer *transfer) {
    return tutti_access_write(transfer->view[0], &transfer->place[0], transfer->source,
                              &transfer->place[1], &transfer->region);
}

struct tutti_command *tutti_transfer_write(cl_mem mem, const struct tutti_place *to,
                                           const void *source, const struct tutti_place *from,
                                           const struct tutti_region *region) {
    struct transfer *transfer = create(execute_write, prepare_host_write, mem, NULL);
    if (!transfer)
        return NULL;
    transfer->writes = true;
    transfer->place[0] = *to;
    transfer->place[1] = *from;
    transfer->region = *region;
    transfer->source = source;
    note_host(transfer, source, false);
    return &transfer->command;
}

static bool prepare_copy(struct transfer *transfer) {
    struct tutti_view *source = take(transfer, 0);
    if (!tutti_coherence_read(source, first_byte(transfer, 0), end_byte(transfer, 0)))
        return false;
    tutti_acquisition_add(&transfer->acquisition, source, TUTTI_READS);
    return prepare_write(transfer, 1);
}

static cl_int execute_copy(struct transfer *transfer) {
    return tutti_access_copy(transfer->view[0], &transfer->place[0], transfer->view[1],
                             &transfer->place[1], &transfer->region);
}

struct tutti_command *tutti_transfer_copy(cl_mem source, const struct tutti_place *from,
                                          cl_mem target, const struct tutti_place *to,
                                          const struct tutti_region *region) {
    struct transfer *transfer = create(execute_copy, prepare_copy, source, target);
    if (!transfer)
        return NULL;
    transfer->place[0] = *from;
    transfer->place[1] = *to;
    transfer->region = *region;
    return &transfer->command;
}

static cl_int execute_fill(struct transfer *transfer) {
    return tutti_access_fill(transfer->view[0], first_byte(transfer, 0), transfer->region.size[0],
                             transfer->pattern.bytes, transfer->pattern.size);
}

struct tutti_command *tutti_transfer_fill(cl_mem mem, size_t offset, size_t size,
                                          const void *pattern, size_t pattern_size) {
    struct transfer *transfer = create(execute_fill, prepare_host_write, mem, NULL);
    if (!transfer)
        return NULL;
    transfer->writes = true;
    transfer->place[0] = tutti_place_linear(offset, size);
    transfer->region = tutti_region_linear(size);
    memcpy(transfer->pattern.bytes, pattern, pattern_size);
    transfer->pattern.size = pattern_size;
    return &transfer->command;
}

static cl_int execute_fill_image(struct transfer *transfer) {
    return tutti_access_fill_image(transfer->view[0], &transfer->place[0], &transfer->region,
                                   transfer->pattern.bytes);
}

struct tutti_command *tutti_transfer_fill_image(cl_mem mem, const struct tutti_place *place,
                                                const struct tutti_region *region,
                                                const void *color, size_t color_size) {
    struct transfer *transfer = create(execute_fill_image, prepare_host_write, mem, NULL);
    if (!transfer)
        return NULL;
    transfer->writes = true;
    transfer->place[0] = *place;
    transfer->region = *region;
    memcpy(transfer->pattern.bytes, color, color_size);
    return &transfer->command;
}

static bool map_writes(cl_map_flags flags) {
    return (flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION)) != 0;
}

/* Home memory of a sub-buffer over the program's memory is not what is mapped. */
static bool mapped_elsewhere(cl_mem mem) { return mem->host_ptr && mem->parent; }

/* What fetches to home memory must spare: the buffer's home memory, if that is what is mapped. */
static struct tutti_view *mapped_view(const struct transfer *transfer, struct tutti_place *place) {
    struct tutti_view *view = transfer->view[0];
    *place = transfer->place[0];
    if (!mapped_elsewhere(transfer->mem[0]))
        return view;
    place->origin[0] += view->origin;
    return view->root;
}

static cl_int execute_map(struct transfer *transfer) {
    cl_mem mem = transfer->mem[0];
    cl_int error = CL_SUCCESS;
    if (transfer->map.flags & CL_MAP_WRITE_INVALIDATE_REGION)
        ; /* the program writes all of it */
    else if (mapped_elsewhere(mem))
        error = tutti_access_read(transfer->view[0], &transfer->place[0], transfer->map.pointer,
                                  &transfer->place[1], &transfer->region);
    else
        error = tutti_access_pull(transfer->view[0], &transfer->place[0], &transfer->region);
    if (error == CL_SUCCESS && map_writes(transfer->map.flags)) {
        struct tutti_place place;
        struct tutti_view *view = mapped_view(transfer, &place);
        if (!tutti_view_add_mapped(view, &place, &transfer->region))
            error = CL_OUT_OF_HOST_MEMORY;
    }
    return error;
}

static void note_map(struct transfer *transfer, const struct tutti_map *map, bool written) {
    static const struct tutti_place start;
    const struct tutti_view *view = transfer->mem[0]->view; /* it is pinned */
    transfer->writes = map_writes(map->flags);
    transfer->place[0] = map->place;
    transfer->place[1] = tutti_view_at_home(view, &start); /* of the pointer */
    transfer->region = map->region;
    transfer->map.pointer = map->pointer;
    transfer->map.flags = map->flags;
    note_host(transfer, map->pointer, written);
}

struct tutti_command *tutti_transfer_map(cl_mem mem, const struct tutti_map *map) {
    struct transfer *transfer = create(execute_map, prepare_read, mem, NULL);
    if (!transfer)
        return NULL;
    note_map(transfer, map, true);
    return &transfer->command;
}

static bool prepare_unmap(struct transfer *transfer) {
    struct tutti_view *view = take(transfer, 0);
    if (!map_writes(transfer->map.flags)) {
        tutti_acquisition_add(&transfer->acquisition, view, TUTTI_READS);
        return true;
    }
    if (!tutti_coherence_write(view, first_byte(transfer, 0), end_byte(transfer, 0), true))
        return false;
    view->defined = true;
    tutti_acquisition_add(&transfer->acquisition, view, TUTTI_WRITES);
    return true;
}

static cl_int execute_unmap(struct transfer *transfer) {
    cl_mem mem = transfer->mem[0];
    if (!map_writes(transfer->map.flags))
        return CL_SUCCESS;
    cl_int error =
        mapped_elsewhere(mem)
            ? tutti_access_write(transfer->view[0], &transfer->place[0], transfer->map.pointer,
                                 &transfer->place[1], &transfer->region)
            : tutti_access_push(transfer->view[0], &transfer->place[0], &transfer->region);
    struct tutti_place place;
    struct tutti_view *view = mapped_view(transfer, &place);
    tutti_view_remove_mapped(view, &place, &transfer->region);
    return error;
}

static void destroy_unmap(struct tutti_command *command) {
    tutti_version_unpin(((struct transfer *)command)->mem[0]);
    destroy(command);
}

struct tutti_command *tutti_transfer_unmap(cl_mem mem, const struct tutti_map *map) {
    struct transfer *transfer = create(execute_unmap, prepare_unmap, mem, NULL);
    if (!transfer)
        return NULL;
    transfer->command.destroy = destroy_unmap;
    note_map(transfer, map, false);
    return &transfer->command;
}

/* Room for `count` memory objects in the transfer and its acquisition. */
static bool take_mems(struct transfer *transfer, cl_uint count, const cl_mem *mems) {
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

static bool prepare_migrate(struct transfer *transfer) {
    for (cl_uint i = 0; i < transfer->mem_count; i++) {
        struct tutti_view *view = take_of_many(transfer, i);
        if (!tutti_coherence_read(view, 0, view->size))
            return false;
        tutti_acquisition_add(&transfer->acquisition, view,
                              transfer->to_host ? TUTTI_HOME_READS : TUTTI_READS);
    }
    return true;
}

static cl_int execute_nothing(struct transfer *transfer) {
    (void)transfer;
    return CL_SUCCESS;
}

struct tutti_command *tutti_transfer_migrate(cl_uint count, const cl_mem *mems, bool to_host) {
    struct transfer *transfer = create(execute_nothing, prepare_migrate, NULL, NULL);
    if (!transfer)
        return NULL;
    transfer->to_host = to_host;
    if (!take_mems(transfer, count, mems)) {
        destroy(&transfer->command);
        return NULL;
    }
    return &transfer->command;
}

static void destroy_native(struct tutti_command *command) {
    struct transfer *transfer = (struct transfer *)command;
    free(transfer->native.arguments);
    free(transfer->native.places);
    destroy(command);
}

static bool prepare_native(struct transfer *transfer) {
    for (cl_uint i = 0; i < transfer->mem_count; i++) {
        struct tutti_view *view = take_of_many(transfer, i);
        if (!tutti_coherence_write(view, 0, view->size, false))
            return false;
        view->defined = true;
        tutti_acquisition_add(&transfer->acquisition, view, TUTTI_HOME_WRITES);
    }
    return true;
}

static cl_int execute_native(struct transfer *transfer) {
    for (cl_uint i = 0; i < transfer->mem_count; i++) {
        void *home = tutti_view_home(transfer->views[i]);
        if (!home)
            return CL_OUT_OF_HOST_MEMORY;
        memcpy((char *)transfer->native.arguments + transfer->native.places[i], &home,
               sizeof(home));
    }
    transfer->native.function(transfer->native.arguments);
    return CL_SUCCESS;
}

struct tutti_command *tutti_transfer_native(const struct tutti_native *native) {
    struct transfer *transfer = create(execute_native, prepare_native, NULL, NULL);
    if (!transfer)
        return NULL;
    transfer->command.destroy = destroy_native;
    /* It may look at, and change, all memory that other commands of its queue use on the host. */
    transfer->command.host = (const char *)1;
    transfer->command.host_size = SIZE_MAX - 1;
    transfer->command.host_written = true;
    transfer->writes = true;
    transfer->native.function = native->function;
    if (native->argument_bytes)
        transfer->native.arguments = malloc(native->argument_bytes);
    transfer->native.places = calloc(native->mem_count + 1, sizeof(*transfer->native.places));
    if ((native->argument_bytes && !transfer->native.arguments) || !transfer->native.places ||
        !take_mems(transfer, native->mem_count, native->mems)) {
        destroy_native(&transfer->command);
        return NULL;
    }
    if (native->argument_bytes)
        memcpy(transfer->native.arguments, native->arguments, native->argument_bytes);
    for (cl_uint i = 0; i < native->mem_count; i++)
        transfer->native.places[i] =
            (size_t)((const char *)native->places[i] - (const char *)native->arguments);
    return &transfer->command;
}
