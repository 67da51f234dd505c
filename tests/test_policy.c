/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: the decisions of its scheduling policy, with devices, links and times that are made
 * up. Nothing is executed and no clock is read.
 */
#include "../src/sched/policy_choose.c"
#include "support.h"

enum { MOST = TUTTI_PLAN_DEVICES };
#define MIB ((size_t)1 << 20)
#define HOME TUTTI_PLAN_HOME

/* GPUs have links of 10 GB/s; a CPU works in home memory. */
static struct tutti_plan_device machine[MOST];
static unsigned machine_size;
static unsigned given[MOST]; /* tasks to each device */

static void add_device(bool at_home) {
    struct tutti_plan_link link = {.latency = 10, .rate = 10000};

    machine[machine_size++] = (struct tutti_plan_device){
        .at_home = at_home, .room = 1000 * MIB, .up = link, .down = link};
}

/* The number of GPUs, then of CPUs. */
static void make_machine(unsigned gpus, unsigned cpus) {
    machine_size = 0;
    memset(given, 0, sizeof(given));
    for (unsigned i = 0; i < gpus + cpus; i++)
        add_device(i >= gpus);
}

/* A task without data that takes lengths[d] on each device, as was measured. */
static struct tutti_plan_task make_task(const double *lengths) {
    struct tutti_plan_task task = {.able = (1u << machine_size) - 1};

    for (unsigned d = 0; d < machine_size; d++)
        task.length[d] = lengths[d];
    return task;
}

static void use_data(struct tutti_plan_task *task, const struct tutti_plan_data *data,
                     unsigned count) {
    task->data = data;
    task->count = count;
}

static struct tutti_plan choose(const struct tutti_plan_task *task) {
    return tutti_policy_choose(machine, machine_size, task, 0);
}

/* Plans the task at time 0. Returns the device. */
static unsigned give(const struct tutti_plan_task *task) {
    struct tutti_plan plan = choose(task);

    tutti_policy_book(machine, machine_size, task, &plan, 0);
    given[plan.device]++;
    return plan.device;
}

/* When the last of so many equal tasks ends. */
static double burst(unsigned tasks, const struct tutti_plan_task *task) {
    double end = 0;

    for (unsigned i = 0; i < tasks; i++)
        give(task);
    for (unsigned d = 0; d < machine_size; d++)
        if (machine[d].ready > end)
            end = machine[d].ready;
    return end;
}

START_TEST(equal_devices_share) {
    make_machine(4, 0);
    const struct tutti_plan_task task = make_task((double[]){100, 100, 100, 100});

    ck_assert_double_eq(burst(40, &task), 1000);
    for (unsigned d = 0; d < 4; d++)
        ck_assert_uint_eq(given[d], 10);
}
END_TEST

START_TEST(unequal_devices_end_together) {
    make_machine(1, 2);
    const struct tutti_plan_task task = make_task((double[]){100, 300, 600});

    /* 60 tasks are best done in 60 / (1/100 + 1/300 + 1/600) = 4000. */
    ck_assert_double_le(burst(60, &task), 4400);
    ck_assert_uint_ge(given[1], 11);
    ck_assert_uint_ge(given[2], 5);
}
END_TEST

/* What one device executes at the same time keeps it for less long than each takes. */
START_TEST(a_device_that_shares_has_more_time) {
    make_machine(1, 1);
    struct tutti_plan_task task = make_task((double[]){100, 200});
    task.beside[0] = 75;

    const struct tutti_plan plan = choose(&task);
    ck_assert_uint_eq(plan.device, 0);
    ck_assert_double_eq(plan.end - plan.start, 100);
    ck_assert_double_eq(plan.free - plan.start, 25);
    burst(60, &task);
    ck_assert_double_le(machine[0].ready, 1500);
    ck_assert_double_le(machine[1].ready, 1500);
    ck_assert_uint_ge(given[0], 50);
    /* Each still takes its time: one is sooner done where nothing is before it. */
    make_machine(1, 1);
    task.length[1] = 50;
    ck_assert_uint_eq(choose(&task).device, 1);
}
END_TEST

