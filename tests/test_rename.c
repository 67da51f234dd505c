/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: a buffer that is overwritten as a whole while earlier commands use it gets fresh
 * storage. A native kernel that the test holds up is such a user, and proves it without clocks.
 */
#include "support.h"

#include <semaphore.h>
#include <unistd.h>

enum { N = 1024, BYTES = N * sizeof(cl_int), LARGE = 512 << 10 };

/* The native kernel: waits for the test, then looks at the buffer that it was given. */
struct user {
    cl_int *buffer;
    sem_t *started, *go;
    cl_int *seen;
};

static sem_t started, go;
static const cl_int *place; /* where the last one that started found it */
static cl_int before[N], seen[N];
static cl_command_queue side;
static cl_program program;
static cl_kernel add;

static void CL_CALLBACK use(void *data) {
    const struct user *user = data;

    place = user->buffer;
    sem_post(user->started);
    sem_wait(user->go);
    memcpy(user->seen, user->buffer, BYTES);
}

static void begin(void) {
    sem_init(&started, 0, 0);
    sem_init(&go, 0, 0);
    side = make_queue(0);
    program = make_program(common_source);
    add = make_kernel(program, "add");
    for (int i = 0; i < N; i++)
        before[i] = 1000 + i;
}

static void end(void) {
    ck_ok(clFinish(side));
    ck_ok(clReleaseCommandQueue(side));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
    sem_destroy(&started);
    sem_destroy(&go);
}

/* Occupies the buffer, in that queue, until `go`. */
static void occupy_in(cl_command_queue other, cl_mem buffer, cl_int *looked) {
    struct user user = {NULL, &started, &go, looked};
    const void *bytes = &user.buffer;

    ck_ok(
        clEnqueueNativeKernel(other, use, &user, sizeof(user), 1, &buffer, &bytes, 0, NULL, NULL));
    ck_ok(clFlush(other));
    sem_wait(&started);
}

/* The same in the side queue, until let_go(). */
static void occupy(cl_mem buffer) {
    memset(seen, 0, sizeof(seen));
    occupy_in(side, buffer, seen);
}

static void let_go(void) {
    sem_post(&go);
    ck_ok(clFinish(side));
}

static void add_one(cl_mem buffer) {
    cl_int one = 1;

    ck_ok(clSetKernelArg(add, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(add, 1, sizeof(one), &one));
    launch(add, N);
}

/*
 * Looks at memory that a command may be writing, as no event tells of it before its turn: not for
 * ThreadSanitizer.
 */
#define UNORDERED __attribute__((no_sanitize("thread"), noinline))

/* Does this become the last element of what was read without waiting? */
UNORDERED static bool arrives(volatile cl_int *host, cl_int wanted, int rounds) {
    for (int i = 0; i < rounds && host[N - 1] != wanted; i++)
        usleep(5000);
    return host[N - 1] == wanted;
}

enum overwrite { WRITE, FILL, COPY, MAP };

static void write_by_map(cl_mem buffer, cl_bool blocking, const cl_int *host) {
    cl_event mapped;
    cl_int *pointer =
        ck_made(clEnqueueMapBuffer(queue, buffer, blocking, CL_MAP_WRITE_INVALIDATE_REGION, 0,
                                   BYTES, 0, NULL, &mapped, &error));

    ck_ok(clWaitForEvents(1, &mapped));
    ck_ok(clReleaseEvent(mapped));
    memcpy(pointer, host, BYTES);
    ck_ok(clEnqueueUnmapMemObject(queue, buffer, pointer, 0, NULL, NULL));
}

static size_t size_of(cl_mem buffer) {
    size_t size;

    ck_ok(clGetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof(size), &size, NULL));
    return size;
}

static void overwrite(cl_mem buffer, cl_mem source, enum overwrite how, const cl_int *host,
                      const cl_int *value) {
    if (how == WRITE)
        ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, BYTES, host, 0, NULL, NULL));
    else if (how == FILL)
        ck_ok(clEnqueueFillBuffer(queue, buffer, value, 4, 0, size_of(buffer), 0, NULL, NULL));
    else if (how == COPY)
        ck_ok(clEnqueueCopyBuffer(queue, source, buffer, 0, 0, BYTES, 0, NULL, NULL));
    else
        write_by_map(buffer, CL_TRUE, host);
}

