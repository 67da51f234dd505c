/* SPDX-License-Identifier: MIT */
#include "memory/locked_pages.h"

#include "clock.h"
#include "env.h"
#include "log.h"
#include "memory/page_watch.h"
#include "memory/pinned.h"
#include "memory/transfer_path.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#define MOST 512             /* ranges of bytes that are known */
#define LONG_AGO 2048        /* uses; so many of others, and it gives its place to another one */
#define MOST_IN_VAIN 5       /* times, each of which doubles what has to be saved */
#define PATIENCE 1000000000u /* ns, at exit */
#define NEAR ((uintptr_t)64 << 10) /* bytes */
#define LEAST ((size_t)64 << 10)   /* bytes of a transfer; of less the driver's call is the price */

/*
 * µs, on an H100 (580.159): what it costs to lock pages and to unlock them, and what it saves with
 * each transfer that the driver, or else several threads, would have copied.
 */
#define PRICE 300.0
#define PRICE_OF_MIB 65.0
#define SAVED 15.0
#define SAVED_OF_MIB 85.0
#define SAVED_STAGED 250.0
#define SAVED_STAGED_OF_MIB 5.0

struct range {
    enum state { FREE, USED, LOCKING, LOCKED, UNLOCKING } state;
    uintptr_t first, end; /* bytes that transfers used */
    double saved;         /* µs, since they are locked, or had they been */
    unsigned in_vain;     /* so often they could not be locked, or for too short a time */
    unsigned long used;   /* when that was last */
    unsigned long watch;
    struct tutti_pinned *pinned;
};

static struct {
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    struct range range[MOST];
    unsigned known; /* of these, at most; the others are FREE */
    unsigned long uses;
    size_t bytes, most; /* locked, and how many may be */
    atomic_uint unlocking;
    atomic_bool stopped;
} pages = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static enum { AUTO, NEVER, ALWAYS } wanted;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void read_environment(void) {
    wanted = tutti_env_choice(TUTTI_LOCK_PAGES);
    pages.most = tutti_pinned_limit() / 2; /* the rest is for buffers */
}

static bool may_lock_for(const struct tutti_real_device *device) {
    pthread_once(&once, read_environment);
    if (wanted == NEVER || atomic_load(&pages.stopped) || !tutti_transfer_path_pins(device))
        return false;
    return wanted == ALWAYS || strcmp(device->platform_name, "NVIDIA CUDA") == 0;
}

static size_t size_of(const struct range *range) { return range->end - range->first; }

static double in_mib(size_t size) { return (double)size / (1 << 20); }

static double price_of(const struct range *range) {
    return PRICE + PRICE_OF_MIB * in_mib(size_of(range));
}

/*
 * A program may free its arrays after some uses each, and get them at the same address. And what
 * could not be locked may be other memory by now. So both are tried again, less and less often.
 */
static bool is_worth_it(const struct range *range) {
    return wanted == ALWAYS || range->saved >= price_of(range) * (1u << range->in_vain);
}

static void note_in_vain(struct range *range) { range->in_vain += range->in_vain < MOST_IN_VAIN; }

static double saved_by(const struct tutti_real_device *device, size_t size) {
    return tutti_transfer_path_threads(device, size)
               ? SAVED_STAGED + SAVED_STAGED_OF_MIB * in_mib(size)
               : SAVED + SAVED_OF_MIB * in_mib(size);
}

/* With the lock, as all from here to `note`. */

static bool have_common(const struct range *range, uintptr_t first, uintptr_t end) {
    return range->state != FREE && range->first < end && first < range->end;
}

static void wait_until_unlocked(uintptr_t first, uintptr_t end) {
    for (unsigned i = 0; i < pages.known; i++)
        while (pages.range[i].state == UNLOCKING && have_common(&pages.range[i], first, end))
            pthread_cond_wait(&pages.changed, &pages.lock);
}

/* Is it locked, or about to be? */
static bool is_locked(uintptr_t first, uintptr_t end, double saved) {
    for (unsigned i = 0; i < pages.known; i++) {
        struct range *range = &pages.range[i];
        if (range->state < LOCKING || first < range->first || range->end < end)
            continue;
        range->used = ++pages.uses;
        range->saved += saved;
        return true;
    }
    return false;
}

