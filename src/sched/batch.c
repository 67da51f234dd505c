/* SPDX-License-Identifier: MIT */
#include "sched/batch.h"

#include "context.h"
#include "env.h"
#include "log.h"
#include "memory/stay.h"
#include "memory/version.h"
#include "recycler.h"
#include "sched/batch_users.h"
#include "sched/crew.h"
#include "sched/direct.h"
#include "sched/direct_end.h"
#include "sched/lanes.h"
#include "sched/policy.h"
#include "sched/recent.h"
#include "virtual_device/device.h"

#include <stdlib.h>
#include <string.h>

/*
 * Limits of one batch. The time bounds how late the end of its first command is seen; so many
 * kernels make StarPU's share of each small beside what the driver takes.
 */
#define SHARING 5000.0 /* µs: so does one that others need not wait for (lanes.h) */
#define LONE 2000.0    /* µs: of a longer one StarPU's share counts little */
#define CHAINED 5000.0 /* µs: the same for one that others wait for, and the device with them */
#define LONGEST 500.0  /* µs in all */
#define MOST_VIEWS 64
#define MOST_OPEN 64 /* each end looks through the open ones */
/*
 * µs: of kernels that have nothing in common, where several devices might execute them at the same
 * time: so long that StarPU's price for a task still counts; and how long some of them may take.
 */
#define TINY 25.0
#define LONGEST_OF_SEVERAL 100.0
#define LONGEST_CHAIN 10000.0           /* µs: of longer kernels on one GPU's data; and where */
#define LONGEST_CHAIN_OF_SEVERAL 2000.0 /* another one might be free for the rest of them */
#define LITTLE ((size_t)256 << 10) /* bytes: the link's latency is most of their way to a GPU */
#define LONGEST_FROM_HOME 250.0
/* Bytes: a batch begins when all that it uses is there, and the kernels before could hide that. */
#define MUCH ((size_t)512 << 10)
#define AHEAD 2 /* batches for each device, so that none waits for the next one */

static bool is_open(const struct tutti_batch *batch) {
    return batch && atomic_load_explicit(&batch->state, memory_order_relaxed) == TUTTI_BATCH_OPEN;
}

/* W first: nothing is brought, whatever comes after it. */
static enum starpu_data_access_mode both(enum starpu_data_access_mode first,
                                         enum starpu_data_access_mode then) {
    return first == STARPU_W ? first : first | then;
}

static enum { AUTO, NEVER, ALWAYS } policy;

static void read_policy(void) { policy = tutti_env_choice(TUTTI_BATCH); }

bool tutti_batch_goes_by_time(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_policy);
    return policy == AUTO;
}

/* One that leaves most of its device to others does not keep them waiting. */
static bool is_brief(const struct tutti_device_task *task) {
    double most = task->parts > 1 ? SHARING : TUTTI_BRIEF;
    return policy == ALWAYS || (tutti_batch_goes_by_time() && task->time > 0 && task->time <= most);
}

/* A longer kernel, or copy, where data may be on a GPU: others may be chained to it. */
static bool is_chained(const struct tutti_device_task *task) {
    bool chained = policy == AUTO && task->model && task->time > TUTTI_BRIEF &&
                   task->time <= CHAINED && task->count > 0;
    for (unsigned i = 0; i < task->count; i++)
        chained = chained && !task->use[i].view->at_home;
    return chained;
}

/* With any other policy than AUTO it is short, or is to go through StarPU. */
static bool may_be_lone(const struct tutti_device_task *task) {
    bool longer = policy == AUTO && task->kernel && task->time > TUTTI_BRIEF;
    return (longer && (task->time <= LONE || tutti_direct_serves_all())) || is_chained(task);
}

bool tutti_batch_make_room(struct tutti_batch *batch, unsigned more) {
    if (batch->count + more <= batch->room)
        return true;
    unsigned room = 2 * (batch->count + more);
    struct tutti_device_use *few = batch->use == batch->few ? batch->few : NULL;
    struct tutti_device_use *use = realloc(few ? NULL : batch->use, room * sizeof(*use));
    if (!use)
        return false;
    if (few)
        memcpy(use, few, batch->count * sizeof(*use));
    batch->use = use;
    batch->room = room;
    return true;
}

