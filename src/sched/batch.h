/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_BATCH_H
#define TUTTI_BATCH_H

#include "memory/stay.h"
#include "sched/device_task.h"
#include "sched/graph.h"

/*
 * What StarPU gets as one task: device tasks that one device executes one after the other, mostly
 * a single one. A run of short kernels that can't start anyway before an earlier one ends is
 * collected meanwhile, and costs StarPU's price for a task once. Each command keeps its event.
 *
 * Collecting batches are *open*. No two open batches conflict, so they may be submitted in any
 * order; whatever else is dispatched finds them submitted. The dispatching thread alone touches a
 * batch until it is submitted, and StarPU's worker after that.
 */
#define TUTTI_BATCH_FEW 4
#define TUTTI_BRIEF 50.0 /* µs: a longer kernel pays for a task of its own */
/* µs: what the host moves meanwhile costs up to 200, and gains nothing if all is one chain. */
#define TUTTI_KEEPS_LONG 20000.0
/* µs that a batch may take longer where its data is: as long as StarPU's share, and transfers. */
#define TUTTI_TOLERATED 100.0
struct tutti_batch {
    struct tutti_last_user user; /* first: views keep references to it (memory/view.h) */
    struct tutti_ready followed; /* submits those that were collected behind this one */
    cl_context context;          /* retained */
    _Atomic enum tutti_batch_state {
        TUTTI_BATCH_OPEN,
        TUTTI_BATCH_SUBMITTED,
        TUTTI_BATCH_FOLLOWED, /* submitted, and another one waits for its end */
        TUTTI_BATCH_OVER,
    } state;
    bool brief;        /* only short kernels: worth waiting for */
    unsigned parts;    /* of its kind a device has room for so many at once, */
    bool shares;       /* and some of its tasks are worth that (lanes.h) */
    bool apart;        /* the first of them needs no others before it, nor behind it */
    bool computes;     /* there is a kernel in it */
    bool lone;         /* longer kernels, which may go straight to a device (direct.c) */
    bool chained;      /* some of a GPU, which others wait for that come after them */
    bool free;         /* it was made waiting for nothing else than devices */
    atomic_bool ready; /* a device executes it, or is about to */
    atomic_bool waits; /* StarPU's worker, for its end */
    struct tutti_batch *behind, *next_open; /* an open one: whose end submits it (a reference) */

    struct tutti_device_task *first, **last;
    unsigned length;
    double expected;  /* µs, on the device that is best at it, */
    double longer;    /* and more where it may go, for those of it that may go elsewhere, too */
    unsigned devices; /* bit d: real device d may execute all of it */
    unsigned late;    /* likewise, once the kernels are there: tutti_batch_devices */
    unsigned likely;  /* where its kernels, or else its transfers, are likely to be */
    bool at_home;     /* so are all its views, on any device */
    bool unbrought;   /* in a device's line: its data comes once StarPU's worker takes it */
    bool beside;      /* the same: the device executes it beside others (lanes.h) */
    double delay;     /* µs of its time in that line, for first launches of kernels there, */
    unsigned delayed; /* on this device (a bit) */
    struct tutti_device_use *use; /* of all tasks together, each view once */
    unsigned count, room;
    struct tutti_device_use few[TUTTI_BATCH_FEW]; /* `use`, as long as they have room here */
    struct tutti_real_device *device;             /* that executes it, */
    struct tutti_real_device *elsewhere;          /* but for this one (elsewhere.h), or NULL */
    cl_command_queue queue;                       /* of the device, in this lane (lanes.h); */
    unsigned lane;                                /* NULL: not chosen yet */
    atomic_uint *counter; /* of its commands among others of its kind (lanes.c), or NULL */
    unsigned turn;        /* counts those of the lane past StarPU on a GPU, from 1 on */
    tutti_lane_set after; /* whose commands it must come after, besides its own lane's, */
    unsigned after_turn[TUTTI_LANE_SLOTS]; /* of a GPU's up to this one */
    cl_ulong began;                        /* about, host's clock */
    cl_event end;    /* of the last command, which holds the reference; or NULL */
    cl_event marker; /* behind it, if there is no such event (execution.h) */
    bool flushed;
    bool over;      /* its last command has ended, and so all before it */
    cl_int outcome; /* of commands that have no event */

    bool direct;         /* past StarPU (direct.h, crew.h) */
    bool marked;         /* its end is to be seen while others are behind it */
    atomic_uint order;   /* counts what its device was given, up to this one's last (lanes.c) */
    unsigned follows;    /* as its commands do (command.h); 0: none does */
    atomic_uint missing; /* stays that are not yet acquired; of the crew's: uses it waits for */
    unsigned looked;     /* when who watches looked at it first; 0: not yet */
    unsigned lone_time;  /* µs that its device's longer kernels have of it (ahead.c) */
    double wait;         /* µs, by the models: until devices have ended what is before it */
    bool listed;         /* among those whose ends are still to be seen to (direct_end.c) */
    unsigned appended; /* what has no command of its own (append.h), in `length` as well, */
    double appended_time; /* and the µs that they take */
    struct tutti_batch_bytes {
        struct tutti_batch_bytes *next;
        char bytes[];
    } * bytes; /* that those bring to the device */
    struct tutti_batch *next_direct;
};

/* May commands go together as their times say? Else TUTTI_BATCH says what does. */
bool tutti_batch_goes_by_time(void);

/* Gives the task to StarPU, now or with others. By the dispatching thread. */
void tutti_batch_add(struct tutti_device_task *task);

/*
 * Would it go with others, or straight to a device? Or had the host to wait for short kernels
 * anyway, at home, so that a device does it best? By the dispatching thread.
 */
bool tutti_batch_would_take(struct tutti_device_task *task);

/* Is the event's command one of the batch, or behind one of it in its queue? */
bool tutti_batch_comes_before(const struct tutti_batch *batch, const struct _cl_event *event);

/* Makes room for so many more views. By who may change the batch. */
bool tutti_batch_make_room(struct tutti_batch *batch, unsigned more);

/* How many of its commands use the view. */
unsigned tutti_batch_users(const struct tutti_batch *batch, const struct tutti_view *view);

/* Submits all open batches, before something else is dispatched. By the dispatching thread. */
void tutti_batch_flush(struct tutti_graph *graph);

/* The devices that may execute all of it by now, as bits. */
unsigned tutti_batch_devices(const struct tutti_batch *batch);

/* Gives a reference back; NULL is allowed. */
static inline void tutti_batch_release(struct tutti_batch *batch) {
    if (batch)
        tutti_last_user_release(&batch->user);
}

/* Is it so by now (the next one), or over? */
static inline bool tutti_batch_is_ready(const struct tutti_batch *batch) {
    return atomic_load_explicit(&batch->ready, memory_order_relaxed) ||
           atomic_load(&batch->state) == TUTTI_BATCH_OVER;
}

/* A device executes the batch, or will without waiting for anything but devices. */
static inline void tutti_batch_note_ready(struct tutti_batch *batch) {
    atomic_store_explicit(&batch->ready, true, memory_order_relaxed);
}

/*
 * The batch is over: frees it but for what views refer to. Tasks must be done with, or be ended
 * after it.
 */
void tutti_batch_end(struct tutti_batch *batch);

#endif
