/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "crash.h"

#include <execinfo.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { DEEPEST = 64 };

/* By calls that a handler may make, but for backtrace's, which loaded its library before. */
static void tell(int number, siginfo_t *information, void *unused) {
    (void)unused;
    char line[128], thread[17] = "";
    void *calls[DEEPEST];

    prctl(PR_GET_NAME, thread);
    int length = snprintf(line, sizeof(line), "# signal %d at %p in thread \"%s\"\n", number,
                          information->si_addr, thread);
    if (write(STDERR_FILENO, line, (size_t)length) == length)
        backtrace_symbols_fd(calls, backtrace(calls, DEEPEST), STDERR_FILENO);
    signal(number, SIG_DFL);
    raise(number);
}

static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGABRT};

/* Where a signal of them has that action, it gets the other one. */
static void replace(void (*from)(int), const struct sigaction *by) {
    struct sigaction old;

    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == from)
            sigaction(numbers[i], by, NULL);
}

/* Sanitizers tell it themselves, and would find that the library of backtrace leaks. */
#define SANITIZED false
#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#undef SANITIZED
#define SANITIZED true
#endif
#endif

bool test_tell_crashes(void) {
    static char room[64 << 10]; /* for a main thread that has none left */
    const stack_t stack = {.ss_sp = room, .ss_size = sizeof(room)};
    struct sigaction action = {.sa_sigaction = tell, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    void *call;

    if (SANITIZED)
        return false;
    backtrace(&call, 1);
    sigaltstack(&stack, NULL);
    sigemptyset(&action.sa_mask);
    replace(SIG_DFL, &action);
    return true;
}

void test_tell_no_crashes(void) {
    const struct sigaction none = {.sa_handler = SIG_DFL};

    replace((void (*)(int))(void (*)(void))tell, &none);
}
