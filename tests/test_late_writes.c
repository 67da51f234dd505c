/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: drivers whose blocking writes return when the program may use its memory again, and
 * not only when they are over (OpenCL 3.0, section 5.2.2). PoCL stands in for one: it says that it
 * is a GPU, and its driver's table is changed so that the bytes of a blocking write are kept until
 * something else comes to that queue. Whoever uses another queue before finds older ones.
 */
#include "pocl_gpu.h"

#include <pthread.h>

enum { MOST = 64, ROUNDS = 10, SLICE_ROWS = 4 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static struct late {
    cl_command_queue queue; /* NULL: free */
    cl_mem mem;
    size_t offset, size; /* not of a Rect */
    size_t there[3], here[3], region[3], pitches[4];
    char *bytes;
} late[MOST];
static unsigned writes;

/* Does what the queue owes, before something else that it gets. */
static void settle(cl_command_queue on) {
    pthread_mutex_lock(&lock);
    for (struct late *one = late; one < late + MOST; one++) {
        if (one->queue != on)
            continue;
        if (one->size)
            real.clEnqueueWriteBuffer(on, one->mem, CL_TRUE, one->offset, one->size, one->bytes, 0,
                                      NULL, NULL);
        else
            real.clEnqueueWriteBufferRect(on, one->mem, CL_TRUE, one->there, one->here, one->region,
                                          one->pitches[0], one->pitches[1], one->pitches[2],
                                          one->pitches[3], one->bytes, 0, NULL, NULL);
        real.clReleaseMemObject(one->mem);
        free(one->bytes);
        *one = (struct late){0};
    }
    pthread_mutex_unlock(&lock);
}

static bool delay(struct late this, const void *bytes, size_t count) {
    bool found = false;
    settle(this.queue); /* it is in order */
    this.bytes = malloc(count);
    memcpy(this.bytes, bytes, count);
    real.clRetainMemObject(this.mem);
    pthread_mutex_lock(&lock);
    for (struct late *one = late; one < late + MOST && !found; one++)
        if ((found = !one->queue))
            *one = this;
    writes++;
    pthread_mutex_unlock(&lock);
    return found;
}

static cl_int CL_API_CALL write_buffer(cl_command_queue on, cl_mem mem, cl_bool blocking,
                                       size_t offset, size_t size, const void *from, cl_uint count,
                                       const cl_event *list, cl_event *event) {
    if (blocking && !event &&
        delay((struct late){.queue = on, .mem = mem, .offset = offset, .size = size}, from, size))
        return CL_SUCCESS;
    settle(on);
    return real.clEnqueueWriteBuffer(on, mem, blocking, offset, size, from, count, list, event);
}

static cl_int CL_API_CALL write_rect(cl_command_queue on, cl_mem mem, cl_bool blocking,
                                     const size_t *there, const size_t *here, const size_t *region,
                                     size_t row, size_t slice, size_t host_row, size_t host_slice,
                                     const void *from, cl_uint count, const cl_event *list,
                                     cl_event *event) {
    struct late this = {.queue = on, .mem = mem, .pitches = {row, slice, host_row, host_slice}};
    memcpy(this.there, there, sizeof(this.there));
    memcpy(this.here, here, sizeof(this.here));
    memcpy(this.region, region, sizeof(this.region));
    size_t end = (here[2] + region[2] - 1) * host_slice + (here[1] + region[1] - 1) * host_row +
                 here[0] + region[0];
    if (blocking && !event && delay(this, from, end))
        return CL_SUCCESS;
    settle(on);
    return real.clEnqueueWriteBufferRect(on, mem, blocking, there, here, region, row, slice,
                                         host_row, host_slice, from, count, list, event);
}

static cl_int CL_API_CALL read_buffer(cl_command_queue on, cl_mem mem, cl_bool blocking,
                                      size_t offset, size_t size, void *to, cl_uint count,
                                      const cl_event *list, cl_event *event) {
    settle(on);
    return real.clEnqueueReadBuffer(on, mem, blocking, offset, size, to, count, list, event);
}

static cl_int CL_API_CALL enqueue_kernel(cl_command_queue on, cl_kernel kernel, cl_uint dimensions,
                                         const size_t *offset, const size_t *global,
                                         const size_t *local, cl_uint count, const cl_event *list,
                                         cl_event *event) {
    settle(on);
    return real.clEnqueueNDRangeKernel(on, kernel, dimensions, offset, global, local, count, list,
                                       event);
}

static cl_int CL_API_CALL marker(cl_command_queue on, cl_uint count, const cl_event *list,
                                 cl_event *event) {
    settle(on);
    return real.clEnqueueMarkerWithWaitList(on, count, list, event);
}

static cl_int CL_API_CALL finish(cl_command_queue on) {
    settle(on);
    return real.clFinish(on);
}

static void change_driver(cl_icd_dispatch *driver) {
    driver->clEnqueueWriteBuffer = write_buffer;
    driver->clEnqueueWriteBufferRect = write_rect;
    driver->clEnqueueReadBuffer = read_buffer;
    driver->clEnqueueNDRangeKernel = enqueue_kernel;
    driver->clEnqueueMarkerWithWaitList = marker;
    driver->clFinish = finish;
}

static unsigned writes_so_far(void) {
    pthread_mutex_lock(&lock);
    unsigned count = writes;
    pthread_mutex_unlock(&lock);
    return count;
}

/* What is written in part, and what a kernel makes of it, read on another queue. */
static void write_and_use(size_t size, bool rect) {
    size_t count = size / sizeof(cl_int), part = count / 2;
    cl_int *in = malloc(size), *out = malloc(size);
    cl_program program = make_program(common_source);
    cl_kernel add = make_kernel(program, "add");
    cl_command_queue other = make_queue(0);
    cl_mem buffer = make_buffer(0, size, NULL);
    cl_int one = 1;

    ck_ok(clSetKernelArg(add, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(add, 1, sizeof(one), &one));
    memset(in, 0, size);
    write_ints(buffer, in, count);
    for (cl_int round = 1; round <= ROUNDS; round++) {
        launch(add, count);
        ck_ok(clFinish(queue));
        for (size_t i = 0; i < count; i++)
            in[i] += i < part ? 100 * round : 1;
        if (rect) {
            size_t zero[3] = {0}, row = part / SLICE_ROWS * sizeof(cl_int);
            size_t region[3] = {row, SLICE_ROWS / 2, 2};

            ck_ok(clEnqueueWriteBufferRect(queue, buffer, CL_TRUE, zero, zero, region, row, 2 * row,
                                           row, 2 * row, in, 0, NULL, NULL));
        } else {
            write_ints(buffer, in, part);
        }
        if (round % 2) {
            launch(add, count);
            for (size_t i = 0; i < count; i++)
                in[i]++;
            ck_ok(clFinish(queue));
        }
        ck_ok(clEnqueueReadBuffer(other, buffer, CL_TRUE, 0, size, out, 0, NULL, NULL));
        size_t at = 0;
        while (at < count - 1 && out[at] == in[at])
            at++;
        ck_assert_msg(out[at] == in[at], "%zu bytes, round %d: element %zu is %d, expected %d",
                      size, round, at, out[at], in[at]);
    }
    free(in);
    free(out);
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseCommandQueue(other));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}

static const size_t sizes[] = {64, 4096, (size_t)128 << 10, (size_t)2 << 20, (size_t)12 << 20};

START_TEST(are_over_before_what_follows) {
    unsigned before = writes_so_far();
    for (size_t i = 0; i < COUNT(sizes); i++)
        write_and_use(sizes[i], false);
    ck_assert_uint_gt(writes_so_far(), before);
}
END_TEST

START_TEST(in_boxes_too) {
    unsigned before = writes_so_far();
    for (size_t i = 0; i < COUNT(sizes); i++)
        write_and_use(sizes[i], true);
    ck_assert_uint_gt(writes_so_far(), before);
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {are_over_before_what_follows, in_boxes_too};
    return test_main_gpu(argc, argv, tests, COUNT(tests), change_driver);
}
