/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: a CPU device that works in copies, beside one that works in home memory, and an
 * interpreter beside any are given nothing, and the others work as if it were not there. Who is
 * spare is found for devices that are made up, the decision compiled into the test; the rest with
 * Oclgrind beside PoCL.
 */
#include "virtual_device/selection.c"

#include "task_counts.h"

#include <stdio.h>
#include <unistd.h>

enum { N = 64, ROUNDS = 4, KERNELS = 300 };

/* What selection.c asks of others is not asked here. */
const char *tutti_env_string(enum tutti_env variable) {
    (void)variable;
    return NULL;
}
bool tutti_real_device_uuid(const struct tutti_real_device *real, cl_uchar uuid[CL_UUID_SIZE_KHR]) {
    (void)real;
    (void)uuid;
    return false;
}
atomic_int tutti_log_most;
bool tutti_log_find(enum tutti_log_level level) {
    (void)level;
    return false;
}
void tutti_log_write(enum tutti_log_level level, const char *format, ...) {
    (void)level;
    (void)format;
}

enum { GPU, HOME, COPIES, INTERPRETER };
static const struct tutti_real_device kinds[] = {
    [GPU] = {.type = CL_DEVICE_TYPE_GPU, .compute_units = 1},
    [HOME] = {.type = CL_DEVICE_TYPE_CPU, .compute_units = 4, .shares_host = true, .at_home = true},
    [COPIES] = {.type = CL_DEVICE_TYPE_CPU, .compute_units = 4},
    [INTERPRETER] = {.type = CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU, .compute_units = 8},
};

/* Which of these are spare, as bits; of `units` each, if that is not 0. */
static unsigned spare(const int *kind, unsigned count, cl_uint units, bool decides) {
    struct tutti_real_device real[TUTTI_MAX_DEVICES];
    struct tutti_device_list list = {.count = count};
    static char interpreter[] = "Oclgrind", other[] = "another";
    unsigned found = 0, serving = 0;
    for (unsigned d = 0; d < count; d++) {
        real[d] = kinds[kind[d]];
        real[d].platform_name = kind[d] == INTERPRETER ? interpreter : other;
        real[d].compute_units = units && kind[d] == HOME ? units : real[d].compute_units;
        list.device[d] = &real[d];
    }
    tutti_selection_find_spare(&list, decides);
    for (unsigned d = 0; d < count; d++) {
        found |= real[d].spare ? 1u << d : 0;
        serving += !real[d].spare;
        ck_assert(!real[d].spare || real[d].at_home);
    }
    ck_assert_uint_eq(list.serving, serving);
    return found;
}

#define SPARE(units, decides, ...)                                                                 \
    spare((const int[]){__VA_ARGS__}, sizeof((int[]){__VA_ARGS__}) / sizeof(int), units, decides)

START_TEST(copies_beside_home) {
    ck_assert_uint_eq(SPARE(0, true, HOME, COPIES), 1u << 1);
    ck_assert_uint_eq(SPARE(0, true, HOME, INTERPRETER, COPIES), 3u << 1);
    ck_assert_uint_eq(SPARE(0, true, GPU, COPIES, HOME), 1u << 1);
}
END_TEST

START_TEST(interpreters) {
    ck_assert_uint_eq(SPARE(1, true, HOME, INTERPRETER), 1u << 1);
    ck_assert_uint_eq(SPARE(0, true, GPU, INTERPRETER), 1u << 1);
    ck_assert_uint_eq(SPARE(0, true, INTERPRETER, HOME), 0);
    ck_assert_uint_eq(SPARE(0, false, GPU, INTERPRETER), 0);
}
END_TEST

START_TEST(others_serve) {
    ck_assert_uint_eq(SPARE(0, true, HOME), 0);
    ck_assert_uint_eq(SPARE(0, true, HOME, HOME), 0);
    ck_assert_uint_eq(SPARE(0, true, COPIES, HOME), 0); /* programs are the lead's */
    ck_assert_uint_eq(SPARE(0, true, GPU, COPIES), 0);
    ck_assert_uint_eq(SPARE(0, true, GPU, GPU, HOME), 0);
    ck_assert_uint_eq(SPARE(1, true, HOME, COPIES),
                      0); /* it has cores that the other one has not */
    ck_assert_uint_eq(SPARE(2, true, HOME, HOME, COPIES), 1u << 2);
    ck_assert_uint_eq(SPARE(0, false, HOME, COPIES), 0);
}
END_TEST

