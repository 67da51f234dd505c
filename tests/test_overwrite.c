/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: a kernel that is proven to write all of a buffer gets fresh storage for it while
 * earlier commands use the old one. Where the proof would be wrong, elements that the kernel does
 * not write would lose their values.
 */
#include "support.h"

#include <semaphore.h>
#include <unistd.h>

enum { W = 64, H = 16, N = W * H, BYTES = N * sizeof(cl_int), LAST = N - 1 };

struct user {
    cl_int *buffer, *seen;
};

static sem_t started, go;
static cl_int before[N], seen[N], back[N];
static cl_command_queue side;

static void CL_CALLBACK use(void *data) {
    const struct user *user = data;

    sem_post(&started);
    sem_wait(&go);
    memcpy(user->seen, user->buffer, BYTES);
}

static void begin(void) {
    sem_init(&started, 0, 0);
    sem_init(&go, 0, 0);
    side = make_queue(0);
    for (int i = 0; i < N; i++)
        before[i] = 1000 + i;
}

static void end(void) {
    ck_ok(clReleaseCommandQueue(side));
    sem_destroy(&started);
    sem_destroy(&go);
}

/* Fills the buffer, and lets a native kernel of the other queue use it until let_go(). */
static void occupy(cl_mem buffer) {
    struct user user = {NULL, seen};
    const void *place = &user.buffer;

    write_ints(buffer, before, N);
    memset(seen, 0, sizeof(seen));
    memset(back, 0, sizeof(back));
    ck_ok(clEnqueueNativeKernel(side, use, &user, sizeof(user), 1, &buffer, &place, 0, NULL, NULL));
    ck_ok(clFlush(side));
    sem_wait(&started);
}

static void let_go(const char *what) {
    sem_post(&go);
    ck_ok(clFinish(side));
    ck_ok(clFinish(queue));
    ck_assert_msg(!memcmp(seen, before, BYTES), "%s: the earlier command saw %d", what, seen[0]);
}

static void arguments(cl_kernel kernel, cl_mem buffer, cl_int width) {
    ck_ok(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(kernel, 1, sizeof(width), &width));
}

static void launch_2d(cl_kernel kernel, size_t width, size_t height) {
    const size_t global[2] = {width, height};

    ck_ok(clEnqueueNDRangeKernel(queue, kernel, 2, NULL, global, NULL, 0, NULL, NULL));
}

static void read_back(cl_mem buffer) {
    ck_ok(clEnqueueReadBuffer(queue, buffer, CL_FALSE, 0, BYTES, back, 0, NULL, NULL));
    ck_ok(clFlush(queue));
}

/*
 * Looks at memory that a command may be writing, as no event tells of it before its turn: not for
 * ThreadSanitizer.
 */
#define UNORDERED __attribute__((no_sanitize("thread"), noinline))

UNORDERED static bool arrives(volatile cl_int *host, cl_int wanted) {
    for (int i = 0; i < 2000 && host[LAST] != wanted; i++)
        usleep(5000);
    return host[LAST] == wanted;
}

/* The launch writes 7 everywhere, and does not wait for the buffer's user. */
static void passes(const char *what, cl_kernel kernel, bool plane) {
    cl_mem buffer = make_buffer(0, BYTES, NULL);
    bool passed;

    occupy(buffer);
    arguments(kernel, buffer, W);
    if (plane)
        launch_2d(kernel, W, H);
    else
        launch(kernel, N);
    read_back(buffer);
    passed = arrives(back, 7);
    let_go(what);
    ck_assert_msg(passed, "waited: %s", what);
    for (int i = 0; i < N; i++)
        ck_assert_msg(back[i] == 7, "%s: element %d is %d", what, i, back[i]);
    ck_ok(clReleaseMemObject(buffer));
}

/* The launch leaves this element, or adds `more` to it. */
static void keeps(const char *what, cl_kernel kernel, bool plane, int kept, cl_int more) {
    cl_mem buffer = make_buffer(0, BYTES, NULL);

    occupy(buffer);
    arguments(kernel, buffer, W);
    if (plane)
        launch_2d(kernel, W, H);
    else
        launch(kernel, N);
    read_back(buffer);
    let_go(what);
    ck_assert_msg(back[kept] == before[kept] + more, "%s: element %d was %d and is %d", what, kept,
                  before[kept], back[kept]);
    ck_ok(clReleaseMemObject(buffer));
}

struct body {
    const char *text;
    bool plane;
};

