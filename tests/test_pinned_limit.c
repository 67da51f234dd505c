/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: never is more host memory page-locked than TUTTI_PINNED_LIMIT says, all works
 * without, and what is not in use goes back. PoCL stands in for a GPU, whose driver counts what it
 * locks. Each limit has a process of its own, as the variable is read once.
 */
#include "pocl_gpu.h"
#include "restless.h"

#include <pthread.h>
#include <unistd.h>

enum { MIB = 1 << 20, BUFFERS = 12, STEP = 100000, UNALIGNED = 5, NEVER = 60000 /* ms */ };

static struct {
    pthread_mutex_t lock; /* guards what follows */
    struct {
        cl_mem mem;
        size_t size;
    } block[256];
    size_t bytes, most; /* now, and at any time */
    bool slow;          /* to unlock some takes a while, */
    bool unlocks;       /* which has begun */
} locked = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* As pages are locked when the driver makes a buffer, and unlocked at its end. */
static cl_mem CL_API_CALL create(cl_context in, cl_mem_flags flags, size_t size, void *host,
                                 cl_int *result) {
    bool locks = flags & (CL_MEM_ALLOC_HOST_PTR | CL_MEM_USE_HOST_PTR);
    unsigned place = 0;
    cl_mem mem = real.clCreateBuffer(in, flags, size, host, result);
    if (!mem || !locks)
        return mem;
    pthread_mutex_lock(&locked.lock);
    while (locked.block[place].mem)
        place++;
    locked.block[place].mem = mem;
    locked.block[place].size = size;
    locked.bytes += size;
    locked.most = locked.bytes > locked.most ? locked.bytes : locked.most;
    pthread_mutex_unlock(&locked.lock);
    return mem;
}

static cl_int CL_API_CALL release(cl_mem mem) {
    pthread_mutex_lock(&locked.lock);
    for (unsigned i = 0; i < COUNT(locked.block); i++) {
        if (locked.block[i].mem != mem)
            continue;
        locked.unlocks = true;
        if (locked.slow) {
            pthread_mutex_unlock(&locked.lock);
            usleep(200000);
            pthread_mutex_lock(&locked.lock);
        }
        locked.bytes -= locked.block[i].size;
        locked.block[i].mem = NULL;
    }
    pthread_mutex_unlock(&locked.lock);
    return real.clReleaseMemObject(mem);
}

static void change(cl_icd_dispatch *table) {
    table->clCreateBuffer = create;
    table->clReleaseMemObject = release;
}

static size_t now_locked(void) {
    pthread_mutex_lock(&locked.lock);
    size_t bytes = locked.bytes;
    pthread_mutex_unlock(&locked.lock);
    return bytes;
}

static size_t limit; /* the child's */
static cl_program program;
static cl_kernel add;

static void begin(void) {
    program = make_program(common_source);
    add = make_kernel(program, "add");
}

static void end(void) {
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}

static void add_to(cl_mem buffer, size_t ints) {
    cl_int one = 1;
    ck_ok(clSetKernelArg(add, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(add, 1, sizeof(one), &one));
    launch(add, ints);
}

static size_t ints_of(int i) { return (size_t)(MIB + i * STEP) / sizeof(cl_int); }

static void ck_ints(const cl_int *ints, size_t count, cl_int first) {
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++)
        wrong += ints[i] != first + (cl_int)i;
    ck_assert_uint_eq(wrong, 0);
}

/* Through a map, which points into memory that may be locked. */
static void fill_by_map(cl_mem buffer, size_t ints, cl_int first) {
    cl_int *mapped = ck_made(clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_WRITE, 0, ints * 4,
                                                0, NULL, NULL, &error));
    for (size_t i = 0; i < ints; i++)
        mapped[i] = first + (cl_int)i;
    ck_ok(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL));
}

