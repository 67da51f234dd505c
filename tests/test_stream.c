/* SPDX-License-Identifier: MIT */
/* Only Tutti, over one device of PoCL that uses all cores: it has one queue for all. */
#include "streams.h"

int main(int argc, char **argv) { return test_streams(argc, argv, "pthread"); }
