/* SPDX-License-Identifier: MIT */
/* Sobel video of Lara-Mongil et al., in three writings: what they share, and the check. */
#include "sobel.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* Pixels of each frame that are checked, at most. */
#define CHECKED ((size_t)1 << 18)

static const char source[] =
#include "sobel_cl.inc"
    ;

void sobel_host_memory_new(struct sobel *sobel) {
    for (size_t i = 0; i < sobel->slots; i++) {
        sobel->input[i] = host_memory_new(&sobel->bench, sobel->bytes);
        sobel->output[i] = host_memory_new(&sobel->bench, sobel->bytes);
    }
}

void sobel_host_memory_free(struct sobel *sobel) {
    for (size_t i = 0; i < sobel->slots; i++) {
        host_memory_free(&sobel->bench, &sobel->input[i]);
        host_memory_free(&sobel->bench, &sobel->output[i]);
    }
}

/* Whole numbers, as a camera gives them, other ones in each slot. */
static void draw_frame(const struct sobel *s, size_t slot) {
    float *frame = s->input[slot].pointer;
    for (size_t y = 0; y < s->height; y++)
        for (size_t x = 0; x < s->width; x++)
            frame[y * s->width + x] =
                (float)((uint32_t)(x * 2654435761u ^ y * 40503u ^ slot * 97u) >> 7 & 255);
}

static double pixel(const struct sobel *s, const float *frame, long x, long y) {
    const long right = (long)s->width - 1, bottom = (long)s->height - 1;
    x = x < 0 ? 0 : x > right ? right : x;
    y = y < 0 ? 0 : y > bottom ? bottom : y;
    return frame[(size_t)y * s->width + (size_t)x];
}

static double expected(const struct sobel *s, const float *frame, long x, long y) {
    double gx = 0, gy = 0;
    for (long i = -1; i <= 1; i++) {
        const long weight = i == 0 ? 2 : 1;
        gx += (double)weight * (pixel(s, frame, x + 1, y + i) - pixel(s, frame, x - 1, y + i));
        gy += (double)weight * (pixel(s, frame, x + i, y + 1) - pixel(s, frame, x + i, y - 1));
    }
    return sqrt(gx * gx + gy * gy);
}

static bool check_slot(const struct sobel *s, size_t slot) {
    const float *frame = s->input[slot].pointer, *result = s->output[slot].pointer;
    const size_t pixels = s->width * s->height, step = pixels / CHECKED + 1;
    for (size_t i = 0; i < pixels; i += step) {
        const double right = expected(s, frame, (long)(i % s->width), (long)(i / s->width));
        /* 3 units in the last place for the root, the sum of squares may be fused or not. */
        if (!(fabs(result[i] - right) <= 8 * FLT_EPSILON * right))
            return false;
    }
    return true;
}

int main(int argc, char **argv) {
    struct sobel s = {.state = NULL};
    unsigned long width = 1024, height = 512, frames = 20, slots = 4, buffers = 2;
    const struct option_entry own[] = {
        {"width", OPTION_COUNT, &width, "N", "of a frame"},
        {"height", OPTION_COUNT, &height, "N", "of a frame"},
        {"frames", OPTION_COUNT, &frames, "N", "of the video"},
        {"slots", OPTION_COUNT, &slots, "N", "frames in host memory, each way"},
        {"buffers", OPTION_COUNT, &buffers, "N", "by-hand: frames on the device, each way"},
    };
    const struct writing *const writings[] = {&sobel_naive, &sobel_blocking, &sobel_by_hand};
    bench_open(&s.bench, argc, argv, "Sobel's filter over the frames of a video.", own,
               sizeof(own) / sizeof(own[0]), writings, 3, source);
    if (!width || !height || !frames || !slots || !buffers || width > INT32_MAX / height)
        die("sizes must be at least 1, and a frame below 2^31 pixels");
    s.width = width;
    s.height = height;
    s.frames = frames;
    s.slots = slots < frames ? slots : frames;
    s.buffers = buffers;
    s.bytes = width * height * sizeof(float);
    s.input = allocate_zeroed(s.slots, sizeof(*s.input));
    s.output = allocate_zeroed(s.slots, sizeof(*s.output));
    s.rows = bench_kernel(&s.bench, "convolve_rows");
    s.smooth = bench_kernel(&s.bench, "smooth_columns");
    s.differ = bench_kernel(&s.bench, "differ_columns");
    s.magnitude = bench_kernel(&s.bench, "magnitude");

    struct measure measured;
    s.bench.writing->open(&s);
    for (size_t i = 0; i < s.slots; i++)
        draw_frame(&s, i);
    bench_measure(&s.bench, &s, &measured);
    bool right = true;
    cl_ulong checksum = 0;
    for (size_t i = 0; i < s.slots; i++) {
        right = right && check_slot(&s, i);
        checksum = bench_checksum(checksum, s.output[i].pointer, s.bytes);
    }
    s.bench.writing->close(&s);

    struct report report;
    bench_report_begin(&report, &s.bench, "sobel");
    report_count(&report, "width", width);
    report_count(&report, "height", height);
    report_count(&report, "frames", frames);
    report_count(&report, "slots", s.slots);
    report_count(&report, "buffers", buffers);
    report_measure(&report, &measured, (double)frames, "frames", 2.0 * (double)(frames * s.bytes),
                   &s.bench.lanes);
    report_count(&report, "checksum", checksum);
    report_bool(&report, "right", right);
    report_end(&report, &s.bench.options);

    measure_free(&measured);
    cl_check(clReleaseKernel(s.rows), "clReleaseKernel");
    cl_check(clReleaseKernel(s.smooth), "clReleaseKernel");
    cl_check(clReleaseKernel(s.differ), "clReleaseKernel");
    cl_check(clReleaseKernel(s.magnitude), "clReleaseKernel");
    free(s.input);
    free(s.output);
    bench_close(&s.bench);
    return right ? 0 : 1;
}
