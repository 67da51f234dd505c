/* SPDX-License-Identifier: MIT */

/*
 * C = A * B in single precision, as in the evaluation of SOCL (Henry, Denis, Barthou, TSI 2012,
 * section 4.3): each task takes all of B and a block of rows of A and C. The size of a block does
 * not depend on the number of devices, and the matrices are given to OpenCL with
 * CL_MEM_USE_HOST_PTR, as section 3.2 of the paper advises: a driver that chooses the device
 * itself moves a block only when it knows where to.
 */

#include "distribute.h"
#include "report.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Multiplications that the check of a result may take; below that, every element is checked. */
#define CHECK_WORK ((size_t)1 << 28)

static const char source[] =
#include "matmul_cl.inc"
    ;

struct task {
    cl_mem a, c;
    void *mapped;
};

struct lane_state {
    cl_kernel kernel;
    cl_mem pinned; /* over m->b, by the first lane of a context; NULL: not needed */
    void *pinned_mapped;
    cl_mem b;
    cl_event b_written; /* NULL when there is nothing to wait for */
};

struct matmul {
    const struct common_options *options;
    struct lanes *lanes;
    size_t rows, inner, columns, block, tasks;
    float *a, *b, *c;
    struct task *task;
    struct lane_state lane[MAX_LANES];
};

static size_t block_rows(const struct matmul *m, size_t task) {
    const size_t left = m->rows - task * m->block;
    return left < m->block ? left : m->block;
}

/*
 * With several lanes each gets its own copy of B, written by its own thread. One buffer for all
 * would leave it to the driver to move B between the devices of a context.
 */
static void give_b(struct matmul *m, struct lane *lane) {
    struct lane_state *state = &m->lane[lane->index];
    const size_t bytes = sizeof(float) * m->inner * m->columns;
    const bool alone = m->lanes->count == 1;
    cl_int status;
    state->b_written = NULL;
    state->b = clCreateBuffer(lane->context, CL_MEM_READ_ONLY | (alone ? CL_MEM_USE_HOST_PTR : 0),
                              bytes, alone ? m->b : NULL, &status);
    cl_check(status, "clCreateBuffer");
    if (!alone)
        cl_check(clEnqueueWriteBuffer(lane->queue, state->b, CL_FALSE, 0, bytes, m->b, 0, NULL,
                                      &state->b_written),
                 "clEnqueueWriteBuffer");
}

static void begin(void *user, struct lane *lane) { give_b(user, lane); }

static void enqueue(void *user, struct lane *lane, size_t index, cl_event *done) {
    struct matmul *m = user;
    struct lane_state *state = &m->lane[lane->index];
    struct task *task = &m->task[index];
    const size_t first = index * m->block, rows = block_rows(m, index);
    const size_t a_bytes = sizeof(float) * rows * m->inner;
    const size_t c_bytes = sizeof(float) * rows * m->columns;
    const size_t global[2] = {m->columns, rows};
    const cl_uint inner = (cl_uint)m->inner, columns = (cl_uint)m->columns;
    cl_event computed;
    cl_int status;

    task->a = clCreateBuffer(lane->context, CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR, a_bytes,
                             m->a + first * m->inner, &status);
    cl_check(status, "clCreateBuffer");
    task->c = clCreateBuffer(lane->context, CL_MEM_WRITE_ONLY | CL_MEM_USE_HOST_PTR, c_bytes,
                             m->c + first * m->columns, &status);
    cl_check(status, "clCreateBuffer");

    kernel_argument(state->kernel, 0, sizeof(cl_mem), &task->a);
    kernel_argument(state->kernel, 1, sizeof(cl_mem), &state->b);
    kernel_argument(state->kernel, 2, sizeof(cl_mem), &task->c);
    kernel_argument(state->kernel, 3, sizeof(inner), &inner);
    kernel_argument(state->kernel, 4, sizeof(columns), &columns);
    cl_check(clEnqueueNDRangeKernel(lane->queue, state->kernel, 2, NULL, global, NULL,
                                    state->b_written ? 1 : 0,
                                    state->b_written ? &state->b_written : NULL, &computed),
             "clEnqueueNDRangeKernel");
    /* The mapping brings the rows into m->c. */
    task->mapped = clEnqueueMapBuffer(lane->queue, task->c, CL_FALSE, CL_MAP_READ, 0, c_bytes, 1,
                                      &computed, done, &status);
    cl_check(status, "clEnqueueMapBuffer");
    cl_check(clReleaseEvent(computed), "clReleaseEvent");
}

