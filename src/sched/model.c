/* SPDX-License-Identifier: MIT */
#include "sched/model_store.h"

#include "sched/device_task.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 8192 /* as many as are kept on disk: each launch looks for its model */
/*
 * What a new measurement weighs at least. A kernel's time may depend on what it finds in memory, so
 * that runs differ; a change is followed all the same: where one of some runs is measured in a few
 * of these, where each is, or nearly, within some more.
 */
#define WEIGHT_OF_SOME 0.25
#define WEIGHT_OF_ALL (1.0 / 32)
/*
 * So many times longer than a short kernel took before, and so many µs, which decide something
 * (append.c): it may have been interrupted. That counts if another one is as odd among the next
 * ones, which are measured.
 */
#define ODD 2.0
#define ODD_TIME (2 * TUTTI_LAUNCH_TIME)
#define DOUBTS 8
#define FIRST_RUNS 8
#define ONE_OF 16
#define SHORT 50.0 /* µs: for such a kernel the measurement itself counts */
#define ONE_OF_SHORT 128
#define ONE_OF_SHORT_CALLS 16
#define STORED_RUNS_AGAIN 2 /* one that was kept on disk is measured so often at first */
/*
 * Models for integer arguments of one kernel and sizes: so many until their times differ by a
 * factor, and by some µs, and then.
 */
#define MOST_ALIKE 8
#define MOST_DIFFERENT 64
#define DIFFERENT 2.0
#define DIFFERENT_TIME 20.0
#define LEARNT_AT_FIRST 2 /* times */
/* Guess for a work-item that nobody measured: about 100 cycles of one lane. */
#define CYCLES_PER_ITEM 100.0
#define LANES_GPU 64.0
#define LANES_CPU 8.0
#define RATE_INTERPRETER 4.0 /* tutti_device_interprets */
#define LEAST_MICROSECONDS 1.0
/*
 * Shorter kernels tell more of what a launch costs than of the device. One that takes so long on
 * another device tells by how much that is slower at least.
 */
#define LEAST_TELLING 100.0
#define TELLING_ALONE 1000.0

/*
 * So many times must have been measured on two kinds of device to tell of other kernels. These may
 * do worse on the slower kind: by twice by how much those that were measured differ, and at least
 * by that, as one program's kernels are alike. Between a CPU and a GPU the devices' own word counts
 * as well, if it is worse: kernels that both do equally well, as small ones are, tell nothing
 * there.
 */
#define LEAST_COMPARED 3
#define LEAST_DEVIATION 0.7 /* of the logarithm: twice as long */

/*
 * How kinds of device compare: mean of ln(time / time) over what was measured on both, and the sum
 * of the squares by which that differs from the mean.
 */
struct ratios {
    atomic_uint count[TUTTI_MAX_DEVICES][TUTTI_MAX_DEVICES];
    _Atomic double mean[TUTTI_MAX_DEVICES][TUTTI_MAX_DEVICES];
    _Atomic double squares[TUTTI_MAX_DEVICES][TUTTI_MAX_DEVICES];
};

/* All models of one kernel's code: the largest measured size on each kind of device. */
struct family {
    struct family *next;
    uint64_t code;
    struct ratios ratios;
    _Atomic double time[TUTTI_MAX_DEVICES]; /* µs; 0: none */
    _Atomic uint64_t items[TUTTI_MAX_DEVICES];
    struct tutti_first_launch *first; /* of each shape */
};

struct tutti_model {
    struct tutti_model *_Atomic next;
    struct tutti_model_key key;
    struct family *family;                  /* NULL when out of memory */
    struct tutti_first_launch *first;       /* so is that; and for copies, which are no kernels */
    _Atomic double time[TUTTI_MAX_DEVICES]; /* µs, by kind of device; 0: not measured */
    atomic_uint runs[TUTTI_MAX_DEVICES];
    atomic_uint learnt[TUTTI_MAX_DEVICES]; /* so often in this process */
    atomic_uint doubts[TUTTI_MAX_DEVICES]; /* runs to be measured, as the time may be wrong */
    /* Bits, by kind of device: */
    atomic_uint tried;
    atomic_uint first_alone;          /* its time is that of the first run of this process */
    struct tutti_model *_Atomic base; /* the same for any integer arguments; NULL: this is */
    /* If it is for some: the next one of the same base, and the shortest times so far (µs). */
    struct tutti_model *next_of_integers;
    _Atomic double shortest[TUTTI_MAX_DEVICES]; /* 0: not measured in this process */
    /* If it is a base: those for some, and does it make a difference which they are? */
    struct tutti_model *_Atomic of_integers;
    atomic_uint count_of_integers;
    atomic_bool differs;
};

