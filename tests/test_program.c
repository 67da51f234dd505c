/* SPDX-License-Identifier: MIT */
#include "support.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

static const char broken_source[] =
    "kernel void broken(global int *out) { out[0] = undeclared; }\n";

static cl_program from_source(const char *text) {
    return ck_made(clCreateProgramWithSource(context, 1, &text, NULL, &error));
}

static cl_build_status status_of(cl_program program) {
    cl_build_status status = 77;

    ck_ok(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_STATUS, sizeof(status), &status,
                                NULL));
    return status;
}

static cl_program_binary_type binary_type_of(cl_program program) {
    cl_program_binary_type type = 99;

    ck_ok(
        clGetProgramBuildInfo(program, device, CL_PROGRAM_BINARY_TYPE, sizeof(type), &type, NULL));
    return type;
}

static char *text_of(cl_program program, cl_program_build_info name) {
    size_t size;
    char *text;

    ck_ok(clGetProgramBuildInfo(program, device, name, 0, NULL, &size));
    text = malloc(size + 1);
    ck_ok(clGetProgramBuildInfo(program, device, name, size, text, NULL));
    text[size] = 0;
    return text;
}

/* What the kernel "set" of the program leaves in a buffer. */
static cl_int run_set(cl_program program, cl_int value) {
    cl_kernel set = make_kernel(program, "set");
    cl_mem buffer = make_buffer(0, 64, NULL);
    cl_int seen[16];

    ck_ok(clSetKernelArg(set, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(set, 1, sizeof(value), &value));
    launch(set, 16);
    read_ints(buffer, seen, 16);
    for (int i = 1; i < 16; i++)
        ck_assert_int_eq(seen[i], seen[0]);
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseKernel(set));
    return seen[0];
}

START_TEST(create_wrong) {
    const char *text = common_source, *texts[] = {text, NULL}, *none = NULL;

    ck_refused(clCreateProgramWithSource(NULL, 1, &text, NULL, &error), CL_INVALID_CONTEXT);
    ck_refused(clCreateProgramWithSource(context, 0, &text, NULL, &error), CL_INVALID_VALUE);
    if (!excused(POCL, "PoCL 3.1 crashes on a NULL list of sources"))
        ck_refused(clCreateProgramWithSource(context, 1, NULL, NULL, &error), CL_INVALID_VALUE);
    ck_refused(clCreateProgramWithSource(context, 1, &none, NULL, &error), CL_INVALID_VALUE);
    ck_refused(clCreateProgramWithSource(context, 2, texts, NULL, &error), CL_INVALID_VALUE);
}
END_TEST

