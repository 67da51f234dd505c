/* SPDX-License-Identifier: MIT */

/*
 * Adaptive mesh refinement, as in the evaluation of SOCL (Henry, Denis, Barthou, TSI 2012, section
 * 4.1): work whose amount and grain are only known while it runs. By default a real solver, a blast
 * wave on a quadtree of patches; with --passes the paper's block workloads, which it only
 * extrapolated.
 */

#include "blocks.h"
#include "image.h"
#include "picture.h"
#include "report.h"

#include <math.h>
#include <string.h>

#define ROUNDING 1e-11 /* relative change of a total over all steps */
#define ASYMMETRY 1e-9 /* limiters amplify rounding errors */
#define PICTURE_PIXELS 768

struct run {
    const struct solver *solver;
    struct solution solution;
    bool solved;
};

static double once(void *user) {
    struct run *run = user;
    if (run->solved)
        solution_free(&run->solution);
    solver_run(run->solver, &run->solution);
    run->solved = true;
    return run->solution.seconds;
}

/*
 * The error against a uniform grid of the finest level, for each depth from the coarsest on; true
 * when it falls from each to the next.
 */
static bool check_errors(const struct solver *solver, const struct solution *deepest,
                         double error[MAX_LEVEL + 1], unsigned *count) {
    struct solver uniform = *solver, shallow = *solver;
    struct solution reference, solution;
    bool falls = true;
    *count = 0;
    uniform.coarsest = solver->deepest;
    progress(solver->options, "uniform grid of level %u, to compare with\n", solver->deepest);
    solver_run(&uniform, &reference);
    for (unsigned depth = solver->coarsest; depth <= solver->deepest; depth++) {
        if (depth < solver->deepest) {
            shallow.deepest = depth;
            solver_run(&shallow, &solution);
            error[*count] = solution_error(&solution, &reference);
            solution_free(&solution);
        } else {
            error[*count] = solution_error(deepest, &reference);
        }
        progress(solver->options, "depth %u: mean error of density %g\n", depth, error[*count]);
        if (*count > 0 && !(error[*count] < error[*count - 1]))
            falls = false;
        (*count)++;
    }
    solution_free(&reference);
    return falls;
}

static double change(const double total[2]) { return fabs(total[1] - total[0]) / fabs(total[0]); }

static double finest_cells(const struct solution *solution) {
    return pow((double)((size_t)solution->tree.n << solution->tree.max_level), 2);
}

static bool solve(const struct solver *solver, bool compare, const char *image) {
    struct run run = {.solver = solver};
    struct measure measured;
    measure(solver->options, solver->lanes, once, &run, &measured);
    const struct solution *solution = &run.solution;
    const double n = solver->n, cell_steps = solution->patch_steps * n * n;
    const double padded = n + 2 * GHOSTS;
    const double bytes =
        solution->patch_steps *
        (sizeof(struct cell) * (2 * padded * padded + SIDES * n) + sizeof(double) * 2 * n);

    const double mass = change(solution->mass), energy = change(solution->energy);
    const double asymmetry = solution_asymmetry(solution);
    double error[MAX_LEVEL + 1];
    unsigned errors = 0;
    bool right = mass <= ROUNDING && energy <= ROUNDING && asymmetry <= ASYMMETRY;
    if (compare && !check_errors(solver, solution, error, &errors))
        right = false;
    progress(solver->options,
             "%lu steps, %zu patches at the end, %.3f M cells/s; change of mass %g, of energy %g, "
             "asymmetry %g: %s\n",
             solution->steps, solution->tree.leaves, 1e-6 * cell_steps / measured.median, mass,
             energy, asymmetry, right ? "right" : "WRONG");
    if (image)
        picture_write(&solution->tree, PICTURE_PIXELS, image);

    struct report report;
    report_begin(&report, "amr-solver", solver->lanes);
    report_count(&report, "patch_cells", solver->n);
    report_count(&report, "coarsest", solver->coarsest);
    report_count(&report, "deepest", solver->deepest);
    report_real(&report, "end_time", solver->end_time);
    report_count(&report, "steps", solution->steps);
    report_real(&report, "patch_steps", solution->patch_steps);
    report_count(&report, "patches_at_end", solution->tree.leaves);
    report_real(&report, "cells_saved",
                1 - cell_steps / ((double)solution->steps * finest_cells(solution)));
    report_measure(&report, &measured, cell_steps, "cell", bytes, solver->lanes);
    report_real(&report, "mass_change", mass);
    report_real(&report, "energy_change", energy);
    report_real(&report, "asymmetry", asymmetry);
    if (errors > 0)
        report_reals(&report, "errors_by_depth", error, errors);
    report_bool(&report, "right", right);
    report_end(&report, solver->options);
    measure_free(&measured);
    solution_free(&run.solution);
    return right;
}

