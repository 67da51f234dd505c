/* SPDX-License-Identifier: MIT */
#include "memory/block.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGNMENT 128 /* long16 */
#define LARGE ((size_t)128 << 10)
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

void *tutti_block_allocate(size_t size) {
    void *block = NULL;
    if (size < LARGE)
        return posix_memalign(&block, ALIGNMENT, size) == 0 ? block : NULL;
    pthread_mutex_lock(&kept.lock);
    for (unsigned i = kept.count; i > 0 && !block; i--)
        if (kept.entry[i - 1].size == size)
            block = take(i - 1);
    pthread_mutex_unlock(&kept.lock);
    if (block)
        return block;
    block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return block == MAP_FAILED ? NULL : block;
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
        munmap(take(0), old);
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
        munmap(block, size);
}