START_TEST(source_in_pieces) {
    const char *pieces[] = {"kernel void set(global int *out, int value)###",
                            "{ out[get_global_id(0)] = value + EXTRA; }\n", "\n"};
    size_t lengths[] = {strlen(pieces[0]) - 3, 0, 0}, size;
    char seen[256], wanted[256];
    cl_program program;

    program = ck_made(clCreateProgramWithSource(context, 3, pieces, lengths, &error));
    snprintf(wanted, sizeof(wanted), "%.*s%s%s", (int)lengths[0], pieces[0], pieces[1], pieces[2]);
    ck_ok(clGetProgramInfo(program, CL_PROGRAM_SOURCE, sizeof(seen), seen, &size));
    ck_assert_str_eq(seen, wanted);
    ck_assert_uint_eq(size, strlen(wanted) + 1);
    ck_ok(clBuildProgram(program, 1, &device, "-DEXTRA=100", NULL, NULL));
    ck_assert_int_eq(run_set(program, 5), 105);
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(info) {
    const cl_program_info names[] = {CL_PROGRAM_REFERENCE_COUNT, CL_PROGRAM_CONTEXT,
                                     CL_PROGRAM_NUM_DEVICES,     CL_PROGRAM_DEVICES,
                                     CL_PROGRAM_SOURCE,          CL_PROGRAM_BINARY_SIZES,
                                     CL_PROGRAM_NUM_KERNELS,     CL_PROGRAM_KERNEL_NAMES};
    cl_program program = from_source(common_source);
    char seen[2048];
    size_t count;

    ck_assert(get_info(cl_uint, clGetProgramInfo, program, CL_PROGRAM_REFERENCE_COUNT) == 1);
    ck_assert(get_info(cl_context, clGetProgramInfo, program, CL_PROGRAM_CONTEXT) == context);
    ck_assert(get_info(cl_uint, clGetProgramInfo, program, CL_PROGRAM_NUM_DEVICES) == 1);
    ck_assert(get_info(cl_device_id, clGetProgramInfo, program, CL_PROGRAM_DEVICES) == device);
    ck_ok(clGetProgramInfo(program, CL_PROGRAM_SOURCE, sizeof(seen), seen, NULL));
    ck_assert_str_eq(seen, common_source);
    ck_assert_cl(clGetProgramInfo(program, CL_PROGRAM_NUM_KERNELS, sizeof(count), &count, NULL),
                 CL_INVALID_PROGRAM_EXECUTABLE);
    ck_assert_cl(clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, sizeof(seen), seen, NULL),
                 CL_INVALID_PROGRAM_EXECUTABLE);
    ck_ok(clBuildProgram(program, 0, NULL, NULL, NULL, NULL));
    ck_assert(get_info(size_t, clGetProgramInfo, program, CL_PROGRAM_NUM_KERNELS) == 4);
    ck_ok(clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, sizeof(seen), seen, &count));
    ck_assert_uint_eq(count, strlen(seen) + 1);
    ck_assert_uint_eq(count, sizeof("set;add;copy;slow"));
    for (size_t i = 0; i < COUNT(names); i++)
        check_info_rules(clGetProgramInfo, program, names[i]);
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(build_info) {
    cl_program program = from_source(common_source);
    char *text;

    ck_assert_int_eq(status_of(program), CL_BUILD_NONE);
    ck_assert_uint_eq(binary_type_of(program), CL_PROGRAM_BINARY_TYPE_NONE);
    ck_ok(clBuildProgram(program, 0, NULL, "-D ONE=1 -cl-mad-enable", NULL, NULL));
    ck_assert_int_eq(status_of(program), CL_BUILD_SUCCESS);
    ck_assert_uint_eq(binary_type_of(program), CL_PROGRAM_BINARY_TYPE_EXECUTABLE);
    text = text_of(program, CL_PROGRAM_BUILD_OPTIONS);
    ck_assert_str_eq(text, "-D ONE=1 -cl-mad-enable");
    free(text);
    free(text_of(program, CL_PROGRAM_BUILD_LOG));
    ck_assert_cl(clGetProgramBuildInfo(program, device, 0x7777, 0, NULL, NULL), CL_INVALID_VALUE);
    ck_assert_cl(clGetProgramBuildInfo(program, NULL, CL_PROGRAM_BUILD_STATUS, 0, NULL, NULL),
                 CL_INVALID_DEVICE);
    ck_assert_cl(clGetProgramBuildInfo(NULL, device, CL_PROGRAM_BUILD_STATUS, 0, NULL, NULL),
                 CL_INVALID_PROGRAM);
    ck_assert_cl(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_STATUS, 1, &error, NULL),
                 CL_INVALID_VALUE);
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(options) {
    const char *accepted[] = {"",
                              "-cl-single-precision-constant",
                              "-cl-denorms-are-zero",
                              "-cl-opt-disable",
                              "-cl-mad-enable -cl-no-signed-zeros",
                              "-cl-unsafe-math-optimizations",
                              "-cl-finite-math-only -cl-fast-relaxed-math",
                              "-w",
                              "-cl-std=CL1.1",
                              "-cl-std=CL1.2",
                              "-DA=1 -D B=2 -DC",
                              "-I . -I/tmp",
                              "-cl-kernel-arg-info"};

    for (size_t i = 0; i < COUNT(accepted); i++) {
        cl_program program = from_source(common_source);
        cl_int code = clBuildProgram(program, 0, NULL, accepted[i], NULL, NULL);

        ck_assert_msg(code == CL_SUCCESS, "\"%s\" gave %s", accepted[i], cl_error_name(code));
        ck_ok(clReleaseProgram(program));
    }
}
END_TEST

