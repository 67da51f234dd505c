/* SPDX-License-Identifier: MIT */
#include "memory/region.h"

#include <string.h>

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

struct tutti_cut tutti_region_cut(const struct tutti_region *region, size_t bytes) {
    struct tutti_cut cut = {.count = 1};
    size_t room = bytes; /* in units of what is smaller than this direction */
    for (int i = 0; i < 3; i++) {
        cut.chunk.size[i] = room ? smaller(region->size[i], room) : 1;
        /* What is cut in this direction is not joined in the next one. */
        room = cut.chunk.size[i] == region->size[i] ? room / region->size[i] : 0;
        cut.along[i] = (region->size[i] + cut.chunk.size[i] - 1) / cut.chunk.size[i];
        cut.count *= cut.along[i];
    }
    return cut;
}

struct tutti_region tutti_cut_part(const struct tutti_cut *cut, const struct tutti_region *region,
                                   size_t index, size_t offset[3]) {
    struct tutti_region part;
    for (int i = 0; i < 3; i++) {
        offset[i] = index % cut->along[i] * cut->chunk.size[i];
        part.size[i] = smaller(cut->chunk.size[i], region->size[i] - offset[i]);
        index /= cut->along[i];
    }
    return part;
}

void tutti_region_copy(void *target, const struct tutti_place *to, const void *source,
                       const struct tutti_place *from, const struct tutti_region *region) {
    char *t = (char *)target + tutti_place_first(to);
    const char *s = (const char *)source + tutti_place_first(from);
    /* Within one buffer the boxes are disjoint but their rows may interleave: any order is right.
     */
    for (size_t z = 0; z < region->size[2]; z++)
        for (size_t y = 0; y < region->size[1]; y++)
            memmove(t + z * to->slice_pitch + y * to->row_pitch,
                    s + z * from->slice_pitch + y * from->row_pitch, region->size[0]);
}

void tutti_region_fill(void *target, size_t size, const void *pattern, size_t pattern_size) {
    char *t = target;
    size_t done = pattern_size < size ? pattern_size : size;
    memcpy(t, pattern, done);
    while (done < size) {
        size_t more = done < size - done ? done : size - done;
        memcpy(t + done, t, more);
        done += more;
    }
}

void tutti_region_fill_box(void *target, const struct tutti_place *place,
                           const struct tutti_region *region, const void *pattern,
                           size_t pattern_size) {
    char *t = (char *)target + tutti_place_first(place);
    for (size_t z = 0; z < region->size[2]; z++)
        for (size_t y = 0; y < region->size[1]; y++)
            tutti_region_fill(t + z * place->slice_pitch + y * place->row_pitch, region->size[0],
                              pattern, pattern_size);
}