/* The one of that state that was used longest ago, or NULL. */
static struct range *find_oldest(enum state state) {
    struct range *oldest = NULL;
    for (unsigned i = 0; i < pages.known; i++) {
        struct range *range = &pages.range[i];
        if (range->state == state && (!oldest || range->used < oldest->used))
            oldest = range;
    }
    return oldest;
}

static void extend(struct range *range, uintptr_t first, uintptr_t end) {
    range->first = first < range->first ? first : range->first;
    range->end = end > range->end ? end : range->end;
}

/*
 * Counts a use. Parts that touch, as a matrix in blocks has them, are one. NULL: all are locked, or
 * about to be.
 */
static struct range *note(uintptr_t first, uintptr_t end, double saved) {
    struct range all = {.state = USED, .first = first, .end = end, .saved = saved};
    for (unsigned i = 0; i < pages.known; i++) {
        struct range *other = &pages.range[i];
        if (other->state != USED || other->first > all.end || all.first > other->end)
            continue;
        extend(&all, other->first, other->end);
        all.saved += other->saved;
        all.in_vain = other->in_vain > all.in_vain ? other->in_vain : all.in_vain;
        other->state = FREE;
    }
    struct range *range = find_oldest(FREE);
    if (!range && pages.known < MOST)
        range = &pages.range[pages.known++];
    if (!range && !(range = find_oldest(USED)))
        return NULL;
    all.used = ++pages.uses;
    *range = all;
    return range;
}

/*
 * From here to `lock_pages` all is called by the one thread of page_watch.h, which locks and
 * unlocks pages, one range after the other. With the lock, which is open while the driver is
 * called; but `gone` and `lock_pages` take it.
 */

static void unlock_pages(struct range *range) {
    range->state = UNLOCKING;
    atomic_fetch_add(&pages.unlocking, 1);
    pthread_mutex_unlock(&pages.lock);
    tutti_log(DEBUG, "unlock %zu bytes of the program", size_of(range));
    tutti_pinned_free(range->pinned);
    tutti_page_watch_end(range->watch);
    pthread_mutex_lock(&pages.lock);
    pages.bytes -= size_of(range);
    if (range->saved < price_of(range))
        note_in_vain(range);
    else if (range->in_vain > 0)
        range->in_vain--;
    range->saved = 0;
    range->state = USED;
    atomic_fetch_sub(&pages.unlocking, 1);
    pthread_cond_broadcast(&pages.changed);
}

static void gone(unsigned long watch) {
    pthread_mutex_lock(&pages.lock);
    for (unsigned i = 0; i < pages.known; i++)
        if (pages.range[i].state == LOCKED && pages.range[i].watch == watch &&
            !atomic_load(&pages.stopped))
            unlock_pages(&pages.range[i]);
    pthread_mutex_unlock(&pages.lock);
}

/* Pages have one watch: those that go over the edge of what is locked already are locked anew. */
static void join_locked(struct range *range) {
    for (unsigned i = 0; i < pages.known; i++) {
        struct range *other = &pages.range[i];
        if (other->state != LOCKED || !have_common(other, range->first, range->end))
            continue;
        extend(range, other->first, other->end);
        unlock_pages(other);
        other->state = FREE;
    }
}

/* Also of a watch, of which there are fewer than of ranges. */
static bool make_room(size_t size) {
    struct range *oldest = find_oldest(LOCKED);
    if (oldest && oldest->used + LONG_AGO < pages.uses)
        unlock_pages(oldest);
    while (pages.bytes + size > pages.most && (oldest = find_oldest(LOCKED)))
        unlock_pages(oldest);
    return pages.bytes + size <= pages.most;
}

static bool try_to_lock(struct range *range) {
    void *bytes = (void *)range->first;
    size_t size = size_of(range);
    if (!make_room(size))
        return false;
    range->pinned = NULL;
    pthread_mutex_unlock(&pages.lock);
    range->watch = tutti_page_watch_begin(bytes, size, gone);
    if (range->watch)
        range->pinned = tutti_pinned_lock(bytes, size);
    if (!range->pinned)
        tutti_page_watch_end(range->watch);
    pthread_mutex_lock(&pages.lock);
    if (range->pinned)
        pages.bytes += size;
    return range->pinned != NULL;
}

