/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: a GPU's driver never has two threads at once in calls with a queue that kernels go to
 * (driver.h says what NVIDIA's makes of it), and who looks at an event has its queue flushed. PoCL
 * stands in for one: it says that it is a GPU, and its driver's table is changed so that such calls
 * take a while, and tell when they meet; an event has not begun before a flush.
 */
#include "pocl_gpu.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { BUFFERS = 16, KERNELS = 400, ROUNDS = 5, MOST = 32, EVENTS = 4096, CALL = 30 /* µs */ };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static struct {
    cl_command_queue queue;
    unsigned inside; /* threads */
    bool kernels;
    unsigned long enqueued, flushed; /* commands */
} seen[MOST];
static struct {
    cl_event event;
    unsigned place;
    unsigned long number; /* in its queue */
} latest[EVENTS];
static unsigned long events;
static unsigned calls, meetings;

static unsigned place_of(cl_command_queue on) {
    unsigned i = 0;
    while (i < MOST - 1 && seen[i].queue && seen[i].queue != on)
        i++;
    seen[i].queue = on;
    return i;
}

static void enter(cl_command_queue on, bool kernel) {
    pthread_mutex_lock(&lock);
    unsigned i = place_of(on);
    seen[i].kernels |= kernel;
    if (seen[i].kernels) {
        calls++;
        meetings += seen[i].inside > 0;
    }
    seen[i].inside++;
    pthread_mutex_unlock(&lock);
    usleep(CALL);
}

static void leave(cl_command_queue on, const cl_event *event) {
    pthread_mutex_lock(&lock);
    unsigned i = place_of(on);
    seen[i].inside--;
    seen[i].enqueued++;
    if (event) {
        latest[events % EVENTS].event = *event;
        latest[events % EVENTS].place = i;
        latest[events++ % EVENTS].number = seen[i].enqueued;
    }
    pthread_mutex_unlock(&lock);
}

static void leave_flushed(cl_command_queue on) {
    pthread_mutex_lock(&lock);
    unsigned i = place_of(on);
    seen[i].inside--;
    seen[i].flushed = seen[i].enqueued;
    pthread_mutex_unlock(&lock);
}

/* As far as is remembered. */
static bool is_flushed(cl_event event) {
    bool flushed = true;
    pthread_mutex_lock(&lock);
    for (unsigned long i = events; i > 0 && i + EVENTS > events; i--) {
        unsigned long at = (i - 1) % EVENTS;
        if (latest[at].event != event)
            continue;
        flushed = latest[at].number <= seen[latest[at].place].flushed;
        break;
    }
    pthread_mutex_unlock(&lock);
    return flushed;
}

static cl_int CL_API_CALL get_event_info(cl_event event, cl_event_info what, size_t size,
                                         void *value, size_t *size_ret) {
    cl_int result = real.clGetEventInfo(event, what, size, value, size_ret);
    if (what == CL_EVENT_COMMAND_EXECUTION_STATUS && result == CL_SUCCESS && value &&
        !is_flushed(event))
        *(cl_int *)value = CL_QUEUED;
    return result;
}

static cl_int CL_API_CALL enqueue_kernel(cl_command_queue on, cl_kernel kernel, cl_uint dimensions,
                                         const size_t *offset, const size_t *global,
                                         const size_t *local, cl_uint count, const cl_event *list,
                                         cl_event *event) {
    enter(on, true);
    cl_int result = real.clEnqueueNDRangeKernel(on, kernel, dimensions, offset, global, local,
                                                count, list, event);
    leave(on, result == CL_SUCCESS ? event : NULL);
    return result;
}

static cl_int CL_API_CALL marker(cl_command_queue on, cl_uint count, const cl_event *list,
                                 cl_event *event) {
    enter(on, false);
    cl_int result = real.clEnqueueMarkerWithWaitList(on, count, list, event);
    leave(on, result == CL_SUCCESS ? event : NULL);
    return result;
}

static cl_int CL_API_CALL write_buffer(cl_command_queue on, cl_mem mem, cl_bool blocking,
                                       size_t offset, size_t size, const void *from, cl_uint count,
                                       const cl_event *list, cl_event *event) {
    enter(on, false);
    cl_int result =
        real.clEnqueueWriteBuffer(on, mem, blocking, offset, size, from, count, list, event);
    leave(on, result == CL_SUCCESS ? event : NULL);
    return result;
}

static cl_int CL_API_CALL read_buffer(cl_command_queue on, cl_mem mem, cl_bool blocking,
                                      size_t offset, size_t size, void *to, cl_uint count,
                                      const cl_event *list, cl_event *event) {
    enter(on, false);
    cl_int result =
        real.clEnqueueReadBuffer(on, mem, blocking, offset, size, to, count, list, event);
    leave(on, result == CL_SUCCESS ? event : NULL);
    return result;
}

static cl_int CL_API_CALL flush(cl_command_queue on) {
    enter(on, false);
    cl_int result = real.clFlush(on);
    leave_flushed(on);
    return result;
}

static cl_int CL_API_CALL finish(cl_command_queue on) {
    enter(on, false);
    cl_int result = real.clFinish(on);
    leave_flushed(on);
    return result;
}