static struct {
    pthread_mutex_t lock; /* for adding; models are complete when they are, and never removed */
    struct tutti_model *_Atomic bucket[BUCKETS];
    struct family *families[BUCKETS];
    atomic_bool read;     /* the stored ones */
    struct ratios ratios; /* over all kernels */
    atomic_uint generation;
} models = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The model of the key, if there is one; else where it belongs, which holds with the lock. */
static struct tutti_model *_Atomic *place_of(const struct tutti_model_key *key) {
    struct tutti_model *_Atomic *place = &models.bucket[(key->code ^ key->sizes) % BUCKETS];
    struct tutti_model *model;
    while ((model = atomic_load_explicit(place, memory_order_acquire)) &&
           (model->key.code != key->code || model->key.sizes != key->sizes))
        place = &model->next;
    return place;
}

/* With the lock held. */
static struct family *family_of(uint64_t code) {
    struct family **place = &models.families[code % BUCKETS];
    while (*place && (*place)->code != code)
        place = &(*place)->next;
    if (!*place && (*place = calloc(1, sizeof(**place))))
        (*place)->code = code;
    return *place;
}

static struct tutti_model *find_or_make(const struct tutti_model_key *key) {
    struct tutti_model *_Atomic *place = place_of(key);
    struct tutti_model *model = atomic_load_explicit(place, memory_order_relaxed);
    if (!model && (model = calloc(1, sizeof(*model)))) {
        model->key = *key;
        model->family = family_of(key->code);
        if (model->family && key->code != 0)
            model->first = tutti_first_launch_find(&model->family->first,
                                                   (unsigned)(key->sizes >> TUTTI_MODEL_SHAPE));
        atomic_store_explicit(place, model, memory_order_release);
    }
    return model;
}

/* With the lock held. */
static void compare(struct ratios *ratios, unsigned a, unsigned b, double value) {
    unsigned count = ++ratios->count[a][b];
    double before = ratios->mean[a][b], mean = before + (value - before) / count;
    ratios->mean[a][b] = mean;
    ratios->squares[a][b] = ratios->squares[a][b] + (value - before) * (value - mean);
}

static bool tells(double time, double other) {
    return (time >= LEAST_TELLING && other >= LEAST_TELLING) || time >= TELLING_ALONE ||
           other >= TELLING_ALONE;
}

/* A first time of a model on that kind of device says something of others. With the lock held. */
static void relate(struct tutti_model *model, unsigned kind, double time) {
    struct family *family = model->family;
    if (family && (family->time[kind] == 0 || model->key.items >= family->items[kind])) {
        family->items[kind] = model->key.items;
        family->time[kind] = time;
    }
    for (unsigned d = 0; d < tutti_devices()->count; d++) {
        double other = model->time[d];
        if (d == kind || other <= 0 || !tells(time, other))
            continue;
        if (model->key.code != 0) { /* copies are no kernel */
            compare(&models.ratios, kind, d, log(time / other));
            compare(&models.ratios, d, kind, log(other / time));
        }
        if (family) {
            compare(&family->ratios, kind, d, log(time / other));
            compare(&family->ratios, d, kind, log(other / time));
        }
    }
    atomic_fetch_add_explicit(&models.generation, 1, memory_order_relaxed);
}

static double load(const _Atomic double *value) {
    return atomic_load_explicit(value, memory_order_relaxed);
}

static struct tutti_model *load_base(const struct tutti_model *model) {
    return atomic_load_explicit(&model->base, memory_order_acquire);
}

/* The one for any integer arguments; NULL for NULL. */
static struct tutti_model *base_of(struct tutti_model *model) {
    struct tutti_model *base = model ? load_base(model) : NULL;
    return base ? base : model;
}

/*
 * Does the kernel take longer with some integer arguments than with others, of which one may be the
 * time itself? By the shortest of several times of each: it may have been interrupted.
 */
