/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: of two like devices of PoCL the second one has a program built once that pays. The
 * log says when; how many commands each device executed, Tutti's extension function.
 */
#include "support.h"

#include "task_counts.h"

#include <pthread.h>
#include <unistd.h>

enum {
    N = 256,
    BYTES = N * sizeof(cl_int),
    MANY = 64,
    MOST_ROUNDS = 20000,
    LONG_CHAIN = 200,
    LONG = 4, /* times MANY kernels: longer than a build on one device */
    MOST_TIMES = 50,
    THREADS = 4,
    FEW = 5,
    MOST_SECONDS = 20,
    ENDS = 12
};

/* ADD is how much each work-item adds, after a while. */
static const char source[] =
    "kernel void add(global int *data, int rounds) {"
    "    uint noise = get_global_id(0);"
    "    for (int i = 0; i < rounds; i++) noise = noise * 1664525u + 1013904223u;"
    "    data[get_global_id(0)] += noise == 7u && rounds < 0 ? 0 : ADD;"
    "}";

static cl_program program;
static const cl_int little = 1, much = 20000;

/* The program with `text` before it, built so that each work-item adds so much. */
static void build_with(const char *text, int by, const char *more) {
    char options[128];
    const char *texts[] = {text, source};
    program = ck_made(clCreateProgramWithSource(context, 2, texts, NULL, &error));
    snprintf(options, sizeof(options), "-D ADD=%d %s", by, more);
    ck_ok(clBuildProgram(program, 1, &device, options, NULL, NULL));
}

static void build(const char *text, int by) { build_with(text, by, ""); }

/* How many builds for a second device the log tells of since the last call. */
static int late_builds(void) { return test_log_count(": built for"); }

static bool can_be_late(void) {
    char names[REAL][64];
    return read_names(names) > 1 && equal_devices() && all_are_pocl();
}

static cl_mem make_zeros(void) {
    static const cl_int zeros[N];
    cl_int failed;
    cl_mem buffer =
        clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, BYTES, (void *)(uintptr_t)zeros, &failed);
    ck_ok(failed);
    return buffer;
}

static void run(cl_kernel kernel, cl_mem buffer, cl_int rounds) {
    size_t items = N;
    ck_ok(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(kernel, 1, sizeof(rounds), &rounds));
    ck_ok(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
}

static void ck_holds(cl_mem buffer, cl_int expected) {
    cl_int values[N];
    ck_ok(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, BYTES, values, 0, NULL, NULL));
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(values[i], expected);
}

/* Nothing is under way then, for Tutti either. */
static void rest(void) {
    ck_ok(clFinish(queue));
    usleep(20000);
}

/* Two chains, until the program is built for the second device too. */
static int run_until_built(cl_kernel kernel, const cl_mem buffer[2]) {
    int rounds = 0;
    while (late_builds() == 0 && rounds < MOST_ROUNDS) {
        for (int i = 0; i < 10; i++, rounds++)
            for (int b = 0; b < 2; b++)
                run(kernel, buffer[b], much);
        ck_ok(clFinish(queue));
    }
    ck_assert_int_lt(rounds, MOST_ROUNDS);
    return rounds;
}

/* The first device that executed nothing since; as many as there are: each did something. */
static cl_uint find_idle(const cl_ulong *before) {
    cl_ulong after[REAL];
    cl_uint count = read_counts(after), d = 0;
    while (d < count && after[d] > before[d])
        d++;
    return d;
}

/* Kernels on many buffers, so many times. */
static void run_many(cl_kernel kernel, int by, int times) {
    cl_mem buffer[MANY];
    for (int i = 0; i < MANY; i++)
        buffer[i] = make_zeros();
    cl_event gate = make_user_event();
    ck_ok(clEnqueueBarrierWithWaitList(queue, 1, &gate, NULL));
    for (int i = 0; i < times * MANY; i++)
        run(kernel, buffer[i % MANY], much);
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    ck_ok(clFinish(queue));
    ck_ok(clReleaseEvent(gate));
    for (int i = 0; i < MANY; i++) {
        ck_holds(buffer[i], times * by);
        ck_ok(clReleaseMemObject(buffer[i]));
    }
}

