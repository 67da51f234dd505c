/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti, over one device of PoCL that executes in the call: threads of the program wait in one
 * queue, each for its own kernel, and execute what comes before it. One of them may find that it
 * was done while the device was another's: the next one must get it then.
 */
#include "support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { N = 64, THREADS = 4, ROUNDS = 4, TIMES = 100, PATIENCE = 20 /* s */ };

static const char source[] = "kernel void work(global int *data, int rounds) {"
                             "    uint noise = get_global_id(0);"
                             "    for (int i = 0; i < rounds; i++)"
                             "        noise = noise * 1664525u + 1013904223u;"
                             "    data[get_global_id(0)] += noise == 7u && rounds < 0 ? 0 : 1;"
                             "}";

static cl_program program;
static atomic_int finished, wrong;

static bool work(cl_kernel kernel, cl_mem data, int round) {
    const size_t items = N;
    cl_int rounds = 1 << 13, seen[N];
    if (clSetKernelArg(kernel, 0, sizeof(data), &data) != CL_SUCCESS ||
        clSetKernelArg(kernel, 1, sizeof(rounds), &rounds) != CL_SUCCESS ||
        clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL) != CL_SUCCESS ||
        clEnqueueReadBuffer(queue, data, CL_TRUE, 0, sizeof(seen), seen, 0, NULL, NULL) !=
            CL_SUCCESS)
        return false;
    return seen[0] == round + 1 && seen[N - 1] == round + 1;
}

static void *run(void *unused) {
    cl_int zeros[N] = {0}, failed, code;
    cl_kernel kernel = clCreateKernel(program, "work", &failed);
    cl_mem data = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof(zeros), zeros, &code);
    (void)unused;
    bool right = failed == CL_SUCCESS && code == CL_SUCCESS;
    for (int i = 0; i < ROUNDS && right; i++)
        right = work(kernel, data, i);
    if (!right)
        atomic_fetch_add(&wrong, 1);
    clReleaseMemObject(data);
    clReleaseKernel(kernel);
    atomic_fetch_add(&finished, 1);
    return NULL;
}

static void run_threads(void) {
    pthread_t threads[THREADS];
    atomic_store(&finished, 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run, NULL), 0);
    for (int i = 0; i < PATIENCE * 1000 && atomic_load(&finished) < THREADS; i++)
        usleep(1000);
    ck_assert_msg(atomic_load(&finished) == THREADS, "%d of %d threads came to their end",
                  atomic_load(&finished), THREADS);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* The last ones have nobody after them who would wake them by chance. */
START_TEST(each_gets_the_device) {
    program = make_program(source);
    for (int i = 0; i < TIMES; i++)
        run_threads();
    ck_assert_int_eq(atomic_load(&wrong), 0);
    ck_ok(clReleaseProgram(program));
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {each_gets_the_device};
    setenv("POCL_DEVICES", "basic", 1);
    return test_main(argc, argv, tests, COUNT(tests));
}
