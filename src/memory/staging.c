/* SPDX-License-Identifier: MIT */
#include "memory/staging.h"

#include "memory/pinned.h"
#include "memory/transfer_path.h"
#include "sched/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

/*
 * Chunks are cut so that each thread gets two, down to this: a driver's command, and waking a
 * thread, cost what moving some hundred kilobytes does.
 */
#define SMALLEST_CHUNK ((size_t)256 << 10)

/* To wake a thread costs what one copies in that time; others may want it more. */
#define WORTH_WAKING ((size_t)2 << 20)

struct run {
    const struct tutti_staging *staging; /* NULL: both ends are host memory */
    const struct tutti_place *there, *here;
    const struct tutti_region *region;
    char *memory, *other; /* `other`: where `there` is, in host memory */
    struct tutti_cut cut;
    bool streams; /* what is written in host memory passes the caches */
    atomic_size_t next;
    atomic_int error;
    pthread_mutex_t lock; /* guards `helping` */
    pthread_cond_t done;
    unsigned helping;
};

struct helper {
    struct tutti_job job;
    struct run *run;
};

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* A chunk on its way: its places, and the page-locked memory that it goes through. */
struct chunk {
    struct tutti_region part;
    struct tutti_place there, here, packed;
    char *slot;
    cl_event event; /* NULL: none under way */
};

/* Takes the next chunk; false when there is none, or an error. */
static bool next_chunk(struct run *run, struct chunk *chunk) {
    size_t index, offset[3];
    if (atomic_load(&run->error) != CL_SUCCESS ||
        (index = atomic_fetch_add(&run->next, 1)) >= run->cut.count)
        return false;
    chunk->part = tutti_cut_part(&run->cut, run->region, index, offset);
    chunk->packed = tutti_place_linear(0, chunk->part.size[0]);
    chunk->packed.slice_pitch = chunk->part.size[0] * chunk->part.size[1];
    chunk->there = tutti_place_moved(run->there, offset);
    chunk->here = tutti_place_moved(run->here, offset);
    return true;
}

/* To a page-locked slot: it is used again soon. */
static void start_chunk(struct run *run, struct chunk *chunk) {
    const struct tutti_staging *staging = run->staging;
    if (staging->to_device)
        tutti_region_copy(chunk->slot, &chunk->packed, run->memory, &chunk->here, &chunk->part);
    cl_int error = staging->start(staging, &chunk->there, chunk->slot, &chunk->packed, &chunk->part,
                                  &chunk->event);
    if (error == CL_SUCCESS)
        return;
    chunk->event = NULL;
    atomic_store(&run->error, error);
}

/* In host memory; `packed` places may be anywhere. */
static void copy_part(const struct run *run, const struct chunk *chunk, const char *source,
                      const struct tutti_place *from) {
    if (run->streams)
        tutti_region_stream(run->memory, &chunk->here, source, from, &chunk->part);
    else
        tutti_region_copy(run->memory, &chunk->here, source, from, &chunk->part);
}

/* If it is under way. */
static void end_chunk(struct run *run, struct chunk *chunk) {
    const struct tutti_staging *staging = run->staging;
    if (!chunk->event)
        return;
    cl_int error = staging->wait(staging, chunk->event);
    chunk->event = NULL;
    if (error != CL_SUCCESS)
        atomic_store(&run->error, error);
    else if (!staging->to_device)
        copy_part(run, chunk, chunk->slot, &chunk->packed);
}

static size_t slot_bytes(void) {
    const struct tutti_staging_shape *shape = tutti_transfer_path_shape();
    return shape->slots * shape->chunk;
}

/* Each thread has page-locked memory for some chunks: it copies one while the others move. */
static void stage_chunks(struct run *run, struct tutti_pinned *pinned) {
    const struct tutti_staging_shape *shape = tutti_transfer_path_shape();
    struct chunk chunks[TUTTI_MOST_STAGING_SLOTS];
    size_t turn = 0;
    for (size_t i = 0; i < shape->slots; i++) {
        chunks[i].slot = (char *)tutti_pinned_bytes(pinned) + i * shape->chunk;
        chunks[i].event = NULL;
    }
    for (;; turn = (turn + 1) % shape->slots) {
        end_chunk(run, &chunks[turn]);
        if (!next_chunk(run, &chunks[turn]))
            break;
        start_chunk(run, &chunks[turn]);
    }
    for (size_t i = 1; i < shape->slots; i++)
        end_chunk(run, &chunks[(turn + i) % shape->slots]);
    tutti_pinned_free(pinned);
}

static void copy_chunks(struct run *run) {
    struct chunk chunk;
    while (next_chunk(run, &chunk))
        copy_part(run, &chunk, run->other, &chunk.there);
}