/*
 * Overwrites an occupied buffer; says whether that and what follows passed the occupant within so
 * many times 5 ms.
 */
static bool passes_in(int rounds, cl_mem buffer, enum overwrite how) {
    cl_int *host = calloc(1, BYTES), *back = calloc(1, BYTES), five = 5;
    cl_mem source;
    bool passed;

    for (int i = 0; i < N; i++)
        host[i] = five;
    source = make_buffer(CL_MEM_COPY_HOST_PTR, BYTES, host);
    write_ints(buffer, before, N);
    occupy(buffer);
    overwrite(buffer, source, how, host, &five);
    add_one(buffer);
    ck_ok(clEnqueueReadBuffer(queue, buffer, CL_FALSE, 0, BYTES, back, 0, NULL, NULL));
    ck_ok(clFlush(queue));
    passed = arrives(back, 6, rounds);
    let_go();
    ck_ok(clFinish(queue));
    ck_assert_msg(!memcmp(seen, before, BYTES), "the earlier command saw %d, not the old bytes",
                  seen[0]);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(back[i], 6);
    read_ints(buffer, back, N);
    ck_assert_int_eq(back[0], 6);
    ck_ok(clReleaseMemObject(source));
    free(host);
    free(back);
    return passed;
}

static bool passes(cl_mem buffer, enum overwrite how) { return passes_in(2000, buffer, how); }
static bool waits(cl_mem buffer, enum overwrite how) { return !passes_in(40, buffer, how); }

START_TEST(whole_overwrites_do_not_wait) {
    cl_mem buffer = make_buffer(0, BYTES, NULL);

    begin();
    for (int i = 0; i < 20; i++)
        ck_assert_msg(passes(buffer, (enum overwrite)(i % 3)), "overwrite %d waited", i);
    ck_ok(clReleaseMemObject(buffer));
    end();
}
END_TEST

/* The map is over, and the program writes, while the earlier command still reads. */
START_TEST(maps_that_overwrite_do_not_wait) {
    cl_mem buffer = make_buffer(0, BYTES, NULL);

    begin();
    for (int i = 0; i < 10; i++) {
        ck_ok(clFinish(queue));
        ck_assert_msg(passes(buffer, MAP), "map %d waited", i);
    }
    ck_ok(clReleaseMemObject(buffer));
    end();
}
END_TEST

/* Until the map's turn the old bytes are needed, even by commands that come after it. */
START_TEST(a_map_that_must_wait_keeps_the_storage) {
    cl_mem buffer = make_buffer(0, BYTES, NULL);
    cl_command_queue third = make_queue(0);
    cl_event gate = make_user_event(), mapped;
    cl_int *pointer, *back = calloc(1, BYTES);

    begin();
    write_ints(buffer, before, N);
    occupy(buffer);
    pointer = ck_made(clEnqueueMapBuffer(queue, buffer, CL_FALSE, CL_MAP_WRITE_INVALIDATE_REGION, 0,
                                         BYTES, 1, &gate, &mapped, &error));
    ck_ok(clEnqueueReadBuffer(third, buffer, CL_FALSE, 0, BYTES, back, 0, NULL, NULL));
    let_go();
    ck_ok(clFinish(third));
    ck_assert(!memcmp(seen, before, BYTES));
    ck_assert_msg(!memcmp(back, before, BYTES), "the bytes were lost before the map's turn");
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    ck_ok(clWaitForEvents(1, &mapped));
    for (int i = 0; i < N; i++)
        pointer[i] = i;
    ck_ok(clEnqueueUnmapMemObject(queue, buffer, pointer, 0, NULL, NULL));
    add_one(buffer);
    read_ints(buffer, back, N);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(back[i], i + 1);
    ck_ok(clReleaseEvent(gate));
    ck_ok(clReleaseEvent(mapped));
    ck_ok(clReleaseCommandQueue(third));
    ck_ok(clReleaseMemObject(buffer));
    free(back);
    end();
}
END_TEST