/* Adds the task's views to the batch's; there is room. Returns how many there are then. */
static unsigned merge(struct tutti_batch *batch, struct tutti_device_task *task) {
    unsigned count = batch->count;
    for (unsigned i = 0; i < task->count; i++) {
        struct tutti_device_use *use = &task->use[i];
        unsigned slot = 0;
        while (slot < count && batch->use[slot].view != use->view)
            slot++;
        if (slot == count) {
            batch->use[slot] = (struct tutti_device_use){.view = use->view, .mode = use->mode};
            count++;
        }
        use->slot = slot;
    }
    return count;
}

/* µs that the task takes longer, by the models, where the batch may go than elsewhere. */
static double longer_in(const struct tutti_batch *batch, const struct tutti_device_task *task) {
    bool elsewhere = task->model && task->devices & ~batch->devices;
    return elsewhere ? tutti_model_least(task->model, batch->devices) - task->time : 0;
}

/* Where the task is likely to be: devices, as bits. */
static unsigned likely_for(const struct tutti_device_task *task) {
    return task->likely ? task->likely
                        : tutti_policy_likely(task->model, task->devices | task->late.devices);
}

static void append(struct tutti_batch *batch, struct tutti_device_task *task) {
    unsigned count = batch->count;
    bool open = is_open(batch);
    batch->count = merge(batch, task);
    for (unsigned i = 0; i < task->count; i++) {
        struct tutti_device_use *use = &task->use[i];
        struct tutti_device_use *whole = &batch->use[use->slot];
        if (use->slot < count) { /* of an earlier task, or another window of it */
            whole->mode = both(whole->mode, use->mode);
        } else {
            count++;
            use->view->open_users += open;
        }
        use->placed = use->mode & STARPU_R ? use->view->placed : 0;
        if (use->mode & STARPU_R && task->model)
            use->view->history->reader = task->model;
        if (use->mode != STARPU_R) {
            use->view->placed = 0;
            use->view->history->written++;
        }
        tutti_batch_take_over(use->view, batch, use->mode != STARPU_R);
    }
    task->next = NULL;
    task->result = CL_OUT_OF_RESOURCES; /* until it is executed */
    batch->follows = task->command.follows ? task->command.follows : batch->follows;
    *batch->last = task;
    batch->last = &task->next;
    unsigned able = (batch->devices | batch->late) & (task->devices | task->late.devices);
    batch->devices &= task->devices;
    batch->late = able & ~batch->devices;
    if (task->kernel && !batch->computes)
        batch->likely = 0; /* what only moves bytes goes along */
    if (task->kernel || !batch->computes)
        batch->likely |= likely_for(task);
    batch->length++;
    batch->brief = batch->brief && is_brief(task);
    batch->chained = batch->chained || is_chained(task);
    batch->computes = batch->computes || task->kernel;
    batch->expected += task->time;
    batch->longer += longer_in(batch, task);
    batch->parts = task->parts < batch->parts ? task->parts : batch->parts;
    batch->shares = batch->shares || task->shares;
}

unsigned tutti_batch_devices(const struct tutti_batch *batch) {
    unsigned late = batch->late;
    for (struct tutti_device_task *task = batch->first; task && late; task = task->next)
        late &= task->late.built ? atomic_load(task->late.built) : task->devices;
    return batch->devices | late;
}

