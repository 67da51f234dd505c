/* SPDX-License-Identifier: MIT */
#include "memory/access.h"

#include "memory/color.h"
#include "memory/device_copy.h"
#include "memory/locked_pages.h"
#include "memory/peers.h"
#include "memory/pinned.h"
#include "memory/relay.h"
#include "memory/staging.h"
#include "memory/stream.h"
#include "memory/svm_home.h"

#include <stdlib.h>
#include <string.h>

/* Less goes as fast through any memory. */
#define LEAST_PINNED ((size_t)64 << 10)

/* The home memory for a use by the host; NULL when out of memory. */
static void *open_home(struct tutti_view *view, bool writes) {
    return tutti_svm_home_use(view, NULL, writes) == CL_SUCCESS ? tutti_view_home_for_once(view)
                                                                : NULL;
}

/* What a part of a view is read from: home memory if it is valid, else a device. */
static cl_int read_copies(struct tutti_view *view, const struct tutti_copies *copies,
                          const struct tutti_place *from, void *target,
                          const struct tutti_place *to, const struct tutti_region *region) {
    if (!copies->home && copies->count)
        return tutti_copy_read(view, &copies->on[0], from, target, to, region);
    void *home = open_home(view, false);
    if (!home)
        return CL_OUT_OF_HOST_MEMORY;
    struct tutti_place at_home = tutti_view_at_home(view, from);
    tutti_staging_copy(target, to, home, &at_home, region);
    return CL_SUCCESS;
}

cl_int tutti_access_read(struct tutti_view *view, const struct tutti_place *from, void *target,
                         const struct tutti_place *to, const struct tutti_region *region) {
    struct tutti_copies copies;
    tutti_view_copies(view, &copies);
    if (!copies.home && copies.count)
        tutti_locked_pages_use_part(copies.on[0].device, target, to, region);
    return read_copies(view, &copies, from, target, to, region);
}

/* The copies that a write goes to: home memory too, once nothing more is on its way there. */
static void written_copies(struct tutti_view *view, struct tutti_copies *copies) {
    tutti_relay_wait(view);
    tutti_view_copies(view, copies);
}

cl_int tutti_access_write(struct tutti_view *view, const struct tutti_place *to, const void *source,
                          const struct tutti_place *from, const struct tutti_region *region) {
    struct tutti_copies copies;
    written_copies(view, &copies);
    if (copies.home) {
        void *home = open_home(view, true);
        if (!home)
            return CL_OUT_OF_HOST_MEMORY;
        struct tutti_place at_home = tutti_view_at_home(view, to);
        tutti_staging_copy(home, &at_home, source, from, region);
    }
    cl_int result = CL_SUCCESS;
    for (unsigned i = 0; i < copies.count; i++) {
        tutti_locked_pages_use_part(copies.on[i].device, source, from, region);
        cl_int error = tutti_copy_write(view, &copies.on[i], to, source, from, region);
        if (error != CL_SUCCESS)
            result = error;
    }
    return result;
}

cl_int tutti_access_fill(struct tutti_view *view, size_t offset, size_t size, const void *pattern,
                         size_t pattern_size) {
    struct tutti_copies copies;
    written_copies(view, &copies);
    if (copies.home) {
        char *home = open_home(view, true);
        if (!home)
            return CL_OUT_OF_HOST_MEMORY;
        tutti_region_fill(home + offset, size, pattern, pattern_size);
    }
    cl_int result = CL_SUCCESS;
    for (unsigned i = 0; i < copies.count; i++) {
        cl_int error = tutti_copy_fill(&copies.on[i], offset, size, pattern, pattern_size);
        if (error != CL_SUCCESS)
            result = error;
    }
    return result;
}

cl_int tutti_access_fill_image(struct tutti_view *view, const struct tutti_place *place,
                               const struct tutti_region *region, const void *color) {
    unsigned char pixel[TUTTI_LARGEST_PIXEL];
    tutti_color_pack(&view->shape.format, color, pixel);
    if (!tutti_shape_is_boxed(&view->shape)) /* over a buffer */
        return tutti_access_fill(view, tutti_place_first(place), region->size[0], pixel,
                                 view->shape.element);
    struct tutti_copies copies;
    written_copies(view, &copies);
    if (copies.home) {
        char *home = open_home(view, true);
        if (!home)
            return CL_OUT_OF_HOST_MEMORY;
        struct tutti_place at_home = tutti_view_at_home(view, place);
        tutti_region_fill_box(home, &at_home, region, pixel, view->shape.element);
    }
    cl_int result = CL_SUCCESS;
    for (unsigned i = 0; i < copies.count; i++) {
        cl_int error = tutti_copy_fill_image(view, &copies.on[i], place, region, color, pixel);
        if (error != CL_SUCCESS)
            result = error;
    }
    return result;
}

static const struct tutti_copy *copy_on(const struct tutti_copies *copies,
                                        const struct tutti_real_device *device) {
    for (unsigned i = 0; i < copies->count; i++)
        if (copies->on[i].device == device)
            return &copies->on[i];
    return NULL;
}

