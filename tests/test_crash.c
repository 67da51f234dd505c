/* SPDX-License-Identifier: MIT */
/* The tests themselves: what is known of one that ends by a signal. */
#include "crash.h"
#include "support.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void crash(int number, int output) {
    const struct rlimit none = {0, 0};

    setrlimit(RLIMIT_CORE, &none);
    dup2(output, STDERR_FILENO);
    test_tell_crashes();
    raise(number);
    _exit(0);
}

static void ck_told(int number) {
    char text[8192], wanted[64];
    size_t length = 0;
    ssize_t more;
    int ends[2], status = 0;

    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        crash(number, ends[1]);
    close(ends[1]);
    while (length < sizeof(text) - 1 &&
           (more = read(ends[0], text + length, sizeof(text) - 1 - length)) > 0)
        length += (size_t)more;
    text[length] = 0;
    close(ends[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == number);
    snprintf(wanted, sizeof(wanted), "# signal %d at ", number);
    ck_assert_msg(strstr(text, wanted) && strstr(text, "test_crash("), "\"%s\"", text);
}

START_TEST(it_is_told_where) {
    const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGABRT};

    skip_if(!test_tell_crashes(), "the sanitizer tells it itself");
    for (size_t i = 0; i < COUNT(numbers); i++)
        ck_told(numbers[i]);
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {it_is_told_where};

    return test_main_bare(argc, argv, tests, COUNT(tests));
}
