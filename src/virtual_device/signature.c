/* SPDX-License-Identifier: MIT */
#include "virtual_device/argument_info.h"
#include "virtual_device/source.h"

#include <stdlib.h>
#include <string.h>

/*
 * Reads kernel declarations without a preprocessor. Macros without parameters, and typedefs of
 * pointers, are replaced; conditionals are not obeyed, so the first declaration of a kernel counts.
 */
struct tokens {
    struct tutti_token *token;
    size_t count;
    bool failed;
};

struct alias {
    struct tutti_token name;
    size_t first, count; /* of `tokens` */
};

struct aliases {
    struct alias *alias;
    size_t count;
    struct tokens tokens;
};

static void push(struct tokens *list, const struct tutti_token *token) {
    if (list->failed)
        return;
    if ((list->count & (list->count - 1)) == 0) {
        size_t room = list->count ? 2 * list->count : 1;
        struct tutti_token *grown = realloc(list->token, room * sizeof(*grown));
        if (!grown) {
            list->failed = true;
            return;
        }
        list->token = grown;
    }
    list->token[list->count++] = *token;
}

static void add_alias(struct aliases *aliases, const struct tutti_token *name,
                      const struct tutti_token *token, size_t count) {
    struct alias *grown = realloc(aliases->alias, (aliases->count + 1) * sizeof(*grown));
    if (!grown) {
        aliases->tokens.failed = true;
        return;
    }
    aliases->alias = grown;
    grown[aliases->count++] =
        (struct alias){.name = *name, .first = aliases->tokens.count, .count = count};
    for (size_t i = 0; i < count; i++)
        push(&aliases->tokens, &token[i]);
}

/* Appends the token, or what it stands for. */
static void expand(const struct aliases *aliases, const struct tutti_token *token,
                   struct tokens *out, unsigned depth) {
    for (size_t i = aliases->count; token->kind == TUTTI_TOKEN_WORD && depth && i-- > 0;) {
        const struct alias *alias = &aliases->alias[i];
        if (!tutti_token_same(&alias->name, token))
            continue;
        for (size_t k = 0; k < alias->count; k++)
            expand(aliases, &aliases->tokens.token[alias->first + k], out, depth - 1);
        return;
    }
    push(out, token);
}

/* The tokens of a directive: remembers "#define NAME words". */
static void read_directive(struct aliases *aliases, const struct tutti_token *line, size_t count) {
    if (count < 3 || !tutti_token_is(&line[1], "define") || line[2].kind != TUTTI_TOKEN_WORD)
        return;
    bool function = line[2].start[line[2].length] == '(';
    if (!function && count <= 3 + 32)
        add_alias(aliases, &line[2], line + 3, count - 3);
}

/* The tokens from "typedef" to before ";": remembers names of pointers and images. */
static void read_typedef(struct aliases *aliases, const struct tutti_token *token, size_t count) {
    bool object = false;
    if (count < 3 || count > 32 || token[count - 1].kind != TUTTI_TOKEN_WORD)
        return;
    for (size_t i = 1; i + 1 < count; i++) {
        if (strchr("{([", *token[i].start))
            return;
        object = object || *token[i].start == '*' || tutti_token_is(&token[i], "sampler_t") ||
                 (token[i].length > 5 && memcmp(token[i].start, "image", 5) == 0);
    }
    if (object)
        add_alias(aliases, &token[count - 1], token + 1, count - 2);
}

/* All tokens outside directives, expanded. */
static void read_tokens(const char *source, struct tokens *out) {
    struct tutti_reader reader;
    struct tutti_token token;
    struct aliases aliases = {0};
    struct tokens line = {0};
    size_t type = SIZE_MAX; /* where the last typedef begins */
    tutti_reader_init(&reader, source);
    do {
        tutti_reader_next(&reader, &token);
        if (line.count && token.directive != line.token[0].directive) {
            read_directive(&aliases, line.token, line.count);
            line.count = 0;
            free(line.token);
            line.token = NULL;
        }
        if (token.directive) {
            push(&line, &token);
        } else if (token.kind != TUTTI_TOKEN_END) {
            size_t before = out->count;
            expand(&aliases, &token, out, 8);
            if (tutti_token_is(&token, "typedef"))
                type = before;
            if (*token.start == ';' && type != SIZE_MAX && !out->failed) {
                read_typedef(&aliases, out->token + type, before - type);
                type = SIZE_MAX;
            }
        }
    } while (token.kind != TUTTI_TOKEN_END && !out->failed);
    out->failed = out->failed || line.failed || aliases.tokens.failed;
    free(line.token);
    free(aliases.tokens.token);
    free(aliases.alias);
}

