/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: how long a kernel is expected to take, where it was measured and where not, and what
 * a device takes before its first launch, with devices and times that are made up.
 */
#include "../src/sched/lanes.h"
#include "../src/sched/model.c"
#include "../src/sched/policy_task.h"
#include "../src/virtual_device/pocl.h"
#include "support.h"

enum { GPU, CPU, BASIC, BASIC_TOO };
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
static struct tutti_real_device basic_too;
static const struct tutti_device_list list = {
    .count = 4, .serving = 4, .device = {&gpu, &cpu, &basic, &basic_too}};
#define BY_THEIR_WORD (LANES_GPU / LANES_CPU) /* times as long on the CPU */

const struct tutti_device_list *tutti_devices(void) { return &list; }

bool tutti_pocl_is(const struct tutti_real_device *real) { return real != &gpu; }

unsigned tutti_batch_devices(const struct tutti_batch *batch) { return batch->devices; }

enum { LANES = 16, SHARED = 700 }; /* kernels of so much code leave most of the GPU to others */

unsigned tutti_lanes_for(const struct tutti_batch *batch, const struct tutti_real_device *real) {
    return real == &gpu && batch->first->model->key.code == SHARED ? LANES : 1;
}

/* No batch has data here. */
starpu_data_handle_t tutti_interface_register(struct tutti_view *view) {
    ck_abort_msg("view %p", (void *)view);
    return NULL;
}

bool tutti_interface_is_missing(starpu_data_handle_t handle, const struct tutti_real_device *real) {
    ck_abort_msg("handle %p on %p", (void *)handle, (const void *)real);
    return false;
}

/* Kernels that an earlier process executed: on the CPU in shape 5, on the GPU for 10 and 100 µs. */
enum { KEPT = 90, KEPT_SHORT = 91, KEPT_LONG = 92 };