static struct tutti_batch *create(struct tutti_device_task *task, bool open) {
    struct tutti_batch *batch = tutti_recycler_take(sizeof(*batch));
    if (!batch)
        return NULL;
    *batch = (struct tutti_batch){
        .room = TUTTI_BATCH_FEW,
        .parts = TUTTI_MOST_LANES_OF_STREAM,
        .user.order = task->command.order,
    };
    batch->use = batch->few;
    if (!tutti_batch_make_room(batch, task->count)) {
        tutti_recycler_give(batch);
        return NULL;
    }
    atomic_init(&batch->user.references, 1);
    atomic_init(&batch->state, open ? TUTTI_BATCH_OPEN : TUTTI_BATCH_SUBMITTED);
    batch->context = task->command.event->context;
    batch->last = &batch->first;
    batch->devices = task->devices;
    batch->late = task->late.devices;
    batch->brief = is_brief(task);
    batch->lone = !open && may_be_lone(task);
    batch->apart = tutti_lanes_are_best_for(task);
    batch->free = tutti_batch_joins_freely(NULL, task);
    append(batch, task);
    return batch;
}

/* How long a batch with longer kernels in it may be on one of these devices. */
static double longest_chain(unsigned devices) {
    return tutti_devices_apart(devices) > 1 ? LONGEST_CHAIN_OF_SEVERAL : LONGEST_CHAIN;
}

/*
 * With one more task the batch must stay within its limits, and fit where it did, unless it is of
 * transfers alone, which go where their kernels do; which what is much faster elsewhere does not.
 */
static bool takes(struct tutti_batch *batch, struct tutti_device_task *task) {
    double most = batch->chained || is_chained(task) ? longest_chain(batch->devices) : LONGEST;
    bool too_long = policy != ALWAYS && batch->expected + task->time > most;
    bool fits =
        batch->computes ? !(batch->devices & ~task->devices) : batch->devices & task->devices;
    unsigned follows = task->command.follows;
    bool apart = follows && batch->follows && follows != batch->follows;
    if (batch->length >= TUTTI_COMMANDS_AT_ONCE || too_long || !fits || apart ||
        batch->longer + longer_in(batch, task) > TUTTI_TOLERATED ||
        !tutti_batch_make_room(batch, task->count))
        return false;
    unsigned count = merge(batch, task), able = batch->devices | batch->late;
    return count == batch->count ||
           (count <= MOST_VIEWS && (tutti_device_task_fitting(batch->use, count) & able) == able);
}

/* Has one of the devices the view's content, or will have it? */
static bool is_on(unsigned devices, struct tutti_view *view) {
    const struct tutti_device_list *list = tutti_devices();
    int valid = tutti_batch_last_of(view) != NULL;
    for (unsigned d = 0; d < list->count && !valid; d++)
        if (devices & 1u << d && list->device[d]->place.devid >= 0)
            starpu_data_query_status(tutti_view_handle(view), (int)list->device[d]->place.node,
                                     NULL, &valid, NULL);
    return valid;
}

/* Is all that it uses at home, and soon brought to any device? */
static bool is_from_home(const struct tutti_device_task *task) {
    bool from_home = true;
    for (unsigned i = 0; i < task->count && from_home; i++)
        from_home = task->use[i].view->size <= LITTLE && !is_on(~0u, task->use[i].view);
    return from_home;
}

/* Would it take long to bring what it reads to the device? */
static bool brings_much(const struct tutti_device_task *task, unsigned device) {
    bool much = false;
    for (unsigned i = 0; i < task->count && !much; i++) {
        const struct tutti_device_use *use = &task->use[i];
        much = use->view->size > MUCH && use->mode & STARPU_R && !is_on(device, use->view);
    }
    return much;
}

/*
 * The GPU where all that it uses is, if that executes it in less time than its launch takes: then
 * it stays there, whoever else could (policy_choose.c), and is collected as if nobody else could.
 * NULL: there is none.
 */
static const struct tutti_real_device *find_seat(const struct tutti_device_task *task) {
    bool launched = task->model && task->time > 0 && task->time <= TUTTI_LAUNCH_TIME;
    const struct tutti_real_device *seat =
        launched && task->count > 0 ? task->use->view->seat : NULL;
    for (unsigned i = 1; i < task->count && seat; i++)
        seat = task->use[i].view->seat == seat ? seat : NULL;
    return seat && tutti_lanes_are_of_gpu(seat) && task->devices & 1u << seat->index ? seat : NULL;
}

