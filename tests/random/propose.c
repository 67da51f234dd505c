/* SPDX-License-Identifier: MIT */
#include "maker.h"

static size_t words_of(const struct program *program, int object) {
    return program->object[object].size / 4;
}

static bool host_may(const struct program *program, int object, bool read, bool write) {
    cl_mem_flags flags = program->object[object].flags;
    return !(flags & CL_MEM_HOST_NO_ACCESS) && !(read && flags & CL_MEM_HOST_WRITE_ONLY) &&
           !(write && flags & CL_MEM_HOST_READ_ONLY);
}

bool maker_kernel_may(const struct program *program, int object, enum use use) {
    cl_mem_flags flags = program->object[object].flags;
    return !(use != USE_W && flags & CL_MEM_WRITE_ONLY) &&
           !(use != USE_R && flags & CL_MEM_READ_ONLY);
}

static int any_object(struct maker *maker) {
    return (int)below(maker, (uint32_t)maker->program->objects);
}

int maker_any_buffer(struct maker *maker) {
    int object = any_object(maker);
    return object_is_image(maker->program, object) ? 0 : object; /* the first is never an image */
}

/* A linear part, often the whole. */
static void choose_linear(struct maker *maker, struct step *step, size_t limit, size_t other) {
    size_t most = limit < other ? limit : other;
    step->region[0] = chance(maker, 40) ? most : between(maker, 1, most);
    step->region[1] = step->region[2] = 1;
    step->box[0].origin[0] = between(maker, 0, limit - step->region[0]);
    step->box[1].origin[0] = between(maker, 0, other - step->region[0]);
}

static void choose_pitches(struct maker *maker, struct step *step, struct box *box) {
    box->row = step->region[0] + below(maker, 9);
    box->slice = box->row * (step->region[1] + below(maker, 3));
}

static bool place_box(struct maker *maker, const struct step *step, struct box *box, size_t limit) {
    size_t size = box_end(box, step->region);
    if (size > limit)
        return false;
    size_t at = between(maker, 0, limit - size);
    box->origin[2] = at / box->slice;
    box->origin[1] = at % box->slice / box->row;
    box->origin[0] = at % box->slice % box->row;
    /* A row must not run into the next one. */
    if (box->origin[0] + step->region[0] > box->row)
        box->origin[0] = 0;
    if ((box->origin[1] + step->region[1]) * box->row > box->slice)
        box->origin[1] = 0;
    return true;
}

static bool choose_rect(struct maker *maker, struct step *step, size_t limit, size_t other) {
    step->rect = true;
    step->region[0] = between(maker, 1, maker->program->large ? 24000 : 24);
    step->region[1] = between(maker, 1, maker->program->large ? 24 : 6);
    step->region[2] = between(maker, 1, 3);
    choose_pitches(maker, step, &step->box[0]);
    choose_pitches(maker, step, &step->box[1]);
    if (step->kind == STEP_COPY && step->object[0] == step->object[1])
        step->box[1] = step->box[0];
    return place_box(maker, step, &step->box[0], limit) &&
           place_box(maker, step, &step->box[1], other);
}

static bool choose_transfer(struct maker *maker, struct step *step) {
    const struct program *program = maker->program;
    size_t limit, other = program->host_size;
    step->object[0] = any_object(maker);
    step->objects = 1;
    if (step->kind == STEP_COPY)
        step->object[step->objects++] = any_object(maker);
    limit = program->object[step->object[0]].size;
    if (step->kind == STEP_READ || step->kind == STEP_WRITE) {
        step->host = (int)below(maker, (uint32_t)program->hosts);
        step->blocking = chance(maker, 25);
        if (!host_may(program, step->object[0], step->kind == STEP_READ, step->kind == STEP_WRITE))
            return false;
    }
    for (int k = 0; k < step->objects; k++)
        if (object_is_image(program, step->object[k]))
            return maker_choose_image_transfer(maker, step);
    if (step->kind == STEP_FILL) {
        step->pattern = (size_t)1 << below(maker, 5);
        size_t units = limit / step->pattern;
        if (!units)
            return false;
        step->region[0] = chance(maker, 40) ? units : between(maker, 1, units);
        step->box[0].origin[0] = between(maker, 0, units - step->region[0]) * step->pattern;
        step->region[0] *= step->pattern;
        step->region[1] = step->region[2] = 1;
        return true;
    }
    if (step->kind == STEP_COPY)
        other = program->object[step->object[1]].size;
    bool subs = program->object[step->object[0]].root != step->object[0] ||
                (step->objects == 2 && program->object[step->object[1]].root != step->object[1]);
    if (chance(maker, 25) && (maker->abilities.sub_rects || step->kind != STEP_COPY || !subs))
        return choose_rect(maker, step, limit, other);
    choose_linear(maker, step, limit, other);
    return true;
}

