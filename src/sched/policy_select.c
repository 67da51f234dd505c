/* SPDX-License-Identifier: MIT */
#include "sched/policy.h"

#include "env.h"
#include "log.h"

#include <starpu_scheduler.h>
#include <string.h>

/* StarPU prints a warning for a name that it doesn't know. */
static bool starpu_has_policy(const char *name) {
    struct starpu_sched_policy **policy = starpu_sched_get_predefined_policies();
    while (*policy && strcmp((*policy)->policy_name, name) != 0)
        policy++;
    return *policy != NULL;
}

/* One of StarPU's; NULL: ours. */
static const char *wanted(bool tells) {
    const char *name = tutti_env_string(TUTTI_SCHED);
    if (!name || !*name || strcmp(name, tutti_policy.policy_name) == 0)
        return NULL;
    if (starpu_has_policy(name))
        return name;
    if (tells)
        tutti_log(WARNING, "TUTTI_SCHED=%s is no policy of StarPU's", name);
    return NULL;
}

bool tutti_policy_is_wanted(void) { return !wanted(false); }

void tutti_policy_select(struct starpu_conf *conf) {
    conf->sched_policy_name = wanted(true);
    conf->sched_policy = conf->sched_policy_name ? NULL : &tutti_policy;
}
