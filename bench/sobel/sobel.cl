/* SPDX-License-Identifier: MIT */
/* Sobel's two filters, each as a convolution of rows, then one of columns; edges are repeated. */

kernel void convolve_rows(global const float *frame, global float *difference,
                          global float *smooth, int width) {
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    float left = frame[y * width + max(x - 1, 0)];
    float here = frame[y * width + x];
    float right = frame[y * width + min(x + 1, width - 1)];
    difference[y * width + x] = right - left;
    smooth[y * width + x] = left + 2 * here + right;
}

kernel void smooth_columns(global const float *in, global float *out, int width) {
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    const int last = (int)get_global_size(1) - 1;
    out[y * width + x] = in[max(y - 1, 0) * width + x] + 2 * in[y * width + x] +
                         in[min(y + 1, last) * width + x];
}

kernel void differ_columns(global const float *in, global float *out, int width) {
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    const int last = (int)get_global_size(1) - 1;
    out[y * width + x] = in[min(y + 1, last) * width + x] - in[max(y - 1, 0) * width + x];
}

kernel void magnitude(global const float *x_part, global const float *y_part,
                      global float *result, int width) {
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    const float gx = x_part[y * width + x];
    const float gy = y_part[y * width + x];
    result[y * width + x] = sqrt(gx * gx + gy * gy);
}
