/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_DIRECTORY_H
#define TUTTI_DIRECTORY_H

#include <stdbool.h>

/* Makes the directory, for its owner alone, and those above it where they are missing. */
bool tutti_directory_make(const char *path);
/* The same for the one that a file of this name is in. */
bool tutti_directory_make_for(const char *file);

#endif
