/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: TUTTI_ORDER. Each setting is tried in a process of its own, as it is read once; it
 * says whether a command passes an earlier one of its queue that waits for a user event.
 */
#include "native.h"

enum { N = 1024, BYTES = N * sizeof(cl_int) };

static bool is_strict(void) {
    const char *order = getenv("TUTTI_ORDER");

    return order && strcmp(order, "strict") == 0;
}

/* The child: "held" or "passed", for an out-of-order queue. */
START_TEST(probe) {
    cl_command_queue loose = make_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    cl_mem a = make_buffer(0, 64, NULL), b = make_buffer(0, 64, NULL);
    cl_event gate = make_user_event(), first, second;
    /* That nothing passes is believed after a while; that it does is worth waiting for. */
    int most = is_strict() ? 100 : 12000, waited = 0;
    cl_int one = 1, seen[2];

    ck_ok(clEnqueueFillBuffer(loose, a, &one, 4, 0, 64, 1, &gate, &first));
    ck_ok(clEnqueueFillBuffer(loose, b, &one, 4, 0, 64, 0, NULL, &second));
    ck_ok(clFlush(loose));
    while (event_status(second) > CL_COMPLETE && waited++ < most)
        usleep(5000);
    printf("order %s\n", event_status(second) == CL_COMPLETE ? "passed" : "held");
    ck_assert_int_gt(event_status(first), CL_COMPLETE);
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    ck_ok(clFinish(loose));
    ck_assert_int_eq(event_status(first), CL_COMPLETE);
    ck_assert_int_eq(event_status(second), CL_COMPLETE);
    read_ints(a, &seen[0], 1);
    read_ints(b, &seen[1], 1);
    ck_assert(seen[0] == 1 && seen[1] == 1);
    ck_ok(clReleaseEvent(gate));
    ck_ok(clReleaseEvent(first));
    ck_ok(clReleaseEvent(second));
    ck_ok(clReleaseMemObject(a));
    ck_ok(clReleaseMemObject(b));
    ck_ok(clReleaseCommandQueue(loose));
}
END_TEST

static void run(cl_command_queue on, cl_kernel kernel, cl_mem buffer, cl_int value) {
    const size_t all = N;

    ck_ok(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(kernel, 1, sizeof(value), &value));
    ck_ok(clEnqueueNDRangeKernel(on, kernel, 1, NULL, &all, NULL, 0, NULL, NULL));
}

/* In order the bytes tell, as its event tells of a command when all before it are over. */
static void probe_in_order(bool known) {
    static cl_int memory[N], seen[N], others;
    cl_program program = make_program(common_source);
    cl_kernel set = make_kernel(program, "set");
    cl_command_queue plain = make_queue(0), other = make_queue(0);
    cl_mem a = make_buffer(CL_MEM_USE_HOST_PTR, BYTES, memory), b = make_buffer(0, BYTES, NULL),
           c = make_buffer(0, BYTES, NULL);

    for (int i = 0; known && i < 20; i++) { /* they take the ways of short ones then */
        run(plain, set, i % 2 ? b : c, -1);
        ck_ok(clFinish(plain));
    }
    occupy(a);
    run(plain, set, a, 1);
    run(plain, set, b, 2);
    ck_ok(clEnqueueReadBuffer(plain, b, CL_FALSE, 0, BYTES, seen, 0, NULL, NULL));
    ck_ok(clFlush(plain));
    run(other, set, c, 3);
    ck_ok(clEnqueueReadBuffer(other, c, CL_TRUE, 0, sizeof(others), &others, 0, NULL, NULL));
    ck_assert_int_eq(others, 3);
    ck_assert_msg(native_state == 1, "another queue waited");
    printf("order %s\n", becomes(&seen[N - 1], 2, is_strict() ? 100 : 30000) ? "passed" : "held");
    vacate();
    ck_ok(clFinish(plain));
    ck_assert_int_eq(seen[0], 2);
    read_ints(a, &others, 1);
    ck_assert_int_eq(others, 1);
    ck_ok(clReleaseMemObject(a));
    ck_ok(clReleaseMemObject(b));
    ck_ok(clReleaseMemObject(c));
    ck_ok(clReleaseKernel(set));
    ck_ok(clReleaseProgram(program));
    ck_ok(clReleaseCommandQueue(plain));
    ck_ok(clReleaseCommandQueue(other));
}

START_TEST(unknown) { probe_in_order(false); }
END_TEST

START_TEST(known) { probe_in_order(true); }
END_TEST

/* Does the child, with these settings, print that? */
static bool prints(const char *settings, const char *wanted) {
    return strstr(test_run_again(settings, "--probe"), wanted) != NULL;
}

START_TEST(relaxed_by_default) {
    ck_assert(prints("env -u TUTTI_ORDER", "order passed"));
    ck_assert(prints("TUTTI_ORDER=relaxed", "order passed"));
}
END_TEST

START_TEST(strict_holds_what_comes_later) { ck_assert(prints("TUTTI_ORDER=strict", "order held")); }
END_TEST

START_TEST(unknown_values_are_the_default) {
    ck_assert(prints("TUTTI_ORDER=wild TUTTI_LOG=warning", "order passed"));
    ck_assert(prints("TUTTI_ORDER=wild TUTTI_LOG=warning", "TUTTI_ORDER is neither"));
    ck_assert(!prints("TUTTI_ORDER=strict TUTTI_LOG=warning", "TUTTI_ORDER is neither"));
}
END_TEST

/* What has nothing in common with a command that waits passes it in its queue, or only in others.
 */
START_TEST(in_order_too) {
    static const char *const kinds[] = {"--unknown", "--known"};

    for (size_t i = 0; i < COUNT(kinds); i++) {
        ck_assert_ptr_nonnull(strstr(test_run_again("TUTTI_ORDER=relaxed", kinds[i]), "passed"));
        ck_assert_ptr_nonnull(strstr(test_run_again("TUTTI_ORDER=strict", kinds[i]), "held"));
    }
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const child[] = {probe}, *const in_order[] = {unknown, known};
    const TTest *const tests[] = {
        relaxed_by_default,
        strict_holds_what_comes_later,
        unknown_values_are_the_default,
        in_order_too,
    };

    if (argc > 1 && strcmp(argv[1], "--probe") == 0)
        return test_main(1, argv, child, COUNT(child));
    if (argc > 1 && strcmp(argv[1], "--unknown") == 0)
        return test_main(1, argv, &in_order[0], 1);
    if (argc > 1 && strcmp(argv[1], "--known") == 0)
        return test_main(1, argv, &in_order[1], 1);
    return test_main_bare(argc, argv, tests, COUNT(tests));
}
