/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: how long a kernel is expected to take, where it was measured and where not, with
 * devices and times that are made up.
 */
#include "../src/sched/model.c"
#include "support.h"

enum { GPU, CPU, BASIC };
static struct tutti_real_device gpu = {.type = CL_DEVICE_TYPE_GPU,
                                       .index = GPU,
                                       .kind = GPU,
                                       .identity = 1,
                                       .platform_name = "a",
                                       .clock_mhz = 1000,
                                       .compute_units = 10};
static struct tutti_real_device cpu = {.type = CL_DEVICE_TYPE_CPU,
                                       .index = CPU,
                                       .kind = CPU,
                                       .identity = 2,
                                       .platform_name = "b",
                                       .clock_mhz = 1000,
                                       .compute_units = 10};
static struct tutti_real_device basic = {.type = CL_DEVICE_TYPE_CPU,
                                         .index = BASIC,
                                         .kind = BASIC,
                                         .identity = 3,
                                         .platform_name = "c",
                                         .clock_mhz = 1000,
                                         .compute_units = 1,
                                         .shares_host = true,
                                         .place = {.synchronous = true}};
static const struct tutti_device_list list = {3, {&gpu, &cpu, &basic}};
#define BY_THEIR_WORD (LANES_GPU / LANES_CPU) /* times as long on the CPU */

const struct tutti_device_list *tutti_devices(void) { return &list; }

void tutti_model_store_read(void (*take)(const struct tutti_model_entry *, void *),
                            void *argument) {
    (void)take;
    (void)argument;
}

void tutti_model_store_add(const struct tutti_model_entry *entries, size_t count,
                           bool (*has)(const struct tutti_model_entry *)) {
    (void)entries;
    (void)count;
    (void)has;
}

static struct tutti_model *model(uint64_t code, uint64_t items) {
    return tutti_model_find(&(struct tutti_model_key){code, items, items});
}

/* Of a kernel that takes 10 ms on the GPU: how many times as long on the CPU. */
static double expect(uint64_t code, enum tutti_certainty *certainty) {
    struct tutti_model *large = model(code, 1000000);

    tutti_model_learn(large, &gpu, 10000);
    return tutti_model_estimate(large, &cpu, certainty) / 10000;
}

static void measure(uint64_t code, uint64_t items, double on_gpu, double on_cpu) {
    struct tutti_model *small = model(code, items);

    tutti_model_learn(small, &gpu, on_gpu);
    tutti_model_learn(small, &cpu, on_cpu);
}

START_TEST(what_nobody_measured) {
    enum tutti_certainty certainty;

    ck_assert_double_eq_tol(expect(10, &certainty), BY_THEIR_WORD, 0.01);
    ck_assert_int_eq(certainty, TUTTI_GUESSED);
}
END_TEST

START_TEST(another_size_tells) {
    enum tutti_certainty certainty;

    measure(20, 1000, 200, 6000);
    ck_assert_double_eq_tol(expect(20, &certainty), 30, 0.01);
    ck_assert_int_eq(certainty, TUTTI_RELATED);
}
END_TEST

/* The launch of it, perhaps: the CPU wakes its threads. */
START_TEST(a_small_size_tells_nothing) {
    enum tutti_certainty certainty;

    measure(30, 64, 50, 150);
    ck_assert_double_eq_tol(expect(30, &certainty), BY_THEIR_WORD, 0.01);
    ck_assert_int_eq(certainty, TUTTI_GUESSED);
}
END_TEST

/* However short it is on the one: for the other one it is long. */
START_TEST(a_slow_device_shows) {
    enum tutti_certainty certainty;

    measure(40, 1000, 10, 4000);
    ck_assert_double_ge(expect(40, &certainty), 300);
    ck_assert_int_eq(certainty, TUTTI_RELATED);
}
END_TEST

static void execute(struct tutti_model *model, const struct tutti_real_device *real, double time) {
    if (tutti_model_measures(model, real) != TUTTI_NOT_MEASURED)
        tutti_model_learn(model, real, time);
}

/*
 * Of a kernel whose time is in its data: the first half of a round takes 1 ms, the other next to
 * nothing. The mean is what a round tells of, however many runs it has.
 */
static void check_rounds(const struct tutti_real_device *real, uint64_t code, double least,
                         double most) {
    for (unsigned length = 2; length <= 64; length++) {
        struct tutti_model *unlike = model(code, length);
        double sum = 0;
        unsigned rounds = 0;

        for (unsigned run = 0; run < 200 * length; run++) {
            execute(unlike, real, run % length < length / 2 ? 1000 : 30);
            if (run % length == length - 1 && run >= 32) {
                sum += tutti_model_expect(unlike, real);
                rounds++;
            }
        }
        double mean = (length / 2 * 1000.0 + (length - length / 2) * 30.0) / length;
        ck_assert_double_ge(sum / rounds, least * mean);
        ck_assert_double_le(sum / rounds, most * mean);
    }
}

START_TEST(rounds_of_unlike_runs) {
    check_rounds(&gpu, 50, 0.5, 1.5);
    check_rounds(&basic, 60, 0.3, 1.5); /* after the short ones of each round */
}
END_TEST

START_TEST(a_change_is_followed) {
    const struct tutti_real_device *devices[] = {&gpu, &basic};

    for (size_t d = 0; d < COUNT(devices); d++) {
        struct tutti_model *changes = model(70, 100);

        for (int i = 0; i < 1000; i++)
            execute(changes, devices[d], 100);
        ck_assert_double_eq_tol(tutti_model_expect(changes, devices[d]), 100, 1);
        for (int i = 0; i < 400; i++)
            execute(changes, devices[d], 1000);
        ck_assert_double_eq_tol(tutti_model_expect(changes, devices[d]), 1000, 50);
    }
}
END_TEST

/* A short kernel that was interrupted. */
START_TEST(one_odd_run_does_not_count) {
    struct tutti_model *odd = model(80, 100);

    for (int i = 0; i < 1000; i++)
        execute(odd, &basic, i % 50 == 49 ? 4000 : 5);
    ck_assert_double_eq_tol(tutti_model_expect(odd, &basic), 5, 1);
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {what_nobody_measured,       another_size_tells,
                                  a_small_size_tells_nothing, a_slow_device_shows,
                                  rounds_of_unlike_runs,      a_change_is_followed,
                                  one_odd_run_does_not_count};

    return test_main_bare(argc, argv, tests, COUNT(tests));
}