int main(int argc, char **argv) {
    struct common_options options;
    const char *passes_text = NULL, *image = NULL;
    unsigned long n = 8, coarsest = 1, deepest = 4, interval = 4, steps = 10;
    double end_time = 0.125, refine_above = 0.05, coarsen_below = 0.02;
    bool no_compare = false;
    const struct option_entry own[] = {
        {"passes", OPTION_TEXT, &passes_text, "LIST",
         "blocks instead of the solver: 100x5000000,30x2500000 are passes of COUNTxBYTES"},
        {"steps", OPTION_COUNT, &steps, "N", "with --passes: time steps on a block, even"},
        {"patch", OPTION_COUNT, &n, "N", "cells along a patch's side, even"},
        {"coarsest", OPTION_COUNT, &coarsest, "LEVEL", "no patch is coarser"},
        {"deepest", OPTION_COUNT, &deepest, "LEVEL", "no patch is finer"},
        {"end-time", OPTION_REAL, &end_time, "T", "of the simulation"},
        {"refine-above", OPTION_REAL, &refine_above, "X",
         "relative change of density between cells that refines"},
        {"coarsen-below", OPTION_REAL, &coarsen_below, "X", "and that coarsens"},
        {"regrid", OPTION_COUNT, &interval, "N", "time steps between refinements"},
        {"no-compare", OPTION_FLAG, &no_compare, NULL, "skip the comparison with a uniform grid"},
        {"image", OPTION_TEXT, &image, "FILE", "write the density and the patches as a PNG file"},
    };
    options_parse(argc, argv,
                  "A blast wave by adaptive mesh refinement; each patch and step is a task.", own,
                  sizeof(own) / sizeof(own[0]), &options);
    struct pass pass[MAX_PASSES];
    unsigned passes = 0;
    if (passes_text && (passes = passes_parse(passes_text, pass)) == 0)
        die("--passes needs at most %d of COUNTxBYTES, with commas", MAX_PASSES);
    if (n < 8 || n % 2 != 0 || n > 4096)
        die("--patch must be even, from 8 to 4096");
    if (coarsest > deepest || deepest > MAX_LEVEL)
        die("levels must rise from coarsest to deepest, at most to %d", MAX_LEVEL);
    if (interval == 0 || steps == 0 || steps % 2 != 0)
        die("--regrid must be at least 1, --steps even and at least 2");
    if (!(end_time > 0) || !(coarsen_below < refine_above))
        die("--end-time must be above 0, --coarsen-below below --refine-above");
    if (image && !image_supported())
        die("this build cannot write pictures (configure found no libpng-dev)");

    struct lanes lanes;
    struct solver solver;
    lanes_open(&options, &lanes);
    solver_open(&solver, &lanes, &options);
    solver.n = (unsigned)n;
    solver.coarsest = (unsigned)coarsest;
    solver.deepest = (unsigned)deepest;
    solver.end_time = end_time;
    solver.refine_above = refine_above;
    solver.coarsen_below = coarsen_below;
    solver.regrid_interval = interval;
    const bool right =
        passes > 0 ? blocks_run(&solver, pass, passes, steps) : solve(&solver, !no_compare, image);
    solver_close(&solver);
    lanes_close(&lanes);
    return right ? 0 : 1;
}
