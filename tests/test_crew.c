/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti, over two devices of PoCL that execute in the call: Tutti's threads do that, and those
 * of the program that wait.
 */
#include "streams.h"

int main(int argc, char **argv) { return test_streams(argc, argv, "basic basic"); }
