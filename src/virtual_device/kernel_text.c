/* SPDX-License-Identifier: MIT */
#include "virtual_device/kernel_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Longer sources are not read: creating a kernel should not take long. */
#define LONGEST ((size_t)1 << 18)
/* So many tokens behind the last one may be looked at. */
#define PADDING 4

struct names {
    struct tutti_token *name;
    size_t count;
};

static bool is_any(const struct tutti_token *token, const char *const *words, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (tutti_token_is(token, words[i]))
            return true;
    return false;
}

#define IS_ANY(token, words) is_any(token, words, sizeof(words) / sizeof((words)[0]))

/* Spellings that would hide something from the reader: trigraphs, joined lines, C++. */
static bool is_plain(const char *source, const char *options) {
    static const char *const hiding[] = {"CLC++", "clc++", "-include", "-x"};
    if (!*source || strlen(source) > LONGEST || strstr(source, "\?\?") || strstr(source, "\\\n") ||
        strstr(source, "\\\r"))
        return false;
    for (size_t i = 0; options && i < sizeof(hiding) / sizeof(hiding[0]); i++)
        if (strstr(options, hiding[i]))
            return false;
    return true;
}

/* Grows an array when its count is a power of two. */
static void *grown(void *array, size_t count, size_t size) {
    if (count & (count - 1))
        return array;
    return realloc(array, (count ? 2 * count : 1) * size);
}

static bool add_name(struct names *names, const struct tutti_token *name) {
    struct tutti_token *list = grown(names->name, names->count, sizeof(*list));
    if (!list)
        return false;
    names->name = list;
    list[names->count++] = *name;
    return true;
}

/* Of directives only "#define" and "#pragma OPENCL" are understood. `at` counts their tokens. */
static bool read_directive(struct names *defined, const struct tutti_token *token, unsigned at,
                           bool *defines) {
    if (at == 1) {
        *defines = tutti_token_is(token, "define");
        return *defines || tutti_token_is(token, "pragma");
    }
    if (at == 2)
        return *defines ? add_name(defined, token) : tutti_token_is(token, "OPENCL");
    return true;
}

/* Marks of OpenCL C; and no digraph, which would be another spelling of a bracket. */
static bool is_understood(const struct tutti_token *token, const struct tutti_token *before) {
    static const char *const words[] = {"asm", "__asm", "__asm__", "_Pragma"};
    static const char *const digraphs[] = {"<%", "%>", "<:", ":>", "%:"};
    if (token->kind == TUTTI_TOKEN_WORD)
        return !IS_ANY(token, words);
    if (token->kind != TUTTI_TOKEN_MARK)
        return true;
    for (size_t i = 0; i < sizeof(digraphs) / sizeof(digraphs[0]); i++)
        if (before && before->start + 1 == token->start && *before->start == digraphs[i][0] &&
            *token->start == digraphs[i][1])
            return false;
    return strchr("{}()[];,.<>+-*/%&|^~!?:=", *token->start) != NULL;
}

/* All tokens but the directives', with their depth. */
static bool read_all(const char *source, struct tutti_kernel_text *text, struct names *defined) {
    struct tutti_reader reader;
    struct tutti_token token;
    unsigned directive = 0, at = 0, depth = 0;
    bool defines = false;
    size_t room = 0;
    tutti_reader_init(&reader, source);
    do {
        tutti_reader_next(&reader, &token);
        if (token.directive) {
            at = token.directive == directive ? at + 1 : 0;
            directive = token.directive;
            if (!read_directive(defined, &token, at, &defines))
                return false;
            continue;
        }
        if (text->count + PADDING >= room) {
            room = 2 * room + 256;
            struct tutti_token *tokens = realloc(text->token, room * sizeof(*tokens));
            if (tokens)
                text->token = tokens;
            unsigned *depths = realloc(text->depth, room * sizeof(*depths));
            if (depths)
                text->depth = depths;
            if (!tokens || !depths)
                return false;
        }
        if (!is_understood(&token, text->count ? &text->token[text->count - 1] : NULL))
            return false;
        char c = token.kind == TUTTI_TOKEN_MARK ? *token.start : '\0';
        bool opens = c && strchr("([{", c), closes = c && strchr(")]}", c);
        if (closes && depth == 0)
            return false;
        depth += opens;
        text->token[text->count] = token;
        text->depth[text->count++] = depth;
        depth -= closes;
    } while (token.kind != TUTTI_TOKEN_END);
    text->count--;
    for (size_t i = 1; i < PADDING; i++) {
        text->token[text->count + i] = text->token[text->count];
        text->depth[text->count + i] = 0;
    }
    return depth == 0;
}

