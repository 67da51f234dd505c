/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_ENV_H
#define TUTTI_ENV_H

#include <stdbool.h>
#include <stddef.h>

/* The variables of env.def by name. */
enum tutti_env {
#define ENV(name, type, default_value, meaning) name,
#include "env.def"
#undef ENV
    TUTTI_ENV_COUNT
};

/* The variable's value at its first use; NULL when it is not set. */
const char *tutti_env_string(enum tutti_env variable);

/*
 * Which of the alternatives of its type in env.def ("auto|never|always") the variable is: 0, the
 * first one, also when it is not set, or none of them, which is a warning in the log.
 */
unsigned tutti_env_choice(enum tutti_env variable);

/*
 * The variable as a number of bytes, a number with K, M or G (powers of 1024) behind it or not;
 * `otherwise` when it is not set or not that.
 */
size_t tutti_env_size(enum tutti_env variable, size_t otherwise);
/* Such a number at the start of a text, which ends or goes on with a comma; false: it is none. */
bool tutti_env_bytes(const char *text, size_t *bytes);

#endif
