/* SPDX-License-Identifier: MIT */
#include "virtual_device/branches.h"

#include <string.h>

#define MOST (sizeof(((struct tutti_branches *)0)->line) / sizeof(struct tutti_token))

void tutti_branches_init(struct tutti_branches *branches, const char *source, const char *options) {
    *branches = (struct tutti_branches){.source = source, .options = options};
    branches->plain = !strstr(source, "%:") && !strstr(source, "\?\?=");
    branches->at[0].here = TUTTI_YES;
}

static enum tutti_knowledge opposite(enum tutti_knowledge known) {
    return known == TUTTI_YES ? TUTTI_NO : known == TUTTI_NO ? TUTTI_YES : TUTTI_MAYBE;
}

static enum tutti_knowledge both(enum tutti_knowledge a, enum tutti_knowledge b) {
    return a == TUTTI_NO || b == TUTTI_NO     ? TUTTI_NO
           : a == TUTTI_YES && b == TUTTI_YES ? TUTTI_YES
                                              : TUTTI_MAYBE;
}

static enum tutti_knowledge is_defined(const struct tutti_branches *branches,
                                       const struct tutti_token *name) {
    for (unsigned i = branches->facts; i-- > 0;)
        if (tutti_token_same(&branches->fact[i].name, name))
            return branches->fact[i].defined;
    return tutti_source_knows(branches->source, branches->options, name);
}

static bool says(const struct tutti_branches *branches, const char *directive) {
    return tutti_token_is(&branches->line[1], directive);
}

/*
 * Of `# ifdef NAME` and `# ifndef NAME`, also with `el` before; of `# if` and `# elif` with
 * `defined`, maybe `!` before it and `()` behind.
 */
static enum tutti_knowledge condition(const struct tutti_branches *branches) {
    if (branches->count > MOST)
        return TUTTI_MAYBE;
    const struct tutti_token *token = branches->line + 2, *end = branches->line + branches->count;
    bool tests = says(branches, "if") || says(branches, "elif");
    bool negated = says(branches, "ifndef") || says(branches, "elifndef");
    if (tests && token < end && tutti_token_is(token, "!")) {
        negated = true;
        token++;
    }
    if (tests && (token == end || !tutti_token_is(token++, "defined")))
        return TUTTI_MAYBE;
    bool within =
        tests && end - token == 3 && tutti_token_is(token, "(") && tutti_token_is(&token[2], ")");
    if (!within && end - token != 1)
        return TUTTI_MAYBE;
    enum tutti_knowledge known = is_defined(branches, &token[within]);
    return negated ? opposite(known) : known;
}

/* A branch with that condition begins. */
static void begin(struct tutti_branches *branches, enum tutti_knowledge condition) {
    unsigned depth = branches->depth;
    enum tutti_knowledge taken = branches->at[depth].taken;
    enum tutti_knowledge this = both(opposite(taken), condition);
    branches->at[depth].here = both(branches->at[depth - 1].here, this);
    branches->at[depth].taken = opposite(both(opposite(taken), opposite(condition)));
}

/* The source says something of a macro, if that is compiled. */
static void note(struct tutti_branches *branches, enum tutti_knowledge defined) {
    enum tutti_knowledge here = branches->at[branches->depth].here;
    if (here == TUTTI_NO || branches->count < 3)
        return;
    if (branches->facts == TUTTI_BRANCHES_FACTS) {
        branches->plain = false;
        return;
    }
    unsigned fact = branches->facts++;
    branches->fact[fact].name = branches->line[2];
    branches->fact[fact].defined = here == TUTTI_YES ? defined : TUTTI_MAYBE;
}

/* The directive is read. */
static void obey(struct tutti_branches *branches) {
    bool within = branches->depth > 0;
    if (branches->count < 2)
        return;
    if (says(branches, "define")) {
        note(branches, TUTTI_YES);
    } else if (says(branches, "undef")) {
        note(branches, TUTTI_NO);
    } else if (says(branches, "if") || says(branches, "ifdef") || says(branches, "ifndef")) {
        branches->plain = ++branches->depth < TUTTI_BRANCHES_DEEP;
        if (!branches->plain)
            return;
        branches->at[branches->depth].taken = TUTTI_NO;
        begin(branches, condition(branches));
    } else if (within && says(branches, "endif")) {
        branches->depth--;
    } else if (within && says(branches, "else")) {
        begin(branches, TUTTI_YES);
    } else if (within && (says(branches, "elif") || says(branches, "elifdef") ||
                          says(branches, "elifndef"))) {
        begin(branches, condition(branches));
    }
}

bool tutti_branches_leave_out(struct tutti_branches *branches, const struct tutti_token *token) {
    if (branches->plain && branches->directive != token->directive) {
        if (branches->directive)
            obey(branches);
        branches->directive = token->directive;
        branches->count = 0;
    }
    if (token->directive && branches->count++ < MOST)
        branches->line[branches->count - 1] = *token;
    return branches->plain && branches->at[branches->depth].here == TUTTI_NO;
}