/* One source with a kernel k0, k1… for each body. */
static cl_program program_of(const struct body *body, size_t count) {
    static char source[1 << 16];
    char *at = source;

    at += sprintf(at, "void helper(global int *p, int i) { if (i < %d) p[i] = 7; }\n", LAST);
    for (size_t i = 0; i < count; i++)
        at += sprintf(at, "kernel void k%zu(global int *p, int w) {\n%s\n}\n", i, body[i].text);
    return make_program(source);
}

static cl_kernel kernel_of(cl_program program, size_t i) {
    char name[16];

    snprintf(name, sizeof(name), "k%zu", i);
    return make_kernel(program, name);
}

START_TEST(what_is_proven) {
    static const struct body body[] = {
        {"p[get_global_id(0)] = 7;", false},
        {"const int i = get_global_id(0); p[i] = 7;", false},
        {"size_t i = (int)get_global_id(0); p[i] = i < 5 ? 7 : 7;", false},
        {"int x = 3, i = get_global_id(0); x = 7; p[i] = x;", false},
        {"int i = get_global_id(0); int s = 0; for (int k = 0; k < 7; k++) { s += 1; } p[i] = s;",
         false},
        {"int i = get_global_id(0); if (i > 3 && i < 5) { w = 1; } p[i] = 7;", false},
        {"uint const i = get_global_id(1); uint const j = get_global_id(0); p[i * w + j] = 7;",
         true},
        {"p[get_global_id(0) + get_global_id(1) * get_global_size(0)] = 7;", true},
        {"int x = get_global_id(0), y = get_global_id(1); p[w * y + x] = 7;", true},
        {"int x = get_global_id(0), y = get_global_id(1), i = y * w + x; p[i] = 7;", true},
        {"const int y = get_global_id(1); int4 v = 7; v.x = 7; v.y = 7;"
         "p[y * w + get_global_id(0)] = v.y;",
         true},
    };
    cl_program program = program_of(body, COUNT(body));

    begin();
    for (size_t i = 0; i < COUNT(body); i++) {
        cl_kernel kernel = kernel_of(program, i);

        passes(body[i].text, kernel, body[i].plane);
        ck_ok(clReleaseKernel(kernel));
    }
    ck_ok(clReleaseProgram(program));
    end();
}
END_TEST

