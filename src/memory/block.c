/* SPDX-License-Identifier: MIT */
#include "memory/block.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGNMENT 128 /* long16 */
#define PAGE 4096u
#define LARGE ((size_t)128 << 10)
#define HUGE_FROM ((size_t)4 << 20) /* bytes; less has hardly one whole huge page */
#define KEPT_BLOCKS 16
#define KEPT_BYTES ((size_t)64 << 20)

static struct {
    pthread_mutex_t lock; /* guards all below */
    unsigned count;
    size_t bytes;
    struct {
        void *block;
        size_t size;
    } entry[KEPT_BLOCKS]; /* the oldest first */
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Takes entry i out. Lock held. */
static void *take(unsigned i) {
    void *block = kept.entry[i].block;
    kept.bytes -= kept.entry[i].size;
    kept.count--;
    memmove(&kept.entry[i], &kept.entry[i + 1], (kept.count - i) * sizeof(kept.entry[0]));
    return block;
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

void *tutti_block_allocate(size_t size) {
    void *block = NULL;
    if (size < LARGE)
        return posix_memalign(&block, ALIGNMENT, size) == 0 ? block : NULL;
    pthread_mutex_lock(&kept.lock);
    for (unsigned i = kept.count; i > 0 && !block; i--)
        if (kept.entry[i - 1].size == size)
            block = take(i - 1);
    pthread_mutex_unlock(&kept.lock);
    return block ? block : map(size);
}

void tutti_block_free(void *block, size_t size) {
    if (size < LARGE) {
        free(block);
        return;
    }
    if (!block)
        return;
    pthread_mutex_lock(&kept.lock);
    while (kept.count == KEPT_BLOCKS || (kept.count && kept.bytes + size > KEPT_BYTES)) {
        size_t old = kept.entry[0].size;
        unmap(take(0), old);
    }
    if (size <= KEPT_BYTES) {
        kept.entry[kept.count].block = block;
        kept.entry[kept.count].size = size;
        kept.count++;
        kept.bytes += size;
        block = NULL;
    }
    pthread_mutex_unlock(&kept.lock);
    if (block)
        unmap(block, size);
}