static void help(struct tutti_job *job) {
    struct helper *helper = (struct helper *)(void *)job;
    struct run *run = helper->run;
    struct tutti_pinned *slots = run->staging ? tutti_pinned_allocate(slot_bytes()) : NULL;
    if (slots) /* else the others do it */
        stage_chunks(run, slots);
    else if (!run->staging)
        copy_chunks(run);
    pthread_mutex_lock(&run->lock);
    if (--run->helping == 0)
        pthread_cond_signal(&run->done);
    pthread_mutex_unlock(&run->lock);
}

/* The caller's thread takes part, with its own slots. Helpers that wake too late are not needed. */
static cl_int run_all(struct run *run, unsigned threads, struct tutti_pinned *slots) {
    const struct tutti_staging_shape *shape = tutti_transfer_path_shape();
    struct helper helpers[TUTTI_MOST_STAGING_THREADS];
    size_t bytes = tutti_region_bytes(run->region), chunk = bytes / (2 * threads);
    chunk -= chunk % SMALLEST_CHUNK; /* so that no pixel is cut */
    run->cut = tutti_region_cut(
        run->region, smaller(chunk < SMALLEST_CHUNK ? SMALLEST_CHUNK : chunk, shape->chunk));
    run->streams = bytes >= shape->stream;
    unsigned others = (unsigned)smaller(threads, run->cut.count) - 1;
    run->helping = others;
    pthread_mutex_init(&run->lock, NULL);
    pthread_cond_init(&run->done, NULL);
    for (unsigned i = 0; i < others; i++) {
        helpers[i] = (struct helper){.job.run = help, .run = run};
        tutti_pool_run(&helpers[i].job);
    }
    if (run->staging)
        stage_chunks(run, slots);
    else
        copy_chunks(run);
    unsigned cancelled = 0;
    for (unsigned i = others; i > 0 && tutti_pool_cancel(&helpers[i - 1].job); i--)
        cancelled++;
    pthread_mutex_lock(&run->lock);
    run->helping -= cancelled;
    while (run->helping)
        pthread_cond_wait(&run->done, &run->lock);
    pthread_mutex_unlock(&run->lock);
    pthread_mutex_destroy(&run->lock);
    pthread_cond_destroy(&run->done);
    return atomic_load(&run->error);
}

/*
 * Transfers begin in order, as long as there is a core for each of their threads: with more, all of
 * them would end late, and their threads wait for each other in the driver.
 */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t left;
    unsigned long next, served; /* who comes, and who may enter next */
    unsigned threads;           /* of those that are inside */
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .left = PTHREAD_COND_INITIALIZER};

static void enter(unsigned threads) {
    unsigned cores = tutti_transfer_path_cores();
    pthread_mutex_lock(&gate.lock);
    unsigned long turn = gate.next++;
    while (turn != gate.served || (gate.threads && gate.threads + threads > cores))
        pthread_cond_wait(&gate.left, &gate.lock);
    gate.served++;
    gate.threads += threads;
    pthread_cond_broadcast(&gate.left);
    pthread_mutex_unlock(&gate.lock);
}

static void leave(unsigned threads) {
    pthread_mutex_lock(&gate.lock);
    gate.threads -= threads;
    pthread_cond_broadcast(&gate.left);
    pthread_mutex_unlock(&gate.lock);
}

cl_int tutti_staging_run(const struct tutti_staging *staging, unsigned threads,
                         const struct tutti_place *there, void *memory,
                         const struct tutti_place *here, const struct tutti_region *region) {
    struct run run = {
        .staging = staging, .there = there, .here = here, .region = region, .memory = memory};
    threads = (unsigned)smaller(threads, tutti_region_bytes(region) / WORTH_WAKING + 1);
    enter(threads);
    struct tutti_pinned *slots = tutti_pinned_allocate(slot_bytes());
    cl_int error = slots ? run_all(&run, threads, slots) : CL_OUT_OF_HOST_MEMORY;
    leave(threads);
    return error;
}

void tutti_staging_copy(void *target, const struct tutti_place *to, const void *source,
                        const struct tutti_place *from, const struct tutti_region *region) {
    size_t bytes = tutti_region_bytes(region);
    unsigned threads = tutti_transfer_path_copy_threads(bytes);
    struct run run = {.there = from,
                      .here = to,
                      .region = region,
                      .memory = target,
                      .other = (void *)(uintptr_t)source};
    if (threads)
        run_all(&run, threads, NULL);
    else if (bytes >= tutti_transfer_path_shape()->stream)
        tutti_region_stream(target, to, source, from, region);
    else
        tutti_region_copy(target, to, source, from, region);
}
