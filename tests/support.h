/* SPDX-License-Identifier: MIT */
/*
 * What every test program shares: the choice of the platform, one context and queue per test,
 * assertions that name OpenCL errors, and the TAP report.
 *
 * The tests ask only what the OpenCL 1.2 specification says, so that they can be tried on any
 * driver. Where another driver is known to be wrong, the test says so with skip_on() or excused().
 */
#ifndef TUTTI_TESTS_SUPPORT_H
#define TUTTI_TESTS_SUPPORT_H

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The platform's name as PoCL and Oclgrind give it. */
#define POCL "Portable Computing Language"
#define OCLGRIND "Oclgrind"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Set for each test: the platform under test, its first device, a fresh context holding only that
 * device, and a fresh in-order queue with profiling. They are released after the test. */
extern cl_platform_id platform;
extern cl_device_id device;
extern cl_context context;
extern cl_command_queue queue;

/* Where the create functions of a test put their error; tests with threads have their own. */
extern cl_int error;

const char *cl_error_name(cl_int code);

#define ck_assert_cl(call, expected)                                                               \
    do {                                                                                           \
        cl_int seen_ = (call), expected_ = (expected);                                             \
        ck_assert_msg(seen_ == expected_, "%s gave %s, expected %s", #call, cl_error_name(seen_),  \
                      cl_error_name(expected_));                                                   \
    } while (0)

#define ck_ok(call) ck_assert_cl(call, CL_SUCCESS)

