/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: parts of a buffer that one device uses in turn with the whole are windows on it, so
 * that nothing is copied between them, and parts again when that is over. PoCL stands in for a GPU.
 */
#include "pocl_gpu.h"

enum {
    PARTS = 4,
    N = 1024, /* elements of a part: so many work-items that none executes beside others */
    ALL = PARTS * N,
    ROUNDS = 40,
    APART = 100, /* kernels on parts alone, until they are parts again */
    COMMANDS = 400,
};

static cl_program program;
static cl_kernel add_to, mix_in;
static cl_mem whole, part[PARTS];
static cl_int expected[ALL];

static const char source[] =
    "kernel void add_to(global int *data, int by) { data[get_global_id(0)] += by; }"
    "kernel void mix_in(global int *to, global const int *from) {"
    "  size_t i = get_global_id(0); to[i] = 3 * to[i] + from[i]; }";

/* Calls of the driver that copy within it, or between it and the host. */
static int moves;

static cl_int CL_API_CALL copy(cl_command_queue on, cl_mem from, cl_mem to, size_t begin,
                               size_t target, size_t size, cl_uint count, const cl_event *list,
                               cl_event *event) {
    __atomic_fetch_add(&moves, 1, __ATOMIC_RELAXED);
    return real.clEnqueueCopyBuffer(on, from, to, begin, target, size, count, list, event);
}

static cl_int CL_API_CALL take(cl_command_queue on, cl_mem from, cl_bool blocking, size_t begin,
                               size_t size, void *to, cl_uint count, const cl_event *list,
                               cl_event *event) {
    __atomic_fetch_add(&moves, 1, __ATOMIC_RELAXED);
    return real.clEnqueueReadBuffer(on, from, blocking, begin, size, to, count, list, event);
}

static cl_int CL_API_CALL bring(cl_command_queue on, cl_mem to, cl_bool blocking, size_t begin,
                                size_t size, const void *from, cl_uint count, const cl_event *list,
                                cl_event *event) {
    __atomic_fetch_add(&moves, 1, __ATOMIC_RELAXED);
    return real.clEnqueueWriteBuffer(on, to, blocking, begin, size, from, count, list, event);
}

/* The driver's sub-buffers, in the order in which they were made. */
static struct {
    cl_mem mem, whole;
    cl_buffer_region region;
} made[1024];
static unsigned made_count, out_of_order;

static bool overlap(unsigned a, unsigned b) {
    const cl_buffer_region *one = &made[a].region, *other = &made[b].region;
    return made[a].mem && made[b].mem && made[a].whole == made[b].whole &&
           one->origin < other->origin + other->size && other->origin < one->origin + one->size;
}

static cl_mem CL_API_CALL make_sub(cl_mem of, cl_mem_flags flags, cl_buffer_create_type type,
                                   const void *region, cl_int *result) {
    cl_mem mem = real.clCreateSubBuffer(of, flags, type, region, result);
    unsigned place = made_count++ % COUNT(made);
    made[place].mem = mem;
    made[place].whole = of;
    made[place].region = *(const cl_buffer_region *)region;
    return mem;
}

/* NVIDIA's driver ends the process when a sub-buffer goes before a younger one that overlaps. */
static cl_int CL_API_CALL release(cl_mem mem) {
    unsigned place = 0;
    while (place < COUNT(made) && made[place].mem != mem)
        place++;
    for (unsigned other = place + 1; other < COUNT(made); other++)
        out_of_order += overlap(place, other);
    if (place < COUNT(made))
        made[place].mem = NULL;
    return real.clReleaseMemObject(mem);
}

static void change(cl_icd_dispatch *table) {
    table->clCreateSubBuffer = make_sub;
    table->clReleaseMemObject = release;
    table->clEnqueueCopyBuffer = copy;
    table->clEnqueueReadBuffer = take;
    table->clEnqueueWriteBuffer = bring;
}

static cl_mem make_part(size_t first, size_t count) {
    cl_buffer_region region = {first * N * sizeof(cl_int), count * N * sizeof(cl_int)};
    return ck_made(clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error));
}

static void begin(cl_mem_flags flags, void *memory) {
    program = make_program(source);
    add_to = make_kernel(program, "add_to");
    mix_in = make_kernel(program, "mix_in");
    for (size_t i = 0; i < ALL; i++)
        expected[i] = (cl_int)i;
    if (memory)
        memcpy(memory, expected, sizeof(expected));
    whole = make_buffer(flags, sizeof(expected), memory ? memory : expected);
    for (size_t p = 0; p < PARTS; p++)
        part[p] = make_part(p, 1);
    test_log_count("");
}

