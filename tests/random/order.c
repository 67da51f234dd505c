/* SPDX-License-Identifier: MIT */
#include "order.h"

enum { SPACE_HOST = 100, SPACE_MAP = 200 };

struct access {
    int space;  /* a root buffer, a host array or a map's memory */
    int object; /* of a buffer, the object through which */
    size_t begin, end;
    bool write, part_of_map;
};

bool objects_overlap(const struct program *program, int a, int b) {
    const struct object *x = &program->object[a], *y = &program->object[b];
    return x->root == y->root && x->origin < y->origin + y->size && y->origin < x->origin + x->size;
}

static bool ranges_overlap(const struct access *a, const struct access *b) {
    return a->begin < b->end && b->begin < a->end;
}

static bool conflict(const struct program *program, const struct access *a,
                     const struct access *b) {
    if (a->space != b->space || !(a->write || b->write))
        return false;
    if (a->space >= SPACE_HOST)
        return ranges_overlap(a, b);
    if (a->object != b->object)
        return objects_overlap(program, a->object, b->object);
    if (a->part_of_map != b->part_of_map)
        return true;
    return ranges_overlap(a, b);
}

static struct access buffer_access(const struct program *program, int object, size_t begin,
                                   size_t end, bool write) {
    return (struct access){program->object[object].root, object, begin, end, write, false};
}

static struct access host_access(int space, size_t begin, size_t end, bool write) {
    return (struct access){space, -1, begin, end, write, false};
}

static int map_accesses(const struct program *program, int map, bool unmap, struct access *list) {
    const struct step *step = &program->step[map];
    size_t begin = step->box[0].origin[0], end = begin + step->region[0];
    list[0] = buffer_access(program, step->object[0], begin, end, map_writes(step->map_flags));
    list[0].part_of_map = true;
    list[1] = host_access(SPACE_MAP + map, 0, end - begin, true);
    (void)unmap;
    return 2;
}

/* The memory that step i uses; at most 6 entries. */
static int accesses(const struct program *program, int i, struct access *list) {
    const struct step *step = &program->step[i];
    const struct box *box = step->box;
    int n = 0;
    switch (step->kind) {
    case STEP_READ:
    case STEP_WRITE:
        list[n++] = buffer_access(program, step->object[0], box_first(&box[0]),
                                  box_end(&box[0], step->region), step->kind == STEP_WRITE);
        list[n++] = host_access(SPACE_HOST + step->host, box_first(&box[1]),
                                box_end(&box[1], step->region), step->kind == STEP_READ);
        break;
    case STEP_COPY:
        for (int k = 0; k < 2; k++)
            list[n++] = buffer_access(program, step->object[k], box_first(&box[k]),
                                      box_end(&box[k], step->region), k == 1);
        break;
    case STEP_FILL:
        list[n++] = buffer_access(program, step->object[0], box_first(&box[0]),
                                  box_end(&box[0], step->region), true);
        break;
    case STEP_KERNEL:
        for (int k = 0; k < step->objects; k++)
            list[n++] = buffer_access(program, step->object[k], step->at[k] * 4,
                                      (step->at[k] + kernel_words(step, k)) * 4,
                                      kernel_use(step->kernel, k) != USE_R);
        break;
    case STEP_NATIVE:
        for (int k = 0; k < step->objects; k++)
            list[n++] = buffer_access(program, step->object[k], 0,
                                      program->object[step->object[k]].size, true);
        if (step->host >= 0)
            list[n++] = host_access(SPACE_HOST + step->host, box_first(&box[1]),
                                    box_first(&box[1]) + step->count * 4, true);
        break;
    case STEP_MAP:
        return map_accesses(program, i, false, list);
    case STEP_UNMAP:
        return map_accesses(program, step->map, true, list);
    case STEP_HOST_SET:
    case STEP_HOST_SEE:
        list[n++] = host_access(SPACE_HOST + step->host, step->at[0], step->at[0] + step->count,
                                step->kind == STEP_HOST_SET);
        break;
    case STEP_MAP_SET:
    case STEP_MAP_SEE:
        list[n++] = host_access(SPACE_MAP + step->map, step->at[0], step->at[0] + step->count,
                                step->kind == STEP_MAP_SET);
        break;
    default:
        break;
    }
    return n;
}

/* What a step finds when its call is made. */
struct arrival {
    struct steps_set known, returned, before;
    unsigned gated;
    bool fails;
};