/* All of these leave the last element. */
START_TEST(what_is_not_proven) {
    static const struct body body[] = {
        {"p[get_global_id(0)] = 7;", false}, /* but this one: the source can be read */
        {"if (get_global_id(0) < 1023) p[get_global_id(0)] = 7;", false},
        {"if (get_global_id(0) < 1023) { w = 7; p[get_global_id(0)] = 7; }", false},
        {"if (get_global_id(0) == 1023) return; p[get_global_id(0)] = 7;", false},
        {"if (get_global_id(0) == 1023) w = 1; else p[get_global_id(0)] = 7;", false},
        {"if (get_global_id(0) == 1023) goto out; p[get_global_id(0)] = 7; out: ;", false},
        {"for (int k = get_global_id(0); k < 1023; k = 2000) p[get_global_id(0)] = 7;", false},
        {"while (get_global_id(0) != 1023 && w) p[get_global_id(0)] = w = 0;", false},
        {"do { if (get_global_id(0) == 1023) break; p[get_global_id(0)] = 7; } while (0);", false},
        {"switch (get_global_id(0) / 1023) { case 0: p[get_global_id(0)] = 7; }", false},
        {"switch (get_global_id(0) / 1023) case 0: p[get_global_id(0)] = 7;", false},
        {"get_global_id(0) < 1023 ? (p[get_global_id(0)] = 7) : 7;", false},
        {"get_global_id(0) < 1023 && (p[get_global_id(0)] = 7);", false},
        {"p[get_global_id(0)] = get_global_id(0) < 1023 ? 7 : p[get_global_id(0)];", false},
        {"int i = get_global_id(0); w = p[i]; p[i] = i < 1023 ? 7 : w;", false},
        {"global int *q = p; int i = get_global_id(0); p[i] = i < 1023 ? 7 : q[i];", false},
        {"p[get_global_id(0)] += get_global_id(0) < 1023;", false},
        {"p[get_global_id(0)] |= 0;", false},
        {"p[get_global_id(0)] == 7;", false},
        {"p[get_global_id(0)]++, --p[get_global_id(0)];", false},
        {"atomic_add(p + get_global_id(0), 0);", false},
        {"helper(p, get_global_id(0));", false},
        {"vstore2((int2)(7, 7), get_global_id(0) / 3, p);", false},
        {"p[0] = 7;", false},
        {"p[get_local_id(0) / 2] = 7;", false},
        {"p[get_group_id(0) / 2] = 7;", false},
        {"p[get_global_id(1)] = 7;", false},
        {"p[get_global_id(0) / 2] = 7;", false},
        {"p[get_global_id(0) & 511] = 7;", false},
        {"p[-get_global_id(0) & 511] = 7;", false},
        {"p[get_global_id(0) % 1023] = 7;", false},
        {"p[(uchar)get_global_id(0)] = 7;", false},
        {"p[min((int)get_global_id(0), 1022)] = 7;", false},
        {"p[get_global_id(0) < 1023 ? get_global_id(0) : 0] = 7;", false},
        {"p[(get_global_id(0), 0)] = 7;", false},
        {"int i = get_global_id(0); i = 0; p[i] = 7;", false},
        {"int i = get_global_id(0); i -= i == 1023; p[i] = 7;", false},
        {"int i = get_global_id(0); i >>= 1; p[i] = 7;", false},
        {"int i = get_global_id(0); i <<= 0, i /= 2; p[i] = 7;", false},
        {"int i = get_global_id(0); if (i) i--; p[i] = 7;", false},
        {"int i = get_global_id(0); if (i) --i; p[i] = 7;", false},
        {"int i = get_global_id(0); (i) = 5; p[i] = 7;", false},
        {"int i = get_global_id(0); ((i)) /= 2; p[i] = 7;", false},
        {"int i = get_global_id(0); *(&i) = 5; p[i] = 7;", false},
        {"int i = get_global_id(0); int *j = &i; *j = 5; p[i] = 7;", false},
        {"int i = get_global_id(0); if (w &&&i) { int *j =&i; *j = 5; } p[i] = 7;", false},
        {"int i = get_global_id(0); { int *j = w ? &i : 0; j[0] = 5; } p[i] = 7;", false},
        {"uchar i = get_global_id(0); p[i] = 7;", false},
        {"short i = get_global_id(0) * 64; p[i & 511] = 7;", false},
        {"bool i = get_global_id(0); p[i] = 7;", false},
        {"int i; i = get_global_id(0) / 2; p[i] = 7;", false},
        {"int i = 0; { int i = get_global_id(0); w = i; } p[i] = 7;", false},
        {"{ int i = get_global_id(0); w = i; } int i = 5; p[i] = 7;", false},
        {"for (int i = get_global_id(0); i < 0;) { } int i = 5; p[i] = 7;", false},
        {"int i = 5, j = get_global_id(0); p[i] = j;", false},
        {"int j = get_global_id(0), i = j / 2; p[i] = 7;", false},
        {"int4 v = get_global_id(0); v.x = 5; p[v.x] = 7;", false},
        {"int x = get_global_id(0), y = get_global_id(1); p[y * w + y] = 7;"
         "if (x + y == 78) p[1023] = 2023;",
         true},
        {"int x = get_global_id(0), y = get_global_id(1); p[x * 15 + y] = 7;", true},
        {"int x = get_global_id(0), y = get_global_id(1); p[y * (w - 1) + x] = 7;", true},
        {"int x = get_global_id(0), y = get_global_id(1); w--; p[y * w + x] = 7;", true},
        {"int x = get_global_id(0), y = get_global_id(1); p[y * w + 63 - x - (y == 15)] = 7;",
         true},
        {"int x = get_global_id(0), y = get_global_id(1); p[y * w + x / 2] = 7;", true},
        {"p[get_global_id(1) * get_global_size(1) + get_global_id(0)] = 7;", true},
    };
    cl_program program = program_of(body, COUNT(body));
    cl_kernel sure = kernel_of(program, 0);

    begin();
    passes(body[0].text, sure, false);
    ck_ok(clReleaseKernel(sure));
    for (size_t i = 1; i < COUNT(body); i++) {
        cl_kernel kernel = kernel_of(program, i);

        keeps(body[i].text, kernel, body[i].plane, LAST, 0);
        ck_ok(clReleaseKernel(kernel));
    }
    ck_ok(clReleaseProgram(program));
    end();
}
END_TEST