/* By a write and a read, staged in memory that may be locked. */
static void use_by_pointer(cl_mem buffer, size_t ints, cl_int first) {
    char *memory = malloc(ints * 4 + UNALIGNED);
    cl_int *seen = malloc(ints * 4);
    for (size_t i = 0; i < ints; i++)
        seen[i] = first + (cl_int)i;
    memcpy(memory + UNALIGNED, seen, ints * 4);
    ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, ints * 4, memory + UNALIGNED, 0, NULL,
                               NULL));
    add_to(buffer, ints);
    memset(memory, 0, ints * 4);
    ck_ok(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, ints * 4, memory + UNALIGNED, 0, NULL,
                              NULL));
    memcpy(seen, memory + UNALIGNED, ints * 4);
    ck_ints(seen, ints, first + 1);
    free(seen);
    free(memory);
}

/* The program's own memory, which is locked when enough of it has moved. */
static void use_own_memory(size_t ints) {
    cl_int *own = aligned_alloc(4096, (ints * 4 + 4095) / 4096 * 4096);
    memset(own, 0, ints * 4);
    cl_mem buffer = make_buffer(CL_MEM_USE_HOST_PTR, ints * 4, own);
    for (int round = 0; round < 8; round++) {
        fill_by_map(buffer, ints, round);
        add_to(buffer, ints);
        ck_ok(clFinish(queue));
    }
    const cl_int *mapped = ck_made(clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 0,
                                                      ints * 4, 0, NULL, NULL, &error));
    ck_ints(mapped, ints, 8);
    ck_ok(clEnqueueUnmapMemObject(queue, buffer, (void *)mapped, 0, NULL, NULL));
    ck_ok(clReleaseMemObject(buffer));
    free(own);
}

static void make_all(cl_mem *buffer) {
    for (int i = 0; i < BUFFERS; i++) {
        buffer[i] = make_buffer(i % 2 ? CL_MEM_ALLOC_HOST_PTR : 0, ints_of(i) * 4, NULL);
        fill_by_map(buffer[i], ints_of(i), i);
        add_to(buffer[i], ints_of(i));
    }
}

START_TEST(all_is_right_within_it) {
    cl_mem buffer[BUFFERS];
    begin();
    for (int round = 0; round < 2; round++) { /* with what the first one left */
        make_all(buffer);
        for (int i = 0; i < BUFFERS; i++) {
            use_by_pointer(buffer[i], ints_of(i), 7 * i);
            fill_by_map(buffer[i], ints_of(i), round);
            use_own_memory(ints_of(i) + 64);
            ck_ok(clReleaseMemObject(buffer[i]));
        }
    }
    ck_ok(clFinish(queue));
    ck_assert_uint_le(locked.most, limit);
    ck_assert(limit == 0 || locked.most > limit / 2);
    end();
}
END_TEST

/* One block, in which the buffer fits exactly: it is all that the limit lets be, or a byte more. */
START_TEST(to_the_byte) {
    begin();
    cl_mem buffer = make_buffer(CL_MEM_ALLOC_HOST_PTR, MIB, NULL);
    fill_by_map(buffer, MIB / 4, 3);
    add_to(buffer, MIB / 4);
    ck_ok(clFinish(queue));
    ck_assert_uint_eq(locked.most, limit < MIB ? 0 : MIB);
    ck_ok(clReleaseMemObject(buffer));
    end();
}
END_TEST

/* What is only kept goes for what is wanted. */
START_TEST(kept_blocks_make_room) {
    begin();
    for (int i = 0; i < 3; i++) {
        size_t size = (size_t)(5 + i) * MIB;
        cl_mem buffer = make_buffer(CL_MEM_ALLOC_HOST_PTR, size, NULL);
        fill_by_map(buffer, size / 4, 3);
        ck_assert_uint_eq(now_locked(), size);
        ck_ok(clReleaseMemObject(buffer));
    }
    ck_assert_uint_le(locked.most, limit);
    end();
}
END_TEST