START_TEST(options_change_the_code) {
    const char *text = "#ifdef SECOND\n#define V 2\n#else\n#define V 1\n#endif\n"
                       "kernel void set(global int *out, int value)\n"
                       "{ out[get_global_id(0)] = value * 10 + V; }\n";
    cl_program program = from_source(text);

    ck_ok(clBuildProgram(program, 0, NULL, NULL, NULL, NULL));
    ck_assert_int_eq(run_set(program, 3), 31);
    /* A program may be built again once its kernels are gone. */
    ck_ok(clBuildProgram(program, 0, NULL, "-DSECOND", NULL, NULL));
    ck_assert_int_eq(run_set(program, 3), 32);
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(build_wrong) {
    cl_program program = from_source(common_source);
    cl_device_id with_null[] = {device, NULL};
    cl_kernel kernel;

    ck_assert_cl(clBuildProgram(NULL, 0, NULL, NULL, NULL, NULL), CL_INVALID_PROGRAM);
    ck_assert_cl(clBuildProgram(program, 1, NULL, NULL, NULL, NULL), CL_INVALID_VALUE);
    ck_assert_cl(clBuildProgram(program, 0, &device, NULL, NULL, NULL), CL_INVALID_VALUE);
    ck_assert_cl(clBuildProgram(program, 0, NULL, NULL, NULL, &error), CL_INVALID_VALUE);
    if (!excused(POCL, "PoCL 3.1 crashes on a NULL device in a list"))
        ck_assert_cl(clBuildProgram(program, 2, with_null, NULL, NULL, NULL), CL_INVALID_DEVICE);
    ck_assert_cl(clBuildProgram(program, 0, NULL, "-cl-no-such-option", NULL, NULL),
                 CL_INVALID_BUILD_OPTIONS);
    ck_ok(clBuildProgram(program, 0, NULL, NULL, NULL, NULL));
    kernel = make_kernel(program, "set");
    ck_assert_cl(clBuildProgram(program, 0, NULL, NULL, NULL, NULL), CL_INVALID_OPERATION);
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clBuildProgram(program, 0, NULL, NULL, NULL, NULL));
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(build_failure) {
    cl_program program = from_source(broken_source);
    char *log;

    ck_assert_cl(clBuildProgram(program, 0, NULL, NULL, NULL, NULL), CL_BUILD_PROGRAM_FAILURE);
    ck_assert_int_eq(status_of(program), CL_BUILD_ERROR);
    log = text_of(program, CL_PROGRAM_BUILD_LOG);
    ck_assert_msg(strstr(log, "undeclared"), "the log names the error, not \"%s\"", log);
    free(log);
    ck_refused(clCreateKernel(program, "broken", &error), CL_INVALID_PROGRAM_EXECUTABLE);
    ck_ok(clReleaseProgram(program));
}
END_TEST

struct notice {
    pthread_mutex_t lock;
    int calls;
    cl_program program;
};

static void CL_CALLBACK built(cl_program program, void *data) {
    struct notice *notice = data;

    pthread_mutex_lock(&notice->lock);
    notice->calls++;
    notice->program = program;
    pthread_mutex_unlock(&notice->lock);
}

static void wait_for_notice(struct notice *notice) {
    int calls = 0;

    for (int i = 0; i < 10000 && !calls; i++) {
        usleep(2000);
        pthread_mutex_lock(&notice->lock);
        calls = notice->calls;
        pthread_mutex_unlock(&notice->lock);
    }
    ck_assert_int_eq(calls, 1);
}

START_TEST(build_with_a_callback) {
    struct notice notice = {.lock = PTHREAD_MUTEX_INITIALIZER};
    cl_program program = from_source(common_source);

    ck_ok(clBuildProgram(program, 0, NULL, NULL, built, &notice));
    wait_for_notice(&notice);
    ck_assert(notice.program == program);
    ck_assert_int_eq(status_of(program), CL_BUILD_SUCCESS);
    ck_assert_int_eq(run_set(program, 8), 8);
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(build_failure_with_a_callback) {
    struct notice notice = {.lock = PTHREAD_MUTEX_INITIALIZER};
    cl_program program = from_source(broken_source);
    cl_int code = clBuildProgram(program, 0, NULL, NULL, built, &notice);

    /* The call may return before the build has failed. */
    ck_assert_msg(code == CL_SUCCESS || code == CL_BUILD_PROGRAM_FAILURE, "it gave %s",
                  cl_error_name(code));
    wait_for_notice(&notice);
    ck_assert_int_eq(status_of(program), CL_BUILD_ERROR);
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(binary_round_trip) {
    cl_program program = make_program(common_source), again;
    size_t size = get_info(size_t, clGetProgramInfo, program, CL_PROGRAM_BINARY_SIZES);
    unsigned char *binary = malloc(size);
    const unsigned char *constant = binary;
    size_t list = 0;
    cl_int status = 77;

    ck_assert_uint_gt(size, 0);
    ck_ok(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(binary), &binary, &list));
    ck_assert_uint_eq(list, sizeof(binary));
    ck_ok(clReleaseProgram(program));
    again =
        ck_made(clCreateProgramWithBinary(context, 1, &device, &size, &constant, &status, &error));
    ck_assert_cl(status, CL_SUCCESS);
    memset(binary, 0xAB, size);
    ck_ok(clBuildProgram(again, 0, NULL, NULL, NULL, NULL));
    ck_assert_int_eq(run_set(again, 77), 77);
    ck_assert(get_info(size_t, clGetProgramInfo, again, CL_PROGRAM_NUM_KERNELS) == 4);
    ck_ok(clReleaseProgram(again));
    free(binary);
}
END_TEST

static double seconds(const struct timespec *from, const struct timespec *to) {
    return (double)(to->tv_sec - from->tv_sec) + (double)(to->tv_nsec - from->tv_nsec) / 1e9;
}

/* To compile for the binary once more may take many times as long: PoCL does, for any work-group.
 */
START_TEST(binary_of_many_kernels) {
    static const char one[] = "kernel void work%d(global int *data, int rounds) {\n"
                              "    local int row[64];\n"
                              "    int i = get_global_id(0), l = get_local_id(0) & 63;\n"
                              "    row[l] = data[i];\n"
                              "    barrier(CLK_LOCAL_MEM_FENCE);\n"
                              "    for (int r = 0; r < rounds; r++) {\n"
                              "        data[i] += (int)(sin((float)row[r & 63]) * SCALE);\n"
                              "        barrier(CLK_LOCAL_MEM_FENCE);\n"
                              "    }\n"
                              "    data[i] = %d + SCALE;\n"
                              "}\n";
    char source[16384];
    size_t length = (size_t)sprintf(source, "/* %d, in no cache */\n", (int)getpid());
    cl_program program, again;
    cl_int data = 0, rounds = 0;
    struct timespec start, built, given;

    skip_on(POCL, "PoCL 3.1 compiles each kernel once more");
    for (int i = 0; i < 10; i++)
        length += (size_t)sprintf(source + length, one, i, i);
    clock_gettime(CLOCK_MONOTONIC, &start);
    program = make_program_with(source, "-DSCALE=30");
    clock_gettime(CLOCK_MONOTONIC, &built);
    size_t size = get_info(size_t, clGetProgramInfo, program, CL_PROGRAM_BINARY_SIZES);
    unsigned char *binary = malloc(size);
    const unsigned char *constant = binary;
    ck_ok(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(binary), &binary, NULL));
    clock_gettime(CLOCK_MONOTONIC, &given);
    ck_assert_msg(seconds(&built, &given) < seconds(&start, &built),
                  "built in %.2f s, but the binary took %.2f s", seconds(&start, &built),
                  seconds(&built, &given));
    ck_ok(clReleaseProgram(program));

    /* The options are those of its build. */
    again = ck_made(clCreateProgramWithBinary(context, 1, &device, &size, &constant, NULL, &error));
    ck_ok(clBuildProgram(again, 0, NULL, NULL, NULL, NULL));
    cl_kernel kernel = make_kernel(again, "work7");
    cl_mem buffer = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(data), &data);
    ck_ok(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(kernel, 1, sizeof(rounds), &rounds));
    launch(kernel, 1);
    read_ints(buffer, &data, 1);
    ck_assert_int_eq(data, 37);
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(again));
    free(binary);
}
END_TEST

