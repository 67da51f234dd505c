/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti, on devices in the host's memory: a transfer whose bytes move in the call that
 * enqueues it. Other threads' commands do not wait for it meanwhile, but for those that use its
 * bytes. Here it takes as long as the test likes, at a page of the program's memory that can't be
 * accessed yet.
 */
#include "support.h"

#include "task_counts.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 10000 };
enum { PAGE = 4096, INTS = 2 * PAGE / (int)sizeof(cl_int), PATIENCE = 20000, SOON = 100 /* ms */ };

static cl_int *slow; /* the second page can't be accessed */
static int gate[2];  /* who gets there waits for a byte of this */
static atomic_bool there, over;
static struct sigaction before;
static cl_mem used, other;

static void wait_at_page(int number, siginfo_t *information, void *unused) {
    char *page = (char *)slow + PAGE, *address = information->si_addr, byte;

    (void)unused;
    if (address < page || address >= page + PAGE) {
        sigaction(number, &before, NULL); /* no wait of ours: it comes again */
        return;
    }
    atomic_store(&there, true);
    if (read(gate[0], &byte, 1) != 1 || mprotect(page, PAGE, PROT_READ | PROT_WRITE) != 0)
        _exit(99);
}

static bool comes(atomic_bool *what, int milliseconds) {
    for (int i = 0; i < milliseconds && !atomic_load(what); i++)
        usleep(1000);
    return atomic_load(what);
}

static void fill(cl_mem mem, cl_int value) {
    ck_ok(clEnqueueFillBuffer(queue, mem, &value, sizeof(value), 0, 2 * PAGE, 0, NULL, NULL));
    ck_ok(clFinish(queue));
}

static void begin(void) {
    struct sigaction action = {.sa_sigaction = wait_at_page, .sa_flags = SA_SIGINFO | SA_NODEFER};

    used = make_buffer(0, 2 * PAGE, NULL);
    other = make_buffer(0, 2 * PAGE, NULL);
    fill(used, 1);
    fill(other, 2);
    ck_assert_int_eq(pipe(gate), 0);
    slow = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(slow != MAP_FAILED);
    for (int i = 0; i < INTS; i++)
        slow[i] = 7;
    ck_assert_int_eq(mprotect((char *)slow + PAGE, PAGE, PROT_NONE), 0);
    atomic_store(&there, false);
    atomic_store(&over, false);
    sigemptyset(&action.sa_mask);
    ck_assert_int_eq(sigaction(SIGSEGV, &action, &before), 0);
}

static void end(void) {
    sigaction(SIGSEGV, &before, NULL);
    munmap(slow, 2 * PAGE);
    close(gate[0]);
    close(gate[1]);
    ck_ok(clReleaseMemObject(used));
    ck_ok(clReleaseMemObject(other));
}

static void let_go_on(void) { ck_assert_int_eq(write(gate[1], "", 1), 1); }

static void *read_slowly(void *unused) {
    (void)unused;
    return (void *)(intptr_t)clEnqueueReadBuffer(queue, used, CL_TRUE, 0, 2 * PAGE, slow, 0, NULL,
                                                 NULL);
}

static void *write_slowly(void *unused) {
    (void)unused;
    return (void *)(intptr_t)clEnqueueWriteBuffer(queue, used, CL_TRUE, 0, 2 * PAGE, slow, 0, NULL,
                                                  NULL);
}

static void check(cl_mem mem, cl_int first, cl_int second) {
    cl_int seen[INTS];

    ck_ok(clEnqueueReadBuffer(queue, mem, CL_TRUE, 0, 2 * PAGE, seen, 0, NULL, NULL));
    for (int i = 0; i < INTS; i++)
        ck_assert_int_eq(seen[i], i < INTS / 2 ? first : second);
}

/* One thread transfers, and `body` does something meanwhile in another one. */
static void run_beside(void *(*transfer)(void *), void *(*body)(void *), bool waits) {
    pthread_t slow_one, quick_one;
    void *result[2];

    ck_assert_int_eq(pthread_create(&slow_one, NULL, transfer, NULL), 0);
    bool stands = comes(&there, PATIENCE);
    ck_assert_int_eq(pthread_create(&quick_one, NULL, body, NULL), 0);
    bool done = comes(&over, waits ? SOON : PATIENCE);
    let_go_on();
    pthread_join(slow_one, &result[0]);
    pthread_join(quick_one, &result[1]);
    ck_assert_ptr_null(result[0]); /* CL_SUCCESS */
    ck_assert_ptr_null(result[1]);
    ck_assert(stands);
    ck_assert_int_eq(done, !waits);
}

static void check_slow(cl_int value) {
    for (int i = 0; i < INTS; i++)
        ck_assert_int_eq(slow[i], value);
}

