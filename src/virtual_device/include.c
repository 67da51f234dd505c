/* SPDX-License-Identifier: MIT */
#include "virtual_device/include.h"

#include "virtual_device/branches.h"
#include "virtual_device/source.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_TEXT ((size_t)16 << 20)
#define MAX_FILES 256

struct text {
    char *bytes;
    size_t size;
    const char *options;
    unsigned count;
    struct {
        dev_t device;
        ino_t inode;
    } file[MAX_FILES]; /* included already: once says it all, and ends recursion */
};

static bool append(struct text *text, const char *bytes, size_t size) {
    char *grown = realloc(text->bytes, text->size + size + 2);
    if (!grown)
        return false;
    text->bytes = grown;
    memcpy(grown + text->size, bytes, size);
    text->size += size;
    grown[text->size++] = '\n';
    grown[text->size] = '\0';
    return true;
}

static bool is_new(struct text *text, const struct stat *status) {
    for (unsigned i = 0; i < text->count; i++)
        if (text->file[i].device == status->st_dev && text->file[i].inode == status->st_ino)
            return false;
    if (text->count == MAX_FILES)
        return false;
    text->file[text->count].device = status->st_dev;
    text->file[text->count++].inode = status->st_ino;
    return true;
}

/* Appends a file; false when it is not there. */
static bool append_file(struct text *text, const char *path) {
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return false;
    size_t size = (size_t)status.st_size;
    if (!is_new(text, &status) || size > MAX_TEXT - text->size)
        return true;
    FILE *file = fopen(path, "re");
    char *bytes = file ? malloc(size + 1) : NULL;
    if (bytes)
        append(text, bytes, fread(bytes, 1, size, file));
    free(bytes);
    if (file)
        fclose(file);
    return true;
}

/* The next directory after -I, from `*options` on; false when there is none. */
static bool next_directory(const char **options, char *directory, size_t size) {
    for (const char *p = *options; p && (p = strstr(p, "-I")); p++) {
        if (p != *options && !strchr(" \t\"", p[-1]))
            continue;
        p += 2;
        p += strspn(p, " \t");
        const char *stop = *p == '"' ? "\"" : " \t";
        p += *p == '"';
        size_t length = strcspn(p, stop);
        *options = p + length;
        if (length && length < size) {
            memcpy(directory, p, length);
            directory[length] = '\0';
            return true;
        }
    }
    return false;
}

static void include(struct text *text, const char *name, size_t length) {
    char directory[PATH_MAX], path[PATH_MAX];
    const char *options = text->options;
    if (length >= sizeof(path))
        return;
    snprintf(path, sizeof(path), "%.*s", (int)length, name);
    if (append_file(text, path))
        return;
    while (next_directory(&options, directory, sizeof(directory))) {
        int end = snprintf(path, sizeof(path), "%s/%.*s", directory, (int)length, name);
        if (end > 0 && (size_t)end < sizeof(path) && append_file(text, path))
            return;
    }
}

/* The name in an #include line whose tokens after "include" begin at `token`. */
static void read_include(struct text *text, const struct tutti_token *token) {
    const char *name = token->start + 1;
    const char *end = NULL;
    if (token->kind == TUTTI_TOKEN_LITERAL && *token->start == '"' && token->length > 2)
        end = token->start + token->length - 1;
    else if (*token->start == '<')
        end = name + strcspn(name, ">\n");
    if (!end || end == name)
        return;
    /* The text that holds the name moves while files are appended to it. */
    char *copy = strndup(name, (size_t)(end - name));
    if (copy)
        include(text, copy, strlen(copy));
    free(copy);
}

char *tutti_source_with_includes(const char *source, const char *options) {
    struct text text = {.options = options};
    if (!append(&text, source, strlen(source)))
        return NULL;
    struct tutti_reader reader;
    struct tutti_token token;
    unsigned directive = 0, place = 0;
    tutti_reader_init(&reader, text.bytes);
    while (tutti_reader_next(&reader, &token)) {
        if (token.directive != directive) {
            directive = token.directive;
            place = 0;
        }
        if (!directive)
            continue;
        if (place == 1 && !tutti_token_is(&token, "include"))
            place = 3;
        if (place++ == 2) {
            size_t at = (size_t)(reader.at - text.bytes);
            read_include(&text, &token);
            reader.at = text.bytes + at;
        }
    }
    return text.bytes;
}

/* The line that goes on before this place of the text: lines may be joined. */
static const char *line_start(const char *text, const char *at) {
    while (at > text && (at[-1] != '\n' || (at - 1 > text && strchr("\\\r", at[-2]))))
        at--;
    return at;
}

/* May the word there be a directive's, or the end of __has_include? Not in "this includes". */
static bool directs(const char *text, const char *word) {
    static const char *const signs[] = {"#", "%:", "\?\?=", "*/", "__has_"};
    const char *start = line_start(text, word);
    bool found = false;
    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]) && !found; i++)
        found = memmem(start, (size_t)(word - start), signs[i], strlen(signs[i]));
    return found;
}

/* Only where the source has directives does it matter which directories there are. */
static bool names_files(const char *options) {
    static const char *const names[] = {"-include", "--include", "-imacros", "--imacros", "@"};
    bool names_some = false;
    for (const char *at = options; at && *at && !names_some; at++) {
        bool begins = at == options || strchr(" \t\n\r\f\v\"'", at[-1]);
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && begins; i++)
            names_some = names_some || strncmp(at, names[i], strlen(names[i])) == 0;
    }
    return names_some;
}

bool tutti_source_reads_files(const char *source, const char *options) {
    static const char *const words[] = {"include", "import"};
    bool reads = names_files(options);
    struct tutti_branches branches;
    struct tutti_reader reader;
    struct tutti_token token;
    tutti_branches_init(&branches, source, options);
    tutti_reader_init(&reader, source);
    while (!reads && tutti_reader_next(&reader, &token)) {
        bool looks = !tutti_branches_leave_out(&branches, &token) && token.kind == TUTTI_TOKEN_WORD;
        for (size_t i = 0; looks && i < sizeof(words) / sizeof(*words); i++) {
            const char *word = memmem(token.start, token.length, words[i], strlen(words[i]));
            reads = reads || (word && directs(source, word));
        }
    }
    return reads;
}
