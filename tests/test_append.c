/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: short kernels behind each other on a GPU, whose events nobody wants, go to the driver
 * with the command before them. PoCL stands in for the GPU, with kernels of 6 µs.
 */
#include "slow_gpu.h"

#include <stdatomic.h>

enum { N = 64, MANY = 400, MOST = 16, LENGTH = 6000 /* ns */, SLOW = 2000000 /* ns */ };

static const char source[] = "kernel void turn(global int *a, int i) {"
                             "    int k = get_global_id(0); a[k] = a[k] * 3 + i; }"
                             "kernel void part(global int *a, int i) {"
                             "    int k = get_global_id(0); a[k] = a[k] * 3 + i; }"
                             "kernel void gather(global const int *from, global int *to) {"
                             "    int k = get_global_id(0); to[k] += from[k]; }";

static cl_program program;
static cl_kernel turn, part, gather; /* PoCL confuses one of several sizes */
static cl_command_queue queues[MOST];
static cl_mem buffer[MOST], halves[2]; /* of the first one */
static cl_uint want[MOST];
static atomic_int refusals; /* launches that the driver refuses */

/* What the driver was given, each with an event of its own: how far is it? */
static struct {
    pthread_mutex_t lock;
    cl_event event[MANY * 2];
    unsigned count;
    bool keeps;
} given = {.lock = PTHREAD_MUTEX_INITIALIZER};

static cl_int CL_API_CALL enqueue(cl_command_queue on, cl_kernel kernel, cl_uint dimensions,
                                  const size_t *offset, const size_t *global, const size_t *local,
                                  cl_uint count, const cl_event *list, cl_event *event) {
    cl_event own = NULL;
    if (atomic_load(&refusals) > 0 && atomic_fetch_sub(&refusals, 1) > 0)
        return CL_OUT_OF_RESOURCES;
    cl_int result = slow_enqueue(on, kernel, dimensions, offset, global, local, count, list, &own);
    if (result != CL_SUCCESS)
        return result;
    pthread_mutex_lock(&given.lock);
    if (given.keeps && given.count < COUNT(given.event) && real.clRetainEvent(own) == CL_SUCCESS)
        given.event[given.count++] = own;
    pthread_mutex_unlock(&given.lock);
    if (event)
        *event = own;
    else
        real.clReleaseEvent(own);
    return CL_SUCCESS;
}

/* How many of those have not ended; forgets them. */
static unsigned count_running(void) {
    unsigned running = 0;
    pthread_mutex_lock(&given.lock);
    for (unsigned i = 0; i < given.count; i++) {
        cl_int status = CL_QUEUED;
        real.clGetEventInfo(given.event[i], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
                            &status, NULL);
        running += status > CL_COMPLETE;
        real.clReleaseEvent(given.event[i]);
    }
    given.count = 0;
    given.keeps = false;
    pthread_mutex_unlock(&given.lock);
    return running;
}

static void keep_events(void) {
    pthread_mutex_lock(&given.lock);
    given.keeps = true;
    pthread_mutex_unlock(&given.lock);
}

static void run(cl_command_queue in, cl_kernel kernel, int i, cl_int number, cl_event *event) {
    const size_t items = N;
    ck_ok(clSetKernelArg(kernel, 0, sizeof(cl_mem), &buffer[i]));
    ck_ok(clSetKernelArg(kernel, 1, sizeof(number), &number));
    ck_ok(clEnqueueNDRangeKernel(in, kernel, 1, NULL, &items, NULL, 0, NULL, event));
    want[i] = want[i] * 3 + (cl_uint)number;
}

static void run_gather(cl_command_queue in, int from, int to) {
    const size_t items = N;
    ck_ok(clSetKernelArg(gather, 0, sizeof(cl_mem), &buffer[from]));
    ck_ok(clSetKernelArg(gather, 1, sizeof(cl_mem), &buffer[to]));
    ck_ok(clEnqueueNDRangeKernel(in, gather, 1, NULL, &items, NULL, 0, NULL, NULL));
    want[to] += want[from];
}