/* A kernel f that seems to write everything, and leaves the last element. */
START_TEST(sources_that_hide_something) {
    static const struct {
        const char *source, *options;
    } hidden[] = {
        {"#define LEAVE if (get_global_id(0) == 1023) return\n"
         "kernel void f(global int *p, int w) { LEAVE; p[get_global_id(0)] = 7; }",
         ""},
        {"#define get_global_id(d) get_local_size(d)\n"
         "kernel void f(global int *p, int w) { p[get_global_id(0) & 511] = 7; }",
         ""},
        {"#define id 0 * get_global_id\n"
         "kernel void f(global int *p, int w) { p[id(0)] = 7; }",
         ""},
        {"kernel void f(global int *p, int w) { int i = get_global_id(0); p[i] = 7; }",
         "-Dget_global_id(d)=0"},
        {"kernel void f(global int *p, int w) { LEAVE p[get_global_id(0)] = 7; }",
         "-DLEAVE=if(get_global_id(0)<1023)"},
        {"#if 0\nkernel void f(global int *p, int w) { p[get_global_id(0)] = 7; }\n#else\n"
         "kernel void f(global int *p, int w) { p[0] = 7; }\n#endif",
         ""},
        {"#ifdef ALL\n#else\n#define KERNEL kernel\n#endif\n"
         "KERNEL void f(global int *p, int w) { p[0] = 7; }",
         ""},
        {"#define IGNORE(x)\n#define KERNEL kernel\n"
         "IGNORE(kernel void f(global int *p, int w) { p[get_global_id(0)] = 7; })\n"
         "KERNEL void f(global int *p, int w) { p[0] = 7; }",
         ""},
        {"kernel void f(global int *p, int w) {\n"
         "if (get_global_id(0) == 1023) retu\\\nrn; p[get_global_id(0)] = 7; }",
         ""},
        {"kernel void f(global int *p, int w) {\n"
         "if (get_global_id(0) < 1023) <% w = 1; p[get_global_id(0)] = 7; %> }",
         ""},
        {"kernel void f(global int *p, int w) {\n"
         "if (get_global_id(0) < 1023) // really\?\?/\n w = 1;\np[get_global_id(0)] = 7; }",
         "-cl-std=CL1.2"},
        {"kernel void f(global int *p, int w);\n"
         "kernel void g(global int *p, int w) { p[get_global_id(0)] = 7; }\n"
         "kernel void f(global int *p, int w) { p[0] = 7; }",
         ""},
        {"kernel void f(global int *p, int w);\n"
         "kernel void f(global int *q, int p) { q[p] = 7; }",
         ""},
        {"kernel void g(global int *p, int w) { p[get_global_id(0)] = 7; }\n"
         "kernel void f(global int *p, int w) { if (w == 0) g(p, w); }",
         ""},
        {"kernel void f(global int *p, int w) { /* } */ if (w == 0) { char c = '}'; w = c;\n"
         "p[get_global_id(0)] = 7; } }",
         ""},
        {"#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
         "kernel void f(global int *p, int w) { p[get_global_id(0) / 2] = 7; }",
         ""},
        {"kernel void f(global int *p, int w) { global int *q = (global int *)&((global char *)p)"
         "[0]; q[0] = 7; }",
         ""},
    };

    begin();
    for (size_t i = 0; i < COUNT(hidden); i++) {
        cl_program program;
        cl_kernel kernel;
        cl_int built;

        program = ck_made(
            clCreateProgramWithSource(context, 1, (const char **)&hidden[i].source, NULL, &error));
        built = clBuildProgram(program, 1, &device, hidden[i].options, NULL, NULL);
        /* Some compilers refuse some of these tricks. */
        if (built == CL_SUCCESS) {
            kernel = make_kernel(program, "f");
            /* The trigraph is one for some compilers only. */
            if (!strstr(hidden[i].source, "\?\?"))
                keeps(hidden[i].source, kernel, false, LAST, 0);
            ck_ok(clReleaseKernel(kernel));
        }
        ck_ok(clReleaseProgram(program));
    }
    end();
}
END_TEST