START_TEST(binary_wrong) {
    const unsigned char *garbage = (const unsigned char *)"this is no binary of any device at all";
    const unsigned char *none = NULL;
    size_t size = 38, nothing = 0;
    cl_int status = 77;
    cl_device_id null_device = NULL;

    ck_refused(clCreateProgramWithBinary(NULL, 1, &device, &size, &garbage, NULL, &error),
               CL_INVALID_CONTEXT);
    ck_refused(clCreateProgramWithBinary(context, 0, &device, &size, &garbage, NULL, &error),
               CL_INVALID_VALUE);
    ck_refused(clCreateProgramWithBinary(context, 1, NULL, &size, &garbage, NULL, &error),
               CL_INVALID_VALUE);
    ck_refused(clCreateProgramWithBinary(context, 1, &null_device, &size, &garbage, NULL, &error),
               CL_INVALID_DEVICE);
    if (!excused(POCL, "PoCL 3.1 crashes on a NULL list of binaries or of lengths")) {
        ck_refused(clCreateProgramWithBinary(context, 1, &device, NULL, &garbage, NULL, &error),
                   CL_INVALID_VALUE);
        ck_refused(clCreateProgramWithBinary(context, 1, &device, &size, NULL, NULL, &error),
                   CL_INVALID_VALUE);
    }
    ck_refused(clCreateProgramWithBinary(context, 1, &device, &nothing, &garbage, &status, &error),
               CL_INVALID_VALUE);
    if (!excused(POCL, "PoCL 3.1 gives no binary status for an empty binary"))
        ck_assert_cl(status, CL_INVALID_VALUE);
    status = 77;
    ck_refused(clCreateProgramWithBinary(context, 1, &device, &size, &none, &status, &error),
               CL_INVALID_VALUE);
    if (!excused(POCL, "PoCL 3.1 gives no binary status for a NULL binary"))
        ck_assert_cl(status, CL_INVALID_VALUE);
    ck_refused(clCreateProgramWithBinary(context, 1, &device, &size, &garbage, &status, &error),
               CL_INVALID_BINARY);
    ck_assert_cl(status, CL_INVALID_BINARY);
}
END_TEST

