/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "shrink.h"

#include "../crash.h"
#include "outcome.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct abilities abilities_of(const struct trial *trial) {
    const char *name = getenv("TUTTI_TEST_PLATFORM"), *devices = getenv("POCL_DEVICES");
    if (!name || !*name || strcmp(name, "Tutti") == 0)
        return (struct abilities){true, true, true, true, true, true, true, true};
    /*
     * PoCL 3.1: on basic devices commands that wait for a user event never end, and two threads can
     * lock each other out; elsewhere a blocking call waits for all of its out-of-order queue.
     * Native kernels get their buffers in another order, and the wrong bytes of sub-buffers; copied
     * rectangles of sub-buffers crash.
     */
    bool basic = trial->devices || !devices || strstr(devices, "basic");
    return (struct abilities){
        .early_release = true, .gates = !basic, .threads = !basic, .out_of_order = basic};
}

const char *trial_program(const struct trial *trial, uint32_t seed, struct program *program) {
    static struct order order;
    program_generate(program, seed, abilities_of(trial));
    if (trial->keep)
        program_keep(program, trial->keep);
    return order_analyse(&order, program);
}

static bool run_program(const struct trial *trial, uint32_t seed, struct failure *failure) {
    static struct program program;
    static struct order order;
    static struct outcome expected, seen;
    const char *wrong = trial_program(trial, seed, &program);
    if (wrong) {
        snprintf(failure->text, sizeof(failure->text), "the generator made %s", wrong);
        return false;
    }
    order_analyse(&order, &program);
    outcome_begin(&expected, &program);
    outcome_interpret(&expected, &program, &order);
    bool good = true;
    for (size_t r = 0; good && r < trial->repeat; r++) {
        alarm(trial->patience);
        outcome_begin(&seen, &program);
        outcome_execute(&seen, &program, &order);
        good = outcome_compare(&program, &order, &expected, &seen, failure->text,
                               sizeof(failure->text));
        outcome_end(&seen);
    }
    outcome_end(&expected);
    return good;
}

static void run_here(const struct trial *trial, struct failure *failure) {
    if (trial->keep) /* smaller and smaller: the first one told it */
        test_tell_no_crashes();
    if (trial->devices) {
        char list[64] = "";
        for (int d = 0; d < trial->devices; d++)
            strcat(list, d ? " basic" : "basic");
        setenv("POCL_DEVICES", list, 1);
    }
    snprintf(failure->text, sizeof(failure->text), "no such platform or device");
    test_choose_device();
    failure->text[0] = '\0';
    for (size_t i = 0; i < trial->count; i++) {
        failure->seed = trial->seed + (uint32_t)i;
        if (!run_program(trial, failure->seed, failure))
            exit(1);
    }
    /* Ending is part of it, but not for ever. */
    alarm(trial->patience);
    exit(0);
}

bool trial_run(const struct trial *trial, struct failure *failure) {
    struct failure *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = 0;
    if (shared == MAP_FAILED)
        return false;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        run_here(trial, shared);
    bool good = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
                WEXITSTATUS(status) == 0;
    *failure = *shared;
    munmap(shared, sizeof(*shared));
    if (good || failure->text[0])
        return good;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        snprintf(failure->text, sizeof(failure->text), "not over after %u s", trial->patience);
    else if (WIFSIGNALED(status))
        snprintf(failure->text, sizeof(failure->text), "signal %d", WTERMSIG(status));
    else
        snprintf(failure->text, sizeof(failure->text), "exit status %d", WEXITSTATUS(status));
    return false;
}

static bool still_fails(const struct trial *trial, const bool *keep, struct failure *failure) {
    static struct program program;
    struct trial smaller = *trial;
    smaller.keep = keep;
    return !trial_program(&smaller, trial->seed, &program) && !trial_run(&smaller, failure);
}

/* Drops runs of steps, long ones first, as long as the rest fails. */
static void drop_steps(const struct trial *trial, bool *keep, int steps, struct failure *failure) {
    bool fewer[MAX_STEPS];
    struct failure latest;
    for (int length = steps / 2; length > 0; length = length > 1 ? length / 2 : 0) {
        for (int from = steps - length; from > -length; from -= length) {
            bool any = false;
            memcpy(fewer, keep, sizeof(fewer));
            for (int i = from < 0 ? 0 : from; i < from + length; i++) {
                any |= fewer[i];
                fewer[i] = false;
            }
            if (any && still_fails(trial, fewer, &latest)) {
                memcpy(keep, fewer, sizeof(fewer));
                *failure = latest;
            }
        }
    }
}

static bool matters(const char *setting) {
    return strncmp(setting, "TUTTI_", 6) == 0 || strncmp(setting, "POCL_DEVICES=", 13) == 0 ||
           strncmp(setting, "OCL_ICD_VENDORS=", 16) == 0;
}

static void print_repeat(const struct trial *trial, const struct program *program, FILE *out) {
    bool first = true;
    fprintf(out, "# to repeat it:");
    for (char **setting = environ; *setting; setting++)
        if (matters(*setting))
            fprintf(out, " %.*s='%s'", (int)strcspn(*setting, "="), *setting,
                    *setting + strcspn(*setting, "=") + 1);
    fprintf(out, " test_random --seed %u --devices %d --repeat 200 --keep ", trial->seed,
            trial->devices);
    for (int i = 0; i < program->steps; i++) {
        if (program->step[i].gone)
            continue;
        fprintf(out, first ? "%d" : ",%d", i);
        first = false;
    }
    fputc('\n', out);
}

void trial_shrink(const struct trial *trial, const struct failure *failure, FILE *out) {
    static struct program program;
    bool keep[MAX_STEPS];
    struct failure last = *failure;
    struct trial one = *trial;
    one.seed = failure->seed;
    one.count = 1;
    one.keep = keep;
    one.repeat = test_size("TUTTI_TEST_REPEAT", 100);
    one.patience = test_size("TUTTI_TEST_PATIENCE", 10);
    for (int i = 0; i < MAX_STEPS; i++)
        keep[i] = !trial->keep || trial->keep[i];
    fprintf(out, "# seed %u: %s\n", failure->seed, failure->text);
    fflush(out);
    if (!trial_program(&one, one.seed, &program)) {
        if (still_fails(&one, keep, &last)) {
            drop_steps(&one, keep, program.steps, &last);
            fprintf(out, "# shrunk: %s\n", last.text);
        } else {
            fprintf(out, "# by itself it did not fail in %zu runs\n", one.repeat);
        }
    }
    trial_program(&one, one.seed, &program);
    program_print(&program, out);
    print_repeat(&one, &program, out);
    fflush(out);
}
