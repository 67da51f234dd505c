/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: parts of a buffer that have no byte in common are independent, those that have some
 * are not, and the whole is of none. A native kernel that the test holds up uses one part, and
 * proves it without clocks.
 */
#include "native.h"

enum { N = 1024, BYTES = N * sizeof(cl_int), PARTS = 4, WAITING = 20000, MORE = 100 };
enum kind { KERNEL, WRITE, READ, FILL, COPY, MAP, KINDS };

static const char *const name[] = {"kernel", "write", "read", "fill", "copy", "map"};
static const cl_int value = 7;
static cl_int found;       /* by the native kernel, at its end, in its part */
static cl_int *memory;     /* of the buffer, if it is the program's */
static cl_int from[N];     /* what is written */
static cl_mem whole, held; /* the second part, which is in use */
static cl_mem last;        /* the last part: what is copied */
static cl_program program;
static cl_kernel add;

/* The native kernel: changes its part at its end. */
static void CL_CALLBACK change(void *arguments) {
    cl_int *own = *(cl_int **)arguments;

    stay(arguments);
    found = own[N - 1];
    for (int i = 0; i < N; i++)
        own[i] += MORE;
}

static cl_mem part(size_t first, size_t count) {
    cl_buffer_region region = {first * BYTES, count * BYTES};

    return ck_made(clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error));
}

/* Each element of part p is p; but for the last part, which is what the others get. */
static void begin(bool users) {
    cl_int start[PARTS * N];

    program = make_program(common_source);
    add = make_kernel(program, "add");
    memory = users ? aligned_alloc(4096, sizeof(start)) : NULL;
    whole = make_buffer(users ? CL_MEM_USE_HOST_PTR : 0, sizeof(start), memory);
    for (int i = 0; i < PARTS * N; i++)
        start[i] = i / N == PARTS - 1 ? value : i / N;
    for (int i = 0; i < N; i++)
        from[i] = value;
    write_ints(whole, start, PARTS * N);
    held = part(1, 1);
    last = part(PARTS - 1, 1);
}

static void end(void) {
    ck_ok(clReleaseMemObject(held));
    ck_ok(clReleaseMemObject(last));
    ck_ok(clReleaseMemObject(whole));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
    free(memory);
}

/* A use of BYTES of the memory object, at so many bytes; what it reads goes to `to`. */
static cl_event use(cl_command_queue on, enum kind kind, cl_mem mem, size_t at, cl_int *to) {
    const size_t all = N, first = at / sizeof(cl_int);
    cl_event event = NULL;

    if (kind == KERNEL) {
        ck_ok(clSetKernelArg(add, 0, sizeof(mem), &mem));
        ck_ok(clSetKernelArg(add, 1, sizeof(value), &value));
        ck_ok(clEnqueueNDRangeKernel(on, add, 1, &first, &all, NULL, 0, NULL, &event));
    } else if (kind == WRITE) {
        ck_ok(clEnqueueWriteBuffer(on, mem, CL_FALSE, at, BYTES, from, 0, NULL, &event));
    } else if (kind == READ) {
        ck_ok(clEnqueueReadBuffer(on, mem, CL_FALSE, at, BYTES, to, 0, NULL, &event));
    } else if (kind == FILL) {
        ck_ok(clEnqueueFillBuffer(on, mem, &value, sizeof(value), at, BYTES, 0, NULL, &event));
    } else if (kind == COPY) {
        ck_ok(clEnqueueCopyBuffer(on, last, mem, 0, at, BYTES, 0, NULL, &event));
    } else {
        cl_int *map = ck_made(
            clEnqueueMapBuffer(on, mem, CL_FALSE, CL_MAP_READ, at, BYTES, 0, NULL, NULL, &error));
        ck_ok(clEnqueueUnmapMemObject(on, mem, map, 0, NULL, &event));
    }
    ck_ok(clFlush(on));
    return event;
}

/* What such a command leaves where this was. */
static cl_int after(enum kind kind, cl_int before) {
    if (kind == KERNEL)
        return before + value;
    return kind == READ || kind == MAP ? before : value;
}

/* Has it no need of what the native kernel writes? Then it may go to another place meanwhile. */
static bool overwrites(enum kind kind) { return kind == WRITE || kind == FILL || kind == COPY; }

