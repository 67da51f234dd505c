/* SPDX-License-Identifier: MIT */
/* Memory of one size is refused while that is wanted, as by a device that others fill. */
#ifndef TUTTI_TESTS_REFUSAL_H
#define TUTTI_TESTS_REFUSAL_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Drivers, and Tutti, add a page or two to what they map for a buffer. */
enum { REFUSED = 327680 + 4096, MOST_ADDED = 2 * 4096 };
static atomic_bool refusing, refused_some;

void *mmap(void *address, size_t length, int protection, int flags, int file, off_t offset) {
    if (length >= REFUSED && length - REFUSED <= MOST_ADDED && atomic_load(&refusing)) {
        atomic_store(&refused_some, true);
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, address, length, protection, flags, file, offset);
}

#endif