/* After the balanced brackets that begin at `at`. */
static size_t skip_brackets(const struct tokens *list, size_t at) {
    size_t depth = 0;
    for (; at < list->count; at++) {
        char c = *list->token[at].start;
        if (c == '(' || c == '[' || c == '{')
            depth++;
        else if ((c == ')' || c == ']' || c == '}') && --depth == 0)
            return at + 1;
    }
    return at;
}

static bool is_word(const struct tutti_token *token, const char *text) {
    return tutti_token_is(token, text) ||
           (token->length > 2 && memcmp(token->start, "__", 2) == 0 &&
            strlen(text) == token->length - 2 &&
            memcmp(token->start + 2, text, token->length - 2) == 0);
}

static char *type_name(const struct tutti_token *const *word, size_t count, bool is_unsigned,
                       size_t pointers) {
    size_t size = 1 + pointers + strlen("uint");
    for (size_t i = 0; i < count; i++)
        size += word[i]->length + 1;
    char *name = calloc(1, size);
    if (!name)
        return NULL;
    if (is_unsigned)
        strcat(name, "u");
    for (size_t i = 0; i < count; i++) {
        if (i && i + 1 <= count && tutti_token_is(word[i - 1], "struct"))
            strcat(name, " ");
        strncat(name, word[i]->start, word[i]->length);
    }
    if (!count)
        strcat(name, "int");
    for (size_t i = 0; i < pointers; i++)
        strcat(name, "*");
    return name;
}

/* One parameter; false when it can't be read. */
static bool read_parameter(const struct tutti_token *token, size_t count,
                           struct tutti_argument_info *info) {
    const struct tutti_token *word[16];
    size_t words = 0, pointers = 0;
    bool is_unsigned = false, is_const = false, is_volatile = false, is_restrict = false;
    bool is_pipe = false, array = false;
    cl_kernel_arg_address_qualifier address = CL_KERNEL_ARG_ADDRESS_PRIVATE;
    cl_kernel_arg_access_qualifier access = CL_KERNEL_ARG_ACCESS_READ_ONLY;
    struct tokens all = {.token = (struct tutti_token *)token, .count = count};
    for (size_t i = 0; i < count; i++) {
        const struct tutti_token *t = &token[i];
        if (*t->start == '*') {
            pointers++;
        } else if (*t->start == '[') {
            array = true;
            i = skip_brackets(&all, i) - 1;
        } else if (tutti_token_is(t, "__attribute__")) {
            i = skip_brackets(&all, i + 1) - 1;
        } else if (t->kind != TUTTI_TOKEN_WORD) {
            return false;
        } else if (is_word(t, "global")) {
            address = CL_KERNEL_ARG_ADDRESS_GLOBAL;
        } else if (is_word(t, "local")) {
            address = CL_KERNEL_ARG_ADDRESS_LOCAL;
        } else if (is_word(t, "constant")) {
            address = CL_KERNEL_ARG_ADDRESS_CONSTANT;
        } else if (is_word(t, "read_only")) {
            access = CL_KERNEL_ARG_ACCESS_READ_ONLY;
        } else if (is_word(t, "write_only")) {
            access = CL_KERNEL_ARG_ACCESS_WRITE_ONLY;
        } else if (is_word(t, "read_write")) {
            access = CL_KERNEL_ARG_ACCESS_READ_WRITE;
        } else if (is_word(t, "const")) {
            is_const = is_const || !pointers;
        } else if (is_word(t, "volatile")) {
            is_volatile = is_volatile || !pointers;
        } else if (is_word(t, "restrict")) {
            is_restrict = true;
        } else if (is_word(t, "pipe")) {
            is_pipe = true;
        } else if (tutti_token_is(t, "unsigned")) {
            is_unsigned = true;
        } else if (!is_word(t, "private") && !tutti_token_is(t, "signed")) {
            if (words == sizeof(word) / sizeof(word[0]))
                return false;
            word[words++] = t;
        }
    }
    pointers += array;
    if (!words || (words == 1 && !is_unsigned))
        return false; /* no name: a declaration, not the definition */
    const struct tutti_token *name = word[--words];
    info->name = strndup(name->start, name->length);
    info->type_name = type_name(word, words, is_unsigned, pointers);
    if (!info->name || !info->type_name)
        return false;
    bool image = strncmp(info->type_name, "image", 5) == 0 && !pointers;
    info->access = image || is_pipe ? access : CL_KERNEL_ARG_ACCESS_NONE;
    info->address =
        image ? CL_KERNEL_ARG_ADDRESS_GLOBAL : (pointers ? address : CL_KERNEL_ARG_ADDRESS_PRIVATE);
    info->type_qualifier = is_pipe ? CL_KERNEL_ARG_TYPE_PIPE : CL_KERNEL_ARG_TYPE_NONE;
    if (pointers && (is_const || address == CL_KERNEL_ARG_ADDRESS_CONSTANT))
        info->type_qualifier |= CL_KERNEL_ARG_TYPE_CONST;
    if (pointers && is_volatile)
        info->type_qualifier |= CL_KERNEL_ARG_TYPE_VOLATILE;
    if (pointers && is_restrict)
        info->type_qualifier |= CL_KERNEL_ARG_TYPE_RESTRICT;
    tutti_argument_info_classify(info);
    return true;
}

