/* SPDX-License-Identifier: MIT */
/* Images and samplers as arguments of kernels. */
#include "support.h"

enum { W = 24, H = 10, N = W * H };

static const cl_image_format words = {CL_R, CL_UNSIGNED_INT32};
static const size_t start[3] = {0, 0, 0}, whole[3] = {W, H, 1};
static cl_uint in[N], out[N];

static const char source[] =
    "constant sampler_t plain = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE |\n"
    "                           CLK_FILTER_NEAREST;\n"
    "kernel void transposed(read_only image2d_t in, write_only image2d_t out)\n"
    "{\n"
    "    int2 at = (int2)(get_global_id(0), get_global_id(1));\n"
    "    write_imageui(out, at.yx, read_imageui(in, plain, at) + 1);\n"
    "}\n"
    "kernel void to_buffer(read_only image2d_t in, sampler_t sampler, global uint *out, int2 by)\n"
    "{\n"
    "    int2 at = (int2)(get_global_id(0), get_global_id(1));\n"
    "    out[at.y * get_image_width(in) + at.x] = read_imageui(in, sampler, at + by).x;\n"
    "}\n"
    "kernel void blend(read_only image2d_t in, sampler_t sampler, global float *out)\n"
    "{\n"
    "    out[get_global_id(0)] = read_imagef(in, sampler, (float2)(get_global_id(0) * 0.5f, "
    "0.5f)).x;\n"
    "}\n"
    "kernel void volume(read_only image3d_t in, global uint *out)\n"
    "{\n"
    "    int4 at = (int4)(get_global_id(0), get_global_id(1), get_global_id(2), 0);\n"
    "    size_t i = (at.z * get_global_size(1) + at.y) * get_global_size(0) + at.x;\n"
    "    out[i] = read_imageui(in, plain, at).x * 2;\n"
    "}\n"
    "kernel void layers(read_only image2d_array_t in, global uint *out)\n"
    "{\n"
    "    int4 at = (int4)(get_global_id(0), get_global_id(1), get_global_id(2), 0);\n"
    "    size_t i = (at.z * get_global_size(1) + at.y) * get_global_size(0) + at.x;\n"
    "    out[i] = read_imageui(in, plain, at).x + get_image_array_size(in);\n"
    "}\n"
    "kernel void from_line(read_only image1d_buffer_t in, write_only image1d_t out)\n"
    "{\n"
    "    int at = get_global_id(0);\n"
    "    write_imageui(out, at, read_imageui(in, at) * 3);\n"
    "}\n"
    "kernel void from_lines(read_only image1d_buffer_t in, read_only image1d_t more,\n"
    "                       sampler_t sampler, global uint *out)\n"
    "{\n"
    "    int at = get_global_id(0);\n"
    "    out[at] = read_imagei(in, at).x * 7 + read_imagei(more, sampler, at).x;\n"
    "}\n"
    "kernel void add_to_line(write_only image1d_buffer_t out, global const uint *in)\n"
    "{\n"
    "    int at = get_global_id(0);\n"
    "    write_imageui(out, at, (uint4)(in[at] + 5));\n"
    "}\n"
    "kernel void double_it(global uint *data) { data[get_global_id(0)] *= 2; }\n";

#define SKIP_WITHOUT_IMAGES()                                                                      \
    skip_if(!get_info(cl_bool, clGetDeviceInfo, device, CL_DEVICE_IMAGE_SUPPORT), "no images")

static cl_mem make_image(const cl_image_desc *desc, cl_mem_flags flags, void *host) {
    return ck_made(clCreateImage(context, flags, &words, desc, host, &error));
}

static cl_image_desc flat(size_t width, size_t height) {
    return (cl_image_desc){
        .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = width, .image_height = height};
}

static void run(cl_kernel kernel, cl_uint dimensions, const size_t *global) {
    ck_ok(clEnqueueNDRangeKernel(queue, kernel, dimensions, NULL, global, NULL, 0, NULL, NULL));
}

static void set(cl_kernel kernel, cl_uint index, const void *object) {
    ck_ok(clSetKernelArg(kernel, index, sizeof(object), &object));
}

static void number(void) {
    for (cl_uint i = 0; i < N; i++)
        in[i] = i * 7 + 3;
}

