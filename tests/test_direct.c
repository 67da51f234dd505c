/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: short commands on data that lies on a device go to it past StarPU, and everything
 * else that uses the data comes in between as if they did not. TUTTI_BATCH=always takes all kernels
 * for short, and the log tells where they went.
 */
#include "support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { N = 64, BYTES = N * sizeof(cl_int), ROUNDS = 40, SECONDS = 60 };

static const char source[] = "kernel void advance(global int *a, constant int *factor) {"
                             "    size_t i = get_global_id(0); a[i] = a[i] * factor[0] + 1; }"
                             "kernel void add(global int *a, global const int *b) {"
                             "    size_t i = get_global_id(0); a[i] += b[i]; }";

/* A buffer, a parameter, and what the buffer must hold. */
struct state {
    cl_command_queue queue;
    cl_kernel step;
    cl_mem data, factor;
    cl_int expected[N];
};

static cl_program program;

static void begin_state(struct state *state, cl_command_queue in) {
    cl_int zero = 0;
    cl_int failed;
    *state = (struct state){.queue = in};
    state->step = clCreateKernel(program, "advance", &failed);
    ck_ok(failed);
    for (int i = 0; i < N; i++)
        state->expected[i] = i;
    state->data = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, BYTES, state->expected, &failed);
    ck_ok(failed);
    state->factor = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof(zero), &zero, &failed);
    ck_ok(failed);
    ck_ok(clSetKernelArg(state->step, 0, sizeof(cl_mem), &state->data));
    ck_ok(clSetKernelArg(state->step, 1, sizeof(cl_mem), &state->factor));
}

static void end_state(struct state *state) {
    ck_ok(clReleaseMemObject(state->data));
    ck_ok(clReleaseMemObject(state->factor));
    ck_ok(clReleaseKernel(state->step));
}

static void set_factor(struct state *state, cl_int factor) {
    ck_ok(clEnqueueWriteBuffer(state->queue, state->factor, CL_TRUE, 0, sizeof(factor), &factor, 0,
                               NULL, NULL));
}

static void do_step(struct state *state, cl_int factor, cl_event *event) {
    size_t items = N;
    ck_ok(clEnqueueNDRangeKernel(state->queue, state->step, 1, NULL, &items, NULL, 0, NULL, event));
    for (int i = 0; i < N; i++)
        state->expected[i] = (cl_int)((uint32_t)state->expected[i] * (uint32_t)factor + 1);
}

static void check_one(struct state *state, unsigned at) {
    cl_int seen = 0;
    ck_ok(clEnqueueReadBuffer(state->queue, state->data, CL_TRUE, at * sizeof(seen), sizeof(seen),
                              &seen, 0, NULL, NULL));
    ck_assert_int_eq(seen, state->expected[at]);
}

static void check_all(struct state *state) {
    cl_int seen[N];
    ck_ok(clEnqueueReadBuffer(state->queue, state->data, CL_TRUE, 0, BYTES, seen, 0, NULL, NULL));
    for (int i = 0; i < N; i++)
        ck_assert_msg(seen[i] == state->expected[i], "element %d: %d, expected %d", i, seen[i],
                      state->expected[i]);
}

/* Set a parameter, run a kernel, look at a number: each is done when the call returns. */
START_TEST(a_loop_of_small_commands) {
    struct state state;
    cl_command_queue plain = make_queue(0);
    program = make_program(source);
    for (int profiling = 0; profiling < 2; profiling++) {
        begin_state(&state, profiling ? queue : plain);
        for (int round = 0; round < ROUNDS; round++) {
            set_factor(&state, round % 7);
            do_step(&state, round % 7, NULL);
            ck_ok(clFinish(state.queue));
            do_step(&state, round % 7, NULL);
            check_one(&state, (unsigned)round);
        }
        check_all(&state);
        end_state(&state);
        ck_assert_int_gt(test_went_directly(), ROUNDS / 2);
    }
    ck_ok(clReleaseProgram(program));
    ck_ok(clReleaseCommandQueue(plain));
}
END_TEST

static atomic_int called;