static void meet(const struct order *order, struct arrival *arrival, int earlier) {
    set_join(&arrival->known, &order->of[earlier].known);
    set_join(&arrival->returned, &order->of[earlier].returned);
}

static void come_after(const struct order *order, struct arrival *arrival, int earlier) {
    set_put(&arrival->before, earlier);
    set_join(&arrival->before, &order->of[earlier].before);
}

static bool waits_for_queue(const struct step *step) {
    return step->kind == STEP_FINISH ||
           ((step->kind == STEP_MARKER || step->kind == STEP_BARRIER) && !step->wait_count &&
            !step->gates);
}

static void arrive(const struct order *order, const struct program *program, int i,
                   struct arrival *arrival) {
    const struct step *step = &program->step[i];
    arrival->known = order->known[step->thread];
    arrival->returned = order->returned[step->thread];
    arrival->gated = step->gates & ~order->opened;
    arrival->fails = false;
    for (int k = 0; k < step->after_count; k++)
        meet(order, arrival, step->after[k]);
    for (int k = 0; k < step->wait_count; k++) {
        meet(order, arrival, step->waits[k]);
        arrival->fails |= order->of[step->waits[k]].fails;
        arrival->gated |= order->of[step->waits[k]].gated;
    }
    if (step->kind == STEP_UNMAP || step->kind == STEP_MAP_SET || step->kind == STEP_MAP_SEE)
        meet(order, arrival, step->map);
    for (int g = 0; g < program->gates; g++)
        arrival->fails |= (step->gates >> g & 1) && program->gate_status[g] < 0;
    for (int j = 0; j < i && program->turns && step_has_queue(step); j++)
        if (!program->step[j].gone && step_has_queue(&program->step[j]) &&
            program->step[j].queue == step->queue)
            meet(order, arrival, j);
    arrival->before = arrival->known;
    for (int j = 0; j < i && step_has_queue(step) && step->kind != STEP_FLUSH; j++) {
        const struct step *earlier = &program->step[j];
        if (earlier->gone || !step_is_command(earlier) || earlier->queue != step->queue ||
            !set_has(&arrival->returned, j))
            continue;
        if (!program->out_of_order[step->queue] || earlier->kind == STEP_BARRIER ||
            waits_for_queue(step)) {
            arrival->gated |= order->of[j].gated;
            if (!arrival->fails)
                come_after(order, arrival, j);
        }
    }
    for (int k = 0; k < step->wait_count && !arrival->fails; k++)
        come_after(order, arrival, step->waits[k]);
    arrival->gated &= ~order->opened;
}

static bool returns_late(const struct step *step) {
    return step->kind == STEP_FINISH || step->kind == STEP_WAIT ||
           (step_is_command(step) && step->blocking);
}

static bool writes_whole_buffer(const struct program *program, const struct step *step,
                                const struct access *access) {
    const struct object *object = &program->object[access->object];
    bool plain = step->kind == STEP_WRITE || step->kind == STEP_FILL || step->kind == STEP_COPY;
    bool kernel = step->kind == STEP_KERNEL && step->kernel != KERNEL_ADD &&
                  step->kernel != KERNEL_STIR && step->kernel != KERNEL_REDUCE;
    bool gaps = step->rect && step->region[0] * step->region[1] * step->region[2] != object->size;
    return access->write && !gaps && (plain || kernel) && object->root == access->object &&
           access->begin == 0 && access->end == object->size;
}

/* A map on an object that this access of another command must not meet while it is open. */
static bool hits_open_map(const struct order *order, const struct program *program, int i,
                          const struct access *access) {
    for (int m = 0; m < i; m++) {
        const struct step *map = &program->step[m];
        struct access mapped[2];
        if (map->gone || map->kind != STEP_MAP || order->of[m].closed)
            continue;
        if (program->step[i].kind == STEP_UNMAP && program->step[i].map == m)
            continue;
        map_accesses(program, m, false, mapped);
        if (conflict(program, access, &mapped[0]))
            return true;
    }
    return false;
}

