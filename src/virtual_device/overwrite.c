/* SPDX-License-Identifier: MIT */
#include "virtual_device/overwrite.h"

#include "virtual_device/kernel_text.h"

#include <stdint.h>
#include <string.h>

/* How far an index is followed from one variable to the next. */
#define DEEPEST 8

/* What one factor of an index is. */
struct factor {
    enum { UNKNOWN, ID, SIZE, ARGUMENT } kind;
    unsigned number; /* the dimension, or which argument */
};

struct proof {
    const struct tutti_kernel_text *text;
    const struct tutti_argument_info *info;
    unsigned count;
};

/* Tokens [first, end) of the text. */
struct range {
    size_t first, end;
};

static char mark(const struct proof *proof, size_t at) {
    const struct tutti_token *token = &proof->text->token[at];
    return token->kind == TUTTI_TOKEN_MARK ? *token->start : '\0';
}

static bool word_is(const struct proof *proof, size_t at, const char *text) {
    return tutti_token_is(&proof->text->token[at], text);
}

/* Integers that hold every index (a launch of more than 2^31 work-items is not covered). */
static bool is_wide_integer(const struct proof *proof, size_t at) {
    static const char *const types[] = {"int", "uint", "long", "ulong", "size_t"};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (word_is(proof, at, types[i]))
            return true;
    return false;
}

/* A statement of the outermost block begins here, so it is always executed. */
static bool begins_statement(const struct proof *proof, size_t at) {
    char before = mark(proof, at - 1);
    return proof->text->depth[at] == 1 && (before == ';' || before == '{' || before == '}');
}

/*
 * Is what stands between these two tokens written, or its address taken? In doubt yes. The body is
 * followed by nothing that matters, and preceded by a brace, so that neighbours exist.
 */
static bool is_changed_between(const struct proof *proof, size_t left, size_t right) {
    while (mark(proof, left) == '(' && mark(proof, right) == ')')
        left--, right++;
    char next = mark(proof, right), second = mark(proof, right + 1);
    if (next == '=')
        return second != '=';
    if (next && strchr("+-*/%&|^", next) &&
        (second == '=' || (second == next && next != '&' && next != '|' && next != '*')))
        return true;
    if ((next == '<' || next == '>') && second == next && mark(proof, right + 2) == '=')
        return true;
    char last = mark(proof, left), before = mark(proof, left - 1);
    if (last == '&') { /* "a && x" is harmless */
        const struct tutti_token *token = proof->text->token;
        return before != '&' || token[left - 1].start + 1 != token[left].start ||
               mark(proof, left - 2) == '&';
    }
    return (last == '+' || last == '-') && before == last;
}

static bool is_changed(const struct proof *proof, size_t at) {
    return is_changed_between(proof, at - 1, at + 1);
}

/* Never written in the body, but where it is declared (SIZE_MAX: a parameter). */
static bool stays(const struct proof *proof, const struct tutti_token *name, size_t declared) {
    const struct tutti_kernel_text *text = proof->text;
    for (size_t i = text->body + 1; i < text->end; i++)
        if (i != declared && tutti_token_same(&text->token[i], name) && mark(proof, i - 1) != '.' &&
            is_changed(proof, i))
            return false;
    return true;
}

/* The first token of the statement with this one, in the outermost block; 0 when it is deeper. */
static size_t statement_of(const struct proof *proof, size_t at) {
    for (; at > proof->text->body; at--)
        if (proof->text->depth[at] == 1 && begins_statement(proof, at))
            return at;
    return 0;
}

/* "const int x = 1, NAME = <range>": the initial value of a variable that never changes. */
static bool find_value(const struct proof *proof, const struct tutti_token *name,
                       struct range *value) {
    const struct tutti_kernel_text *text = proof->text;
    size_t at = text->body + 1;
    while (at < text->end &&
           (!tutti_token_same(&text->token[at], name) || mark(proof, at - 1) == '.'))
        at++;
    if (at >= text->end || text->depth[at] != 1 || mark(proof, at + 1) != '=' ||
        mark(proof, at + 2) == '=')
        return false;
    size_t first = statement_of(proof, at);
    if (!first)
        return false;
    if (word_is(proof, first, "const"))
        first++;
    if (!is_wide_integer(proof, first))
        return false;
    if (word_is(proof, first + 1, "const"))
        first++;
    /* The first declared, or one after a comma between declarators. */
    if (at != first + 1 && mark(proof, at - 1) != ',')
        return false;
    value->first = at + 2;
    value->end = value->first;
    while (value->end < text->end &&
           (text->depth[value->end] != 1 ||
            (mark(proof, value->end) != ',' && mark(proof, value->end) != ';')))
        value->end++;
    return stays(proof, name, at);
}

