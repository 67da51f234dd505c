/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: TUTTI_ORDER. Each setting is tried in a process of its own, as it is read once; it
 * says whether a command passes an earlier one of its queue that waits for a user event.
 */
#include "support.h"

#include <unistd.h>

/* The child: "held" or "passed", for an out-of-order queue. */
START_TEST(probe) {
    cl_command_queue loose = make_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    cl_mem a = make_buffer(0, 64, NULL), b = make_buffer(0, 64, NULL);
    cl_event gate = make_user_event(), first, second;
    const char *order = getenv("TUTTI_ORDER");
    /* That nothing passes is believed after a while; that it does is worth waiting for. */
    int most = order && strcmp(order, "strict") == 0 ? 100 : 12000, waited = 0;
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

int main(int argc, char **argv) {
    const TTest *const child[] = {probe};
    const TTest *const tests[] = {
        relaxed_by_default,
        strict_holds_what_comes_later,
        unknown_values_are_the_default,
    };

    if (argc > 1 && strcmp(argv[1], "--probe") == 0)
        return test_main(1, argv, child, COUNT(child));
    return test_main_bare(argc, argv, tests, COUNT(tests));
}
