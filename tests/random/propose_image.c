/* SPDX-License-Identifier: MIT */
/* Images of a random program. To all that follows they are bytes, of which a step uses a box. */
#include "maker.h"

#include <string.h>

void maker_make_images(struct maker *maker) {
    static const size_t pixels[] = {1, 4, 4, 4, 16};
    static const cl_mem_flags origins[] = {0, CL_MEM_USE_HOST_PTR, CL_MEM_COPY_HOST_PTR,
                                           CL_MEM_ALLOC_HOST_PTR};
    struct program *program = maker->program;
    for (int more = 1 + (int)below(maker, 2); more > 0 && program->objects < MAX_OBJECTS; more--) {
        struct object *image = &program->object[program->objects];
        memset(image, 0, sizeof(*image));
        image->root = program->objects++;
        image->pixel = pixels[below(maker, COUNT(pixels))];
        image->dimensions = chance(maker, 60) ? 2 : 1 + 2 * (int)below(maker, 2);
        image->shape[0] = between(maker, 1, 24);
        image->shape[1] = image->dimensions > 1 ? between(maker, 1, 9) : 1;
        image->shape[2] = image->dimensions > 2 ? between(maker, 1, 4) : 1;
        image->size = image->pixel * image->shape[0] * image->shape[1] * image->shape[2];
        image->flags = maker_choose_flags(maker) | origins[below(maker, COUNT(origins))];
        image->early = maker->abilities.early_release && chance(maker, 12);
    }
}

/* A part of the image of that many bytes by rows by slices. */
static void place_in_image(struct maker *maker, const struct object *image, const struct step *step,
                           struct box *box) {
    *box = image_box(image);
    box->origin[0] =
        between(maker, 0, image->shape[0] - step->region[0] / image->pixel) * image->pixel;
    box->origin[1] = between(maker, 0, image->shape[1] - step->region[1]);
    box->origin[2] = between(maker, 0, image->shape[2] - step->region[2]);
}

/* How large a box of both images may be; chosen in pixels, then in bytes. */
static void choose_size(struct maker *maker, struct step *step, const struct object *a,
                        const struct object *b) {
    bool all = chance(maker, 40);
    for (int d = 0; d < 3; d++) {
        size_t most = b && b->shape[d] < a->shape[d] ? b->shape[d] : a->shape[d];
        step->region[d] = all ? most : between(maker, 1, most);
    }
    step->region[0] *= a->pixel;
}

/* Memory of the program, or a buffer with what it takes without padding. */
static bool place_beside(struct maker *maker, const struct step *step, size_t pixel, size_t limit,
                         bool packed, struct box *box) {
    box->row = step->region[0] + (packed ? 0 : pixel * below(maker, 3));
    box->slice = box->row * (step->region[1] + (packed ? 0 : below(maker, 3)));
    size_t size = box_end(box, step->region);
    if (size > limit)
        return false;
    box->origin[0] = between(maker, 0, (limit - size) / pixel) * pixel;
    return true;
}

bool maker_choose_image_transfer(struct maker *maker, struct step *step) {
    const struct object *a = &maker->program->object[step->object[0]];
    const struct object *b = &maker->program->object[step->object[1]];
    step->rect = true;
    if (step->kind != STEP_COPY) {
        choose_size(maker, step, a, NULL);
        place_in_image(maker, a, step, &step->box[0]);
        step->pattern = a->pixel;
        return step->kind == STEP_FILL ||
               place_beside(maker, step, a->pixel, maker->program->host_size, false, &step->box[1]);
    }
    if (a->pixel && b->pixel && a->pixel != b->pixel) /* of one format only */
        return false;
    choose_size(maker, step, a->pixel ? a : b, a->pixel && b->pixel ? b : NULL);
    const struct object *sides[] = {a, b};
    for (int k = 0; k < 2; k++) {
        if (sides[k]->pixel)
            place_in_image(maker, sides[k], step, &step->box[k]);
        else if (!place_beside(maker, step, sides[1 - k]->pixel, sides[k]->size, true,
                               &step->box[k]))
            return false;
    }
    return true;
}

/* Within one row, so that a map has no pitch. */
bool maker_choose_image_map(struct maker *maker, struct step *step) {
    const struct object *image = &maker->program->object[step->object[0]];
    struct box box;
    choose_size(maker, step, image, NULL);
    step->region[1] = step->region[2] = 1;
    place_in_image(maker, image, step, &box);
    step->box[0] = (struct box){.origin = {box_first(&box)}};
    return true;
}

bool maker_choose_image_kernel(struct maker *maker, struct step *step) {
    const struct program *program = maker->program;
    int side = step->kernel == KERNEL_PAINT ? 1 : 0;
    size_t most = SIZE_MAX;
    step->objects = 2;
    step->object[1 - side] = maker_any_buffer(maker);
    int images[MAX_OBJECTS], count = 0;
    for (int o = 0; o < program->objects; o++)
        if (program->object[o].pixel == 4 && program->object[o].dimensions == 2)
            images[count++] = o;
    if (!count)
        return false;
    step->object[side] = images[below(maker, (uint32_t)count)];
    for (int k = 0; k < 2; k++) {
        size_t words = program->object[step->object[k]].size / 4;
        if (!maker_kernel_may(program, step->object[k], kernel_use(step->kernel, k)))
            return false;
        most = words < most ? words : most;
    }
    step->count = chance(maker, 50) ? most : between(maker, 1, most);
    for (int k = 0; k < 2; k++)
        step->at[k] = between(maker, 0, program->object[step->object[k]].size / 4 - step->count);
    return true;
}
