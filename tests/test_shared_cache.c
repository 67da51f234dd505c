/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: processes that build the same programs at the same time, which PoCL keeps in one
 * cache. It removes a program that is there before it writes it, and has no answer for who reads it
 * then.
 */
#include "support.h"

#include "task_counts.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSES = 4, PROGRAMS = 4 };

static atomic_int removed;

/* In place of the C library's, for PoCL too: what it removes of its cache is counted. */
int remove(const char *path) {
    static const char name[] = "/program.bc";
    size_t length = strlen(path);

    if (length > strlen(name) && !strcmp(path + length - strlen(name), name))
        atomic_fetch_add(&removed, 1);
    return unlink(path) == 0 ? 0 : rmdir(path);
}

/* Programs that no cache has: TUTTI_TEST_ROUND is another each time. */
START_TEST(builds) {
    ck_assert_ptr_eq(dlsym(RTLD_DEFAULT, "remove"), (void *)(uintptr_t)remove);
    for (int i = 0; i < PROGRAMS; i++) {
        char source[128];

        snprintf(source, sizeof(source), "kernel void f(global ulong *out) { *out = %zuul + %d; }",
                 test_size("TUTTI_TEST_ROUND", 0), i);
        ck_ok(clReleaseProgram(make_program(source)));
    }
    ck_assert_int_eq(atomic_load(&removed), 0);
}
END_TEST

START_TEST(in_several_processes) {
    char round[64];
    FILE *children[PROCESSES];
    struct timespec now;

    skip_if(!all_are_pocl(), "there are devices that PoCL didn't make");
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(round, sizeof(round), "TUTTI_TEST_ROUND=%lld%09ld", (long long)now.tv_sec,
             now.tv_nsec);
    for (int i = 0; i < PROCESSES; i++)
        children[i] = test_start_again(round, "--builds");
    for (int i = 0; i < PROCESSES; i++)
        test_finish_again(children[i]);
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const children[] = {builds}, *const tests[] = {in_several_processes};

    if (argc == 2 && strcmp(argv[1], "--builds") == 0)
        return test_main(1, argv, children, COUNT(children));
    return test_main(argc, argv, tests, COUNT(tests));
}
