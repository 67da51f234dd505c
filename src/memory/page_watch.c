/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "memory/page_watch.h"

#include "clock.h"
#include "log.h"
#include "signals.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST 128           /* descriptors, of the 1024 that a process mostly has */
#define LINGER 1000000000u /* ns */

/*
 * Each watch is a userfaultfd of its own, so that what happens to its pages shows before it is
 * read: reading lets the thread go on that did it. After its end it is read for a while longer: a
 * thread may be on its way to tell, and a forked child that still has the descriptor keeps it alive
 * for Linux.
 */
struct watch {
    unsigned long number; /* its place is the rest after a division by MOST; 0: free */
    int descriptor;
    uintptr_t first, end; /* pages */
    void (*gone)(void *argument);
    void *argument;
    cl_ulong over; /* since when; 0: it is not */
};

static struct {
    pthread_mutex_t lock; /* guards all below */
    struct watch watch[MOST];
    unsigned long made;
    int wake; /* eventfd: there is one more, or one is over */
    bool started, works;
} watches = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void wake_reader(void) {
    uint64_t one = 1;
    if (write(watches.wake, &one, sizeof(one)) < 0)
        tutti_log(WARNING, "eventfd: %s", strerror(errno));
}

static void unregister(int descriptor, uintptr_t first, uintptr_t end) {
    struct uffdio_range range = {.start = first, .len = end - first};
    ioctl(descriptor, UFFDIO_UNREGISTER, &range); /* what is unmapped needs none */
}

/* Lets all go on that have told something. What was moved is no longer watched where it is now. */
static void read_all(int descriptor) {
    struct uffd_msg message;
    while (read(descriptor, &message, sizeof(message)) == sizeof(message))
        if (message.event == UFFD_EVENT_REMAP)
            unregister(descriptor, message.arg.remap.to,
                       message.arg.remap.to + message.arg.remap.len);
}

/* With the lock, as all that is static from here on. */
static struct watch *find(unsigned long number) {
    struct watch *watch = &watches.watch[number % MOST];
    return watch->number == number ? watch : NULL;
}

static void end(struct watch *watch) {
    if (watch->over)
        return;
    watch->over = tutti_clock_now();
    unregister(watch->descriptor, watch->first, watch->end);
}

/* Something happened to its pages. Meanwhile the place may become another one's. */
static void look_at(unsigned long number) {
    struct watch *watch = find(number);
    if (watch && !watch->over) {
        struct watch told = *watch;
        pthread_mutex_unlock(&watches.lock);
        told.gone(told.argument);
        pthread_mutex_lock(&watches.lock);
    }
    if (!watch || watch->number != number)
        return;
    end(watch);
    read_all(watch->descriptor);
}

/* Closes those that are over for a while. Returns how long to wait for the next one, in ms. */
static int close_old(void) {
    cl_ulong now = tutti_clock_now();
    int timeout = -1;
    for (unsigned i = 0; i < MOST; i++) {
        struct watch *watch = &watches.watch[i];
        if (!watch->number || !watch->over)
            continue;
        read_all(watch->descriptor);
        if (now - watch->over > LINGER) {
            close(watch->descriptor);
            watch->number = 0;
        } else {
            timeout = LINGER / 1000000u;
        }
    }
    return timeout;
}

static void *read_events(void *unused) {
    (void)unused;
    struct pollfd polled[MOST + 1];
    unsigned long number[MOST + 1];
    pthread_mutex_lock(&watches.lock);
    for (;;) {
        int timeout = close_old();
        nfds_t count = 1;
        polled[0] = (struct pollfd){.fd = watches.wake, .events = POLLIN};
        for (unsigned i = 0; i < MOST; i++) {
            const struct watch *watch = &watches.watch[i];
            if (!watch->number)
                continue;
            polled[count] = (struct pollfd){.fd = watch->descriptor, .events = POLLIN};
            number[count++] = watch->number;
        }
        pthread_mutex_unlock(&watches.lock);
        int ready = poll(polled, count, timeout);
        uint64_t woken;
        if (ready > 0 && polled[0].revents && read(watches.wake, &woken, sizeof(woken)) < 0)
            tutti_log(DEBUG, "eventfd: %s", strerror(errno));
        pthread_mutex_lock(&watches.lock);
        for (nfds_t i = 1; i < count && ready > 0; i++)
            if (polled[i].revents)
                look_at(number[i]);
    }
    return NULL;
}

