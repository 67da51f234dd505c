/* SPDX-License-Identifier: MIT */

/* One row block of C = A * B: work-item (j, i) computes one element. Naive on purpose. */
__kernel void multiply(__global const float *a, __global const float *b, __global float *c,
                       const uint inner, const uint columns)
{
    const size_t column = get_global_id(0), row = get_global_id(1);
    float sum = 0.0f;
    for (uint k = 0; k < inner; k++)
        sum += a[row * inner + k] * b[(size_t)k * columns + column];
    c[row * columns + column] = sum;
}