static void end(void) {
    cl_int seen[ALL];
    ck_ok(clEnqueueReadBuffer(queue, whole, CL_TRUE, 0, sizeof(seen), seen, 0, NULL, NULL));
    for (size_t i = 0; i < ALL; i++)
        ck_assert_msg(seen[i] == expected[i], "element %zu is %d, expected %d", i, seen[i],
                      expected[i]);
    for (size_t p = 0; p < PARTS; p++)
        ck_ok(clReleaseMemObject(part[p]));
    ck_ok(clReleaseMemObject(whole));
    ck_ok(clReleaseKernel(add_to));
    ck_ok(clReleaseKernel(mix_in));
    ck_ok(clReleaseProgram(program));
}

/* As devices count, whatever becomes of it. */
static cl_int sum(cl_int a, cl_int b) { return (cl_int)((cl_uint)a + (cl_uint)b); }

static void add(cl_command_queue on, cl_mem mem, size_t first, size_t count, cl_int by) {
    size_t items = count * N;
    ck_ok(clSetKernelArg(add_to, 0, sizeof(mem), &mem));
    ck_ok(clSetKernelArg(add_to, 1, sizeof(by), &by));
    ck_ok(clEnqueueNDRangeKernel(on, add_to, 1, NULL, &items, NULL, 0, NULL, NULL));
    for (size_t i = first * N; i < (first + count) * N; i++)
        expected[i] = sum(expected[i], by);
}

static void add_part(cl_command_queue on, size_t p, cl_int by) { add(on, part[p], p, 1, by); }

static void add_all(cl_command_queue on, cl_int by) { add(on, whole, 0, PARTS, by); }

/* `from` NULL: the whole, of which the first part is read. */
static void mix(cl_command_queue on, size_t to, cl_mem mem, size_t from) {
    size_t items = N;
    ck_ok(clSetKernelArg(mix_in, 0, sizeof(part[to]), &part[to]));
    ck_ok(clSetKernelArg(mix_in, 1, sizeof(mem), &mem));
    ck_ok(clEnqueueNDRangeKernel(on, mix_in, 1, NULL, &items, NULL, 0, NULL, NULL));
    for (size_t i = 0; i < N; i++)
        expected[to * N + i] =
            sum((cl_int)(3 * (cl_uint)expected[to * N + i]), expected[from * N + i]);
}

static void take_turns(unsigned rounds) {
    for (unsigned round = 0; round < rounds; round++) {
        add_part(queue, round % PARTS, 3);
        add_all(queue, (cl_int)round);
    }
}

static void open_windows(void) {
    for (unsigned round = 0; round < ROUNDS; round++) {
        take_turns(1);
        ck_ok(clFinish(queue));
    }
    ck_assert_int_eq(test_log_count("become windows"), 1);
}

/* After a few rounds no byte is moved any more. */
START_TEST(nothing_is_copied) {
    begin(CL_MEM_COPY_HOST_PTR, NULL);
    open_windows();
    moves = 0;
    take_turns(ROUNDS);
    ck_ok(clFinish(queue));
    ck_assert_int_eq(moves, 0);
    end();
}
END_TEST

/* Two windows, and a window and the whole, of one kernel. */
START_TEST(several_in_one_kernel) {
    begin(CL_MEM_COPY_HOST_PTR, NULL);
    open_windows();
    for (unsigned round = 0; round < ROUNDS; round++) {
        mix(queue, round % PARTS, part[(round + 1) % PARTS], (round + 1) % PARTS);
        mix(queue, 1 + round % (PARTS - 1), whole, 0);
    }
    end();
}
END_TEST

/* Parts that live for one kernel. */
START_TEST(made_anew) {
    begin(CL_MEM_COPY_HOST_PTR, NULL);
    for (unsigned round = 0; round < 5 * ROUNDS; round++) {
        size_t first = round % PARTS, count = 1 + round % (PARTS - first);
        cl_mem fresh = make_part(first, count);
        add(queue, fresh, first, count, 7);
        ck_ok(clReleaseMemObject(fresh));
        if (round % 3)
            add_all(queue, 1);
    }
    ck_ok(clFinish(queue));
    ck_assert_int_gt(test_log_count("become windows"), 0);
    end();
}
END_TEST