static bool choose_kernel(struct maker *maker, struct step *step) {
    const struct program *program = maker->program;
    step->kernel = (enum kernel_kind)below(maker, KERNEL_KINDS);
    if (step->kernel == KERNEL_PAINT || step->kernel == KERNEL_PICK)
        return maker_choose_image_kernel(maker, step);
    size_t most = SIZE_MAX;
    while (kernel_use(step->kernel, step->objects) != USE_NONE) {
        int k = step->objects++;
        step->object[k] = maker_any_buffer(maker);
        if (!maker_kernel_may(program, step->object[k], kernel_use(step->kernel, k)))
            return false;
        if (words_of(program, step->object[k]) < most && !(step->kernel == KERNEL_REDUCE && k == 1))
            most = words_of(program, step->object[k]);
    }
    step->count = chance(maker, 50) ? most : between(maker, 1, most);
    for (int k = 0; k < step->objects; k++)
        step->at[k] = between(maker, 0, words_of(program, step->object[k]) - kernel_words(step, k));
    if (step->kernel == KERNEL_ADD)
        step->rounds = chance(maker, 30) ? below(maker, program->large ? 10 : 3000) : 0;
    return true;
}

static bool choose_native(struct maker *maker, struct step *step) {
    const struct program *program = maker->program;
    step->objects = maker->abilities.native ? 1 + (int)below(maker, 2) : 1;
    step->count = 1024;
    for (int k = 0; k < step->objects; k++) {
        step->object[k] = maker_any_buffer(maker);
        if (!maker->abilities.native && program->object[step->object[k]].root != step->object[k])
            return false;
        if (program->object[step->object[k]].flags & (CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY) ||
            !host_may(program, step->object[k], true, true))
            return false;
        if (words_of(program, step->object[k]) < step->count)
            step->count = words_of(program, step->object[k]);
    }
    step->count = between(maker, 1, step->count);
    for (int k = 0; k < step->objects; k++)
        step->at[k] = between(maker, 0, words_of(program, step->object[k]) - step->count);
    if (chance(maker, 40)) {
        step->host = (int)below(maker, (uint32_t)program->hosts);
        step->box[1].origin[0] = between(maker, 0, program->host_size - step->count * 4);
    }
    return true;
}

static bool choose_map(struct maker *maker, struct step *step) {
    static const cl_map_flags flags[] = {CL_MAP_READ, CL_MAP_WRITE, CL_MAP_READ | CL_MAP_WRITE,
                                         CL_MAP_WRITE_INVALIDATE_REGION};
    step->object[0] = any_object(maker);
    step->objects = 1;
    step->map_flags = flags[below(maker, COUNT(flags))];
    step->blocking = chance(maker, 40);
    size_t size = maker->program->object[step->object[0]].size;
    if (object_is_image(maker->program, step->object[0]))
        maker_choose_image_map(maker, step);
    else
        choose_linear(maker, step, size, size);
    step->box[1].origin[0] = 0;
    return host_may(maker->program, step->object[0], step->map_flags & CL_MAP_READ,
                    map_writes(step->map_flags));
}

