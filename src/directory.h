/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_DIRECTORY_H
#define TUTTI_DIRECTORY_H

#include <limits.h>
#include <stdbool.h>

/* Makes the directory, for its owner alone, and those above it where they are missing. */
bool tutti_directory_make(const char *path);
/* The same for the one that a file of this name is in. */
bool tutti_directory_make_for(const char *file);

/*
 * The path of a file of this name among what Tutti keeps for the user, in $XDG_CACHE_HOME or
 * $HOME/.cache. Returns its length, or what is not a length of less than PATH_MAX.
 */
int tutti_directory_cached(char path[PATH_MAX], const char *name);

#endif