/* A chain of kernels, each of which turns the image over: wherever each one runs, data follows. */
START_TEST(passes_from_kernel_to_kernel) {
    enum { ROUNDS = 20 };

    SKIP_WITHOUT_IMAGES();
    number();
    cl_program program = make_program(source);
    cl_kernel kernel = make_kernel(program, "transposed");
    cl_image_desc wide = flat(W, H), tall = flat(H, W);
    cl_mem image[2] = {make_image(&wide, CL_MEM_COPY_HOST_PTR, in),
                       make_image(&tall, CL_MEM_READ_WRITE, NULL)};
    for (int i = 0; i < ROUNDS; i++) {
        set(kernel, 0, image[i % 2]);
        set(kernel, 1, image[(i + 1) % 2]);
        run(kernel, 2, i % 2 ? (const size_t[]){H, W} : whole);
    }
    ck_ok(clEnqueueReadImage(queue, image[0], CL_TRUE, start, whole, 0, 0, out, 0, NULL, NULL));
    for (int i = 0; i < N; i++)
        ck_assert_uint_eq(out[i], in[i] + ROUNDS);
    ck_ok(clReleaseMemObject(image[0]));
    ck_ok(clReleaseMemObject(image[1]));
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(program));
}
END_TEST

/* Many images at once, so that every device gets some. */
START_TEST(many_are_independent) {
    enum { IMAGES = 24 };
    cl_mem image[IMAGES], turned[IMAGES];

    SKIP_WITHOUT_IMAGES();
    number();
    cl_program program = make_program(source);
    cl_kernel kernel = make_kernel(program, "transposed");
    cl_image_desc wide = flat(W, H), tall = flat(H, W);
    for (int i = 0; i < IMAGES; i++) {
        in[0] = (cl_uint)i;
        image[i] = make_image(&wide, CL_MEM_COPY_HOST_PTR, in);
        turned[i] = make_image(&tall, CL_MEM_READ_WRITE, NULL);
        set(kernel, 0, image[i]);
        set(kernel, 1, turned[i]);
        run(kernel, 2, whole);
    }
    for (int i = 0; i < IMAGES; i++) {
        ck_ok(clEnqueueReadImage(queue, turned[i], CL_TRUE, start, (const size_t[]){H, W, 1}, 0, 0,
                                 out, 0, NULL, NULL));
        ck_assert_uint_eq(out[0], i + 1);
        for (int x = 1; x < W; x++)
            ck_assert_uint_eq(out[x * H], in[x] + 1);
        ck_ok(clReleaseMemObject(image[i]));
        ck_ok(clReleaseMemObject(turned[i]));
    }
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(is_read_through_a_sampler) {
    const cl_int by[2] = {-2, 1};
    const cl_addressing_mode modes[] = {CL_ADDRESS_CLAMP, CL_ADDRESS_CLAMP_TO_EDGE};

    SKIP_WITHOUT_IMAGES();
    number();
    cl_program program = make_program(source);
    cl_kernel kernel = make_kernel(program, "to_buffer");
    cl_image_desc desc = flat(W, H);
    cl_mem image = make_image(&desc, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, in);
    cl_mem buffer = make_buffer(0, sizeof(out), NULL);
    bool kept = !excused(POCL, "PoCL 3.1 frees a sampler that a launch still needs");
    for (size_t m = 0; m < COUNT(modes); m++) {
        cl_sampler sampler =
            ck_made(clCreateSampler(context, CL_FALSE, modes[m], CL_FILTER_NEAREST, &error));
        set(kernel, 0, image);
        set(kernel, 1, sampler);
        set(kernel, 2, buffer);
        ck_ok(clSetKernelArg(kernel, 3, sizeof(by), by));
        run(kernel, 2, whole);
        if (kept) /* by the launch */
            ck_ok(clReleaseSampler(sampler));
        read_ints(buffer, (cl_int *)out, N);
        if (!kept)
            ck_ok(clReleaseSampler(sampler));
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++) {
                int xx = x + by[0], yy = y + by[1];
                bool inside = xx >= 0 && yy < H;
                cl_uint edge = in[(yy < H ? yy : H - 1) * W + (xx >= 0 ? xx : 0)];
                cl_uint wanted = inside || modes[m] == CL_ADDRESS_CLAMP_TO_EDGE ? edge : 0;
                ck_assert_msg(out[y * W + x] == wanted, "mode %zu: (%d, %d) is %u, expected %u", m,
                              x, y, out[y * W + x], wanted);
            }
    }
    ck_ok(clReleaseMemObject(image));
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(is_filtered) {
    cl_image_format real = {CL_R, CL_FLOAT};
    const cl_float values[4] = {0, 1, 3, 7};
    cl_float got[8];

    SKIP_WITHOUT_IMAGES();
    cl_program program = make_program(source);
    cl_kernel kernel = make_kernel(program, "blend");
    cl_image_desc desc = flat(4, 1);
    cl_mem image = ck_made(clCreateImage(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, &real,
                                         &desc, (void *)(uintptr_t)values, &error));
    cl_mem buffer = make_buffer(0, sizeof(got), NULL);
    cl_sampler sampler = ck_made(
        clCreateSampler(context, CL_FALSE, CL_ADDRESS_CLAMP_TO_EDGE, CL_FILTER_LINEAR, &error));
    set(kernel, 0, image);
    set(kernel, 1, sampler);
    set(kernel, 2, buffer);
    run(kernel, 1, (const size_t[]){8});
    read_ints(buffer, (cl_int *)got, 8);
    /* At x the neighbours are the pixels whose centres are at ±0.5 around. */
    const cl_float wanted[8] = {0, 0, 0.5f, 1, 2, 3, 5, 7};
    for (int i = 0; i < 8; i++)
        ck_assert_float_eq_tol(got[i], wanted[i], 0.05f);
    ck_ok(clReleaseSampler(sampler));
    ck_ok(clReleaseMemObject(image));
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(has_slices_and_layers) {
    const size_t sizes[3] = {8, 6, 5};

    SKIP_WITHOUT_IMAGES();
    number();
    cl_program program = make_program(source);
    cl_mem buffer = make_buffer(0, sizeof(out), NULL);
    for (int layered = 0; layered < 2; layered++) {
        cl_kernel kernel = make_kernel(program, layered ? "layers" : "volume");
        cl_image_desc desc = {.image_type =
                                  layered ? CL_MEM_OBJECT_IMAGE2D_ARRAY : CL_MEM_OBJECT_IMAGE3D,
                              .image_width = sizes[0],
                              .image_height = sizes[1],
                              .image_depth = sizes[2],
                              .image_array_size = sizes[2]};
        cl_mem image = make_image(&desc, CL_MEM_COPY_HOST_PTR, in);
        set(kernel, 0, image);
        set(kernel, 1, buffer);
        run(kernel, 3, sizes);
        read_ints(buffer, (cl_int *)out, N);
        for (int i = 0; i < N; i++)
            ck_assert_uint_eq(out[i], layered ? in[i] + 5 : in[i] * 2);
        ck_ok(clReleaseMemObject(image));
        ck_ok(clReleaseKernel(kernel));
    }
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseProgram(program));
}
END_TEST

/* A buffer, and the image over it, in turn written and read by kernels. */
START_TEST(over_a_buffer) {
    SKIP_WITHOUT_IMAGES();
    number();
    cl_program program = make_program(source);
    cl_kernel read = make_kernel(program, "from_line"), add = make_kernel(program, "add_to_line");
    cl_kernel twice = make_kernel(program, "double_it");
    cl_mem buffer = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(in), in);
    cl_mem more = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(in), in);
    cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER,
                          .image_width = N,
                          .buffer = buffer},
                  line = {.image_type = CL_MEM_OBJECT_IMAGE1D, .image_width = N};
    cl_mem over = make_image(&desc, 0, NULL), target = make_image(&line, 0, NULL);
    const size_t all[3] = {N, 1, 1};

    set(twice, 0, buffer);
    run(twice, 1, all);
    set(read, 0, over);
    set(read, 1, target);
    run(read, 1, all);
    ck_ok(clEnqueueReadImage(queue, target, CL_TRUE, start, all, 0, 0, out, 0, NULL, NULL));
    for (int i = 0; i < N; i++)
        ck_assert_uint_eq(out[i], in[i] * 6);
    set(add, 0, over);
    set(add, 1, more);
    run(add, 1, all);
    run(twice, 1, all);
    read_ints(buffer, (cl_int *)out, N);
    for (int i = 0; i < N; i++)
        ck_assert_uint_eq(out[i], (in[i] + 5) * 2);
    ck_ok(clReleaseMemObject(over));
    ck_ok(clReleaseMemObject(target));
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseMemObject(more));
    ck_ok(clReleaseKernel(read));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseKernel(twice));
    ck_ok(clReleaseProgram(program));
}
END_TEST