static void look_for_difference(struct tutti_model *base, unsigned kind, double least) {
    double most = least;
    for (const struct tutti_model *model = atomic_load(&base->of_integers); model;
         model = model->next_of_integers) {
        double shortest = load(&model->shortest[kind]);
        double time = shortest > 0 ? shortest : load(&model->time[kind]);
        if (time == 0 || atomic_load(&model->learnt[kind]) == 1)
            continue;
        most = time > most ? time : most;
        least = least == 0 || time < least ? time : least;
    }
    if (most > DIFFERENT * least && most > least + DIFFERENT_TIME)
        atomic_store(&base->differs, true);
}

/* Was it measured anywhere? */
static bool is_known(const struct tutti_model *model) {
    bool known = false;
    for (unsigned d = 0; d < tutti_devices()->count && !known; d++)
        known = load(&model->time[d]) > 0;
    return known;
}

/* What is known of it: by its integer arguments, if those make a difference, or by all others. */
static const struct tutti_model *telling(const struct tutti_model *model) {
    const struct tutti_model *base = model ? load_base(model) : NULL;
    return base && !(atomic_load(&base->differs) && is_known(model)) ? base : model;
}

/* The first device of that kind, which stands for all; the number of devices when there is none. */
static unsigned kind_with(uint64_t identity) {
    const struct tutti_device_list *list = tutti_devices();
    unsigned d = 0;
    while (d < list->count && list->device[d]->identity != identity)
        d++;
    return d;
}

static void take_stored(const struct tutti_model_entry *entry, void *unused) {
    (void)unused;
    unsigned kind = kind_with(entry->identity);
    struct tutti_model *model = kind < tutti_devices()->count ? find_or_make(&entry->key) : NULL;
    if (model) {
        model->time[kind] = entry->time;
        relate(model, kind, entry->time);
        model->runs[kind] = FIRST_RUNS - STORED_RUNS_AGAIN;
        tutti_first_launch_note_kept(model->first, entry->identity);
    }
}

struct tutti_model *tutti_model_find(const struct tutti_model_key *key) {
    struct tutti_model *model = NULL;
    if (atomic_load_explicit(&models.read, memory_order_acquire))
        model = atomic_load_explicit(place_of(key), memory_order_acquire);
    if (model) /* as for all but the first run: no lock */
        return model;
    pthread_mutex_lock(&models.lock);
    if (!models.read)
        tutti_model_store_read(take_stored, NULL);
    atomic_store_explicit(&models.read, true, memory_order_release);
    model = find_or_make(key);
    pthread_mutex_unlock(&models.lock);
    return model;
}

/* For integer arguments that are new; NULL: there are too many. With the lock held. */
static struct tutti_model *add_for_integers(struct tutti_model *base,
                                            const struct tutti_model_key *key) {
    unsigned most = base->differs ? MOST_DIFFERENT : MOST_ALIKE;
    struct tutti_model *model = *place_of(key); /* of an earlier process, maybe */
    if (!model && base->count_of_integers < most)
        model = find_or_make(key);
    if (!model || model->base)
        return model;
    base->count_of_integers++;
    model->next_of_integers = base->of_integers;
    base->of_integers = model;
    model->base = base;
    for (unsigned d = 0; d < tutti_devices()->count; d++)
        look_for_difference(base, d, 0);
    return model;
}

struct tutti_model *tutti_model_of_integers(struct tutti_model *base, uint64_t integers) {
    if (!base || integers == 0)
        return base;
    struct tutti_model_key key = base->key;
    uint64_t shape = key.sizes >> TUTTI_MODEL_SHAPE;
    tutti_model_mix(&key, integers);
    tutti_model_shape(&key, shape);
    struct tutti_model *model = atomic_load_explicit(place_of(&key), memory_order_acquire);
    if (model && load_base(model)) /* as for all but the first run: no lock */
        return model;
    if (!model && atomic_load_explicit(&base->count_of_integers, memory_order_relaxed) >=
                      (atomic_load(&base->differs) ? MOST_DIFFERENT : MOST_ALIKE))
        return base;
    pthread_mutex_lock(&models.lock);
    model = add_for_integers(base, &key);
    pthread_mutex_unlock(&models.lock);
    return model ? model : base;
}

static bool learnt_here(const struct tutti_model_entry *entry) {
    unsigned kind = kind_with(entry->identity);
    const struct tutti_model *model = *place_of(&entry->key);
    return model && kind < tutti_devices()->count && model->learnt[kind];
}