static void CL_CALLBACK count_call(cl_event event, cl_int status, void *data) {
    (void)event;
    (void)data;
    if (status == CL_COMPLETE)
        atomic_fetch_add(&called, 1);
}

/* A program that only looks, or has itself called, sees the end too. */
START_TEST(nobody_waits) {
    struct state state;
    program = make_program(source);
    begin_state(&state, queue);
    set_factor(&state, 3);
    atomic_store(&called, 0);
    for (int round = 0; round < ROUNDS; round++) {
        cl_event event;
        do_step(&state, 3, &event);
        if (round % 3 == 0) {
            for (long i = 0; i < SECONDS * 100000L && event_status(event) != CL_COMPLETE; i++)
                usleep(10);
            ck_assert_int_eq(event_status(event), CL_COMPLETE);
        } else if (round % 3 == 1) {
            int before = atomic_load(&called);
            ck_ok(clSetEventCallback(event, CL_COMPLETE, count_call, NULL));
            for (long i = 0; i < SECONDS * 100000L && atomic_load(&called) == before; i++)
                usleep(10);
            ck_assert_int_eq(atomic_load(&called), before + 1);
        } else {
            ck_ok(clFlush(queue));
            for (long i = 0; i < SECONDS * 1000L && event_status(event) != CL_COMPLETE; i++)
                usleep(1000);
        }
        ck_ok(clReleaseEvent(event));
    }
    check_all(&state);
    end_state(&state);
    ck_ok(clReleaseProgram(program));
}
END_TEST

static void add_one(void *argument) {
    cl_int *bytes = *(cl_int **)argument;
    for (int i = 0; i < N; i++)
        bytes[i]++;
}

/* Between two direct commands something else uses the buffer, by every way that there is. */
static void use_otherwise(struct state *state, int way) {
    cl_command_queue in = state->queue;
    cl_int values[N], *mapped, pattern = way;
    cl_mem other = make_buffer(0, BYTES, NULL), part;
    cl_buffer_region region = {0, BYTES / 2};
    switch (way) {
    case 0:
        mapped = ck_made(clEnqueueMapBuffer(in, state->data, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                            BYTES, 0, NULL, NULL, &error));
        ck_assert_int_eq(mapped[5], state->expected[5]);
        mapped[5] = state->expected[5] = 55;
        ck_ok(clEnqueueUnmapMemObject(in, state->data, mapped, 0, NULL, NULL));
        break;
    case 1:
        ck_ok(clEnqueueCopyBuffer(in, state->data, other, 0, 0, BYTES, 0, NULL, NULL));
        ck_ok(clEnqueueFillBuffer(in, state->data, &pattern, sizeof(pattern), 0, BYTES / 2, 0, NULL,
                                  NULL));
        for (int i = 0; i < N / 2; i++)
            state->expected[i] = pattern;
        read_ints(other, values, N);
        ck_assert_int_eq(values[N - 1], state->expected[N - 1]);
        break;
    case 2: {
        const void *place = &mapped;
        ck_ok(clEnqueueNativeKernel(in, add_one, &mapped, sizeof(mapped), 1, &state->data, &place,
                                    0, NULL, NULL));
        for (int i = 0; i < N; i++)
            state->expected[i]++;
        break;
    }
    case 3:
        part = ck_made(
            clCreateSubBuffer(state->data, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error));
        ck_ok(clEnqueueWriteBuffer(in, part, CL_TRUE, 0, sizeof(pattern), &pattern, 0, NULL, NULL));
        state->expected[0] = pattern;
        ck_ok(clReleaseMemObject(part));
        break;
    case 4: { /* every other column of two rows */
        size_t there[3] = {4, 1, 0}, here[3] = {8, 0, 0}, box[3] = {4, 2, 1};
        for (int i = 0; i < N; i++)
            values[i] = 1000 + i;
        ck_ok(clEnqueueWriteBufferRect(in, state->data, CL_TRUE, there, here, box, 8, 0, 16, 0,
                                       values, 0, NULL, NULL));
        state->expected[3] = 1002;
        state->expected[5] = 1006;
        ck_ok(clEnqueueReadBufferRect(in, state->data, CL_TRUE, there, here, box, 8, 0, 16, 0,
                                      values + 20, 0, NULL, NULL));
        ck_assert_int_eq(values[22], 1002);
        ck_assert_int_eq(values[26], 1006);
        break;
    }
    case 5:
        for (int i = 0; i < N; i++)
            values[i] = state->expected[i] = -i;
        ck_ok(clEnqueueWriteBuffer(in, state->data, CL_FALSE, 0, BYTES, values, 0, NULL, NULL));
        ck_ok(clFinish(in));
        break;
    default:
        ck_ok(clEnqueueMigrateMemObjects(in, 1, &state->data, CL_MIGRATE_MEM_OBJECT_HOST, 0, NULL,
                                         NULL));
    }
    ck_ok(clReleaseMemObject(other));
}

