/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: a driver that refuses a kernel, or whose kernel ends with an error, on each way that
 * kernels go. The command has the driver's error, those that wait for it fail for that, others do
 * not, and what it used is good afterwards. Calls of ours in PoCL's table do so with kernels of one
 * name; each way is tried in a process of its own, which says how its kernels went.
 */
#include "pocl_gpu.h"

#include <pthread.h>
#include <stdatomic.h>

#define ENDED_BY_ANOTHER CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
#define REFUSED CL_OUT_OF_RESOURCES
#define ENDED CL_MEM_OBJECT_ALLOCATION_FAILURE /* another one, to be told from the first */

enum {
    N = 64,
    BYTES = N * sizeof(cl_int),
    WARM = 20,
    MANY = 100,
    MOST = 256,
    ROUNDS = 3,
    TRIES = 20
};

static const char source[] =
    "kernel void add(global int *data, int value) { data[get_global_id(0)] += value; }\n"
    "kernel void failing(global int *data, int value) { data[get_global_id(0)] += value; }\n"
    /* Takes some time: x is odd. */
    "kernel void work(global int *data, int rounds) {\n"
    "    int x = (int)get_global_id(0) | 1;\n"
    "    for (int r = 0; r < rounds; r++) x = (x * 3 + 2) ^ ((x >> 7) & ~1);\n"
    "    data[get_global_id(0)] += x == 2 * rounds; }\n";

static atomic_bool refusing, breaking; /* launches of `failing` */

/* Events of launches that end with an error, kept so that no other one gets their address. */
static struct {
    pthread_mutex_t lock;
    cl_event event[MOST];
    cl_int status[MOST];
    unsigned count;
} broken = {.lock = PTHREAD_MUTEX_INITIALIZER};

static cl_int how_it_ended(cl_event event) {
    cl_int status = CL_COMPLETE;

    pthread_mutex_lock(&broken.lock);
    for (unsigned i = 0; i < broken.count && status == CL_COMPLETE; i++)
        if (broken.event[i] == event)
            status = broken.status[i];
    pthread_mutex_unlock(&broken.lock);
    return status;
}

static void break_event(cl_event event, cl_int status) {
    pthread_mutex_lock(&broken.lock);
    if (broken.count < MOST && real.clRetainEvent(event) == CL_SUCCESS) {
        broken.event[broken.count] = event;
        broken.status[broken.count++] = status;
    }
    pthread_mutex_unlock(&broken.lock);
}

static bool is_failing(cl_kernel kernel) {
    char name[64] = "";

    real.clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof(name), name, NULL);
    return strcmp(name, "failing") == 0;
}

static cl_int CL_API_CALL enqueue(cl_command_queue on, cl_kernel kernel, cl_uint dimensions,
                                  const size_t *offset, const size_t *global, const size_t *local,
                                  cl_uint count, const cl_event *list, cl_event *event) {
    bool failing = is_failing(kernel);

    if (failing && atomic_load(&refusing))
        return REFUSED;
    cl_int result = real.clEnqueueNDRangeKernel(on, kernel, dimensions, offset, global, local,
                                                count, list, event);
    if (result == CL_SUCCESS && failing && event && atomic_load(&breaking))
        break_event(*event, ENDED);
    for (cl_uint i = 0; i < count && result == CL_SUCCESS && event; i++)
        if (how_it_ended(list[i]) < 0)
            break_event(*event, ENDED_BY_ANOTHER);
    return result;
}

static cl_int CL_API_CALL get_event_info(cl_event event, cl_event_info what, size_t size,
                                         void *value, size_t *size_ret) {
    cl_int result = real.clGetEventInfo(event, what, size, value, size_ret);

    if (result == CL_SUCCESS && what == CL_EVENT_COMMAND_EXECUTION_STATUS && value &&
        *(cl_int *)value == CL_COMPLETE)
        *(cl_int *)value = how_it_ended(event);
    return result;
}

static cl_int CL_API_CALL wait_for_events(cl_uint count, const cl_event *list) {
    cl_int result = real.clWaitForEvents(count, list);

    for (cl_uint i = 0; i < count && result == CL_SUCCESS; i++)
        if (how_it_ended(list[i]) < 0)
            result = ENDED_BY_ANOTHER;
    return result;
}

static bool plays_gpu;

static void change(cl_icd_dispatch *table) {
    table->clEnqueueNDRangeKernel = enqueue;
    table->clGetEventInfo = get_event_info;
    table->clWaitForEvents = wait_for_events;
    if (!plays_gpu)
        table->clGetDeviceInfo = real.clGetDeviceInfo;
}

