/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_BRIEF_LOCK_H
#define TUTTI_BRIEF_LOCK_H

#include <pthread.h>

/*
 * A lock that is held for less time than a thread needs to fall asleep and to wake: who wants it
 * looks for some microseconds before it sleeps. Both for each command, and each by another thread:
 * the program's, and the one that looks after what is under way.
 */
#define TUTTI_BRIEF_LOCK PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP

static inline void tutti_brief_lock_init(pthread_mutex_t *lock) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

/* Tells the processor that this thread only waits. */
static inline void tutti_brief_lock_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/*
 * Takes it where the other threads want it again at once, for some hundred nanoseconds each: glibc
 * looks for too short a time, and a thread that slept makes each of them wake the next one. Sleeps
 * after a dozen microseconds, as its holder may have lost its core.
 */
static inline void tutti_brief_lock_persist(pthread_mutex_t *lock) {
    for (unsigned look = 0; look < 200; look++) {
        if (pthread_mutex_trylock(lock) == 0)
            return;
        for (unsigned i = 0; i < 8; i++)
            tutti_brief_lock_pause();
    }
    pthread_mutex_lock(lock);
}

#endif
