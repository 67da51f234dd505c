/* SPDX-License-Identifier: MIT */
#include "program.h"

enum use kernel_use(enum kernel_kind kernel, int i) {
    static const enum use uses[KERNEL_KINDS][3] = {
        [KERNEL_ADD] = {USE_RW},
        [KERNEL_COPY] = {USE_R, USE_W},
        [KERNEL_PAINT] = {USE_R, USE_W},
        [KERNEL_PICK] = {USE_R, USE_W},
        [KERNEL_PERMUTE] = {USE_R, USE_W},
        [KERNEL_REDUCE] = {USE_R, USE_W},
        [KERNEL_SET] = {USE_W},
        [KERNEL_STIR] = {USE_RW, USE_RW},
        [KERNEL_SUM] = {USE_R, USE_R, USE_W},
    };
    return i < 3 ? uses[kernel][i] : USE_NONE;
}

size_t kernel_words(const struct step *step, int i) {
    return step->kernel == KERNEL_REDUCE && i == 1 ? 1 : step->count;
}

struct box image_box(const struct object *image) {
    size_t row = image->shape[0] * image->pixel;
    return (struct box){.row = row, .slice = row * image->shape[1]};
}

size_t box_first(const struct box *box) {
    return box->origin[2] * box->slice + box->origin[1] * box->row + box->origin[0];
}

size_t box_end(const struct box *box, const size_t *region) {
    return box_first(box) + (region[2] - 1) * box->slice + (region[1] - 1) * box->row + region[0];
}

uint8_t step_byte(const struct step *step, size_t i) {
    return (uint8_t)(step->value + (step->value >> 8) * i + (i >> 8));
}

uint32_t hash_bytes(const void *bytes, size_t size) {
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * 16777619u;
    return hash;
}

void initial_bytes(const struct program *program, int which, uint8_t *bytes, size_t size) {
    uint32_t state = program->seed * 31 + (uint32_t)which * 7919 + 17;
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(next_random(&state) >> 11);
}

static int prune(int *list, int count, const bool *keep) {
    int kept = 0;
    for (int k = 0; k < count; k++)
        if (keep[list[k]])
            list[kept++] = list[k];
    return kept;
}

void program_keep(struct program *program, const bool *keep) {
    bool here[MAX_STEPS] = {false};
    for (int i = 0; i < program->steps; i++) {
        struct step *step = &program->step[i];
        bool needs_map =
            step->kind == STEP_UNMAP || step->kind == STEP_MAP_SET || step->kind == STEP_MAP_SEE;
        step->wait_count = prune(step->waits, step->wait_count, here);
        step->after_count = prune(step->after, step->after_count, here);
        step->gone |= !keep[i] || (needs_map && !here[step->map]) ||
                      (step->kind == STEP_WAIT && !step->wait_count);
        here[i] = !step->gone;
    }
}

static const char *const kind_names[] = {
    [STEP_READ] = "read",
    [STEP_WRITE] = "write",
    [STEP_COPY] = "copy",
    [STEP_FILL] = "fill",
    [STEP_MAP] = "map",
    [STEP_UNMAP] = "unmap",
    [STEP_KERNEL] = "kernel",
    [STEP_NATIVE] = "native",
    [STEP_MARKER] = "marker",
    [STEP_BARRIER] = "barrier",
    [STEP_FLUSH] = "flush",
    [STEP_FINISH] = "finish",
    [STEP_WAIT] = "wait",
    [STEP_OPEN] = "open",
    [STEP_HOST_SET] = "host writes",
    [STEP_HOST_SEE] = "host sees",
    [STEP_MAP_SET] = "map writes",
    [STEP_MAP_SEE] = "map sees",
    [STEP_PAUSE] = "pause",
};
static const char *const kernel_names[] = {"add",    "copy", "paint", "pick", "permute",
                                           "reduce", "set",  "stir",  "sum"};

static void print_box(const struct step *step, const struct box *box, FILE *out) {
    if (!step->rect)
        fprintf(out, "[%zu..%zu)", box_first(box), box_end(box, step->region));
    else
        fprintf(out, "[%zu,%zu,%zu +%zux%zux%zu pitch %zu %zu]", box->origin[0], box->origin[1],
                box->origin[2], step->region[0], step->region[1], step->region[2], box->row,
                box->slice);
}

