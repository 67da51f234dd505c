/* SPDX-License-Identifier: MIT */
#include "virtual_device/source.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Of included files; far above any real program. */
#define MAX_TEXT ((size_t)16 << 20)
#define MAX_FILES 256

static bool word_start(char c) { return isalpha((unsigned char)c) || c == '_'; }

static bool word_part(char c) { return isalnum((unsigned char)c) || c == '_'; }

void tutti_reader_init(struct tutti_reader *reader, const char *source) {
    *reader = (struct tutti_reader){.at = source, .line_start = true};
}

/* Bytes of a spliced line end (backslash, newline) at `p`; 0 when there is none. */
static size_t splice(const char *p) {
    if (p[0] != '\\')
        return 0;
    if (p[1] == '\n')
        return 2;
    return p[1] == '\r' && p[2] == '\n' ? 3 : 0;
}

static const char *skip_comment(const char *p) {
    if (p[1] == '*') {
        const char *end = strstr(p + 2, "*/");
        return end ? end + 2 : p + strlen(p);
    }
    while (*p && *p != '\n') {
        size_t joined = splice(p);
        p += joined ? joined : 1;
    }
    return p;
}

static void skip_blanks(struct tutti_reader *reader) {
    const char *p = reader->at;
    for (;;) {
        size_t joined = splice(p);
        if (joined) {
            p += joined;
        } else if (*p == '\n') {
            reader->line_start = true;
            reader->in_directive = false;
            p++;
        } else if (isspace((unsigned char)*p)) {
            p++;
        } else if (p[0] == '/' && (p[1] == '*' || p[1] == '/')) {
            p = skip_comment(p);
        } else {
            break;
        }
    }
    reader->at = p;
}

static const char *literal_end(const char *p) {
    char quote = *p++;
    while (*p && *p != quote && *p != '\n') {
        if (*p == '\\' && p[1])
            p++;
        p++;
    }
    return *p == quote ? p + 1 : p;
}

bool tutti_reader_next(struct tutti_reader *reader, struct tutti_token *token) {
    skip_blanks(reader);
    const char *p = reader->at;
    if (reader->line_start && *p == '#') {
        reader->in_directive = true;
        reader->directives++;
    }
    reader->line_start = false;
    token->start = p;
    token->directive = reader->in_directive ? reader->directives : 0;
    if (!*p) {
        token->kind = TUTTI_TOKEN_END;
        token->length = 0;
        return false;
    }
    if (word_start(*p)) {
        token->kind = TUTTI_TOKEN_WORD;
        while (word_part(*p))
            p++;
    } else if (isdigit((unsigned char)*p)) {
        token->kind = TUTTI_TOKEN_NUMBER;
        while (word_part(*p) || *p == '.')
            p++;
    } else if (*p == '"' || *p == '\'') {
        token->kind = TUTTI_TOKEN_LITERAL;
        p = literal_end(p);
    } else {
        token->kind = TUTTI_TOKEN_MARK;
        p++;
    }
    token->length = (size_t)(p - token->start);
    reader->at = p;
    return true;
}

bool tutti_token_is(const struct tutti_token *token, const char *text) {
    return strlen(text) == token->length && memcmp(token->start, text, token->length) == 0;
}

bool tutti_source_prints(const char *source) {
    struct tutti_reader reader;
    struct tutti_token token;
    tutti_reader_init(&reader, source);
    while (tutti_reader_next(&reader, &token))
        if (token.kind == TUTTI_TOKEN_WORD && tutti_token_is(&token, "printf"))
            return true;
    return false;
}

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

/* Is the name defined by the program itself: a #define of the source, a -D of the options? */
static bool defined_by_program(const char *source, const char *options,
                               const struct tutti_token *name) {
    struct tutti_reader reader;
    struct tutti_token token, before = {0};
    tutti_reader_init(&reader, source);
    while (tutti_reader_next(&reader, &token)) {
        if (token.directive && before.directive == token.directive &&
            tutti_token_is(&before, "define") && token.length == name->length &&
            memcmp(token.start, name->start, name->length) == 0)
            return true;
        before = token;
    }
    for (const char *p = options ? strstr(options, "-D") : NULL; p; p = strstr(p, "-D")) {
        p += 2;
        p += strspn(p, " \t\"'");
        if (strncmp(p, name->start, name->length) == 0 && !word_part(p[name->length]))
            return true;
    }
    return false;
}

static bool has_extension(const struct tutti_real_device *device, const struct tutti_token *name) {
    char word[128];
    if (name->length + 3 > sizeof(word))
        return false;
    snprintf(word, sizeof(word), " %.*s ", (int)name->length, name->start);
    return strstr(device->extensions, word) != NULL;
}

static bool starts_with(const struct tutti_token *name, const char *prefix) {
    size_t length = strlen(prefix);
    return name->length >= length && memcmp(name->start, prefix, length) == 0;
}

static bool tells_apart(const struct tutti_token *name, const struct tutti_real_device *one,
                        const struct tutti_real_device *other) {
    /* No OpenCL C compiler defines these, whatever the machine. */
    static const char *const nowhere[] = {"__cplusplus", "__APPLE__",  "_WIN32",       "_WIN64",
                                          "_MSC_VER",    "__CUDACC__", "__CUDA_ARCH__"};
    if (one->identity == other->identity)
        return false;
    if (starts_with(name, "cl_") || starts_with(name, "cles_"))
        return has_extension(one, name) != has_extension(other, name);
    if (starts_with(name, "__OPENCL_") || starts_with(name, "CL_VERSION_"))
        return one->version != other->version;
    if (tutti_token_is(name, "__IMAGE_SUPPORT__"))
        return one->image_support != other->image_support;
    if (tutti_token_is(name, "__ENDIAN_LITTLE__") || tutti_token_is(name, "__kernel_exec"))
        return false;
    for (size_t i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++)
        if (tutti_token_is(name, nowhere[i]))
            return false;
    /* Other reserved names belong to the compiler, that is to the vendor or the kind of device. */
    bool reserved = name->length > 2 && name->start[0] == '_' &&
                    (name->start[1] == '_' || isupper((unsigned char)name->start[1]));
    return reserved || starts_with(name, "FP_FAST_FMA");
}

bool tutti_source_differs(const char *source, const char *options,
                          const struct tutti_real_device *one,
                          const struct tutti_real_device *other, char *name, size_t name_size) {
    struct tutti_reader reader;
    struct tutti_token token;
    unsigned directive = 0;
    bool first = false, tests = false;
    tutti_reader_init(&reader, source);
    while (tutti_reader_next(&reader, &token)) {
        if (!token.directive)
            continue;
        if (token.directive != directive) {
            directive = token.directive;
            first = true;
            tests = false;
            continue;
        }
        if (first) {
            first = false;
            tests = tutti_token_is(&token, "if") || tutti_token_is(&token, "ifdef") ||
                    tutti_token_is(&token, "ifndef") || tutti_token_is(&token, "elif");
            continue;
        }
        if (tests && token.kind == TUTTI_TOKEN_WORD && tells_apart(&token, one, other) &&
            !defined_by_program(source, options, &token)) {
            snprintf(name, name_size, "%.*s", (int)token.length, token.start);
            return true;
        }
    }
    return false;
}
