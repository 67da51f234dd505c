/* SPDX-License-Identifier: MIT */
#include "sched/model_store.h"

#include "directory.h"
#include "env.h"
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HEADER "tutti models 1\n"
#define MOST_ENTRIES 8000 /* each costs a microsecond at start and one at exit */
#define LONGEST_LINE 128
#define MOST_BYTES ((off_t)4 << 20) /* more than that many lines ever have */
#define LONGEST_TIME 1e9            /* µs: what is longer was not measured by us */

struct entries {
    size_t count, room;
    struct tutti_model_entry *entry;
};

/* False when nothing is to be kept, or there is no place for it. */
static bool find_path(char path[PATH_MAX]) {
    const char *given = tutti_env_string(TUTTI_MODELS);
    if (given && strcmp(given, "none") == 0)
        return false;
    int length = given && *given ? snprintf(path, PATH_MAX, "%s", given)
                                 : tutti_directory_cached(path, "models");
    /* Other names are made from it. */
    return length > 0 && length < PATH_MAX - 32;
}

/*
 * By hand: programs that end in tenths of a second notice what the C library takes for 20,000
 * lines, and the program's locale may have a decimal comma. One field and the character behind it.
 */
static inline bool read_number(const char **at, unsigned base, char behind, uint64_t *number) {
    const char *c = *at;
    uint64_t value = 0;
    for (;; c++) {
        unsigned digit = (unsigned)(*c - '0');
        if (digit > 9 && (digit = (unsigned)(*c - 'a') + 10) < 10)
            break;
        if (digit >= base)
            break;
        value = value * base + digit;
    }
    bool good = c > *at && *c == behind;
    *number = value;
    *at = c + 1;
    return good;
}

/* A line; `*at` is behind it then. */
static bool read_entry(const char **at, struct tutti_model_entry *entry) {
    const char *line = *at;
    uint64_t whole, thousandths;
    bool good = read_number(&line, 16, ' ', &entry->key.code) &&
                read_number(&line, 16, ' ', &entry->key.sizes) &&
                read_number(&line, 10, ' ', &entry->key.items) &&
                read_number(&line, 16, ' ', &entry->identity) &&
                read_number(&line, 10, '.', &whole) && read_number(&line, 10, '\n', &thousandths);
    if (!good)
        return false;
    *at = line;
    entry->time = (double)whole + (double)thousandths / 1000;
    return thousandths < 1000 && entry->time > 0 && entry->time < LONGEST_TIME;
}

/* Returns where the next one goes. */
static char *write_number(char *at, uint64_t number, unsigned base, char behind) {
    char digits[20];
    unsigned count = 0;
    do {
        digits[count++] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number);
    while (count)
        *at++ = digits[--count];
    *at++ = behind;
    return at;
}

/* At most LONGEST_LINE bytes. */
static char *write_entry(char *at, const struct tutti_model_entry *entry) {
    uint64_t thousandths = (uint64_t)(entry->time * 1000 + 0.5);
    at = write_number(at, entry->key.code, 16, ' ');
    at = write_number(at, entry->key.sizes, 16, ' ');
    at = write_number(at, entry->key.items, 10, ' ');
    at = write_number(at, entry->identity, 16, ' ');
    at = write_number(at, thousandths / 1000, 10, '.');
    for (uint64_t place = 100; place > 0; place /= 10)
        *at++ = (char)('0' + thousandths / place % 10);
    *at++ = '\n';
    return at;
}

static bool append(struct entries *entries, const struct tutti_model_entry *entry) {
    if (entries->count == entries->room) {
        size_t room = entries->room ? 2 * entries->room : 256;
        struct tutti_model_entry *more = realloc(entries->entry, room * sizeof(*more));
        if (!more)
            return false;
        entries->entry = more;
        entries->room = room;
    }
    entries->entry[entries->count++] = *entry;
    return true;
}