START_TEST(binary_cut_short) {
    cl_program program, again;
    unsigned char *binary;
    const unsigned char *constant;
    cl_int status;
    size_t size;

    skip_on(POCL, "PoCL 3.1 reads past the end of a binary");
    skip_on(OCLGRIND, "Oclgrind passes any binary to LLVM, which aborts");
    program = make_program(common_source);
    size = get_info(size_t, clGetProgramInfo, program, CL_PROGRAM_BINARY_SIZES);
    constant = binary = malloc(size);
    ck_ok(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(binary), &binary, NULL));
    for (size_t part = 1; part < size; part += 1 + size / 97) {
        again = clCreateProgramWithBinary(context, 1, &device, &part, &constant, &status, &error);
        if (again) {
            /* A damage that is seen late must still fail the build. */
            ck_assert_int_ne(clBuildProgram(again, 0, NULL, NULL, NULL, NULL), CL_SUCCESS);
            ck_ok(clReleaseProgram(again));
        } else {
            ck_assert_cl(error, CL_INVALID_BINARY);
        }
    }
    free(binary);
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(compile_and_link) {
    const char *header = "#define FACTOR 7\nint scaled(int value);\n";
    const char *part = "#include \"scale.h\"\nint scaled(int value) { return value * FACTOR; }\n";
    const char *main_part = "#include \"scale.h\"\n"
                            "kernel void set(global int *out, int value)\n"
                            "{ out[get_global_id(0)] = scaled(value); }\n";
    cl_program header_program = from_source(header), linked;
    cl_program parts[] = {from_source(part), from_source(main_part)};
    const char *name = "scale.h";

    for (int i = 0; i < 2; i++) {
        ck_ok(clCompileProgram(parts[i], 0, NULL, NULL, 1, &header_program, &name, NULL, NULL));
        ck_assert_int_eq(status_of(parts[i]), CL_BUILD_SUCCESS);
        if (!excused(POCL, "PoCL 3.1 looks for a kernel in a program that is not linked"))
            ck_refused(clCreateKernel(parts[i], "set", &error), CL_INVALID_PROGRAM_EXECUTABLE);
    }
    linked = ck_made(clLinkProgram(context, 0, NULL, NULL, 2, parts, NULL, NULL, &error));
    ck_assert_int_eq(status_of(linked), CL_BUILD_SUCCESS);
    ck_assert_int_eq(run_set(linked, 6), 42);
    ck_ok(clReleaseProgram(linked));
    ck_ok(clReleaseProgram(parts[0]));
    ck_ok(clReleaseProgram(parts[1]));
    ck_ok(clReleaseProgram(header_program));
}
END_TEST