static void all_equal(const cl_int *seen, cl_int wanted, enum kind kind) {
    for (int i = 0; i < N; i++)
        ck_assert_msg(seen[i] == wanted, "after a %s [%d] is %d, expected %d", name[kind], i,
                      seen[i], wanted);
}

/* The parts hold these. */
static void ck_parts(enum kind kind, const cl_int wanted[PARTS]) {
    static cl_int seen[PARTS * N];

    read_ints(whole, seen, PARTS * N);
    for (int p = 0; p < PARTS; p++)
        all_equal(&seen[p * N], wanted[p], kind);
}

/* Beside the native kernel, or the wait is as long as it stays: then vacate() fails. */
static void go_on(enum kind kind, bool users, cl_command_queue_properties properties) {
    static cl_int to[N];
    cl_command_queue on = make_queue(properties);
    cl_event event;

    begin(users);
    cl_mem first = part(0, 1);
    occupy_by(change, held);
    event = use(on, kind, first, 0, to);
    ck_ok(clWaitForEvents(1, &event));
    ck_ok(clFinish(on));
    ck_assert_msg(native_state == 1, "a %s of another part waited", name[kind]);
    vacate();
    if (kind == READ)
        all_equal(to, 0, kind);
    ck_parts(kind, (cl_int[]){after(kind, 0), 1 + MORE, 2, value});
    ck_ok(clReleaseEvent(event));
    ck_ok(clReleaseMemObject(first));
    ck_ok(clReleaseCommandQueue(on));
    end();
}

START_TEST(other_parts_go_on) {
    for (enum kind kind = 0; kind < KINDS; kind++)
        for (int users = 0; users < 2; users++)
            go_on(kind, users, 0);
}
END_TEST

START_TEST(other_parts_go_on_out_of_order) {
    for (enum kind kind = 0; kind < KINDS; kind++)
        for (int users = 0; users < 2; users++)
            go_on(kind, users, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
}
END_TEST

/*
 * What uses the native kernel's part, as one of the buffer or of another part, comes after it: it
 * waits, unless it overwrites that.
 */
static void wait_behind(enum kind kind, bool users, bool all) {
    static cl_int to[N];
    cl_command_queue on = make_queue(0), other = make_queue(0);
    cl_event event;

    begin(users);
    cl_mem mem = all ? whole : part(1, 2), first = part(0, 1);
    occupy_by(change, held);
    event = use(on, kind, mem, all ? BYTES : 0, to);
    if (!all) { /* another part does not wait for those that wait, either */
        ck_ok(clReleaseEvent(use(other, FILL, first, 0, NULL)));
        ck_ok(clFinish(other));
    }
    usleep(WAITING); /* for what must not happen */
    ck_assert_msg(event_status(event) > CL_COMPLETE || overwrites(kind), "a %s of %s did not wait",
                  name[kind], all ? "the buffer" : "a part that overlaps");
    vacate();
    ck_assert_msg(found == 1, "the earlier command found %d after a %s", found, name[kind]);
    ck_ok(clWaitForEvents(1, &event));
    if (kind == READ)
        all_equal(to, 1 + MORE, kind);
    ck_parts(kind, (cl_int[]){all ? 0 : value, after(kind, 1 + MORE), 2, value});
    ck_ok(clReleaseEvent(event));
    ck_ok(clReleaseMemObject(first));
    if (!all)
        ck_ok(clReleaseMemObject(mem));
    ck_ok(clReleaseCommandQueue(on));
    ck_ok(clReleaseCommandQueue(other));
    end();
}

START_TEST(parts_that_overlap_wait) {
    for (enum kind kind = 0; kind < KINDS; kind++)
        for (int users = 0; users < 2; users++)
            wait_behind(kind, users, false);
}
END_TEST

START_TEST(the_whole_waits) {
    for (enum kind kind = 0; kind < KINDS; kind++)
        for (int users = 0; users < 2; users++)
            wait_behind(kind, users, true);
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        other_parts_go_on,
        other_parts_go_on_out_of_order,
        parts_that_overlap_wait,
        the_whole_waits,
    };

    test_prefer_pocl();
    return test_main(argc, argv, tests, COUNT(tests));
}