static const char *impossible(const struct order *order, const struct program *program, int i,
                              const struct arrival *arrival) {
    const struct step *step = &program->step[i];
    struct access list[6];
    int count = accesses(program, i, list);
    if (step->kind == STEP_UNMAP || step->kind == STEP_MAP_SET || step->kind == STEP_MAP_SEE) {
        const struct step *map = &program->step[step->map];
        bool blank =
            map->map_flags & CL_MAP_WRITE_INVALIDATE_REGION && !order->of[step->map].written;
        if (order->of[step->map].closed)
            return "unmapped before";
        if (blank && !(step->kind == STEP_MAP_SET && step->count == map->region[0]))
            return "an invalidated map must be written first";
    }
    if ((step->kind == STEP_MAP || step->kind == STEP_UNMAP) && arrival->fails)
        return "a map's state after an error is not defined";
    for (int k = 0; k < count; k++)
        if (list[k].space < SPACE_HOST)
            for (int l = 0; l < k; l++) /* two arguments of one command */
                if (list[l].space == list[k].space && (list[l].write || list[k].write) &&
                    (step->kind == STEP_COPY && list[l].object == list[k].object
                         ? ranges_overlap(&list[l], &list[k])
                         : conflict(program, &list[l], &list[k])))
                    return "two arguments share memory";
    if (arrival->fails)
        return NULL;
    for (int k = 0; k < count; k++) {
        if (list[k].space >= SPACE_HOST)
            continue;
        if (hits_open_map(order, program, i, &list[k]))
            return "the object is mapped";
        if (!order->defined[list[k].space] && !writes_whole_buffer(program, step, &list[k]))
            return "the buffer has no content yet";
    }
    return NULL;
}

static void find_conflicts(const struct order *order, const struct program *program, int i,
                           const struct arrival *arrival, struct problem *problem) {
    struct access mine[6], theirs[6];
    int count = accesses(program, i, mine);
    for (int j = i - 1; j >= 0; j--) {
        if (program->step[j].gone || order->of[j].fails || set_has(&arrival->before, j))
            continue;
        int others = accesses(program, j, theirs);
        bool clash = false;
        for (int k = 0; k < count; k++)
            for (int l = 0; l < others; l++)
                clash |= conflict(program, &mine[k], &theirs[l]);
        if (clash)
            problem->conflict[problem->conflicts++] = j;
    }
}

void order_begin(struct order *order, const struct program *program) {
    memset(order, 0, sizeof(*order));
    for (int o = 0; o < program->objects; o++)
        order->defined[o] = program->object[o].flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR);
}

bool order_check(const struct order *order, const struct program *program,
                 struct problem *problem) {
    int i = order->done;
    struct arrival arrival;
    memset(problem, 0, sizeof(*problem));
    if (program->step[i].gone)
        return true;
    arrive(order, program, i, &arrival);
    problem->never = impossible(order, program, i, &arrival);
    if (returns_late(&program->step[i]))
        problem->gates = arrival.gated;
    if (!arrival.fails)
        find_conflicts(order, program, i, &arrival, problem);
    return !problem->never && !problem->gates && !problem->conflicts;
}

void order_commit(struct order *order, const struct program *program) {
    int i = order->done++;
    const struct step *step = &program->step[i];
    struct arrival arrival;
    struct access list[6];
    if (step->gone)
        return;
    arrive(order, program, i, &arrival);
    order->of[i].before = arrival.before;
    order->of[i].gated = arrival.gated;
    order->of[i].fails = arrival.fails;
    if (step->kind == STEP_OPEN)
        order->opened |= 1u << step->gate;
    if (step->kind == STEP_UNMAP)
        order->of[step->map].closed = true;
    if (step->kind == STEP_MAP_SET && step->count == program->step[step->map].region[0])
        order->of[step->map].written = true;
    for (int k = accesses(program, i, list) - 1; k >= 0 && !arrival.fails; k--)
        if (list[k].space < SPACE_HOST && list[k].write)
            order->defined[list[k].space] = true;

    set_put(&arrival.returned, i);
    if (!step_has_queue(step) && step->kind != STEP_WAIT)
        set_put(&arrival.known, i);
    else if (returns_late(step) && !arrival.fails)
        set_join(&arrival.known, &arrival.before);
    if (step_is_command(step) && step->blocking && !arrival.fails)
        set_put(&arrival.known, i);
    order->of[i].known = order->known[step->thread] = arrival.known;
    order->of[i].returned = order->returned[step->thread] = arrival.returned;
}

const char *order_analyse(struct order *order, const struct program *program) {
    struct problem problem;
    order_begin(order, program);
    while (order->done < program->steps) {
        if (!order_check(order, program, &problem))
            return problem.never   ? problem.never
                   : problem.gates ? "a call that never returns"
                                   : "a race";
        order_commit(order, program);
    }
    return NULL;
}
