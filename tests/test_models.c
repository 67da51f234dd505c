/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: TUTTI_MODELS, the file that keeps measured times. Each setting is tried in a process
 * of its own, as the file is read at the first kernel and written at exit.
 */
#include "support.h"

#include <locale.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[64], path[96];

/* The child: a kernel on as many elements as TUTTI_TEST_ITEMS says, some times. */
START_TEST(probe) {
    size_t items = test_size("TUTTI_TEST_ITEMS", 64);
    cl_mem buffer = make_buffer(0, items * sizeof(cl_int), NULL);
    cl_program program = make_program(common_source);
    cl_kernel set = make_kernel(program, "set");
    cl_int value = 5, seen = 0;

    ck_ok(clSetKernelArg(set, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(set, 1, sizeof(value), &value));
    for (int i = 0; i < 5; i++)
        launch(set, items);
    read_ints(buffer, &seen, 1);
    ck_assert_int_eq(seen, 5);
    ck_ok(clReleaseKernel(set));
    ck_ok(clReleaseProgram(program));
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

/* Another child: how long the kernel takes is as TUTTI_TEST_LOOPS says, for some of its runs. */
START_TEST(loops) {
    static const char source[] = "kernel void spin(global volatile int *a, int loops) { for (int i "
                                 "= 0; i < loops; i++) a[0]++; }";
    cl_int some = (cl_int)test_size("TUTTI_TEST_LOOPS", 1), sum = 0, seen = 0;
    cl_mem buffer = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(seen), &seen);
    cl_program program = make_program(source);
    cl_kernel spin = make_kernel(program, "spin");
    ck_ok(clSetKernelArg(spin, 0, sizeof(buffer), &buffer));
    for (cl_int i = 0; i < 24; i++) {
        cl_int count = i % 8 < 4 ? i % 4 + 1 : some;
        ck_ok(clSetKernelArg(spin, 1, sizeof(count), &count));
        launch(spin, 1);
        ck_ok(clFinish(queue));
        sum += count;
    }
    read_ints(buffer, &seen, 1);
    ck_assert_int_eq(seen, sum);
    ck_ok(clReleaseKernel(spin));
    ck_ok(clReleaseProgram(program));
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

static FILE *start(const char *settings, int items) {
    char all[256];

    snprintf(all, sizeof(all), "%s TUTTI_TEST_ITEMS=%d", settings, items);
    return test_start_again(all, "--probe");
}

/* Waits for the child, which must succeed; does it say that? */
static bool finish(FILE *child, const char *wanted) {
    const char *said = test_finish_again(child);

    return wanted && strstr(said, wanted);
}

static bool run(const char *settings, int items, const char *wanted) {
    return finish(start(settings, items), wanted);
}

/* How many models the file has, by its own last line; -1 when it is not whole. */
static int models(void) {
    char line[256] = "";
    int lines = -1, count = -1;
    FILE *file = fopen(path, "r");

    if (!file)
        return -1;
    while (fgets(line, sizeof(line), file))
        lines++;
    fclose(file);
    return sscanf(line, "end %d", &count) == 1 && count == lines - 1 ? count : -1;
}

static const char *run_loops(int some) {
    char all[128];
    snprintf(all, sizeof(all), "POCL_DEVICES=basic TUTTI_DEVICES=portable TUTTI_TEST_LOOPS=%d",
             some);
    return test_finish_again(test_start_again(all, "--loops"));
}

static void write_text(const char *text) {
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void begin(void) {
    snprintf(directory, sizeof(directory), "/tmp/tutti-models.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/models", directory);
    setenv("TUTTI_MODELS", path, 1);
    setenv("TUTTI_DEVICES", "0", 1); /* each kind of device would have models of its own */
}

static void end(void) {
    char command[128];

    snprintf(command, sizeof(command), "rm -rf '%s'", directory);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(what_was_learnt_is_read_again) {
    begin();
    ck_assert(run("TUTTI_LOG=info", 64, "0 models in"));
    ck_assert_int_eq(models(), 1);
    ck_assert(run("TUTTI_LOG=info", 128, "1 models in"));
    ck_assert_int_eq(models(), 2);
    run("", 64, NULL); /* learns the same again */
    ck_assert_int_eq(models(), 2);
    end();
}
END_TEST

/* Programs of several languages share the file. */
START_TEST(a_decimal_comma) {
    char command[256], setting[128];

    begin();
    snprintf(command, sizeof(command),
             "localedef -i de_DE -f UTF-8 '%s/de_DE.UTF-8' >/dev/null 2>&1", directory);
    bool absent = system(command) != 0;
    snprintf(setting, sizeof(setting), "LOCPATH=%s LC_ALL=de_DE.UTF-8", directory);
    if (!absent) {
        run(setting, 64, NULL);
        ck_assert(run("TUTTI_LOG=info", 128, "1 models in"));
        snprintf(setting, sizeof(setting), "LOCPATH=%s LC_ALL=de_DE.UTF-8 TUTTI_LOG=info",
                 directory);
        ck_assert(run(setting, 64, "2 models in"));
    }
    end();
    skip_if(absent, "no locale with a decimal comma can be made");
}
END_TEST

/* One for all integer arguments, and for each of them only if they make a difference. */
START_TEST(of_integer_arguments) {
    begin();
    run_loops(5);
    ck_assert_int_eq(models(), 1);
    run_loops(20000000);
    ck_assert_int_ge(models(), 3);
    ck_assert_int_le(models(), 6);
    end();
}
END_TEST

START_TEST(none_is_kept) {
    begin();
    run("TUTTI_MODELS=none", 64, NULL);
    ck_assert_int_eq(models(), -1);
    end();
}
END_TEST

START_TEST(a_place_is_made) {
    begin();
    snprintf(path, sizeof(path), "%s/a/tutti/models", directory);
    char setting[128];
    snprintf(setting, sizeof(setting), "env -u TUTTI_MODELS XDG_CACHE_HOME=%s/a", directory);
    run(setting, 64, NULL);
    ck_assert_int_eq(models(), 1);
    end();
}
END_TEST

START_TEST(damaged_files_are_ignored) {
    static const char *const texts[] = {
        "",
        "something else\n",
        "tutti models 2\nend 0\n",
        "tutti models 1\n1 2 3 4 5.000\n",        /* cut */
        "tutti models 1\n1 2 3 4 5.000\nend 2\n", /* cut in between */
        "tutti models 1\n1 2 3 4 nan\nend 1\n",
        "tutti models 1\n1 2 3 4 -5.000\nend 1\n",
        "tutti models 1\nx\nend 1\n",
    };

    begin();
    for (size_t i = 0; i < COUNT(texts); i++) {
        write_text(texts[i]);
        ck_assert_msg(run("TUTTI_LOG=info", 64, "0 models in"), "text %zu was read", i);
        ck_assert_int_eq(models(), 1);
    }
    /* Those of devices that are not here are somebody's, and stay. */
    write_text("tutti models 1\n1 2 3 4 5.000\nend 1\n");
    run("", 64, NULL);
    ck_assert_int_eq(models(), 2);
    end();
}
END_TEST

START_TEST(nothing_is_said_where_nothing_can_be_kept) {
    begin();
    write_text("x"); /* a file where a directory is wanted */
    char setting[160];
    snprintf(setting, sizeof(setting), "TUTTI_MODELS=%s/models", path);
    ck_assert(!run(setting, 64, "models"));
    end();
}
END_TEST

START_TEST(processes_at_once_lose_nothing) {
    enum { PROCESSES = 6 };
    FILE *child[PROCESSES];

    begin();
    for (int i = 0; i < PROCESSES; i++)
        child[i] = start("", 64 * (i + 1));
    for (int i = 0; i < PROCESSES; i++)
        finish(child[i], NULL);
    ck_assert_int_eq(models(), PROCESSES);
    end();
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const child[] = {probe}, *const other_child[] = {loops};
    const TTest *const tests[] = {what_was_learnt_is_read_again,
                                  a_decimal_comma,
                                  of_integer_arguments,
                                  none_is_kept,
                                  a_place_is_made,
                                  damaged_files_are_ignored,
                                  nothing_is_said_where_nothing_can_be_kept,
                                  processes_at_once_lose_nothing};
    if (argc > 1 && strcmp(argv[1], "--probe") == 0) {
        setlocale(LC_ALL, "");
        return test_main(1, argv, child, COUNT(child));
    }
    if (argc > 1 && strcmp(argv[1], "--loops") == 0)
        return test_main(1, argv, other_child, COUNT(other_child));
    return test_main_bare(argc, argv, tests, COUNT(tests));
}
