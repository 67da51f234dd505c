/* SPDX-License-Identifier: MIT */
/*
 * Proposes random steps and settles each: what it would race with goes into its wait list, or the
 * host waits first; what can't be settled is dropped.
 */
#include "maker.h"

#define LARGE_OF 20u /* programs, one is large */

/* The host waits until these steps are complete. */
static bool wait_first(struct maker *maker, int thread, const int *steps, int count, int depth) {
    struct step step = blank(maker, STEP_WAIT, thread);
    for (int k = 0; k < count && step.wait_count < MAX_LIST; k++)
        if (step_is_command(&maker->program->step[steps[k]]))
            step.waits[step.wait_count++] = steps[k];
    return maker_append(maker, &step, depth + 1);
}

static bool open_gates(struct maker *maker, unsigned gates, int depth) {
    for (int g = 0; g < MAX_GATES; g++) {
        struct step step =
            blank(maker, STEP_OPEN, (int)below(maker, (uint32_t)maker->program->threads));
        step.gate = g;
        if (gates >> g & 1 && !maker_append(maker, &step, depth + 1))
            return false;
    }
    return true;
}

/* One thing less that stands in the step's way. */
static bool settle(struct maker *maker, struct step *step, const struct problem *problem,
                   int depth) {
    if (problem->never || depth > 4)
        return false;
    if (problem->gates) {
        if (step_is_command(step) && chance(maker, 50)) {
            step->blocking = false;
            return true;
        }
        return open_gates(maker, problem->gates, depth);
    }
    int latest = problem->conflict[0];
    const struct step *other = &maker->program->step[latest];
    if (!step_is_command(other)) {
        if (other->thread == step->thread || step->after_count == MAX_LIST)
            return false;
        step->after[step->after_count++] = latest;
        return true;
    }
    if (!step_is_command(step) || step->wait_count == MAX_LIST || chance(maker, 8))
        return wait_first(maker, step->thread, problem->conflict, problem->conflicts, depth);
    if (chance(maker, 8)) {
        struct step finish = blank(maker, STEP_FINISH, step->thread);
        finish.queue = other->queue;
        return maker_append(maker, &finish, depth + 1);
    }
    step->waits[step->wait_count++] = latest;
    return true;
}

bool maker_append(struct maker *maker, const struct step *wanted, int depth) {
    struct program *program = maker->program;
    struct step step = *wanted;
    struct problem problem;
    for (int tries = 0; tries < 24; tries++) {
        if (program->steps == MAX_STEPS)
            return false;
        program->step[program->steps] = step;
        if (order_check(&maker->order, program, &problem)) {
            program->steps++;
            order_commit(&maker->order, program);
            return true;
        }
        if (!settle(maker, &step, &problem, depth))
            return false;
    }
    return false;
}

/* Content for a buffer that was made without. */
static void define(struct maker *maker, int object) {
    struct step step = blank(maker, chance(maker, 50) ? STEP_FILL : STEP_KERNEL,
                             (int)below(maker, (uint32_t)maker->program->threads));
    step.object[0] = object;
    step.objects = 1;
    step.pattern = 4;
    step.region[0] = maker->program->object[object].size;
    step.region[1] = step.region[2] = 1;
    step.kernel = KERNEL_SET;
    step.count = step.region[0] / 4;
    if (step.kind == STEP_KERNEL && !maker_kernel_may(maker->program, object, USE_W))
        step.kind = STEP_FILL;
    if (object_is_image(maker->program, object)) {
        const struct object *image = &maker->program->object[object];
        step.kind = STEP_FILL;
        step.rect = true;
        step.pattern = image->pixel;
        step.box[0] = image_box(image);
        step.region[0] = image->shape[0] * image->pixel;
        step.region[1] = image->shape[1];
        step.region[2] = image->shape[2];
    }
    maker_append(maker, &step, 0);
}

cl_mem_flags maker_choose_flags(struct maker *maker) {
    cl_mem_flags flags = CL_MEM_READ_WRITE;
    if (chance(maker, 12))
        flags = chance(maker, 50) ? CL_MEM_READ_ONLY : CL_MEM_WRITE_ONLY;
    if (chance(maker, 12))
        flags |= (cl_mem_flags)CL_MEM_HOST_WRITE_ONLY << below(maker, 3);
    return flags;
}