static cl_program program;
static cl_kernel add, failing, work;
static cl_mem mine, other; /* what the failing kernel uses, and what it does not, */
static cl_mem left;        /* nor do others than those that wait for it */

static cl_event run_after(cl_command_queue on, cl_kernel kernel, cl_mem buffer, cl_int value,
                          const cl_event *after) {
    const size_t all = N;
    cl_event event;

    ck_ok(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(kernel, 1, sizeof(value), &value));
    ck_ok(clEnqueueNDRangeKernel(on, kernel, 1, NULL, &all, NULL, after ? 1 : 0, after, &event));
    return event;
}

static void run(cl_command_queue on, cl_kernel kernel, cl_mem buffer, cl_int value) {
    const size_t all = N;

    ck_ok(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(kernel, 1, sizeof(value), &value));
    ck_ok(clEnqueueNDRangeKernel(on, kernel, 1, NULL, &all, NULL, 0, NULL, NULL));
}

static void write_all(cl_mem buffer, cl_int value) {
    cl_int bytes[N];

    for (int i = 0; i < N; i++)
        bytes[i] = value;
    write_ints(buffer, bytes, N);
}

static void check_all(cl_mem buffer, cl_int wanted) {
    cl_int seen[N];

    read_ints(buffer, seen, N);
    for (int i = 0; i < N; i++)
        ck_assert_msg(seen[i] == wanted, "[%d] is %d, expected %d", i, seen[i], wanted);
}

/* How long each of them takes is known then. */
static void begin(void) {
    program = make_program(source);
    add = make_kernel(program, "add");
    failing = make_kernel(program, "failing");
    work = make_kernel(program, "work");
    mine = make_buffer(0, BYTES, NULL);
    other = make_buffer(0, BYTES, NULL);
    left = make_buffer(0, BYTES, NULL);
    write_all(mine, 0);
    write_all(other, 0);
    for (int i = 0; i < WARM; i++) {
        run(queue, add, mine, 1);
        run(queue, failing, mine, -1);
        ck_ok(clFinish(queue));
        run(queue, work, other, 1);
        ck_ok(clFinish(queue));
    }
    write_all(other, 0);
}

static void end(void) {
    ck_ok(clReleaseMemObject(mine));
    ck_ok(clReleaseMemObject(other));
    ck_ok(clReleaseMemObject(left));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseKernel(failing));
    ck_ok(clReleaseKernel(work));
    ck_ok(clReleaseProgram(program));
}

/* What is before the failing kernel in its queue; `other` gets MANY ones more. */
enum before { NOTHING, SHORT_ONES, LONG_AND_SHORT_ONES };

static void enqueue_before(cl_command_queue on, enum before before) {
    if (before == LONG_AND_SHORT_ONES)
        run(on, work, other, 200000);
    for (int i = 0; i < MANY && before != NOTHING; i++)
        run(on, add, other, 1);
}

/* What was written and computed since is there. */
static void use_again(cl_command_queue on, enum before before) {
    check_all(other, 100 + (before == NOTHING ? 0 : MANY));
    run(on, add, left, 1);
    write_all(left, 2);
    run(on, add, left, 1);
    ck_ok(clFinish(on));
    check_all(left, 3);
    for (int i = 0; i < ROUNDS; i++) {
        write_all(mine, 10 * i);
        run(on, add, mine, 3);
        run(on, failing, mine, 4);
        ck_ok(clFinish(on));
        check_all(mine, 10 * i + 7);
    }
    write_all(other, 0);
}