static void change_driver(cl_icd_dispatch *driver) {
    driver->clGetEventInfo = get_event_info;
    driver->clEnqueueNDRangeKernel = enqueue_kernel;
    driver->clEnqueueMarkerWithWaitList = marker;
    driver->clEnqueueWriteBuffer = write_buffer;
    driver->clEnqueueReadBuffer = read_buffer;
    driver->clFlush = flush;
    driver->clFinish = finish;
}

static void nobody_met(void) {
    pthread_mutex_lock(&lock);
    unsigned of = calls, met = meetings;
    calls = meetings = 0;
    pthread_mutex_unlock(&lock);
    ck_assert_uint_gt(of, 0);
    ck_assert_msg(met == 0, "of %u calls %u met another one", of, met);
}

/* The program's queues, each with a kernel object and buffers of its own. */
struct lane {
    cl_command_queue queue;
    cl_kernel kernel;
    cl_mem buffer[BUFFERS];
    unsigned buffers;
};

static void open_lane(struct lane *lane, cl_program program, unsigned buffers) {
    cl_int zero = 0, one = 1;
    lane->queue = make_queue(0);
    lane->buffers = buffers;
    lane->kernel = make_kernel(program, "add");
    ck_ok(clSetKernelArg(lane->kernel, 1, sizeof(one), &one));
    for (unsigned i = 0; i < buffers; i++) {
        lane->buffer[i] = make_buffer(0, sizeof(zero), NULL);
        ck_ok(clEnqueueWriteBuffer(lane->queue, lane->buffer[i], CL_TRUE, 0, sizeof(zero), &zero, 0,
                                   NULL, NULL));
    }
}

/* In any thread. */
static cl_int launch_in(const struct lane *lane, unsigned i) {
    size_t items = 1;
    cl_mem buffer = lane->buffer[i % lane->buffers];
    cl_int result = clSetKernelArg(lane->kernel, 0, sizeof(buffer), &buffer);
    return result == CL_SUCCESS ? clEnqueueNDRangeKernel(lane->queue, lane->kernel, 1, NULL, &items,
                                                         NULL, 0, NULL, NULL)
                                : result;
}

static void close_lane(struct lane *lane, cl_int each) {
    for (unsigned i = 0; i < lane->buffers; i++) {
        cl_int value = -1;
        ck_ok(clEnqueueReadBuffer(lane->queue, lane->buffer[i], CL_TRUE, 0, sizeof(value), &value,
                                  0, NULL, NULL));
        ck_assert_int_eq(value, each);
        clReleaseMemObject(lane->buffer[i]);
    }
    clReleaseKernel(lane->kernel);
    clReleaseCommandQueue(lane->queue);
}

static void burst(unsigned buffers) {
    struct lane lane;
    cl_program program = make_program(common_source);
    open_lane(&lane, program, buffers);
    for (int round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < KERNELS; i++)
            ck_ok(launch_in(&lane, i));
        ck_ok(clFinish(lane.queue));
    }
    close_lane(&lane, ROUNDS * KERNELS / (cl_int)buffers);
    clReleaseProgram(program);
    nobody_met();
}

START_TEST(a_row_of_kernels) { burst(1); }
END_TEST

START_TEST(kernels_in_turn) { burst(BUFFERS); }
END_TEST

static atomic_bool over;

static void *flush_until_over(void *argument) {
    while (!atomic_load(&over)) {
        clFlush(argument);
        usleep(CALL);
    }
    return NULL;
}

START_TEST(while_another_thread_flushes) {
    struct lane lane;
    pthread_t thread;
    cl_program program = make_program(common_source);
    open_lane(&lane, program, 2);
    atomic_store(&over, false);
    ck_assert_int_eq(pthread_create(&thread, NULL, flush_until_over, lane.queue), 0);
    for (unsigned i = 0; i < KERNELS; i++) {
        ck_ok(launch_in(&lane, i));
        if (i % 8 == 7)
            ck_ok(clFinish(lane.queue));
    }
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    close_lane(&lane, KERNELS / 2);
    clReleaseProgram(program);
    nobody_met();
}
END_TEST

static void *launch_and_wait(void *argument) {
    const struct lane *lane = argument;
    for (unsigned i = 0; i < KERNELS; i++) {
        launch_in(lane, i);
        if (i % 4 == 3)
            clFinish(lane->queue);
    }
    return NULL;
}

START_TEST(threads_that_launch_and_wait) {
    struct lane lanes[4];
    pthread_t threads[COUNT(lanes)];
    cl_program program = make_program(common_source);
    for (unsigned i = 0; i < COUNT(lanes); i++)
        open_lane(&lanes[i], program, 1);
    for (unsigned i = 0; i < COUNT(lanes); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, launch_and_wait, &lanes[i]), 0);
    for (unsigned i = 0; i < COUNT(lanes); i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < COUNT(lanes); i++)
        close_lane(&lanes[i], KERNELS);
    clReleaseProgram(program);
    nobody_met();
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {a_row_of_kernels, kernels_in_turn, while_another_thread_flushes,
                                  threads_that_launch_and_wait};
    return test_main_gpu(argc, argv, tests, COUNT(tests), change_driver);
}
