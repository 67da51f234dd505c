/* SPDX-License-Identifier: MIT */
#include "virtual_device/source.h"

#include "virtual_device/merged.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

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

bool tutti_token_same(const struct tutti_token *one, const struct tutti_token *other) {
    return one->length == other->length && memcmp(one->start, other->start, one->length) == 0;
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

/* Is the name defined by the program itself: a #define of the source, an option? */
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
    if (tutti_token_is(name, "__OPENCL_C_VERSION__") && options && strstr(options, "-cl-std="))
        return true;
    for (const char *p = options ? strstr(options, "-D") : NULL; p; p = strstr(p, "-D")) {
        p += 2;
        p += strspn(p, " \t\"'");
        if (strncmp(p, name->start, name->length) == 0 && !word_part(p[name->length]))
            return true;
    }
    return false;
}

/* Do only one of the lists have the name, and the virtual device too? (tutti_source_prologue) */
static bool lists_differ(const struct tutti_token *name, const char *one, const char *other,
                         const struct tutti_names *shown) {
    char word[128];
    if (name->length + 3 > sizeof(word))
        return false;
    snprintf(word, sizeof(word), " %.*s ", (int)name->length, name->start);
    return shown->text && strstr(shown->text, word) && !strstr(one, word) != !strstr(other, word);
}

static bool starts_with(const struct tutti_token *name, const char *prefix) {
    size_t length = strlen(prefix);
    return name->length >= length && memcmp(name->start, prefix, length) == 0;
}

/* No OpenCL C compiler defines it, whatever the machine. */
static bool is_nowhere(const struct tutti_token *name) {
    static const char *const names[] = {"__cplusplus", "__APPLE__",  "_WIN32",       "_WIN64",
                                        "_MSC_VER",    "__CUDACC__", "__CUDA_ARCH__"};
    bool found = false;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !found; i++)
        found = tutti_token_is(name, names[i]);
    return found;
}

enum tutti_knowledge tutti_source_knows(const char *source, const char *options,
                                        const struct tutti_token *name) {
    if (tutti_token_is(name, "__OPENCL_VERSION__") || tutti_token_is(name, "__OPENCL_C_VERSION__"))
        return TUTTI_YES;
    return is_nowhere(name) && !defined_by_program(source, options, name) ? TUTTI_NO : TUTTI_MAYBE;
}

static bool tells_apart(const struct tutti_token *name, const struct tutti_real_device *one,
                        const struct tutti_real_device *other) {
    const struct tutti_merged *merged = tutti_merged();
    if (starts_with(name, "cl_") || starts_with(name, "cles_"))
        return lists_differ(name, one->extensions, other->extensions, &merged->extensions);
    if (starts_with(name, "__opencl_c_"))
        return lists_differ(name, one->features, other->features, &merged->features);
    if (tutti_token_is(name, "__OPENCL_VERSION__"))
        return false; /* the virtual device's, as its prologue says */
    if (tutti_token_is(name, "__OPENCL_C_VERSION__") && merged->version < 300)
        return false; /* 1.2 if no option says otherwise, on all of them (build_device.c) */
    if (starts_with(name, "__OPENCL_") || starts_with(name, "CL_VERSION_"))
        return one->version != other->version;
    if (tutti_token_is(name, "__IMAGE_SUPPORT__"))
        return merged->limits.image_support && one->image_support != other->image_support;
    if (tutti_token_is(name, "__ENDIAN_LITTLE__") || tutti_token_is(name, "__kernel_exec"))
        return false;
    if (is_nowhere(name))
        return false;
    /* Other reserved names belong to the compiler, that is to the vendor or the kind of device. */
    bool reserved = name->length > 2 && name->start[0] == '_' &&
                    (name->start[1] == '_' || isupper((unsigned char)name->start[1]));
    return reserved || starts_with(name, "FP_FAST_FMA");
}

/* Their size is the device's, and the program may have asked for the lead's. */
static bool speaks_of_sub_groups(const struct tutti_token *token) {
    static const char word[] = "sub_group";
    for (size_t i = 0; i + strlen(word) <= token->length && token->kind == TUTTI_TOKEN_WORD; i++)
        if (memcmp(token->start + i, word, strlen(word)) == 0)
            return true;
    return false;
}

bool tutti_source_differs(const char *source, const char *options,
                          const struct tutti_real_device *one,
                          const struct tutti_real_device *other, char *name, size_t name_size) {
    struct tutti_reader reader;
    struct tutti_token token;
    unsigned directive = 0;
    bool first = false, tests = false;
    if (one->identity == other->identity)
        return false;
    tutti_reader_init(&reader, source);
    while (tutti_reader_next(&reader, &token)) {
        if (!token.directive) {
            if (!speaks_of_sub_groups(&token))
                continue;
            snprintf(name, name_size, "%.*s", (int)token.length, token.start);
            return true;
        }
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
