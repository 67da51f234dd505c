/* SPDX-License-Identifier: MIT */

/* The host repeats this computation to check it: each operation must round on its own. */
#pragma OPENCL FP_CONTRACT OFF

/*
 * A block of rows: work-item (column, row) counts the iterations of z <- z * z + c that keep z
 * within a circle of radius 2. Row 0 of the block is row first_row of the image, the top one at
 * `top`.
 */
__kernel void mandelbrot(__global uint *pixels, const float left, const float top, const float step,
                         const uint first_row, const uint iterations)
{
    const size_t column = get_global_id(0), row = get_global_id(1);
    const float cx = left + step * (float)column;
    const float cy = top - step * (float)(first_row + row);
    float x = 0.0f, y = 0.0f, xx = 0.0f, yy = 0.0f;
    uint count = 0;
    while (count < iterations && xx + yy <= 4.0f) {
        y = 2.0f * (x * y) + cy;
        x = (xx - yy) + cx;
        xx = x * x;
        yy = y * y;
        count++;
    }
    pixels[row * get_global_size(0) + column] = count;
}