START_TEST(link_a_library) {
    const char *part = "int scaled(int value) { return value * 3; }\n";
    const char *main_part = "int scaled(int value);\n"
                            "kernel void set(global int *out, int value)\n"
                            "{ out[get_global_id(0)] = scaled(value); }\n";
    cl_program library_part = from_source(part), inputs[2], linked;

    ck_ok(clCompileProgram(library_part, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL));
    inputs[0] = ck_made(
        clLinkProgram(context, 0, NULL, "-create-library", 1, &library_part, NULL, NULL, &error));
    ck_assert_uint_eq(binary_type_of(inputs[0]), CL_PROGRAM_BINARY_TYPE_LIBRARY);
    inputs[1] = from_source(main_part);
    ck_ok(clCompileProgram(inputs[1], 0, NULL, NULL, 0, NULL, NULL, NULL, NULL));
    ck_assert_uint_eq(binary_type_of(inputs[1]), CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT);
    linked = ck_made(clLinkProgram(context, 1, &device, NULL, 2, inputs, NULL, NULL, &error));
    ck_assert_int_eq(run_set(linked, 5), 15);
    ck_ok(clReleaseProgram(linked));
    ck_ok(clReleaseProgram(inputs[0]));
    ck_ok(clReleaseProgram(inputs[1]));
    ck_ok(clReleaseProgram(library_part));
}
END_TEST

