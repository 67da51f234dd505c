/* SPDX-License-Identifier: MIT */
#include "memory/region.h"

#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

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

#ifdef __SSE2__
/* Below this a row's ends weigh more than what is gained between them. */
#define LEAST_STREAMED 1024

static void stream_row(char *target, const char *source, size_t size) {
    size_t head = -(uintptr_t)target & 63;
    memcpy(target, source, head);
    size_t at = head;
    for (; at + 64 <= size; at += 64) {
        const __m128i *s = (const __m128i *)(const void *)(source + at);
        __m128i *t = (__m128i *)(void *)(target + at);
        __m128i a = _mm_loadu_si128(s), b = _mm_loadu_si128(s + 1);
        __m128i c = _mm_loadu_si128(s + 2), d = _mm_loadu_si128(s + 3);
        _mm_stream_si128(t, a);
        _mm_stream_si128(t + 1, b);
        _mm_stream_si128(t + 2, c);
        _mm_stream_si128(t + 3, d);
    }
    memcpy(target + at, source + at, size - at);
}

void tutti_region_stream(void *target, const struct tutti_place *to, const void *source,
                         const struct tutti_place *from, const struct tutti_region *region) {
    if (region->size[0] < LEAST_STREAMED) {
        tutti_region_copy(target, to, source, from, region);
        return;
    }
    char *t = (char *)target + tutti_place_first(to);
    const char *s = (const char *)source + tutti_place_first(from);
    for (size_t z = 0; z < region->size[2]; z++)
        for (size_t y = 0; y < region->size[1]; y++)
            stream_row(t + z * to->slice_pitch + y * to->row_pitch,
                       s + z * from->slice_pitch + y * from->row_pitch, region->size[0]);
    _mm_sfence(); /* such stores are not ordered by locks */
}
#else
void tutti_region_stream(void *target, const struct tutti_place *to, const void *source,
                         const struct tutti_place *from, const struct tutti_region *region) {
    tutti_region_copy(target, to, source, from, region);
}
#endif

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