/* A map that fails overwrites nothing. */
START_TEST(a_map_that_fails_keeps_the_storage) {
    cl_mem buffer = make_buffer(0, BYTES, NULL);
    cl_event gate = make_user_event();
    cl_int back[N];

    begin();
    ck_ok(clSetUserEventStatus(gate, -1));
    write_ints(buffer, before, N);
    occupy(buffer);
    ck_refused(clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 0, BYTES,
                                  1, &gate, NULL, &error),
               CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    let_go();
    read_ints(buffer, back, N);
    ck_assert(!memcmp(back, before, BYTES));
    ck_ok(clReleaseEvent(gate));
    ck_ok(clReleaseMemObject(buffer));
    end();
}
END_TEST

/* Two maps at once are of one storage, and maps of a part keep the rest. */
START_TEST(maps_within_maps) {
    cl_mem buffer = make_buffer(0, BYTES, NULL);
    cl_int *whole, *part, *back = calloc(1, BYTES);

    begin();
    write_ints(buffer, before, N);
    occupy(buffer);
    part = ck_made(clEnqueueMapBuffer(queue, buffer, CL_FALSE, CL_MAP_WRITE_INVALIDATE_REGION, 0,
                                      BYTES / 2, 0, NULL, NULL, &error));
    let_go();
    ck_ok(clFinish(queue));
    for (int i = 0; i < N / 2; i++)
        part[i] = 5;
    occupy(buffer);
    ck_ok(clEnqueueUnmapMemObject(queue, buffer, part, 0, NULL, NULL));
    let_go();
    read_ints(buffer, back, N);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(back[i], i < N / 2 ? 5 : before[i]);
    occupy(buffer);
    whole = ck_made(clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 0,
                                       BYTES, 0, NULL, NULL, &error));
    part = ck_made(
        clEnqueueMapBuffer(queue, buffer, CL_FALSE, CL_MAP_READ, 0, 4, 0, NULL, NULL, &error));
    ck_assert_msg(part == whole, "two maps of one buffer are of two storages");
    let_go();
    for (int i = 0; i < N; i++)
        whole[i] = 3 * i;
    ck_ok(clEnqueueUnmapMemObject(queue, buffer, part, 0, NULL, NULL));
    ck_ok(clEnqueueUnmapMemObject(queue, buffer, whole, 0, NULL, NULL));
    read_ints(buffer, back, N);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(back[i], 3 * i);
    ck_ok(clReleaseMemObject(buffer));
    free(back);
    end();
}
END_TEST

START_TEST(many_versions_at_once) {
    enum { MANY = 20 };
    cl_int *host = calloc(MANY, BYTES), *back = calloc(MANY, BYTES);
    cl_mem buffer = make_buffer(0, BYTES, NULL);

    begin();
    write_ints(buffer, before, N);
    occupy(buffer);
    for (int i = 0; i < MANY; i++) {
        for (int j = 0; j < N; j++)
            host[i * N + j] = 100 * i + j;
        overwrite(buffer, NULL, WRITE, &host[i * N], NULL);
        add_one(buffer);
        ck_ok(clEnqueueReadBuffer(queue, buffer, CL_FALSE, 0, BYTES, &back[i * N], 0, NULL, NULL));
    }
    let_go();
    ck_ok(clFinish(queue));
    ck_assert(!memcmp(seen, before, BYTES));
    for (int i = 0; i < MANY * N; i++)
        ck_assert_int_eq(back[i], host[i] + 1);
    ck_ok(clReleaseMemObject(buffer));
    free(host);
    free(back);
    end();
}
END_TEST

