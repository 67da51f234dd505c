/* SPDX-License-Identifier: MIT */
#include "env.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
#define ENV(name, type, default_value, meaning) #name,
#include "env.def"
#undef ENV
};

/* Copies, as the program may change its environment. */
static char *values[TUTTI_ENV_COUNT];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void read_all(void) {
    for (int i = 0; i < TUTTI_ENV_COUNT; i++) {
        const char *value = getenv(names[i]);
        values[i] = value ? strdup(value) : NULL;
    }
}

const char *tutti_env_string(enum tutti_env variable) {
    pthread_once(&once, read_all);
    return values[variable];
}