static void fail_once(cl_command_queue on, enum before before, atomic_bool *how, cl_int code) {
    static cl_int back[N];
    cl_int value = 5;
    cl_event event, after[4], free_event;

    back[0] = 77;
    enqueue_before(on, before);
    write_all(mine, 1);
    write_all(left, 1);
    atomic_store(how, true);
    event = run_after(on, failing, mine, 1, NULL);
    after[0] = run_after(on, add, mine, 1, &event);
    ck_ok(clEnqueueReadBuffer(on, mine, CL_FALSE, 0, BYTES, back, 1, &event, &after[1]));
    ck_ok(clEnqueueFillBuffer(on, left, &value, 4, 0, BYTES, 1, &event, &after[2]));
    after[3] = run_after(on, add, left, 1, &after[0]);
    free_event = run_after(on, add, other, 100, NULL);
    ck_assert_cl(clWaitForEvents(1, &event), ENDED_BY_ANOTHER);
    ck_assert_cl(clFinish(on), code);
    ck_ok(clFinish(on)); /* told once */
    atomic_store(how, false);
    ck_assert_cl(event_status(event), code);
    for (size_t i = 0; i < COUNT(after); i++) {
        ck_assert_cl(event_status(after[i]), ENDED_BY_ANOTHER);
        ck_assert_cl(clWaitForEvents(1, &after[i]), ENDED_BY_ANOTHER);
        ck_ok(clReleaseEvent(after[i]));
    }
    ck_assert_int_eq(event_status(free_event), CL_COMPLETE);
    if (code == REFUSED) /* else it may have been on the device's queue with the kernel */
        ck_assert_int_eq(back[0], 77);
    ck_ok(clReleaseEvent(event));
    ck_ok(clReleaseEvent(free_event));
    use_again(on, before);
}

static void fail_all(cl_command_queue on, atomic_bool *how, cl_int code) {
    begin();
    for (int i = 0; i < ROUNDS; i++)
        for (enum before before = NOTHING; before <= LONG_AND_SHORT_ONES; before++)
            fail_once(on, before, how, code);
    end();
}

START_TEST(refused) {
    cl_command_queue plain = make_queue(0);

    fail_all(plain, &refusing, REFUSED);
    ck_ok(clReleaseCommandQueue(plain));
}
END_TEST

START_TEST(refused_out_of_order) {
    cl_command_queue loose = make_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);

    begin();
    fail_once(loose, NOTHING, &refusing, REFUSED);
    end();
    ck_ok(clReleaseCommandQueue(loose));
}
END_TEST

START_TEST(refused_with_times) { fail_all(queue, &refusing, REFUSED); }
END_TEST

/* Only a command whose times are asked for has an event of the driver's in any case. */
START_TEST(ended) { fail_all(queue, &breaking, ENDED); }
END_TEST

/* As those in a row have one, too. */
START_TEST(ended_without_times) {
    cl_command_queue plain = make_queue(0);

    fail_all(plain, &breaking, ENDED);
    ck_ok(clReleaseCommandQueue(plain));
}
END_TEST

/* Nobody looks at the event, but what comes after it is not executed, and clFinish tells it. */
START_TEST(ended_unseen) {
    cl_command_queue plain = make_queue(0);
    cl_int back[N] = {77};
    cl_event event, after;

    begin();
    for (enum before before = NOTHING; before <= LONG_AND_SHORT_ONES; before++) {
        write_all(mine, 1);
        enqueue_before(plain, before);
        atomic_store(&breaking, true);
        event = run_after(plain, failing, mine, 1, NULL);
        ck_ok(clReleaseEvent(event));
        for (int i = 0; i < MANY; i++)
            run(plain, add, other, 1);
        ck_assert_cl(clFinish(plain), ENDED);
        ck_ok(clFinish(plain));

        event = run_after(plain, failing, mine, 1, NULL);
        ck_ok(clEnqueueReadBuffer(plain, mine, CL_FALSE, 0, BYTES, back, 1, &event, &after));
        ck_ok(clReleaseEvent(event));
        ck_assert_cl(clWaitForEvents(1, &after), ENDED_BY_ANOTHER);
        ck_ok(clReleaseEvent(after));
        ck_assert_cl(clFinish(plain), ENDED);
        atomic_store(&breaking, false);
        ck_assert_int_eq(back[0], 77);
        write_all(other, 0);
    }
    end();
    ck_ok(clReleaseCommandQueue(plain));
}
END_TEST

/* Whose event nobody has; kernels behind it are executed. */
START_TEST(refused_unseen) {
    cl_command_queue plain = make_queue(0);

    begin();
    for (int i = 0; i < ROUNDS; i++)
        for (enum before before = NOTHING; before <= LONG_AND_SHORT_ONES; before++) {
            write_all(mine, 1);
            enqueue_before(plain, before);
            atomic_store(&refusing, true);
            run(plain, failing, mine, 1000);
            run(plain, add, mine, 1);
            run(plain, add, other, 100);
            ck_assert_cl(clFinish(plain), REFUSED);
            ck_ok(clFinish(plain));
            atomic_store(&refusing, false);
            check_all(mine, 2);
            use_again(plain, before);
        }
    end();
    ck_ok(clReleaseCommandQueue(plain));
}
END_TEST