/* Ends with a zero; NULL when it can't be read. Free it. */
static char *read_text(const char *path) {
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    char *text = NULL;
    if (file >= 0 && fstat(file, &status) == 0 && status.st_size >= 0 &&
        status.st_size <= MOST_BYTES)
        text = malloc((size_t)status.st_size + 1);
    /* One that is replaced meanwhile stays what it was. */
    ssize_t size = text ? read(file, text, (size_t)status.st_size) : -1;
    if (file < 0 && errno != ENOENT)
        tutti_log(WARNING, "%s can't be read: %s", path, strerror(errno));
    if (file >= 0)
        close(file);
    if (text)
        text[size > 0 ? size : 0] = 0;
    return text;
}

/* All of the file, or nothing. */
static void read_file(const char *path, struct entries *entries) {
    size_t counted = 0;
    char *text = read_text(path);
    if (!text)
        return;
    const char *at = text + strlen(HEADER);
    bool known = strncmp(text, HEADER, strlen(HEADER)) == 0;
    struct tutti_model_entry entry;
    while (known && read_entry(&at, &entry))
        known = append(entries, &entry);
    if (!known || sscanf(at, "end %zu", &counted) != 1 || counted != entries->count) {
        tutti_log(WARNING, "%s is not a file of models, or damaged: ignored", path);
        entries->count = 0;
    }
    free(text);
}

void tutti_model_store_read(void (*take)(const struct tutti_model_entry *entry, void *argument),
                            void *argument) {
    struct entries entries = {0};
    char path[PATH_MAX];
    if (!find_path(path))
        return;
    read_file(path, &entries);
    tutti_log(INFO, "%zu models in %s", entries.count, path);
    for (size_t i = 0; i < entries.count; i++)
        take(&entries.entry[i], argument);
    free(entries.entry);
}

/* Another process holds the lock for milliseconds; a stopped one must not stop this one. */
static int take_lock(const char *path) {
    char name[PATH_MAX];
    const struct timespec pause = {.tv_nsec = 2000000};
    snprintf(name, sizeof(name), "%.*s.lock", PATH_MAX - 32, path);
    int lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    for (int i = 0; lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) != 0; i++) {
        if (errno != EWOULDBLOCK || i == 100) {
            close(lock);
            return -1;
        }
        nanosleep(&pause, NULL);
    }
    return lock;
}

static bool write_all(int file, const char *text, size_t size) {
    while (size > 0) {
        ssize_t written = write(file, text, size);
        if (written < 0 && errno != EINTR)
            return false;
        text += written > 0 ? written : 0;
        size -= written > 0 ? (size_t)written : 0;
    }
    return true;
}

static bool write_file(const char *path, const struct entries *entries) {
    char name[PATH_MAX];
    size_t first = entries->count > MOST_ENTRIES ? entries->count - MOST_ENTRIES : 0;
    size_t count = entries->count - first;
    char *text = malloc((count + 2) * LONGEST_LINE);
    if (!text)
        return false;
    char *end = stpcpy(text, HEADER);
    for (size_t i = first; i < entries->count; i++)
        end = write_entry(end, &entries->entry[i]);
    end += sprintf(end, "end %zu\n", count);
    snprintf(name, sizeof(name), "%.*s.%ld", PATH_MAX - 32, path, (long)getpid());
    int file = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    bool good = file >= 0 && write_all(file, text, (size_t)(end - text));
    free(text);
    if (file >= 0)
        good = close(file) == 0 && good && rename(name, path) == 0;
    if (!good)
        unlink(name);
    return good;
}

void tutti_model_store_add(const struct tutti_model_entry *added, size_t count,
                           bool (*is_newer)(const struct tutti_model_entry *entry)) {
    struct entries all = {0};
    char path[PATH_MAX];
    if (count == 0 || !find_path(path))
        return;
    int lock = tutti_directory_make_for(path) ? take_lock(path) : -1;
    if (lock < 0) {
        tutti_log(WARNING, "%s can't be written: models are not kept", path);
        return;
    }
    read_file(path, &all);
    size_t kept = 0;
    for (size_t i = 0; i < all.count; i++)
        if (!is_newer(&all.entry[i]))
            all.entry[kept++] = all.entry[i];
    all.count = kept;
    bool good = true;
    for (size_t i = 0; i < count && good; i++)
        good = append(&all, &added[i]);
    if (!good || !write_file(path, &all))
        tutti_log(WARNING, "%s can't be written: models are not kept", path);
    free(all.entry);
    close(lock);
}
