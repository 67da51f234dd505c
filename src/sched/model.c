/* SPDX-License-Identifier: MIT */
#include "sched/model.h"

#include <pthread.h>
#include <stdlib.h>

#define BUCKETS 1024
/* A new measurement weighs a quarter: a few runs follow a change, one odd run does not count. */
#define WEIGHT 0.25
#define FIRST_RUNS 8
#define ONE_OF 16
/* Guess for a work-item that nobody measured: about 100 cycles of one lane. */
#define CYCLES_PER_ITEM 100.0
#define LANES_GPU 64.0
#define LANES_CPU 4.0
#define LEAST_MICROSECONDS 1.0

struct tutti_model {
    struct tutti_model *next;
    struct tutti_model_key key;
    _Atomic double time[TUTTI_MAX_DEVICES]; /* µs, by kind_of; 0: not measured */
    atomic_uint runs[TUTTI_MAX_DEVICES];
};

static struct {
    pthread_mutex_t lock; /* guards the buckets; models are never removed */
    struct tutti_model *bucket[BUCKETS];
} models = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct tutti_model *tutti_model_find(const struct tutti_model_key *key) {
    struct tutti_model **first = &models.bucket[(key->code ^ key->sizes) % BUCKETS];
    pthread_mutex_lock(&models.lock);
    struct tutti_model *model = *first;
    while (model && (model->key.code != key->code || model->key.sizes != key->sizes))
        model = model->next;
    if (!model && (model = calloc(1, sizeof(*model)))) {
        model->key = *key;
        model->next = *first;
        *first = model;
    }
    pthread_mutex_unlock(&models.lock);
    return model;
}

/* Work-item cycles per µs that the device could do. */
static double rate(const struct tutti_real_device *device) {
    double clock = device->clock_mhz ? device->clock_mhz : 1000;
    double units = device->compute_units ? device->compute_units : 1;
    return units * clock * (device->type & CL_DEVICE_TYPE_GPU ? LANES_GPU : LANES_CPU);
}

/* Devices of one kind share what is learnt: the first of them stands for all. */
static unsigned kind_of(const struct tutti_real_device *device) {
    const struct tutti_device_list *list = tutti_devices();
    unsigned d = 0;
    while (d < device->index && list->device[d]->identity != device->identity)
        d++;
    return d;
}

double tutti_model_expect(const struct tutti_model *model, const struct tutti_real_device *device) {
    if (!model)
        return LEAST_MICROSECONDS;
    double time = atomic_load_explicit(&model->time[kind_of(device)], memory_order_relaxed);
    const struct tutti_device_list *list = tutti_devices();
    for (unsigned d = 0; d < list->count && time == 0; d++) {
        double other = atomic_load_explicit(&model->time[d], memory_order_relaxed);
        if (other > 0)
            time = other * rate(list->device[d]) / rate(device);
    }
    if (time == 0)
        time = (double)model->key.items * CYCLES_PER_ITEM / rate(device);
    return time > LEAST_MICROSECONDS ? time : LEAST_MICROSECONDS;
}

double tutti_model_measured(const struct tutti_model *model) {
    double least = 0;
    for (unsigned d = 0; model && d < tutti_devices()->count; d++) {
        double time = atomic_load_explicit(&model->time[d], memory_order_relaxed);
        if (time > 0 && (least == 0 || time < least))
            least = time;
    }
    return least;
}

bool tutti_model_is_curious(struct tutti_model *model, const struct tutti_real_device *device) {
    if (!model)
        return false;
    unsigned runs =
        atomic_fetch_add_explicit(&model->runs[kind_of(device)], 1, memory_order_relaxed);
    return runs < FIRST_RUNS || runs % ONE_OF == 0;
}

void tutti_model_learn(struct tutti_model *model, const struct tutti_real_device *device,
                       double time) {
    if (!model)
        return;
    if (time <= 0)
        time = LEAST_MICROSECONDS / 10; /* 0 means "not measured" */
    _Atomic double *learnt = &model->time[kind_of(device)];
    double before = atomic_load_explicit(learnt, memory_order_relaxed), after;
    do {
        after = before > 0 ? before + WEIGHT * (time - before) : time;
    } while (!atomic_compare_exchange_weak_explicit(learnt, &before, after, memory_order_relaxed,
                                                    memory_order_relaxed));
}
