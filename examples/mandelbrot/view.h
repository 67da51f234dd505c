/* SPDX-License-Identifier: MIT */
#ifndef MANDELBROT_VIEW_H
#define MANDELBROT_VIEW_H

/* A part of the complex plane. Pixels are square; the image's sides decide the width. */
struct view {
    double center_x, center_y, height;
};

/*
 * The view of Fig. 3a: the whole set fits in the upper half of the image, whose lower half
 * escapes at once.
 */
struct view view_top_heavy(void);

/*
 * View `index` of the endless series of Fig. 3b, "obtained by moving and zooming": ten points
 * near the border of the set in turns, the zoom growing from one round to the next, and after
 * twenty rounds from the start again.
 */
struct view view_of_series(unsigned long index);

#endif
