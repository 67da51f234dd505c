/* SPDX-License-Identifier: MIT */
#include "support.h"

#include "crash.h"

#include <sys/mman.h>
#include <unistd.h>

cl_platform_id platform;
cl_device_id device;
cl_context context;
cl_command_queue queue;
cl_int error;

static cl_context second_context;
static cl_command_queue second_queue;
static char platform_name[256];
static bool bare;

/* Shared with the child when CK_FORK asks for processes. */
struct notes {
    char skip[256];
    char excuses[1024];
};
static struct notes *notes;

const char common_source[] = "kernel void set(global int *out, int value)\n"
                             "{ out[get_global_id(0)] = value; }\n"
                             "kernel void add(global int *data, int value)\n"
                             "{ data[get_global_id(0)] += value; }\n"
                             "kernel void copy(global const int *in, global int *out)\n"
                             "{ out[get_global_id(0)] = in[get_global_id(0)]; }\n"
                             "kernel void slow(global int *data, int rounds)\n"
                             "{ uint x = data[get_global_id(0)];\n"
                             "  for (int i = 0; i < rounds; i++) x = x * 1664525u + 1013904223u;\n"
                             "  data[get_global_id(0)] = x; }\n";

static void choose_platform(void) {
    const char *wanted = getenv("TUTTI_TEST_PLATFORM");
    cl_platform_id all[32];
    cl_uint count = 0;

    if (!wanted || !*wanted)
        wanted = "Tutti";
    if (clGetPlatformIDs(COUNT(all), all, &count) != CL_SUCCESS)
        count = 0;
    if (count > COUNT(all))
        count = COUNT(all);
    for (cl_uint i = 0; i < count; i++) {
        if (clGetPlatformInfo(all[i], CL_PLATFORM_NAME, sizeof(platform_name), platform_name,
                              NULL) == CL_SUCCESS &&
            strstr(platform_name, wanted)) {
            platform = all[i];
            return;
        }
    }
    printf("Bail out! no platform \"%s\" among %u\n", wanted, count);
    exit(99);
}

static void choose_device(void) {
    cl_int code = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);

    if (code != CL_SUCCESS) {
        printf("Bail out! no device on %s: %s\n", platform_name, cl_error_name(code));
        exit(99);
    }
}

void test_choose_device(void) {
    choose_platform();
    choose_device();
}

static void set_up(void) {
    cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)platform, 0};

    context = ck_made(clCreateContext(properties, 1, &device, NULL, NULL, &error));
    queue = ck_made(clCreateCommandQueue(context, device, CL_QUEUE_PROFILING_ENABLE, &error));
}

static void tear_down(void) {
    if (second_queue)
        clReleaseCommandQueue(second_queue);
    if (second_context)
        clReleaseContext(second_context);
    if (queue)
        clReleaseCommandQueue(queue);
    if (context)
        clReleaseContext(context);
    second_queue = queue = NULL;
    second_context = context = NULL;
}

static void print_one_line(const char *text) {
    for (; *text; text++)
        putchar(*text == '\n' ? ' ' : *text == '#' ? '*' : *text);
}

/* One runner per test, so that its line is out before a later test may crash the process. */
static bool run_one(const TTest *test, size_t number) {
    const char *fork_wanted = getenv("CK_FORK");
    Suite *suite = suite_create("tutti");
    TCase *tcase = tcase_create(test->name);
    SRunner *runner = srunner_create(suite);
    TestResult **results;
    bool passed;

    memset(notes, 0, sizeof(*notes));
    tcase_set_timeout(tcase, 0);
    if (!bare)
        tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, test);
    suite_add_tcase(suite, tcase);
    srunner_set_fork_status(runner,
                            fork_wanted && strcmp(fork_wanted, "yes") == 0 ? CK_FORK : CK_NOFORK);
    srunner_run_all(runner, CK_SILENT);

    results = srunner_results(runner);
    passed = tr_rtype(results[0]) == CK_PASS;
    printf("%s %zu - %s", passed ? "ok" : "not ok", number, test->name);
    if (passed && notes->skip[0]) {
        printf(" # SKIP ");
        print_one_line(notes->skip);
    }
    putchar('\n');
    if (!passed) {
        const char *file = tr_lfile(results[0]);

        printf("# %s:%d: ", file ? file : "?", tr_lno(results[0]));
        print_one_line(tr_msg(results[0]) ? tr_msg(results[0]) : "no message");
        putchar('\n');
    }
    fputs(notes->excuses, stdout);
    fflush(stdout);
    free(results);
    srunner_free(runner);
    return passed;
}

