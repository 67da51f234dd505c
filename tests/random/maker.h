/* SPDX-License-Identifier: MIT */
/* A random program in the making; generate.c settles steps, propose.c thinks them up. */
#ifndef TUTTI_TESTS_RANDOM_MAKER_H
#define TUTTI_TESTS_RANDOM_MAKER_H

#include "order.h"

struct maker {
    struct program *program;
    struct abilities abilities;
    struct order order;
    uint32_t state;
};

static inline uint32_t below(struct maker *maker, uint32_t limit) {
    return (next_random(&maker->state) >> 8) % limit;
}
static inline bool chance(struct maker *maker, unsigned percent) {
    return below(maker, 100) < percent;
}
/* In [low, high]. */
static inline size_t between(struct maker *maker, size_t low, size_t high) {
    return low + below(maker, (uint32_t)(high - low + 1));
}

static inline struct step blank(struct maker *maker, enum step_kind kind, int thread) {
    struct step step = {.kind = kind, .thread = thread, .host = -1};
    step.queue = (int)below(maker, (uint32_t)maker->program->queues);
    step.value = next_random(&maker->state);
    return step;
}

/* Makes the step the program's next one, after what it needs; false if it can't be. */
bool maker_append(struct maker *maker, const struct step *wanted, int depth);

/* Appends a step that makes sense where the program is, or none. */
void maker_propose(struct maker *maker);

/* Of a transfer with an image: which bytes (propose_image.c). */
bool maker_choose_image_transfer(struct maker *maker, struct step *step);
bool maker_choose_image_map(struct maker *maker, struct step *step);
/* Of a kernel with an image: its arguments. */
bool maker_choose_image_kernel(struct maker *maker, struct step *step);
void maker_make_images(struct maker *maker);

int maker_any_buffer(struct maker *maker);
cl_mem_flags maker_choose_flags(struct maker *maker);
bool maker_kernel_may(const struct program *program, int object, enum use use);

#endif
