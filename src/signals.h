/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_SIGNALS_H
#define TUTTI_SIGNALS_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Around the creation of a thread: the program's signals are not for it, nor for those that vendors
 * start from it. Signals that its own instructions raise are let through: blocked, they would end
 * the process, but PoCL has a handler that goes on after a division by zero.
 */
static inline void tutti_signals_block(sigset_t *before) {
    sigset_t set;
    const int raised[] = {SIGFPE, SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGSYS};
    sigfillset(&set);
    for (unsigned i = 0; i < sizeof(raised) / sizeof(raised[0]); i++)
        sigdelset(&set, raised[i]);
    pthread_sigmask(SIG_SETMASK, &set, before);
}

static inline void tutti_signals_restore(const sigset_t *before) {
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* A thread of ours that nobody joins; false: there is none. */
static inline bool tutti_signals_start_thread(void *(*function)(void *), void *argument) {
    sigset_t before;
    pthread_t thread;
    tutti_signals_block(&before);
    int error = pthread_create(&thread, NULL, function, argument);
    tutti_signals_restore(&before);
    if (error == 0)
        pthread_detach(thread);
    return error == 0;
}

#endif