struct request {
    struct range *range;
    uintptr_t first, end; /* of it, what is used now */
};

/*
 * One with the bytes, or near to them, that has not all of them; NULL: there is none. Drivers lock
 * whole pages, of a size that they do not tell.
 */
static struct range *find_edge(enum state state, uintptr_t first, uintptr_t end) {
    for (unsigned i = 0; i < pages.known; i++) {
        struct range *range = &pages.range[i];
        if (range->state == state && range->first < end + NEAR && first < range->end + NEAR &&
            (first < range->first || range->end < end))
            return range;
    }
    return NULL;
}

static void unlock_edges(void *argument) {
    const struct request *request = argument;
    struct range *range;
    pthread_mutex_lock(&pages.lock);
    while ((range = find_edge(LOCKED, request->first, request->end)))
        unlock_pages(range);
    pthread_mutex_unlock(&pages.lock);
}

/* All that was used, or, as some of that may be other memory by now, what is used now. */
static void lock_pages(void *argument) {
    const struct request *request = argument;
    struct range *range = request->range;
    pthread_mutex_lock(&pages.lock);
    join_locked(range);
    bool locked = try_to_lock(range);
    if (!locked && size_of(range) > request->end - request->first) {
        range->first = request->first;
        range->end = request->end;
        locked = try_to_lock(range);
    }
    range->state = locked ? LOCKED : USED;
    range->saved = 0;
    if (!locked)
        note_in_vain(range);
    pthread_cond_broadcast(&pages.changed);
    pthread_mutex_unlock(&pages.lock);
}

void tutti_locked_pages_use_part(const struct tutti_real_device *device, const void *memory,
                                 const struct tutti_place *place,
                                 const struct tutti_region *region) {
    size_t first = tutti_place_first(place);
    tutti_locked_pages_use(device, (const char *)memory + first,
                           tutti_place_end(place, region) - first, tutti_region_bytes(region));
}

void tutti_locked_pages_use(const struct tutti_real_device *device, const void *bytes, size_t size,
                            size_t moved) {
    uintptr_t first = (uintptr_t)bytes, end = first + size;
    if ((moved < LEAST && atomic_load(&pages.unlocking) == 0) || !may_lock_for(device))
        return;
    struct request request = {NULL, first, end};
    double saved = saved_by(device, moved);
    pthread_mutex_lock(&pages.lock);
    wait_until_unlocked(first, end);
    if (moved >= LEAST && !is_locked(first, end, saved) && !tutti_pinned_covers(bytes, size)) {
        struct range *range = note(first, end, saved);
        if (range && is_worth_it(range)) {
            range->state = LOCKING;
            request.range = range;
        }
    }
    pthread_mutex_unlock(&pages.lock);
    if (!request.range || tutti_page_watch_run(lock_pages, &request))
        return;
    pthread_mutex_lock(&pages.lock);
    request.range->state = FREE;
    pthread_mutex_unlock(&pages.lock);
}

bool tutti_locked_pages_gave_way(cl_int error, const void *memory, const struct tutti_place *place,
                                 const struct tutti_region *region) {
    struct request request = {.first = (uintptr_t)memory + tutti_place_first(place),
                              .end = (uintptr_t)memory + tutti_place_end(place, region)};
    if (error != CL_INVALID_VALUE)
        return false;
    pthread_mutex_lock(&pages.lock);
    bool found = false;
    for (enum state state = LOCKING; state <= UNLOCKING; state++)
        found = found || find_edge(state, request.first, request.end);
    pthread_mutex_unlock(&pages.lock);
    return found && tutti_page_watch_run(unlock_edges, &request);
}

/* What is under way gets its time. */
void tutti_locked_pages_stop(void) {
    struct timespec deadline = tutti_clock_deadline(PATIENCE);
    bool late = false;
    atomic_store(&pages.stopped, true);
    pthread_mutex_lock(&pages.lock);
    while ((find_oldest(LOCKING) || find_oldest(UNLOCKING)) && !late)
        late = pthread_cond_timedwait(&pages.changed, &pages.lock, &deadline) == ETIMEDOUT;
    pthread_mutex_unlock(&pages.lock);
}