START_TEST(launches_that_cover_less) {
    static const char *source =
        "kernel void line(global int *p, int w) { p[get_global_id(0)] = 7; }\n"
        "kernel void plane(global int *p, int w) {\n"
        "    p[get_global_id(1) * w + get_global_id(0)] = 7; }\n"
        "kernel void two(global int2 *p, int w) { p[get_global_id(0)].x = 7; }\n"
        "kernel void both(global int *p, int w, global const int *q) {\n"
        "    p[get_global_id(0)] = q[get_global_id(0)] + 1; }\n";
    const size_t one = 1, less = N - 1;
    cl_program program = make_program(source);
    cl_kernel line = make_kernel(program, "line"), plane = make_kernel(program, "plane");
    cl_kernel both = make_kernel(program, "both"), two = make_kernel(program, "two");
    cl_mem buffer = make_buffer(0, BYTES, NULL), half;
    cl_buffer_region part = {0, BYTES / 2};

    begin();
    passes("line", line, false);
    passes("plane", plane, true);

    occupy(buffer);
    arguments(line, buffer, W);
    launch(line, less);
    read_back(buffer);
    let_go("one work-item less");
    ck_assert_int_eq(back[LAST], before[LAST]);

    occupy(buffer);
    ck_ok(clEnqueueNDRangeKernel(queue, line, 1, &one, &less, NULL, 0, NULL, NULL));
    read_back(buffer);
    let_go("an offset");
    ck_assert_int_eq(back[0], before[0]);
    ck_assert_int_eq(back[LAST], 7);

    occupy(buffer);
    arguments(plane, buffer, W);
    launch_2d(plane, W, H - 1);
    read_back(buffer);
    let_go("one row less");
    ck_assert_int_eq(back[LAST], before[LAST]);

    occupy(buffer);
    arguments(plane, buffer, W / 2); /* rows that overlap */
    launch_2d(plane, W, H);
    read_back(buffer);
    let_go("another width");
    ck_assert_int_eq(back[LAST], before[LAST]);

    occupy(buffer);
    arguments(two, buffer, W);
    launch(two, N / 2);
    read_back(buffer);
    let_go("half of each element");
    ck_assert_int_eq(back[LAST], before[LAST]);
    ck_assert_int_eq(back[LAST - 1], 7);

    occupy(buffer);
    arguments(both, buffer, W);
    ck_ok(clSetKernelArg(both, 2, sizeof(buffer), &buffer));
    launch(both, N);
    read_back(buffer);
    let_go("the same buffer twice");
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(back[i], before[i] + 1);

    half = ck_made(clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &part, &error));
    write_ints(buffer, before, N);
    arguments(line, half, W);
    launch(line, N / 2);
    read_ints(buffer, back, N);
    ck_assert_int_eq(back[0], 7);
    ck_assert_int_eq(back[LAST], before[LAST]);
    arguments(line, buffer, W);
    launch(line, N);
    read_ints(half, back, N / 2);
    ck_assert_int_eq(back[0], 7);
    ck_ok(clReleaseMemObject(half));

    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseKernel(line));
    ck_ok(clReleaseKernel(plane));
    ck_ok(clReleaseKernel(two));
    ck_ok(clReleaseKernel(both));
    ck_ok(clReleaseProgram(program));
    end();
}
END_TEST

/* Each kernel's result is read while the next ones overwrite it: all reads see their own. */
START_TEST(results_through_one_buffer) {
    enum { FRAMES = 100 };
    static const char *source =
        "kernel void first(global int *p, int w) { p[get_global_id(0)] = w; }\n"
        "kernel void next(global const int *q, global int *p, int w) {\n"
        "    const int i = get_global_id(0); p[i] = q[i] + w + i; }\n";
    cl_program program = make_program(source);
    cl_kernel first = make_kernel(program, "first"), next = make_kernel(program, "next");
    cl_mem inner = make_buffer(0, BYTES, NULL), result = make_buffer(0, BYTES, NULL);
    cl_int *out = calloc(FRAMES, BYTES);

    ck_assert_ptr_nonnull(out);
    ck_ok(clSetKernelArg(next, 0, sizeof(inner), &inner));
    ck_ok(clSetKernelArg(next, 1, sizeof(result), &result));
    for (int round = 0; round < 3; round++) {
        for (cl_int f = 0; f < FRAMES; f++) {
            arguments(first, inner, f);
            ck_ok(clSetKernelArg(next, 2, sizeof(round), &round));
            launch(first, N);
            launch(next, N);
            ck_ok(
                clEnqueueReadBuffer(queue, result, CL_FALSE, 0, BYTES, out + f * N, 0, NULL, NULL));
        }
        ck_ok(clFinish(queue));
        for (int i = 0; i < FRAMES * N; i++)
            ck_assert_int_eq(out[i], i / N + round + i % N);
    }
    free(out);
    ck_ok(clReleaseMemObject(inner));
    ck_ok(clReleaseMemObject(result));
    ck_ok(clReleaseKernel(first));
    ck_ok(clReleaseKernel(next));
    ck_ok(clReleaseProgram(program));
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        what_is_proven,           what_is_not_proven,         sources_that_hide_something,
        launches_that_cover_less, results_through_one_buffer,
    };

    return test_main(argc, argv, tests, COUNT(tests));
}