/* More of them than are kept, which overlap. */
START_TEST(the_youngest_goes_first) {
    enum { MANY = 100, STEP = N / 4 };
    cl_mem many[MANY];
    begin(CL_MEM_COPY_HOST_PTR, NULL);
    open_windows();
    for (int i = 0; i < MANY; i++) {
        cl_buffer_region region = {(size_t)(i % 12) * STEP * sizeof(cl_int),
                                   (size_t)(i / 12 + 1) * STEP / 2 * sizeof(cl_int)};
        many[i] =
            ck_made(clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error));
    }
    made_count = 0;
    for (int i = 0; i < MANY; i++) {
        size_t first = (size_t)(i % 12) * STEP, items = (size_t)(i / 12 + 1) * STEP / 2;
        cl_int by = i;
        ck_ok(clSetKernelArg(add_to, 0, sizeof(many[i]), &many[i]));
        ck_ok(clSetKernelArg(add_to, 1, sizeof(by), &by));
        ck_ok(clEnqueueNDRangeKernel(queue, add_to, 1, NULL, &items, NULL, 0, NULL, NULL));
        for (size_t k = first; k < first + items; k++)
            expected[k] = sum(expected[k], by);
        if (i % 16 == 0)
            add_all(queue, 1);
    }
    ck_ok(clFinish(queue));
    ck_assert_int_eq(made_count, MANY);
    for (int i = 0; i < MANY; i++)
        ck_ok(clReleaseMemObject(many[i]));
    end();
    ck_assert_int_eq(out_of_order, 0);
}
END_TEST

START_TEST(become_parts_again) {
    begin(CL_MEM_COPY_HOST_PTR, NULL);
    open_windows();
    for (unsigned i = 0; i < APART; i++)
        add_part(queue, i % PARTS, 1);
    ck_ok(clFinish(queue)); /* another thread may dispatch them */
    ck_assert_int_eq(test_log_count("become parts"), 1);
    for (unsigned i = 0; i < APART; i++)
        add_part(queue, i % PARTS, 1);
    end();
}
END_TEST

/* What is mapped is memory of the part's own, from then on. */
START_TEST(a_mapped_part) {
    begin(CL_MEM_COPY_HOST_PTR, NULL);
    open_windows();
    cl_int *mapped =
        ck_made((cl_int *)clEnqueueMapBuffer(queue, part[1], CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                             N * sizeof(cl_int), 0, NULL, NULL, &error));
    ck_assert_int_eq(test_log_count("become parts"), 1);
    for (size_t i = 0; i < N; i++) {
        ck_assert_int_eq(mapped[i], expected[N + i]);
        mapped[i] = expected[N + i] = (cl_int)i;
    }
    ck_ok(clEnqueueUnmapMemObject(queue, part[1], mapped, 0, NULL, NULL));
    take_turns(ROUNDS);
    ck_ok(clFinish(queue));
    ck_assert_int_eq(test_log_count("become windows"), 0);
    end();
}
END_TEST

/* It may be gone while parts are left. */
START_TEST(memory_of_the_program) {
    static _Alignas(4096) cl_int memory[ALL];
    begin(CL_MEM_USE_HOST_PTR, memory);
    take_turns(2 * ROUNDS);
    ck_ok(clFinish(queue));
    ck_assert_int_eq(test_log_count("become windows"), 0);
    end();
}
END_TEST

/* The buffer itself is used no more. */
START_TEST(a_released_buffer) {
    begin(CL_MEM_COPY_HOST_PTR, NULL);
    open_windows();
    ck_ok(clRetainMemObject(whole));
    ck_ok(clReleaseMemObject(whole));
    take_turns(3);
    ck_ok(clReleaseMemObject(whole));
    cl_int seen[N];
    for (size_t p = 0; p < PARTS; p++) {
        add_part(queue, p, 5);
        ck_ok(clEnqueueReadBuffer(queue, part[p], CL_TRUE, 0, sizeof(seen), seen, 0, NULL, NULL));
        for (size_t i = 0; i < N; i++)
            ck_assert_int_eq(seen[i], expected[p * N + i]);
    }
    whole = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(expected), expected); /* for `end` */
    end();
}
END_TEST

static void CL_CALLBACK double_all(void *arguments) {
    cl_int *values = *(cl_int **)arguments;
    for (size_t i = 0; i < N; i++)
        values[i] = sum(values[i], values[i]);
}