static bool chosen(const char *name, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], name) == 0)
            return true;
    }
    return argc <= 1;
}

int test_main(int argc, char **argv, const TTest *const *tests, size_t count) {
    size_t number = 0, planned = 0, failed = 0;

    test_tell_crashes();
    notes = mmap(NULL, sizeof(*notes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (notes == MAP_FAILED)
        return 99;
    if (!bare)
        test_choose_device();
    for (size_t i = 0; i < count; i++)
        planned += chosen(tests[i]->name, argc, argv);
    printf("1..%zu\n", planned);
    fflush(stdout);
    for (size_t i = 0; i < count; i++) {
        if (chosen(tests[i]->name, argc, argv))
            failed += !run_one(tests[i], ++number);
    }
    munmap(notes, sizeof(*notes));
    return failed ? 1 : 0;
}

int test_main_bare(int argc, char **argv, const TTest *const *tests, size_t count) {
    bare = true;
    return test_main(argc, argv, tests, count);
}

bool test_platform_is(const char *part) {
    /* With this set nothing is skipped, to see whether a reason still holds. */
    return !getenv("TUTTI_TEST_ASK_ALL") && strstr(platform_name, part) != NULL;
}

int test_version_of(const char *text) {
    int major = 0, minor = 0;

    ck_assert_msg(sscanf(text, "OpenCL %d.%d ", &major, &minor) == 2, "\"%s\"", text);
    return major * 100 + minor * 10;
}

int test_device_version(void) {
    char text[1024];

    ck_ok(clGetDeviceInfo(device, CL_DEVICE_VERSION, sizeof(text), text, NULL));
    return test_version_of(text);
}

bool no_device_memory(void) {
    return get_info(cl_bool, clGetDeviceInfo, device, CL_DEVICE_HOST_UNIFIED_MEMORY) &&
           !getenv("TUTTI_TRANSFER") && !getenv("TUTTI_DEVICE_MEMORY");
}

void test_skip(const char *reason) { snprintf(notes->skip, sizeof(notes->skip), "%s", reason); }

bool excused(const char *part, const char *reason) {
    size_t used = strlen(notes->excuses);

    if (!test_platform_is(part))
        return false;
    snprintf(notes->excuses + used, sizeof(notes->excuses) - used, "# not asked of %s: %s\n", part,
             reason);
    return true;
}

size_t test_size(const char *variable, size_t otherwise) {
    const char *text = getenv(variable);

    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

FILE *test_start_again(const char *settings, const char *arguments) {
    char command[512];

    ck_assert_int_lt(snprintf(command, sizeof(command), "%s /proc/%ld/exe %s 2>&1", settings,
                              (long)getpid(), arguments),
                     sizeof(command));
    FILE *child = popen(command, "r");
    ck_assert_ptr_nonnull(child);
    return child;
}

const char *test_finish_again(FILE *child) {
    static char said[1 << 20];

    said[fread(said, 1, sizeof(said) - 1, child)] = 0;
    int status = pclose(child);
    ck_assert_msg(status == 0 && !strstr(said, "not ok"), "it ended with %#x, and said %.2000s",
                  status, said);
    return said;
}

const char *test_run_again(const char *settings, const char *arguments) {
    return test_finish_again(test_start_again(settings, arguments));
}

cl_context other_context(void) {
    if (!second_context)
        second_context = ck_made(clCreateContext(NULL, 1, &device, NULL, NULL, &error));
    return second_context;
}

cl_command_queue other_queue(void) {
    if (!second_queue)
        second_queue = ck_made(clCreateCommandQueue(other_context(), device, 0, &error));
    return second_queue;
}

cl_command_queue make_queue(cl_command_queue_properties properties) {
    return ck_made(clCreateCommandQueue(context, device, properties, &error));
}

cl_mem make_buffer(cl_mem_flags flags, size_t size, void *host) {
    return ck_made(clCreateBuffer(context, flags, size, host, &error));
}

cl_program make_program(const char *source) { return make_program_with(source, NULL); }

cl_program make_program_with(const char *source, const char *options) {
    cl_program program = ck_made(clCreateProgramWithSource(context, 1, &source, NULL, &error));

    ck_ok(clBuildProgram(program, 0, NULL, options, NULL, NULL));
    return program;
}

cl_kernel make_kernel(cl_program program, const char *name) {
    return ck_made(clCreateKernel(program, name, &error));
}

cl_event make_user_event(void) { return ck_made(clCreateUserEvent(context, &error)); }

void launch(cl_kernel kernel, size_t global) {
    ck_ok(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL));
}

void write_ints(cl_mem buffer, const cl_int *from, size_t count) {
    ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, count * sizeof(cl_int), from, 0, NULL,
                               NULL));
}

