/* SPDX-License-Identifier: MIT */
#include "memory/staging.h"

#include "memory/pinned.h"
#include "memory/transfer_path.h"
#include "sched/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

/* Threads beyond this gain nothing (transfer_path.c). */
#define MOST_THREADS 16

/*
 * Chunks are as large as this where each thread gets two: a driver's command, and waking a thread,
 * cost what moving some hundred kilobytes does.
 */
#define LARGEST_CHUNK ((size_t)4 << 20)
#define SMALLEST_CHUNK ((size_t)1 << 20)

struct run {
    const struct tutti_staging *staging; /* NULL: both ends are host memory */
    const struct tutti_place *there, *here;
    const struct tutti_region *region;
    char *memory, *other;      /* `other`: where `there` is, in host memory */
    size_t rows, columns;      /* of a chunk: whole rows, or one row's part */
    size_t per_row, per_slice; /* chunks */
    size_t chunks;
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

/* How to cut: as many whole rows as fit, or rows in pieces. */
static void cut(struct run *run, size_t chunk) {
    const size_t *size = run->region->size;
    run->columns = smaller(size[0], chunk);
    run->rows = size[0] > chunk ? 1 : smaller(size[1], chunk / size[0]);
    run->per_row = (size[0] + run->columns - 1) / run->columns;
    run->per_slice = (size[1] + run->rows - 1) / run->rows * run->per_row;
    run->chunks = run->per_slice * size[2];
}

static struct tutti_place moved(const struct tutti_place *place, size_t x, size_t y, size_t z) {
    struct tutti_place result = *place;
    result.origin[0] += x;
    result.origin[1] += y;
    result.origin[2] += z;
    return result;
}

static cl_int move_chunk(const struct run *run, size_t index, char *slot) {
    const size_t *size = run->region->size;
    size_t z = index / run->per_slice, in_slice = index % run->per_slice;
    size_t y = in_slice / run->per_row * run->rows, x = in_slice % run->per_row * run->columns;
    struct tutti_region part = {
        {smaller(run->columns, size[0] - x), smaller(run->rows, size[1] - y), 1}};
    struct tutti_place packed = {{0, 0, 0}, part.size[0], part.size[0] * part.size[1]};
    struct tutti_place there = moved(run->there, x, y, z), here = moved(run->here, x, y, z);
    if (!run->staging) {
        tutti_region_copy(run->memory, &here, run->other, &there, &part);
        return CL_SUCCESS;
    }
    if (run->staging->to_device)
        tutti_region_copy(slot, &packed, run->memory, &here, &part);
    cl_int error = run->staging->move(run->staging, &there, slot, &packed, &part);
    if (error == CL_SUCCESS && !run->staging->to_device)
        tutti_region_copy(run->memory, &here, slot, &packed, &part);
    return error;
}

/* Each thread has a slot of page-locked memory. */
static void move_chunks(struct run *run, struct tutti_pinned *slot) {
    size_t index;
    while (atomic_load(&run->error) == CL_SUCCESS &&
           (index = atomic_fetch_add(&run->next, 1)) < run->chunks) {
        cl_int error = move_chunk(run, index, slot ? tutti_pinned_bytes(slot) : NULL);
        if (error != CL_SUCCESS)
            atomic_store(&run->error, error);
    }
    tutti_pinned_free(slot);
}

static void help(struct tutti_job *job) {
    struct helper *helper = (struct helper *)(void *)job;
    struct run *run = helper->run;
    struct tutti_pinned *slot = run->staging ? tutti_pinned_allocate(LARGEST_CHUNK) : NULL;
    if (slot || !run->staging) /* else the others do it */
        move_chunks(run, slot);
    pthread_mutex_lock(&run->lock);
    if (--run->helping == 0)
        pthread_cond_signal(&run->done);
    pthread_mutex_unlock(&run->lock);
}

/* The caller's thread takes part, with its own slot. */
static cl_int run_all(struct run *run, unsigned threads, struct tutti_pinned *slot) {
    struct helper helpers[MOST_THREADS];
    size_t chunk = tutti_region_bytes(run->region) / (2 * threads);
    chunk -= chunk % SMALLEST_CHUNK; /* so that no pixel is cut */
    cut(run, chunk < SMALLEST_CHUNK ? SMALLEST_CHUNK : smaller(chunk, LARGEST_CHUNK));
    unsigned others = (unsigned)smaller(threads, run->chunks) - 1;
    run->helping = others < MOST_THREADS ? others : MOST_THREADS;
    pthread_mutex_init(&run->lock, NULL);
    pthread_cond_init(&run->done, NULL);
    for (unsigned i = run->helping; i > 0; i--) {
        helpers[i - 1] = (struct helper){.job.run = help, .run = run};
        tutti_pool_run(&helpers[i - 1].job);
    }
    move_chunks(run, slot);
    pthread_mutex_lock(&run->lock);
    while (run->helping)
        pthread_cond_wait(&run->done, &run->lock);
    pthread_mutex_unlock(&run->lock);
    pthread_mutex_destroy(&run->lock);
    pthread_cond_destroy(&run->done);
    return atomic_load(&run->error);
}

cl_int tutti_staging_run(const struct tutti_staging *staging, unsigned threads,
                         const struct tutti_place *there, void *memory,
                         const struct tutti_place *here, const struct tutti_region *region) {
    struct run run = {
        .staging = staging, .there = there, .here = here, .region = region, .memory = memory};
    struct tutti_pinned *slot = tutti_pinned_allocate(LARGEST_CHUNK);
    return slot ? run_all(&run, threads, slot) : CL_OUT_OF_HOST_MEMORY;
}

void tutti_staging_copy(void *target, const struct tutti_place *to, const void *source,
                        const struct tutti_place *from, const struct tutti_region *region) {
    unsigned threads = tutti_transfer_path_copy_threads(tutti_region_bytes(region));
    struct run run = {.there = from,
                      .here = to,
                      .region = region,
                      .memory = target,
                      .other = (void *)(uintptr_t)source};
    if (threads)
        run_all(&run, threads, NULL);
    else
        tutti_region_copy(target, to, source, from, region);
}
