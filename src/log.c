/* SPDX-License-Identifier: MIT */
#include "log.h"

#include "env.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const names[] = {"none", "error", "warning", "info", "debug"};

atomic_int tutti_log_most = -1;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int file = STDERR_FILENO;

static enum tutti_log_level read_level(const char *setting, size_t length) {
    for (unsigned level = TUTTI_LOG_ERROR; level <= TUTTI_LOG_DEBUG; level++)
        if (strlen(names[level]) == length && strncasecmp(setting, names[level], length) == 0)
            return level;
    long level = strtol(setting, NULL, 10);
    return level < 0                 ? TUTTI_LOG_NONE
           : level > TUTTI_LOG_DEBUG ? TUTTI_LOG_DEBUG
                                     : (enum tutti_log_level)level;
}

static void open_log(void) {
    const char *setting = tutti_env_string(TUTTI_LOG);
    size_t length = setting ? strcspn(setting, ":") : 0;
    enum tutti_log_level wanted =
        setting && *setting ? read_level(setting, length) : TUTTI_LOG_NONE;
    if (wanted != TUTTI_LOG_NONE && setting[length] == ':') {
        int opened = open(setting + length + 1, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (opened >= 0)
            file = opened;
    }
    atomic_store_explicit(&tutti_log_most, (int)wanted, memory_order_release);
}

bool tutti_log_find(enum tutti_log_level level) {
    pthread_once(&once, open_log);
    return tutti_log_wanted(level);
}

void tutti_log_write(enum tutti_log_level level, const char *format, ...) {
    char line[1024];
    int used = snprintf(line, sizeof(line), "tutti: %s: ", names[level]);
    va_list arguments;
    va_start(arguments, format);
    int more = vsnprintf(line + used, sizeof(line) - (size_t)used - 1, format, arguments);
    va_end(arguments);
    size_t length = (size_t)used + (more > 0 ? (size_t)more : 0);
    if (length > sizeof(line) - 2)
        length = sizeof(line) - 2;
    line[length++] = '\n';
    /* One write a line keeps lines of several threads whole; there is nobody to tell of a failure.
     */
    ssize_t written = write(file, line, length);
    (void)written;
}
