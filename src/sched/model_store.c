/* SPDX-License-Identifier: MIT */
#include "sched/model_store.h"

#include "directory.h"
#include "env.h"
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define HEADER "tutti models 1\n"
#define MOST_ENTRIES 20000 /* 2 MB */
#define LONGEST_TIME 1e9   /* µs: what is longer was not measured by us */

struct entries {
    size_t count, room;
    struct tutti_model_entry *entry;
};

/* False when nothing is to be kept, or there is no place for it. */
static bool find_path(char path[PATH_MAX]) {
    const char *given = tutti_env_string(TUTTI_MODELS), *cache = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME");
    int length = -1;
    if (given && strcmp(given, "none") == 0)
        return false;
    if (given && *given)
        length = snprintf(path, PATH_MAX, "%s", given);
    else if (cache && *cache)
        length = snprintf(path, PATH_MAX, "%s/tutti/models", cache);
    else if (home && *home)
        length = snprintf(path, PATH_MAX, "%s/.cache/tutti/models", home);
    /* Other names are made from it. */
    return length > 0 && length < PATH_MAX - 32;
}

/* One field and the character behind it. */
static bool read_number(const char **at, int base, char behind, uint64_t *number) {
    char *end;
    *number = strtoull(*at, &end, base);
    if (end == *at || *end != behind)
        return false;
    *at = end + 1;
    return true;
}

/* By hand: scanf takes far longer, and the program's locale may have a decimal comma. */
static bool read_entry(const char *line, struct tutti_model_entry *entry) {
    uint64_t whole, thousandths;
    bool good = read_number(&line, 16, ' ', &entry->key.code) &&
                read_number(&line, 16, ' ', &entry->key.sizes) &&
                read_number(&line, 10, ' ', &entry->key.items) &&
                read_number(&line, 16, ' ', &entry->identity) &&
                read_number(&line, 10, '.', &whole) && read_number(&line, 10, '\n', &thousandths);
    entry->time = good ? (double)whole + (double)thousandths / 1000 : 0;
    return good && thousandths < 1000 && entry->time > 0 && entry->time < LONGEST_TIME;
}

static void write_entry(FILE *file, const struct tutti_model_entry *entry) {
    uint64_t thousandths = (uint64_t)(entry->time * 1000 + 0.5);
    fprintf(file, "%" PRIx64 " %" PRIx64 " %" PRIu64 " %" PRIx64 " %" PRIu64 ".%03" PRIu64 "\n",
            entry->key.code, entry->key.sizes, entry->key.items, entry->identity,
            thousandths / 1000, thousandths % 1000);
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

/* All of the file, or nothing. */
static void read_file(const char *path, struct entries *entries) {
    char line[160];
    size_t counted = 0;
    bool complete = false;
    FILE *file = fopen(path, "re");
    if (!file) {
        if (errno != ENOENT)
            tutti_log(WARNING, "%s can't be read: %s", path, strerror(errno));
        return;
    }
    bool known = fgets(line, sizeof(line), file) && strcmp(line, HEADER) == 0;
    while (known && !complete && entries->count <= MOST_ENTRIES &&
           fgets(line, sizeof(line), file)) {
        struct tutti_model_entry entry;
        if (read_entry(line, &entry))
            known = append(entries, &entry);
        else if (sscanf(line, "end %zu", &counted) == 1)
            complete = counted == entries->count;
        else
            break;
    }
    fclose(file);
    if (!complete) {
        tutti_log(WARNING, "%s is not a file of models, or damaged: ignored", path);
        entries->count = 0;
    }
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

static bool write_file(const char *path, const struct entries *entries) {
    char name[PATH_MAX];
    size_t first = entries->count > MOST_ENTRIES ? entries->count - MOST_ENTRIES : 0;
    snprintf(name, sizeof(name), "%.*s.%ld", PATH_MAX - 32, path, (long)getpid());
    FILE *file = fopen(name, "we");
    if (!file)
        return false;
    fputs(HEADER, file);
    for (size_t i = first; i < entries->count; i++)
        write_entry(file, &entries->entry[i]);
    fprintf(file, "end %zu\n", entries->count - first);
    bool good = !ferror(file);
    good = fclose(file) == 0 && good && rename(name, path) == 0;
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