#define SKIP_BUT_AT_HOME()                                                                         \
    skip_if(!all_are_pocl() || getenv("TUTTI_TRANSFER"), "the devices have memory of their own")

/* In a queue of its own, on another buffer. */
static void *use_other(void *unused) {
    cl_int code, value = 5, seen = 0;
    cl_command_queue own = clCreateCommandQueue(context, device, 0, &code);

    (void)unused;
    code |= clEnqueueFillBuffer(own, other, &value, sizeof(value), 0, 2 * PAGE, 0, NULL, NULL);
    code |= clEnqueueReadBuffer(own, other, CL_TRUE, PAGE, sizeof(seen), &seen, 0, NULL, NULL);
    code |= clFinish(own);
    code |= clReleaseCommandQueue(own);
    atomic_store(&over, true);
    return (void *)(intptr_t)(code || seen != value);
}

START_TEST(others_go_on) {
    SKIP_BUT_AT_HOME();
    begin();
    run_beside(read_slowly, use_other, false);
    check_slow(1);
    check(other, 5, 5);
    end();
}
END_TEST

/* All of it at once is what the other thread's transfer sees, or nothing. */
static void *fill_half(void *unused) {
    cl_int value = 5, code;

    (void)unused;
    code = clEnqueueFillBuffer(queue, used, &value, sizeof(value), 0, PAGE, 0, NULL, NULL);
    code |= clFinish(queue);
    atomic_store(&over, true);
    return (void *)(intptr_t)code;
}

START_TEST(the_same_bytes_wait) {
    SKIP_BUT_AT_HOME();
    begin();
    run_beside(read_slowly, fill_half, true);
    check_slow(1);
    check(used, 5, 1);
    end();
    begin();
    run_beside(write_slowly, fill_half, true);
    check(used, 5, 7);
    end();
}
END_TEST

static cl_mem part;

/* It would take what is there for its own content. */
static void *make_part(void *unused) {
    const cl_buffer_region region = {0, PAGE};
    cl_int code, seen = 0;

    (void)unused;
    part = clCreateSubBuffer(used, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    code |= clEnqueueReadBuffer(queue, part, CL_TRUE, 0, sizeof(seen), &seen, 0, NULL, NULL);
    atomic_store(&over, true);
    return (void *)(intptr_t)code;
}

START_TEST(a_new_part_waits) {
    cl_int seen = 0;

    SKIP_BUT_AT_HOME();
    begin();
    run_beside(write_slowly, make_part, true);
    ck_ok(clEnqueueReadBuffer(queue, part, CL_TRUE, PAGE - sizeof(seen), sizeof(seen), &seen, 0,
                              NULL, NULL));
    ck_assert_int_eq(seen, 7);
    ck_ok(clReleaseMemObject(part));
    check(used, 7, 7);
    end();
}
END_TEST

/* What is released meanwhile stays until the call is over. */
static void *release_it(void *unused) {
    (void)unused;
    cl_int code = clReleaseMemObject(used);
    atomic_store(&over, true);
    return (void *)(intptr_t)code;
}

START_TEST(released_meanwhile) {
    SKIP_BUT_AT_HOME();
    begin();
    run_beside(read_slowly, release_it, false);
    check_slow(1);
    used = make_buffer(0, 4, NULL); /* for end */
    end();
}
END_TEST

/* Each as a whole, whoever dispatches it, by calls that meet again and again. */
static void *use_the_same(void *number) {
    cl_int code = CL_SUCCESS, mine[16], wrong = 0;
    cl_command_queue own = clCreateCommandQueue(context, device, 0, &code);

    for (int i = 0; i < ROUNDS && code == CL_SUCCESS && !wrong; i++) {
        cl_command_queue on = i % 3 ? own : queue;
        for (int j = 0; j < (int)COUNT(mine); j++)
            mine[j] = (int)(intptr_t)number * ROUNDS + i;
        code = clEnqueueWriteBuffer(on, used, CL_TRUE, 0, sizeof(mine), mine, 0, NULL, NULL);
        if (code == CL_SUCCESS)
            code = clEnqueueReadBuffer(on, used, CL_TRUE, 0, sizeof(mine), mine, 0, NULL, NULL);
        for (int j = 1; j < (int)COUNT(mine); j++)
            wrong |= mine[j] != mine[0];
    }
    code |= clReleaseCommandQueue(own);
    return (void *)(intptr_t)(code || wrong);
}

START_TEST(threads_that_meet) {
    pthread_t threads[THREADS];
    void *result;

    used = make_buffer(0, 2 * PAGE, NULL);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, use_the_same, (void *)(intptr_t)i), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &result);
        ck_assert_ptr_null(result);
    }
    ck_ok(clReleaseMemObject(used));
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        others_go_on, the_same_bytes_wait, a_new_part_waits, released_meanwhile, threads_that_meet,
    };

    return test_main(argc, argv, tests, COUNT(tests));
}
