/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti, without a device: may a compiler read files for a source? The decision is compiled
 * into the test.
 */
#include "virtual_device/branches.c"
#include "virtual_device/include.c"
#include "virtual_device/source.c"

#include "support.h"

/* What source.c asks of the devices is not asked here. */
const struct tutti_merged *tutti_merged(void) { return NULL; }

static void ck_each(const char *const *texts, size_t count, const char *options, bool reads) {
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(tutti_source_reads_files(texts[i], options) == reads, "%s: not %d", texts[i],
                      reads);
}

/* Whatever is not plain may. */
START_TEST(those_that_may) {
    static const char *const texts[] = {
        "#include \"a\"\n",
        "  # \\\n include <a>\n",
        "%:include \"a\"\n",
        "#if 0\n#include \"a\"\n#endif\n",
        "#if __has_include(\"a\")\n#endif\n",
        "#ifdef __OPENCL_VERSION__\n#include \"a\"\n#endif\n",
        "#ifndef __OPENCL_VERSION__\n#else\n#include \"a\"\n#endif\n",
        "#ifndef __OPENCL_VERSION__\n#endif\n#include \"a\"\n",
        "#define __cplusplus\n#ifdef __cplusplus\n#include \"a\"\n#endif\n",
        "#ifdef OTHER\n#include \"a\"\n#endif\n",
        "#ifdef __cplusplus\n#elif 1\n#include \"a\"\n#endif\n",
        "#ifdef __cplusplus\n#elifdef __OPENCL_VERSION__\n#include \"a\"\n#endif\n",
        "#if defined(__cplusplus) || 1\n#include \"a\"\n#endif\n",
        "#if !defined(__OPENCL_VERSION__) || 1\n#include \"a\"\n#endif\n",
        "#if (__OPENCL_VERSION__)\n#include \"a\"\n#endif\n",
        "#if ! ! defined(__OPENCL_VERSION__)\n#include \"a\"\n#endif\n",
        "#if\n#include \"a\"\n#endif\n",
        "#ifdef __cplusplus\n%:else\n#include \"a\"\n#endif\n",
        "#ifdef __cplusplus\n\?\?=else\n#include \"a\"\n#endif\n",
        "#undef __OPENCL_VERSION__\n#ifndef __OPENCL_VERSION__\n#include \"a\"\n#endif\n",
        "#ifdef __cplusplus\n#ifdef X\n#endif\n#else\n#include \"a\"\n#endif\n",
        "#ifdef X\n#ifdef __cplusplus\n#endif\n#include \"a\"\n#endif\n",
        "#ifdef Y\n#define X\n#endif\n#ifndef X\n#include \"a\"\n#endif\n",
        "#define X\n#undef X\n#ifndef X\n#include \"a\"\n#endif\n",
        "#define X\n#ifdef Y\n#undef X\n#endif\n#ifndef X\n#include \"a\"\n#endif\n",
        "#ifdef Y\n#elif defined(__OPENCL_VERSION__)\n#else\n#endif\n#include \"a\"\n",
        "#ifdef Y\n#elif defined(Z)\n#else\n#include \"a\"\n#endif\n",
        "#ifdef __cplusplus\n#elif defined(X)\n#include \"a\"\n#endif\n",
        "#endif\n#else\n#include \"a\"\n",
        "/*\n#ifdef __cplusplus\n*/\n#include \"a\"\n//#endif\n",
    };
    static const char *const defined[] = {"#ifdef __cplusplus\n#include \"a\"\n#endif\n"};
    ck_each(texts, COUNT(texts), NULL, true);
    ck_each(defined, COUNT(defined), "-D __cplusplus=1", true);
}
END_TEST

START_TEST(those_that_may_not) {
    static const char *const texts[] = {
        "kernel void k(void) {}\n",
        "// #include \"a\"\n",
        "#define X 1\nint included;\n",
        "#ifndef __OPENCL_VERSION__\n#include <a>\n#endif\n",
        "#if !defined(__OPENCL_VERSION__)\n#include <a>\n#else\n#define A\n#endif\n",
        "#if ! defined __OPENCL_C_VERSION__ /* a host */\n#import <a>\n#endif\n",
        "#ifdef __OPENCL_VERSION__ // a device\n#else\n# include <a>\n#endif\n",
        "#if defined __cplusplus\n#ifdef X\n#else\n#include <a>\n#endif\n#include <b>\n#endif\n",
        "#ifdef __OPENCL_VERSION__\n#define X\n#endif\n#ifdef X\n#else\n#include <a>\n#endif\n",
        "#ifdef __OPENCL_VERSION__\n#elif defined(X)\n#include <a>\n#else\n#include <b>\n#endif\n",
        "#ifdef Y\n#elif defined(__OPENCL_VERSION__)\n#else\n#include <a>\n#endif\n",
        "#define X 1\n#undef X\n#ifdef X\n#include <a>\n#endif\n",
        "#ifdef X\n#ifdef _MSC_VER\n#include <a>\n#endif\n#else\n#endif\n",
        "#ifdef __cplusplus\n#include <a>\n#endif\n#ifdef __CUDACC__\n#include <b>\n#endif\n",
    };
    ck_each(texts, COUNT(texts), "-I dir -D X", false);
}
END_TEST

/* So deep that it is not followed: then all of it may. */
START_TEST(deep_ones) {
    char text[4096] = "";
    for (int i = 0; i < 40; i++)
        strcat(text, "#ifdef X\n");
    strcat(text, "#ifdef __cplusplus\n#include <a>\n#endif\n");
    ck_assert(tutti_source_reads_files(text, NULL));
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {those_that_may, those_that_may_not, deep_ones};

    return test_main_bare(argc, argv, tests, COUNT(tests));
}
