/* SPDX-License-Identifier: MIT */
/*
 * Which commands of a program are ordered by what OpenCL says, and whether that is enough: any two
 * accesses to the same memory, one of them a write, must be.
 *
 * - An in-order queue, a wait list, a barrier order commands. A call that blocks, clFinish and
 *   clWaitForEvents let a thread know that commands are complete, and so what it enqueues next
 *   comes after them.
 * - A buffer and its sub-buffers, and overlapping sub-buffers, are used one after the other unless
 *   all only read (5.2.1.1); disjoint sub-buffers, and disjoint parts of one object, are free.
 * - While an object is mapped for writing no command uses it or its relatives; while it is mapped
 * for reading none writes them. Several maps at once are disjoint or all read (5.4.3).
 * - A command whose wait list has a failed event does nothing; what it waited for besides may
 *   still run then, so it orders nothing.
 */
#ifndef TUTTI_TESTS_RANDOM_ORDER_H
#define TUTTI_TESTS_RANDOM_ORDER_H

#include "program.h"

struct steps_set {
    uint64_t word[(MAX_STEPS + 63) / 64];
};

static inline bool set_has(const struct steps_set *set, int i) {
    return set->word[i / 64] >> (i % 64) & 1;
}
static inline void set_put(struct steps_set *set, int i) {
    set->word[i / 64] |= UINT64_C(1) << (i % 64);
}
static inline void set_join(struct steps_set *set, const struct steps_set *other) {
    for (size_t w = 0; w < COUNT(set->word); w++)
        set->word[w] |= other->word[w];
}

struct order {
    int done; /* steps committed */
    /* Of each thread now: what it knows to be complete, which calls it knows to have returned. */
    struct steps_set known[MAX_THREADS], returned[MAX_THREADS];
    struct {
        struct steps_set before;          /* complete before it starts */
        struct steps_set known, returned; /* of its thread after the call */
        unsigned gated;                   /* gates without which it doesn't complete */
        bool fails;
        bool closed, written; /* of a map: unmapped, all written by the host */
    } of[MAX_STEPS];
    unsigned opened;
    bool defined[MAX_OBJECTS]; /* buffers with content */
};

struct problem {
    const char *never;       /* no ordering helps */
    unsigned gates;          /* to be opened before, else the call never returns */
    int conflict[MAX_STEPS]; /* steps that must come before, the latest first */
    int conflicts;
};

void order_begin(struct order *order, const struct program *program);
/* Step order->done of the program; true if it may come now. */
bool order_check(const struct order *order, const struct program *program, struct problem *problem);
/* Goes past step order->done, which was checked. */
void order_commit(struct order *order, const struct program *program);
/* The whole program; NULL, or what is wrong with it. */
const char *order_analyse(struct order *order, const struct program *program);

/* True if two objects share bytes. */
bool objects_overlap(const struct program *program, int a, int b);

#endif