/* The images may not be there yet when the read comes: it waits for the kernel that waits for them.
 */
START_TEST(over_a_buffer_of_its_own) {
    SKIP_WITHOUT_IMAGES();
    const cl_image_format bytes = {CL_RGBA, CL_SIGNED_INT8};
    cl_program program = make_program(source);
    cl_command_queue plain = make_queue(0); /* what is profiled goes by StarPU */
    cl_kernel kernel = make_kernel(program, "from_lines");
    cl_sampler sampler =
        ck_made(clCreateSampler(context, CL_FALSE, CL_ADDRESS_NONE, CL_FILTER_NEAREST, &error));

    for (int round = 0; round < 200; round++) {
        size_t width = 8 + (size_t)round % (N - 8), size = width * sizeof(cl_int);
        signed char values[4 * N];
        for (size_t i = 0; i < 4 * width; i++)
            values[i] = (signed char)(i + (size_t)round);
        cl_mem buffer = make_buffer(CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, 4 * width, values);
        cl_mem result = make_buffer(0, size, NULL);
        cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = width};
        cl_image_desc line = {.image_type = CL_MEM_OBJECT_IMAGE1D, .image_width = width};
        desc.buffer = buffer;
        cl_mem over =
            ck_made(clCreateImage(context, CL_MEM_READ_ONLY, &bytes, &desc, NULL, &error));
        cl_mem more = ck_made(clCreateImage(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                                            &bytes, &line, values, &error));

        memset(out, 0xff, sizeof(out));
        ck_ok(clEnqueueWriteBuffer(plain, result, CL_TRUE, 0, size, out, 0, NULL, NULL));
        set(kernel, 0, over);
        set(kernel, 1, more);
        ck_ok(clSetKernelArg(kernel, 2, sizeof(sampler), &sampler));
        set(kernel, 3, result);
        ck_ok(clEnqueueNDRangeKernel(plain, kernel, 1, NULL, &width, NULL, 0, NULL, NULL));
        ck_ok(clEnqueueReadBuffer(plain, result, CL_TRUE, 0, size, out, 0, NULL, NULL));
        for (size_t i = 0; i < width; i++)
            ck_assert_msg((cl_int)out[i] == values[4 * i] * 8, "round %d: %d at %zu", round,
                          (cl_int)out[i], i);
        ck_ok(clReleaseMemObject(over));
        ck_ok(clReleaseMemObject(more));
        ck_ok(clReleaseMemObject(result));
        ck_ok(clReleaseMemObject(buffer));
    }
    ck_ok(clReleaseCommandQueue(plain));
    ck_ok(clReleaseSampler(sampler));
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(program));
}
END_TEST

