/* SPDX-License-Identifier: MIT */
/*
 * Programs that time something in several ways on several platforms, in turns, with the medians in
 * a row for each way, and how many times the first platform's they are. Each turn of a platform is
 * a process, which does all N [5] times: a GPU that has two contexts at work takes 0.1 ms and more
 * to go from one to the other, and so does the first command of a row.
 *     PROGRAM [--turns N] [--repeat N] [PLATFORM...]  (parts of names; default: all platforms)
 */
#ifndef TUTTI_BENCH_TURNS_H
#define TUTTI_BENCH_TURNS_H

#include <CL/cl.h>

struct target; /* the program's own: what its rows run on */

struct turns_row {
    const char *name;
    double (*run)(struct target *target); /* µs */
};

struct turns {
    const struct turns_row *rows;
    int count;
    struct target *(*open)(cl_device_id device);
    void (*close)(struct target *target);
};

/* Ends the process if it is an error. */
void turns_check(cl_int error, const char *what);

double turns_now(void); /* µs */

/* Objects for `open`, which exist or the process ends. */
cl_context turns_context(cl_device_id device);
cl_command_queue turns_queue(cl_context context, cl_device_id device,
                             cl_command_queue_properties properties);
cl_program turns_program(cl_context context, cl_device_id device, const char *source);
cl_kernel turns_kernel(cl_program program, const char *name);
cl_mem turns_buffer(cl_context context, size_t size, void *content); /* NULL: none yet */

/*
 * The value behind an option of the program's own, such as "--bytes", which is taken out of the
 * arguments; `otherwise` if it is not there.
 */
long turns_option(int *argc, char **argv, const char *name, long otherwise);

/* For main to return. */
int turns_main(int argc, char **argv, const struct turns *turns);

#endif
