/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_TRANSFER_H
#define TUTTI_TRANSFER_H

#include "memory/acquisition.h"
#include "memory/version.h"
#include "sched/batch.h"
#include "sched/device_task.h"
#include "sched/transfer_command.h"

/*
 * What the kinds of transfer commands share: each acquires the storage of its memory objects in
 * dispatch order, works on it in a host thread, and lets go of it.
 */
#define TUTTI_LARGEST_PATTERN 128 /* double16 */

struct tutti_transfer {
    union {
        struct tutti_command command;
        struct tutti_device_task task; /* see tutti_transfer_offer */
    };
    struct tutti_device_use direct[2];
    bool (*go_direct)(struct tutti_transfer *transfer); /* NULL: it never is a device task */
    struct tutti_acquisition acquisition;
    bool (*prepare)(
        struct tutti_transfer *transfer); /* coherence, in dispatch order; may be NULL */
    cl_int (*execute)(struct tutti_transfer *transfer);

    cl_mem given[2]; /* retained; [1]: the target of a copy */
    cl_mem mem[2];   /* the same; once dispatched, the buffer of what is a window (window.h) */
    bool writes;     /* its memory objects; of a copy the target is always written */
    bool later;      /* … by the program, once it is over: a map for writing */
    enum { TUTTI_NO_MAP, TUTTI_MAP, TUTTI_UNMAP } mapping; /* what there is still to do of it */
    struct tutti_view *view[2];                            /* their storage, from the dispatch on */
    struct tutti_place place[2]; /* in mem[0]; in the host's memory or in mem[1] */
    struct tutti_region region;
    union {
        void *target;
        const void *source;
        struct {
            char bytes[TUTTI_LARGEST_PATTERN];
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
    bool in_call;         /* version.h: its views are */
    bool pins;            /* it ends the pin of its map (version.h), and has not yet */
    enum tutti_user user; /* as what it takes storage */
};

/*
 * A command on one or two memory objects (NULL: none), which it retains; NULL when out of memory.
 */
struct tutti_transfer *tutti_transfer_create(cl_int (*execute)(struct tutti_transfer *),
                                             bool (*prepare)(struct tutti_transfer *), cl_mem first,
                                             cl_mem second);
/* Adds `count` memory objects; false when out of memory. */
bool tutti_transfer_add_mems(struct tutti_transfer *transfer, cl_uint count, const cl_mem *mems);
void tutti_transfer_destroy(struct tutti_command *command);

/* The bytes between the first and the last one touched, in mem[i] and in the host's memory. */
static inline size_t tutti_transfer_first(const struct tutti_transfer *transfer, int i) {
    return tutti_place_first(&transfer->place[i]);
}

static inline size_t tutti_transfer_end(const struct tutti_transfer *transfer, int i) {
    return tutti_place_end(&transfer->place[i], &transfer->region);
}

/* The command uses the program's memory at place[1] from `base` on. */
void tutti_transfer_note_host(struct tutti_transfer *transfer, const void *base, bool written);

/* The storage of mem[0], taken for the command. By the dispatching thread. */
struct tutti_view *tutti_transfer_take(struct tutti_transfer *transfer);

/*
 * A read, write, map or unmap that is filled, or a fill or copy (within), may be executed as a
 * device task: what happens is decided when it is dispatched. `go_direct` says true if it is under
 * way then.
 */
void tutti_transfer_offer(struct tutti_transfer *transfer);
void tutti_transfer_offer_within(struct tutti_transfer *transfer);

/* What batches take for its µs, but for its bytes. */
#define TUTTI_TRANSFER_TIME 5.0
#define TUTTI_BYTES_AT_HOME 20000.0 /* per µs, between places in the host's memory, */
#define TUTTI_BYTES_WITHIN 2e6      /* and within a device with memory of its own */

static inline double tutti_transfer_time_within(size_t size) {
    return TUTTI_TRANSFER_TIME + (double)size / TUTTI_BYTES_WITHIN;
}

/* That at home, at most as much as is short for its neighbours (batch.h). */
static inline double tutti_transfer_time_at_home(size_t size) {
    double time = TUTTI_TRANSFER_TIME + (double)size / TUTTI_BYTES_AT_HOME;
    return time < TUTTI_BRIEF ? time : TUTTI_BRIEF;
}

/* Does the one device there is do it, among its kernels, in a thread of its own (direct.h)? */
bool tutti_transfer_is_streamed(const struct tutti_transfer *transfer);

/*
 * Such a task whose bytes the host moves, after what is on the device's queue already: `work` does,
 * or is NULL.
 */
cl_int tutti_transfer_by_host(struct tutti_transfer *transfer,
                              const struct tutti_real_device *device, cl_command_queue queue,
                              void (*work)(const struct tutti_transfer *transfer,
                                           const struct tutti_storage *const *storage),
                              const struct tutti_storage *const *storage);

/*
 * Does who executes kernels in the call do it among those, where no other thread is to be woken for
 * as long as it takes (crew.h)?
 */
bool tutti_transfer_is_crews(const struct tutti_transfer *transfer);

/* Of a map or unmap that was granted: are there no bytes to move, nor anything to wait for? */
bool tutti_transfer_moves_nothing(const struct tutti_transfer *transfer);
/* Is it a migration whose objects, which were granted, are there with all their bytes? */
bool tutti_transfer_is_settled(const struct tutti_transfer *transfer);

/* Of an unmap: its storage may be replaced from now on. Once, if it is called again. */
void tutti_transfer_unpin(struct tutti_transfer *transfer);

/* Of a map that brought its bytes: notes which of them the program may write. */
cl_int tutti_transfer_begin_map(const struct tutti_transfer *transfer);
/* Of an unmap: are there such bytes? It forgets them, once. */
bool tutti_transfer_is_mapped(const struct tutti_transfer *transfer);
void tutti_transfer_end_map(struct tutti_transfer *transfer);

/* `prepare` of what reads the place of mem[0]: takes its storage, which is brought up to date. */
bool tutti_transfer_prepare_read(struct tutti_transfer *transfer);

#endif
