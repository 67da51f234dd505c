/* SPDX-License-Identifier: MIT */
#include "memory/stream.h"

#include "memory/pinned.h"
#include "sched/link.h"

#include <pthread.h>

/* Small enough that the second link does not wait long, and worth a command of each driver. */
#define LARGEST_CHUNK ((size_t)4 << 20)
#define SMALLEST_CHUNK ((size_t)1 << 20)
#define MOST 8 /* chunks on their way at once, */
#define FEW 4  /* and of those that share memory, which is the shorter to lock */

struct stream {
    const struct tutti_copy_end *source, *target;
    struct tutti_place from, to;
    char *memory;
    const struct tutti_place *here; /* NULL: each passage has a chunk of the memory */
    const struct tutti_region *region;
    struct tutti_cut cut;
    size_t at_once;
    cl_int error; /* the first one; then no further chunk is begun */
};

/* A chunk on its way. */
struct passage {
    struct tutti_region part;
    size_t offset[3];
    struct tutti_place here;
    cl_event down, up; /* NULL: none under way */
};

static void start(struct stream *stream, struct passage *passage, bool up, cl_event *event) {
    const struct tutti_copy_end *end = up ? stream->target : stream->source;
    struct tutti_place there = tutti_place_moved(up ? &stream->to : &stream->from, passage->offset);
    if (stream->error == CL_SUCCESS)
        stream->error = tutti_copy_start(end->view, end->copy, up, &there, stream->memory,
                                         &passage->here, &passage->part, event);
}

/* Chunk i is in that passage. */
static void enter(const struct stream *stream, struct passage *passage, size_t i) {
    passage->part = tutti_cut_part(&stream->cut, stream->region, i, passage->offset);
    passage->here = stream->here
                        ? tutti_place_moved(stream->here, passage->offset)
                        : tutti_place_linear(i % stream->at_once * stream->cut.chunk.size[0],
                                             passage->part.size[0]);
}

/* Chunk i begins to come down when its passage is free, and then chunk i - at_once + 1 to go up. */
static void move_all(struct stream *stream) {
    struct passage passages[MOST] = {{.down = NULL}};
    size_t count = stream->cut.count, at_once = stream->at_once;
    for (size_t i = 0; i < count + 2 * at_once; i++) {
        struct passage *p = &passages[i % at_once];
        tutti_copy_end(stream->target->copy, &p->up, &stream->error);
        if (i < count) {
            enter(stream, p, i);
            start(stream, p, false, &p->down);
        }
        size_t rising = i + 1 - at_once; /* beyond all chunks while there is none */
        if (rising >= count)
            continue;
        p = &passages[rising % at_once];
        tutti_copy_end(stream->source->copy, &p->down, &stream->error);
        start(stream, p, true, &p->up);
    }
}

static size_t chunk_of(const struct tutti_region *region) {
    size_t chunk = tutti_region_bytes(region) / MOST;
    chunk -= chunk % SMALLEST_CHUNK; /* so that no pixel is cut */
    return chunk > LARGEST_CHUNK ? LARGEST_CHUNK : chunk ? chunk : SMALLEST_CHUNK;
}

cl_int tutti_stream_copy(const struct tutti_copy_end *source, const struct tutti_copy_end *target,
                         char *memory, const struct tutti_place *here,
                         const struct tutti_region *region) {
    size_t bytes = tutti_region_bytes(region);
    if (!source->copy->mem || !target->copy->mem)
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    struct stream stream = {
        .source = source,
        .target = target,
        .from = tutti_view_packed(source->view, source->place),
        .to = tutti_view_packed(target->view, target->place),
        .memory = memory,
        .here = here,
        .region = region,
        .cut = tutti_region_cut(region, chunk_of(region)),
        .at_once = here ? MOST : FEW,
        .error = CL_SUCCESS,
    };
    const struct tutti_real_device *first = source->copy->device, *last = target->copy->device;
    tutti_history_move(source->view->history, first, TUTTI_DOWNLOAD, bytes);
    tutti_history_move(target->view->history, last, TUTTI_UPLOAD, bytes);
    tutti_link_begin(first, TUTTI_DOWNLOAD, bytes);
    tutti_link_begin(last, TUTTI_UPLOAD, bytes);
    move_all(&stream);
    tutti_link_end(last, TUTTI_UPLOAD, bytes);
    tutti_link_end(first, TUTTI_DOWNLOAD, bytes);
    return stream.error;
}

/*
 * One at a time from each device: it has the link, and others would lock memory of their own to
 * wait for it.
 */
static pthread_mutex_t passing[TUTTI_MAX_DEVICES] = {[0 ... TUTTI_MAX_DEVICES - 1] =
                                                         PTHREAD_MUTEX_INITIALIZER};

bool tutti_stream_pass(const struct tutti_copy_end *source, const struct tutti_copy_end *target,
                       const struct tutti_region *region, cl_int *error) {
    size_t bytes = tutti_region_bytes(region), chunk = chunk_of(region);
    size_t all = bytes < FEW * chunk ? bytes : FEW * chunk;
    pthread_mutex_t *own = &passing[source->copy->device->index];
    pthread_mutex_lock(own);
    struct tutti_pinned *ring = tutti_pinned_allocate(all);
    if (ring)
        *error = tutti_stream_copy(source, target, tutti_pinned_bytes(ring), NULL, region);
    tutti_pinned_free(ring);
    pthread_mutex_unlock(own);
    return ring != NULL;
}