/* So many times slower; a burst must never end later than on the fast device by itself. */
START_TEST(a_slow_device_harms_no_burst) {
    const double slower[] = {2, 5, 20, 1000};

    for (size_t i = 0; i < COUNT(slower); i++)
        for (unsigned tasks = 1; tasks <= 250; tasks++) {
            make_machine(1, 1);
            const struct tutti_plan_task task = make_task((double[]){100, 100 * slower[i]});

            ck_assert_double_le(burst(tasks, &task), 100.0 * tasks);
            if (tasks > (slower[i] > 10 ? 10 : 1.3) * slower[i])
                ck_assert_uint_ge(given[1], 1);
            if (tasks < slower[i])
                ck_assert_uint_eq(given[1], 0);
        }
}
END_TEST

/* Its cores are those that launch: it must be as fast as a launch to be worth them. */
START_TEST(what_is_over_before_the_next_launch_is_left_to_the_gpu) {
    const struct {
        double gpu, cpu;
        enum tutti_certainty certainty; /* of the GPU's time */
        bool shares;
    } cases[] = {
        {2, 20, TUTTI_MEASURED, false}, {8, 9, TUTTI_MEASURED, false}, {2, 7, TUTTI_MEASURED, true},
        {9, 20, TUTTI_MEASURED, true},  {2, 20, TUTTI_RELATED, true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        make_machine(1, 1);
        struct tutti_plan_task task = make_task((double[]){cases[i].gpu, cases[i].cpu});
        task.launch = 8;
        task.certainty[0] = cases[i].certainty;
        burst(1000, &task);
        ck_assert_msg((given[1] > 0) == cases[i].shares, "case %zu: %u of 1000", i, given[1]);
    }
    /* What is at home stays there. */
    make_machine(1, 1);
    const struct tutti_plan_data data = {.bytes = MIB, .reads = true, .valid = HOME};
    struct tutti_plan_task task = make_task((double[]){2, 20});
    task.launch = 8;
    use_data(&task, &data, 1);
    ck_assert_uint_eq(give(&task), 1);
    /* Where the GPU has no part, one CPU may take it from another one. */
    make_machine(1, 2);
    task = make_task((double[]){2, 20, 20});
    task.launch = 8;
    task.others = 1;
    task.able = 1u << 1 | 1u << 2;
    burst(10, &task);
    ck_assert_uint_eq(given[1], 5);
    ck_assert_uint_eq(given[2], 5);
}
END_TEST

/*
 * What takes less than its launch stays together on the first GPU without other work, as long as
 * its data was nowhere else, and is soon brought.
 */
START_TEST(data_of_short_kernels_goes_to_one_gpu) {
    struct tutti_plan_data data = {.bytes = MIB / 4, .reads = true, .fresh = true, .valid = HOME};

    make_machine(3, 1);
    struct tutti_plan_task task = make_task((double[]){4, 4, 4, 400});
    task.launch = 8;
    use_data(&task, &data, 1);
    burst(40, &task);
    ck_assert_uint_eq(given[0], 40);
    machine[0].longer = 1000;
    ck_assert_uint_eq(give(&task), 1);
    machine[1].room = 0;
    ck_assert_uint_eq(give(&task), 2);
    data.valid = data.allocated = 1u << 1; /* it stays where it is */
    machine[1].ready += 1000;
    ck_assert_uint_eq(give(&task), 1);
    data.valid = HOME;
    data.allocated = 0;

    make_machine(2, 0);
    data.fresh = false; /* it has been on one, and may come and go */
    burst(40, &task);
    ck_assert_uint_eq(given[0], 20);
    make_machine(2, 1);
    data.valid = HOME | 1u << 2; /* as a CPU does, in home memory */
    task.length[2] = 400;
    burst(40, &task);
    ck_assert_uint_eq(given[0], 20);
    make_machine(3, 0);
    task.length[2] = 4;
    data.valid = data.allocated = 1u << 0 | 1u << 1; /* either has it */
    machine[0].longer = 1000;
    ck_assert_uint_eq(give(&task), 1);
    data.valid = HOME;
    data.allocated = 0;
    make_machine(2, 0);
    data.fresh = true;
    data.bytes = 2 * MIB;
    burst(40, &task);
    ck_assert_uint_eq(given[0], 20);
    make_machine(2, 0);
    data.bytes = MIB / 4;
    task.length[0] = task.length[1] = 9;
    burst(40, &task);
    ck_assert_uint_eq(given[0], 20);
    make_machine(2, 0);
    task.length[0] = task.length[1] = 4;
    task.certainty[0] = task.certainty[1] = TUTTI_GUESSED;
    burst(40, &task);
    ck_assert_uint_gt(given[1], 0);
}
END_TEST

START_TEST(the_last_tasks_wait_for_the_fast_device) {
    make_machine(1, 1);
    const struct tutti_plan_task task = make_task((double[]){100, 800});

    machine[0].ready = 400; /* what is there already */
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(give(&task), 0);
    machine[0].ready = 1200;
    ck_assert_uint_eq(give(&task), 1);
}
END_TEST

/* What it adds is little, and a chain that it works at is late. */
START_TEST(a_far_slower_device_must_win_much) {
    const struct tutti_plan_data data = {.bytes = 5 * MIB, .reads = true, .valid = 1u << 0};

    make_machine(1, 1);
    struct tutti_plan_task task = make_task((double[]){100, 2000});
    use_data(&task, &data, 1);
    machine[0].ready = 10000; /* as at the begin of a pass over 100 blocks */
    ck_assert_uint_eq(choose(&task).device, 0);
    machine[0].ready = 40000;
    ck_assert_uint_eq(choose(&task).device, 1);
    /* The same where it need not be fetched, but the other one has to wait for it. */
    const struct tutti_plan_data at_home = {.bytes = 5 * MIB, .reads = true, .valid = HOME};
    use_data(&task, &at_home, 1);
    machine[0].ready = 10000;
    ck_assert_uint_eq(choose(&task).device, 0);
}
END_TEST

START_TEST(data_counts) {
    const struct tutti_plan_data data = {.bytes = 10 * MIB, .reads = true, .valid = 1u << 1};

    make_machine(2, 0);
    struct tutti_plan_task task = make_task((double[]){500, 500});
    use_data(&task, &data, 1);
    /* To bring it takes two transfers of 1059 µs at once, which keep both links from others. */
    for (int i = 0; i < 7; i++)
        ck_assert_uint_eq(give(&task), 1);
    ck_assert_uint_eq(give(&task), 0);
    ck_assert(machine[1].down.free > 1000 && machine[1].down.free < 1100);
    ck_assert(machine[0].up.free > 1000 && machine[0].up.free < 1100);
}
END_TEST

START_TEST(a_chain_stays) {
    make_machine(2, 1);
    struct tutti_plan_data data = {.bytes = 100000, .reads = true, .valid = HOME};
    struct tutti_plan_task task = make_task((double[]){5, 5, 15});
    use_data(&task, &data, 1);
    unsigned first = give(&task);

    for (int i = 0; i < 100; i++) {
        data.valid = 1u << first; /* it is written there, and the next one comes after that */
        for (unsigned d = 0; d < machine_size; d++)
            machine[d].ready = machine[d].up.free = machine[d].down.free = 0;
        ck_assert_uint_eq(give(&task), first);
    }
}
END_TEST

START_TEST(ties_go_to_the_data) {
    make_machine(2, 0);
    const struct tutti_plan_data data = {.bytes = 4, .reads = true, .valid = 1u << 1};
    struct tutti_plan_task task = make_task((double[]){2, 2});
    use_data(&task, &data, 1);

    machine[0].up.latency = machine[1].down.latency = 1;
    for (int i = 0; i < 2; i++)
        ck_assert_uint_eq(give(&task), 1);
    /* CPU devices that share home memory go on where they were, too. */
    make_machine(0, 2);
    ck_assert_uint_eq(choose(&task).device, 1);
    /* Without data a tie goes to the first device, and does so each time. */
    make_machine(2, 0);
    task.count = 0;
    ck_assert_uint_eq(choose(&task).device, 0);
    ck_assert_uint_eq(choose(&task).device, 0);
}
END_TEST

START_TEST(what_is_coming_counts_as_there) {
    make_machine(2, 0);
    const struct tutti_plan_data data = {
        .bytes = 10 * MIB, .reads = true, .valid = HOME, .coming = 1u << 1};
    struct tutti_plan_task task = make_task((double[]){500, 500});
    use_data(&task, &data, 1);
    machine[1].up.free = 800;

    struct tutti_plan plan = choose(&task);
    ck_assert_uint_eq(plan.device, 1);
    ck_assert_double_eq(plan.start, 800);
    ck_assert(!plan.moves);
}
END_TEST

START_TEST(links_are_occupied_by_what_is_planned) {
    const struct tutti_plan_data data = {.bytes = 10 * MIB, .reads = true, .valid = HOME};

    make_machine(2, 0);
    struct tutti_plan_task task = make_task((double[]){10, 10});
    use_data(&task, &data, 1);
    for (int i = 0; i < 10; i++)
        give(&task);
    ck_assert_uint_eq(given[0], 5);
    ck_assert_uint_eq(given[1], 5);
    /* A device behind a slow link gets less. */
    make_machine(2, 0);
    machine[1].up.rate = 2500;
    for (int i = 0; i < 10; i++)
        give(&task);
    ck_assert_uint_eq(given[1], 2);
}
END_TEST

START_TEST(a_cpu_needs_no_link) {
    const struct tutti_plan_data data = {.bytes = 10 * MIB, .reads = true, .valid = HOME};

    make_machine(1, 1);
    struct tutti_plan_task task = make_task((double[]){10, 500});
    use_data(&task, &data, 1);
    ck_assert_uint_eq(choose(&task).device, 1);
    /* But what is on the GPU it has to fetch. */
    const struct tutti_plan_data there = {.bytes = 10 * MIB, .reads = true, .valid = 1u << 0};
    use_data(&task, &there, 1);
    ck_assert_uint_eq(choose(&task).device, 0);
    /* What nobody reads is nowhere and comes from nowhere. */
    const struct tutti_plan_data output = {.bytes = 10 * MIB};
    use_data(&task, &output, 1);
    struct tutti_plan plan = choose(&task);
    ck_assert_uint_eq(plan.device, 0);
    ck_assert(!plan.moves);
}
END_TEST

START_TEST(full_memory_is_avoided) {
    const struct tutti_plan_data data = {.bytes = 100 * MIB, .valid = 0};

    make_machine(2, 0);
    machine[0].room = 50 * MIB;
    struct tutti_plan_task task = make_task((double[]){1000, 1100});
    use_data(&task, &data, 1);
    ck_assert_uint_eq(choose(&task).device, 1);
    /* What has memory there already needs no room. */
    const struct tutti_plan_data held = {.bytes = 100 * MIB, .allocated = 1u << 0};
    use_data(&task, &held, 1);
    ck_assert_uint_eq(choose(&task).device, 0);
    /* It evicts if the other device is far slower. */
    task.length[1] = 100000;
    use_data(&task, &data, 1);
    struct tutti_plan plan = choose(&task);
    ck_assert_uint_eq(plan.device, 0);
    ck_assert(plan.evicts);
}
END_TEST

START_TEST(only_able_devices) {
    make_machine(2, 1);
    struct tutti_plan_task task = make_task((double[]){1, 1, 500});

    for (unsigned able = 1; able < 8; able++) {
        task.able = able;
        for (int i = 0; i < 20; i++)
            ck_assert(1u << give(&task) & able);
    }
}
END_TEST

/* A slow device that is guessed to be `guess` times slower. */
static struct tutti_plan_task guessed_task(double guess) {
    struct tutti_plan_task task = make_task((double[]){100, 100 * guess});

    task.certainty[1] = TUTTI_GUESSED;
    return task;
}

START_TEST(a_guess_is_tried_once_and_late) {
    make_machine(1, 1);
    struct tutti_plan_task task = guessed_task(8);
    unsigned before = 0;

    while (!choose(&task).probes && before < 1000) {
        give(&task);
        before++;
    }
    /* A device 30 times slower where 8 were guessed would still end with the others. */
    ck_assert_uint_ge(before, 30);
    ck_assert_uint_le(before, 36);
    ck_assert_uint_eq(given[1], 0);
    ck_assert_uint_eq(give(&task), 1);
    task.tried = 1u << 1;
    for (int i = 0; i < 1000; i++)
        ck_assert_uint_eq(give(&task), 0);
    /* What follows from other sizes is tried sooner. */
    make_machine(1, 1);
    task = guessed_task(8);
    task.certainty[1] = TUTTI_RELATED;
    burst(20, &task);
    ck_assert_uint_ge(given[1], 1);
}
END_TEST

/* However long the fast ones are at work: the guess may be wrong by far. */
START_TEST(a_guess_that_promises_little_is_not_tried) {
    make_machine(1, 1);
    struct tutti_plan_task task = guessed_task(11);
    burst(10000, &task);
    ck_assert_uint_eq(given[1], 0);
    task.certainty[1] = TUTTI_RELATED; /* small kernels may tell nothing of long ones */
    burst(10000, &task);
    ck_assert_uint_eq(given[1], 0);
    make_machine(4, 1);
    task = make_task((double[]){100, 100, 100, 100, 300});
    task.certainty[4] = TUTTI_GUESSED;
    burst(10000, &task);
    ck_assert_uint_eq(given[4], 0);
    task.length[4] = 200;
    burst(10000, &task);
    ck_assert_uint_ge(given[4], 1);
    /* The same for what it may take from the line of one of them. */
    task.certainty[4] = TUTTI_GUESSED;
    task.length[4] = 300;
    task.able = 1u << 0 | 1u << 4;
    task.others = 0xf;
    burst(10000, &task);
    ck_assert(!choose(&task).probes);
}
END_TEST

START_TEST(cold_models_start_on_the_best_device) {
    make_machine(1, 1);
    struct tutti_plan_task task = make_task((double[]){1, 80});

    task.certainty[0] = task.certainty[1] = TUTTI_GUESSED;
    burst(1000, &task);
    ck_assert_uint_eq(given[1], 0);
    /* Neither does it matter that the other one has the data: the kernel may take any time. */
    const struct tutti_plan_data data = {.bytes = 100 * MIB, .reads = true, .valid = HOME};
    use_data(&task, &data, 1);
    ck_assert_uint_eq(choose(&task).device, 0);
    /* Two of one kind share, known or not. */
    make_machine(2, 1);
    task = make_task((double[]){10, 10, 800});
    for (unsigned d = 0; d < 3; d++)
        task.certainty[d] = TUTTI_GUESSED;
    burst(40, &task);
    ck_assert_uint_eq(given[0], 20);
    ck_assert_uint_eq(given[1], 20);
    /* The device where it is the fastest is no probe. */
    ck_assert(!choose(&task).probes);
}
END_TEST

START_TEST(a_kernel_that_only_a_slow_device_can_run) {
    make_machine(1, 1);
    struct tutti_plan_task task = guessed_task(1000);

    task.able = task.tried = 1u << 1;
    ck_assert_uint_eq(give(&task), 1);
    ck_assert_uint_eq(give(&task), 1);
}
END_TEST

/* As the policy asks for a thief: only two devices are able, and the owner's line is shorter. */
START_TEST(taking_from_a_line) {
    const struct tutti_plan_data data = {.bytes = 10 * MIB, .reads = true, .valid = 1u << 0};

    make_machine(2, 1);
    struct tutti_plan_task task = make_task((double[]){500, 500, 50000});
    use_data(&task, &data, 1);
    task.able = 1u << 0 | 1u << 1;
    machine[0].ready = 3500;
    ck_assert_uint_eq(choose(&task).device, 1);
    machine[0].ready = 3000; /* to bring its data would take as long */
    ck_assert_uint_eq(choose(&task).device, 0);
    task.able = 1u << 0 | 1u << 2;
    machine[0].ready = 30000;
    ck_assert_uint_eq(choose(&task).device, 0);
}
END_TEST

/* For a kernel of which nothing is known. */
static unsigned place(unsigned able, unsigned before, size_t bytes) {
    const struct tutti_plan_task reader = {.able = able};

    return tutti_policy_place(machine, machine_size, &reader, before, bytes, 0);
}

START_TEST(content_is_spread) {
    unsigned on[MOST] = {0}, before = 0;

    make_machine(2, 1);
    for (int i = 0; i < 40; i++)
        on[before = place(3, before, 10 * MIB)]++;
    ck_assert_uint_eq(on[0], 20);
    ck_assert_uint_eq(on[1], 20);
}
END_TEST

START_TEST(content_stays_if_the_device_is_free) {
    make_machine(2, 0);
    for (int i = 0; i < 10; i++) {
        machine[0].up.free = machine[1].up.free = 0; /* each is over before the next one */
        ck_assert_uint_eq(place(3, 1, MIB), 1);
    }
    machine[1].ready = 10000;
    ck_assert_uint_eq(place(3, 1, MIB), 0);
    ck_assert_uint_eq(place(2, 0, MIB), 1);
}
END_TEST

/* A link that is free is no reason to put it where its kernel is slow, or would not be given. */
START_TEST(content_goes_where_its_kernel_is) {
    unsigned on[MOST] = {0};

    make_machine(2, 0);
    struct tutti_plan_task reader = make_task((double[]){100, 10000});
    for (int i = 0; i < 20; i++) /* of 115 µs each */
        ck_assert_uint_eq(tutti_policy_place(machine, 2, &reader, MOST, MIB, 0), 0);
    make_machine(2, 0);
    reader = make_task((double[]){100, 200});
    for (int i = 0; i < 40; i++)
        on[tutti_policy_place(machine, 2, &reader, MOST, MIB, 0)]++;
    ck_assert_uint_ge(on[1], 15); /* a hundred µs later */
    ck_assert_uint_le(on[1], 20);
    make_machine(2, 0);
    reader.certainty[1] = TUTTI_GUESSED;
    reader.length[1] = 2000; /* too little to be tried */
    for (int i = 0; i < 1000; i++)
        ck_assert_uint_eq(tutti_policy_place(machine, 2, &reader, 1, MIB, 0), 0);
}
END_TEST

/* A task that the second device can't execute before so long a time, as it has to be compiled. */
static struct tutti_plan_task make_new_task(double fast, double slow, double delay) {
    struct tutti_plan_task task = make_task((double[]){fast, slow});

    task.delay[1] = delay;
    return task;
}

/* As the policy does: once a device was given one, the others there come behind its delay. */
static double burst_of_new(unsigned tasks, struct tutti_plan_task task) {
    double end = 0;

    for (unsigned i = 0; i < tasks; i++)
        task.delay[give(&task)] = 0;
    for (unsigned d = 0; d < machine_size; d++)
        if (machine[d].ready > end)
            end = machine[d].ready;
    return end;
}

/* For the device of a burst that would be over by then it is too late. */
START_TEST(a_burst_ends_before_a_first_launch) {
    for (unsigned tasks = 1; tasks <= 1000; tasks++) {
        make_machine(1, 1);
        double end = burst_of_new(tasks, make_new_task(200, 400, 100000));

        ck_assert_double_le(end, 200.0 * tasks);
        if (tasks <= 500)
            ck_assert_uint_eq(given[1], 0);
        if (tasks > 510)
            ck_assert_uint_ge(given[1], 1);
    }
    /* They end together: (T - 100,000) / 400 + T / 200 = 1000. */
    ck_assert_double_le(machine[1].ready, 167000);
    ck_assert_uint_ge(given[1], 150);
}
END_TEST

/* It is as long, however uncertain the rest is: (100 + 4 * 0.4) / 0.2. */
START_TEST(a_first_launch_is_no_guess) {
    make_machine(1, 1);
    struct tutti_plan_task task = make_new_task(200, 400, 100000);
    unsigned before = 0;

    task.certainty[1] = TUTTI_GUESSED;
    while (give(&task) == 0 && before < 2000)
        before++;
    ck_assert_uint_ge(before, 507);
    ck_assert_uint_le(before, 525);
    ck_assert_double_eq_tol(machine[1].ready, 100400, 1);
}
END_TEST

/* The fastest device for a task is no better for it if it has to be compiled there. */
START_TEST(the_fastest_device_has_a_first_launch_too) {
    make_machine(1, 1);
    struct tutti_plan_task task = make_new_task(5000, 1000, 100000);

    for (int i = 0; i < 20; i++)
        ck_assert_uint_eq(give(&task), 0);
    while (give(&task) == 0)
        ck_assert_double_le(machine[0].ready, 110000);
    struct tutti_plan plan = choose(&task);
    ck_assert_double_ge(machine[0].ready, 90000);
    task.delay[1] = 0;
    plan = choose(&task);
    ck_assert_uint_eq(plan.device, 1);
    ck_assert_double_eq(plan.start, 101000);
    ck_assert_double_eq(plan.end, 102000);
    ck_assert_double_eq(plan.delay, 0);
}
END_TEST

START_TEST(a_delay_is_planned_once) {
    make_machine(0, 1);
    struct tutti_plan_task task = make_task((double[]){300});

    task.delay[0] = 50000;
    struct tutti_plan plan = choose(&task);
    ck_assert_double_eq(plan.start, 0);
    ck_assert_double_eq(plan.end, 50300);
    ck_assert_double_eq(plan.delay, 50000);
    ck_assert_double_eq(burst_of_new(10, task), 53000);
}
END_TEST

/* Each of them is as late as the other: it is no reason to leave one idle. */
START_TEST(like_devices_share_first_launches) {
    for (unsigned tasks = 2; tasks <= 64; tasks += 2)
        for (int known = 0; known < 2; known++) {
            make_machine(0, 2);
            struct tutti_plan_task task = make_task((double[]){300, 300});
            task.delay[0] = task.delay[1] = 100000;
            for (unsigned d = 0; d < 2; d++)
                task.certainty[d] = known ? TUTTI_MEASURED : TUTTI_GUESSED;
            burst_of_new(tasks, task);
            ck_assert_uint_eq(given[0], tasks / 2);
            ck_assert_uint_eq(given[1], tasks / 2);
        }
}
END_TEST

/*
 * One after the other, each is sooner done where it need not be compiled: all together are not. So
 * a device that would have saved as much as its first launch takes is given one.
 */
START_TEST(a_first_launch_that_pays) {
    struct tutti_plan_task task = make_new_task(5000, 1000, 100000);
    unsigned rounds = 0;

    for (make_machine(1, 1); choose(&task).device == 0; rounds++) {
        struct tutti_plan plan = choose(&task);
        ck_assert_uint_eq(plan.missed, 1);
        ck_assert_double_eq_tol(plan.loss, 4500, 1); /* with caution */
        task.lost[1] += plan.loss;
        ck_assert_uint_lt(rounds, 100);
    }
    ck_assert_uint_ge(rounds, 20);
    ck_assert_uint_le(rounds, 23);
    /* What it takes is known nevertheless. */
    ck_assert_double_eq(choose(&task).delay, 100000);
    ck_assert_double_eq(choose(&task).end, 101000);
    /* It is no loss where the other one is no better, */
    task = make_new_task(1000, 5000, 100000);
    ck_assert_double_eq(choose(&task).loss, 0);
    /* and behind others it would be that of one task, not of all the line. */
    machine[0].ready = 20000;
    ck_assert_uint_eq(choose(&task).device, 0);
    ck_assert_uint_eq(choose(&task).missed, 1);
    ck_assert_double_eq(choose(&task).loss, 1000);
    /* A GPU is at it for as long as its launch takes. */
    task = make_new_task(1000, 2500, 100000);
    task.launch = 3000;
    machine[0].at_home = false;
    ck_assert_double_eq(choose(&task).loss, 3000);
}
END_TEST

/* Of a kernel that was measured nowhere, too; unless what is said of the other one is far worse. */
START_TEST(a_cold_kernel_and_a_first_launch) {
    for (int slower = 2; slower <= 32; slower *= 2) {
        make_machine(1, 1);
        struct tutti_plan_task task = make_new_task(100.0 * slower, 100, 100000);
        task.certainty[0] = task.certainty[1] = TUTTI_GUESSED;
        ck_assert_uint_eq(give(&task), slower < 10 ? 0 : 1);
        task.delay[1] = 0;
        ck_assert_uint_eq(choose(&task).device, 1);
    }
    /* A long one had better be where it is fast. */
    make_machine(1, 1);
    struct tutti_plan_task task = make_new_task(400000, 100000, 100000);
    task.certainty[0] = task.certainty[1] = TUTTI_GUESSED;
    ck_assert_uint_eq(give(&task), 1);
}
END_TEST

/* As the policy asks for a thief. */
START_TEST(taking_what_is_new) {
    make_machine(1, 1);
    struct tutti_plan_task task = make_new_task(500, 500, 100000);

    task.able = 1u << 0 | 1u << 1;
    machine[0].ready = 90000;
    ck_assert_uint_eq(choose(&task).device, 0);
    machine[0].ready = 110000;
    ck_assert_uint_eq(choose(&task).device, 1);
}
END_TEST

START_TEST(content_goes_where_its_kernel_is_compiled) {
    make_machine(2, 0);
    struct tutti_plan_task reader = make_new_task(200, 100, 100000);

    ck_assert_uint_eq(tutti_policy_place(machine, 2, &reader, 1, MIB, 0), 0);
    reader.delay[1] = 0;
    ck_assert_uint_eq(tutti_policy_place(machine, 2, &reader, 1, MIB, 0), 1);
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {equal_devices_share,
                                  unequal_devices_end_together,
                                  a_device_that_shares_has_more_time,
                                  a_slow_device_harms_no_burst,
                                  what_is_over_before_the_next_launch_is_left_to_the_gpu,
                                  data_of_short_kernels_goes_to_one_gpu,
                                  the_last_tasks_wait_for_the_fast_device,
                                  a_far_slower_device_must_win_much,
                                  data_counts,
                                  a_chain_stays,
                                  ties_go_to_the_data,
                                  what_is_coming_counts_as_there,
                                  links_are_occupied_by_what_is_planned,
                                  a_cpu_needs_no_link,
                                  full_memory_is_avoided,
                                  only_able_devices,
                                  a_guess_is_tried_once_and_late,
                                  a_guess_that_promises_little_is_not_tried,
                                  cold_models_start_on_the_best_device,
                                  a_kernel_that_only_a_slow_device_can_run,
                                  taking_from_a_line,
                                  content_is_spread,
                                  content_stays_if_the_device_is_free,
                                  content_goes_where_its_kernel_is,
                                  a_burst_ends_before_a_first_launch,
                                  a_first_launch_is_no_guess,
                                  the_fastest_device_has_a_first_launch_too,
                                  a_delay_is_planned_once,
                                  like_devices_share_first_launches,
                                  a_first_launch_that_pays,
                                  a_cold_kernel_and_a_first_launch,
                                  taking_what_is_new,
                                  content_goes_where_its_kernel_is_compiled};

    return test_main_bare(argc, argv, tests, COUNT(tests));
}
