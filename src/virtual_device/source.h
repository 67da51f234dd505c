/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_SOURCE_H
#define TUTTI_SOURCE_H

#include "virtual_device/device.h"

/*
 * A light reader of OpenCL C: words, literals and punctuation, comments left out, preprocessing
 * directives marked and not obeyed.
 */
enum tutti_token_kind {
    TUTTI_TOKEN_END,
    TUTTI_TOKEN_WORD,    /* identifier or keyword */
    TUTTI_TOKEN_NUMBER,  /* preprocessing number */
    TUTTI_TOKEN_LITERAL, /* string or character */
    TUTTI_TOKEN_MARK,    /* one character of punctuation */
};

struct tutti_token {
    enum tutti_token_kind kind;
    const char *start;
    size_t length;
    unsigned directive; /* 0 outside; else counts from 1, the same for all tokens of one line */
};

struct tutti_reader {
    const char *at;
    unsigned directives;
    bool in_directive;
    bool line_start;
};

void tutti_reader_init(struct tutti_reader *reader, const char *source);

/* False at the end of the source; the token is then TUTTI_TOKEN_END. */
bool tutti_reader_next(struct tutti_reader *reader, struct tutti_token *token);

bool tutti_token_is(const struct tutti_token *token, const char *text);

/* Are they the same text? */
bool tutti_token_same(const struct tutti_token *one, const struct tutti_token *other);

/* Is the macro defined, whatever device the source is compiled for? */
enum tutti_knowledge { TUTTI_MAYBE, TUTTI_YES, TUTTI_NO };
enum tutti_knowledge tutti_source_knows(const char *source, const char *options,
                                        const struct tutti_token *name);

/* Does the source name printf outside comments and literals? */
bool tutti_source_prints(const char *source);

/*
 * Conditional directives that test what the two devices define differently (an extension, the
 * version, the vendor) can give the source another meaning on each: argument types, layouts,
 * launch sizes. So do sub-groups, whose size the program may know. Copies the first such name into
 * `name`. `options` (may be NULL) are the build's: a macro defined there or in the source itself is
 * no difference.
 */
bool tutti_source_differs(const char *source, const char *options,
                          const struct tutti_real_device *one,
                          const struct tutti_real_device *other, char *name, size_t name_size);

#endif