START_TEST(others_come_in_between) {
    enum { WAYS = 7 };
    struct state state;
    program = make_program(source);
    begin_state(&state, queue);
    set_factor(&state, 5);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i <= round % 4; i++)
            do_step(&state, 5, NULL);
        if (round & 1)
            check_one(&state, (unsigned)round);
        use_otherwise(&state, round % WAYS);
        if (round & 2)
            check_all(&state);
    }
    check_all(&state);
    end_state(&state);
    ck_ok(clReleaseProgram(program));
}
END_TEST

/* Two chains meet in a third buffer, on whichever device each of them was. */
START_TEST(chains_meet) {
    struct state a, b;
    cl_kernel add;
    program = make_program(source);
    add = make_kernel(program, "add");
    begin_state(&a, queue);
    begin_state(&b, queue);
    set_factor(&a, 3);
    set_factor(&b, 5);
    ck_ok(clSetKernelArg(add, 0, sizeof(cl_mem), &a.data));
    ck_ok(clSetKernelArg(add, 1, sizeof(cl_mem), &b.data));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 3; i++) {
            do_step(&a, 3, NULL);
            do_step(&b, 5, NULL);
            if (i == round % 4)
                ck_ok(clFinish(queue));
        }
        launch(add, N);
        for (int i = 0; i < N; i++)
            a.expected[i] = (cl_int)((uint32_t)a.expected[i] + (uint32_t)b.expected[i]);
    }
    check_all(&a);
    check_all(&b);
    end_state(&a);
    end_state(&b);
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}
END_TEST

static void *run_thread(void *argument) {
    struct state *state = argument;
    for (int round = 0; round < 4 * ROUNDS; round++) {
        do_step(state, 3, NULL);
        if (round % 3 == 0)
            ck_ok(clFinish(state->queue));
        else if (round % 3 == 1)
            check_one(state, (unsigned)round % N);
    }
    check_all(state);
    return NULL;
}

/* Each thread with a queue and data of its own, all behind the same devices. */
START_TEST(threads_wait_for_their_own) {
    enum { THREADS = 4 };
    struct state state[THREADS];
    pthread_t thread[THREADS];
    program = make_program(source);
    for (int t = 0; t < THREADS; t++) {
        begin_state(&state[t], make_queue(0));
        set_factor(&state[t], 3);
    }
    for (int t = 0; t < THREADS; t++)
        ck_assert_int_eq(pthread_create(&thread[t], NULL, run_thread, &state[t]), 0);
    for (int t = 0; t < THREADS; t++)
        ck_assert_int_eq(pthread_join(thread[t], NULL), 0);
    for (int t = 0; t < THREADS; t++) {
        end_state(&state[t]);
        ck_ok(clReleaseCommandQueue(state[t].queue));
    }
    ck_ok(clReleaseProgram(program));
}
END_TEST