/* Of five that there are, two take turns once two are enough: caches, and pages, know them. */
START_TEST(the_youngest_is_used_again) {
    enum { MANY = 5, TURNS = 10 };
    cl_mem buffer = make_buffer(0, BYTES, NULL);
    cl_command_queue others[MANY];
    const cl_int *places[MANY], *turn[TURNS];
    static cl_int looked[MANY][N];

    begin();
    for (int i = 0; i < MANY; i++) {
        write_ints(buffer, before, N);
        others[i] = make_queue(0);
        occupy_in(others[i], buffer, looked[i]);
        places[i] = place;
        for (int j = 0; j < i; j++)
            ck_assert_ptr_ne(places[i], places[j]);
    }
    for (int i = 0; i < MANY; i++)
        sem_post(&go);
    for (int i = 0; i < MANY; i++) {
        ck_ok(clFinish(others[i]));
        ck_ok(clReleaseCommandQueue(others[i]));
    }
    for (int i = 0; i < TURNS; i++) {
        occupy(buffer);
        turn[i] = place;
        write_ints(buffer, before, N);
        let_go();
        ck_assert(!memcmp(seen, before, BYTES));
        if (i > 0)
            ck_assert_ptr_ne(turn[i], turn[i - 1]);
        if (i > 1)
            ck_assert_ptr_eq(turn[i], turn[i - 2]);
    }
    ck_ok(clReleaseMemObject(buffer));
    end();
}
END_TEST

START_TEST(storage_that_the_program_knows_stays) {
    cl_buffer_region part = {0, BYTES / 2};
    cl_int *users = calloc(1, BYTES), *pointer;
    cl_mem whole = make_buffer(0, BYTES, NULL), half, over;

    begin();
    over = make_buffer(CL_MEM_USE_HOST_PTR, BYTES, users);
    ck_assert_msg(waits(over, WRITE), "the program's own memory was replaced");
    half = ck_made(clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &part, &error));
    ck_assert_msg(waits(whole, FILL), "a buffer with a sub-buffer was replaced");
    read_ints(half, users, N / 2);
    ck_assert_int_eq(users[0], 6);
    ck_ok(clReleaseMemObject(half));
    ck_assert(passes(whole, FILL));
    /* A map shows the bytes of its time, and is written back. */
    pointer = ck_made(clEnqueueMapBuffer(queue, whole, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                         BYTES, 0, NULL, NULL, &error));
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(pointer[i], 6);
        pointer[i] = 50 + i;
    }
    ck_ok(clEnqueueUnmapMemObject(queue, whole, pointer, 0, NULL, NULL));
    add_one(whole);
    read_ints(whole, users, N);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(users[i], 51 + i);
    ck_assert_msg(passes(whole, COPY), "the end of the map was not noticed");
    ck_ok(clReleaseMemObject(whole));
    ck_ok(clReleaseMemObject(over));
    free(users);
    end();
}
END_TEST

START_TEST(frames_through_one_buffer) {
    enum { FRAMES = 200 };
    cl_mem buffer = make_buffer(0, BYTES, NULL);
    cl_int *in = calloc(FRAMES, BYTES), *out = calloc(FRAMES, BYTES);

    begin();
    for (int round = 0; round < 3; round++) {
        for (int f = 0; f < FRAMES; f++) {
            for (int i = 0; i < N; i++)
                in[f * N + i] = round + 7 * f + i;
            overwrite(buffer, NULL, WRITE, &in[f * N], NULL);
            add_one(buffer);
            add_one(buffer);
            ck_ok(
                clEnqueueReadBuffer(queue, buffer, CL_FALSE, 0, BYTES, &out[f * N], 0, NULL, NULL));
        }
        ck_ok(clFinish(queue));
        for (int i = 0; i < FRAMES * N; i++)
            ck_assert_int_eq(out[i], in[i] + 2);
    }
    ck_ok(clReleaseMemObject(buffer));
    free(in);
    free(out);
    end();
}
END_TEST

/* The child: "passed" or "waited". */
static void print_whether_passes(size_t size, enum overwrite how) {
    cl_mem buffer = make_buffer(0, size, NULL);

    begin();
    printf("overwrite %s\n", passes_in(400, buffer, how) ? "passed" : "waited");
    ck_ok(clReleaseMemObject(buffer));
    end();
}

START_TEST(probe) { print_whether_passes(BYTES, WRITE); }
END_TEST

START_TEST(probe_large) { print_whether_passes(LARGE, FILL); }
END_TEST