/* Host memory for a packed region on its way between devices, page-locked where that helps. */
struct bounce {
    struct tutti_pinned *pinned;
    char *bytes; /* NULL: not made yet */
    struct tutti_place place;
};

static bool make_bounce(struct bounce *bounce, const struct tutti_region *region) {
    size_t size = tutti_region_bytes(region);
    bounce->place =
        (struct tutti_place){{0, 0, 0}, region->size[0], region->size[0] * region->size[1]};
    bounce->pinned = size >= LEAST_PINNED ? tutti_pinned_allocate(size) : NULL;
    bounce->bytes = bounce->pinned ? tutti_pinned_bytes(bounce->pinned) : malloc(size);
    return bounce->bytes != NULL;
}

static void drop_bounce(struct bounce *bounce) {
    if (bounce->pinned)
        tutti_pinned_free(bounce->pinned);
    else
        free(bounce->bytes);
}

/* From a device to another one; what goes through `bounce` the first time stays there. */
static cl_int copy_across(const struct tutti_copy_end *source, const struct tutti_copy_end *target,
                          const struct tutti_region *region, struct bounce *bounce) {
    cl_int error = CL_SUCCESS;
    bool streams = tutti_stream_can(source, target, region);
    if (tutti_peers_copy(source, target, region) ||
        (streams && !tutti_shape_is_boxed(&source->view->shape) &&
         tutti_stream_pass(source, target, region, &error)))
        return error;
    if (!bounce->bytes) {
        if (!make_bounce(bounce, region))
            return CL_OUT_OF_HOST_MEMORY;
        if (streams)
            return tutti_stream_copy(source, target, bounce->bytes, &bounce->place, region);
        error = tutti_copy_read(source->view, source->copy, source->place, bounce->bytes,
                                &bounce->place, region);
    }
    return error == CL_SUCCESS ? tutti_copy_write(target->view, target->copy, target->place,
                                                  bounce->bytes, &bounce->place, region)
                               : error;
}

cl_int tutti_access_copy(struct tutti_view *source, const struct tutti_place *from,
                         struct tutti_view *target, const struct tutti_place *to,
                         const struct tutti_region *region) {
    struct tutti_copies sources, targets;
    tutti_view_copies(source, &sources);
    written_copies(target, &targets);
    char *source_home = sources.home ? open_home(source, false) : NULL;
    char *target_home = targets.home ? open_home(target, true) : NULL;
    if ((sources.home && !source_home) || (targets.home && !target_home))
        return CL_OUT_OF_HOST_MEMORY;

    struct bounce bounce = {NULL, NULL, {{0, 0, 0}, 0, 0}};
    cl_int result = CL_SUCCESS;
    for (unsigned i = 0; i < targets.count && result == CL_SUCCESS; i++) {
        const struct tutti_copy *near = copy_on(&sources, targets.on[i].device);
        struct tutti_copy_end source_end = {source, near ? near : &sources.on[0], from};
        struct tutti_copy_end target_end = {target, &targets.on[i], to};
        if (near) {
            result = tutti_copy_copy(&source_end, &target_end, region);
        } else if (source_home) {
            struct tutti_place at_home = tutti_view_at_home(source, from);
            result = tutti_copy_write(target, &targets.on[i], to, source_home, &at_home, region);
        } else if (sources.count) {
            result = copy_across(&source_end, &target_end, region, &bounce);
        }
    }
    drop_bounce(&bounce);
    if (target_home && result == CL_SUCCESS) {
        struct tutti_place at_home = tutti_view_at_home(target, to);
        result = read_copies(source, &sources, from, target_home, &at_home, region);
    }
    return result;
}

cl_int tutti_access_pull(struct tutti_view *view, const struct tutti_place *place,
                         const struct tutti_region *region) {
    struct tutti_copies copies;
    tutti_view_copies(view, &copies);
    if (copies.home || !copies.count)
        return CL_SUCCESS;
    char *home = open_home(view, true);
    if (!home)
        return CL_OUT_OF_HOST_MEMORY;
    struct tutti_place at_home = tutti_view_at_home(view, place);
    tutti_view_lock_home(view, copies.on[0].device, tutti_region_bytes(region));
    return tutti_copy_read(view, &copies.on[0], place, home, &at_home, region);
}

cl_int tutti_access_push(struct tutti_view *view, const struct tutti_place *place,
                         const struct tutti_region *region) {
    struct tutti_copies copies;
    written_copies(view, &copies);
    char *home = open_home(view, false);
    if (!home)
        return CL_OUT_OF_HOST_MEMORY;
    struct tutti_place at_home = tutti_view_at_home(view, place);
    cl_int result = CL_SUCCESS;
    if (copies.count)
        tutti_view_lock_home(view, copies.on[0].device, tutti_region_bytes(region));
    for (unsigned i = 0; i < copies.count; i++) {
        cl_int error = tutti_copy_write(view, &copies.on[i], place, home, &at_home, region);
        if (error != CL_SUCCESS)
            result = error;
    }
    return result;
}
