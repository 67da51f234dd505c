/* SPDX-License-Identifier: MIT */
#include "memory/block.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ALIGNMENT 128 /* long16 */
#define PAGE 4096u
#define LARGE ((size_t)128 << 10)
#define HUGE_FROM ((size_t)4 << 20) /* bytes; less has hardly one whole huge page */
#define KEPT_BLOCKS 256
/*
 * Bytes that are kept: so many always, more only if blocks in use were as many at once; never above
 * this part of the machine's memory.
 */
#define KEPT_LEAST ((size_t)64 << 20)
#define KEPT_PART 16

static struct {
    pthread_mutex_t lock;    /* guards all below */
    size_t in_use, most_use; /* bytes of large blocks, and what they were at most */
    unsigned count;
    size_t bytes;
    struct kept {
        void *block;
        size_t size;
    } entry[KEPT_BLOCKS]; /* the oldest first */
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Takes entry i out. Lock held. */
static struct kept take(unsigned i) {
    struct kept entry = kept.entry[i];
    kept.bytes -= entry.size;
    kept.count--;
    memmove(&kept.entry[i], &kept.entry[i + 1], (kept.count - i) * sizeof(kept.entry[0]));
    return entry;
}

/* Lock held. */
static size_t may_keep(void) {
    static size_t most;
    if (most == 0)
        most = (size_t)sysconf(_SC_PHYS_PAGES) / KEPT_PART * (size_t)sysconf(_SC_PAGESIZE);
    size_t unused = kept.most_use - kept.in_use;
    size_t keep = unused > KEPT_LEAST ? unused : KEPT_LEAST;
    return keep < most ? keep : most;
}

/*
 * Where in its first page the next large block begins. A processor takes addresses that differ by
 * whole pages for the same one when it orders loads behind stores, and keeps them in the same few
 * lines of its nearest cache: kernels that stream several arrays of one size, each at the start of
 * a page, took up to 1.7 times as long.
 */
static size_t place_in_page(void) {
    static atomic_uint count;
    unsigned places = PAGE / ALIGNMENT, step = 11; /* no two of many neighbours lie close */
    return atomic_fetch_add(&count, 1) * step % places * ALIGNMENT;
}

static void *map(size_t size) {
    size_t place = place_in_page();
    char *pages = size <= SIZE_MAX - PAGE ? mmap(NULL, size + PAGE, PROT_READ | PROT_WRITE,
                                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                          : MAP_FAILED;
    if (pages == MAP_FAILED)
        return NULL;
    /* Linux may give them only to who asks: copies of 256 MiB are a tenth faster. */
    if (size >= HUGE_FROM)
        madvise(pages, size + PAGE, MADV_HUGEPAGE);
    return pages + place;
}

static void unmap(void *block, size_t size) {
    munmap((char *)block - (uintptr_t)block % PAGE, size + PAGE);
}

/* Gives the oldest kept blocks back until no more is kept than may be, or with `all` none is. */
static void give_back(bool all) {
    for (;;) {
        pthread_mutex_lock(&kept.lock);
        bool enough = kept.count == 0 || (!all && kept.bytes <= may_keep());
        struct kept oldest = enough ? (struct kept){0} : take(0);
        pthread_mutex_unlock(&kept.lock);
        if (enough)
            return;
        unmap(oldest.block, oldest.size);
    }
}

void tutti_block_trim(void) {
    pthread_mutex_lock(&kept.lock);
    kept.most_use = kept.in_use;
    pthread_mutex_unlock(&kept.lock);
    give_back(true);
}

static void note_in_use(size_t size) {
    kept.in_use += size;
    if (kept.most_use < kept.in_use)
        kept.most_use = kept.in_use;
}

static void *allocate_large(size_t size) {
    void *block = NULL;
    pthread_mutex_lock(&kept.lock);
    for (unsigned i = kept.count; i > 0 && !block; i--)
        if (kept.entry[i - 1].size == size)
            block = take(i - 1).block;
    if (block)
        note_in_use(size);
    pthread_mutex_unlock(&kept.lock);
    if (block)
        return block;
    block = map(size);
    if (!block) {
        give_back(true);
        block = map(size);
    }
    if (!block)
        return NULL;
    pthread_mutex_lock(&kept.lock);
    note_in_use(size);
    pthread_mutex_unlock(&kept.lock);
    give_back(false);
    return block;
}

static void free_large(void *block, size_t size) {
    struct kept oldest = {0};
    pthread_mutex_lock(&kept.lock);
    kept.in_use -= size;
    if (size > may_keep()) {
        oldest = (struct kept){block, size};
    } else {
        if (kept.count == KEPT_BLOCKS)
            oldest = take(0);
        kept.entry[kept.count++] = (struct kept){block, size};
        kept.bytes += size;
    }
    pthread_mutex_unlock(&kept.lock);
    if (oldest.block)
        unmap(oldest.block, oldest.size);
    give_back(false);
}

void *tutti_block_allocate(size_t size) {
    void *block = NULL;
    if (size >= LARGE)
        return allocate_large(size);
    return posix_memalign(&block, ALIGNMENT, size) == 0 ? block : NULL;
}

void tutti_block_free(void *block, size_t size) {
    if (size < LARGE)
        free(block);
    else if (block)
        free_large(block, size);
}
