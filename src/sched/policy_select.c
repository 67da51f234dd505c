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

void tutti_policy_select(struct starpu_conf *conf) {
    const char *name = tutti_env_string(TUTTI_SCHED);
    bool ours = !name || !*name || strcmp(name, tutti_policy.policy_name) == 0;
    if (!ours && starpu_has_policy(name)) {
        conf->sched_policy_name = name;
        return;
    }
    if (!ours)
        tutti_log(WARNING, "TUTTI_SCHED=%s is no policy of StarPU's", name);
    conf->sched_policy_name = NULL;
    conf->sched_policy = &tutti_policy;
}