/* The child, over two real devices; prints how many commands the second one executed. */
START_TEST(probe) {
    cl_program program = make_program(common_source);
    cl_kernel add = make_kernel(program, "add");
    cl_int seen[N] = {0}, one = 1;
    cl_mem buffer = make_buffer(0, sizeof(seen), NULL);
    cl_ulong counts[REAL];
    write_ints(buffer, seen, N);
    ck_ok(clSetKernelArg(add, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(add, 1, sizeof(one), &one));
    for (int round = 0; round < ROUNDS; round++) { /* in the first they are measured */
        for (int i = 0; i < KERNELS; i++)
            launch(add, N);
        ck_ok(clFinish(queue));
    }
    read_ints(buffer, seen, N);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(seen[i], ROUNDS * KERNELS);
    ck_assert_uint_eq(read_counts(counts), 2);
    fprintf(stderr, "the second: %lu\n", (unsigned long)counts[1]);
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}
END_TEST

static const char oclgrind[] = "/usr/lib/oclgrind/liboclgrind-rt-icd.so\n";

/* Of the tests' PoCL, as the loader finds it. False: it is not there. */
static bool read_pocl(char *library, int size) {
    char name[512];
    const char *vendors = getenv("OCL_ICD_VENDORS");
    snprintf(name, sizeof(name), "%s/pocl.icd", vendors ? vendors : "/etc/OpenCL/vendors");
    FILE *file = fopen(name, "r");
    bool found = file && fgets(library, size, file);
    if (file)
        fclose(file);
    return found;
}

static void write_text(const char *name, const char *text) {
    FILE *file = fopen(name, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

/* PoCL's device and Oclgrind's, in a vendors directory of their own. */
static const char *run_beside(const char *settings) {
    char directory[] = "/tmp/tutti-spare.XXXXXX", first[64], second[64], text[512], pocl[512];
    ck_assert(read_pocl(pocl, sizeof(pocl)));
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(first, sizeof(first), "%s/pocl.icd", directory);
    snprintf(second, sizeof(second), "%s/oclgrind.icd", directory);
    write_text(first, pocl);
    write_text(second, oclgrind);
    snprintf(text, sizeof(text), "POCL_DEVICES=pthread TUTTI_VENDORS=%s TUTTI_LOG=debug %s",
             directory, settings);
    const char *said = test_run_again(text, "--probe");
    unlink(first);
    unlink(second);
    rmdir(directory);
    return said;
}

/* Are both installed? */
static bool may_run_beside(void) {
    char library[sizeof(oclgrind)], pocl[512];
    strcpy(library, oclgrind);
    library[strcspn(library, "\n")] = 0;
    return access(library, R_OK) == 0 && read_pocl(pocl, sizeof(pocl));
}

START_TEST(the_other_is_as_alone) {
    const char *said = run_beside("");

    ck_assert_msg(strstr(said, "a kernel past StarPU, in a row"), "it said %.2000s", said);
    ck_assert(strstr(said, "the second: 0\n"));
}
END_TEST

START_TEST(not_for_policies_of_starpu) {
    const char *said = run_beside("TUTTI_SCHED=eager");
    ck_assert(!strstr(said, "is given nothing"));
    ck_assert(!strstr(said, "in a row"));
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {copies_beside_home, interpreters, others_serve,
                                  the_other_is_as_alone, not_for_policies_of_starpu};
    const TTest *const probes[] = {probe};
    if (argc == 2 && !strcmp(argv[1], "--probe"))
        return test_main(1, argv, probes, COUNT(probes));
    return test_main_bare(argc, argv, tests, may_run_beside() ? COUNT(tests) : COUNT(tests) - 2);
}
