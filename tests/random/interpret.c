/* SPDX-License-Identifier: MIT */
/* The serial meaning of a program: its steps one after the other on plain arrays. */
#include "outcome.h"

struct machine {
    struct outcome *outcome;
    const struct program *program;
    uint8_t *map[MAX_STEPS];
};

void outcome_begin(struct outcome *outcome, const struct program *program) {
    memset(outcome, 0, sizeof(*outcome));
    for (int o = 0; o < program->objects; o++) {
        const struct object *object = &program->object[o];
        if (object->root != o)
            continue;
        outcome->object[o] = malloc(object->size);
        initial_bytes(program, o, outcome->object[o], object->size);
    }
    for (int h = 0; h < program->hosts; h++) {
        outcome->host[h] = malloc(program->host_size);
        initial_bytes(program, MAX_OBJECTS + h, outcome->host[h], program->host_size);
    }
}

void outcome_end(struct outcome *outcome) {
    for (int o = 0; o < MAX_OBJECTS; o++)
        free(outcome->object[o]);
    for (int h = 0; h < MAX_HOSTS; h++)
        free(outcome->host[h]);
}

static uint8_t *bytes_of(const struct machine *machine, int object) {
    const struct object *o = &machine->program->object[object];
    return machine->outcome->object[o->root] + o->origin;
}

static void copy_box(uint8_t *to, const struct box *at_to, const uint8_t *from,
                     const struct box *at_from, const size_t *region) {
    for (size_t z = 0; z < region[2]; z++)
        for (size_t y = 0; y < region[1]; y++)
            memcpy(to + box_first(at_to) + z * at_to->slice + y * at_to->row,
                   from + box_first(at_from) + z * at_from->slice + y * at_from->row, region[0]);
}

static void fill_box(uint8_t *to, const struct step *step) {
    const struct box *box = &step->box[0];
    for (size_t z = 0; z < step->region[2]; z++)
        for (size_t y = 0; y < step->region[1]; y++)
            for (size_t x = 0; x < step->region[0]; x++)
                to[box_first(box) + z * box->slice + y * box->row + x] =
                    step_byte(step, x % step->pattern);
}

uint32_t kernel_work(uint32_t value, unsigned rounds) {
    for (unsigned r = 0; r < rounds; r++)
        value = value * 1664525u + 1013904223u;
    return value;
}

static void run_kernel(const struct machine *machine, const struct step *step) {
    uint32_t *arg[3] = {NULL, NULL, NULL}, sum = 0;
    for (int k = 0; k < step->objects; k++)
        arg[k] = (uint32_t *)bytes_of(machine, step->object[k]) + step->at[k];
    for (size_t i = 0; i < step->count; i++) {
        switch (step->kernel) {
        case KERNEL_ADD:
            arg[0][i] += kernel_work(step->value, step->rounds);
            break;
        case KERNEL_COPY:
        case KERNEL_PAINT:
        case KERNEL_PICK:
            arg[1][i] = arg[0][i];
            break;
        case KERNEL_PERMUTE:
            arg[1][i] = arg[0][(7 * i + step->value % 1024) % step->count];
            break;
        case KERNEL_REDUCE:
            sum += arg[0][i];
            break;
        case KERNEL_SET:
            arg[0][i] = step->value + 3 * (uint32_t)i;
            break;
        case KERNEL_STIR:
            arg[0][i] += 3 * arg[1][i];
            arg[1][i] ^= arg[0][i];
            break;
        default:
            arg[2][i] = arg[0][i] + step->value * arg[1][i];
        }
    }
    if (step->kernel == KERNEL_REDUCE)
        arg[1][0] = sum;
}

static void run_native(const struct machine *machine, const struct step *step) {
    uint32_t *arg[2] = {NULL, NULL};
    for (int k = 0; k < step->objects; k++)
        arg[k] = (uint32_t *)bytes_of(machine, step->object[k]) + step->at[k];
    for (size_t i = 0; i < step->count; i++)
        arg[0][i] += arg[1] ? arg[1][i] : step->value;
    if (step->host >= 0)
        memcpy(machine->outcome->host[step->host] + box_first(&step->box[1]), arg[0],
               step->count * 4);
}

static void run_unmap(const struct machine *machine, int mapped) {
    const struct step *map = &machine->program->step[mapped];
    if (map_writes(map->map_flags))
        memcpy(bytes_of(machine, map->object[0]) + map->box[0].origin[0], machine->map[mapped],
               map->region[0]);
}

