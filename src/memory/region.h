/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_REGION_H
#define TUTTI_REGION_H

#include <stdbool.h>
#include <stddef.h>

/* Where a box of bytes lies in a piece of memory (clEnqueueReadBufferRect, 5.2.2). */
struct tutti_place {
    size_t origin[3];
    size_t row_pitch, slice_pitch; /* never 0 here */
};

/* A box of bytes: width in bytes, rows, slices. A contiguous range has one row of one slice. */
struct tutti_region {
    size_t size[3];
};

static inline struct tutti_region tutti_region_linear(size_t size) {
    return (struct tutti_region){{size, 1, 1}};
}

static inline struct tutti_place tutti_place_linear(size_t offset, size_t size) {
    return (struct tutti_place){{offset, 0, 0}, size, size};
}

static inline size_t tutti_place_first(const struct tutti_place *place) {
    return place->origin[2] * place->slice_pitch + place->origin[1] * place->row_pitch +
           place->origin[0];
}

/* One past the last byte that the region touches there. */
static inline size_t tutti_place_end(const struct tutti_place *place,
                                     const struct tutti_region *region) {
    return tutti_place_first(place) + (region->size[2] - 1) * place->slice_pitch +
           (region->size[1] - 1) * place->row_pitch + region->size[0];
}

static inline size_t tutti_region_bytes(const struct tutti_region *region) {
    return region->size[0] * region->size[1] * region->size[2];
}

static inline bool tutti_region_is_linear(const struct tutti_region *region) {
    return region->size[1] == 1 && region->size[2] == 1;
}

static inline struct tutti_place tutti_place_moved(const struct tutti_place *place,
                                                   const size_t offset[3]) {
    struct tutti_place moved = *place;
    for (int i = 0; i < 3; i++)
        moved.origin[i] += offset[i];
    return moved;
}

/* How a region is cut in chunks: whole slices, whole rows of one slice, or a part of one row. */
struct tutti_cut {
    struct tutti_region chunk; /* those at an edge may be smaller */
    size_t along[3];           /* how many there are in each direction */
    size_t count;
};

/* Cuts in chunks of at most `bytes`, which must be a multiple of what must not be cut. */
struct tutti_cut tutti_region_cut(const struct tutti_region *region, size_t bytes);
/* The chunk of that index: its size, and where it begins in the region. */
struct tutti_region tutti_cut_part(const struct tutti_cut *cut, const struct tutti_region *region,
                                   size_t index, size_t offset[3]);

/* Copies the region between two pieces of host memory; they may be the same one. */
void tutti_region_copy(void *target, const struct tutti_place *to, const void *source,
                       const struct tutti_place *from, const struct tutti_region *region);

/*
 * The same between different memory, past the caches where the processor can: for a target that
 * would not stay in them anyway.
 */
void tutti_region_stream(void *target, const struct tutti_place *to, const void *source,
                         const struct tutti_place *from, const struct tutti_region *region);

/* Fills `size` bytes with the pattern; `size` is a multiple of `pattern_size`. */
void tutti_region_fill(void *target, size_t size, const void *pattern, size_t pattern_size);

/* Fills each row of the region; its width is a multiple of `pattern_size`. */
void tutti_region_fill_box(void *target, const struct tutti_place *place,
                           const struct tutti_region *region, const void *pattern,
                           size_t pattern_size);

#endif
