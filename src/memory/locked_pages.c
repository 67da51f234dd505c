/* SPDX-License-Identifier: MIT */
#include "memory/locked_pages.h"

#include "clock.h"
#include "env.h"
#include "log.h"
#include "memory/page_watch.h"
#include "memory/pinned.h"
#include "memory/transfer_path.h"
#include "signals.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#define MOST 512           /* ranges of bytes that are known */
#define LONG_AGO 2048      /* uses; so many of others, and it gives its place to another one */
#define MOST_IN_VAIN 5     /* times, each of which doubles what has to be saved */
#define PATIENCE 20000000u /* ns, of whoever gives pages away */
#define PATIENCE_AT_EXIT 1000000000u /* ns */
#define NEAR ((uintptr_t)64 << 10)   /* bytes */
#define LEAST ((size_t)64 << 10) /* bytes of a transfer; of less the driver's call is the price */

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
    bool going;                   /* is it to be unlocked? */
    uintptr_t first, end;         /* bytes that transfers used */
    uintptr_t use_first, use_end; /* of these, what is used as it is about to be locked */
    double saved;                 /* µs, since they are locked, or had they been */
    unsigned in_vain;             /* so often they could not be locked, or for too short a time */
    unsigned long used;           /* when that was last */
    unsigned long watch;
    struct tutti_pinned *pinned;
};

static struct {
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t asked, changed;
    struct range range[MOST];
    unsigned known; /* of these, at most; the others are FREE */
    unsigned long uses;
    size_t bytes, most; /* locked, and how many may be */
    atomic_uint locked; /* ranges that are LOCKING, LOCKED or UNLOCKING */
    atomic_bool stopped;
} pages = {.lock = PTHREAD_MUTEX_INITIALIZER,
           .asked = PTHREAD_COND_INITIALIZER,
           .changed = PTHREAD_COND_INITIALIZER};

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

/* With the lock, as all from here to `end_lock`. */

static bool have_common(const struct range *range, uintptr_t first, uintptr_t end) {
    return range->state != FREE && range->first < end && first < range->end;
}

/* Or are they near to each other? Drivers lock whole pages, of a size that they do not tell. */
static bool are_near(const struct range *range, uintptr_t first, uintptr_t end) {
    return have_common(range, first - NEAR, end + NEAR);
}

/* Are the pages that a driver has there, or gets now, about to be other ones than the program's? */
static bool is_changing(const struct range *range) {
    return range->going || range->state == LOCKING ||
           (range->state == LOCKED && tutti_page_watch_is_changing(range->watch) &&
            !atomic_load(&pages.stopped));
}

