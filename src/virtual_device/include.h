/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_INCLUDE_H
#define TUTTI_INCLUDE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The source followed by the texts of all files that its #include directives reach, in the
 * directories that -I in `options` (may be NULL) names and the current one: what tells whether the
 * program calls printf or tests a macro lies there too. Files that aren't found are left out, as
 * are those past 16 MiB. NULL when there is no memory; free() it.
 */
char *tutti_source_with_includes(const char *source, const char *options);

/* May a compiler read files for it, by a directive or an option? When in doubt, yes. */
bool tutti_source_reads_files(const char *source, const char *options);

#endif
