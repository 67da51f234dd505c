/* SPDX-License-Identifier: MIT */
/* Only Tutti: what is behind appended kernels (append.h) waits for them, whatever it is. */
#include "append.h"

static void run_behind_long_ones(int buffers, int in) {
    calm_down();
    for (int i = 0; i < in; i++)
        keep_busy(queues[i], 10 * SLOW);
    for (int i = 0; i < SOME; i++)
        run(queues[i % in], turn, i % buffers, i, NULL);
    for (int i = 0; i < in; i++)
        ck_ok(clFinish(queues[i]));
}

static void ck_appended(int buffers, int in) {
    int most = 0;
    begin();
    for (int attempt = 0; attempt < 5 && most < MANY / 2; attempt++) {
        appended();
        for (int i = 0; i < MANY; i += SOME)
            run_behind_long_ones(buffers, in);
        int now = appended();
        most = now > most ? now : most;
        ck_buffers(queues[0], buffers);
    }
    ck_assert_int_ge(most, MANY / 2);
    end();
}

START_TEST(on_one_buffer) { ck_appended(1, 1); }
END_TEST

START_TEST(on_many_buffers) { ck_appended(MOST, 1); }
END_TEST

START_TEST(in_several_queues) { ck_appended(4, 4); }
END_TEST

/* Two kernels, two buffers each: what one writes the next one reads, and the other way round. */
START_TEST(from_buffer_to_buffer) {
    begin();
    for (int i = 0; i < MANY; i++)
        if (i % 3 == 0)
            run(queues[0], turn, i % 5, i, NULL);
        else
            run_gather(queues[0], i % 5, (i + 1 + i % 2) % 5);
    ck_ok(clFinish(queues[0]));
    ck_assert_int_gt(appended(), 0);
    ck_buffers(queues[0], MOST);
    end();
}
END_TEST

/* Each is a command then, which can be waited for. */
START_TEST(events_are_told) {
    enum { FEW = 20 };
    cl_event event[FEW];
    begin();
    for (int i = 0; i < FEW; i++)
        run(queues[0], turn, 0, i, &event[i]);
    ck_assert_int_eq(appended(), 0);
    for (int i = FEW - 1; i >= 0; i--) {
        cl_int status = CL_QUEUED;
        ck_ok(clWaitForEvents(1, &event[i]));
        ck_ok(clGetEventInfo(event[i], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
                             NULL));
        ck_assert_int_eq(status, CL_COMPLETE);
        ck_ok(clReleaseEvent(event[i]));
    }
    ck_buffers(queues[0], 1);
    end();
}
END_TEST

/* The first kernel takes longer, so that all are on their way at the same time. */
static void run_some(cl_command_queue in, int count) {
    calm_down();
    keep_busy(in, SLOW);
    keep_events();
    for (int i = 0; i < count; i++)
        run(in, turn, i % 3, i, NULL);
}

static void ck_waits(void (*wait)(void)) {
    begin();
    for (int r = 0; r < 20; r++) {
        run_some(queues[0], SOME);
        wait();
        ck_assert_uint_eq(count_running(), 0);
    }
    ck_assert_int_gt(appended(), 0);
    ck_buffers(queues[0], 3);
    end();
}

static void wait_for_all(void) { ck_ok(clFinish(queues[0])); }

static void wait_for_marker(void) {
    cl_event marker;
    ck_ok(clEnqueueMarkerWithWaitList(queues[0], 0, NULL, &marker));
    ck_ok(clWaitForEvents(1, &marker));
    ck_ok(clReleaseEvent(marker));
}

START_TEST(clFinish_waits_for_them) { ck_waits(wait_for_all); }
END_TEST

START_TEST(a_marker_waits_for_them) { ck_waits(wait_for_marker); }
END_TEST

/* They were enqueued before, and it uses what they do. */
START_TEST(other_queues_wait_for_them) {
    begin();
    for (int r = 0; r < 20; r++) {
        run_some(queues[0], SOME);
        if (r % 4 == 0)
            run(queues[1], turn, 1, r, NULL);
        if (r % 4 == 1)
            run_gather(queues[1], 1, 4);
        if (r % 4 == 2) {
            ck_ok(clEnqueueCopyBuffer(queues[1], buffer[2], buffer[5], 0, 0, N * sizeof(cl_int), 0,
                                      NULL, NULL));
            want[5] = want[2];
        }
        ck_ok(clFlush(queues[0]));
        ck_buffers(queues[1], 6);
        count_running();
    }
    ck_assert_int_gt(appended(), 0);
    end();
}
END_TEST

/* The host's work on their memory comes after them, and before the next ones. */
START_TEST(the_host_waits_for_them) {
    begin();
    for (int r = 0; r < 20; r++) {
        cl_mem argument = buffer[1];
        const void *place = &argument;
        run_some(queues[0], SOME);
        if (r % 2) {
            ck_ok(clEnqueueNativeKernel(queues[0], add_one, &argument, sizeof(argument), 1,
                                        &buffer[1], &place, 0, NULL, NULL));
        } else {
            cl_int *seen =
                clEnqueueMapBuffer(queues[0], buffer[1], CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                   N * sizeof(cl_int), 0, NULL, NULL, &error);
            ck_ok(error);
            for (int i = 0; i < N; i++)
                seen[i]++;
            ck_ok(clEnqueueUnmapMemObject(queues[0], buffer[1], seen, 0, NULL, NULL));
        }
        want[1]++;
        run(queues[0], turn, 1, r, NULL);
        ck_buffers(queues[0], 3);
        count_running();
    }
    ck_assert_int_gt(appended(), 0);
    end();
}
END_TEST

