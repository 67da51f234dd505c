/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: TUTTI_SCHED, the policy that places commands. Each name is tried in a process of its
 * own, which must compute the same and say nothing, whether the policy exists or not.
 */
#include "support.h"

enum { N = 1000, CHAINS = 8, STEPS = 10 };

/* The child: some chains of kernels. */
START_TEST(probe) {
    cl_program program = make_program(common_source);
    cl_kernel set = make_kernel(program, "set"), add = make_kernel(program, "add");
    cl_mem buffers[CHAINS];
    cl_int seen[N], one = 1;

    for (cl_int i = 0; i < CHAINS; i++) {
        buffers[i] = make_buffer(0, sizeof(seen), NULL);
        ck_ok(clSetKernelArg(set, 0, sizeof(cl_mem), &buffers[i]));
        ck_ok(clSetKernelArg(set, 1, sizeof(i), &i));
        launch(set, N);
        ck_ok(clSetKernelArg(add, 0, sizeof(cl_mem), &buffers[i]));
        ck_ok(clSetKernelArg(add, 1, sizeof(one), &one));
        for (int step = 0; step < STEPS; step++)
            launch(add, N);
    }
    for (cl_int i = 0; i < CHAINS; i++) {
        read_ints(buffers[i], seen, N);
        for (int j = 0; j < N; j++)
            ck_assert_int_eq(seen[j], i + STEPS);
        ck_ok(clReleaseMemObject(buffers[i]));
    }
    ck_ok(clReleaseKernel(set));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}
END_TEST

static const char *run(const char *settings) { return test_run_again(settings, "--probe"); }

static void ck_only_result(const char *settings) {
    const char *said = run(settings);
    ck_assert_msg(strcmp(said, "1..1\nok 1 - probe\n") == 0, "%s: it said %.500s", settings, said);
}

START_TEST(policies_of_starpu) {
    ck_only_result("TUTTI_SCHED=dmda");
    ck_only_result("TUTTI_SCHED=eager");
    ck_only_result("TUTTI_SCHED=lws");
}
END_TEST

START_TEST(our_own) {
    ck_only_result("TUTTI_SCHED=tutti");
    ck_only_result("TUTTI_SCHED=");
    /* What goes past StarPU asks no policy. */
    ck_assert(strstr(run("TUTTI_LOG=debug TUTTI_DIRECT=never"), "a task is expected to begin"));
}
END_TEST

START_TEST(an_unknown_name) {
    ck_only_result("TUTTI_SCHED=nonsense");
    ck_assert(strstr(run("TUTTI_SCHED=nonsense TUTTI_LOG=warning"), "TUTTI_SCHED=nonsense") !=
              NULL);
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const child[] = {probe};
    const TTest *const tests[] = {policies_of_starpu, our_own, an_unknown_name};

    if (argc > 1 && strcmp(argv[1], "--probe") == 0)
        return test_main(1, argv, child, COUNT(child));
    unsetenv("TUTTI_LOG");
    return test_main_bare(argc, argv, tests, COUNT(tests));
}
