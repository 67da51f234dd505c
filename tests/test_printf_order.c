/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: what kernels print is in the order of their queue, though they have no buffer in
 * common and may be on several devices. Each way is tried in a process of its own, whose output is
 * read; there are kernels that print nothing between those that print.
 */
#include "native.h"

enum { N = 64, BYTES = N * sizeof(cl_int), LINES = 200, WARM = 20 };

static const char printing_source[] =
    "kernel void say(global int *out, int line) {\n"
    "    out[get_global_id(0)] = line;\n"
    "    if (get_global_id(0) == 0) printf(\"line %d\\n\", line);\n"
    "}\n"
    /* The first ones take longer. */
    "kernel void say_late(global int *out, int line) {\n"
    "    uint x = line;\n"
    "    for (int i = 0; i < (200 - line) * 100; i++) x = x * 1664525u + 1013904223u;\n"
    "    out[get_global_id(0)] = x;\n"
    "    if (get_global_id(0) == 0) printf(\"line %d\\n\", line);\n"
    "}\n";

static cl_program silent_program, printing_program;
static cl_kernel set, say, say_late;
static cl_command_queue plain; /* the suite's own is profiled */

static void run(cl_command_queue on, cl_kernel kernel, cl_mem buffer, cl_int value) {
    const size_t all = N;

    ck_ok(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(kernel, 1, sizeof(value), &value));
    ck_ok(clEnqueueNDRangeKernel(on, kernel, 1, NULL, &all, NULL, 0, NULL, NULL));
}

/* How long both kinds take is known then: those that do not print go as short ones. */
static void begin(void) {
    cl_mem buffer = make_buffer(0, BYTES, NULL);

    silent_program = make_program(common_source);
    printing_program = make_program(printing_source);
    set = make_kernel(silent_program, "set");
    say = make_kernel(printing_program, "say");
    say_late = make_kernel(printing_program, "say_late");
    plain = make_queue(0);
    for (int i = 0; i < WARM; i++) {
        run(plain, set, buffer, 1);
        run(plain, say, buffer, -1);
        run(plain, say_late, buffer, -1);
        ck_ok(clFinish(plain));
    }
    ck_ok(clReleaseMemObject(buffer));
}

static void end(void) {
    ck_ok(clFinish(plain));
    ck_ok(clReleaseCommandQueue(plain));
    ck_ok(clReleaseKernel(set));
    ck_ok(clReleaseKernel(say));
    ck_ok(clReleaseKernel(say_late));
    ck_ok(clReleaseProgram(silent_program));
    ck_ok(clReleaseProgram(printing_program));
}

static void say_nothing_until_here(void) {
    usleep(50000); /* for what must not happen */
    puts("nothing until here");
    fflush(stdout);
}

/* The second has no buffer of the first, which waits, and is passed by a kernel that is silent. */
START_TEST(behind_one_that_waits) {
    static cl_int memory[N], seen[N];
    cl_mem a, b = make_buffer(0, BYTES, NULL), c = make_buffer(0, BYTES, NULL);

    begin();
    a = make_buffer(CL_MEM_USE_HOST_PTR, BYTES, memory);
    occupy(a);
    run(plain, say, a, 0);
    run(plain, say, b, 1);
    run(plain, set, c, 7);
    ck_ok(clEnqueueReadBuffer(plain, c, CL_FALSE, 0, BYTES, seen, 0, NULL, NULL));
    run(plain, say, b, 2);
    ck_ok(clFlush(plain));
    ck_assert_msg(becomes(&seen[N - 1], 7, 30000), "a silent kernel waited");
    say_nothing_until_here();
    vacate();
    ck_ok(clFinish(plain));
    ck_ok(clReleaseMemObject(a));
    ck_ok(clReleaseMemObject(b));
    ck_ok(clReleaseMemObject(c));
    end();
}
END_TEST

/* Each on a buffer of its own, and every third of another program, which prints nothing. */
static void say_all(const cl_kernel *kernel) {
    static cl_mem buffer[LINES], other[LINES];

    begin();
    for (int i = 0; i < LINES; i++) {
        buffer[i] = make_buffer(0, BYTES, NULL);
        other[i] = make_buffer(0, BYTES, NULL);
        run(plain, *kernel, buffer[i], i);
        if (i % 3 == 0)
            run(plain, set, other[i], i);
    }
    ck_ok(clFinish(plain));
    for (int i = 0; i < LINES; i++) {
        ck_ok(clReleaseMemObject(buffer[i]));
        ck_ok(clReleaseMemObject(other[i]));
    }
    end();
}

START_TEST(many) { say_all(&say); }
END_TEST

START_TEST(long_ones_first) { say_all(&say_late); }
END_TEST

/* All are behind each other by one buffer, as a batch is, or a row of kernels. */
START_TEST(in_a_chain) {
    cl_mem buffer = make_buffer(0, BYTES, NULL);

    begin();
    for (int i = 0; i < LINES; i++) {
        run(plain, set, buffer, i);
        run(plain, set, buffer, -i);
        run(plain, say, buffer, i);
    }
    ck_ok(clFinish(plain));
    ck_ok(clReleaseMemObject(buffer));
    end();
}
END_TEST