void read_ints(cl_mem buffer, cl_int *to, size_t count) {
    ck_ok(
        clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, count * sizeof(cl_int), to, 0, NULL, NULL));
}

cl_uint map_count(cl_mem mem) {
    return get_info(cl_uint, clGetMemObjectInfo, mem, CL_MEM_MAP_COUNT);
}

void ck_no_maps(cl_mem mem) {
    /* PoCL 3.1 counts a map down a moment after the end of the unmap that it reports. */
    for (int i = 0; i < 1000 && test_platform_is(POCL) && map_count(mem) > 0; i++)
        usleep(10000);
    ck_assert_uint_eq(map_count(mem), 0);
}

cl_int event_status(cl_event event) {
    return get_info(cl_int, clGetEventInfo, event, CL_EVENT_COMMAND_EXECUTION_STATUS);
}

uint32_t next_random(uint32_t *state) {
    /* xorshift32 never leaves 0, so a seed of 0 is moved. */
    uint32_t x = *state ? *state : 0x9E3779B9u;

    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return *state = x;
}

const char *cl_error_name(cl_int code) {
    static char other[32];

#define NAME(word)                                                                                 \
    case word:                                                                                     \
        return #word
    switch (code) {
        NAME(CL_SUCCESS);
        NAME(CL_DEVICE_NOT_FOUND);
        NAME(CL_DEVICE_NOT_AVAILABLE);
        NAME(CL_COMPILER_NOT_AVAILABLE);
        NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE);
        NAME(CL_OUT_OF_RESOURCES);
        NAME(CL_OUT_OF_HOST_MEMORY);
        NAME(CL_PROFILING_INFO_NOT_AVAILABLE);
        NAME(CL_MEM_COPY_OVERLAP);
        NAME(CL_IMAGE_FORMAT_MISMATCH);
        NAME(CL_IMAGE_FORMAT_NOT_SUPPORTED);
        NAME(CL_MAP_FAILURE);
        NAME(CL_MISALIGNED_SUB_BUFFER_OFFSET);
        NAME(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        NAME(CL_COMPILE_PROGRAM_FAILURE);
        NAME(CL_LINKER_NOT_AVAILABLE);
        NAME(CL_LINK_PROGRAM_FAILURE);
        NAME(CL_DEVICE_PARTITION_FAILED);
        NAME(CL_KERNEL_ARG_INFO_NOT_AVAILABLE);
        NAME(CL_INVALID_VALUE);
        NAME(CL_INVALID_DEVICE_TYPE);
        NAME(CL_INVALID_PLATFORM);
        NAME(CL_INVALID_DEVICE);
        NAME(CL_INVALID_CONTEXT);
        NAME(CL_INVALID_QUEUE_PROPERTIES);
        NAME(CL_INVALID_COMMAND_QUEUE);
        NAME(CL_INVALID_HOST_PTR);
        NAME(CL_INVALID_MEM_OBJECT);
        NAME(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
        NAME(CL_INVALID_IMAGE_SIZE);
        NAME(CL_INVALID_SAMPLER);
        NAME(CL_INVALID_BINARY);
        NAME(CL_INVALID_BUILD_OPTIONS);
        NAME(CL_INVALID_PROGRAM);
        NAME(CL_INVALID_PROGRAM_EXECUTABLE);
        NAME(CL_INVALID_KERNEL_NAME);
        NAME(CL_INVALID_KERNEL_DEFINITION);
        NAME(CL_INVALID_KERNEL);
        NAME(CL_INVALID_ARG_INDEX);
        NAME(CL_INVALID_ARG_VALUE);
        NAME(CL_INVALID_ARG_SIZE);
        NAME(CL_INVALID_KERNEL_ARGS);
        NAME(CL_INVALID_WORK_DIMENSION);
        NAME(CL_INVALID_WORK_GROUP_SIZE);
        NAME(CL_INVALID_WORK_ITEM_SIZE);
        NAME(CL_INVALID_GLOBAL_OFFSET);
        NAME(CL_INVALID_EVENT_WAIT_LIST);
        NAME(CL_INVALID_EVENT);
        NAME(CL_INVALID_OPERATION);
        NAME(CL_INVALID_GL_OBJECT);
        NAME(CL_INVALID_BUFFER_SIZE);
        NAME(CL_INVALID_MIP_LEVEL);
        NAME(CL_INVALID_GLOBAL_WORK_SIZE);
        NAME(CL_INVALID_PROPERTY);
        NAME(CL_INVALID_IMAGE_DESCRIPTOR);
        NAME(CL_INVALID_COMPILER_OPTIONS);
        NAME(CL_INVALID_LINKER_OPTIONS);
        NAME(CL_INVALID_DEVICE_PARTITION_COUNT);
    }
#undef NAME
    snprintf(other, sizeof(other), "error %d", code);
    return other;
}

void test_prefer_pocl(void) {
    char path[1024];
    const char *vendors = getenv("OCL_ICD_VENDORS");
    snprintf(path, sizeof(path), "%s/pocl.icd", vendors ? vendors : ".");
    if (access(path, R_OK) == 0)
        setenv("TUTTI_DEVICES", "portable", 0);
}

static char log_path[96];
static long log_read;

bool test_log_begin(void) {
    const char *directory = getenv("TMPDIR");
    char setting[sizeof(log_path) + 8];

    snprintf(log_path, sizeof(log_path), "%.64s/tutti-log.XXXXXX", directory ? directory : "/tmp");
    int file = mkstemp(log_path);
    if (file < 0)
        return false;
    close(file);
    snprintf(setting, sizeof(setting), "debug:%s", log_path);
    return setenv("TUTTI_LOG", setting, 1) == 0;
}

void test_log_end(void) { unlink(log_path); }

FILE *test_log_open(void) {
    FILE *log = fopen(log_path, "r");
    if (log)
        fseek(log, log_read, SEEK_SET);
    return log;
}

void test_log_close(FILE *log) {
    log_read = ftell(log);
    fclose(log);
}

int test_log_count(const char *part) {
    char line[512];
    int count = 0;
    FILE *log = test_log_open();
    if (!log)
        return 0;
    while (fgets(line, sizeof(line), log))
        count += strstr(line, part) != NULL;
    test_log_close(log);
    return count;
}

int test_went_directly(void) { return test_log_count("past StarPU"); }

int test_main_logged(int argc, char **argv, const TTest *const *tests, size_t count) {
    if (!test_log_begin())
        return 99;
    int status = test_main(argc, argv, tests, count);
    test_log_end();
    return status;
}
