/* SPDX-License-Identifier: MIT */
#include "picture.h"
#include "check.h"
#include "image.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* From dark blue over green to yellow, for 0 to 1. */
static void colour_of(double value, uint8_t rgb[3]) {
    static const double stop[][3] = {
        {68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {253, 231, 37}};
    const double at = fmin(fmax(value, 0), 1) * 4;
    const unsigned below = at >= 4 ? 3 : (unsigned)at;
    for (unsigned c = 0; c < 3; c++)
        rgb[c] =
            (uint8_t)lround(stop[below][c] + (at - below) * (stop[below + 1][c] - stop[below][c]));
}

static void outline(const struct patch *patch, size_t side, uint8_t *rgb) {
    const size_t length = side >> patch->level;
    const size_t left = patch->x * length, top = side - (patch->y + 1) * length;
    for (size_t i = 0; i < length; i++)
        for (unsigned c = 0; c < 3; c++) {
            uint8_t *across = &rgb[3 * (top * side + left + i) + c];
            uint8_t *down = &rgb[3 * ((top + i) * side + left) + c];
            *across = (uint8_t)(*across / 2 + 90);
            *down = (uint8_t)(*down / 2 + 90);
        }
}

void picture_write(const struct tree *tree, unsigned pixels, const char *path) {
    const size_t cells = (size_t)tree->n << tree->max_level;
    const size_t zoom = pixels > cells ? pixels / cells : 1, side = cells * zoom;
    uint8_t *rgb = allocate(3 * side * side);
    double least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < cells * cells; i++) {
        const double density =
            tree_sample(tree, tree->max_level, (long)(i % cells), (long)(i / cells)).q[0];
        least = fmin(least, density);
        most = fmax(most, density);
    }
    for (size_t y = 0; y < side; y++)
        for (size_t x = 0; x < side; x++) {
            const struct cell cell =
                tree_sample(tree, tree->max_level, (long)(x / zoom), (long)(cells - 1 - y / zoom));
            colour_of((cell.q[0] - least) / (most - least), &rgb[3 * (y * side + x)]);
        }
    for (size_t i = 0; i < tree->leaves; i++)
        outline(tree->leaf[i], side, rgb);
    image_write(path, (unsigned)side, (unsigned)side, rgb);
    free(rgb);
}