/* "get_global_id(0)", "(int)get_global_size(1)", a parameter, or a variable that is one of these.
 */
static struct factor find_factor(const struct proof *proof, struct range range, unsigned depth) {
    static const struct factor unknown = {UNKNOWN, 0};
    const struct tutti_token *token = proof->text->token;
    if (range.end > range.first + 3 && mark(proof, range.first) == '(' &&
        is_wide_integer(proof, range.first + 1) && mark(proof, range.first + 2) == ')')
        range.first += 3;
    size_t length = range.end - range.first, at = range.first;
    if (length == 4 && mark(proof, at + 1) == '(' && mark(proof, at + 3) == ')' &&
        (word_is(proof, at + 2, "0") || word_is(proof, at + 2, "1"))) {
        unsigned dimension = (unsigned)(*token[at + 2].start - '0');
        if (word_is(proof, at, "get_global_id"))
            return (struct factor){ID, dimension};
        if (word_is(proof, at, "get_global_size"))
            return (struct factor){SIZE, dimension};
    }
    if (length != 1 || token[at].kind != TUTTI_TOKEN_WORD || !depth)
        return unknown;
    for (unsigned i = 0; i < proof->count; i++) {
        const struct tutti_argument_info *info = &proof->info[i];
        static const char *const types[] = {"int", "uint", "long", "ulong"};
        if (!info->name || !tutti_token_is(&token[at], info->name))
            continue;
        for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++)
            if (info->kind == TUTTI_ARGUMENT_VALUE && strcmp(info->type_name, types[t]) == 0 &&
                stays(proof, &token[at], SIZE_MAX))
                return (struct factor){ARGUMENT, i};
        return unknown;
    }
    struct range value;
    return find_value(proof, &token[at], &value) ? find_factor(proof, value, depth - 1) : unknown;
}

/* The only such mark of the range; SIZE_MAX when there is none, or several. */
static size_t find_mark(const struct proof *proof, struct range range, char wanted) {
    size_t found = SIZE_MAX;
    for (size_t i = range.first; i < range.end; i++) {
        if (mark(proof, i) != wanted)
            continue;
        if (found != SIZE_MAX)
            return SIZE_MAX;
        found = i;
    }
    return found;
}

/* "row * width", in this order or the other. */
static bool is_row(const struct proof *proof, struct range range, struct tutti_overwrite *found) {
    size_t times = find_mark(proof, range, '*');
    if (times == SIZE_MAX)
        return false;
    struct factor one = find_factor(proof, (struct range){range.first, times}, DEEPEST);
    struct factor other = find_factor(proof, (struct range){times + 1, range.end}, DEEPEST);
    struct factor row = one.kind == ID ? one : other, width = one.kind == ID ? other : one;
    if (row.kind != ID || row.number != 1 - found->inner)
        return false;
    found->by_argument = width.kind == ARGUMENT;
    found->width = width.number;
    return width.kind == ARGUMENT || (width.kind == SIZE && width.number == found->inner);
}

/* Each work-item has another index, and together they have all from 0 on. */
static bool is_index(const struct proof *proof, struct range range, unsigned depth,
                     struct tutti_overwrite *found) {
    struct factor factor = find_factor(proof, range, DEEPEST);
    if (factor.kind == ID) {
        found->inner = factor.number;
        return true;
    }
    size_t plus = find_mark(proof, range, '+');
    if (plus == SIZE_MAX) {
        struct range value;
        return range.end == range.first + 1 && depth &&
               find_value(proof, &proof->text->token[range.first], &value) &&
               is_index(proof, value, depth - 1, found);
    }
    struct range left = {range.first, plus}, right = {plus + 1, range.end};
    struct range row = left;
    factor = find_factor(proof, right, DEEPEST);
    if (factor.kind != ID) {
        factor = find_factor(proof, left, DEEPEST);
        row = right;
    }
    found->inner = factor.number;
    found->plane = true;
    return factor.kind == ID && is_row(proof, row, found);
}