/* After the bracket that closes the one at `at`. */
static size_t skip_brackets(const struct tutti_kernel_text *text, size_t at) {
    unsigned depth = text->depth[at];
    for (at++; at < text->count; at++)
        if (text->depth[at] == depth && strchr(")]}", *text->token[at].start))
            return at + 1;
    return at;
}

/* Finds the one definition of the kernel, outside all brackets. */
static bool find_kernel(struct tutti_kernel_text *text, const char *kernel) {
    bool found = false;
    for (size_t i = 0; i < text->count; i++) {
        const struct tutti_token *token = &text->token[i];
        /* The program's own functions of these names would be others. */
        if (text->depth[i] == 0 &&
            (tutti_token_is(token, "get_global_id") || tutti_token_is(token, "get_global_size")))
            return false;
        if (text->depth[i] != 0 ||
            !(tutti_token_is(token, "kernel") || tutti_token_is(token, "__kernel")))
            continue;
        size_t open = i + 1, name = 0;
        while (open < text->count && *text->token[open].start != '(') {
            name = open;
            open = tutti_token_is(&text->token[open], "__attribute__")
                       ? skip_brackets(text, open + 1)
                       : open + 1;
        }
        if (!name || open >= text->count || !tutti_token_is(&text->token[name], kernel))
            continue;
        /* A declaration besides may name the arguments in another way. */
        size_t after = skip_brackets(text, open);
        if (found || *text->token[after].start != '{')
            return false;
        found = true;
        text->first = i;
        text->body = after;
        text->end = skip_brackets(text, after) - 1;
    }
    return found;
}

static bool is_word_part(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* Is the word a macro, of the source or of the options? */
static bool is_macro(const struct tutti_token *word, const struct names *defined,
                     const char *options) {
    for (size_t i = 0; i < defined->count; i++)
        if (tutti_token_same(&defined->name[i], word))
            return true;
    for (const char *p = options ? strstr(options, "-D") : NULL; p; p = strstr(p, "-D")) {
        p += 2;
        p += strspn(p, " \t\"'");
        if (strncmp(p, word->start, word->length) == 0 && !is_word_part(p[word->length]))
            return true;
    }
    return false;
}

/* No macros. Notes what leaves the body early, or declares types in it. */
static bool is_literal(struct tutti_kernel_text *text, const struct names *defined,
                       const char *options) {
    static const char *const words[] = {"return",  "goto",   "switch", "case",
                                        "typedef", "struct", "union",  "enum"};
    for (size_t i = text->first; i <= text->end; i++) {
        const struct tutti_token *token = &text->token[i];
        if (token->kind != TUTTI_TOKEN_WORD)
            continue;
        if (is_macro(token, defined, options))
            return false;
        text->straight = text->straight && !(i > text->body && IS_ANY(token, words));
    }
    return true;
}

bool tutti_kernel_text_read(const char *source, const char *options, const char *kernel,
                            struct tutti_kernel_text *text) {
    struct names defined = {NULL, 0};
    *text = (struct tutti_kernel_text){.straight = true};
    bool done = is_plain(source, options) && read_all(source, text, &defined) &&
                find_kernel(text, kernel) && is_literal(text, &defined, options);
    free(defined.name);
    if (!done)
        tutti_kernel_text_free(text);
    return done;
}

void tutti_kernel_text_free(struct tutti_kernel_text *text) {
    free(text->token);
    free(text->depth);
    *text = (struct tutti_kernel_text){0};
}