/* The same where nothing but an event orders the second behind the first. */
START_TEST(behind_an_event) {
    static cl_int memory[N];
    const size_t all = N;
    cl_command_queue loose = make_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    cl_mem mem[2] = {make_buffer(CL_MEM_USE_HOST_PTR, BYTES, memory), make_buffer(0, BYTES, NULL)};
    cl_event event[2];

    begin();
    occupy(mem[0]);
    for (cl_int i = 0; i < 2; i++) {
        ck_ok(clSetKernelArg(say, 0, sizeof(mem[i]), &mem[i]));
        ck_ok(clSetKernelArg(say, 1, sizeof(i), &i));
        ck_ok(clEnqueueNDRangeKernel(loose, say, 1, NULL, &all, NULL, i, i ? event : NULL,
                                     &event[i]));
    }
    ck_ok(clFlush(loose));
    say_nothing_until_here();
    vacate();
    ck_ok(clFinish(loose));
    for (int i = 0; i < 2; i++) {
        ck_ok(clReleaseEvent(event[i]));
        ck_ok(clReleaseMemObject(mem[i]));
    }
    ck_ok(clReleaseCommandQueue(loose));
    end();
}
END_TEST

/* Only events order them. */
static void say_by_events(cl_command_queue first, cl_command_queue second) {
    static cl_mem buffer[LINES];
    const size_t all = N;
    cl_event event = NULL;

    begin();
    for (int i = 0; i < LINES; i++) {
        cl_event previous = event;
        buffer[i] = make_buffer(0, BYTES, NULL);
        ck_ok(clSetKernelArg(say_late, 0, sizeof(buffer[i]), &buffer[i]));
        ck_ok(clSetKernelArg(say_late, 1, sizeof(i), &i));
        ck_ok(clEnqueueNDRangeKernel(i % 2 ? second : first, say_late, 1, NULL, &all, NULL,
                                     previous ? 1 : 0, previous ? &previous : NULL, &event));
        if (previous)
            ck_ok(clReleaseEvent(previous));
        ck_ok(clFlush(i % 2 ? second : first));
    }
    ck_ok(clWaitForEvents(1, &event));
    ck_ok(clReleaseEvent(event));
    for (int i = 0; i < LINES; i++)
        ck_ok(clReleaseMemObject(buffer[i]));
    end();
}

START_TEST(out_of_order) {
    cl_command_queue loose = make_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);

    say_by_events(loose, loose);
    ck_ok(clReleaseCommandQueue(loose));
}
END_TEST

START_TEST(two_queues) {
    cl_command_queue first = make_queue(0), second = make_queue(0);

    say_by_events(first, second);
    ck_ok(clReleaseCommandQueue(first));
    ck_ok(clReleaseCommandQueue(second));
}
END_TEST

/* The lines are there, one after the other, whatever else is printed. */
static void ck_lines(const char *said, int lines, const char *setting) {
    int next = 0, line;

    for (const char *at = said; (at = strstr(at, "line ")); at++) {
        if (sscanf(at, "line %d", &line) != 1 || line < 0)
            continue;
        ck_assert_msg(line == next, "%s: line %d where %d should be", setting, line, next);
        next++;
    }
    ck_assert_msg(next == lines, "%s: %d of %d lines", setting, next, lines);
}

/* The child with these arguments, on two devices, on one, and on those that use all cores. */
static void try_all(const char *arguments, int lines, void (*check)(const char *said)) {
    static const char *const settings[] = {
        "POCL_DEVICES='basic basic'",
        "POCL_DEVICES='basic basic' TUTTI_SCHED=eager",
        "POCL_DEVICES='basic basic' TUTTI_BATCH=always",
        "POCL_DEVICES=basic",
        "POCL_DEVICES=pthread",
        "POCL_DEVICES=pthread TUTTI_DIRECT=row",
        "POCL_DEVICES='pthread pthread'",
    };

    for (size_t i = 0; i < COUNT(settings); i++) {
        const char *said = test_run_again(settings[i], arguments);
        ck_lines(said, lines, settings[i]);
        if (check)
            check(said);
    }
}

static void ck_nothing_before(const char *said) {
    const char *here = strstr(said, "nothing until here"), *first = strstr(said, "line 0");

    ck_assert_ptr_nonnull(here);
    ck_assert_msg(first > here, "it was printed before its kernel could begin");
}

START_TEST(what_waits_is_not_passed) { try_all("--behind", 3, ck_nothing_before); }
END_TEST

START_TEST(what_an_event_orders_is_not_passed) { try_all("--event", 2, ck_nothing_before); }
END_TEST

START_TEST(of_many) { try_all("--many", LINES, NULL); }
END_TEST

START_TEST(of_long_ones_and_short_ones) { try_all("--long", LINES, NULL); }
END_TEST

START_TEST(of_a_chain) { try_all("--chain", LINES, NULL); }
END_TEST

START_TEST(by_events_out_of_order) { try_all("--loose", LINES, NULL); }
END_TEST

START_TEST(by_events_of_two_queues) { try_all("--two", LINES, NULL); }
END_TEST

int main(int argc, char **argv) {
    const struct {
        const char *name;
        const TTest *test;
    } children[] = {
        {"--behind", behind_one_that_waits},
        {"--event", behind_an_event},
        {"--many", many},
        {"--long", long_ones_first},
        {"--chain", in_a_chain},
        {"--loose", out_of_order},
        {"--two", two_queues},
    };
    const TTest *const tests[] = {
        what_waits_is_not_passed,
        what_an_event_orders_is_not_passed,
        of_many,
        of_long_ones_and_short_ones,
        of_a_chain,
        by_events_out_of_order,
        by_events_of_two_queues,
    };

    test_prefer_pocl();
    for (size_t i = 0; argc == 2 && i < COUNT(children); i++)
        if (strcmp(argv[1], children[i].name) == 0)
            return test_main(1, argv, &children[i].test, 1);
    return test_main_bare(argc, argv, tests, COUNT(tests));
}