static void start(void) {
    if (watches.started)
        return;
    watches.started = true;
    watches.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    watches.works = watches.wake >= 0 && tutti_signals_start_thread(read_events, NULL);
}

/* No page of these is ever missing or protected, so the kernel's own faults need not be served. */
static int open_descriptor(void) {
    int descriptor = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    struct uffdio_api api = {.api = UFFD_API,
                             .features = UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMOVE |
                                         UFFD_FEATURE_EVENT_REMAP};
    if (descriptor >= 0 && ioctl(descriptor, UFFDIO_API, &api) == 0)
        return descriptor;
    tutti_log(INFO, "pages of the program can't be watched, and so not locked: %s",
              strerror(errno));
    if (descriptor >= 0)
        close(descriptor);
    return -1;
}

/*
 * The write-protection of pages is asked for, and never set: so they are registered at all. What is
 * still to be told of a descriptor's last pages counts for these. After a failure nothing is
 * unregistered: Linux has done that to the pages of another descriptor, too.
 */
static bool watch_pages(const struct watch *watch) {
    struct uffdio_register pages = {
        .range = {.start = watch->first, .len = watch->end - watch->first},
        .mode = UFFDIO_REGISTER_MODE_WP,
    };
    return watch->descriptor >= 0 && ioctl(watch->descriptor, UFFDIO_REGISTER, &pages) == 0;
}

/* A free one, or that which is over for longest, with its descriptor. NULL: all are in use. */
static struct watch *find_place(void) {
    struct watch *found = NULL;
    for (unsigned i = 0; i < MOST; i++) {
        struct watch *watch = &watches.watch[i];
        if (!watch->number) {
            watch->descriptor = open_descriptor();
            return watch;
        }
        if (watch->over && (!found || watch->over < found->over))
            found = watch;
    }
    return found;
}

/* Are all pages the process's own, without a file that others could change? */
static bool is_plain(uintptr_t first, uintptr_t end) {
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    uintptr_t next = first;
    bool plain = maps != NULL;
    while (plain && next < end && fgets(line, sizeof(line), maps)) {
        unsigned long begin, stop, inode;
        char access[8], name[64] = "";
        if (sscanf(line, "%lx-%lx %7s %*s %*s %lu %63[^\n]", &begin, &stop, access, &inode, name) <
                4 ||
            stop <= next)
            continue;
        plain = begin <= next && strcmp(access, "rw-p") == 0 && inode == 0 &&
                (name[0] == 0 || strcmp(name, "[heap]") == 0 || strncmp(name, "[anon", 5) == 0);
        next = stop;
    }
    if (maps)
        fclose(maps);
    return plain && next >= end;
}

unsigned long tutti_page_watch_begin(const void *bytes, size_t size, void (*gone)(void *argument),
                                     void *argument) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)bytes;
    struct watch watch = {.first = begin & ~(page - 1),
                          .end = (begin + size + page - 1) & ~(page - 1),
                          .gone = gone,
                          .argument = argument};
    if (!is_plain(watch.first, watch.end))
        return 0;
    pthread_mutex_lock(&watches.lock);
    start();
    struct watch *place = watches.works ? find_place() : NULL;
    if (place) {
        watch.descriptor = place->descriptor;
        if (watch_pages(&watch)) {
            watch.number = ++watches.made * MOST + (unsigned long)(place - watches.watch);
            *place = watch;
            wake_reader();
        } else if (place->number == 0 && place->descriptor >= 0) {
            close(place->descriptor);
        }
    }
    pthread_mutex_unlock(&watches.lock);
    return watch.number;
}

/* An empty range is refused with EINVAL, but with EAGAIN as long as something is to be told. */
bool tutti_page_watch_is_changing(unsigned long number) {
    struct uffdio_writeprotect nothing = {.range = {.len = 0}};
    int descriptor = watches.watch[number % MOST].descriptor;
    return ioctl(descriptor, UFFDIO_WRITEPROTECT, &nothing) != 0 && errno == EAGAIN;
}

void tutti_page_watch_end(unsigned long number) {
    pthread_mutex_lock(&watches.lock);
    struct watch *watch = number ? find(number) : NULL;
    if (watch) {
        end(watch);
        wake_reader();
    }
    pthread_mutex_unlock(&watches.lock);
}
