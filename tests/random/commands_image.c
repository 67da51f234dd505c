/* SPDX-License-Identifier: MIT */
#include "execute.h"

cl_image_format image_format(const struct object *image) {
    return (cl_image_format){image->pixel == 16 ? CL_RGBA : CL_R,
                             image->pixel == 1 ? CL_UNSIGNED_INT8 : CL_UNSIGNED_INT32};
}

cl_image_desc image_desc(const struct object *image) {
    static const cl_mem_object_type types[] = {CL_MEM_OBJECT_IMAGE1D, CL_MEM_OBJECT_IMAGE2D,
                                               CL_MEM_OBJECT_IMAGE3D};
    return (cl_image_desc){.image_type = types[image->dimensions - 1],
                           .image_width = image->shape[0],
                           .image_height = image->dimensions > 1 ? image->shape[1] : 0,
                           .image_depth = image->dimensions > 2 ? image->shape[2] : 0};
}

/* Bytes to pixels. */
struct pixels {
    size_t origin[3], region[3];
};

static struct pixels pixels_of(const struct object *image, const struct box *box,
                               const size_t *region) {
    return (struct pixels){{box->origin[0] / image->pixel, box->origin[1], box->origin[2]},
                           {region[0] / image->pixel, region[1], region[2]}};
}

static cl_int fill(const struct step *step, const struct object *image, cl_mem mem,
                   const struct pixels *part, cl_command_queue on, cl_uint wait_count,
                   const cl_event *list, cl_event *event) {
    cl_uint color[4] = {0, 0, 0, 0};
    for (size_t b = 0; b < image->pixel; b++)
        color[b / 4] |= (cl_uint)step_byte(step, b) << 8 * (b % 4);
    return clEnqueueFillImage(on, mem, color, part->origin, part->region, wait_count, list, event);
}

static cl_int copy(struct run *run, const struct step *step, cl_command_queue on,
                   cl_uint wait_count, const cl_event *list, cl_event *event) {
    const struct object *from = &run->program->object[step->object[0]];
    const struct object *to = &run->program->object[step->object[1]];
    cl_mem source = run_object(run, step->object[0]), target = run_object(run, step->object[1]);
    struct pixels a, b;
    if (from->pixel)
        a = pixels_of(from, &step->box[0], step->region);
    if (to->pixel)
        b = pixels_of(to, &step->box[1], step->region);
    if (!from->pixel)
        return clEnqueueCopyBufferToImage(on, source, target, step->box[0].origin[0], b.origin,
                                          b.region, wait_count, list, event);
    if (!to->pixel)
        return clEnqueueCopyImageToBuffer(on, source, target, a.origin, a.region,
                                          step->box[1].origin[0], wait_count, list, event);
    return clEnqueueCopyImage(on, source, target, a.origin, b.origin, a.region, wait_count, list,
                              event);
}

cl_int image_transfer(struct run *run, const struct step *step, cl_command_queue on,
                      cl_uint wait_count, const cl_event *list, cl_event *event) {
    const struct object *image = &run->program->object[step->object[0]];
    if (step->kind == STEP_COPY)
        return copy(run, step, on, wait_count, list, event);
    cl_mem mem = run_object(run, step->object[0]);
    struct pixels part = pixels_of(image, &step->box[0], step->region);
    if (step->kind == STEP_FILL)
        return fill(step, image, mem, &part, on, wait_count, list, event);
    uint8_t *host = run->outcome->host[step->host] + step->box[1].origin[0];
    size_t row = step->box[1].row, slice = image->dimensions > 2 ? step->box[1].slice : 0;
    return step->kind == STEP_READ
               ? clEnqueueReadImage(on, mem, step->blocking, part.origin, part.region, row, slice,
                                    host, wait_count, list, event)
               : clEnqueueWriteImage(on, mem, step->blocking, part.origin, part.region, row, slice,
                                     host, wait_count, list, event);
}

cl_int image_map(struct run *run, int number, cl_command_queue on, cl_uint wait_count,
                 const cl_event *list, cl_event *event) {
    const struct step *step = &run->program->step[number];
    const struct object *image = &run->program->object[step->object[0]];
    size_t pixel = step->box[0].origin[0] / image->pixel, row = 0, slice = 0;
    size_t origin[3] = {pixel % image->shape[0], pixel / image->shape[0] % image->shape[1],
                        pixel / image->shape[0] / image->shape[1]};
    size_t region[3] = {step->region[0] / image->pixel, 1, 1};
    cl_int code = CL_SUCCESS;
    run->mapped[number] =
        clEnqueueMapImage(on, run_object(run, step->object[0]), step->blocking, step->map_flags,
                          origin, region, &row, &slice, wait_count, list, event, &code);
    return code;
}