/* Both devices share those, once the program is built for both. */
static void use_both(cl_kernel kernel, int by) {
    cl_ulong before[REAL];
    cl_uint count = read_counts(before), idle = 0;
    for (int round = 0; idle < count && round < MOST_TIMES; round++) {
        run_many(kernel, by, 1);
        idle = find_idle(before);
    }
    ck_assert_msg(idle == count, "real device %u of %u ran nothing", idle, count);
}

START_TEST(a_little_work_does_not_pay) {
    skip_if(!can_be_late(), "no two like devices of PoCL");
    late_builds();
    build("", 1);
    cl_kernel kernel = make_kernel(program, "add");
    cl_mem buffer = make_zeros();
    rest();
    for (int i = 0; i < 3; i++) {
        run(kernel, buffer, little);
        rest();
    }
    ck_holds(buffer, 3);
    ck_assert_int_eq(late_builds(), 0);
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(program));
}
END_TEST

/* Each kernel waits for the one before: however many there are, one device does them all. */
/* Nor where the first device has the program from lately: a build takes as long as it did. */
START_TEST(a_little_work_does_not_pay_again) {
    enum { SOME = 6, SHORT = 1000 };
    skip_if(!can_be_late(), "no two like devices of PoCL");
    for (int round = 0; round < 3; round++) {
        cl_mem buffer[SOME];
        late_builds();
        build("", 13);
        cl_kernel kernel = make_kernel(program, "add");
        for (int i = 0; i < SOME; i++) { /* each by itself: it is measured */
            buffer[i] = make_zeros();
            run(kernel, buffer[i], SHORT);
            rest();
        }
        for (int i = 0; i < SOME; i++)
            run(kernel, buffer[i], SHORT);
        rest();
        for (int i = 0; i < SOME; i++) {
            ck_holds(buffer[i], 2 * 13);
            ck_ok(clReleaseMemObject(buffer[i]));
        }
        ck_assert_int_eq(late_builds(), 0);
        ck_ok(clReleaseKernel(kernel));
        ck_ok(clReleaseProgram(program));
    }
}
END_TEST

START_TEST(a_chain_needs_one_device) {
    skip_if(!can_be_late(), "no two like devices of PoCL");
    late_builds();
    build("", 8);
    cl_kernel kernel = make_kernel(program, "add");
    cl_mem buffer = make_zeros();
    for (int i = 0; i < LONG_CHAIN; i++) {
        run(kernel, buffer, much);
        if (i % 10 == 0)
            rest();
    }
    ck_holds(buffer, 8 * LONG_CHAIN);
    ck_assert_int_eq(late_builds(), 0);
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(much_work_pays) {
    skip_if(!can_be_late(), "no two like devices of PoCL");
    late_builds();
    build("", 2);
    cl_kernel before = make_kernel(program, "add");
    cl_mem buffer[2] = {make_zeros(), make_zeros()};
    int rounds = run_until_built(before, buffer);
    cl_kernel after = make_kernel(program, "add");
    ck_holds(buffer[0], 2 * rounds);
    ck_holds(buffer[1], 2 * rounds);
    use_both(before, 2);
    use_both(after, 2);
    ck_assert_int_eq(late_builds(), 0);
    ck_ok(clReleaseMemObject(buffer[0]));
    ck_ok(clReleaseMemObject(buffer[1]));
    ck_ok(clReleaseKernel(before));
    ck_ok(clReleaseKernel(after));
    ck_ok(clReleaseProgram(program));
}
END_TEST

/* Kernels that nobody has measured, many at once; so many builds for the second device. */
static void use_new_with(const char *text, int by, const char *options, int builds) {
    skip_if(!can_be_late(), "no two like devices of PoCL");
    late_builds();
    build_with(text, by, options);
    cl_kernel kernel = make_kernel(program, "add");
    use_both(kernel, by);
    ck_assert_int_eq(late_builds(), builds);
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(program));
}

static void use_new(const char *text, int by, int builds) { use_new_with(text, by, "", builds); }

