/* SPDX-License-Identifier: MIT */

/*
 * The Mandelbrot set, as in the evaluation of SOCL (Henry, Denis, Barthou, TSI 2012, section 4.2):
 * the image is cut into blocks of rows, one kernel a block. All tasks are known in advance, but
 * they take from next to nothing to very long, which no distribution made beforehand can balance.
 */

#include "distribute.h"
#include "image.h"
#include "report.h"
#include "view.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Iterations that the check of an image may take on the host. */
#define CHECK_ITERATIONS ((size_t)1 << 26)

static const char source[] =
#include "mandelbrot_cl.inc"
    ;

struct task {
    cl_mem pixels;
    void *mapped;
};

struct mandelbrot {
    const struct common_options *options;
    struct lanes *lanes;
    size_t width, height, block, tasks;
    cl_uint iterations;
    float left, top, step;
    cl_uint *pixels;
    struct task *task;
    cl_kernel kernel[MAX_LANES];
};

static void look_at(struct mandelbrot *m, const struct view *view) {
    const double step = view->height / (double)m->height;
    m->step = (float)step;
    m->left = (float)(view->center_x - 0.5 * step * (double)(m->width - 1));
    m->top = (float)(view->center_y + 0.5 * step * (double)(m->height - 1));
}

static size_t block_rows(const struct mandelbrot *m, size_t task) {
    const size_t left = m->height - task * m->block;
    return left < m->block ? left : m->block;
}

static void enqueue(void *user, struct lane *lane, size_t index, cl_event *done) {
    struct mandelbrot *m = user;
    struct task *task = &m->task[index];
    const size_t rows = block_rows(m, index), bytes = sizeof(cl_uint) * m->width * rows;
    const size_t global[2] = {m->width, rows};
    const cl_uint first_row = (cl_uint)(index * m->block);
    cl_kernel kernel = m->kernel[lane->index];
    cl_event computed;
    cl_int status;

    task->pixels = clCreateBuffer(lane->context, CL_MEM_WRITE_ONLY | CL_MEM_USE_HOST_PTR, bytes,
                                  m->pixels + first_row * m->width, &status);
    cl_check(status, "clCreateBuffer");
    kernel_argument(kernel, 0, sizeof(cl_mem), &task->pixels);
    kernel_argument(kernel, 1, sizeof(m->left), &m->left);
    kernel_argument(kernel, 2, sizeof(m->top), &m->top);
    kernel_argument(kernel, 3, sizeof(m->step), &m->step);
    kernel_argument(kernel, 4, sizeof(first_row), &first_row);
    kernel_argument(kernel, 5, sizeof(m->iterations), &m->iterations);
    cl_check(clEnqueueNDRangeKernel(lane->queue, kernel, 2, NULL, global, NULL, 0, NULL, &computed),
             "clEnqueueNDRangeKernel");
    /* The mapping brings the rows into m->pixels. */
    task->mapped = clEnqueueMapBuffer(lane->queue, task->pixels, CL_FALSE, CL_MAP_READ, 0, bytes, 1,
                                      &computed, done, &status);
    cl_check(status, "clEnqueueMapBuffer");
    cl_check(clReleaseEvent(computed), "clReleaseEvent");
}

static void finish(void *user, struct lane *lane, size_t index) {
    struct mandelbrot *m = user;
    struct task *task = &m->task[index];
    cl_check(clEnqueueUnmapMemObject(lane->queue, task->pixels, task->mapped, 0, NULL, NULL),
             "clEnqueueUnmapMemObject");
    cl_check(clReleaseMemObject(task->pixels), "clReleaseMemObject");
}

static double once(void *user) {
    struct mandelbrot *m = user;
    const struct work work = {.user = user, .enqueue = enqueue, .finish = finish};
    /* No pixel has this many iterations: one that nobody computes cannot pass the check. */
    memset(m->pixels, 0xff, sizeof(cl_uint) * m->width * m->height);
    const double start = now();
    distribute(m->options, m->lanes, m->tasks, &work);
    return now() - start;
}

/* What the kernel computes, operation by operation. Compiled without contraction too. */
static cl_uint host_pixel(const struct mandelbrot *m, size_t column, size_t row) {
    const float cx = m->left + m->step * (float)column;
    const float cy = m->top - m->step * (float)row;
    float x = 0.0f, y = 0.0f, xx = 0.0f, yy = 0.0f;
    cl_uint count = 0;
    while (count < m->iterations && xx + yy <= 4.0f) {
        y = 2.0f * (x * y) + cy;
        x = (xx - yy) + cx;
        xx = x * x;
        yy = y * y;
        count++;
    }
    return count;
}

/* Compares samples of every block with the host's computation; returns how many differ. */
static size_t check(const struct mandelbrot *m, size_t *checked) {
    const size_t pixels = m->width * m->height;
    size_t samples = CHECK_ITERATIONS / (m->iterations + 1), wrong = 0;
    if (samples < 16 * m->tasks)
        samples = 16 * m->tasks;
    const bool all = samples >= pixels;
    if (all)
        samples = pixels;
    for (size_t i = 0; i < samples; i++) {
        size_t column = i % m->width, row = i / m->width;
        if (!all) {
            const size_t task = i % m->tasks, turn = i / m->tasks;
            row = task * m->block + turn % block_rows(m, task);
            column = i * 2654435761u % m->width;
        }
        if (m->pixels[row * m->width + column] != host_pixel(m, column, row))
            wrong++;
    }
    *checked = samples;
    return wrong;
}

