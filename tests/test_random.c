/* SPDX-License-Identifier: MIT */
/*
 * Random programs whose result OpenCL defines, compared with a serial interpreter of them; see
 * random/program.h. Without arguments, some of them on one to four devices. Else:
 *
 *   test_random --seed N [--count N] [--repeat N] [--devices N] [--keep LIST] [--print]
 *
 * runs the programs of the seeds N, N+1, …, each `repeat` times, on as many of PoCL's basic devices
 * (0: as POCL_DEVICES says); of their steps only those listed; --print shows them instead.
 *
 * TUTTI_TEST_SEED is the first seed, TUTTI_TEST_RANDOM the number of programs of the tests.
 * TUTTI_TEST_PATIENCE is the seconds after which a program hangs, TUTTI_TEST_REPEAT how often one
 * is run while it is shrunk.
 */
#include "random/shrink.h"

#include <getopt.h>

static void run_programs(int devices, uint32_t offset) {
    size_t wanted = test_size("TUTTI_TEST_RANDOM", 300) / 4;
    struct trial trial = {.seed = (uint32_t)test_size("TUTTI_TEST_SEED", 1) + offset,
                          .count = wanted,
                          .repeat = 1,
                          .devices = devices,
                          .patience = (unsigned)test_size("TUTTI_TEST_PATIENCE", 60)};
    struct failure failure;
    const char *set = getenv("POCL_DEVICES");
    if (set && *set && !strstr(set, "basic"))
        trial.devices = 0;
    if (trial_run(&trial, &failure))
        return;
    trial_shrink(&trial, &failure, stdout);
    ck_abort_msg("seed %u: %s", failure.seed, failure.text);
}

START_TEST(programs_on_one_device) { run_programs(1, 0); }
END_TEST

START_TEST(programs_on_two_devices) { run_programs(2, 100000); }
END_TEST

START_TEST(programs_on_three_devices) { run_programs(3, 200000); }
END_TEST

START_TEST(programs_on_four_devices) { run_programs(4, 300000); }
END_TEST

static void read_list(char *text, bool *keep) {
    for (char *word = strtok(text, ","); word; word = strtok(NULL, ",")) {
        int i = atoi(word);
        if (i >= 0 && i < MAX_STEPS)
            keep[i] = true;
    }
}

static int run_options(int argc, char **argv) {
    static const struct option options[] = {{"seed", required_argument, NULL, 's'},
                                            {"count", required_argument, NULL, 'c'},
                                            {"repeat", required_argument, NULL, 'r'},
                                            {"keep", required_argument, NULL, 'k'},
                                            {"devices", required_argument, NULL, 'd'},
                                            {"print", no_argument, NULL, 'p'},
                                            {NULL, 0, NULL, 0}};
    static bool keep[MAX_STEPS];
    static struct program program;
    struct trial trial = {.count = 1,
                          .repeat = 1,
                          .seed = 1,
                          .patience = (unsigned)test_size("TUTTI_TEST_PATIENCE", 60)};
    struct failure failure;
    bool print = false;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 's')
            trial.seed = (uint32_t)strtoul(optarg, NULL, 0);
        else if (c == 'c')
            trial.count = strtoul(optarg, NULL, 0);
        else if (c == 'r')
            trial.repeat = strtoul(optarg, NULL, 0);
        else if (c == 'd')
            trial.devices = atoi(optarg);
        else if (c == 'p')
            print = true;
        else if (c == 'k')
            read_list(optarg, keep);
        else
            return 2;
        if (c == 'k')
            trial.keep = keep;
    }
    for (size_t i = 0; print && i < trial.count; i++) {
        const char *wrong = trial_program(&trial, trial.seed + (uint32_t)i, &program);
        program_print(&program, stdout);
        if (wrong)
            printf("# not a program: %s\n", wrong);
    }
    if (print || trial_run(&trial, &failure))
        return 0;
    trial_shrink(&trial, &failure, stdout);
    return 1;
}

int main(int argc, char **argv) {
    const TTest *const tests[] = {programs_on_one_device, programs_on_two_devices,
                                  programs_on_three_devices, programs_on_four_devices};
    if (argc > 1 && strncmp(argv[1], "--", 2) == 0)
        return run_options(argc, argv);
    return test_main_bare(argc, argv, tests, COUNT(tests));
}