static void print_transfer(const struct step *step, FILE *out) {
    fprintf(out, "%s object %d ", step->rect ? " rect" : "", step->object[0]);
    print_box(step, &step->box[0], out);
    if (step->kind == STEP_FILL) {
        fprintf(out, " with %zu bytes of %#x", step->pattern, step->value);
        return;
    }
    if (step->kind == STEP_COPY)
        fprintf(out, " to object %d ", step->object[1]);
    else
        fprintf(out, " %s host %d ", step->kind == STEP_READ ? "into" : "from", step->host);
    print_box(step, &step->box[1], out);
}

static void print_step(const struct program *program, const struct step *step, FILE *out) {
    (void)program;
    switch (step->kind) {
    case STEP_READ:
    case STEP_WRITE:
    case STEP_COPY:
    case STEP_FILL:
        print_transfer(step, out);
        break;
    case STEP_MAP:
        fprintf(out, " object %d ", step->object[0]);
        print_box(step, &step->box[0], out);
        fprintf(out, " for%s%s%s", step->map_flags & CL_MAP_READ ? " read" : "",
                step->map_flags & CL_MAP_WRITE ? " write" : "",
                step->map_flags & CL_MAP_WRITE_INVALIDATE_REGION ? " write-invalidate" : "");
        break;
    case STEP_UNMAP:
        fprintf(out, " what step %d mapped", step->map);
        break;
    case STEP_KERNEL:
        fprintf(out, " %s", kernel_names[step->kernel]);
        /* fall through */
    case STEP_NATIVE:
        for (int k = 0; k < step->objects; k++)
            fprintf(out, " object %d words [%zu..%zu)", step->object[k], step->at[k],
                    step->at[k] +
                        (step->kind == STEP_KERNEL ? kernel_words(step, k) : step->count));
        fprintf(out, " value %#x rounds %u", step->value, step->rounds);
        if (step->kind == STEP_NATIVE && step->host >= 0)
            fprintf(out, " and into host %d at %zu", step->host, box_first(&step->box[1]));
        break;
    case STEP_OPEN:
        fprintf(out, " gate %d", step->gate);
        break;
    case STEP_HOST_SET:
    case STEP_HOST_SEE:
        fprintf(out, " host %d [%zu..%zu)", step->host, step->at[0], step->at[0] + step->count);
        break;
    case STEP_MAP_SET:
    case STEP_MAP_SEE:
        fprintf(out, " map %d [%zu..%zu)", step->map, step->at[0], step->at[0] + step->count);
        break;
    default:
        break;
    }
}

void program_print(const struct program *program, FILE *out) {
    fprintf(out, "# seed %u: %d threads, queues calls %s, host arrays of %zu bytes\n",
            program->seed, program->threads, program->turns ? "in turns" : "in any order",
            program->host_size);
    for (int q = 0; q < program->queues; q++)
        fprintf(out, "# queue %d: %s%s\n", q,
                program->out_of_order[q] ? "out of order" : "in order",
                program->queue_early[q] ? ", released early" : "");
    for (int g = 0; g < program->gates; g++)
        fprintf(out, "# gate %d: user event, set to %d\n", g, program->gate_status[g]);
    for (int o = 0; o < program->objects; o++) {
        const struct object *object = &program->object[o];
        fprintf(out, "# object %d: ", o);
        if (object->root != o)
            fprintf(out, "sub-buffer of %d at %zu, ", object->root, object->origin);
        if (object->pixel)
            fprintf(out, "%dD image of %zux%zux%zu pixels, ", object->dimensions, object->shape[0],
                    object->shape[1], object->shape[2]);
        fprintf(out, "%zu bytes, flags %#lx%s\n", object->size, (unsigned long)object->flags,
                object->early ? ", released early" : "");
    }
    for (int i = 0; i < program->steps; i++) {
        const struct step *step = &program->step[i];
        if (step->gone)
            continue;
        fprintf(out, "# %3d thread %d: ", i, step->thread);
        if (step_has_queue(step))
            fprintf(out, "queue %d: ", step->queue);
        fprintf(out, "%s%s", step->blocking ? "blocking " : "", kind_names[step->kind]);
        print_step(program, step, out);
        for (int k = 0; k < step->wait_count; k++)
            fprintf(out, "%s %d", k ? "" : ", waits for", step->waits[k]);
        for (int g = 0; g < program->gates; g++)
            if (step->gates >> g & 1)
                fprintf(out, ", waits for gate %d", g);
        for (int k = 0; k < step->after_count; k++)
            fprintf(out, "%s %d", k ? "" : ", called after", step->after[k]);
        fputc('\n', out);
    }
}