static void make_objects(struct maker *maker) {
    struct program *program = maker->program;
    int roots = 1 + (int)below(maker, 4), subs = chance(maker, 60) ? (int)below(maker, 7) : 0;
    for (int o = 0; o < roots; o++) {
        static const cl_mem_flags origins[] = {0, CL_MEM_USE_HOST_PTR, CL_MEM_COPY_HOST_PTR,
                                               CL_MEM_ALLOC_HOST_PTR,
                                               CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR};
        struct object *object = &program->object[o];
        object->root = o;
        object->size = SUB_ALIGN * between(maker, 1, 8);
        if (program->large && chance(maker, 60))
            object->size = SUB_ALIGN * between(maker, 256, LARGE_HOST_SIZE / SUB_ALIGN);
        else if (chance(maker, 15))
            object->size -= 4 * between(maker, 1, 60);
        else if (chance(maker, 6))
            object->size = 65536;
        object->flags = maker_choose_flags(maker) | origins[below(maker, COUNT(origins))];
        object->early = maker->abilities.early_release && chance(maker, 12);
    }
    program->objects = roots;
    for (int s = 0; s < subs && program->objects < MAX_OBJECTS; s++) {
        const struct object *root = &program->object[below(maker, (uint32_t)roots)];
        struct object *object = &program->object[program->objects];
        size_t units = root->size / SUB_ALIGN;
        if (!units)
            continue;
        *object = *root;
        object->origin = SUB_ALIGN * between(maker, 0, units - 1);
        object->size = root->size - object->origin;
        if (chance(maker, 80))
            object->size = between(maker, 1, object->size / 4) * 4;
        object->early = maker->abilities.early_release && chance(maker, 30);
        if (chance(maker, 10) && !(object->flags & CL_MEM_WRITE_ONLY)) {
            object->flags &= ~(cl_mem_flags)CL_MEM_READ_WRITE;
            object->flags |= CL_MEM_READ_ONLY;
        }
        program->objects++;
    }
    if (maker->abilities.images && chance(maker, 50))
        maker_make_images(maker);
}

void program_generate(struct program *program, uint32_t seed, struct abilities abilities) {
    static struct maker maker; /* large */
    memset(&maker, 0, sizeof(maker));
    memset(program, 0, sizeof(*program));
    maker.program = program;
    maker.abilities = abilities;
    maker.state = seed * 2654435761u + 12345;
    for (int warm = 0; warm < 8; warm++)
        next_random(&maker.state);
    program->seed = seed;
    program->large = seed % LARGE_OF == LARGE_OF / 2;
    program->host_size = program->large ? LARGE_HOST_SIZE : HOST_SIZE;
    program->threads =
        chance(&maker, 50) || !abilities.threads ? 1 : 2 + (int)below(&maker, MAX_THREADS - 1);
    program->queues = 1 + (int)below(&maker, MAX_QUEUES);
    program->turns = program->threads == 1 || chance(&maker, 60);
    program->hosts = 1 + (int)below(&maker, MAX_HOSTS);
    program->expects_errors = abilities.errors && chance(&maker, 25);
    program->gates = abilities.gates && program->turns && chance(&maker, 60)
                         ? 1 + (int)below(&maker, MAX_GATES)
                         : 0;
    for (int g = 0; g < program->gates; g++)
        program->gate_status[g] = program->expects_errors && chance(&maker, 40)
                                      ? -1 - (cl_int)below(&maker, 70)
                                      : CL_COMPLETE;
    for (int q = 0; q < program->queues; q++) {
        program->out_of_order[q] = abilities.out_of_order && chance(&maker, 40);
        program->queue_early[q] = chance(&maker, 10);
    }
    make_objects(&maker);
    order_begin(&maker.order, program);
    for (int o = 0; o < program->objects; o++)
        if (program->object[o].root == o && !maker.order.defined[o])
            define(&maker, o);
    for (size_t tries = between(&maker, 6, chance(&maker, 70) ? 60 : 140); tries > 0; tries--)
        maker_propose(&maker);
    for (int i = 0; i < program->steps; i++) {
        struct step unmap = blank(&maker, STEP_UNMAP, program->step[i].thread);
        unmap.map = i;
        if (program->step[i].kind == STEP_MAP && !maker.order.of[i].closed && chance(&maker, 50))
            maker_append(&maker, &unmap, 0);
    }
}
