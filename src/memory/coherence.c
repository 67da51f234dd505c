/* SPDX-License-Identifier: MIT */
#include "memory/coherence.h"

#include "log.h"
#include "memory/access.h"
#include "memory/acquisition.h"
#include "sched/pool.h"
#include "sched/row.h"
#include "sched/runtime.h"

#include <stdlib.h>

/* A copy between two views of one buffer that no command of the program asked for. */
struct update {
    struct tutti_acquisition acquisition;
    struct tutti_job job;
    struct tutti_view *source, *target;
    struct tutti_place from, to;
    struct tutti_region region;
    cl_mem buffer; /* the target's, if it matters only as long as that is used; else NULL */
};

/*
 * Spares what the program has mapped for writing: its bytes are newer, and after the unmap they are
 * brought here. The maps stay as they are meanwhile, as they use the target too.
 */
static cl_int copy_around_maps(const struct update *update) {
    size_t first = update->to.origin[0], last = first + update->region.size[0];
    cl_int result = CL_SUCCESS;
    for (size_t begin, end = first; end < last && result == CL_SUCCESS;) {
        end = tutti_view_next_unmapped(update->target, true, 0, 0, end, last, &begin);
        struct tutti_place from = update->from, to = update->to;
        struct tutti_region region = tutti_region_linear(end - begin);
        from.origin[0] += begin - first;
        to.origin[0] = begin;
        if (end > begin)
            result = tutti_access_copy(update->source, &from, update->target, &to, &region);
    }
    return result;
}

static void run_update(struct tutti_job *job) {
    struct update *update = (void *)((char *)job - offsetof(struct update, job));
    cl_int error = CL_SUCCESS;
    if (!update->buffer) {
        error = copy_around_maps(update);
    } else if (tutti_mem_keep_in_use(update->buffer)) {
        error = copy_around_maps(update);
        tutti_mem_end_use();
    }
    if (error != CL_SUCCESS)
        tutti_log(ERROR, "bringing a sub-buffer up to date failed with %d", error);
    tutti_acquisition_release(&update->acquisition);
    free(update);
    tutti_runtime_idle(1);
}

static void update_granted(struct tutti_acquisition *acquisition) {
    struct update *update = (struct update *)acquisition;
    tutti_pool_run(&update->job);
}

/* Did a device with memory of its own use both last? Then it copies from one to the other there. */
static bool are_together(const struct tutti_view *source, const struct tutti_view *target) {
    unsigned both = tutti_history_users(source->history) & tutti_history_users(target->history);
    return both && !target->at_home && !tutti_devices_are_at_home(both);
}

/* [begin, end) in the buffer, from one view to another; `buffer` as in the structure. */
static bool submit_update(struct tutti_view *source, struct tutti_view *target, size_t begin,
                          size_t end, cl_mem buffer) {
    if (!tutti_runtime_usable())
        return true;    /* the process ends */
    tutti_row_settle(); /* StarPU knows nothing of kernels in a row */
    struct update *update = calloc(1, sizeof(*update));
    if (!update)
        return false;
    update->source = source;
    update->target = target;
    update->from = tutti_place_linear(begin - source->origin, end - begin);
    update->to = tutti_place_linear(begin - target->origin, end - begin);
    update->region = tutti_region_linear(end - begin);
    update->buffer = buffer;
    update->job.run = run_update;
    update->acquisition.granted = update_granted;
    /* What is overwritten as a whole would be home's alone; so what is valid stays so. */
    bool all = begin == target->origin && end == target->origin + target->size &&
               !are_together(source, target);
    tutti_acquisition_add(&update->acquisition, source, TUTTI_READS);
    tutti_acquisition_add(&update->acquisition, target, all ? TUTTI_OVERWRITES : TUTTI_WRITES);
    target->defined = true;
    tutti_runtime_busy();
    tutti_acquisition_take(&update->acquisition);
    return true;
}

