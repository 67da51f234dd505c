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

#endif