void tutti_model_store_read(void (*take)(const struct tutti_model_entry *, void *),
                            void *argument) {
    struct tutti_model_entry kept = {{.code = KEPT, .items = 100}, 2, 1000};
    struct tutti_model_entry kept_short = {{KEPT_SHORT, 100, 100}, 1, 10};
    struct tutti_model_entry kept_long = {{KEPT_LONG, 100, 100}, 1, 100};

    tutti_model_mix(&kept.key, 100);
    tutti_model_shape(&kept.key, 5);
    take(&kept, argument);
    take(&kept_short, argument);
    take(&kept_long, argument);
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

/* On an H200 one of 10 µs takes 13 to 35 when a process executes it first. */
START_TEST(the_first_run_of_a_process_tells_little) {
    struct tutti_model *fresh = model(81, 100), *kept = model(KEPT_SHORT, 100);

    execute(fresh, &gpu, 35);
    ck_assert_double_eq_tol(tutti_model_expect(fresh, &gpu), 35, 0.1);
    for (int i = 0; i < 10; i++)
        execute(fresh, &gpu, 10);
    ck_assert_double_eq_tol(tutti_model_expect(fresh, &gpu), 10, 0.1);
    execute(kept, &gpu, 35);
    ck_assert_double_eq_tol(tutti_model_expect(kept, &gpu), 10, 0.1);
    /* What is longer from now on is believed. */
    for (int i = 0; i < 10; i++)
        execute(kept, &gpu, 14);
    ck_assert_double_gt(tutti_model_expect(kept, &gpu), 10.5);
    for (int i = 0; i < 1000; i++)
        execute(kept, &gpu, 40);
    ck_assert_double_eq_tol(tutti_model_expect(kept, &gpu), 40, 1);
    /* Of a longer kernel it does, as there may be one in each process. */
    kept = model(KEPT_LONG, 100);
    execute(kept, &gpu, 200);
    ck_assert_double_gt(tutti_model_expect(kept, &gpu), 110);
}
END_TEST

/* Some µs decide whether a command joins the one before it, or the next hundred don't. */
START_TEST(one_longer_run_is_asked_again) {
    struct tutti_model *odd = model(82, 100);

    for (int i = 0; i < 10; i++)
        execute(odd, &gpu, 10);
    for (int i = 0; i < 200; i++) {
        tutti_model_learn(odd, &gpu, 40);
        ck_assert_double_eq_tol(tutti_model_expect(odd, &gpu), 10, 0.1);
        for (int k = 0; k < 20; k++)
            execute(odd, &gpu, 10);
    }
}
END_TEST

/* Of a kernel and an index space of that shape. */
static struct tutti_model *shaped(uint64_t code, uint64_t items, uint64_t shape) {
    struct tutti_model_key key = {.code = code, .items = items};

    tutti_model_mix(&key, items);
    tutti_model_shape(&key, shape);
    return tutti_model_find(&key);
}

static double delay(const struct tutti_model *model, const struct tutti_real_device *real) {
    return tutti_first_launch_delay(tutti_model_first_launch(model), real);
}

START_TEST(a_first_launch_takes_time_on_pocl) {
    struct tutti_model *new = shaped(100, 1000, 1);
    struct tutti_model *larger = shaped(100, 2000, 1), *other = shaped(100, 1000, 2);

    ck_assert_double_eq(delay(new, &gpu), 0);
    ck_assert_double_ge(delay(new, &cpu), 50000);
    ck_assert(!tutti_first_launch_is_over(tutti_model_first_launch(new), 1u << CPU));
    ck_assert(tutti_first_launch_is_over(tutti_model_first_launch(new), 1u << GPU));
    /* Once, for all sizes of that shape and all devices of that kind. */
    tutti_model_learn(new, &basic, 300);
    ck_assert_double_eq(delay(new, &basic), 0);
    ck_assert_double_eq(delay(new, &basic_too), 0);
    ck_assert_double_eq(delay(larger, &basic), 0);
    ck_assert_double_ge(delay(new, &cpu), 50000);
    ck_assert_double_ge(delay(other, &basic), 50000);
    /* A copy is no kernel. */
    ck_assert_double_eq(delay(shaped(0, 1000, 1), &cpu), 0);
    ck_assert(tutti_first_launch_is_over(tutti_model_first_launch(NULL), ~0u));
}
END_TEST

/* Who saw a run's end late does not know how long it took: the next one is measured. */
START_TEST(what_is_in_doubt_is_measured_again) {
    struct tutti_model *one = shaped(150, 10, 1);
    for (unsigned i = 0; i < 1000; i++) {
        tutti_model_measures(one, &gpu);
        tutti_model_learn(one, &gpu, 10);
    }
    ck_assert_double_eq_tol(tutti_model_measured(one), 10, 0.1);
    for (unsigned time = 0; time < 20; time++) {
        tutti_model_doubt(one, &gpu);
        ck_assert_double_eq_tol(tutti_model_measured(one), 10, 0.1);
        ck_assert_int_ne(tutti_model_measures(one, &gpu), TUTTI_NOT_MEASURED);
        tutti_model_learn(one, &gpu, 10);
    }
    tutti_model_doubt(one, &gpu);
    for (unsigned i = 0; i < 20; i++)
        tutti_model_learn(one, &gpu, 5000);
    ck_assert_double_gt(tutti_model_measured(one), 4000);
}
END_TEST

START_TEST(what_is_kept_was_compiled) {
    ck_assert_double_le(delay(shaped(KEPT, 100, 5), &cpu), 5000);
    ck_assert_double_gt(delay(shaped(KEPT, 100, 5), &cpu), 0);
    ck_assert_double_le(delay(shaped(KEPT, 700, 5), &cpu), 5000);
    ck_assert_double_ge(delay(shaped(KEPT, 700, 6), &cpu), 50000);
    ck_assert_double_ge(delay(shaped(KEPT, 100, 5), &basic), 50000);
}
END_TEST

/* The time of the kernel's own that was waited for is learnt for its kind of device. */
START_TEST(first_launches_tell_of_others) {
    double before = delay(shaped(110, 10, 1), &cpu), last = before;

    for (unsigned i = 0; i < 20; i++) {
        struct tutti_model *one = shaped(120 + i, 10, 1);
        tutti_first_launch_learn(tutti_model_first_launch(one), &basic, 1000);
        tutti_model_learn(one, &basic, 10);
        ck_assert_double_le(delay(shaped(110, 10, 1), &basic_too), last);
        last = delay(shaped(110, 10, 1), &basic_too);
        /* What comes after the first one is no first launch. */
        tutti_first_launch_learn(tutti_model_first_launch(one), &basic, 1000000);
    }
    ck_assert_double_le(last, 10000);
    ck_assert_double_gt(last, 0);
    ck_assert_double_eq(delay(shaped(110, 10, 1), &cpu), before);
}
END_TEST

/* What it takes before the batch's kernels are executed there. */
static double delay_of(const struct tutti_batch *batch, unsigned real) {
    struct tutti_plan_task task;

    tutti_policy_expect(batch, &task);
    return task.delay[real];
}

/* A batch with the kernels of those models. */
static struct tutti_batch make_batch(struct tutti_device_task *parts, unsigned count) {
    for (unsigned i = 0; i + 1 < count; i++)
        parts[i].next = &parts[i + 1];
    return (struct tutti_batch){.first = parts, .devices = (1u << list.count) - 1};
}

START_TEST(a_line_has_a_first_launch_once) {
    struct tutti_model *one = shaped(160, 10, 1), *larger = shaped(160, 20, 1);
    struct tutti_model *two = shaped(161, 10, 1);
    struct tutti_device_task parts[] = {
        {.model = one}, {.model = larger}, {.model = two}, {.model = NULL}};
    struct tutti_device_task part = {.model = larger};
    struct tutti_batch several = make_batch(parts, COUNT(parts)), single = make_batch(&part, 1);
    double each = delay(one, &basic);

    /* Each kernel counts, but not twice. */
    ck_assert_double_eq(delay_of(&several, GPU), 0);
    ck_assert_double_eq(delay_of(&several, BASIC), 2 * each);
    ck_assert_double_eq(delay_of(&single, BASIC), each);
    /* In a device's line it stands for those behind it, but not for another device. */
    tutti_policy_delay(&several, BASIC, 2 * each);
    ck_assert_double_eq(delay_of(&single, BASIC), 0);
    ck_assert_double_eq(delay_of(&single, BASIC_TOO), each);
    ck_assert_double_eq(delay_of(&several, BASIC), 2 * each);
    /* When another one takes it over, */
    tutti_policy_delay(&several, BASIC_TOO, 2 * each);
    ck_assert_double_eq(delay_of(&single, BASIC), each);
    ck_assert_double_eq(delay_of(&single, BASIC_TOO), 0);
    tutti_policy_delay(&several, GPU, 0);
    ck_assert_double_eq(delay_of(&single, BASIC_TOO), each);
    /* and when it is over for the kind. */
    tutti_policy_delay(&several, BASIC, 2 * each);
    tutti_model_learn(one, &basic, 10);
    ck_assert_double_eq(delay_of(&single, BASIC_TOO), 0);
    ck_assert_double_eq(delay_of(&several, BASIC), each);
    tutti_model_learn(two, &basic, 10);
    ck_assert_double_eq(delay_of(&several, BASIC), 0);
    ck_assert_double_ge(delay_of(&several, CPU), 100000);
}
END_TEST

/* As far as StarPU lets them, and one by one they take as long as ever. */
START_TEST(a_device_may_be_shared) {
    struct tutti_device_task shares = {.model = shaped(SHARED, 10, 1)};
    struct tutti_device_task fills = {.model = shaped(SHARED + 1, 10, 1)};
    struct tutti_device_task *const parts[] = {&shares, &fills};
    for (unsigned i = 0; i < COUNT(parts); i++) {
        struct tutti_batch batch = make_batch(parts[i], 1);
        struct tutti_plan_task task;
        for (unsigned d = 0; d < list.count; d++)
            tutti_model_learn(parts[i]->model, list.device[d], 100);
        batch.length = 1;
        batch.expected = 100;
        batch.parts = LANES;
        tutti_policy_expect(&batch, &task);
        ck_assert_double_eq(task.length[GPU], 100);
        ck_assert_double_eq(task.beside[GPU], i == 0 ? 75 : 0);
        ck_assert_double_eq(task.beside[CPU], 0);
        batch.expected = 10; /* soon over */
        tutti_policy_expect(&batch, &task);
        ck_assert_double_eq(task.beside[GPU], 0);
    }
}
END_TEST

START_TEST(losses_take_time) {
    struct tutti_first_launch *first = tutti_model_first_launch(shaped(150, 10, 1));

    /* A burst of a moment, */
    for (int i = 0; i < 1000; i++)
        tutti_first_launch_miss(first, &basic, 5000, 7000);
    ck_assert_double_eq(tutti_first_launch_lost(first, &basic), 0);
    /* and one after the other. */
    for (int i = 1; i <= 10; i++)
        tutti_first_launch_miss(first, i % 2 ? &basic : &basic_too, 500, 7000 + 800 * i);
    ck_assert_double_eq(tutti_first_launch_lost(first, &basic_too), 5000);
    ck_assert_double_eq(tutti_first_launch_lost(first, &cpu), 0);
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {what_nobody_measured,
                                  another_size_tells,
                                  a_small_size_tells_nothing,
                                  a_slow_device_shows,
                                  rounds_of_unlike_runs,
                                  a_change_is_followed,
                                  one_odd_run_does_not_count,
                                  the_first_run_of_a_process_tells_little,
                                  one_longer_run_is_asked_again,
                                  a_first_launch_takes_time_on_pocl,
                                  what_is_in_doubt_is_measured_again,
                                  what_is_kept_was_compiled,
                                  first_launches_tell_of_others,
                                  losses_take_time,
                                  a_line_has_a_first_launch_once,
                                  a_device_may_be_shared};

    basic_too = basic;
    basic_too.index = BASIC_TOO;

    return test_main_bare(argc, argv, tests, COUNT(tests));
}