static void finish(void *user, struct lane *lane, size_t index) {
    struct matmul *m = user;
    struct task *task = &m->task[index];
    cl_check(clEnqueueUnmapMemObject(lane->queue, task->c, task->mapped, 0, NULL, NULL),
             "clEnqueueUnmapMemObject");
    cl_check(clReleaseMemObject(task->a), "clReleaseMemObject");
    cl_check(clReleaseMemObject(task->c), "clReleaseMemObject");
}

static void end(void *user, struct lane *lane) {
    struct matmul *m = user;
    struct lane_state *state = &m->lane[lane->index];
    if (state->b_written)
        cl_check(clReleaseEvent(state->b_written), "clReleaseEvent");
    cl_check(clReleaseMemObject(state->b), "clReleaseMemObject");
}

/*
 * Lanes that write B to their devices write from memory that their driver has pinned: that is
 * what a buffer over it does, while it is mapped for reading. One lane alone needs none, as its B
 * is such a buffer.
 */
static void pin_b(struct matmul *m) {
    const size_t bytes = sizeof(float) * m->inner * m->columns;
    for (unsigned i = 0; i < m->lanes->count; i++) {
        const struct lane *lane = &m->lanes->lane[i];
        struct lane_state *state = &m->lane[i];
        bool first = m->lanes->count > 1;
        for (unsigned k = 0; k < i; k++)
            first = first && m->lanes->lane[k].context != lane->context;
        state->pinned = NULL;
        if (!first)
            continue;
        cl_int status;
        state->pinned = clCreateBuffer(lane->context, CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR, bytes,
                                       m->b, &status);
        cl_check(status, "clCreateBuffer");
        state->pinned_mapped = clEnqueueMapBuffer(lane->queue, state->pinned, CL_TRUE, CL_MAP_READ,
                                                  0, bytes, 0, NULL, NULL, &status);
        cl_check(status, "clEnqueueMapBuffer");
    }
}

static void unpin_b(struct matmul *m) {
    for (unsigned i = 0; i < m->lanes->count; i++) {
        const struct lane_state *state = &m->lane[i];
        if (!state->pinned)
            continue;
        cl_command_queue queue = m->lanes->lane[i].queue;
        cl_check(clEnqueueUnmapMemObject(queue, state->pinned, state->pinned_mapped, 0, NULL, NULL),
                 "clEnqueueUnmapMemObject");
        cl_check(clFinish(queue), "clFinish");
        cl_check(clReleaseMemObject(state->pinned), "clReleaseMemObject");
    }
}

static double once(void *user) {
    struct matmul *m = user;
    const struct work work = {user, begin, enqueue, finish, end};
    /* NaN everywhere: an element that nobody computes cannot pass the check. */
    memset(m->c, 0xff, sizeof(float) * m->rows * m->columns);
    const double start = now();
    pin_b(m);
    distribute(m->options, m->lanes, m->tasks, &work);
    unpin_b(m);
    return now() - start;
}

/* The same numbers on every machine: a 64-bit linear congruential generator (Knuth). */
static void fill(float *values, size_t count, uint64_t state) {
    for (size_t i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        values[i] = (float)(state >> 40) / (float)(1 << 23) - 1.0f;
    }
}

/*
 * The error of one element relative to what rounding allows: a sum of n products, in whatever
 * order, is off by at most n units of the last place of the sum of their magnitudes.
 */
static double element_error(const struct matmul *m, size_t row, size_t column) {
    double sum = 0, magnitude = 0;
    for (size_t k = 0; k < m->inner; k++) {
        const double product =
            (double)m->a[row * m->inner + k] * (double)m->b[k * m->columns + column];
        sum += product;
        magnitude += fabs(product);
    }
    const double allowed = (double)m->inner * FLT_EPSILON * magnitude + FLT_MIN;
    return fabs((double)m->c[row * m->columns + column] - sum) / allowed;
}

