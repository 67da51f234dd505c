/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_BRANCHES_H
#define TUTTI_BRANCHES_H

#include "virtual_device/source.h"

/*
 * Follows the conditional directives of a source as its tokens are read: which branches does every
 * compiler of OpenCL C leave out, whatever the device? Only what is plain counts: whether one macro
 * is defined, which all of them define, or none, or the source before.
 */
#define TUTTI_BRANCHES_DEEP 32
#define TUTTI_BRANCHES_FACTS 512

struct tutti_branches {
    const char *source, *options;
    bool plain; /* all was followed so far, and no directive is spelt in an odd way */
    unsigned directive, count;
    struct tutti_token line[7]; /* the first tokens of that directive */
    unsigned depth;             /* of conditionals; at each: */
    struct {
        enum tutti_knowledge taken; /* was one of its branches so far the one that is compiled? */
        enum tutti_knowledge here;  /* and is the one that is read, with all around it? */
    } at[TUTTI_BRANCHES_DEEP];
    unsigned facts; /* what the source itself says of macros, the last word counts */
    struct {
        struct tutti_token name;
        enum tutti_knowledge defined;
    } fact[TUTTI_BRANCHES_FACTS];
};

/* `options` (may be NULL) are the build's. */
void tutti_branches_init(struct tutti_branches *branches, const char *source, const char *options);

/* The next token: is it in such a branch? */
bool tutti_branches_leave_out(struct tutti_branches *branches, const struct tutti_token *token);

#endif
