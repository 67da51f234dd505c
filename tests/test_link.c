/* SPDX-License-Identifier: MIT */
/* Only Tutti: what transfers teach of a device's link, by a clock that is made up. */
#include "../src/sched/link.c"
#include "support.h"

#define MIB ((size_t)1 << 20)

static const struct tutti_real_device gpu = {.type = CL_DEVICE_TYPE_GPU};
static cl_ulong now = 1; /* ns */

cl_ulong tutti_runtime_now(void) { return now; }

static void begin(size_t bytes) { tutti_link_begin(&gpu, TUTTI_UPLOAD, bytes); }
static void end(size_t bytes) { tutti_link_end(&gpu, TUTTI_UPLOAD, bytes); }
static void pass(double us) { now += (cl_ulong)(1000 * us); }

static void transfer(size_t bytes, double us) {
    begin(bytes);
    pass(us);
    end(bytes);
}

/* All that was learnt before is forgotten. */
static void start(void) { states[0][TUTTI_UPLOAD].rate = states[0][TUTTI_UPLOAD].latency = 0; }

static void check_rate(double rate) {
    ck_assert_double_eq_tol(tutti_link_expect(&gpu, TUTTI_UPLOAD).rate, rate, rate / 100);
}

START_TEST(transfers_teach) {
    start();
    check_rate(RATE_GPU);
    transfer(MIB, LATENCY_GPU + 100);
    check_rate(MIB / 100.0);
    for (int i = 0; i < 100; i++)
        transfer(MIB, LATENCY_GPU + 50);
    check_rate(MIB / 50.0);
    transfer(4, 10);
    ck_assert_double_eq_tol(tutti_link_expect(&gpu, TUTTI_UPLOAD).latency, 10, 0.1);
    check_rate(MIB / 50.0);
}
END_TEST

/* Two at once share the link, and say together how fast it is. */
START_TEST(transfers_share_the_link) {
    start();
    begin(MIB);
    begin(MIB);
    ck_assert(tutti_link_is_shared(&gpu));
    pass(LATENCY_GPU + 200);
    end(MIB);
    end(MIB);
    check_rate(MIB / 100.0);
    ck_assert(!tutti_link_is_shared(&gpu));
}
END_TEST

/*
 * Those of the driver's queues are long until they are over, and no longer: by what they might take
 * before anything is learnt, a stream kept short kernels from the device when it was over.
 */
START_TEST(long_ones_delay_events) {
    start();
    ck_assert(!tutti_link_delays_events(&gpu));
    tutti_link_note_long(&gpu, TUTTI_UPLOAD, true);
    tutti_link_note_long(&gpu, TUTTI_DOWNLOAD, true);
    pass(1e6);
    ck_assert(tutti_link_delays_events(&gpu));
    tutti_link_note_long(&gpu, TUTTI_UPLOAD, false);
    ck_assert(tutti_link_delays_events(&gpu));
    tutti_link_note_long(&gpu, TUTTI_DOWNLOAD, false);
    ck_assert(!tutti_link_delays_events(&gpu));
    tutti_link_begin_unseen(&gpu, TUTTI_UPLOAD, MIB);
    ck_assert(tutti_link_delays_events(&gpu));
    pass(LATENCY_GPU + MIB / RATE_GPU + 1);
    ck_assert(!tutti_link_delays_events(&gpu));
}
END_TEST

/* A device whose first transfers wait for pages to be locked would be avoided for ever. */
START_TEST(what_is_disturbed_teaches_nothing) {
    start();
    tutti_link_disturb(true); /* before it, and until it has ended */
    transfer(MIB, 50000);
    tutti_link_disturb(false);
    check_rate(RATE_GPU);
    begin(MIB); /* all within it */
    tutti_link_disturb(true);
    pass(50000);
    tutti_link_disturb(false);
    end(MIB);
    check_rate(RATE_GPU);
    begin(MIB); /* it goes on */
    tutti_link_disturb(true);
    pass(50000);
    end(MIB);
    check_rate(RATE_GPU);
    begin(MIB); /* it began before, and ends first */
    pass(10);
    tutti_link_disturb(false);
    pass(5000);
    end(MIB);
    check_rate(RATE_GPU);
    transfer(MIB, LATENCY_GPU + 100);
    check_rate(MIB / 100.0);
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {transfers_teach, transfers_share_the_link, long_ones_delay_events,
                                  what_is_disturbed_teaches_nothing};

    return test_main_bare(argc, argv, tests, COUNT(tests));
}