/* Of a scalar, or of a vector that is stored as a whole (three components are not); else 0. */
static size_t element_size(const char *type_name) {
    static const struct {
        const char *name;
        size_t size;
    } types[] = {{"char", 1}, {"uchar", 1}, {"short", 2}, {"ushort", 2}, {"int", 4},   {"uint", 4},
                 {"long", 8}, {"ulong", 8}, {"half", 2},  {"float", 4},  {"double", 8}};
    static const char *const lanes[] = {"", "2", "4", "8", "16"};
    static const size_t count[] = {1, 2, 4, 8, 16};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        size_t length = strlen(types[i].name);
        if (strncmp(type_name, types[i].name, length) != 0)
            continue;
        for (size_t k = 0; k < sizeof(count) / sizeof(count[0]); k++) {
            size_t digits = strlen(lanes[k]);
            if (strncmp(type_name + length, lanes[k], digits) == 0 &&
                strcmp(type_name + length + digits, "*") == 0)
                return types[i].size * count[k];
        }
    }
    return 0;
}

/* The only place of the body where the name stands; 0 when there is none, or several. */
static size_t only_use(const struct proof *proof, const char *name) {
    size_t found = 0;
    for (size_t i = proof->text->body + 1; i < proof->text->end; i++) {
        if (!word_is(proof, i, name))
            continue;
        if (found)
            return 0;
        found = i;
    }
    return found;
}

/* Behind the brackets that begin here. */
static size_t behind(const struct proof *proof, size_t open) {
    size_t at = open + 1;
    while (at < proof->text->end && proof->text->depth[at] >= proof->text->depth[open])
        at++;
    return at;
}

/* Each use in the body is an element, of which nothing is written and no address taken. */
static bool is_only_read(const struct proof *proof, const char *name) {
    for (size_t i = proof->text->body + 1; i < proof->text->end; i++) {
        if (!word_is(proof, i, name) || mark(proof, i - 1) == '.')
            continue;
        size_t right = i + 1;
        if (mark(proof, right) != '[')
            return false;
        while (mark(proof, right) == '[' || mark(proof, right) == '.')
            right = mark(proof, right) == '[' ? behind(proof, right) : right + 2;
        if (is_changed_between(proof, i - 1, right))
            return false;
    }
    return true;
}

static void prove(const struct proof *proof, unsigned index, struct tutti_overwrite *result) {
    const struct tutti_argument_info *info = &proof->info[index];
    struct tutti_overwrite found = {0};
    if (info->kind != TUTTI_ARGUMENT_BUFFER || info->reads_only || !info->name ||
        !info->type_name || info->address != CL_KERNEL_ARG_ADDRESS_GLOBAL)
        return;
    result->only_read = is_only_read(proof, info->name);
    if (!proof->text->straight)
        return;
    size_t at = only_use(proof, info->name), size = element_size(info->type_name);
    if (!at || !size || !begins_statement(proof, at) || mark(proof, at + 1) != '[')
        return;
    size_t close = at + 2;
    while (close < proof->text->end && proof->text->depth[close] > 1)
        close++;
    /* The depth of a closing bracket is that of what it ends. */
    if (mark(proof, close) != '=' || mark(proof, close + 1) == '=')
        return;
    if (!is_index(proof, (struct range){at + 2, close - 1}, DEEPEST, &found))
        return;
    found.element = size;
    *result = found;
}

void tutti_overwrite_prove(const char *source, const char *options, const char *kernel,
                           const struct tutti_argument_info *info, unsigned count,
                           struct tutti_overwrite *overwrites) {
    struct tutti_kernel_text text;
    if (!tutti_kernel_text_read(source, options, kernel, &text))
        return;
    const struct proof proof = {&text, info, count};
    for (unsigned i = 0; i < count; i++)
        prove(&proof, i, &overwrites[i]);
    tutti_kernel_text_free(&text);
}

static bool argument_is(const struct tutti_argument *argument, size_t value) {
    if (argument->size == sizeof(uint32_t)) {
        uint32_t number;
        memcpy(&number, argument->value, sizeof(number));
        return number == value;
    }
    uint64_t number;
    if (argument->size != sizeof(number))
        return false;
    memcpy(&number, argument->value, sizeof(number));
    return number == value;
}

bool tutti_overwrite_covers(const struct tutti_overwrite *overwrite,
                            const struct tutti_arguments *arguments, cl_uint dimensions,
                            const size_t *offset, const size_t *global, size_t size) {
    cl_uint inner = overwrite->inner, needed = overwrite->plane ? 2 : inner + 1;
    if (!overwrite->element || dimensions < needed || global[inner] > INT32_MAX)
        return false;
    for (cl_uint d = 0; d < needed; d++)
        if (offset[d])
            return false;
    size_t items = global[inner];
    if (overwrite->plane) {
        size_t rows = global[1 - inner];
        if (overwrite->by_argument && !argument_is(&arguments->argument[overwrite->width], items))
            return false;
        if (!items || rows > INT32_MAX / items)
            return false;
        items *= rows;
    }
    return size % overwrite->element == 0 && size / overwrite->element == items;
}
