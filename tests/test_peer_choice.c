/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: whether the driver of two GPUs copies between them is measured at the first start,
 * and kept. Each process has a driver, for which PoCL stands in, that takes its time for some
 * commands.
 */
#define _GNU_SOURCE
#include "pocl_gpu.h"
#include "traffic.h"

#include <glob.h>
#include <limits.h>
#include <stdatomic.h>

/* More than PoCL takes itself, beside whatever else the machine does. µs. */
#define SLOW 5000
enum { SHORT = 4096, LONG = 8 << 20, STEPS = 24, DISTURBED = 5 /* times */ };

static bool slow_host, slow_driver, slow_long, slow_common, slow_one;

/* Copies to each of the driver's devices while kernels run. */
static atomic_bool counts;
static atomic_int copies[2];

/* Is the queue's context one of several devices? */
static bool is_common(cl_command_queue on) {
    cl_context of = NULL;
    cl_uint devices = 0;
    real.clGetCommandQueueInfo(on, CL_QUEUE_CONTEXT, sizeof(of), &of, NULL);
    real.clGetContextInfo(of, CL_CONTEXT_NUM_DEVICES, sizeof(devices), &devices, NULL);
    return devices > 1;
}

/* Of the driver's two, is the queue's device the second one? */
static bool is_second(cl_command_queue on) {
    cl_device_id of = NULL, devices[2] = {NULL, NULL};
    cl_platform_id pocl = NULL;
    real.clGetCommandQueueInfo(on, CL_QUEUE_DEVICE, sizeof(cl_device_id), &of, NULL);
    real.clGetDeviceInfo(of, CL_DEVICE_PLATFORM, sizeof(cl_platform_id), &pocl, NULL);
    real.clGetDeviceIDs(pocl, CL_DEVICE_TYPE_ALL, 2, devices, NULL);
    return of == devices[1];
}

static void pause_if(bool slow) {
    if (slow)
        usleep(SLOW);
}

static cl_int CL_API_CALL enqueue_read(cl_command_queue on, cl_mem mem, cl_bool blocking,
                                       size_t offset, size_t size, void *to, cl_uint count,
                                       const cl_event *list, cl_event *event) {
    pause_if(slow_host && size >= SHORT);
    return real.clEnqueueReadBuffer(on, mem, blocking, offset, size, to, count, list, event);
}

static cl_int CL_API_CALL enqueue_write(cl_command_queue on, cl_mem mem, cl_bool blocking,
                                        size_t offset, size_t size, const void *from, cl_uint count,
                                        const cl_event *list, cl_event *event) {
    pause_if(slow_common && size < SHORT && is_common(on));
    return real.clEnqueueWriteBuffer(on, mem, blocking, offset, size, from, count, list, event);
}

static cl_int CL_API_CALL enqueue_copy(cl_command_queue on, cl_mem from, cl_mem to,
                                       size_t from_offset, size_t to_offset, size_t size,
                                       cl_uint count, const cl_event *list, cl_event *event) {
    bool second = is_second(on);
    if (atomic_load(&counts))
        atomic_fetch_add(&copies[second], 1);
    pause_if(slow_driver);
    for (int i = 0; i < 20; i++) /* longer than the slow host takes for all chunks */
        pause_if((slow_long && size > SHORT) || (slow_one && second));
    return real.clEnqueueCopyBuffer(on, from, to, from_offset, to_offset, size, count, list, event);
}

static void change(cl_icd_dispatch *driver) {
    driver->clEnqueueReadBuffer = enqueue_read;
    driver->clEnqueueWriteBuffer = enqueue_write;
    driver->clEnqueueCopyBuffer = enqueue_copy;
}

/* The child: two buffers that wander, a short one and a long one. */
START_TEST(probe) {
    static const size_t sizes[] = {SHORT, LONG};
    cl_program program = make_program(common_source);
    cl_kernel add = make_kernel(program, "add");
    cl_int one = 1;

    atomic_store(&counts, true);
    for (int i = 0; i < 2; i++) {
        size_t ints = sizes[i] / sizeof(cl_int);
        cl_int *values = calloc(ints, sizeof(*values));
        cl_mem buffer = make_buffer(CL_MEM_COPY_HOST_PTR, sizes[i], values);

        ck_ok(clSetKernelArg(add, 0, sizeof(buffer), &buffer));
        ck_ok(clSetKernelArg(add, 1, sizeof(one), &one));
        for (int j = 0; j < STEPS; j++)
            launch(add, ints);
        read_ints(buffer, values, (int)ints);
        ck_all(values, (int)ints, STEPS);
        ck_ok(clReleaseMemObject(buffer));
        free(values);
    }
    printf("# %d and %d copies\n", atomic_load(&copies[0]), atomic_load(&copies[1]));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}
END_TEST

static char directory[64];

/* What a process with that driver, "host,long" for instance, said. */
static const char *run(const char *slow, const char *settings) {
    char all[384];

    snprintf(all, sizeof(all),
             "XDG_CACHE_HOME=%s STARPU_HOME=%s TUTTI_SCHED=random TUTTI_BATCH=never "
             "TUTTI_LOG=debug TUTTI_TEST_SLOW=%s %s",
             directory, directory, slow, settings);
    return test_run_again(all, "--probe");
}

static bool measured(const char *said) { return strstr(said, "through host memory,") != NULL; }

static bool is_tolled(const char *said) {
    return strstr(said, "small commands take longer in a common context") != NULL;
}