/* What integer arguments do not change is known by that alone. */
static bool is_kept(const struct tutti_model *model) {
    const struct tutti_model *base = load_base(model);
    return !base || atomic_load(&base->differs);
}

void tutti_model_keep(void) {
    const struct tutti_device_list *list = tutti_devices();
    struct tutti_model_entry *entries = NULL;
    size_t count = 0, room = 0;
    pthread_mutex_lock(&models.lock);
    for (unsigned b = 0; b < BUCKETS; b++)
        for (struct tutti_model *model = models.bucket[b]; model; model = model->next)
            for (unsigned d = 0; d < list->count; d++)
                room += model->learnt[d] > 0;
    if (room)
        entries = malloc(room * sizeof(*entries));
    for (unsigned b = 0; b < BUCKETS && entries; b++)
        for (struct tutti_model *model = models.bucket[b]; model; model = model->next)
            for (unsigned d = 0; d < list->count; d++)
                if (model->learnt[d] && is_kept(model) && count < room)
                    entries[count++] = (struct tutti_model_entry){
                        model->key, list->device[d]->identity, model->time[d]};
    tutti_model_store_add(entries, count, learnt_here);
    pthread_mutex_unlock(&models.lock);
    free(entries);
}

/* Work-item cycles per µs that the device could do. */
static double rate(const struct tutti_real_device *device) {
    double clock = device->clock_mhz ? device->clock_mhz : 1000;
    double units = device->compute_units ? device->compute_units : 1;
    if (tutti_device_interprets(device))
        return RATE_INTERPRETER;
    return units * clock * (device->type & CL_DEVICE_TYPE_GPU ? LANES_GPU : LANES_CPU);
}

/* By another size of the kernel on that kind of device; 0: none that tells anything. */
static double by_family(const struct tutti_model *model, unsigned kind) {
    const struct family *family = model->family;
    double time = family ? load(&family->time[kind]) : 0;
    if (time == 0)
        return 0;
    double items = (double)atomic_load_explicit(&family->items[kind], memory_order_relaxed);
    double share = (double)model->key.items / (items > 0 ? items : 1);
    return share > 1 && time < LEAST_TELLING ? 0 : time * share;
}

/* How much longer the device takes than device d. */
static double ratio(const struct tutti_model *model, const struct tutti_real_device *device,
                    unsigned d, enum tutti_certainty *certainty) {
    unsigned kind = device->kind;
    const struct tutti_real_device *other = tutti_devices()->device[d];
    double by_rate = rate(other) / rate(device);
    const struct ratios *family = model->family ? &model->family->ratios : NULL;
    *certainty = family && family->count[kind][d] ? TUTTI_RELATED : TUTTI_GUESSED;
    if (*certainty == TUTTI_RELATED)
        return exp(load(&family->mean[kind][d]));
    unsigned compared = models.ratios.count[kind][d];
    if (compared >= LEAST_COMPARED) {
        double mean = load(&models.ratios.mean[kind][d]);
        double deviation = sqrt(load(&models.ratios.squares[kind][d]) / (compared - 1));
        if (deviation < LEAST_DEVIATION)
            deviation = LEAST_DEVIATION;
        double slower = exp(mean > 0 ? mean + 2 * deviation : mean);
        return other->type == device->type || slower > by_rate ? slower : by_rate;
    }
    return by_rate;
}

double tutti_model_estimate(const struct tutti_model *model, const struct tutti_real_device *device,
                            enum tutti_certainty *certainty) {
    model = telling(model);
    *certainty = model ? TUTTI_GUESSED : TUTTI_MEASURED;
    if (!model)
        return LEAST_MICROSECONDS;
    unsigned kind = device->kind, count = tutti_devices()->count;
    double time = load(&model->time[kind]);
    if (time > 0)
        *certainty = TUTTI_MEASURED;
    for (unsigned d = 0; d < count && time == 0; d++)
        if (load(&model->time[d]) > 0)
            time = load(&model->time[d]) * ratio(model, device, d, certainty);
    if (time == 0 && (time = by_family(model, kind)) > 0)
        *certainty = TUTTI_RELATED;
    for (unsigned d = 0; d < count && time == 0; d++)
        if (by_family(model, d) > 0)
            time = by_family(model, d) * ratio(model, device, d, certainty);
    if (time == 0)
        time = (double)model->key.items * CYCLES_PER_ITEM / rate(device);
    return time > LEAST_MICROSECONDS ? time : LEAST_MICROSECONDS;
}