START_TEST(compile_and_link_wrong) {
    cl_program program = from_source(common_source), broken = from_source(broken_source);
    const char *name = "a.h";

    ck_assert_cl(clCompileProgram(NULL, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL),
                 CL_INVALID_PROGRAM);
    ck_assert_cl(clCompileProgram(program, 1, NULL, NULL, 0, NULL, NULL, NULL, NULL),
                 CL_INVALID_VALUE);
    if (!excused(POCL, "PoCL 3.1 crashes on headers without names or names without headers")) {
        ck_assert_cl(clCompileProgram(program, 0, NULL, NULL, 1, NULL, &name, NULL, NULL),
                     CL_INVALID_VALUE);
        ck_assert_cl(clCompileProgram(program, 0, NULL, NULL, 1, &broken, NULL, NULL, NULL),
                     CL_INVALID_VALUE);
        ck_assert_cl(clCompileProgram(program, 0, NULL, NULL, 0, &broken, NULL, NULL, NULL),
                     CL_INVALID_VALUE);
    }
    ck_assert_cl(clCompileProgram(program, 0, NULL, NULL, 0, NULL, NULL, NULL, &error),
                 CL_INVALID_VALUE);
    ck_assert_cl(clCompileProgram(broken, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL),
                 CL_COMPILE_PROGRAM_FAILURE);
    ck_ok(clCompileProgram(program, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL));
    ck_refused(clLinkProgram(NULL, 0, NULL, NULL, 1, &program, NULL, NULL, &error),
               CL_INVALID_CONTEXT);
    ck_refused(clLinkProgram(context, 0, NULL, NULL, 0, NULL, NULL, NULL, &error),
               CL_INVALID_VALUE);
    ck_refused(clLinkProgram(context, 0, NULL, NULL, 1, NULL, NULL, NULL, &error),
               CL_INVALID_VALUE);
    ck_refused(clLinkProgram(context, 1, NULL, NULL, 1, &program, NULL, NULL, &error),
               CL_INVALID_VALUE);
    ck_refused(clLinkProgram(context, 0, NULL, NULL, 1, &program, NULL, &error, &error),
               CL_INVALID_VALUE);
    ck_assert_cl(
        clCompileProgram(program, 0, NULL, "-cl-no-such-option", 0, NULL, NULL, NULL, NULL),
        CL_INVALID_COMPILER_OPTIONS);
    ck_ok(clReleaseProgram(program));
    ck_ok(clReleaseProgram(broken));
}
END_TEST

START_TEST(built_in_kernels) {
    ck_refused(clCreateProgramWithBuiltInKernels(NULL, 1, &device, "x", &error),
               CL_INVALID_CONTEXT);
    ck_refused(clCreateProgramWithBuiltInKernels(context, 0, &device, "x", &error),
               CL_INVALID_VALUE);
    ck_refused(clCreateProgramWithBuiltInKernels(context, 1, NULL, "x", &error), CL_INVALID_VALUE);
    ck_refused(clCreateProgramWithBuiltInKernels(context, 1, &device, NULL, &error),
               CL_INVALID_VALUE);
    ck_refused(clCreateProgramWithBuiltInKernels(context, 1, &device, "no_such_kernel", &error),
               CL_INVALID_VALUE);
}
END_TEST

START_TEST(many_programs) {
    for (cl_int i = 0; i < 40; i++) {
        char text[256];
        cl_program program;

        /* A few different texts, so that caches are met both cold and warm. */
        snprintf(text, sizeof(text),
                 "kernel void set(global int *out, int value)\n"
                 "{ out[get_global_id(0)] = value + %d; }\n",
                 i % 4);
        program = make_program(text);
        ck_assert_int_eq(run_set(program, i), i + i % 4);
        ck_ok(clReleaseProgram(program));
    }
}
END_TEST

START_TEST(several_programs_at_once) {
    cl_program some[10];

    for (size_t i = 0; i < COUNT(some); i++)
        some[i] = make_program(common_source);
    for (size_t i = 0; i < COUNT(some); i++)
        ck_assert_int_eq(run_set(some[i], (cl_int)i), (cl_int)i);
    for (size_t i = 0; i < COUNT(some); i++)
        ck_ok(clReleaseProgram(some[i]));
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        create_wrong,
        source_in_pieces,
        info,
        build_info,
        options,
        options_change_the_code,
        build_wrong,
        build_failure,
        build_with_a_callback,
        build_failure_with_a_callback,
        binary_round_trip,
        binary_of_many_kernels,
        binary_wrong,
        binary_cut_short,
        compile_and_link,
        link_a_library,
        compile_and_link_wrong,
        built_in_kernels,
        many_programs,
        several_programs_at_once,
    };

    return test_main(argc, argv, tests, COUNT(tests));
}
