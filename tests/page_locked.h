/* SPDX-License-Identifier: MIT */
/* What Tutti's log says of host memory that a GPU's driver locked. */
#ifndef TUTTI_TESTS_PAGE_LOCKED_H
#define TUTTI_TESTS_PAGE_LOCKED_H

#include "support.h"

/*
 * How many blocks of so many bytes and more were locked since the log was last read; and how many
 * of its lines have that text, if `lines` is not NULL.
 */
static int locked_since(size_t least, const char *text, int *lines) {
    static const char says[] = "page-locked ";
    char line[512];
    int locked = 0, found = 0;
    FILE *log = test_log_open();
    ck_assert_ptr_nonnull(log);
    while (fgets(line, sizeof(line), log)) {
        const char *what = strstr(line, says);
        locked += what && strtoul(what + strlen(says), NULL, 10) >= least;
        found += text && strstr(line, text);
    }
    test_log_close(log);
    if (lines)
        *lines = found;
    return locked;
}

#endif