static void run_step(struct machine *machine, int i) {
    const struct step *step = &machine->program->step[i];
    struct outcome *outcome = machine->outcome;
    uint8_t *bytes = step->objects ? bytes_of(machine, step->object[0]) : NULL;
    switch (step->kind) {
    case STEP_READ:
        copy_box(outcome->host[step->host], &step->box[1], bytes, &step->box[0], step->region);
        break;
    case STEP_WRITE:
        copy_box(bytes, &step->box[0], outcome->host[step->host], &step->box[1], step->region);
        break;
    case STEP_COPY:
        copy_box(bytes_of(machine, step->object[1]), &step->box[1], bytes, &step->box[0],
                 step->region);
        break;
    case STEP_FILL:
        fill_box(bytes, step);
        break;
    case STEP_MAP:
        machine->map[i] = malloc(step->region[0]);
        if (step->map_flags & CL_MAP_WRITE_INVALIDATE_REGION)
            memset(machine->map[i], UNWRITTEN, step->region[0]);
        else
            memcpy(machine->map[i], bytes + step->box[0].origin[0], step->region[0]);
        break;
    case STEP_UNMAP:
        run_unmap(machine, step->map);
        break;
    case STEP_KERNEL:
        run_kernel(machine, step);
        break;
    case STEP_NATIVE:
        run_native(machine, step);
        break;
    case STEP_HOST_SET:
        for (size_t b = 0; b < step->count; b++)
            outcome->host[step->host][step->at[0] + b] = step_byte(step, b);
        break;
    case STEP_HOST_SEE:
        outcome->seen[i] = hash_bytes(outcome->host[step->host] + step->at[0], step->count);
        break;
    case STEP_MAP_SET:
        for (size_t b = 0; b < step->count; b++)
            machine->map[step->map][step->at[0] + b] = step_byte(step, b);
        break;
    case STEP_MAP_SEE:
        outcome->seen[i] = hash_bytes(machine->map[step->map] + step->at[0], step->count);
        break;
    default:
        break;
    }
}

void outcome_interpret(struct outcome *outcome, const struct program *program,
                       const struct order *order) {
    struct machine machine = {outcome, program, {NULL}};
    for (int i = 0; i < program->steps; i++) {
        if (program->step[i].gone)
            continue;
        outcome->status[i] =
            order->of[i].fails ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_COMPLETE;
        if (!order->of[i].fails)
            run_step(&machine, i);
    }
    for (int i = 0; i < program->steps; i++) {
        if (machine.map[i] && !order->of[i].closed)
            run_unmap(&machine, i);
        free(machine.map[i]);
    }
}

bool outcome_shows(const struct program *program, const struct order *order, int object) {
    const struct object *o = &program->object[object];
    return o->root == object && !o->early && order->defined[object];
}

bool outcome_keeps_event(const struct program *program, int step) {
    const struct step *s = &program->step[step];
    return program->expects_errors || program->queue_early[s->queue] || s->value % 8 == 0;
}

bool outcome_compare(const struct program *program, const struct order *order,
                     const struct outcome *expected, const struct outcome *seen, char *text,
                     size_t size) {
    if (seen->fault[0]) {
        snprintf(text, size, "%s", seen->fault);
        return false;
    }
    for (int i = 0; i < program->steps; i++) {
        const struct step *step = &program->step[i];
        if (step->gone)
            continue;
        if (seen->seen[i] != expected->seen[i]) {
            snprintf(text, size, "step %d saw other bytes than it should", i);
            return false;
        }
        bool eventless = order->of[i].fails && step->blocking;
        if (step_is_command(step) && !eventless && outcome_keeps_event(program, i) &&
            seen->status[i] != expected->status[i]) {
            snprintf(text, size, "the event of step %d ended with %d, expected %d", i,
                     seen->status[i], expected->status[i]);
            return false;
        }
    }
    for (int s = 0; s < program->objects + program->hosts; s++) {
        int h = s - program->objects;
        if (h < 0 && !outcome_shows(program, order, s))
            continue;
        const uint8_t *a = h < 0 ? expected->object[s] : expected->host[h];
        const uint8_t *b = h < 0 ? seen->object[s] : seen->host[h];
        size_t bytes = h < 0 ? program->object[s].size : program->host_size, wrong = 0, first = 0;
        for (size_t i = bytes; i-- > 0;) {
            if (a[i] != b[i]) {
                wrong++;
                first = i;
            }
        }
        if (wrong) {
            snprintf(text, size, "%s %d: %zu bytes differ, first %zu: %#x, expected %#x",
                     h < 0 ? "object" : "host", h < 0 ? s : h, wrong, first, b[first], a[first]);
            return false;
        }
    }
    return true;
}