/*
 * May the short task be collected with others that it has nothing in common with? Then how many
 * devices have to be at work before it waits, else 0. Where it is `likely` to be on one device it
 * waits for that one anyhow, and may if its data does not; where on several, if it takes less than
 * StarPU's share of it would, and its data has no device to stay on. One that has yet to compile it
 * takes few, or none.
 */
static unsigned crowd_devices(const struct tutti_device_task *task, unsigned likely) {
    unsigned ready = tutti_first_launch_ready(tutti_model_first_launch(task->model), likely);
    unsigned devices = ready ? ready : likely;
    bool one = tutti_is_one_device(devices);
    bool may = tutti_devices_are_at_home(devices) ? one || task->time <= TINY
               : one                              ? !brings_much(task, devices)
                                                  : is_from_home(task);
    return may ? (unsigned)__builtin_popcount(devices) : 0;
}

/* To who executes it past StarPU, if one does. */
static bool submit_past(struct tutti_batch *batch) {
    if (tutti_crew_serves())
        return tutti_crew_submit(batch);
    tutti_recent_note(batch);
    return tutti_direct_submit(batch);
}

static void submit(struct tutti_batch *batch) {
    if (submit_past(batch))
        return;
    tutti_direct_drain(batch->follows);
    for (unsigned i = 0; i < batch->count; i++)
        tutti_stay_make_way(batch->use[i].view, batch->use[i].mode != STARPU_R);
    tutti_device_task_submit(batch);
}

static void submit_open(struct tutti_batch *batch) {
    struct tutti_graph *graph = &batch->context->graph;
    struct tutti_batch **link = &graph->open;
    while (*link != batch)
        link = &(*link)->next_open;
    *link = batch->next_open;
    graph->open_count--;
    for (unsigned i = 0; i < batch->count; i++)
        batch->use[i].view->open_users--;
    tutti_batch_release(batch->behind);
    batch->behind = NULL;
    batch->lone = batch->chained;
    atomic_store(&batch->state, TUTTI_BATCH_SUBMITTED);
    submit(batch);
}

bool tutti_batch_comes_before(const struct tutti_batch *batch, const struct _cl_event *event) {
    bool in_order = event->queue && tutti_queue_in_order(event->queue);
    cl_command_queue queue = in_order || event->after_all ? event->queue : NULL;
    for (const struct tutti_device_task *task = batch->first; task; task = task->next) {
        const struct _cl_event *own = task->command.event;
        if (own == event || (queue && own->queue == queue && own->number < event->number))
            return true;
    }
    return false;
}

void tutti_batch_flush(struct tutti_graph *graph) {
    while (graph->open)
        submit_open(graph->open);
}

static void submit_followers(struct tutti_ready *ready) {
    struct tutti_batch *batch =
        (struct tutti_batch *)((char *)ready - offsetof(struct tutti_batch, followed));
    struct tutti_batch *next;
    pthread_mutex_unlock(&batch->context->graph.lock);
    for (struct tutti_batch *open = batch->context->graph.open; open; open = next) {
        next = open->next_open;
        if (open->behind == batch)
            submit_open(open);
    }
    tutti_object_release(batch->context);
    tutti_batch_release(batch);
}

static void end_use(const struct tutti_device_use *use) {
    tutti_stay_release(use->stay);
    if (use->kept) {
        tutti_version_give_back(use->view, TUTTI_USER_DEVICE);
        tutti_object_release(use->kept);
    }
}

void tutti_batch_end(struct tutti_batch *batch) {
    struct tutti_graph *graph = &batch->context->graph;
    for (unsigned i = 0; i < batch->count && batch->direct; i++)
        end_use(&batch->use[i]);
    tutti_lanes_leave(batch);
    if (batch->use != batch->few)
        free(batch->use);
    batch->use = NULL;
    while (batch->bytes) {
        struct tutti_batch_bytes *bytes = batch->bytes;
        batch->bytes = bytes->next;
        tutti_recycler_give(bytes);
    }
    if (atomic_exchange(&batch->state, TUTTI_BATCH_OVER) == TUTTI_BATCH_FOLLOWED) {
        batch->followed.dispatch = submit_followers;
        tutti_object_retain(batch->context);
        pthread_mutex_lock(&graph->lock);
        tutti_graph_append(graph, &batch->followed);
        pthread_mutex_unlock(&graph->lock);
        return;
    }
    tutti_batch_release(batch);
}