/* A command of another queue that waits for a direct one, and what waits for both. */
START_TEST(another_queue_waits) {
    struct state state;
    cl_command_queue other = make_queue(0);
    program = make_program(source);
    begin_state(&state, queue);
    set_factor(&state, 3);
    for (int round = 0; round < ROUNDS; round++) {
        cl_event done, seen;
        cl_int value = 0;
        do_step(&state, 3, &done);
        ck_ok(clEnqueueReadBuffer(other, state.data, CL_FALSE, 0, sizeof(value), &value, 1, &done,
                                  &seen));
        ck_ok(round % 2 ? clWaitForEvents(1, &seen) : clFinish(other));
        ck_assert_int_eq(value, state.expected[0]);
        ck_ok(clReleaseEvent(done));
        ck_ok(clReleaseEvent(seen));
    }
    end_state(&state);
    ck_ok(clReleaseProgram(program));
    ck_ok(clReleaseCommandQueue(other));
}
END_TEST

static cl_int *map_all(struct state *state, cl_map_flags flags) {
    return ck_made(clEnqueueMapBuffer(state->queue, state->data, CL_TRUE, flags, 0, BYTES, 0, NULL,
                                      NULL, &error));
}

static void unmap(struct state *state, void *mapped) {
    ck_ok(clEnqueueUnmapMemObject(state->queue, state->data, mapped, 0, NULL, NULL));
}

/* The program looks, and writes, through pointers between two kernels. */
static void step_with_maps(struct state *state, int round) {
    cl_int *mapped = map_all(state, CL_MAP_READ);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(mapped[i], state->expected[i]);
    unmap(state, mapped);
    do_step(state, 3, NULL);
    if (round % 2) {
        mapped = map_all(state, round % 4 == 1 ? CL_MAP_WRITE_INVALIDATE_REGION : CL_MAP_WRITE);
        for (int i = 0; i < N; i++)
            mapped[i] = state->expected[i] = round + i;
        unmap(state, mapped);
    } else { /* two at once */
        mapped = map_all(state, CL_MAP_READ);
        cl_int *second = map_all(state, CL_MAP_READ);
        ck_assert_int_eq(second[1], state->expected[1]);
        unmap(state, second);
        unmap(state, mapped);
    }
    do_step(state, 3, NULL);
    if (round % 3)
        ck_ok(clFinish(state->queue));
}

START_TEST(maps_come_in_between) {
    static cl_int memory[N] __attribute__((aligned(4096)));
    struct state state;
    program = make_program(source);
    for (int own = 0; own < 2; own++) {
        begin_state(&state, queue);
        if (own) {
            memcpy(memory, state.expected, BYTES);
            ck_ok(clReleaseMemObject(state.data));
            state.data = make_buffer(CL_MEM_USE_HOST_PTR, BYTES, memory);
            ck_ok(clSetKernelArg(state.step, 0, sizeof(cl_mem), &state.data));
        }
        set_factor(&state, 3);
        test_went_directly();
        for (int round = 0; round < ROUNDS; round++)
            step_with_maps(&state, round);
        check_all(&state);
        end_state(&state);
        ck_assert_int_gt(test_went_directly(), ROUNDS);
    }
    ck_ok(clReleaseProgram(program));
}
END_TEST

/* An unmap gives back what was written even if what it waits for fails. */
START_TEST(an_unmap_behind_a_failure) {
    struct state state;
    program = make_program(source);
    begin_state(&state, queue);
    set_factor(&state, 3);
    for (int round = 0; round < ROUNDS / 4; round++) {
        cl_event gate = make_user_event();
        do_step(&state, 3, NULL);
        cl_int *mapped = map_all(&state, CL_MAP_WRITE);
        mapped[7] = state.expected[7] = round;
        ck_ok(clEnqueueUnmapMemObject(queue, state.data, mapped, 1, &gate, NULL));
        ck_ok(clSetUserEventStatus(gate, -1));
        clFinish(queue);
        check_all(&state);
        ck_ok(clReleaseEvent(gate));
    }
    end_state(&state);
    ck_ok(clReleaseProgram(program));
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {a_loop_of_small_commands,   nobody_waits,
                                  others_come_in_between,     chains_meet,
                                  threads_wait_for_their_own, another_queue_waits,
                                  maps_come_in_between,       an_unmap_behind_a_failure};
    setenv("TUTTI_BATCH", "always", 1);
    return test_main_logged(argc, argv, tests, COUNT(tests));
}
