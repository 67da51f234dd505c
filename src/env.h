/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_ENV_H
#define TUTTI_ENV_H

/* The variables of env.def by name. */
enum tutti_env {
#define ENV(name, type, default_value, meaning) name,
#include "env.def"
#undef ENV
    TUTTI_ENV_COUNT
};

/* The variable's value at its first use; NULL when it is not set. */
const char *tutti_env_string(enum tutti_env variable);

#endif
