/* SPDX-License-Identifier: MIT */
/* What tests of memory share: how much the process has. */
#ifndef TUTTI_TESTS_RESIDENT_H
#define TUTTI_TESTS_RESIDENT_H

#include "support.h"

#include <unistd.h>

/* Bytes of memory that the process holds. */
static inline size_t resident(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    size_t total = 0, pages = 0;

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%zu %zu", &total, &pages), 2);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* AddressSanitizer keeps freed memory for a while: there a step is repeated, but not measured. */
#if defined(__SANITIZE_ADDRESS__)
#define MEMORY_IS_MEASURED false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MEMORY_IS_MEASURED false
#endif
#endif
#ifndef MEMORY_IS_MEASURED
#define MEMORY_IS_MEASURED true
#endif

#endif