/* Checks all elements, or samples of every block; returns how many were checked. */
static size_t check(const struct matmul *m, double *worst) {
    const size_t elements = m->rows * m->columns;
    size_t samples = CHECK_WORK / m->inner;
    *worst = 0;
    if (samples >= elements)
        samples = elements;
    else if (samples < 4 * m->tasks)
        samples = 4 * m->tasks < elements ? 4 * m->tasks : elements;
    for (size_t i = 0; i < samples; i++) {
        size_t row, column;
        if (samples == elements) {
            row = i / m->columns;
            column = i % m->columns;
        } else {
            /* Every block in turns, its first and last row among those of the first turns. */
            const size_t task = i % m->tasks, turn = i / m->tasks, height = block_rows(m, task);
            row = task * m->block +
                  (turn % 2 == 0 ? turn / 2 : height - 1 - turn / 2 % height) % height;
            column = (i * 2654435761u) % m->columns;
        }
        const double error = element_error(m, row, column);
        if (!(error <= *worst))
            *worst = error;
    }
    return samples;
}

int main(int argc, char **argv) {
    struct common_options options;
    unsigned long rows = 512, inner = 512, columns = 512, block = 64;
    const struct option_entry own[] = {
        {"rows", OPTION_COUNT, &rows, "N", "rows of A and C"},
        {"inner", OPTION_COUNT, &inner, "N", "columns of A, rows of B"},
        {"columns", OPTION_COUNT, &columns, "N", "columns of B and C"},
        {"block", OPTION_COUNT, &block, "N", "rows of A and C in a task"},
    };
    options_parse(argc, argv, "Matrix product in blocks of rows, each a task.", own,
                  sizeof(own) / sizeof(own[0]), &options);
    if (rows == 0 || inner == 0 || columns == 0 || block == 0 || inner > UINT32_MAX ||
        columns > UINT32_MAX)
        die("sizes must be between 1 and %u", UINT32_MAX);

    struct lanes lanes;
    lanes_open(&options, &lanes);
    lanes_build(&lanes, source, "");

    struct matmul m = {.options = &options,
                       .lanes = &lanes,
                       .rows = rows,
                       .inner = inner,
                       .columns = columns,
                       .block = block,
                       .tasks = (rows + block - 1) / block};
    m.a = allocate_pages(sizeof(float) * rows * inner);
    m.b = allocate_pages(sizeof(float) * inner * columns);
    m.c = allocate_pages(sizeof(float) * rows * columns);
    m.task = allocate_zeroed(m.tasks, sizeof(*m.task));
    fill(m.a, rows * inner, 1);
    fill(m.b, inner * columns, 2);
    for (unsigned i = 0; i < lanes.count; i++)
        m.lane[i].kernel = lane_kernel(&lanes.lane[i], "multiply");

    struct measure measured;
    measure(&options, &lanes, once, &m, &measured);

    double worst;
    const size_t checked = check(&m, &worst);
    const bool right = worst <= 1;
    const double flop = 2.0 * (double)rows * (double)inner * (double)columns;
    const double bytes = sizeof(float) * ((double)rows * (double)(inner + columns) +
                                          (double)lanes.count * (double)inner * (double)columns);
    progress(&options, "%.3f GFlop/s; %zu of %zu elements checked: %s\n",
             1e-9 * flop / measured.median, checked, m.rows * m.columns, right ? "right" : "WRONG");

    struct report report;
    report_begin(&report, "matmul", &lanes);
    report_count(&report, "rows", rows);
    report_count(&report, "inner", inner);
    report_count(&report, "columns", columns);
    report_count(&report, "block", block);
    report_count(&report, "task_count", m.tasks);
    report_measure(&report, &measured, flop, "flop", bytes, &lanes);
    report_count(&report, "elements_checked", checked);
    report_real(&report, "error_over_bound", worst);
    report_bool(&report, "right", right);
    report_end(&report, &options);

    measure_free(&measured);
    for (unsigned i = 0; i < lanes.count; i++)
        cl_check(clReleaseKernel(m.lane[i].kernel), "clReleaseKernel");
    lanes_close(&lanes);
    free(m.task);
    free(m.a);
    free(m.b);
    free(m.c);
    return right ? 0 : 1;
}
