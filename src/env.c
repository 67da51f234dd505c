/* SPDX-License-Identifier: MIT */
#include "env.h"

#include "log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
#define ENV(name, type, default_value, meaning) #name,
#include "env.def"
#undef ENV
};

static const char *const types[] = {
#define ENV(name, type, default_value, meaning) type,
#include "env.def"
#undef ENV
};

/* Copies, as the program may change its environment. */
static char *values[TUTTI_ENV_COUNT];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_bool known; /* each small command asks for some: no call for that */

static void read_all(void) {
    for (int i = 0; i < TUTTI_ENV_COUNT; i++) {
        const char *value = getenv(names[i]);
        values[i] = value ? strdup(value) : NULL;
    }
    atomic_store_explicit(&known, true, memory_order_release);
}

const char *tutti_env_string(enum tutti_env variable) {
    if (!atomic_load_explicit(&known, memory_order_acquire))
        pthread_once(&once, read_all);
    return values[variable];
}

unsigned tutti_env_choice(enum tutti_env variable) {
    const char *value = tutti_env_string(variable), *choice = types[variable];
    if (!value || !*value)
        return 0;
    for (unsigned i = 0; choice; i++) {
        size_t length = strcspn(choice, "|");
        if (strlen(value) == length && memcmp(value, choice, length) == 0)
            return i;
        choice = choice[length] ? choice + length + 1 : NULL;
    }
    tutti_log(WARNING, "%s=%s is none of %s", names[variable], value, types[variable]);
    return 0;
}

bool tutti_env_bytes(const char *text, size_t *bytes) {
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    size_t number = strtoull(text, &end, 10), scaled;
    int power = *end == 'K' || *end == 'k'   ? 10
                : *end == 'M' || *end == 'm' ? 20
                : *end == 'G' || *end == 'g' ? 30
                                             : 0;
    if (power)
        end++;
    if ((*end && *end != ',') || __builtin_mul_overflow(number, (size_t)1 << power, &scaled))
        return false;
    *bytes = scaled;
    return true;
}

size_t tutti_env_size(enum tutti_env variable, size_t otherwise) {
    const char *text = tutti_env_string(variable);
    size_t bytes;
    return text && !strchr(text, ',') && tutti_env_bytes(text, &bytes) ? bytes : otherwise;
}
