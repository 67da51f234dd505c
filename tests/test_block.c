/* SPDX-License-Identifier: MIT */
/* Only Tutti: which blocks of host memory are kept for the next objects. No device is used. */
#include "../src/memory/block.c"
#include "support.h"

#define MIB ((size_t)1 << 20)
enum { MANY = 160 };
static char *block[MANY];

static void allocate(unsigned count, size_t size) {
    for (unsigned i = 0; i < count; i++) {
        block[i] = tutti_block_allocate(size);
        ck_assert_ptr_nonnull(block[i]);
        ck_assert_uint_eq((uintptr_t)block[i] % ALIGNMENT, 0);
        block[i][0] = block[i][size - 1] = 1;
    }
}

static void release(unsigned count, size_t size) {
    for (unsigned i = 0; i < count; i++)
        tutti_block_free(block[i], size);
}

/* Blocks of which the program has many at once are the same ones the next time. */
START_TEST(as_many_as_were_used) {
    char *before[MANY];

    allocate(MANY, MIB);
    memcpy(before, block, sizeof(before));
    release(MANY, MIB);
    ck_assert_uint_eq(kept.bytes, MANY * MIB);
    allocate(MANY, MIB);
    for (unsigned i = 0; i < MANY; i++) {
        unsigned found = 0;
        for (unsigned j = 0; j < MANY; j++)
            found += block[i] == before[j];
        ck_assert_uint_eq(found, 1);
    }
    ck_assert_uint_eq(kept.bytes, 0);
    release(MANY, MIB);
}
END_TEST

/* Others take their place: together they are no more than were used at once. */
START_TEST(no_more_than_were_used) {
    allocate(MANY, MIB);
    release(MANY, MIB);
    allocate(MANY / 2, 2 * MIB);
    ck_assert_uint_le(kept.bytes, KEPT_LEAST);
    release(MANY / 2, 2 * MIB);
    ck_assert_uint_eq(kept.in_use, 0);
    ck_assert_uint_eq(kept.most_use, MANY * MIB);
    ck_assert_uint_le(kept.bytes, MANY * MIB);
}
END_TEST

START_TEST(given_back) {
    size_t size = 2 * MIB;

    allocate(8, size);
    char *page = block[0] + MIB - (uintptr_t)block[0] % PAGE;
    release(8, size);
    ck_assert_int_eq(msync(page, PAGE, MS_ASYNC), 0);
    tutti_block_trim();
    ck_assert_uint_eq(kept.count, 0);
    ck_assert_uint_eq(kept.bytes, 0);
    ck_assert_uint_eq(kept.most_use, 0);
    ck_assert_int_eq(msync(page, PAGE, MS_ASYNC), -1);
}
END_TEST

/* More blocks than can be kept, and one that is larger than all that may be. */
START_TEST(bounds) {
    enum { TOO_MANY = KEPT_BLOCKS + 10 };
    static void *small[TOO_MANY];
    for (unsigned i = 0; i < TOO_MANY; i++)
        ck_assert_ptr_nonnull(small[i] = tutti_block_allocate(LARGE));
    for (unsigned i = 0; i < TOO_MANY; i++)
        tutti_block_free(small[i], LARGE);
    ck_assert_uint_eq(kept.count, KEPT_BLOCKS);
    ck_assert_ptr_eq(kept.entry[0].block, small[TOO_MANY - KEPT_BLOCKS]);

    size_t large = may_keep() * 2 + (size_t)sysconf(_SC_PHYS_PAGES) / 8 * PAGE;
    void *one = tutti_block_allocate(large); /* never touched: it has no memory */
    if (one)
        tutti_block_free(one, large);
    ck_assert_uint_eq(kept.in_use, 0);
    ck_assert_uint_eq(kept.count, KEPT_BLOCKS);

    ck_assert_ptr_null(tutti_block_allocate(SIZE_MAX));
    ck_assert_ptr_null(tutti_block_allocate((size_t)1 << 60));
    ck_assert_uint_eq(kept.in_use, 0);
    ck_assert_uint_eq(kept.count, 0); /* they were given back for it */
    tutti_block_free(NULL, LARGE);
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {as_many_as_were_used, no_more_than_were_used, given_back, bounds};

    return test_main_bare(argc, argv, tests, COUNT(tests));
}
