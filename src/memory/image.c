/* SPDX-License-Identifier: MIT */
#include "memory/image.h"

#include "memory/locked_pages.h"

struct tutti_box tutti_box_of(const struct tutti_shape *shape, const struct tutti_place *place,
                              const struct tutti_region *region) {
    return (struct tutti_box){
        {place->origin[0] / shape->element, place->origin[1], place->origin[2]},
        {region->size[0] / shape->element, region->size[1], region->size[2]},
    };
}

/* How drivers want the pitches of the host's memory (5.3.3): none that the type does not have. */
static void driver_pitches(const struct tutti_shape *shape, const struct tutti_place *place,
                           size_t *row, size_t *slice) {
    *row = place->row_pitch;
    switch (shape->type) {
    case CL_MEM_OBJECT_IMAGE1D:
    case CL_MEM_OBJECT_IMAGE2D:
        *slice = 0;
        break;
    case CL_MEM_OBJECT_IMAGE1D_ARRAY: /* its rows are layers */
        *slice = place->row_pitch;
        break;
    default:
        *slice = place->slice_pitch;
        break;
    }
}

cl_int tutti_image_read(const struct tutti_real_device *device, const struct tutti_shape *shape,
                        cl_mem image, const struct tutti_place *from, void *target,
                        const struct tutti_place *to, const struct tutti_region *region,
                        cl_event *event) {
    struct tutti_box box = tutti_box_of(shape, from, region);
    size_t row, slice;
    driver_pitches(shape, to, &row, &slice);
    tutti_locked_pages_wait_part(target, to, region);
    cl_int error;
    do
        error = device->dispatch->clEnqueueReadImage(
            device->place.downloads, image, event ? CL_FALSE : CL_TRUE, box.origin, box.region, row,
            slice, (char *)target + tutti_place_first(to), 0, NULL, event);
    while (tutti_locked_pages_gave_way(error, target, to, region));
    return error;
}

cl_int tutti_image_write(const struct tutti_real_device *device, const struct tutti_shape *shape,
                         cl_mem image, const struct tutti_place *to, const void *source,
                         const struct tutti_place *from, const struct tutti_region *region,
                         cl_event *event) {
    struct tutti_box box = tutti_box_of(shape, to, region);
    size_t row, slice;
    driver_pitches(shape, from, &row, &slice);
    tutti_locked_pages_wait_part(source, from, region);
    cl_int error;
    do
        error = device->dispatch->clEnqueueWriteImage(
            device->place.uploads, image, event ? CL_FALSE : CL_TRUE, box.origin, box.region, row,
            slice, (const char *)source + tutti_place_first(from), 0, NULL, event);
    while (tutti_locked_pages_gave_way(error, source, from, region));
    return error;
}
