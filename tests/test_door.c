/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: the library file as a loader sees it, TUTTI_TEST_LIBRARY names it. No test here goes
 * through the loader.
 */

/* The dispatch table has slots for the later versions too. */
#define CL_TARGET_OPENCL_VERSION 300
#include "support.h"

#include <CL/cl_ext.h>
#include <CL/cl_icd.h>
#include <dirent.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

static void *library;
static cl_platform_id own;

static const char *library_path(void) {
    const char *path = getenv("TUTTI_TEST_LIBRARY");

    ck_assert_msg(path && *path, "TUTTI_TEST_LIBRARY names no library");
    return path;
}

/* A function of the library, as void * for the caller's memcpy. */
static void *symbol(const char *name) {
    void *address = dlsym(library, name);

    ck_assert_msg(address != NULL, "no %s", name);
    return address;
}

static void open_library(void) {
    clIcdGetPlatformIDsKHR_fn get_platforms;
    void *address;
    cl_uint count = 0;

    if (library)
        return;
    library = dlopen(library_path(), RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(library != NULL, "%s", dlerror());
    address = symbol("clIcdGetPlatformIDsKHR");
    memcpy(&get_platforms, &address, sizeof(address));
    ck_ok(get_platforms(0, NULL, &count));
    ck_assert_uint_eq(count, 1);
    ck_ok(get_platforms(1, &own, NULL));
    ck_assert_cl(get_platforms(0, &own, NULL), CL_INVALID_VALUE);
    ck_assert_cl(get_platforms(1, NULL, NULL), CL_INVALID_VALUE);
    ck_assert_ptr_nonnull(own);
}

/* Every object of an ICD starts with a pointer to its dispatch table. */
static const cl_icd_dispatch *dispatch(void) {
    open_library();
    return *(const cl_icd_dispatch **)own;
}

static int thread_count(void) {
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *entry;
    int count = 0;

    ck_assert_ptr_nonnull(tasks);
    while ((entry = readdir(tasks)))
        count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

/* 1 or 0; -1 where StarPU is not a library of its own. */
static int starpu_started(void) {
    int (*function)(void);
    void *address = dlsym(library, "starpu_is_initialized");

    if (!address)
        return -1;
    memcpy(&function, &address, sizeof(address));
    return function();
}

START_TEST(opening_starts_no_thread) {
    int before = thread_count();
    char name[64];

    open_library();
    ck_ok(dispatch()->clGetPlatformInfo(own, CL_PLATFORM_NAME, sizeof(name), name, NULL));
    ck_assert_str_eq(name, "Tutti");
    ck_assert_int_eq(thread_count(), before);
    ck_assert_int_ne(starpu_started(), 1);
}
END_TEST

START_TEST(queries_start_no_starpu) {
    cl_device_id found;
    cl_ulong size;
    char name[256];

    ck_ok(dispatch()->clGetDeviceIDs(own, CL_DEVICE_TYPE_ALL, 1, &found, NULL));
    ck_ok(dispatch()->clGetDeviceInfo(found, CL_DEVICE_NAME, sizeof(name), name, NULL));
    ck_ok(dispatch()->clGetDeviceInfo(found, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(size), &size, NULL));
    skip_if(starpu_started() == -1, "StarPU is no library of its own");
    ck_assert_int_eq(starpu_started(), 0);
}
END_TEST

START_TEST(exported_symbols) {
    const char *allowed[] = {"clIcdGetPlatformIDsKHR", "clGetExtensionFunctionAddress",
                             "clGetPlatformInfo"};
    char command[4096], line[512];
    bool seen[COUNT(allowed)] = {false};
    FILE *nm;

    snprintf(command, sizeof(command), "nm -D --defined-only '%s'", library_path());
    nm = popen(command, "r");
    ck_assert_ptr_nonnull(nm);
    while (fgets(line, sizeof(line), nm)) {
        char kind = 0, name[256] = "";
        bool good = false;

        if (sscanf(line, "%*s %c %255s", &kind, name) != 2)
            continue;
        name[strcspn(name, "@")] = 0;
        /* A sanitizer's build has its own symbols; the name of a version is absolute. */
        if (kind == 'A' || strstr(name, "san_"))
            continue;
        for (size_t i = 0; i < COUNT(allowed); i++) {
            if (!strcmp(name, allowed[i]))
                good = seen[i] = true;
        }
        ck_assert_msg(good, "the library exports %s", name);
    }
    ck_assert_int_eq(pclose(nm), 0);
    for (size_t i = 0; i < COUNT(allowed); i++)
        ck_assert_msg(seen[i], "the library doesn't export %s", allowed[i]);
}
END_TEST

START_TEST(every_slot_is_filled) {
    void *const *slots = (void *const *)dispatch();

    for (size_t i = 0; i < sizeof(cl_icd_dispatch) / sizeof(void *); i++)
        ck_assert_msg(slots[i] != NULL, "slot %zu of the dispatch table is NULL", i);
}
END_TEST

START_TEST(unsupported_entry_points_answer) {
    const cl_icd_dispatch *table = dispatch();
    cl_device_id found;
    cl_event event = NULL;

    ck_ok(table->clGetDeviceIDs(own, CL_DEVICE_TYPE_ALL, 1, &found, NULL));
    /* Of later versions and of extensions, with handles that can't be good. */
    ck_assert_ptr_null(table->clSVMAlloc(NULL, 0, 64, 0));
    table->clSVMFree(NULL, NULL);
    ck_assert_int_lt(table->clEnqueueSVMFree(NULL, 0, NULL, NULL, NULL, 0, NULL, NULL), 0);
    ck_assert_int_lt(table->clEnqueueSVMMemcpy(NULL, CL_TRUE, NULL, NULL, 4, 0, NULL, NULL), 0);
    ck_assert_int_lt(table->clSetKernelArgSVMPointer(NULL, 0, NULL), 0);
    ck_assert_int_lt(table->clSetKernelExecInfo(NULL, 0, 0, NULL), 0);
    error = 0;
    ck_assert_ptr_null(table->clCreatePipe(NULL, 0, 4, 4, NULL, &error));
    ck_assert_int_lt(error, 0);
    error = 0;
    ck_assert_ptr_null(table->clCloneKernel(NULL, &error));
    ck_assert_int_lt(error, 0);
    error = 0;
    ck_assert_ptr_null(table->clCreateProgramWithIL(NULL, NULL, 0, &error));
    ck_assert_int_lt(error, 0);
    error = 0;
    ck_assert_ptr_null(table->clCreateFromGLBuffer(NULL, 0, 1, &error));
    ck_assert_int_lt(error, 0);
    ck_assert_int_lt(table->clEnqueueAcquireGLObjects(NULL, 0, NULL, 0, NULL, &event), 0);
    ck_assert_ptr_null(event);
}
END_TEST

START_TEST(extension_functions) {
    void *(CL_API_CALL * by_name)(const char *);
    void *address;

    open_library();
    address = symbol("clGetExtensionFunctionAddress");
    memcpy(&by_name, &address, sizeof(address));
    ck_assert_ptr_nonnull(by_name("clIcdGetPlatformIDsKHR"));
    ck_assert_ptr_nonnull(by_name("clGetDeviceTaskCountsTUTTI"));
    ck_assert_ptr_null(by_name("clNoSuchThingEXT"));
}
END_TEST

/* Parts of a buffer that are released, and bring it what they contain, while the process ends. */
static void leave_parts(const cl_icd_dispatch *table, cl_context in, cl_command_queue on) {
    enum { PARTS = 32, BYTES = 8192 };
    cl_int code, pattern = 7;
    cl_mem whole = table->clCreateBuffer(in, 0, PARTS * BYTES, NULL, &code);
    for (size_t i = 0; i < PARTS; i++) {
        cl_buffer_region region = {i * BYTES, BYTES};
        cl_mem part =
            table->clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
        table->clEnqueueFillBuffer(on, part, &pattern, sizeof(pattern), 0, BYTES, 0, NULL, NULL);
        table->clReleaseMemObject(part);
    }
    table->clReleaseMemObject(whole);
}

/* What a small program does; the exit status says which step failed. */
static int small_program(const cl_icd_dispatch *table, bool leaves) {
    const char *source = "kernel void f(global int *out) { out[0] = 42; }";
    cl_device_id found;
    cl_context made;
    cl_command_queue on;
    cl_program program;
    cl_kernel kernel;
    cl_mem buffer;
    cl_int code, seen = 0;

    if (table->clGetDeviceIDs(own, CL_DEVICE_TYPE_ALL, 1, &found, NULL) != CL_SUCCESS)
        return 1;
    made = table->clCreateContext(NULL, 1, &found, NULL, NULL, &code);
    if (code != CL_SUCCESS)
        return 2;
    on = table->clCreateCommandQueue(made, found, 0, &code);
    program = table->clCreateProgramWithSource(made, 1, &source, NULL, &code);
    if (table->clBuildProgram(program, 0, NULL, NULL, NULL, NULL) != CL_SUCCESS)
        return 3;
    kernel = table->clCreateKernel(program, "f", &code);
    buffer = table->clCreateBuffer(made, 0, 4, NULL, &code);
    table->clSetKernelArg(kernel, 0, sizeof(buffer), &buffer);
    table->clEnqueueTask(on, kernel, 0, NULL, NULL);
    table->clEnqueueReadBuffer(on, buffer, CL_TRUE, 0, 4, &seen, 0, NULL, NULL);
    if (seen != 42)
        return 4;
    if (leaves)
        leave_parts(table, made, on);
    table->clReleaseMemObject(buffer);
    table->clReleaseKernel(kernel);
    table->clReleaseProgram(program);
    table->clReleaseCommandQueue(on);
    table->clReleaseContext(made);
    return starpu_started() == 0 ? 5 : 0;
}

/* Runs small_program() in a process of its own and collects what it prints on both streams. */
static void run_quietly(const char *finish) {
    char text[4096] = "", *where = text;
    int streams[2], status;
    ssize_t got;
    pid_t child;

    ck_assert_int_eq(pipe(streams), 0);
    fflush(stdout);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        dup2(streams[1], 1);
        dup2(streams[1], 2);
        close(streams[0]);
        close(streams[1]);
        /* A new image: a driver that was opened before a fork does not work after it. */
        execl("/proc/self/exe", "test_door", "--small-program", finish, (char *)NULL);
        _exit(99);
    }
    close(streams[1]);
    while ((got = read(streams[0], where, text + sizeof(text) - 1 - where)) > 0)
        where += got;
    *where = 0;
    close(streams[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
                  "the process ended with status %#x and printed \"%s\"", status, text);
    ck_assert_msg(text[0] == 0, "the process printed \"%s\"", text);
}

START_TEST(nothing_is_printed) { run_quietly("_exit"); }
END_TEST

START_TEST(exit_is_clean) { run_quietly("exit"); }
END_TEST

START_TEST(exit_with_work_left) {
    for (int i = 0; i < 10; i++)
        run_quietly("leave");
}
END_TEST

/* A child has none of the drivers' threads: it gets an error, and does not hang. */
START_TEST(forked_child_gets_errors) {
    const cl_icd_dispatch *table = dispatch();
    cl_device_id found;
    cl_int code = CL_SUCCESS;
    int status;
    pid_t child;

    ck_ok(table->clGetDeviceIDs(own, CL_DEVICE_TYPE_ALL, 1, &found, NULL));
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        alarm(30);
        table->clCreateContext(NULL, 1, &found, NULL, NULL, &code);
        _exit(code == CL_DEVICE_NOT_AVAILABLE ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x", status);
}
END_TEST

/* The same in a process where no test runs, so without assertions. */
static int run_small_program(bool leaves) {
    clIcdGetPlatformIDsKHR_fn get_platforms;
    void *address;

    library = dlopen(getenv("TUTTI_TEST_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
    address = library ? dlsym(library, "clIcdGetPlatformIDsKHR") : NULL;
    if (!address)
        return 98;
    memcpy(&get_platforms, &address, sizeof(address));
    return get_platforms(1, &own, NULL) ? 97
                                        : small_program(*(const cl_icd_dispatch **)own, leaves);
}

int main(int argc, char **argv) {
    if (argc == 3 && !strcmp(argv[1], "--small-program")) {
        int failed = run_small_program(!strcmp(argv[2], "leave"));
        /* By exit() the handlers of all libraries run, by _exit() none. */
        if (!strcmp(argv[2], "_exit"))
            _exit(failed);
        exit(failed);
    }
    const TTest *const tests[] = {
        opening_starts_no_thread, exported_symbols,    every_slot_is_filled,
        queries_start_no_starpu,  extension_functions, unsupported_entry_points_answer,
        nothing_is_printed,       exit_is_clean,       exit_with_work_left,
        forked_child_gets_errors,
    };

    return test_main_bare(argc, argv, tests, COUNT(tests));
}
