/* SPDX-License-Identifier: MIT */

/*
 * Two-dimensional Euler equations on one square patch of cells, with GHOSTS rings of ghost cells
 * around it: MUSCL-Hancock with minmod slopes and HLL fluxes (Toro, "Riemann solvers and numerical
 * methods for fluid dynamics", chapters 10 and 14). A cell is (density, momentum x, momentum y,
 * energy); a primitive state is (density, velocity x, velocity y, pressure).
 *
 * Terms of x and y are always added as x + y, and nothing is contracted, so that a symmetric
 * state stays symmetric to the last bit.
 */
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF

double4 primitive_of(const double4 u)
{
    const double2 v = u.yz / u.x;
    return (double4)(u.x, v, (GAMMA - 1.0) * (u.w - 0.5 * (u.y * v.x + u.z * v.y)));
}

double4 conserved_of(const double4 w)
{
    const double2 m = w.x * w.yz;
    return (double4)(w.x, m, w.w / (GAMMA - 1.0) + 0.5 * (m.x * w.y + m.y * w.z));
}

double4 minmod(const double4 a, const double4 b)
{
    return 0.5 * (sign(a) + sign(b)) * fmin(fabs(a), fabs(b));
}

double sound_speed(const double4 w)
{
    return sqrt(GAMMA * w.w / w.x);
}

/* A cell half a time step later, with its slopes per cell. */
struct predicted {
    double4 w, slope_x, slope_y;
};

/* `u` points at the cell, `stride` leads to the next row, `ratio` is time step / cell size. */
struct predicted predict(__global const double4 *u, const int stride, const double ratio)
{
    const double4 w = primitive_of(u[0]);
    const double4 dx = minmod(w - primitive_of(u[-1]), primitive_of(u[1]) - w);
    const double4 dy = minmod(w - primitive_of(u[-stride]), primitive_of(u[stride]) - w);
    const double4 change_x = (double4)(w.y * dx.x + w.x * dx.y, w.y * dx.y + dx.w / w.x, w.y * dx.z,
                                       w.y * dx.w + GAMMA * w.w * dx.y);
    const double4 change_y = (double4)(w.z * dy.x + w.x * dy.z, w.z * dy.y, w.z * dy.z + dy.w / w.x,
                                       w.z * dy.w + GAMMA * w.w * dy.z);
    struct predicted p;
    p.w = w - 0.5 * ratio * (change_x + change_y);
    p.slope_x = dx;
    p.slope_y = dy;
    return p;
}

double4 flux_x(const double4 w, const double4 u)
{
    return (double4)(u.y, u.y * w.y + w.w, u.z * w.y, (u.w + w.w) * w.y);
}

/* HLL flux through a face across x, from the states on its two sides. */
double4 hll(const double4 left, const double4 right)
{
    const double cl = sound_speed(left), cr = sound_speed(right);
    const double sl = fmin(left.y - cl, right.y - cr), sr = fmax(left.y + cl, right.y + cr);
    const double4 ul = conserved_of(left), ur = conserved_of(right);
    const double4 fl = flux_x(left, ul), fr = flux_x(right, ur);
    if (sl >= 0.0)
        return fl;
    if (sr <= 0.0)
        return fr;
    return ((sr * fl - sl * fr) + sl * sr * (ur - ul)) / (sr - sl);
}

double4 face_x(const struct predicted left, const struct predicted right)
{
    return hll(left.w + 0.5 * left.slope_x, right.w - 0.5 * right.slope_x);
}

/* Across y: the same with the two axes exchanged. */
double4 face_y(const struct predicted below, const struct predicted above)
{
    return hll((below.w + 0.5 * below.slope_y).xzyw, (above.w - 0.5 * above.slope_y).xzyw).xzyw;
}

/*
 * One time step of a patch of n by n cells: work-item (i, j) of (n + 2 * GHOSTS)². Ghost cells are
 * handed through. The fluxes through the patch's own border go to `border`, n for each of the
 * sides left, right, bottom, top: who has a finer neighbour needs them.
 */
__kernel void advance(__global const double4 *u, __global double4 *next, __global double4 *border,
                      const int n, const double ratio)
{
    const int stride = n + 2 * GHOSTS;
    const int i = (int)get_global_id(0) - GHOSTS, j = (int)get_global_id(1) - GHOSTS;
    const int at = (j + GHOSTS) * stride + i + GHOSTS;
    if (i < 0 || j < 0 || i >= n || j >= n) {
        next[at] = u[at];
        return;
    }
    const struct predicted center = predict(u + at, stride, ratio);
    const double4 left = face_x(predict(u + at - 1, stride, ratio), center);
    const double4 right = face_x(center, predict(u + at + 1, stride, ratio));
    const double4 bottom = face_y(predict(u + at - stride, stride, ratio), center);
    const double4 top = face_y(center, predict(u + at + stride, stride, ratio));
    next[at] = u[at] - ratio * ((right - left) + (top - bottom));
    if (i == 0)
        border[j] = left;
    if (i == n - 1)
        border[n + j] = right;
    if (j == 0)
        border[2 * n + i] = bottom;
    if (j == n - 1)
        border[3 * n + i] = top;
}

/*
 * What decides about refinement and the next time step. Work-item j of n looks at row j: the
 * steepest relative change of density to the next cell goes to found[j], the fastest signal to
 * found[n + j].
 */
__kernel void inspect(__global const double4 *u, __global double *found, const int n)
{
    const int j = (int)get_global_id(0), stride = n + 2 * GHOSTS;
    __global const double4 *row = u + (j + GHOSTS) * stride + GHOSTS;
    double steepest = 0.0, fastest = 0.0;
    for (int i = 0; i < n; i++) {
        const double4 w = primitive_of(row[i]);
        const double right = i + 1 < n ? row[i + 1].x : w.x;
        const double above = j + 1 < n ? row[i + stride].x : w.x;
        steepest = fmax(steepest, fabs(right - w.x) / fmin(right, w.x));
        steepest = fmax(steepest, fabs(above - w.x) / fmin(above, w.x));
        fastest = fmax(fastest, fmax(fabs(w.y), fabs(w.z)) + sound_speed(w));
    }
    found[j] = steepest;
    found[n + j] = fastest;
}