/* All iterations of the image: the work that was done. */
static double total_iterations(const struct mandelbrot *m) {
    double total = 0;
    for (size_t i = 0; i < m->width * m->height; i++)
        total += m->pixels[i];
    return total;
}

static void write_picture(const struct mandelbrot *m, const char *path) {
    uint8_t *rgb = allocate(3 * m->width * m->height);
    for (size_t i = 0; i < m->width * m->height; i++) {
        const cl_uint n = m->pixels[i];
        const bool inside = n >= m->iterations;
        /* Three triangle waves of different lengths: neighbouring counts are told apart. */
        for (unsigned c = 0; c < 3; c++) {
            const unsigned wave = (n * (c + 3) + 40 * c) % 510;
            rgb[3 * i + c] = inside ? 0 : (uint8_t)(wave < 256 ? wave : 510 - wave);
        }
    }
    image_write(path, (unsigned)m->width, (unsigned)m->height, rgb);
    free(rgb);
}

/* Measures and checks one view; false when the image was wrong. */
static bool run_view(struct mandelbrot *m, const struct view *view, const char *label,
                     unsigned long index) {
    struct measure measured;
    size_t checked;
    look_at(m, view);
    progress(m->options, "%s: center %g%+gi, height %g\n", label, view->center_x, view->center_y,
             view->height);
    measure(m->options, m->lanes, once, m, &measured);
    const size_t wrong = check(m, &checked);
    const double iterations = total_iterations(m);
    progress(m->options, "%.3f G iterations/s; %zu of %zu pixels checked: %s\n",
             1e-9 * iterations / measured.median, checked, m->width * m->height,
             wrong == 0 ? "right" : "WRONG");

    struct report report;
    report_begin(&report, "mandelbrot", m->lanes);
    report_text(&report, "view", label);
    report_count(&report, "view_index", index);
    report_count(&report, "width", m->width);
    report_count(&report, "height", m->height);
    report_count(&report, "iterations", m->iterations);
    report_count(&report, "task_count", m->tasks);
    report_measure(&report, &measured, iterations, "iteration",
                   sizeof(cl_uint) * (double)(m->width * m->height), m->lanes);
    report_count(&report, "pixels_checked", checked);
    report_count(&report, "pixels_wrong", wrong);
    report_bool(&report, "right", wrong == 0);
    report_end(&report, m->options);
    measure_free(&measured);
    return wrong == 0;
}

int main(int argc, char **argv) {
    struct common_options options;
    struct view view = view_top_heavy();
    unsigned long width = 640, height = 512, tasks = 32, iterations = 1000;
    unsigned long views = 0, first_view = 0;
    const char *image = NULL;
    const struct option_entry own[] = {
        {"width", OPTION_COUNT, &width, "N", "pixels in a row"},
        {"height", OPTION_COUNT, &height, "N", "rows"},
        {"tasks", OPTION_COUNT, &tasks, "N", "blocks of rows, at most one a row"},
        {"iterations", OPTION_COUNT, &iterations, "N", "the most for a pixel"},
        {"center-x", OPTION_REAL, &view.center_x, "X", "middle of the view"},
        {"center-y", OPTION_REAL, &view.center_y, "Y", "middle of the view"},
        {"view-height", OPTION_REAL, &view.height, "H", "its height in the complex plane"},
        {"views", OPTION_COUNT, &views, "N", "instead: so many views of a series of zoom and pan"},
        {"first-view", OPTION_COUNT, &first_view, "N", "the first of them"},
        {"image", OPTION_TEXT, &image, "FILE", "write the last view as a PNG file"},
    };
    options_parse(argc, argv, "The Mandelbrot set in blocks of rows, each a task.", own,
                  sizeof(own) / sizeof(own[0]), &options);
    if (width == 0 || height == 0 || tasks == 0 || width > 1u << 20 || height > 1u << 20)
        die("sizes must be between 1 and %u", 1u << 20);
    if (iterations == 0 || iterations > 1u << 30)
        die("iterations must be between 1 and %u", 1u << 30);
    if (image && !image_supported())
        die("this build cannot write pictures (configure found no libpng-dev)");
    if (tasks > height)
        tasks = height;

    struct lanes lanes;
    lanes_open(&options, &lanes);
    lanes_build(&lanes, source, "");
    struct mandelbrot m = {.options = &options,
                           .lanes = &lanes,
                           .width = width,
                           .height = height,
                           .block = (height + tasks - 1) / tasks,
                           .iterations = (cl_uint)iterations};
    m.tasks = (height + m.block - 1) / m.block;
    m.pixels = allocate_pages(sizeof(cl_uint) * width * height);
    m.task = allocate_zeroed(m.tasks, sizeof(*m.task));
    for (unsigned i = 0; i < lanes.count; i++)
        m.kernel[i] = lane_kernel(&lanes.lane[i], "mandelbrot");

    bool right = true;
    if (views == 0)
        right = run_view(&m, &view, "chosen", 0);
    for (unsigned long i = first_view; i < first_view + views; i++) {
        view = view_of_series(i);
        if (!run_view(&m, &view, "series", i))
            right = false;
        options.warmup = 0; /* only the first view can find the drivers cold */
    }
    if (image)
        write_picture(&m, image);

    for (unsigned i = 0; i < lanes.count; i++)
        cl_check(clReleaseKernel(m.kernel[i]), "clReleaseKernel");
    lanes_close(&lanes);
    free(m.task);
    free(m.pixels);
    return right ? 0 : 1;
}