/* Notes that an open batch waits for the end of this one; false when it is over. */
static bool follow(struct tutti_batch *batch) {
    enum tutti_batch_state state = TUTTI_BATCH_SUBMITTED;
    return atomic_compare_exchange_strong(&batch->state, &state, TUTTI_BATCH_FOLLOWED) ||
           state == TUTTI_BATCH_FOLLOWED;
}

/* What the task conflicts with, as far as batches are concerned. */
struct conflicts {
    struct tutti_batch *open;    /* it comes after this one */
    struct tutti_batch *running; /* and after this submitted one, of which this is a reference */
    bool several;                /* it comes after more than one open batch */
};

/* That may be over by now: whoever looks at a view next lets it go. */
static void set_running(struct conflicts *conflicts, struct tutti_batch *batch) {
    if (batch)
        atomic_fetch_add(&batch->user.references, 1);
    tutti_batch_release(conflicts->running);
    conflicts->running = batch;
}

/* To be ended by set_running with NULL. */
static struct conflicts find_conflicts(const struct tutti_device_task *task) {
    struct conflicts found = {NULL, NULL, false};
    for (unsigned i = 0; i < task->count; i++) {
        struct tutti_view *view = task->use[i].view;
        bool writes = task->use[i].mode != STARPU_R;
        struct tutti_batch *batch = tutti_batch_last_of(view);
        bool open = is_open(batch);
        /* An open batch that only reads need not be the last user. */
        found.several |= writes && view->open_users > (open ? 1 : 0);
        if (!batch || (!writes && !view->last_writes))
            continue;
        if (open) {
            found.several |= found.open && found.open != batch;
            found.open = batch;
        } else if (batch->brief || batch->chained) {
            set_running(&found, batch);
        }
    }
    return found;
}

/*
 * Would the host have to wait for the end of a longer kernel to get what short ones before it in
 * the batch have written?
 */
static bool keeps_from_host(const struct tutti_batch *batch, const struct tutti_device_task *task) {
    bool keeps = false;
    for (unsigned i = 0; i < batch->count && is_chained(task) && !keeps; i++)
        keeps =
            batch->use[i].mode != STARPU_R && tutti_history_is_taken(batch->use[i].view->history);
    return keeps;
}

static bool may_join(const struct tutti_device_task *task) {
    return (is_brief(task) || is_chained(task)) && !task->prints;
}

static bool open_behind(struct tutti_graph *graph, struct tutti_batch *running,
                        struct tutti_device_task *task) {
    if (graph->open_count == MOST_OPEN || !follow(running))
        return false;
    struct tutti_batch *batch = create(task, true);
    if (!batch)
        return false;
    batch->behind = running;
    atomic_fetch_add(&running->user.references, 1);
    struct tutti_batch **last = &graph->open;
    while (*last)
        last = &(*last)->next_open;
    *last = batch;
    graph->open_count++;
    return true;
}

static void join_others(struct tutti_graph *graph, const struct tutti_device_task *task,
                        struct conflicts *conflicts) {
    const struct tutti_real_device *seat = find_seat(task);
    unsigned likely = likely_for(task);
    unsigned count = tutti_lanes_are_best_for(task) ? 0 : seat ? 1 : crowd_devices(task, likely);
    if (conflicts->several || conflicts->open || count == 0)
        return;
    double most = count == 1 ? LONGEST
                  : tutti_devices_are_at_home(task->devices | task->late.devices)
                      ? LONGEST_OF_SEVERAL
                      : LONGEST_FROM_HOME;
    for (struct tutti_batch *batch = tutti_batch_joins_freely(NULL, task) ? graph->open : NULL;
         batch && !conflicts->open; batch = batch->next_open)
        if (batch->devices == task->devices && find_seat(batch->first) == seat &&
            batch->expected + task->time <= most && batch->free &&
            tutti_batch_goes_freely(batch->behind))
            conflicts->open = batch;
    if (!conflicts->running)
        set_running(conflicts, tutti_recent_ahead(graph, likely, count > 1 ? AHEAD * count : 1));
}

