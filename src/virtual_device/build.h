/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_BUILD_H
#define TUTTI_BUILD_H

#include "virtual_device/program.h"

enum tutti_build_operation { TUTTI_BUILD, TUTTI_COMPILE, TUTTI_LINK };

/* clBuildProgram, clCompileProgram and clLinkProgram (OpenCL 1.2, 5.6.3 and 5.6.4) in one. */
struct tutti_build_request {
    enum tutti_build_operation operation;
    cl_program program;  /* LINK: the new program, of origin LINKED */
    const char *options; /* may be NULL */
    cl_uint input_count; /* COMPILE: headers; LINK: compiled programs and libraries */
    const cl_program *inputs;
    const char *const *names; /* COMPILE: what the headers are called in #include */
    void(CL_CALLBACK *notify)(cl_program, void *);
    void *user_data;
};

/*
 * Builds on every real device at the same time; the result is the lead's, other devices may be
 * left without the program. With `notify` the work goes on in a thread of its own, which keeps the
 * program and the inputs alive and calls `notify` once at the end; the return value then says that
 * it began.
 *
 * CL_INVALID_OPERATION when the program or an input is being built, kernels of the program exist,
 * or inputs of a link are neither compiled nor libraries; else the lead's error, of those that the
 * specification has for the operation.
 */
cl_int tutti_build(const struct tutti_build_request *request);

/*
 * Waits until no build works in the background, and lets no other one begin there; not for
 * callbacks that were called. At the process's end.
 */
void tutti_build_stop(void);

#endif
