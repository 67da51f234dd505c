/* SPDX-License-Identifier: MIT */
#include "sched/straight.h"

#include "memory/transfer_path.h"
#include "sched/policy.h"

/* A few strays say nothing, more than a quarter of all uses say that the guess is bad. */
#define STRAYS_FORGIVEN 4
#define USES_FOR_A_STRAY 4

static bool goes_astray(const struct tutti_history *history) {
    unsigned hits = atomic_load_explicit(&history->hits, memory_order_relaxed);
    unsigned strays = atomic_load_explicit(&history->strays, memory_order_relaxed);
    return USES_FOR_A_STRAY * strays > hits + USES_FOR_A_STRAY * STRAYS_FORGIVEN;
}

const struct tutti_real_device *tutti_straight_device(const struct tutti_view *view, cl_mem mem) {
    struct tutti_history *history = &mem->history;
    unsigned users = tutti_history_overwrite(history);
    bool again = history->overwrites++ > 0;
    if (view->svm || (view->root == view && view->sibling))
        return NULL; /* sub-buffers are brought up to date from home memory */
    unsigned able = tutti_transfer_path_straight(users, mem->devices, view->size);
    if (tutti_is_one_device(able))
        return tutti_devices()->device[__builtin_ctz(able)];
    /*
     * Of several devices any may be right for what comes in over and over, as frames do. What comes
     * once may be wanted by all of them: home memory is as near to one as to another.
     */
    if (!able || !again)
        return NULL;
    const struct tutti_real_device *before =
        tutti_is_one_device(users & able) ? tutti_devices()->device[__builtin_ctz(users & able)]
                                          : NULL;
    if (goes_astray(history))
        return before;
    return tutti_policy_place_content(able, history->reader, before, view->size);
}