static void wait_until_same(uintptr_t first, uintptr_t end) {
    for (unsigned i = 0; i < pages.known; i++)
        while (are_near(&pages.range[i], first, end) && is_changing(&pages.range[i]))
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

/* The other thread unlocks it; who would move its bytes waits for that. */
static void let_go(struct range *range) {
    range->going = true;
    pthread_cond_signal(&pages.asked);
}

static void begin_lock(struct range *range) {
    range->state = LOCKING;
    atomic_fetch_add(&pages.locked, 1);
    pthread_cond_signal(&pages.asked);
}

/* It is unlocked, or was not locked. */
static void end_lock(struct range *range) {
    range->state = USED;
    range->going = false;
    range->saved = 0;
    atomic_fetch_sub(&pages.locked, 1);
    pthread_cond_broadcast(&pages.changed);
}

/*
 * The program gives some of its pages away. It mostly goes on once they are unlocked; but it may
 * have a lock that the driver wants for that: of a heap, which it makes smaller (free).
 */
static void gone(void *argument) {
    struct range *range = argument;
    struct timespec deadline = tutti_clock_deadline(PATIENCE);
    bool late = atomic_load(&pages.stopped);
    pthread_mutex_lock(&pages.lock);
    if (!late && (range->state == LOCKING || range->state == LOCKED))
        let_go(range);
    while (range->going && !late)
        late = pthread_cond_timedwait(&pages.changed, &pages.lock, &deadline) == ETIMEDOUT;
    pthread_mutex_unlock(&pages.lock);
}

/*
 * From here to `work` all is done by one thread, which so has a heap of its own: mostly what the
 * driver frees as it unlocks pages is not in one that the program makes smaller meanwhile. With the
 * lock, which is open while the driver is called.
 */

static void unlock_pages(struct range *range) {
    let_go(range);
    range->state = UNLOCKING;
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
    end_lock(range);
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
    range->watch = tutti_page_watch_begin(bytes, size, gone, range);
    if (range->watch)
        range->pinned = tutti_pinned_lock(bytes, size);
    if (!range->pinned)
        tutti_page_watch_end(range->watch);
    pthread_mutex_lock(&pages.lock);
    if (range->pinned)
        pages.bytes += size;
    return range->pinned != NULL;
}

/* All that was used, or, as some of that may be other memory by now, what is used now. */
static void lock_pages(struct range *range) {
    join_locked(range);
    bool locked = try_to_lock(range);
    if (!locked && size_of(range) > range->use_end - range->use_first) {
        range->first = range->use_first;
        range->end = range->use_end;
        locked = try_to_lock(range);
    }
    if (locked) {
        range->state = LOCKED;
        range->saved = 0;
        pthread_cond_broadcast(&pages.changed);
    } else {
        note_in_vain(range);
        end_lock(range);
    }
}

static struct range *find_going(void) {
    for (unsigned i = 0; i < pages.known; i++)
        if (pages.range[i].going && pages.range[i].state == LOCKED)
            return &pages.range[i];
    return NULL;
}

static void *work(void *unused) {
    (void)unused;
    pthread_mutex_lock(&pages.lock);
    for (;;) {
        struct range *range;
        if ((range = find_going()))
            unlock_pages(range);
        else if ((range = find_oldest(LOCKING)))
            lock_pages(range);
        else
            pthread_cond_wait(&pages.asked, &pages.lock);
    }
    return NULL;
}

static bool works;

static void start(void) { works = tutti_signals_start_thread(work, NULL); }

void tutti_locked_pages_use(const struct tutti_real_device *device, const void *bytes, size_t size,
                            size_t moved) {
    static pthread_once_t started = PTHREAD_ONCE_INIT;
    uintptr_t first = (uintptr_t)bytes, end = first + size;
    if (moved < LEAST || !may_lock_for(device))
        return;
    pthread_once(&started, start);
    double saved = saved_by(device, moved);
    pthread_mutex_lock(&pages.lock);
    struct range *range = NULL;
    if (works && !is_locked(first, end, saved) && !tutti_pinned_covers(bytes, size))
        range = note(first, end, saved);
    if (range && is_worth_it(range)) {
        range->use_first = first;
        range->use_end = end;
        begin_lock(range);
        while (range->state == LOCKING)
            pthread_cond_wait(&pages.changed, &pages.lock);
    }
    pthread_mutex_unlock(&pages.lock);
}

void tutti_locked_pages_use_part(const struct tutti_real_device *device, const void *memory,
                                 const struct tutti_place *place,
                                 const struct tutti_region *region) {
    size_t first = tutti_place_first(place);
    tutti_locked_pages_use(device, (const char *)memory + first,
                           tutti_place_end(place, region) - first, tutti_region_bytes(region));
}

void tutti_locked_pages_wait(const void *bytes, size_t size) {
    if (atomic_load_explicit(&pages.locked, memory_order_acquire) == 0)
        return;
    pthread_mutex_lock(&pages.lock);
    wait_until_same((uintptr_t)bytes, (uintptr_t)bytes + size);
    pthread_mutex_unlock(&pages.lock);
}

void tutti_locked_pages_wait_part(const void *memory, const struct tutti_place *place,
                                  const struct tutti_region *region) {
    size_t first = tutti_place_first(place);
    tutti_locked_pages_wait((const char *)memory + first, tutti_place_end(place, region) - first);
}

/* One with the bytes, or near to them, that has not all of them, and is locked. */
static struct range *find_edge(uintptr_t first, uintptr_t end) {
    for (unsigned i = 0; i < pages.known; i++) {
        struct range *range = &pages.range[i];
        if (range->state >= LOCKING && are_near(range, first, end) &&
            (first < range->first || range->end < end))
            return range;
    }
    return NULL;
}

bool tutti_locked_pages_gave_way(cl_int error, const void *memory, const struct tutti_place *place,
                                 const struct tutti_region *region) {
    uintptr_t first = (uintptr_t)memory + tutti_place_first(place);
    uintptr_t end = (uintptr_t)memory + tutti_place_end(place, region);
    struct range *range;
    bool gave_way = false;
    if (error != CL_INVALID_VALUE)
        return false;
    pthread_mutex_lock(&pages.lock);
    while ((range = find_edge(first, end))) {
        gave_way = true;
        if (range->state == LOCKED)
            let_go(range);
        pthread_cond_wait(&pages.changed, &pages.lock);
    }
    pthread_mutex_unlock(&pages.lock);
    return gave_way;
}

/* What is under way gets its time. */
void tutti_locked_pages_stop(void) {
    struct timespec deadline = tutti_clock_deadline(PATIENCE_AT_EXIT);
    bool late = false;
    atomic_store(&pages.stopped, true);
    pthread_mutex_lock(&pages.lock);
    while ((find_oldest(LOCKING) || find_oldest(UNLOCKING) || find_going()) && !late)
        late = pthread_cond_timedwait(&pages.changed, &pages.lock, &deadline) == ETIMEDOUT;
    pthread_mutex_unlock(&pages.lock);
}