/* The parameters between the brackets at `open` and before `close`. */
static bool read_parameters(const struct tokens *list, size_t open, size_t close,
                            struct tutti_signature *signature) {
    size_t first = open + 1;
    if (first == close || (first + 1 == close && tutti_token_is(&list->token[first], "void")))
        return true;
    for (size_t i = first; i <= close;) {
        char c = *list->token[i].start;
        if (i < close && (c == '(' || c == '[')) {
            i = skip_brackets(list, i);
            continue;
        }
        if (i == close || c == ',') {
            unsigned n = signature->argument_count;
            struct tutti_argument_info *grown =
                realloc(signature->info, (n + 1) * sizeof(*signature->info));
            if (!grown)
                return false;
            signature->info = grown;
            grown[n] = (struct tutti_argument_info){0};
            signature->argument_count = n + 1;
            if (!read_parameter(&list->token[first], i - first, &grown[n]))
                return false;
            first = i + 1;
        }
        i++;
    }
    return true;
}

/* The declaration after the word "kernel" before `at`; returns where it ends. */
static size_t read_kernel(const struct tokens *list, size_t at, struct tutti_signature *signature) {
    const struct tutti_token *name = NULL;
    while (at < list->count && *list->token[at].start != '(') {
        if (tutti_token_is(&list->token[at], "__attribute__"))
            at = skip_brackets(list, at + 1);
        else if (list->token[at].kind == TUTTI_TOKEN_WORD)
            name = &list->token[at++];
        else
            return at;
    }
    size_t end = at < list->count ? skip_brackets(list, at) : at;
    if (!name || end == at || !read_parameters(list, at, end - 1, signature)) {
        tutti_signature_clear(signature);
        return end;
    }
    signature->name = strndup(name->start, name->length);
    return end;
}

bool tutti_signatures_read(const char *source, struct tutti_signatures *list) {
    struct tokens tokens = {0};
    read_tokens(source, &tokens);
    bool done = !tokens.failed;
    for (size_t i = 0; done && i < tokens.count;) {
        if (!is_word(&tokens.token[i], "kernel")) {
            i++;
            continue;
        }
        struct tutti_signature signature = {0};
        i = read_kernel(&tokens, i + 1, &signature);
        if (!signature.name || tutti_signatures_find(list, signature.name))
            tutti_signature_clear(&signature);
        else
            done = tutti_signatures_add(list, &signature);
    }
    free(tokens.token);
    return done;
}