/* Nobody knows how long the first ones take: they may be worth both devices. */
START_TEST(what_is_unknown_uses_both) { use_new("", 3, 1); }
END_TEST

/* The program is built while they wait, and nothing is enqueued after that. */
START_TEST(what_waits_already_uses_both) {
    skip_if(!can_be_late(), "no two like devices of PoCL");
    cl_ulong before[REAL];
    cl_uint count = read_counts(before);
    build("", 10);
    cl_kernel kernel = make_kernel(program, "add");
    run_many(kernel, 10, LONG);
    ck_assert_uint_eq(find_idle(before), count);
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(program));
}
END_TEST

/* What it would read later may be something else then. */
START_TEST(a_program_that_may_read_files_does_not_wait) {
    static const char *const texts[] = {
        "#if 0\n# \t include \"a\"\n#endif\n",
        "#if 0\n# \\\ninclude \"a\"\n#endif\n",
        "#if 0\n%:include \"a\"\n#endif\n",
        "#if 0\n#/*\n*/import \"a\"\n#endif\n",
        "#if __has_include(\"a\")\n#endif\n",
        "#ifdef OTHER\n#include \"a\"\n#endif\n",
    };
    for (size_t i = 0; i < COUNT(texts); i++)
        use_new(texts[i], 4, 0);
}
END_TEST

START_TEST(a_program_that_says_so_waits) {
    static const char *const texts[] = {
        "/* This includes\n all that is important. */\n// include nothing\n",
        "/* It might #include more. */\n",
        "// #include ../common.h\n",
        "// __has_include(\"a\")\n",
        /* What no compiler of OpenCL C sees. */
        "#ifndef __OPENCL_VERSION__\n#include <math.h>\n#endif\n",
        "#if !defined(__OPENCL_VERSION__)\n#include <math.h>\n#else\n#define A\n#endif\n",
        "#ifdef __OPENCL_C_VERSION__\n#else\n# include <math.h>\n#endif\n",
        "#if defined __cplusplus // this\n#ifdef X\n#else\n#include <cmath>\n#endif\n#endif\n",
    };
    for (size_t i = 0; i < COUNT(texts); i++)
        use_new(texts[i], 9, 1);
    use_new_with("", 13, "-I /usr/include -I /tmp/some-include", 1);
}
END_TEST

START_TEST(another_build_of_the_program) {
    skip_if(!can_be_late(), "no two like devices of PoCL");
    late_builds();
    build("", 5);
    cl_kernel kernel = make_kernel(program, "add");
    use_both(kernel, 5);
    ck_ok(clReleaseKernel(kernel));
    rest();
    ck_ok(clBuildProgram(program, 1, &device, "-D ADD=6", NULL, NULL));
    kernel = make_kernel(program, "add");
    use_both(kernel, 6);
    ck_assert_int_eq(late_builds(), 2);
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(program));
}
END_TEST

static void *launch_many(void *unused) {
    cl_int failed;
    cl_kernel kernel = clCreateKernel(program, "add", &failed);
    (void)unused;
    ck_ok(failed);
    cl_mem buffer = make_zeros();
    for (int i = 0; i < MANY; i++)
        run(kernel, buffer, much);
    ck_holds(buffer, 7 * MANY);
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseKernel(kernel));
    return NULL;
}

START_TEST(several_threads) {
    skip_if(!can_be_late(), "no two like devices of PoCL");
    late_builds();
    build("", 7);
    pthread_t thread[THREADS];
    for (int t = 0; t < THREADS; t++)
        ck_assert_int_eq(pthread_create(&thread[t], NULL, launch_many, NULL), 0);
    for (int t = 0; t < THREADS; t++)
        ck_assert_int_eq(pthread_join(thread[t], NULL), 0);
    int builds = late_builds();
    for (int i = 0; i < MOST_SECONDS && builds == 0; i++) { /* it may go on beside the last ones */
        sleep(1);
        builds = late_builds();
    }
    ck_assert_int_eq(builds + late_builds(), 1);
    ck_ok(clReleaseProgram(program));
}
END_TEST

/* In a process of its own, which must succeed. */
static void run_apart(const char *setting, const char *tests) {
    skip_if(!can_be_late(), "no two like devices of PoCL");
    test_run_again(setting, tests);
}