/*
 * A large transfer waits with no others: collected with the kernels before it, and with the next
 * one the other way, they would all come one after the other, in one lane.
 */
static bool wait_with_others(struct tutti_graph *graph, struct tutti_device_task *task,
                             struct conflicts *conflicts) {
    if (is_brief(task) && !task->streams)
        join_others(graph, task, conflicts);
    if (conflicts->several) {
        tutti_batch_flush(graph);
        return false;
    }
    if (conflicts->open) {
        if (!task->streams && takes(conflicts->open, task) &&
            tutti_batch_joins_freely(conflicts->open, task) &&
            !keeps_from_host(conflicts->open, task)) {
            append(conflicts->open, task);
            return true;
        }
        set_running(conflicts, conflicts->open);
        submit_open(conflicts->open);
    }
    struct tutti_batch *running = conflicts->running;
    if (!running || task->streams || tutti_direct_goes_on(running, task) ||
        !open_behind(graph, running, task))
        return false;
    if (running->direct)
        tutti_direct_hurry();
    return true;
}

/*
 * Lets the task wait with others for the end of a batch that it has to come after anyway. False:
 * it is to be submitted now, and no open batch conflicts with it.
 */
static bool collect(struct tutti_graph *graph, struct tutti_device_task *task) {
    if (tutti_crew_serves())
        return false;
    if (!may_join(task)) {
        tutti_batch_flush(graph);
        return false;
    }
    struct conflicts conflicts = find_conflicts(task);
    bool waits = wait_with_others(graph, task, &conflicts);
    set_running(&conflicts, NULL);
    return waits;
}

bool tutti_batch_would_take(struct tutti_device_task *task) {
    tutti_lanes_look_at(task);
    if (!may_join(task))
        return false;
    if (tutti_crew_serves())
        return tutti_crew_would_take(task);
    struct conflicts conflicts = find_conflicts(task);
    bool behind = conflicts.running != NULL;
    set_running(&conflicts, NULL);
    if (conflicts.several)
        return false;
    if (conflicts.open) /* if that is full it goes, and this one waits for it */
        return (conflicts.open->devices & task->devices) != 0;
    if (behind || tutti_direct_would_take(task))
        return true;
    /* Behind a longer kernel it would be a task of its own, and wait for others before it. */
    bool at_home = true, waits = false;
    for (unsigned i = 0; i < task->count; i++) {
        struct tutti_view *view = task->use[i].view;
        struct tutti_batch *last = tutti_batch_last_of(view);
        at_home = at_home && view->at_home && (!last || last->brief);
        waits = waits || tutti_version_users(view).of_devices > 0;
    }
    return at_home && waits;
}

void tutti_batch_add(struct tutti_device_task *task) {
    unsigned fitting = tutti_device_task_fitting(task->use, task->count);
    if (!(task->devices & fitting)) {
        tutti_command_done(&task->command, task->devices ? CL_MEM_OBJECT_ALLOCATION_FAILURE
                                                         : CL_INVALID_PROGRAM_EXECUTABLE);
        return;
    }
    task->devices &= fitting;
    task->late.devices &= fitting;
    if (task->model)
        task->time = tutti_model_measured(task->model);
    if (task->kernel)
        tutti_lanes_look_at(task);
    if (collect(&task->command.event->context->graph, task))
        return;
    struct tutti_batch *batch = create(task, false);
    if (batch)
        submit(batch);
    else
        tutti_command_done(&task->command, CL_OUT_OF_HOST_MEMORY);
}
