/* SPDX-License-Identifier: MIT */
#include "memory/staging.h"

#include "memory/pinned.h"
#include "memory/transfer_path.h"
#include "sched/pool.h"

#include <pthread.h>
#include <stdatomic.h>

/* Threads beyond this gain nothing (transfer_path.c). */
#define MOST_THREADS 16

struct run {
    const struct tutti_staging *staging;
    const struct tutti_place *there, *here;
    const struct tutti_region *region;
    char *memory;
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
    if (run->staging->to_device)
        tutti_region_copy(slot, &packed, run->memory, &here, &part);
    cl_int error = run->staging->move(run->staging, &there, slot, &packed, &part);
    if (error == CL_SUCCESS && !run->staging->to_device)
        tutti_region_copy(run->memory, &here, slot, &packed, &part);
    return error;
}

static void move_chunks(struct run *run, struct tutti_pinned *slot) {
    size_t index;
    while (atomic_load(&run->error) == CL_SUCCESS &&
           (index = atomic_fetch_add(&run->next, 1)) < run->chunks) {
        cl_int error = move_chunk(run, index, tutti_pinned_bytes(slot));
        if (error != CL_SUCCESS)
            atomic_store(&run->error, error);
    }
    tutti_pinned_free(slot);
}

static void help(struct tutti_job *job) {
    struct helper *helper = (struct helper *)(void *)job;
    struct run *run = helper->run;
    struct tutti_pinned *slot = tutti_pinned_allocate(TUTTI_CHUNK);
    if (slot) /* else the others do it */
        move_chunks(run, slot);
    pthread_mutex_lock(&run->lock);
    if (--run->helping == 0)
        pthread_cond_signal(&run->done);
    pthread_mutex_unlock(&run->lock);
}

cl_int tutti_staging_run(const struct tutti_staging *staging, unsigned threads,
                         const struct tutti_place *there, void *memory,
                         const struct tutti_place *here, const struct tutti_region *region) {
    struct tutti_pinned *slot = tutti_pinned_allocate(TUTTI_CHUNK);
    if (!slot)
        return CL_OUT_OF_HOST_MEMORY;
    struct run run = {.staging = staging,
                      .there = there,
                      .here = here,
                      .region = region,
                      .memory = memory,
                      .lock = PTHREAD_MUTEX_INITIALIZER,
                      .done = PTHREAD_COND_INITIALIZER};
    struct helper helpers[MOST_THREADS];
    /* Each thread gets two chunks at least, if they are not too small for the link then. */
    size_t bytes = tutti_region_bytes(region);
    size_t chunk = bytes / (2 * threads), least = (size_t)256 << 10;
    chunk -= chunk % least; /* so that no pixel is cut */
    cut(&run, chunk < least ? least : smaller(chunk, TUTTI_CHUNK));
    unsigned wanted = threads < run.chunks ? threads : (unsigned)run.chunks;
    run.helping = wanted - 1 < MOST_THREADS ? wanted - 1 : MOST_THREADS;
    for (unsigned i = run.helping; i > 0; i--) {
        helpers[i - 1] = (struct helper){.job.run = help, .run = &run};
        tutti_pool_run(&helpers[i - 1].job);
    }
    move_chunks(&run, slot);
    pthread_mutex_lock(&run.lock);
    while (run.helping)
        pthread_cond_wait(&run.done, &run.lock);
    pthread_mutex_unlock(&run.lock);
    pthread_mutex_destroy(&run.lock);
    pthread_cond_destroy(&run.done);
    return atomic_load(&run.error);
}