double tutti_model_expect(const struct tutti_model *model, const struct tutti_real_device *device) {
    enum tutti_certainty certainty;
    return tutti_model_estimate(model, device, &certainty);
}

double tutti_model_least(const struct tutti_model *model, unsigned devices) {
    const struct tutti_device_list *list = tutti_devices();
    double least = INFINITY;
    for (unsigned d = 0; d < list->count; d++)
        if (devices & 1u << d)
            least = fmin(least, tutti_model_expect(model, list->device[d]));
    return least;
}

uint64_t tutti_model_items(const struct tutti_model *model) { return model->key.items; }

struct tutti_first_launch *tutti_model_first_launch(const struct tutti_model *model) {
    return model ? model->first : NULL;
}

void tutti_model_try(struct tutti_model *model, const struct tutti_real_device *device,
                     bool tries) {
    model = base_of(model);
    if (model && tries)
        atomic_fetch_or_explicit(&model->tried, 1u << device->kind, memory_order_relaxed);
    else if (model)
        atomic_fetch_and_explicit(&model->tried, ~(1u << device->kind), memory_order_relaxed);
}

bool tutti_model_is_tried(const struct tutti_model *model, const struct tutti_real_device *device) {
    const struct tutti_model *base = model ? load_base(model) : NULL;
    model = base ? base : model;
    return model && atomic_load_explicit(&model->tried, memory_order_relaxed) & 1u << device->kind;
}

unsigned tutti_model_generation(void) {
    return atomic_load_explicit(&models.generation, memory_order_relaxed);
}

double tutti_model_time(const struct tutti_model *model, const struct tutti_real_device *device) {
    model = telling(model);
    return model ? load(&model->time[device->kind]) : 0;
}

double tutti_model_measured(const struct tutti_model *model) {
    double least = 0;
    model = telling(model);
    for (unsigned d = 0; model && d < tutti_devices()->count; d++) {
        double time = load(&model->time[d]);
        if (time > 0 && (least == 0 || time < least))
            least = time;
    }
    return least;
}

/*
 * Is the run drawn, as one of so many are? At no fixed distance: a program's kernels may come in
 * rounds, with the same ones long in each. The mixing is that of a hash of integers.
 */
static bool is_drawn(uint32_t run, uint32_t one_of /* a power of two */) {
    run = (run ^ run >> 16) * 0x7feb352du;
    run = (run ^ run >> 15) * 0x846ca68bu;
    return ((run ^ run >> 16) & (one_of - 1)) == 0;
}

/* One more run there; returns how many there were before. Of several threads' one may be lost. */
static unsigned count_run(struct tutti_model *model, unsigned kind) {
    unsigned runs = atomic_load_explicit(&model->runs[kind], memory_order_relaxed);
    atomic_store_explicit(&model->runs[kind], runs + 1, memory_order_relaxed);
    return runs;
}

enum tutti_measuring tutti_model_measures(struct tutti_model *model,
                                          const struct tutti_real_device *device) {
    if (!model)
        return TUTTI_NOT_MEASURED;
    unsigned kind = device->kind;
    struct tutti_model *base = load_base(model);
    bool fresh = base && count_run(model, kind) < FIRST_RUNS &&
                 atomic_load_explicit(&model->learnt[kind], memory_order_relaxed) < LEARNT_AT_FIRST;
    model = base ? base : model;
    unsigned runs = count_run(model, kind);
    bool is_short = load(&model->time[kind]) < SHORT,
         in_call = tutti_device_executes_in_call(device);
    if (runs < FIRST_RUNS)
        return TUTTI_MEASURED_BY_DRIVER;
    unsigned one_of = in_call    ? is_short ? ONE_OF_SHORT_CALLS : 1
                      : is_short ? ONE_OF_SHORT
                                 : ONE_OF;
    if (!fresh && atomic_load_explicit(&model->doubts[kind], memory_order_relaxed) == 0 &&
        !is_drawn(runs, one_of))
        return TUTTI_NOT_MEASURED;
    return in_call ? TUTTI_MEASURED_BY_CALL : TUTTI_MEASURED_BY_DRIVER;
}

