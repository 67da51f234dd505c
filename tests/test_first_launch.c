/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: a device of PoCL's has to compile a kernel when it is launched there for the first
 * time, and is left out where a burst is over before that. PoCL's device of all cores is here
 * beside a slower one. Each burst is tried in a process of its own; how many commands each device
 * executed tells Tutti's extension function.
 */
#include "support.h"

#include "task_counts.h"

#include <unistd.h>

enum { FEW = 12, MANY = 500, ITEMS = 2048, LOCAL = 64, ROUNDS = 1000, TRIES = 5 };

static const char source[] = "kernel void noise(global uint *data, int rounds) {"
                             "    uint x = get_global_id(0);"
                             "    for (int i = 0; i < rounds; i++) x = x * 1664525u + 1013904223u;"
                             "    data[get_global_id(0)] = x;"
                             "}";

static cl_kernel noise;

static void enqueue(cl_mem buffer, size_t items, size_t local) {
    ck_ok(clSetKernelArg(noise, 0, sizeof(buffer), &buffer));
    ck_ok(clEnqueueNDRangeKernel(queue, noise, 1, NULL, &items, &local, 0, NULL, NULL));
}

/*
 * So many kernels that have nothing in common and are ready at once, once one was executed. Returns
 * how many of them the device did that did not execute that one, mostly the slower one.
 */
static cl_ulong burst(int count, size_t items, size_t local) {
    cl_program program = make_program(source);
    cl_mem *buffer = calloc((size_t)count, sizeof(*buffer));
    cl_ulong before[REAL], after[REAL];
    const cl_int rounds = ROUNDS;
    noise = make_kernel(program, "noise");
    ck_ok(clSetKernelArg(noise, 1, sizeof(rounds), &rounds));
    for (int i = 0; i < count; i++)
        buffer[i] = make_buffer(0, items * sizeof(cl_uint), NULL);
    enqueue(buffer[0], items, local);
    ck_ok(clFinish(queue));
    read_counts(before);
    cl_uint other = before[0] > 0 ? 1 : 0;
    cl_event gate = make_user_event();
    ck_ok(clEnqueueBarrierWithWaitList(queue, 1, &gate, NULL));
    for (int i = 0; i < count; i++)
        enqueue(buffer[i], items, local);
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    ck_ok(clFinish(queue));
    read_counts(after);
    ck_ok(clReleaseEvent(gate));
    for (int i = 0; i < count; i++)
        ck_ok(clReleaseMemObject(buffer[i]));
    free(buffer);
    ck_ok(clReleaseKernel(noise));
    ck_ok(clReleaseProgram(program));
    return after[other] - before[other];
}

/* On a busy machine the slower device may seem to be far slower. */
static void check_both(int count, size_t items) {
    int tries = 0;
    while (burst(count, items, LOCAL) == 0)
        ck_assert_int_lt(++tries, TRIES);
}

START_TEST(few) { ck_assert_uint_eq(burst(FEW, ITEMS, LOCAL), 0); }
END_TEST

START_TEST(many) { check_both(MANY, ITEMS); }
END_TEST

START_TEST(few_again) { check_both(FEW, ITEMS); }
END_TEST

START_TEST(few_of_another_size) { check_both(FEW, 2 * ITEMS); }
END_TEST

START_TEST(few_of_another_shape) { ck_assert_uint_eq(burst(FEW, ITEMS, LOCAL / 2), 0); }
END_TEST

START_TEST(then_few) {
    check_both(MANY, ITEMS);
    check_both(FEW, ITEMS);
}
END_TEST

static void run_apart(const char *setting, const char *tests) {
    char names[REAL][64];
    skip_if(read_names(names) != 2 || strncmp(names[0], "pthread", 7) != 0,
            "no two devices of PoCL that are as named here");
    test_run_again(setting, tests);
}

/* It would have it compiled when the other one is through with all. */
START_TEST(a_short_burst_stays) { run_apart("TUTTI_MODELS=none", "--few"); }
END_TEST

START_TEST(a_long_burst_takes_both) { run_apart("TUTTI_MODELS=none", "--many"); }
END_TEST

/* PoCL has the code then. */
START_TEST(a_short_burst_after_that_takes_both) { run_apart("TUTTI_MODELS=none", "--then-few"); }
END_TEST

/* So it does where an earlier process had it compiled, and so the times that were kept say. */
START_TEST(what_was_compiled_before) {
    char directory[] = "/tmp/tutti-first.XXXXXX", setting[64], command[64];
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(setting, sizeof(setting), "TUTTI_MODELS=%s/models", directory);
    snprintf(command, sizeof(command), "rm -r %s", directory);
    run_apart(setting, "--many");
    run_apart(setting, "--again");
    run_apart(setting, "--size");
    run_apart(setting, "--shape");
    ck_assert_int_eq(system(command), 0);
}
END_TEST

int main(int argc, char **argv) {
    const struct {
        const char *name;
        const TTest *test[1];
    } apart[] = {{"--few", {few}},
                 {"--many", {many}},
                 {"--then-few", {then_few}},
                 {"--again", {few_again}},
                 {"--size", {few_of_another_size}},
                 {"--shape", {few_of_another_shape}}};
    const TTest *const tests[] = {a_short_burst_stays, a_long_burst_takes_both,
                                  a_short_burst_after_that_takes_both, what_was_compiled_before};

    setenv("POCL_DEVICES", "pthread basic", 1);
    setenv("POCL_MAX_PTHREAD_COUNT", "2", 1);
    setenv("TUTTI_DEVICES", "portable", 1);
    for (size_t i = 0; i < COUNT(apart) && argc == 2; i++)
        if (strcmp(argv[1], apart[i].name) == 0)
            return test_main(1, argv, apart[i].test, 1);
    return test_main(argc, argv, tests, COUNT(tests));
}