/* The program needs the object no more, but a kernel does. */
START_TEST(an_object_is_released) {
    atomic_bool gone = false;
    begin();
    run_some(queues[0], 5);
    ck_ok(clSetMemObjectDestructorCallback(buffer[7], note_end, &gone));
    slow_set_length(20 * SLOW);
    run_gather(queues[0], 7, 8);
    ck_ok(clSetKernelArg(gather, 0, sizeof(cl_mem), &buffer[9])); /* nor has the kernel it */
    ck_ok(clReleaseMemObject(buffer[7]));
    buffer[7] = NULL;
    usleep(5000);
    ck_assert_msg(count_running() == 0 || !atomic_load(&gone), "it went, but is in use");
    slow_set_length(LENGTH);
    for (int i = 0; i < 5; i++)
        run(queues[0], turn, 8, i, NULL);
    ck_assert_int_gt(appended(), 0);
    ck_ok(clFinish(queues[0]));
    cl_int seen[N];
    read_ints(buffer[8], seen, N);
    for (int k = 0; k < N; k++)
        ck_assert_uint_eq((cl_uint)seen[k], want[8]);
    end();
    ck_assert(atomic_load(&gone));
}
END_TEST

/* Who looks after ends has looked at the command, whose end tells nothing of what is appended. */
START_TEST(it_was_looked_at_before) {
    int appended_to = 0;
    begin();
    for (int attempt = 0; attempt < 10 && appended_to < 3; attempt++) {
        calm_down();
        appended();
        slow_set_length(10 * SLOW);
        run(queues[0], turn, 0, attempt, NULL);
        usleep(3000);
        keep_events();
        run(queues[0], turn, 0, attempt, NULL);
        slow_set_length(LENGTH);
        appended_to += appended();
        ck_ok(clFinish(queues[0]));
        ck_assert_uint_eq(count_running(), 0);
    }
    ck_assert_int_gt(appended_to, 0);
    ck_buffers(queues[0], 1);
    end();
}
END_TEST

/* Nor does the end of others, that came behind the command, and tell that all before is over. */
START_TEST(others_came_in_between) {
    int appended_to = 0;
    begin();
    for (int attempt = 0; attempt < 10 && appended_to < 3; attempt++) {
        calm_down();
        unsigned long before = slow_set_length(50 * SLOW);
        run(queues[0], turn, 0, attempt, NULL);
        slow_set_length(LENGTH);
        for (int i = 0; i < 70; i++)
            run(queues[1], turn, 1, i, NULL);
        slow_await(before + 1 + 70); /* what was collected comes later, from a worker */
        appended();
        keep_events();
        slow_set_length(10 * SLOW);
        run(queues[0], turn, 0, attempt, NULL);
        slow_set_length(LENGTH);
        appended_to += appended();
        ck_ok(clFinish(queues[0]));
        ck_assert_uint_eq(count_running(), 0);
        ck_ok(clFinish(queues[1]));
    }
    ck_assert_int_gt(appended_to, 0);
    ck_buffers(queues[0], 2);
    end();
}
END_TEST

/* Then it is a command, with what else that may try; a command that is refused has failed. */
START_TEST(one_is_refused) {
    cl_int status = CL_QUEUED;
    begin();
    for (int attempt = 0; attempt < 20 && status != CL_SUCCESS; attempt++) {
        cl_int seen[N];
        run_some(queues[0], 5);
        atomic_store(&refusals, 1);
        run(queues[0], turn, 0, attempt, NULL);
        ck_assert_int_le(atomic_load(&refusals), 0);
        status = clFinish(queues[0]);
        count_running();
        read_ints(buffer[0], seen, N);
        if (status != CL_SUCCESS)
            want[0] = (cl_uint)seen[0];
    }
    ck_ok(status);
    ck_assert_int_gt(appended(), 0);
    ck_buffers(queues[0], 3);
    end();
}
END_TEST

struct own {
    int number;
    cl_kernel kernel;
};

static void *run_in_thread(void *argument) {
    const size_t items = N;
    const struct own *own = argument;
    int i = own->number;
    for (cl_int k = 0; k < MANY; k++) {
        ck_ok(clSetKernelArg(own->kernel, 0, sizeof(cl_mem), &buffer[i]));
        float number = (float)k;
        ck_ok(clSetKernelArg(own->kernel, 1, sizeof(number), &number));
        ck_ok(clEnqueueNDRangeKernel(queues[i], own->kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
        if (k % 50 == 49)
            ck_ok(clFinish(queues[i]));
        want[i] = want[i] * 3 + (cl_uint)k;
    }
    return NULL;
}

START_TEST(from_several_threads) {
    enum { THREADS = 4 };
    pthread_t thread[THREADS];
    struct own own[THREADS];
    begin();
    for (int i = 0; i < THREADS; i++) {
        own[i] = (struct own){i, make_kernel(program, "turn")};
        ck_assert_int_eq(pthread_create(&thread[i], NULL, run_in_thread, &own[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
        ck_ok(clReleaseKernel(own[i].kernel));
    }
    ck_buffers(queues[0], THREADS);
    end();
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        on_one_buffer,           on_many_buffers,
        in_several_queues,       from_buffer_to_buffer,
        events_are_told,         clFinish_waits_for_them,
        a_marker_waits_for_them, other_queues_wait_for_them,
        the_host_waits_for_them, an_object_is_released,
        it_was_looked_at_before, others_came_in_between,

        one_is_refused,          from_several_threads,
    };
    return pocl_gpu_begin("pthread", change) ? test_main_logged(argc, argv, tests, COUNT(tests))
                                             : 0;
}