/* After a kernel the newest bytes are on some device: what the host does must reach them there. */
START_TEST(is_changed_by_the_host_after_a_kernel) {
    const size_t origin[3] = {3, 2, 0}, region[3] = {5, 4, 1};
    const cl_uint color[4] = {424242, 0, 0, 0};
    size_t row;

    SKIP_WITHOUT_IMAGES();
    number();
    cl_program program = make_program(source);
    cl_kernel kernel = make_kernel(program, "transposed");
    cl_image_desc wide = flat(W, H), tall = flat(H, W);
    cl_mem image = make_image(&tall, CL_MEM_COPY_HOST_PTR, in), turned = make_image(&wide, 0, NULL);
    set(kernel, 0, image);
    set(kernel, 1, turned);
    run(kernel, 2, (const size_t[]){H, W});
    ck_ok(clEnqueueFillImage(queue, turned, color, origin, region, 0, NULL, NULL));
    cl_uint *mapped =
        ck_made(clEnqueueMapImage(queue, turned, CL_TRUE, CL_MAP_WRITE, (const size_t[]){0, 8, 0},
                                  (const size_t[]){W, 2, 1}, &row, NULL, 0, NULL, NULL, &error));
    ck_assert_uint_eq(mapped[1], in[H + 8] + 1);
    mapped[row / sizeof(cl_uint)] = 31;
    ck_ok(clEnqueueUnmapMemObject(queue, turned, mapped, 0, NULL, NULL));
    set(kernel, 0, turned);
    set(kernel, 1, image);
    run(kernel, 2, whole);
    ck_ok(clEnqueueReadImage(queue, image, CL_TRUE, start, (const size_t[]){H, W, 1}, 0, 0, out, 0,
                             NULL, NULL));
    for (int x = 0; x < W; x++)
        for (int y = 0; y < H; y++) {
            bool filled = x >= 3 && x < 8 && y >= 2 && y < 6;
            cl_uint wanted = filled ? color[0] + 1 : x == 0 && y == 9 ? 32 : in[x * H + y] + 2;
            ck_assert_msg(out[x * H + y] == wanted, "(%d, %d) is %u, expected %u", x, y,
                          out[x * H + y], wanted);
        }
    ck_ok(clReleaseMemObject(image));
    ck_ok(clReleaseMemObject(turned));
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(refuses_bad_arguments) {
    SKIP_WITHOUT_IMAGES();
    cl_program program = make_program(source);
    cl_kernel kernel = make_kernel(program, "to_buffer");
    cl_image_desc deep = {
        .image_type = CL_MEM_OBJECT_IMAGE3D, .image_width = 4, .image_height = 4, .image_depth = 4};
    cl_image_desc desc = flat(4, 4);
    cl_mem image = make_image(&desc, 0, NULL), volume = make_image(&deep, 0, NULL);
    cl_mem buffer = make_buffer(0, 64, NULL), none = NULL;
    cl_sampler no_sampler = NULL;

    ck_assert_cl(clSetKernelArg(kernel, 0, sizeof(cl_mem) + 1, &image), CL_INVALID_ARG_SIZE);
    if (!excused(POCL, "takes any memory object for any other")) {
        ck_assert_cl(clSetKernelArg(kernel, 0, sizeof(cl_mem), &buffer), CL_INVALID_MEM_OBJECT);
        ck_assert_cl(clSetKernelArg(kernel, 0, sizeof(cl_mem), &volume), CL_INVALID_MEM_OBJECT);
        ck_assert_cl(clSetKernelArg(kernel, 2, sizeof(cl_mem), &image), CL_INVALID_MEM_OBJECT);
        ck_assert_cl(clSetKernelArg(kernel, 0, sizeof(cl_mem), &none), CL_INVALID_MEM_OBJECT);
        ck_assert_cl(clSetKernelArg(kernel, 1, sizeof(cl_sampler), &no_sampler),
                     CL_INVALID_SAMPLER);
    }
    set(kernel, 0, image);
    ck_ok(clReleaseMemObject(image));
    ck_ok(clReleaseMemObject(volume));
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(sampler_tells_what_it_is) {
    SKIP_WITHOUT_IMAGES();
    cl_sampler sampler = ck_made(
        clCreateSampler(context, CL_TRUE, CL_ADDRESS_MIRRORED_REPEAT, CL_FILTER_LINEAR, &error));
    ck_assert_uint_eq(get_info(cl_uint, clGetSamplerInfo, sampler, CL_SAMPLER_REFERENCE_COUNT), 1);
    ck_ok(clRetainSampler(sampler));
    ck_assert_uint_eq(get_info(cl_uint, clGetSamplerInfo, sampler, CL_SAMPLER_REFERENCE_COUNT), 2);
    ck_ok(clReleaseSampler(sampler));
    ck_assert_ptr_eq(get_info(cl_context, clGetSamplerInfo, sampler, CL_SAMPLER_CONTEXT), context);
    ck_assert_uint_eq(get_info(cl_bool, clGetSamplerInfo, sampler, CL_SAMPLER_NORMALIZED_COORDS),
                      CL_TRUE);
    ck_assert_uint_eq(
        get_info(cl_addressing_mode, clGetSamplerInfo, sampler, CL_SAMPLER_ADDRESSING_MODE),
        CL_ADDRESS_MIRRORED_REPEAT);
    ck_assert_uint_eq(get_info(cl_filter_mode, clGetSamplerInfo, sampler, CL_SAMPLER_FILTER_MODE),
                      CL_FILTER_LINEAR);
    check_info_rules(clGetSamplerInfo, sampler, CL_SAMPLER_FILTER_MODE);
    ck_ok(clReleaseSampler(sampler));
    ck_refused(clCreateSampler(NULL, CL_TRUE, CL_ADDRESS_NONE, CL_FILTER_LINEAR, &error),
               CL_INVALID_CONTEXT);
    if (!excused(POCL, "takes any number for a mode")) {
        ck_refused(clCreateSampler(context, CL_TRUE, 0x1234, CL_FILTER_LINEAR, &error),
                   CL_INVALID_VALUE);
        ck_refused(clCreateSampler(context, CL_TRUE, CL_ADDRESS_NONE, 0x1234, &error),
                   CL_INVALID_VALUE);
    }
    ck_assert_cl(clRetainSampler(NULL), CL_INVALID_SAMPLER);
    ck_assert_cl(clReleaseSampler(NULL), CL_INVALID_SAMPLER);
    if (!excused(POCL, "asks a sampler that is none"))
        ck_assert_cl(clGetSamplerInfo(NULL, CL_SAMPLER_FILTER_MODE, 0, NULL, NULL),
                     CL_INVALID_SAMPLER);
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        passes_from_kernel_to_kernel, many_are_independent,
        is_read_through_a_sampler,    is_filtered,
        has_slices_and_layers,        over_a_buffer,
        over_a_buffer_of_its_own,     is_changed_by_the_host_after_a_kernel,
        refuses_bad_arguments,        sampler_tells_what_it_is,
    };

    return test_main(argc, argv, tests, COUNT(tests));
}
