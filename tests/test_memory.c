/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: more data than the devices' memory. TUTTI_DEVICE_MEMORY gives each real device one
 * MiB of its own, CPU devices too; what does not fit is evicted to host memory.
 */
#include "full_memory.h"

int main(int argc, char **argv) {
    const TTest *const tests[] = {FULL_MEMORY_TESTS};

    full_memory_set();
    setenv("TUTTI_TRANSFER", "staged", 1);
    return test_main(argc, argv, tests, COUNT(tests));
}