/* Forgets what is noted of [begin, end) in the buffer. */
static bool trim(struct tutti_view *view, size_t begin, size_t end) {
    struct tutti_stale **link = &view->stale;
    while (*link) {
        struct tutti_stale *stale = *link;
        if (stale->end <= begin || end <= stale->begin) {
            link = &stale->next;
        } else if (begin <= stale->begin && stale->end <= end) {
            *link = stale->next;
            free(stale);
        } else if (begin <= stale->begin) {
            stale->begin = end;
            link = &stale->next;
        } else if (stale->end <= end) {
            stale->end = begin;
            link = &stale->next;
        } else {
            struct tutti_stale *rest = malloc(sizeof(*rest));
            if (!rest)
                return false;
            *rest = (struct tutti_stale){stale->next, end, stale->end, stale->source};
            stale->end = begin;
            stale->next = rest;
            link = &rest->next;
        }
    }
    return true;
}

/* Notes that [begin, end) of the buffer, as far as the view reaches, is newer in `source`. */
static bool mark(struct tutti_view *view, size_t begin, size_t end, struct tutti_view *source) {
    if (begin < view->origin)
        begin = view->origin;
    if (end > view->origin + view->size)
        end = view->origin + view->size;
    if (begin >= end)
        return true;
    struct tutti_stale *stale = malloc(sizeof(*stale));
    if (!stale || !trim(view, begin, end)) {
        free(stale);
        return false;
    }
    *stale = (struct tutti_stale){view->stale, begin, end, source};
    view->stale = stale;
    return true;
}

bool tutti_coherence_read(struct tutti_view *view, size_t begin, size_t end) {
    begin += view->origin;
    end += view->origin;
    struct tutti_stale **link = &view->stale;
    while (*link) {
        struct tutti_stale *stale = *link;
        if (stale->end <= begin || end <= stale->begin) {
            link = &stale->next;
            continue;
        }
        if (!submit_update(stale->source, view, stale->begin, stale->end, NULL))
            return false;
        *link = stale->next;
        free(stale);
    }
    return true;
}

bool tutti_coherence_is_stale(const struct tutti_view *view, size_t begin, size_t end) {
    begin += view->origin;
    end += view->origin;
    for (const struct tutti_stale *stale = view->stale; stale; stale = stale->next)
        if (stale->begin < end && begin < stale->end)
            return true;
    return false;
}

bool tutti_coherence_write(struct tutti_view *view, size_t begin, size_t end, bool all) {
    if (view->root->sibling) { /* there are sub-buffers */
        if (!all && !tutti_coherence_read(view, begin, end))
            return false;
        size_t from = view->origin + begin, to = view->origin + end;
        if (!trim(view, from, to))
            return false;
        for (struct tutti_view *other = view->root; other; other = other->sibling)
            if (other != view && !mark(other, from, to, view))
                return false;
    }
    return true;
}

bool tutti_coherence_open(struct tutti_view *root) {
    if (!tutti_coherence_read(root, 0, root->size))
        return false;
    root->windows = root->sibling;
    root->sibling = NULL;
    root->open = true;
    for (struct tutti_view *view = root->windows; view; view = view->sibling) {
        tutti_view_forget_stale(view);
        view->defined = false;
    }
    return true;
}

bool tutti_coherence_close(struct tutti_view *root) {
    for (struct tutti_view *view = root->windows; view && root->defined; view = view->sibling)
        if (!mark(view, view->origin, view->origin + view->size, root))
            return false;
    root->sibling = root->windows;
    root->windows = NULL;
    root->open = false;
    return true;
}

bool tutti_coherence_join(struct tutti_view *view) {
    struct tutti_view *root = view->root;
    if (root->open)
        return true;
    if (root->defined && !mark(view, view->origin, view->origin + view->size, root))
        return false;
    for (struct tutti_stale *stale = root->stale; stale; stale = stale->next)
        if (!mark(view, stale->begin, stale->end, stale->source))
            return false;
    return true;
}

void tutti_coherence_leave(struct tutti_view *view, cl_mem buffer) {
    for (struct tutti_view *other = view->root; other; other = other->sibling) {
        struct tutti_stale **link = &other->stale;
        while (*link) {
            struct tutti_stale *stale = *link;
            if (stale->source != view) {
                link = &stale->next;
                continue;
            }
            if (!submit_update(view, other, stale->begin, stale->end,
                               other == view->root ? buffer : NULL))
                tutti_log(ERROR, "out of memory: a released sub-buffer's content is lost");
            *link = stale->next;
            free(stale);
        }
    }
    tutti_history_join(view->root->history, view->history);
    struct tutti_view **link = view->root->open ? &view->root->windows : &view->root->sibling;
    while (*link != view)
        link = &(*link)->sibling;
    *link = view->sibling;
}
