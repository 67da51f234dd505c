/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: how long a kernel is expected to take on a device where it was not measured, with
 * devices and times that are made up.
 */
#include "../src/sched/model.c"
#include "support.h"

enum { GPU, CPU };
static struct tutti_real_device gpu = {.type = CL_DEVICE_TYPE_GPU,
                                       .index = GPU,
                                       .identity = 1,
                                       .platform_name = "a",
                                       .clock_mhz = 1000,
                                       .compute_units = 10};
static struct tutti_real_device cpu = {.type = CL_DEVICE_TYPE_CPU,
                                       .index = CPU,
                                       .identity = 2,
                                       .platform_name = "b",
                                       .clock_mhz = 1000,
                                       .compute_units = 10};
static const struct tutti_device_list list = {2, {&gpu, &cpu}};
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

int main(int argc, char **argv) {
    const TTest *const tests[] = {what_nobody_measured, another_size_tells,
                                  a_small_size_tells_nothing, a_slow_device_shows};

    return test_main_bare(argc, argv, tests, COUNT(tests));
}