static void ck_buffers(cl_command_queue in, int count) {
    for (int i = 0; i < count; i++) {
        cl_int seen[N];
        int wrong = 0;
        ck_ok(clEnqueueReadBuffer(in, buffer[i], CL_TRUE, 0, sizeof(seen), seen, 0, NULL, NULL));
        for (int k = 0; k < N; k++)
            wrong += (cl_uint)seen[k] != want[i];
        ck_assert_msg(wrong == 0, "buffer %d: %d wrong, such as %d for %u", i, wrong, seen[0],
                      want[i]);
    }
}

/* With all buffers on the device, and the kernels measured. */
static void begin(void) {
    slow_set_length(LENGTH);
    program = make_program(source);
    turn = make_kernel(program, "turn");
    part = make_kernel(program, "part");
    gather = make_kernel(program, "gather");
    for (int i = 0; i < MOST; i++) {
        static const cl_int zeros[N];
        queues[i] = make_queue(0);
        buffer[i] = make_buffer(0, sizeof(zeros), NULL);
        want[i] = 0;
        ck_ok(clEnqueueWriteBuffer(queues[0], buffer[i], CL_TRUE, 0, sizeof(zeros), zeros, 0, NULL,
                                   NULL));
    }
    for (int i = 0; i < 2; i++) {
        const cl_buffer_region region = {i * (N / 2) * sizeof(cl_int), N / 2 * sizeof(cl_int)};
        halves[i] = clCreateSubBuffer(buffer[0], 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
        ck_ok(error);
    }
    for (int r = 0; r < 2; r++)
        for (int i = 0; i < MOST; i++) {
            run(queues[0], turn, i, r, NULL);
            ck_ok(clFinish(queues[0]));
            run_gather(queues[0], i, (i + 1) % MOST);
            ck_ok(clFinish(queues[0]));
        }
    test_log_count("");
}

static void end(void) {
    for (int i = 0; i < 2; i++)
        ck_ok(clReleaseMemObject(halves[i]));
    for (int i = 0; i < MOST; i++) {
        ck_ok(clReleaseCommandQueue(queues[i]));
        if (buffer[i])
            ck_ok(clReleaseMemObject(buffer[i]));
    }
    ck_ok(clReleaseKernel(turn));
    ck_ok(clReleaseKernel(part));
    ck_ok(clReleaseKernel(gather));
    ck_ok(clReleaseProgram(program));
}

/* So many of the last MANY kernels, at least; on a busy machine the GPU may be far behind. */
static int appended(void) { return test_log_count("behind another one"); }

static void ck_appended(int buffers, int in) {
    int most = 0;
    begin();
    for (int attempt = 0; attempt < 5 && most < MANY / 2; attempt++) {
        appended();
        for (int i = 0; i < MANY; i++)
            run(queues[i % in], turn, i % buffers, i, NULL);
        for (int i = 0; i < in; i++)
            ck_ok(clFinish(queues[i]));
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

/* So that no kernel is taken for a longer one than it is. */
static void calm_down(cl_command_queue in) {
    for (int i = 0; i < 10; i++) {
        run(in, turn, 0, i, NULL);
        ck_ok(clFinish(in));
    }
}

/* The first kernel takes longer, so that all are on their way at the same time. */
static void run_some(cl_command_queue in, int count) {
    slow_set_length(SLOW);
    run(in, turn, 0, 1, NULL);
    slow_set_length(LENGTH);
    keep_events();
    for (int i = 0; i < count; i++)
        run(in, turn, i % 3, i, NULL);
}

enum { SOME = 20 };

START_TEST(clFinish_waits_for_them) {
    begin();
    for (int r = 0; r < 20; r++) {
        run_some(queues[0], SOME);
        ck_ok(clFinish(queues[0]));
        ck_assert_uint_eq(count_running(), 0);
    }
    ck_assert_int_gt(appended(), 0);
    ck_buffers(queues[0], 3);
    end();
}
END_TEST

START_TEST(a_marker_waits_for_them) {
    begin();
    for (int r = 0; r < 20; r++) {
        cl_event marker;
        run_some(queues[0], SOME);
        ck_ok(clEnqueueMarkerWithWaitList(queues[0], 0, NULL, &marker));
        ck_ok(clWaitForEvents(1, &marker));
        ck_assert_uint_eq(count_running(), 0);
        ck_ok(clReleaseEvent(marker));
    }
    ck_assert_int_gt(appended(), 0);
    end();
}
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

static void CL_CALLBACK add_one(void *arguments) {
    cl_int *seen = *(cl_int **)arguments;
    for (int i = 0; i < N; i++)
        seen[i]++;
}

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

static void CL_CALLBACK note_end(cl_mem mem, void *gone) {
    (void)mem;
    atomic_store((atomic_bool *)gone, true);
}

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
        calm_down(queues[0]);
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
        calm_down(queues[0]);
        slow_set_length(5 * SLOW);
        run(queues[0], turn, 0, attempt, NULL);
        slow_set_length(LENGTH);
        for (int i = 0; i < 70; i++)
            run(queues[1], turn, 1, i, NULL);
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
        ck_ok(clSetKernelArg(own->kernel, 1, sizeof(k), &k));
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

/*
 * A program by chance, of kernels in rows with all else among them that may be in a queue; beside
 * it what it makes of its buffers, computed here.
 */
enum { PROGRAMS = 40, COMMANDS = 150, BUFFERS = 6, ARRAYS = COMMANDS };

static struct {
    unsigned seed;
    cl_uint now[BUFFERS][N];
    cl_int array[ARRAYS][N]; /* each is used once */
    cl_uint read[ARRAYS][N]; /* what is to be in it, if it was read to */
    bool was_read[ARRAYS];
} chance;

static int draw(int count) {
    chance.seed = chance.seed * 1103515245u + 12345;
    return (int)((chance.seed >> 16) % (unsigned)count);
}

static void launch_by_chance(cl_command_queue in, cl_uint waits, const cl_event *list,
                             cl_event *event) {
    const size_t items = N;
    int from = draw(BUFFERS), to = (from + 1 + draw(BUFFERS - 1)) % BUFFERS;
    bool gathers = draw(3) == 0;
    cl_int number = draw(1000);
    cl_kernel kernel = gathers ? gather : turn;
    ck_ok(clSetKernelArg(kernel, 0, sizeof(cl_mem), &buffer[from]));
    ck_ok(gathers ? clSetKernelArg(kernel, 1, sizeof(cl_mem), &buffer[to])
                  : clSetKernelArg(kernel, 1, sizeof(number), &number));
    ck_ok(clEnqueueNDRangeKernel(in, kernel, 1, NULL, &items, NULL, waits, list, event));
    for (int k = 0; k < N; k++)
        if (gathers)
            chance.now[to][k] += chance.now[from][k];
        else
            chance.now[from][k] = chance.now[from][k] * 3 + (cl_uint)number;
}

/* Another queue's kernel, between two of this one. */
static void launch_elsewhere(void) {
    cl_event before, after;
    ck_ok(clEnqueueMarkerWithWaitList(queues[0], 0, NULL, &before));
    launch_by_chance(queues[1], 1, &before, &after);
    ck_ok(clFlush(queues[0]));
    ck_ok(clFlush(queues[1]));
    ck_ok(clEnqueueBarrierWithWaitList(queues[0], 1, &after, NULL));
    ck_ok(clReleaseEvent(before));
    ck_ok(clReleaseEvent(after));
}

static void launch_on_half(int half) {
    const size_t items = N / 2;
    const cl_int number = draw(1000);
    ck_ok(clSetKernelArg(part, 0, sizeof(cl_mem), &halves[half]));
    ck_ok(clSetKernelArg(part, 1, sizeof(number), &number));
    ck_ok(clEnqueueNDRangeKernel(queues[0], part, 1, NULL, &items, NULL, 0, NULL, NULL));
    for (int k = half * N / 2; k < (half + 1) * N / 2; k++)
        chance.now[0][k] = chance.now[0][k] * 3 + (cl_uint)number;
}

static void add_by_map(int b) {
    cl_uint *seen = clEnqueueMapBuffer(queues[0], buffer[b], CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                       sizeof(chance.now[b]), 0, NULL, NULL, &error);
    ck_ok(error);
    for (int k = 0; k < N; k++)
        chance.now[b][k] = ++seen[k];
    ck_ok(clEnqueueUnmapMemObject(queues[0], buffer[b], seen, 0, NULL, NULL));
}

static void add_by_host(int b) {
    cl_mem argument = buffer[b];
    const void *place = &argument;
    ck_ok(clEnqueueNativeKernel(queues[0], add_one, &argument, sizeof(argument), 1, &buffer[b],
                                &place, 0, NULL, NULL));
    for (int k = 0; k < N; k++)
        chance.now[b][k]++;
}

static void replace(int b, cl_int *array) {
    ck_ok(clReleaseMemObject(buffer[b]));
    buffer[b] = make_buffer(0, sizeof(chance.now[b]), NULL);
    ck_ok(clEnqueueWriteBuffer(queues[0], buffer[b], CL_FALSE, 0, sizeof(chance.now[b]), array, 0,
                               NULL, NULL));
    memcpy(chance.now[b], array, sizeof(chance.now[b]));
}

/* The command of that number; each has an array of its own. */
static void do_by_chance(int c) {
    const size_t size = sizeof(chance.now[0]);
    const cl_uint pattern = (cl_uint)c;
    int b = draw(BUFFERS), other = (b + 1) % BUFFERS;
    cl_int *array = chance.array[c];
    cl_event event = NULL;
    switch (draw(40)) {
    case 0:
    case 1:
        ck_ok(clEnqueueReadBuffer(queues[0], buffer[b], draw(2) ? CL_TRUE : CL_FALSE, 0, size,
                                  array, 0, NULL, NULL));
        memcpy(chance.read[c], chance.now[b], size);
        chance.was_read[c] = true;
        break;
    case 2:
        ck_ok(clEnqueueWriteBuffer(queues[0], buffer[b], CL_FALSE, 0, size / 2, array, 0, NULL,
                                   NULL));
        memcpy(chance.now[b], array, size / 2);
        break;
    case 3:
        ck_ok(clEnqueueCopyBuffer(queues[0], buffer[b], buffer[other], 0, 0, size, 0, NULL, NULL));
        memcpy(chance.now[other], chance.now[b], size);
        break;
    case 4:
        ck_ok(clEnqueueFillBuffer(queues[0], buffer[b], &pattern, sizeof(pattern), 0, size / 2, 0,
                                  NULL, NULL));
        for (int k = 0; k < N / 2; k++)
            chance.now[b][k] = pattern;
        break;
    case 5:
        add_by_map(b);
        break;
    case 6:
        add_by_host(b);
        break;
    case 7:
        ck_ok(clFinish(queues[0]));
        break;
    case 8:
        ck_ok(clFlush(queues[0]));
        break;
    case 9:
        ck_ok(clEnqueueMarkerWithWaitList(queues[0], 0, NULL, &event));
        ck_ok(clWaitForEvents(1, &event));
        break;
    case 10:
        replace(b ? b : 1, array);
        break;
    case 11:
        launch_elsewhere();
        break;
    case 12:
    case 13:
        launch_on_half(draw(2));
        break;
    default:
        launch_by_chance(queues[0], 0, NULL, draw(20) ? NULL : &event);
    }
    if (event)
        ck_ok(clReleaseEvent(event));
}

static void ck_by_chance(unsigned seed) {
    memset(&chance, 0, sizeof(chance));
    chance.seed = seed;
    for (int c = 0; c < ARRAYS; c++)
        for (int k = 0; k < N; k++)
            chance.array[c][k] = c * N + k;
    for (int b = 0; b < BUFFERS; b++)
        ck_ok(clEnqueueWriteBuffer(queues[0], buffer[b], CL_TRUE, 0, sizeof(chance.now[b]),
                                   chance.now[b], 0, NULL, NULL));
    for (int c = 0; c < COMMANDS; c++)
        do_by_chance(c);
    ck_ok(clFinish(queues[0]));
    int wrong = 0;
    for (int b = 0; b < BUFFERS; b++) {
        cl_uint seen[N];
        ck_ok(clEnqueueReadBuffer(queues[0], buffer[b], CL_TRUE, 0, sizeof(seen), seen, 0, NULL,
                                  NULL));
        wrong += memcmp(seen, chance.now[b], sizeof(seen)) != 0;
    }
    for (int c = 0; c < COMMANDS; c++)
        wrong += chance.was_read[c] &&
                 memcmp(chance.array[c], chance.read[c], sizeof(chance.read[c])) != 0;
    ck_assert_msg(wrong == 0, "program %u: %d wrong", seed, wrong);
}

/* Halves of a buffer, and the whole; the parts become windows on it (window.h). */
START_TEST(parts_in_turn) {
    int most = 0;
    begin();
    for (int attempt = 0; attempt < 5 && most < MANY / 4; attempt++) {
        cl_uint seen[N];
        memset(&chance, 0, sizeof(chance));
        ck_ok(clEnqueueWriteBuffer(queues[0], buffer[0], CL_TRUE, 0, sizeof(chance.now[0]),
                                   chance.now[0], 0, NULL, NULL));
        want[0] = 0;
        appended();
        for (int i = 0; i < MANY; i++) {
            if (i % 5 < 4) {
                launch_on_half(i % 2);
                continue;
            }
            run(queues[0], turn, 0, i, NULL);
            for (int k = 0; k < N; k++)
                chance.now[0][k] = chance.now[0][k] * 3 + (cl_uint)i;
        }
        ck_ok(clFinish(queues[0]));
        int now = appended();
        most = now > most ? now : most;
        ck_ok(clEnqueueReadBuffer(queues[0], buffer[0], CL_TRUE, 0, sizeof(seen), seen, 0, NULL,
                                  NULL));
        ck_assert_mem_eq(seen, chance.now[0], sizeof(seen));
    }
    ck_assert_int_ge(most, MANY / 4);
    end();
}
END_TEST

START_TEST(all_else_among_them) {
    const char *first = getenv("TUTTI_TEST_SEED"), *count = getenv("TUTTI_TEST_COUNT");
    begin();
    for (int i = 0; i < (count ? atoi(count) : PROGRAMS); i++)
        ck_by_chance((unsigned)(first ? atoi(first) : 1) + (unsigned)i);
    ck_assert_int_gt(appended(), 0);
    end();
}
END_TEST

static void change(cl_icd_dispatch *driver) {
    slow_change(driver);
    slow.length = LENGTH;
    driver->clEnqueueNDRangeKernel = enqueue;
}

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        on_one_buffer,           on_many_buffers,
        in_several_queues,       from_buffer_to_buffer,
        events_are_told,         clFinish_waits_for_them,
        a_marker_waits_for_them, other_queues_wait_for_them,
        the_host_waits_for_them, an_object_is_released,
        it_was_looked_at_before, others_came_in_between,
        parts_in_turn,           all_else_among_them,
        one_is_refused,          from_several_threads,
    };
    return pocl_gpu_begin("pthread", change) ? test_main_logged(argc, argv, tests, COUNT(tests))
                                             : 0;
}