static void step(cl_kernel kernel, cl_mem from, cl_mem to) {
    ck_ok(clSetKernelArg(kernel, 0, sizeof(from), &from));
    ck_ok(clSetKernelArg(kernel, 1, sizeof(to), &to));
    launch(kernel, N);
}

/*
 * The child, where one buffer can get other storage: two take turns, and one is read in between.
 * The kernel that overwrites one of them comes after the one before it anyway.
 */
START_TEST(probe_turns) {
    cl_int back[N];
    cl_program stepping =
        make_program("kernel void one_more(global const int *from, global int *to) {\n"
                     "    to[get_global_id(0)] = from[get_global_id(0)] + 1;\n"
                     "}\n");
    cl_kernel kernel = make_kernel(stepping, "one_more");
    cl_mem first = make_buffer(0, BYTES, NULL), a = make_buffer(0, BYTES, NULL),
           b = make_buffer(0, BYTES, NULL), kept = make_buffer(0, BYTES, NULL);

    begin();
    write_ints(first, before, N);
    occupy(first);
    step(kernel, first, a);
    step(kernel, a, b);
    step(kernel, b, kept);
    step(kernel, b, a);
    step(kernel, a, b);
    ck_ok(clFlush(queue));
    let_go();
    read_ints(kept, back, N);
    ck_assert_int_eq(back[N - 1], before[N - 1] + 3);
    read_ints(b, back, N);
    ck_assert_int_eq(back[N - 1], before[N - 1] + 4);
    printf("overwrite %s\n", passes_in(400, first, WRITE) ? "passed" : "waited");
    ck_ok(clReleaseMemObject(first));
    ck_ok(clReleaseMemObject(a));
    ck_ok(clReleaseMemObject(b));
    ck_ok(clReleaseMemObject(kept));
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(stepping));
    end();
}
END_TEST

static void check_limit(const char *value, const char *wanted) {
    char limit[64];

    snprintf(limit, sizeof(limit), "TUTTI_RENAME_LIMIT=%s", value);
    ck_assert_msg(strstr(test_run_again(limit, "--probe"), wanted), "with %s it is not \"%s\"",
                  value, wanted);
}

START_TEST(the_limit) {
    check_limit("0", "overwrite waited");
    check_limit("4095", "overwrite waited");
    check_limit("4k", "overwrite passed");
    check_limit("1G", "overwrite passed");
    check_limit("much", "overwrite passed");
}
END_TEST

/* Without one: a quarter of a device's memory, if it has memory of its own. */
START_TEST(the_limit_by_default) {
    ck_assert_ptr_nonnull(
        strstr(test_run_again("TUTTI_DEVICE_MEMORY=1M", "--large"), "overwrite waited"));
    ck_assert_ptr_nonnull(
        strstr(test_run_again("TUTTI_DEVICE_MEMORY=8M", "--large"), "overwrite passed"));
}
END_TEST

START_TEST(those_that_wait_anyway_take_none) {
    ck_assert_ptr_nonnull(
        strstr(test_run_again("TUTTI_RENAME_LIMIT=4k", "--turns"), "overwrite passed"));
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const child[] = {probe}, *const large[] = {probe_large},
                       *const turns[] = {probe_turns};
    const TTest *const tests[] = {
        whole_overwrites_do_not_wait,
        maps_that_overwrite_do_not_wait,
        a_map_that_must_wait_keeps_the_storage,
        a_map_that_fails_keeps_the_storage,
        maps_within_maps,
        many_versions_at_once,
        the_youngest_is_used_again,
        storage_that_the_program_knows_stays,
        frames_through_one_buffer,
        the_limit,
        the_limit_by_default,
        those_that_wait_anyway_take_none,
    };

    if (argc > 1 && strcmp(argv[1], "--probe") == 0)
        return test_main(1, argv, child, COUNT(child));
    if (argc > 1 && strcmp(argv[1], "--large") == 0)
        return test_main(1, argv, large, COUNT(large));
    if (argc > 1 && strcmp(argv[1], "--turns") == 0)
        return test_main(1, argv, turns, COUNT(turns));
    return test_main(argc, argv, tests, COUNT(tests));
}
