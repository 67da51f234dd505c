/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: what goes from one real device to the other through home memory.
 * TUTTI_TRANSFER=staged gives CPU devices copies of their own.
 */
#define ACROSS_LOGGED "bytes on to"
#include "across.h"

int main(int argc, char **argv) {
    const TTest *const tests[] = {ACROSS_TESTS};

    across_set("staged");
    return test_main_logged(argc, argv, tests, COUNT(tests));
}
