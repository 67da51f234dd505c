/* SPDX-License-Identifier: MIT */
/* product = a * b, square matrices. */

kernel void multiply(global const float *a, global const float *b, global float *product,
                     int size) {
    const int column = get_global_id(0);
    const int row = get_global_id(1);
    float sum = 0;
    for (int k = 0; k < size; k++)
        sum += a[row * size + k] * b[k * size + column];
    product[row * size + column] = sum;
}