/*
 * The child, which tells how often something was logged of its kernels. A device that executes them
 * in the call is asked for no event there, so that none ends with an error; in a row those without
 * times have one, too.
 */
static int run_child(const char *kind) {
    const TTest *const tests[] = {refused, refused_out_of_order, refused_with_times, refused_unseen,
                                  ended,   ended_without_times,  ended_unseen};
    size_t count = COUNT(tests);
    static const char *const ways[] = {"commands past StarPU", "in the call", "in a row",
                                       "as one task", "behind another one"};
    char devices[64];
    int status;

    snprintf(devices, sizeof(devices), "%s", getenv("POCL_DEVICES"));
    if (!pocl_gpu_begin(devices, change))
        return 0;
    if (!test_log_begin())
        return 99;
    if (strcmp(kind, "--row") != 0)
        count -= strcmp(kind, "--in-call") == 0 ? 3 : 2;
    status = test_main(1, NULL, tests, count);
    for (size_t i = 0; i < COUNT(ways); i++) {
        FILE *log = test_log_open();
        int lines = 0;
        char line[512];

        while (log && fgets(line, sizeof(line), log))
            lines += strstr(line, ways[i]) != NULL;
        if (log)
            fclose(log);
        printf("went %s: %s\n", ways[i], lines > 0 ? "yes" : "no");
    }
    test_log_end();
    return status;
}

/*
 * Some of the kernels went so; NULL: none past StarPU. Again, if the machine does something else
 * meanwhile: kernels that seem to take long go otherwise.
 */
static void try_with(const char *settings, const char *arguments, const char *way) {
    char wanted[128];
    bool went = false;

    snprintf(wanted, sizeof(wanted), "went %s: %s", way ? way : "commands past StarPU",
             way ? "yes" : "no");
    for (int i = 0; i < TRIES && !went; i++) {
        const char *said = test_run_again(settings, arguments);

        skip_if(strstr(said, "PoCL is not there"), "PoCL is not there");
        went = strstr(said, wanted) != NULL;
    }
    ck_assert_msg(went, "not \"%s\" with %s", wanted, settings);
}

START_TEST(through_starpu) {
    try_with("POCL_DEVICES='basic basic' TUTTI_SCHED=eager TUTTI_DIRECT=never", "--cpu", NULL);
    try_with("POCL_DEVICES='pthread pthread' TUTTI_SCHED=eager TUTTI_DIRECT=never", "--cpu", NULL);
    try_with("POCL_DEVICES=pthread TUTTI_DIRECT=never", "--cpu", NULL);
}
END_TEST

START_TEST(by_threads_that_wait) {
    try_with("POCL_DEVICES='basic basic'", "--in-call", "commands past StarPU");
}
END_TEST

START_TEST(in_the_call) { try_with("POCL_DEVICES=basic", "--in-call", "in the call"); }
END_TEST

START_TEST(straight_to_a_device) {
    try_with("POCL_DEVICES=pthread", "--cpu", "commands past StarPU");
    try_with("POCL_DEVICES='pthread pthread'", "--cpu", "commands past StarPU");
}
END_TEST

START_TEST(in_a_row) { try_with("POCL_DEVICES=pthread TUTTI_DIRECT=row", "--row", "in a row"); }
END_TEST

START_TEST(in_a_batch) {
    try_with("POCL_DEVICES='pthread pthread' TUTTI_BATCH=always TUTTI_DIRECT=never", "--cpu",
             "as one task");
    try_with("POCL_DEVICES='basic basic' TUTTI_BATCH=always TUTTI_DIRECT=never", "--cpu",
             "as one task");
}
END_TEST

START_TEST(on_a_gpu) { try_with("POCL_DEVICES=pthread", "--gpu", "commands past StarPU"); }
END_TEST

START_TEST(on_a_gpu_in_a_batch) {
    try_with("POCL_DEVICES=pthread TUTTI_TRANSFER=staged TUTTI_BATCH=always TUTTI_DIRECT=never",
             "--gpu", "as one task");
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        through_starpu, by_threads_that_wait, in_the_call, straight_to_a_device,
        in_a_row,       in_a_batch,           on_a_gpu,    on_a_gpu_in_a_batch,
    };

    const char *kind = argc == 2 ? argv[1] : "";

    plays_gpu = strcmp(kind, "--gpu") == 0;
    if (strncmp(kind, "--", 2) == 0)
        return run_child(kind);
    return test_main_bare(argc, argv, tests, COUNT(tests));
}