static bool choose_map_use(struct maker *maker, struct step *step) {
    int open[MAX_STEPS], count = 0;
    for (int i = 0; i < maker->program->steps; i++)
        if (maker->program->step[i].kind == STEP_MAP && !maker->order.of[i].closed)
            open[count++] = i;
    if (!count)
        return false;
    step->map = open[below(maker, (uint32_t)count)];
    const struct step *map = &maker->program->step[step->map];
    bool blank_map = map->map_flags & CL_MAP_WRITE_INVALIDATE_REGION;
    if (step->kind == STEP_MAP_SET && !map_writes(map->map_flags))
        step->kind = STEP_MAP_SEE;
    if (blank_map && !maker->order.of[step->map].written)
        step->kind = STEP_MAP_SET;
    else if (blank_map && step->kind == STEP_MAP_SEE) /* only what is written is of interest */
        step->kind = STEP_UNMAP;
    step->count =
        blank_map || chance(maker, 50) ? map->region[0] : between(maker, 1, map->region[0]);
    step->at[0] = between(maker, 0, map->region[0] - step->count);
    return true;
}

static bool choose_host_use(struct maker *maker, struct step *step) {
    step->host = (int)below(maker, (uint32_t)maker->program->hosts);
    step->count = between(maker, 1, maker->program->host_size);
    step->at[0] = between(maker, 0, maker->program->host_size - step->count);
    return true;
}

/* Waits that nothing asks for. */
static void add_waits(struct maker *maker, struct step *step, unsigned percent) {
    const struct program *program = maker->program;
    while (program->steps && step->wait_count < 3 && chance(maker, percent)) {
        int earlier = (int)below(maker, (uint32_t)program->steps);
        const struct step *other = &program->step[earlier];
        bool eventless = maker->order.of[earlier].fails && other->blocking;
        if (step_is_command(other) && !eventless)
            step->waits[step->wait_count++] = earlier;
    }
    if (program->gates && step_is_command(step) && !step->blocking && chance(maker, 12))
        step->gates = 1u << below(maker, (uint32_t)program->gates);
}

static const struct {
    enum step_kind kind;
    unsigned weight;
} proposals[] = {
    {STEP_READ, 12},    {STEP_WRITE, 12},  {STEP_COPY, 9},    {STEP_FILL, 7},   {STEP_MAP, 8},
    {STEP_UNMAP, 7},    {STEP_KERNEL, 34}, {STEP_NATIVE, 4},  {STEP_MARKER, 3}, {STEP_BARRIER, 3},
    {STEP_FLUSH, 2},    {STEP_FINISH, 2},  {STEP_WAIT, 3},    {STEP_OPEN, 3},   {STEP_HOST_SET, 4},
    {STEP_HOST_SEE, 4}, {STEP_MAP_SET, 5}, {STEP_MAP_SEE, 4}, {STEP_PAUSE, 2},
};

static enum step_kind choose_kind(struct maker *maker) {
    unsigned sum = 0, at;
    for (size_t p = 0; p < COUNT(proposals); p++)
        sum += proposals[p].weight;
    at = below(maker, sum);
    for (size_t p = 0;; p++) {
        if (at < proposals[p].weight)
            return proposals[p].kind;
        at -= proposals[p].weight;
    }
}

void maker_propose(struct maker *maker) {
    struct program *program = maker->program;
    struct step step =
        blank(maker, choose_kind(maker), (int)below(maker, (uint32_t)program->threads));
    bool sensible = true;
    switch (step.kind) {
    case STEP_READ:
    case STEP_WRITE:
    case STEP_COPY:
    case STEP_FILL:
        sensible = choose_transfer(maker, &step);
        break;
    case STEP_MAP:
        sensible = choose_map(maker, &step);
        break;
    case STEP_UNMAP:
    case STEP_MAP_SET:
    case STEP_MAP_SEE:
        sensible = choose_map_use(maker, &step);
        break;
    case STEP_KERNEL:
        sensible = choose_kernel(maker, &step);
        break;
    case STEP_NATIVE:
        sensible = choose_native(maker, &step);
        break;
    case STEP_HOST_SET:
    case STEP_HOST_SEE:
        sensible = choose_host_use(maker, &step);
        break;
    case STEP_OPEN:
        step.gate = program->gates ? (int)below(maker, (uint32_t)program->gates) : 0;
        sensible = program->gates && !(maker->order.opened >> step.gate & 1);
        break;
    default:
        break;
    }
    if (step_is_command(&step))
        add_waits(maker, &step, 12);
    else if (step.kind == STEP_WAIT)
        add_waits(maker, &step, 70);
    if (step.kind == STEP_WAIT && !step.wait_count)
        sensible = false;
    if (sensible)
        maker_append(maker, &step, 0);
}