/* The lines that tell why. */
static const char *reasons(const char *said) {
    static char text[2048];
    size_t length = 0;
    for (const char *line = said; line && length < sizeof(text); line = strchr(line, '\n')) {
        line += *line == '\n';
        int size = (int)strcspn(line, "\n");
        bool tells = memmem(line, (size_t)size, "through host memory", 19) ||
                     memmem(line, (size_t)size, "common context", 14);
        if (tells)
            length +=
                (size_t)snprintf(text + length, sizeof(text) - length, "\n# %.*s", size, line);
    }
    return length ? text : "nothing was measured";
}

static void ck_straight(const char *said, bool short_ones, bool long_ones) {
    bool both = (strstr(said, "4096 bytes straight to") != NULL) == short_ones &&
                (strstr(said, "8388608 bytes straight to") != NULL) == long_ones;
    ck_assert_msg(both, "short ones were to go straight: %d, long ones: %d: %s", short_ones,
                  long_ones, reasons(said));
}

static void begin(void) {
    snprintf(directory, sizeof(directory), "/tmp/tutti-peers-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
}

static void end(void) {
    char command[96];

    snprintf(command, sizeof(command), "rm -r %s", directory);
    ck_assert_int_eq(system(command), 0);
}

/* Where it was kept; there is one file, and no other beside it. */
static const char *kept(void) {
    static char path[PATH_MAX];
    char pattern[128];
    glob_t found;

    snprintf(pattern, sizeof(pattern), "%s/.starpu/tutti/*/tutti-peers*", directory);
    ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
    ck_assert_uint_eq(found.gl_pathc, 1);
    snprintf(path, sizeof(path), "%s", found.gl_pathv[0]);
    globfree(&found);
    return path;
}

/* In a new directory, until no other process made small commands seem longer in a common context.
 */
static const char *run_undisturbed(const char *slow) {
    begin();
    const char *said = run(slow, "");
    for (int i = 0; i < DISTURBED && is_tolled(said) && !strstr(slow, "common"); i++) {
        end();
        begin();
        said = run(slow, "");
    }
    return said;
}

/* What that driver copies goes straight: as measured by one process, and kept for the next. */
static void ck_choice(const char *slow, bool short_ones, bool long_ones) {
    for (int i = 0; i < 2; i++) {
        const char *said = i ? run(slow, "") : run_undisturbed(slow);
        ck_assert_int_eq(measured(said), i == 0);
        ck_straight(said, short_ones, long_ones);
        kept();
    }
    end();
}

START_TEST(a_fast_driver_copies) { ck_choice("host", true, true); }
END_TEST

START_TEST(a_slow_driver_does_not) { ck_choice("driver", false, false); }
END_TEST

START_TEST(each_size_by_itself) { ck_choice("host,long", true, false); }
END_TEST

START_TEST(each_pair_by_itself) {
    int to_first = -1, to_second = -1;

    for (int i = 0; i < 2; i++) { /* measured, and kept */
        const char *said = strstr(i ? run("host,one", "") : run_undisturbed("host,one"), "# ");
        ck_assert_ptr_nonnull(said);
        ck_assert_int_eq(sscanf(said, "# %d and %d copies", &to_first, &to_second), 2);
        ck_assert_int_gt(to_first, 0);
        ck_assert_int_eq(to_second, 0);
    }
    end();
}
END_TEST

/* What makes all commands slower is not worth any copy. */
START_TEST(a_common_context_may_cost_too_much) { ck_choice("host,common", false, false); }
END_TEST

START_TEST(other_settings_measure_nothing) {
    begin();
    const char *said = run("host", "TUTTI_TRANSFER=direct");
    ck_assert(!measured(said));
    ck_straight(said, false, false);
    said = run("driver", "TUTTI_TRANSFER=peer");
    ck_assert(!measured(said));
    ck_straight(said, true, true);
    end();
}
END_TEST

START_TEST(damaged_files_are_ignored) {
    static const char *const texts[] = {"", "tutti peers 1 0\nend\n", "some other file\n"};

    begin();
    run("host", "");
    for (size_t i = 0; i <= COUNT(texts); i++) {
        const char *path = kept();
        FILE *file = NULL;
        if (i < COUNT(texts)) {
            ck_assert_ptr_nonnull(file = fopen(path, "w"));
            ck_assert_int_ge(fputs(texts[i], file), 0);
            ck_assert_int_eq(fclose(file), 0);
        } else {
            ck_assert_int_eq(truncate(path, 100), 0);
        }
        const char *said = run("host", "");
        ck_assert_ptr_nonnull(strstr(said, "is damaged"));
        ck_assert(measured(said));
        ck_assert(!measured(run("host", "")));
    }
    end();
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const child[] = {probe};
    const TTest *const tests[] = {a_fast_driver_copies,
                                  a_slow_driver_does_not,
                                  each_size_by_itself,
                                  each_pair_by_itself,
                                  a_common_context_may_cost_too_much,
                                  other_settings_measure_nothing,
                                  damaged_files_are_ignored};
    const char *slow = getenv("TUTTI_TEST_SLOW");

    if (argc < 2 || strcmp(argv[1], "--probe") != 0)
        return pocl_gpu_begin("pthread pthread", NULL)
                   ? test_main_bare(argc, argv, tests, COUNT(tests))
                   : 0;
    slow_host = strstr(slow, "host") != NULL;
    slow_driver = strstr(slow, "driver") != NULL;
    slow_long = strstr(slow, "long") != NULL;
    slow_common = strstr(slow, "common") != NULL;
    slow_one = strstr(slow, "one") != NULL;
    return pocl_gpu_begin("pthread pthread", change) ? test_main(1, argv, child, COUNT(child)) : 0;
}