/* The same where a policy of StarPU's chooses among all devices. */
START_TEST(several_threads_at_once) { run_apart("TUTTI_SCHED=eager", "--threads"); }
END_TEST

/* Kernels of a new program, that nobody has measured, each on a buffer of its own. */
static void run_a_few(int by) {
    cl_mem buffer[FEW];
    build("", by);
    cl_kernel kernel = make_kernel(program, "add");
    for (int i = 0; i < FEW; i++) {
        buffer[i] = make_zeros();
        run(kernel, buffer[i], little);
    }
    for (int i = 0; i < FEW; i++) {
        ck_holds(buffer[i], by);
        ck_ok(clReleaseMemObject(buffer[i]));
    }
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(program));
}

/* Nobody knows how long these take, so that the program is built for both; the process ends. */
START_TEST(the_end) { run_a_few(11); }
END_TEST

START_TEST(ends_while_it_builds) {
    for (int i = 0; i < ENDS; i++)
        run_apart("", "--end");
}
END_TEST

/* What is known to have waited so long is built for both at once from then on. */
START_TEST(what_has_paid_does_not_wait) {
    skip_if(!can_be_late(), "no two like devices of PoCL");
    late_builds();
    build("", 12);
    cl_kernel kernel = make_kernel(program, "add");
    cl_mem buffer[2] = {make_zeros(), make_zeros()};
    for (int i = 0; i < FEW; i++) { /* how long it takes is known then */
        run(kernel, buffer[0], much);
        rest();
    }
    ck_assert_int_eq(late_builds(), 0);
    run_until_built(kernel, buffer);
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(program));
    ck_ok(clReleaseMemObject(buffer[0]));
    ck_ok(clReleaseMemObject(buffer[1]));
    use_new("", 12, 0);
}
END_TEST

/* For another process as well, if models are kept. */
START_TEST(what_paid_before) { use_new("", 12, 0); }
END_TEST

START_TEST(what_has_paid_is_kept) {
    char directory[] = "/tmp/tutti-late.XXXXXX", setting[64], command[64];
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(setting, sizeof(setting), "TUTTI_MODELS=%s/models", directory);
    snprintf(command, sizeof(command), "rm -r %s", directory);
    run_apart(setting, "--pays");
    run_apart(setting, "--paid");
    ck_assert_int_eq(system(command), 0);
}
END_TEST

/*
 * The last one waits while the one before it, which is of another kind, has the program built.
 * ThreadSanitizer is the judge.
 */
START_TEST(beside_another_build) {
    for (int i = 0; i < FEW; i++)
        run_a_few(13 + i);
}
END_TEST

START_TEST(of_two_kinds) { run_apart("POCL_DEVICES='basic pthread basic'", "--mixed"); }
END_TEST

int main(int argc, char **argv) {
    const struct {
        const char *name;
        const TTest *test[1];
    } apart[] = {{"--threads", {several_threads}},
                 {"--end", {the_end}},
                 {"--pays", {what_has_paid_does_not_wait}},
                 {"--paid", {what_paid_before}},
                 {"--mixed", {beside_another_build}}};
    const TTest *const tests[] = {
        a_little_work_does_not_pay,
        a_little_work_does_not_pay_again,
        a_chain_needs_one_device,
        much_work_pays,
        what_is_unknown_uses_both,
        what_waits_already_uses_both,
        a_program_that_may_read_files_does_not_wait,
        a_program_that_says_so_waits,
        another_build_of_the_program,
        several_threads,
        several_threads_at_once,
        ends_while_it_builds,
        what_has_paid_does_not_wait,
        what_has_paid_is_kept,
        of_two_kinds,
    };
    setenv("TUTTI_BUILDS", "auto", 1);
    for (size_t i = 0; i < COUNT(apart) && argc == 2; i++)
        if (strcmp(argv[1], apart[i].name) == 0)
            return test_main_logged(1, argv, apart[i].test, 1);
    setenv("TUTTI_MODELS", "none", 1);
    return test_main_logged(argc, argv, tests, COUNT(tests));
}
