/* SPDX-License-Identifier: MIT */
/* One Jacobi step for Poisson's equation with a constant right-hand side; the edge stays. */

kernel void relax(global const float *before, global float *after, float source, int size) {
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    const int i = y * size + x;
    const bool edge = x == 0 || y == 0 || x == size - 1 || y == size - 1;
    after[y * size + x] = edge ? before[i]
                               : 0.25f * (before[i - 1] + before[i + 1] + before[i - size] +
                                          before[i + size] + source);
}