static void *make_one(void *size) {
    cl_mem buffer = make_buffer(CL_MEM_ALLOC_HOST_PTR, *(size_t *)size, NULL);
    fill_by_map(buffer, *(size_t *)size / 4, 3);
    return buffer;
}

static bool has_begun_to_unlock(void) {
    pthread_mutex_lock(&locked.lock);
    bool unlocks = locked.unlocks;
    pthread_mutex_unlock(&locked.lock);
    return unlocks;
}

/* While one thread gives back what is kept, the driver still has it: it is not another's yet. */
START_TEST(kept_blocks_count_until_they_are_gone) {
    size_t kept = 5 * MIB, first = 6 * MIB, second = 7 * MIB;
    pthread_t thread;
    void *buffer;
    begin();
    be_restless();
    ck_ok(clReleaseMemObject(make_one(&kept)));
    ck_assert_uint_eq(now_locked(), kept);
    pthread_mutex_lock(&locked.lock);
    locked.slow = true;
    locked.unlocks = false;
    pthread_mutex_unlock(&locked.lock);
    ck_assert_int_eq(pthread_create(&thread, NULL, make_one, &first), 0);
    for (int ms = 0; ms < NEVER && !has_begun_to_unlock(); ms++)
        usleep(1000);
    ck_ok(clReleaseMemObject(make_one(&second)));
    ck_assert_int_eq(pthread_join(thread, &buffer), 0);
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clFinish(queue));
    ck_assert_uint_le(locked.most, limit);
    rest();
    end();
}
END_TEST

START_TEST(idle_blocks_go_back) {
    cl_mem buffer[BUFFERS];
    begin();
    make_all(buffer);
    ck_ok(clFinish(queue));
    for (int i = 0; i < BUFFERS; i++)
        ck_ok(clReleaseMemObject(buffer[i]));
    ck_assert_uint_gt(locked.most, 0);
    for (int ms = 0; ms < NEVER && now_locked() > 0; ms++)
        usleep(1000);
    ck_assert_uint_eq(now_locked(), 0);
    end();
}
END_TEST

static void run_with(size_t bytes, const char *what) {
    char settings[96], arguments[64];
    snprintf(settings, sizeof(settings), "TUTTI_PINNED_LIMIT=%zu TUTTI_TRANSFER=staged", bytes);
    snprintf(arguments, sizeof(arguments), "--limit %zu %s", bytes, what);
    test_run_again(settings, arguments);
}

START_TEST(none) { run_with(0, "all_is_right_within_it"); }
END_TEST

START_TEST(little) { run_with((size_t)6 * MIB, "all_is_right_within_it"); }
END_TEST

START_TEST(just_enough_and_just_too_little) {
    run_with(MIB, "to_the_byte");
    run_with(MIB - 1, "to_the_byte");
}
END_TEST

START_TEST(room_for_one) { run_with((size_t)8 * MIB, "kept_blocks_make_room"); }
END_TEST

START_TEST(room_for_one_of_two) {
    run_with((size_t)8 * MIB, "kept_blocks_count_until_they_are_gone");
}
END_TEST

START_TEST(after_work) { run_with((size_t)64 * MIB, "idle_blocks_go_back"); }
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        none,      little, just_enough_and_just_too_little, room_for_one, room_for_one_of_two,
        after_work};
    const TTest *const inside[] = {all_is_right_within_it, to_the_byte, kept_blocks_make_room,
                                   kept_blocks_count_until_they_are_gone, idle_blocks_go_back};
    bool child = argc == 4 && strcmp(argv[1], "--limit") == 0;
    if (!pocl_gpu_begin("pthread", child ? change : NULL))
        return 0;
    if (!child)
        return test_main_bare(argc, argv, tests, COUNT(tests));
    char *some[] = {argv[0], argv[3], NULL};
    limit = strtoul(argv[2], NULL, 10);
    return test_main(2, some, inside, COUNT(inside));
}