void tutti_model_doubt(struct tutti_model *model, const struct tutti_real_device *device) {
    unsigned none = 0;
    model = base_of(model);
    if (model)
        atomic_compare_exchange_strong(&model->doubts[device->kind], &none, 1);
}

/*
 * The first run in a process may take some 30 µs longer than the next ones. Its time counts until
 * there is another one, and that of a short kernel not at all where it is known.
 */
static bool is_left_to_others(const struct tutti_model *model, unsigned kind, double before,
                              double time) {
    return before > 0 && before < SHORT && time > before &&
           atomic_load_explicit(&model->learnt[kind], memory_order_relaxed) == 0;
}

/* Is what was known the time of this process's first run alone? Notes if what comes now is. */
static bool is_first_alone(struct tutti_model *model, unsigned kind, double before) {
    unsigned bit = 1u << kind;
    if (before == 0)
        atomic_fetch_or_explicit(&model->first_alone, bit, memory_order_relaxed);
    return before > 0 &&
           atomic_fetch_and_explicit(&model->first_alone, ~bit, memory_order_relaxed) & bit;
}

static double weight_of(const struct tutti_model *model, const struct tutti_real_device *device) {
    double least = tutti_device_executes_in_call(device) ? WEIGHT_OF_ALL : WEIGHT_OF_SOME;
    unsigned runs = atomic_load_explicit(&model->runs[device->kind], memory_order_relaxed);
    double share = 1.0 / (runs + 1);
    return share > least ? share : least;
}

static void learn(struct tutti_model *model, const struct tutti_real_device *device, double time) {
    unsigned kind = device->kind;
    _Atomic double *learnt = &model->time[kind];
    double before = atomic_load_explicit(learnt, memory_order_relaxed), after;
    if (is_left_to_others(model, kind, before, time)) {
        atomic_fetch_add_explicit(&model->learnt[kind], 1, memory_order_relaxed);
        return;
    }
    bool odd = before > 0 && before < SHORT && time > ODD_TIME && time > ODD * before;
    unsigned doubts = atomic_load_explicit(&model->doubts[kind], memory_order_relaxed);
    if (odd || doubts > 0) /* of several threads one may be lost, or counted twice */
        atomic_store_explicit(&model->doubts[kind], odd ? DOUBTS : doubts - 1,
                              memory_order_relaxed);
    if (odd && doubts == 0)
        return;
    bool replaces = is_first_alone(model, kind, before) && time < before;
    double weight = replaces ? 1 : weight_of(model, device);
    do {
        after = before > 0 ? before + weight * (time - before) : time;
    } while (!atomic_compare_exchange_weak_explicit(learnt, &before, after, memory_order_relaxed,
                                                    memory_order_relaxed));
    if (before == 0 && !load_base(model)) { /* other threads may be as early: each time counts */
        pthread_mutex_lock(&models.lock);
        relate(model, kind, time);
        pthread_mutex_unlock(&models.lock);
    }
    atomic_fetch_add_explicit(&model->learnt[kind], 1, memory_order_relaxed);
}

void tutti_model_learn(struct tutti_model *model, const struct tutti_real_device *device,
                       double time) {
    if (!model)
        return;
    if (time <= 0)
        time = LEAST_MICROSECONDS / 10; /* 0 means "not measured" */
    tutti_first_launch_end(model->first, device);
    struct tutti_model *base = load_base(model);
    if (base) {
        _Atomic double *shortest = &model->shortest[device->kind];
        if (load(shortest) == 0 || time < load(shortest))
            *shortest = time;
        learn(model, device, time);
        look_for_difference(base, device->kind, 0);
    } else if (atomic_load(&model->of_integers)) { /* there were too many others */
        look_for_difference(model, device->kind, time);
    }
    learn(base_of(model), device, time);
}

unsigned tutti_model_count(const struct tutti_real_device *device) {
    unsigned kind = device->kind, count = 0;
    pthread_mutex_lock(&models.lock);
    for (unsigned b = 0; b < BUCKETS; b++)
        for (struct tutti_model *model = models.bucket[b]; model; model = model->next)
            count += model->time[kind] > 0 && is_kept(model);
    pthread_mutex_unlock(&models.lock);
    return count;
}
