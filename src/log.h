/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_LOG_H
#define TUTTI_LOG_H

#include <stdatomic.h>
#include <stdbool.h>

/*
 * Messages for who asks for them with TUTTI_LOG=LEVEL or LEVEL:FILE; else Tutti is silent. LEVEL
 * is error, warning, info, debug, or 1 to 4; messages go to standard error unless a file is named.
 */
enum tutti_log_level {
    TUTTI_LOG_NONE,
    TUTTI_LOG_ERROR,
    TUTTI_LOG_WARNING,
    TUTTI_LOG_INFO,
    TUTTI_LOG_DEBUG,
};

extern atomic_int tutti_log_most; /* the level; -1: not known yet */
bool tutti_log_find(enum tutti_log_level level);

/* In few instructions, as each small command asks. */
static inline bool tutti_log_wanted(enum tutti_log_level level) {
    int most = atomic_load_explicit(&tutti_log_most, memory_order_acquire);
    return most < 0 ? tutti_log_find(level) : (int)level <= most;
}

void tutti_log_write(enum tutti_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#define tutti_log(LEVEL, ...)                                                                      \
    do {                                                                                           \
        if (tutti_log_wanted(TUTTI_LOG_##LEVEL))                                                   \
            tutti_log_write(TUTTI_LOG_##LEVEL, __VA_ARGS__);                                       \
    } while (0)

#endif
