/* SPDX-License-Identifier: MIT */
#include "sched/link.h"

#include "sched/runtime.h"

#include <pthread.h>

/* Before anything was measured. */
#define LATENCY_GPU 15.0
#define RATE_GPU 20000.0
#define LATENCY_CPU 5.0
#define RATE_CPU 4000.0

/* Smaller transfers tell the latency, larger ones the rate. */
#define MOST_FOR_LATENCY ((size_t)16 << 10)
#define LEAST_FOR_RATE ((size_t)256 << 10)
#define LONG ((size_t)1 << 20) /* it takes longer than a short command */
#define WINDOW 2e6             /* ns: so long at most is measured as one */
#define WEIGHT 0.25

static struct state {
    pthread_mutex_t lock;
    _Atomic double latency, rate; /* learnt; 0: not yet. Read without the lock */
    atomic_uint active;           /* transfers of our threads. The same */
    atomic_uint longs;      /* of those, and of the drivers' queues, the long ones. The same */
    bool alone;             /* none began while another was active */
    unsigned disturbances;  /* when the window was opened */
    cl_ulong since;         /* when the window was opened */
    _Atomic cl_ulong until; /* when what StarPU waits for should be over. The same */
    size_t bytes;           /* in it */
} states[TUTTI_MAX_DEVICES][TUTTI_DIRECTIONS];

static atomic_uint disturbing, disturbances; /* now, and so far */

static void init_locks(void) {
    for (unsigned d = 0; d < TUTTI_MAX_DEVICES; d++)
        for (unsigned i = 0; i < TUTTI_DIRECTIONS; i++)
            pthread_mutex_init(&states[d][i].lock, NULL);
}

static struct state *state_of(const struct tutti_real_device *device,
                              enum tutti_direction direction) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_locks);
    return &states[device->index][direction];
}

static struct tutti_link prior(const struct tutti_real_device *device) {
    return device->type & CL_DEVICE_TYPE_GPU ? (struct tutti_link){LATENCY_GPU, RATE_GPU}
                                             : (struct tutti_link){LATENCY_CPU, RATE_CPU};
}

/* With the lock held. */
static void average(_Atomic double *value, double measured) {
    double before = *value;
    *value = before > 0 ? before + WEIGHT * (measured - before) : measured;
}

/* What is under way now, if anything is, disturbs the window as well. With the lock held. */
static void open_window(struct state *state, cl_ulong now) {
    state->since = now;
    state->bytes = 0;
    state->disturbances = atomic_load(&disturbances) - (atomic_load(&disturbing) > 0);
}

/* `bytes` took `time` ns on the link. With the lock held. */
static void learn(struct state *state, const struct tutti_real_device *device, size_t bytes,
                  double time, bool alone) {
    double latency = state->latency > 0 ? state->latency : prior(device).latency;
    double length = time / 1000;
    if (atomic_load(&disturbances) != state->disturbances)
        return;
    if (bytes >= LEAST_FOR_RATE && length > 0)
        average(&state->rate, (double)bytes / (length > 2 * latency ? length - latency : length));
    else if (alone && bytes <= MOST_FOR_LATENCY)
        average(&state->latency, length);
}

void tutti_link_begin(const struct tutti_real_device *device, enum tutti_direction direction,
                      size_t bytes) {
    struct state *state = state_of(device, direction);
    pthread_mutex_lock(&state->lock);
    state->longs += bytes >= LONG;
    if (state->active++ == 0) {
        open_window(state, tutti_runtime_now());
        state->alone = true;
    } else {
        state->alone = false;
    }
    pthread_mutex_unlock(&state->lock);
}

void tutti_link_end(const struct tutti_real_device *device, enum tutti_direction direction,
                    size_t bytes) {
    struct state *state = state_of(device, direction);
    pthread_mutex_lock(&state->lock);
    cl_ulong now = tutti_runtime_now();
    double time = (double)(now - state->since);
    state->bytes += bytes;
    state->longs -= bytes >= LONG;
    if (--state->active == 0 || time >= WINDOW) {
        learn(state, device, state->bytes, time, state->alone);
        open_window(state, now);
    }
    pthread_mutex_unlock(&state->lock);
}

void tutti_link_disturb(bool begins) {
    atomic_fetch_add(&disturbing, begins ? 1u : -1u);
    atomic_fetch_add(&disturbances, begins);
}

void tutti_link_begin_unseen(const struct tutti_real_device *device, enum tutti_direction direction,
                             size_t bytes) {
    struct state *state = state_of(device, direction);
    struct tutti_link link = tutti_link_expect(device, direction);
    cl_ulong length = (cl_ulong)(1000 * (link.latency + (double)bytes / link.rate));
    if (bytes < LONG)
        return;
    pthread_mutex_lock(&state->lock);
    cl_ulong now = tutti_runtime_now();
    state->until = (state->until > now ? state->until : now) + length;
    pthread_mutex_unlock(&state->lock);
}

void tutti_link_note_long(const struct tutti_real_device *device, enum tutti_direction direction,
                          bool begins) {
    atomic_fetch_add(&state_of(device, direction)->longs, begins ? 1u : -1u);
}

bool tutti_link_delays_events(const struct tutti_real_device *device) {
    cl_ulong until = 0;
    if (!(device->type & CL_DEVICE_TYPE_GPU))
        return false;
    for (int direction = 0; direction < TUTTI_DIRECTIONS; direction++) {
        struct state *state = state_of(device, direction);
        if (atomic_load(&state->longs))
            return true;
        cl_ulong end = atomic_load_explicit(&state->until, memory_order_relaxed);
        until = end > until ? end : until;
    }
    return until && until > tutti_runtime_now();
}

bool tutti_link_is_shared(const struct tutti_real_device *device) {
    unsigned users = 0;
    for (int direction = 0; direction < TUTTI_DIRECTIONS; direction++)
        users += atomic_load(&state_of(device, direction)->active);
    return users > 1;
}

struct tutti_link tutti_link_expect(const struct tutti_real_device *device,
                                    enum tutti_direction direction) {
    struct state *state = &states[device->index][direction];
    struct tutti_link link = prior(device);
    double latency = atomic_load_explicit(&state->latency, memory_order_relaxed);
    double rate = atomic_load_explicit(&state->rate, memory_order_relaxed);
    if (latency > 0)
        link.latency = latency;
    if (rate > 0)
        link.rate = rate;
    return link;
}
