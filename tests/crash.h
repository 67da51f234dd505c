/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_TEST_CRASH_H
#define TUTTI_TEST_CRASH_H

#include <stdbool.h>

/*
 * From now on a signal that ends the process for a wrong access or an assertion first prints to
 * stderr which thread got it, and where it was: "library(+offset)" lines, for addr2line. LLVM, in
 * PoCL, puts its own action before this one. False: it does not, as a sanitizer tells it.
 */
bool test_tell_crashes(void);

/* No longer. */
void test_tell_no_crashes(void);

#endif