/* A native kernel gets a pointer to the part alone. */
static void double_natively(cl_command_queue on, size_t p) {
    void *argument = NULL;
    const void *place = &argument;
    ck_ok(clEnqueueNativeKernel(on, double_all, &argument, sizeof(argument), 1, &part[p], &place, 0,
                                NULL, NULL));
    for (size_t i = p * N; i < (p + 1) * N; i++)
        expected[i] = sum(expected[i], expected[i]);
}

static cl_uint state;

static unsigned draw(unsigned below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
}

static void write_part(size_t p, cl_bool blocking) {
    static cl_int values[COMMANDS][N];
    static unsigned used;
    cl_int *from = values[used++ % COMMANDS];
    for (size_t i = 0; i < N; i++)
        from[i] = expected[p * N + i] = (cl_int)draw(1000);
    ck_ok(
        clEnqueueWriteBuffer(queue, part[p], blocking, 0, N * sizeof(cl_int), from, 0, NULL, NULL));
}

static void read_part(size_t p) {
    cl_int seen[N];
    ck_ok(clEnqueueReadBuffer(queue, part[p], CL_TRUE, 0, sizeof(seen), seen, 0, NULL, NULL));
    for (size_t i = 0; i < N; i++)
        ck_assert_int_eq(seen[i], expected[p * N + i]);
}

static void fill_part(size_t p) {
    cl_int value = (cl_int)draw(1000);
    ck_ok(clEnqueueFillBuffer(queue, part[p], &value, sizeof(value), 64, N * sizeof(cl_int) - 64, 0,
                              NULL, NULL));
    for (size_t i = 16; i < N; i++)
        expected[p * N + i] = value;
}

/* All of a part, or the half of one, from another one or from the whole. */
static void copy_to_part(size_t p) {
    size_t from = (p + 1 + draw(PARTS - 1)) % PARTS, count = draw(2) ? N : N / 2;
    bool by_whole = draw(2);
    ck_ok(clEnqueueCopyBuffer(queue, by_whole ? whole : part[from], part[p],
                              by_whole ? from * N * sizeof(cl_int) : 0, 0, count * sizeof(cl_int),
                              0, NULL, NULL));
    memcpy(expected + p * N, expected + from * N, count * sizeof(cl_int));
}

/* 8 rows of 16 elements, which lie otherwise in each. */
static void copy_box(size_t p) {
    size_t from = (p + 1) % PARTS;
    const size_t origin[3] = {0, 0, 0}, region[3] = {16 * sizeof(cl_int), 8, 1};
    ck_ok(clEnqueueCopyBufferRect(queue, part[from], part[p], origin, origin, region,
                                  32 * sizeof(cl_int), 0, 48 * sizeof(cl_int), 0, 0, NULL, NULL));
    for (size_t row = 0; row < 8; row++)
        memcpy(expected + p * N + 48 * row, expected + from * N + 32 * row, 16 * sizeof(cl_int));
}

static void draw_command(void) {
    size_t p = draw(PARTS);
    switch (draw(12)) {
    case 0:
        write_part(p, draw(2));
        break;
    case 1:
        read_part(p);
        break;
    case 2:
        fill_part(p);
        break;
    case 3:
        copy_to_part(p);
        break;
    case 4:
        if (draw(4) == 0)
            copy_box(p);
        else
            ck_ok(clEnqueueMigrateMemObjects(queue, 1, &part[p], 0, 0, NULL, NULL));
        break;
    case 5:
        double_natively(queue, p);
        break;
    case 6:
        mix(queue, p, part[(p + 1) % PARTS], (p + 1) % PARTS);
        break;
    case 7:
        if (p > 0)
            mix(queue, p, whole, 0);
        break;
    case 8:
        add_part(queue, p, 1);
        break;
    default:
        take_turns(1);
    }
}

START_TEST(with_all_commands) {
    int opened = 0;
    for (cl_uint seed = 1; seed <= 6; seed++) {
        state = seed;
        begin(CL_MEM_COPY_HOST_PTR, NULL);
        for (unsigned i = 0; i < COMMANDS; i++) {
            draw_command();
            if (draw(20) == 0) /* windows, in the middle */
                take_turns(8);
        }
        ck_ok(clFinish(queue));
        opened += test_log_count("become windows");
        end();
    }
    ck_assert_int_gt(opened, 6);
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        nothing_is_copied, several_in_one_kernel,   made_anew,
        a_mapped_part,     the_youngest_goes_first, become_parts_again,
        a_released_buffer, memory_of_the_program,   with_all_commands,
    };
    return pocl_gpu_begin("pthread", change) ? test_main_logged(argc, argv, tests, COUNT(tests))
                                             : 0;
}