/* A create function, called with &error, that must fail with this code and return NULL. */
#define ck_refused(call, expected)                                                                 \
    do {                                                                                           \
        error = 4242;                                                                              \
        const void *object_ = (call);                                                              \
        cl_int expected_ = (expected);                                                             \
        ck_assert_msg(error == expected_, "%s gave %s, expected %s", #call, cl_error_name(error),  \
                      cl_error_name(expected_));                                                   \
        ck_assert_msg(object_ == NULL, "%s failed and yet returned an object", #call);             \
    } while (0)

/* A create function, called with &error, that must work; the value is the object. */
#define ck_made(call)                                                                              \
    ({                                                                                             \
        error = 4242;                                                                              \
        __typeof__(call) object_ = (call);                                                         \
        ck_assert_msg(error == CL_SUCCESS, "%s gave %s", #call, cl_error_name(error));             \
        ck_assert_msg(object_ != NULL, "%s returned NULL", #call);                                 \
        object_;                                                                                   \
    })

/* An information query of a known type; the value is the answer, the size of which is checked. */
#define get_info(type, function, object, name)                                                     \
    ({                                                                                             \
        type answer_;                                                                              \
        size_t size_ = 0;                                                                          \
        ck_ok(function(object, name, sizeof(answer_), &answer_, &size_));                          \
        ck_assert_msg(size_ == sizeof(answer_), "%s: %zu bytes, expected %zu", #name, size_,       \
                      sizeof(answer_));                                                            \
        answer_;                                                                                   \
    })

/* What every information query must do: refuse an unknown name and too small a size, accept both
 * pointers NULL, tell the size. */
#define check_info_rules(function, object, name)                                                   \
    do {                                                                                           \
        size_t size_ = 0;                                                                          \
        char room_[64];                                                                            \
        ck_assert_cl(function(object, 0xFFFFu, sizeof(room_), room_, NULL), CL_INVALID_VALUE);     \
        ck_ok(function(object, name, 0, NULL, &size_));                                            \
        ck_assert_msg(size_ > 0, "%s: size 0", #name);                                             \
        ck_assert_cl(function(object, name, size_ - 1, room_, NULL), CL_INVALID_VALUE);            \
        ck_ok(function(object, name, 0, NULL, NULL));                                              \
    } while (0)

/* Ends the test as skipped when the platform's name contains this; the reason names its fault. */
#define skip_on(part, reason)                                                                      \
    do {                                                                                           \
        if (test_platform_is(part)) {                                                              \
            test_skip(reason);                                                                     \
            return;                                                                                \
        }                                                                                          \
    } while (0)

/* Ends the test as skipped when the machine lacks what it needs. */
#define skip_if(condition, reason)                                                                 \
    do {                                                                                           \
        if (condition) {                                                                           \
            test_skip(reason);                                                                     \
            return;                                                                                \
        }                                                                                          \
    } while (0)

/* True when a single question must not be asked of this platform; the report says why. */
bool excused(const char *part, const char *reason);

bool test_platform_is(const char *part);
/* Which version of OpenCL a text of the platform or of the device, or the device itself, says that
 * it is: major * 100 + minor * 10. */
int test_version_of(const char *text);
int test_device_version(void);
/* Has no real device memory of its own, and need none seem to? */
bool no_device_memory(void);
void test_skip(const char *reason);

/* The environment's number, or the value given. */
size_t test_size(const char *variable, size_t otherwise);

/* Runs the tests, each by itself, prints TAP, returns the exit status. Arguments name the tests to
 * run; none means all. CK_FORK=yes runs each in a process of its own. */
int test_main(int argc, char **argv, const TTest *const *tests, size_t count);

/* Without a context and queue: for the programs about platforms and about the library file. */
int test_main_bare(int argc, char **argv, const TTest *const *tests, size_t count);

/* Sets `platform` and `device`, for processes that a bare program makes; or ends the process. */
void test_choose_device(void);

/*
 * This program once more, in a process of its own with these settings ("NAME=value ...", or "") and
 * arguments. What it prints, on standard error too, is read from what the first returns; the second
 * reads the rest and waits: it must end well, and no test of it fail. The third does both. What it
 * said stays until the next such call.
 */
FILE *test_start_again(const char *settings, const char *arguments);
const char *test_finish_again(FILE *child);
const char *test_run_again(const char *settings, const char *arguments);

/* Second context on the same device, released after the test. */
cl_context other_context(void);
cl_command_queue other_queue(void);

/* Queue of the test's context, to be released by the caller. */
cl_command_queue make_queue(cl_command_queue_properties properties);

cl_mem make_buffer(cl_mem_flags flags, size_t size, void *host);
cl_program make_program(const char *source);
cl_program make_program_with(const char *source, const char *options);
cl_kernel make_kernel(cl_program program, const char *name);
cl_event make_user_event(void);

/* One-dimensional launch on the test's queue, local size left to the driver. */
void launch(cl_kernel kernel, size_t global);

/* Blocking reads and writes of ints on the test's queue. */
void write_ints(cl_mem buffer, const cl_int *from, size_t count);
void read_ints(cl_mem buffer, cl_int *to, size_t count);

/* How many there are; that there are none, when all unmaps are over. */
cl_uint map_count(cl_mem mem);
void ck_no_maps(cl_mem mem);

cl_int event_status(cl_event event);

/*
 * Before test_main: where PoCL is there, its devices alone, unless TUTTI_DEVICES says otherwise. For
 * what a faster one would have done before the test looks.
 */
void test_prefer_pocl(void);

/* Before test_main: Tutti logs all it does to a file, until test_log_end. False: there is none. */
bool test_log_begin(void);
void test_log_end(void);
/* What was logged since the last close, which notes how far it was read; NULL: nothing. */
FILE *test_log_open(void);
void test_log_close(FILE *log);
/* How many of those lines contain this. */
int test_log_count(const char *part);
/* So: how many batches went past StarPU since the last call. */
int test_went_directly(void);
/* test_main between the two; 99 if there is no log. */
int test_main_logged(int argc, char **argv, const TTest *const *tests, size_t count);

/* Small deterministic generator, so that a seed repeats a run. */
uint32_t next_random(uint32_t *state);

/* Kernels that many tests use:
 *   set(global int *out, int value)                 out[i] = value
 *   add(global int *data, int value)                data[i] += value
 *   copy(global const int *in, global int *out)     out[i] = in[i]
 *   slow(global int *data, int rounds)              a long chain of work per element        */
extern const char common_source[];

#endif
