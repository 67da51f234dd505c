/* SPDX-License-Identifier: MIT */
#include "recycler.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST (TUTTI_RECYCLES ? (size_t)1024 : 0)
#define STEP ((size_t)64) /* bytes: sizes are multiples of it */
#define CLASSES 16
#define PILE 16        /* blocks that go from thread to thread together */
#define MOST_PILES 128 /* of a size, that no thread has */
#define PATIENCE 100   /* attempts to have a shelf for oneself */

/* Before the bytes, which its users may still look at. */
struct block {
    alignas(16) struct block *next; /* in its pile */
    struct block *below;            /* of a pile's first: that of another pile */
    unsigned size_class;            /* CLASSES: none, malloc's alone */
};

struct pile {
    struct block *first;
    unsigned count;
};

/* A thread's own: one that it takes from and gives to, and one that is full or empty. */
static _Thread_local struct {
    struct pile now[CLASSES], spare[CLASSES];
    bool known; /* its end will be told */
} own;

static struct shelf {
    pthread_mutex_t lock;
    struct block *top;
    unsigned count;
} shelves[CLASSES] = {[0 ... CLASSES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;

static void free_pile(struct block *block) {
    while (block) {
        struct block *next = block->next;
        free(block);
        block = next;
    }
}

static void thread_ends(void *unused) {
    (void)unused;
    for (unsigned c = 0; c < CLASSES; c++) {
        free_pile(own.now[c].first);
        free_pile(own.spare[c].first);
        own.now[c] = own.spare[c] = (struct pile){NULL, 0};
    }
    own.known = false;
}

static void make_key(void) { has_key = pthread_key_create(&key, thread_ends) == 0; }

/* False: the thread must keep nothing. */
static bool know(void) {
    pthread_once(&once, make_key);
    own.known = has_key && pthread_setspecific(key, &own) == 0;
    return own.known;
}

/* Another thread is soon done there, unless it lost its core: that is not waited for. */
static bool reach(struct shelf *shelf) {
    for (unsigned i = 0; i < PATIENCE; i++)
        if (pthread_mutex_trylock(&shelf->lock) == 0)
            return true;
    return false;
}

static struct block *take_pile(unsigned c) {
    struct shelf *shelf = &shelves[c];
    if (!reach(shelf))
        return NULL;
    struct block *first = shelf->top;
    if (first) {
        shelf->top = first->below;
        shelf->count--;
    }
    pthread_mutex_unlock(&shelf->lock);
    return first;
}

static void give_pile(unsigned c, struct block *first) {
    struct shelf *shelf = &shelves[c];
    if (reach(shelf)) {
        bool room = shelf->count < MOST_PILES;
        if (room) {
            first->below = shelf->top;
            shelf->top = first;
            shelf->count++;
        }
        pthread_mutex_unlock(&shelf->lock);
        if (room)
            return;
    }
    free_pile(first);
}

/* NULL: none is there. */
static struct block *find(unsigned c) {
    struct pile *now = &own.now[c];
    if (!now->first && own.spare[c].first) {
        *now = own.spare[c];
        own.spare[c] = (struct pile){NULL, 0};
    } else if (!now->first && (own.known || know())) {
        now->first = take_pile(c);
        now->count = now->first ? PILE : 0;
    }
    struct block *block = now->first;
    if (block) {
        now->first = block->next;
        now->count--;
    }
    return block;
}

void *tutti_recycler_take(size_t size) {
    unsigned c = size == 0 || size > LARGEST ? CLASSES : (unsigned)((size - 1) / STEP);
    struct block *block = c < CLASSES ? find(c) : NULL;
    if (!block) {
        block = malloc(sizeof(*block) + (c < CLASSES ? (c + 1) * STEP : size));
        if (!block)
            return NULL;
        block->size_class = c;
    }
    return block + 1;
}

void *tutti_recycler_take_zeroed(size_t size) {
    void *bytes = tutti_recycler_take(size);
    return bytes ? memset(bytes, 0, size) : NULL;
}

void tutti_recycler_give(void *bytes) {
    struct block *block = bytes ? (struct block *)bytes - 1 : NULL;
    if (!block)
        return;
    unsigned c = block->size_class;
    if (c >= CLASSES || !(own.known || know())) {
        free(block);
        return;
    }
    struct pile *now = &own.now[c], *spare = &own.spare[c];
    if (now->count == PILE) {
        if (spare->first)
            give_pile(c, spare->first);
        *spare = *now;
        *now = (struct pile){NULL, 0};
    }
    block->next = now->first;
    now->first = block;
    now->count++;
}
