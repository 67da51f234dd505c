/* SPDX-License-Identifier: MIT */
/*
 * What goes straight to devices that work in home memory, however much of it is under way, and what
 * StarPU and the host do with the same memory, which must come in its place.
 */
#ifndef TUTTI_TESTS_STREAMS_H
#define TUTTI_TESTS_STREAMS_H

#include "support.h"

/* All tests, over these devices of PoCL (POCL_DEVICES). */
int test_streams(int argc, char **argv, const char *devices);

#endif
