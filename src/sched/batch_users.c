/* SPDX-License-Identifier: MIT */
#include "sched/batch_users.h"

#include "memory/version.h"
#include "sched/crew.h"

void tutti_batch_take_over(struct tutti_view *view, struct tutti_batch *batch, bool writes) {
    if (writes)
        view->last_writer = batch->user.order;
    if (view->last_user == &batch->user) {
        view->last_writes = view->last_writes || writes;
        view->last_alone = view->last_alone || writes;
        return;
    }
    bool first = tutti_version_users(view).all == 1;
    view->last_alone = writes || (view->last_user ? view->last_writes : first);
    view->all_free = (first || view->all_free) && tutti_batch_goes_freely(batch);
    if (view->last_user)
        tutti_last_user_release(view->last_user);
    atomic_fetch_add(&batch->user.references, 1);
    view->last_user = &batch->user;
    view->last_writes = writes;
}

struct tutti_batch *tutti_batch_last_of(struct tutti_view *view) {
    struct tutti_batch *batch = (struct tutti_batch *)view->last_user;
    if (batch && atomic_load(&batch->state) == TUTTI_BATCH_OVER) {
        if ((batch->computes || !view->at_home) && !tutti_crew_serves())
            view->seat = batch->brief || !view->at_home ? batch->device : NULL;
        view->last_user = NULL;
        tutti_batch_release(batch);
        return NULL;
    }
    return batch;
}

bool tutti_batch_is_kept_long(struct tutti_view *view) {
    const struct tutti_batch *last = view->at_home ? tutti_batch_last_of(view) : NULL;
    return last && last->computes && last->expected >= TUTTI_KEEPS_LONG;
}

void tutti_batch_note_seats(cl_mem mem) {
    struct tutti_view *view = mem->view;
    if (view->at_home)
        return;
    do {
        tutti_batch_last_of(view);
        view = view->next_version;
    } while (view != mem->view);
}

/* How many commands of the batch, which may be NULL, use the view, and how all of them do. */
static unsigned users_in(const struct tutti_batch *batch, const struct tutti_view *view,
                         enum starpu_data_access_mode *mode) {
    unsigned users = 0;
    *mode = STARPU_NONE;
    for (const struct tutti_device_task *task = batch ? batch->first : NULL; task;
         task = task->next)
        for (unsigned i = 0; i < task->count; i++)
            if (task->use[i].view == view) {
                *mode |= task->use[i].mode;
                users++;
            }
    return users;
}

unsigned tutti_batch_users(const struct tutti_batch *batch, const struct tutti_view *view) {
    enum starpu_data_access_mode mode;
    return users_in(batch, view, &mode);
}

/* Would the batch wait for nothing else than devices because of a task's so many uses? */
static bool is_free(const struct tutti_batch *batch, struct tutti_view *view, unsigned own,
                    bool writes) {
    enum starpu_data_access_mode mode;
    unsigned within = users_in(batch, view, &mode);
    if (within && (!writes || mode != STARPU_R || view->last_alone))
        return true;
    struct tutti_version_users users = tutti_version_users(view);
    if (users.all <= within + own)
        return true;
    if (users.of_host > 0)
        return false;
    if (within)
        return view->all_free;
    struct tutti_batch *last = tutti_batch_last_of(view);
    if (last && !tutti_batch_goes_freely(last))
        return false;
    return !writes || (last && (view->last_alone || view->all_free));
}

static unsigned uses_of(const struct tutti_device_task *task, const struct tutti_view *view) {
    unsigned uses = 0;
    for (unsigned i = 0; i < task->count; i++)
        uses += task->use[i].view == view;
    return uses;
}

bool tutti_batch_joins_freely(const struct tutti_batch *batch,
                              const struct tutti_device_task *task) {
    bool freely = true;
    for (unsigned i = 0; i < task->count && freely; i++) {
        struct tutti_view *view = task->use[i].view;
        freely = is_free(batch, view, uses_of(task, view), task->use[i].mode != STARPU_R);
    }
    return freely;
}
