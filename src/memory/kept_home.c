/* SPDX-License-Identifier: MIT */
#include "memory/kept_home.h"

#include "memory/block.h"
#include "recycler.h"

#include <stdlib.h>

#define LARGEST ((size_t)32 << 10) /* bytes; for more the memory itself is most of the price */
#define SHELVES 64                 /* by a hash of the size */
#define MOST 16                    /* on a shelf */

struct kept {
    struct kept *next;
    size_t size;
    void *home;
    struct tutti_storage *real;
    unsigned made;
};

static struct shelf {
    pthread_mutex_t lock; /* guards what follows */
    struct kept *first;   /* the last one kept, which may still be in a cache */
    unsigned count;
} shelves[SHELVES] = {[0 ... SHELVES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

static struct shelf *shelf_of(size_t size) { return &shelves[(size * 0x9e3779b97f4a7c15u) >> 58]; }

/* A buffer at home, in memory of ours that is like that of any other buffer as large. */
static bool is_plain(const struct tutti_view *view) {
    return TUTTI_RECYCLES && view->at_home && view->shape.type == 0 && !view->home_is_users &&
           !view->pinned && !view->svm && view->size <= LARGEST;
}

/* Takes it out. With the shelf's lock. */
static struct kept *take(struct shelf *shelf, struct kept **link) {
    struct kept *kept = *link;
    *link = kept->next;
    shelf->count--;
    return kept;
}

/* NULL is allowed. */
static void destroy(struct kept *kept) {
    static const struct tutti_shape plain;
    const struct tutti_device_list *list = tutti_devices();
    if (!kept)
        return;
    for (unsigned d = 0; d < list->count && kept->real; d++)
        tutti_storage_release(list->device[d], &plain, kept->size, &kept->real[d]);
    free(kept->real);
    tutti_block_free(kept->home, kept->size);
    tutti_recycler_give(kept);
}

bool tutti_kept_home_take(struct tutti_view *view) {
    if (!is_plain(view))
        return false;
    struct shelf *shelf = shelf_of(view->size);
    pthread_mutex_lock(&shelf->lock);
    struct kept **link = &shelf->first;
    while (*link && (*link)->size != view->size)
        link = &(*link)->next;
    struct kept *kept = *link ? take(shelf, link) : NULL;
    pthread_mutex_unlock(&shelf->lock);
    if (!kept)
        return false;
    view->home = kept->home;
    view->real = kept->real;
    atomic_store_explicit(&view->made, (unsigned short)kept->made, memory_order_release);
    tutti_recycler_give(kept);
    return true;
}

bool tutti_kept_home_give(struct tutti_view *view) {
    struct kept *kept = is_plain(view) && view->home ? tutti_recycler_take(sizeof(*kept)) : NULL,
                *oldest = NULL;
    if (!kept)
        return false;
    *kept = (struct kept){.size = view->size,
                          .home = view->home,
                          .real = view->real,
                          .made = atomic_load_explicit(&view->made, memory_order_relaxed)};
    view->home = NULL;
    view->real = NULL;
    struct shelf *shelf = shelf_of(kept->size);
    pthread_mutex_lock(&shelf->lock);
    kept->next = shelf->first;
    shelf->first = kept;
    if (++shelf->count > MOST) {
        struct kept **link = &shelf->first;
        while ((*link)->next)
            link = &(*link)->next;
        oldest = take(shelf, link);
    }
    pthread_mutex_unlock(&shelf->lock);
    destroy(oldest);
    return true;
}

void tutti_kept_home_trim(void) {
    for (unsigned i = 0; i < SHELVES; i++) {
        struct shelf *shelf = &shelves[i];
        pthread_mutex_lock(&shelf->lock);
        struct kept *kept = shelf->first;
        shelf->first = NULL;
        shelf->count = 0;
        pthread_mutex_unlock(&shelf->lock);
        while (kept) {
            struct kept *next = kept->next;
            destroy(kept);
            kept = next;
        }
    }
}
