/* SPDX-License-Identifier: MIT */
#include "support.h"

/* Every kind of image, its sizes normalised: layers of a 1D array are rows, of a 2D array slices.
 */
struct kind {
    cl_mem_object_type type;
    size_t size[3];
};
static const struct kind kinds[] = {
    {CL_MEM_OBJECT_IMAGE1D, {37, 1, 1}},  {CL_MEM_OBJECT_IMAGE1D_ARRAY, {19, 5, 1}},
    {CL_MEM_OBJECT_IMAGE2D, {23, 11, 1}}, {CL_MEM_OBJECT_IMAGE2D_ARRAY, {13, 7, 3}},
    {CL_MEM_OBJECT_IMAGE3D, {9, 6, 5}},   {CL_MEM_OBJECT_IMAGE1D_BUFFER, {41, 1, 1}},
};

static const cl_image_format rgba8 = {CL_RGBA, CL_UNSIGNED_INT8};
enum { PIXEL = 4, MOST = 4096 };

static unsigned char content[MOST], seen[MOST];

#define SKIP_WITHOUT_IMAGES()                                                                      \
    skip_if(!get_info(cl_bool, clGetDeviceInfo, device, CL_DEVICE_IMAGE_SUPPORT), "no images")

static cl_image_desc describe(const struct kind *kind) {
    cl_image_desc desc = {.image_type = kind->type, .image_width = kind->size[0]};
    if (kind->type == CL_MEM_OBJECT_IMAGE1D_ARRAY)
        desc.image_array_size = kind->size[1];
    else
        desc.image_height = kind->size[1];
    if (kind->type == CL_MEM_OBJECT_IMAGE2D_ARRAY)
        desc.image_array_size = kind->size[2];
    else
        desc.image_depth = kind->size[2];
    return desc;
}

static size_t pixels(const struct kind *kind) {
    return kind->size[0] * kind->size[1] * kind->size[2];
}

static void invent_content(unsigned seed) {
    for (size_t i = 0; i < MOST; i++)
        content[i] = (unsigned char)(seed = seed * 1103515245 + 12345, seed >> 16);
}

/* An image of four bytes a pixel; with its buffer, which the caller releases too, if it has one. */
static cl_mem make_image(const struct kind *kind, cl_mem_flags flags, void *host, cl_mem *buffer) {
    cl_image_desc desc = describe(kind);
    *buffer = NULL;
    if (kind->type == CL_MEM_OBJECT_IMAGE1D_BUFFER) {
        desc.buffer = *buffer = make_buffer(flags, kind->size[0] * PIXEL, host);
        return ck_made(clCreateImage(context, 0, &rgba8, &desc, NULL, &error));
    }
    return ck_made(clCreateImage(context, flags, &rgba8, &desc, host, &error));
}

static void release(cl_mem image, cl_mem buffer) {
    ck_ok(clReleaseMemObject(image));
    if (buffer)
        ck_ok(clReleaseMemObject(buffer));
}

static const size_t start[3] = {0, 0, 0};

static void read_all(cl_mem image, const struct kind *kind, void *to) {
    ck_ok(clEnqueueReadImage(queue, image, CL_TRUE, start, kind->size, 0, 0, to, 0, NULL, NULL));
}

static void check_content(cl_mem image, const struct kind *kind) {
    read_all(image, kind, seen);
    for (size_t i = 0; i < pixels(kind) * PIXEL; i++)
        ck_assert_msg(seen[i] == content[i], "type %x: byte %zu is %u, expected %u", kind->type, i,
                      seen[i], content[i]);
}

START_TEST(tells_what_it_is) {
    SKIP_WITHOUT_IMAGES();
    for (size_t k = 0; k < COUNT(kinds); k++) {
        const struct kind *kind = &kinds[k];
        cl_mem buffer, image = make_image(kind, CL_MEM_READ_WRITE, NULL, &buffer);
        bool height = kind->type == CL_MEM_OBJECT_IMAGE2D ||
                      kind->type == CL_MEM_OBJECT_IMAGE2D_ARRAY ||
                      kind->type == CL_MEM_OBJECT_IMAGE3D;
        cl_image_desc desc = describe(kind);

        ck_assert_uint_eq(get_info(cl_mem_object_type, clGetMemObjectInfo, image, CL_MEM_TYPE),
                          kind->type);
        ck_assert_uint_ge(get_info(size_t, clGetMemObjectInfo, image, CL_MEM_SIZE),
                          pixels(kind) * PIXEL);
        ck_assert_ptr_eq(get_info(cl_mem, clGetMemObjectInfo, image, CL_MEM_ASSOCIATED_MEMOBJECT),
                         buffer);
        ck_assert_uint_eq(get_info(size_t, clGetImageInfo, image, CL_IMAGE_ELEMENT_SIZE), PIXEL);
        ck_assert_uint_eq(get_info(size_t, clGetImageInfo, image, CL_IMAGE_WIDTH), kind->size[0]);
        ck_assert_uint_eq(get_info(size_t, clGetImageInfo, image, CL_IMAGE_HEIGHT),
                          height ? kind->size[1] : 0);
        ck_assert_uint_eq(get_info(size_t, clGetImageInfo, image, CL_IMAGE_DEPTH),
                          kind->type == CL_MEM_OBJECT_IMAGE3D ? kind->size[2] : 0);
        ck_assert_uint_eq(get_info(size_t, clGetImageInfo, image, CL_IMAGE_ARRAY_SIZE),
                          desc.image_array_size);
        ck_assert_uint_eq(get_info(size_t, clGetImageInfo, image, CL_IMAGE_ROW_PITCH),
                          kind->size[0] * PIXEL);
        ck_assert_ptr_eq(get_info(cl_mem, clGetImageInfo, image, CL_IMAGE_BUFFER), buffer);
        ck_assert_uint_eq(get_info(cl_uint, clGetImageInfo, image, CL_IMAGE_NUM_SAMPLES), 0);
        cl_image_format format = get_info(cl_image_format, clGetImageInfo, image, CL_IMAGE_FORMAT);
        ck_assert_mem_eq(&format, &rgba8, sizeof(format));
        check_info_rules(clGetImageInfo, image, CL_IMAGE_WIDTH);
        release(image, buffer);
    }
}
END_TEST

START_TEST(lists_formats) {
    SKIP_WITHOUT_IMAGES();
    for (size_t k = 0; k < COUNT(kinds); k++) {
        cl_image_format formats[256];
        cl_uint count = 0;

        ck_ok(
            clGetSupportedImageFormats(context, CL_MEM_READ_WRITE, kinds[k].type, 0, NULL, &count));
        ck_assert_uint_gt(count, 0);
        ck_assert_uint_le(count, COUNT(formats));
        ck_ok(clGetSupportedImageFormats(context, CL_MEM_READ_WRITE, kinds[k].type, count, formats,
                                         NULL));
        bool found = false;
        for (cl_uint i = 0; i < count; i++)
            found = found || memcmp(&formats[i], &rgba8, sizeof(rgba8)) == 0;
        ck_assert(found);
    }
    cl_uint count;
    cl_image_format one;
    ck_assert_cl(
        clGetSupportedImageFormats(NULL, CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D, 0, NULL, &count),
        CL_INVALID_CONTEXT);
    if (!excused(POCL, "takes flags that exclude each other"))
        ck_assert_cl(clGetSupportedImageFormats(context, CL_MEM_READ_WRITE | CL_MEM_READ_ONLY,
                                                CL_MEM_OBJECT_IMAGE2D, 0, NULL, &count),
                     CL_INVALID_VALUE);
    ck_assert_cl(clGetSupportedImageFormats(context, CL_MEM_READ_WRITE, CL_MEM_OBJECT_BUFFER, 0,
                                            NULL, &count),
                 CL_INVALID_VALUE);
    ck_assert_cl(clGetSupportedImageFormats(context, CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D, 0,
                                            &one, &count),
                 CL_INVALID_VALUE);
}
END_TEST

START_TEST(copies_what_it_is_made_from) {
    SKIP_WITHOUT_IMAGES();
    for (size_t k = 0; k < COUNT(kinds); k++) {
        cl_mem buffer;
        invent_content((unsigned)k);
        unsigned char *host = malloc(sizeof(content));
        memcpy(host, content, sizeof(content));
        cl_mem image = make_image(&kinds[k], CL_MEM_COPY_HOST_PTR, host, &buffer);
        memset(host, 0, sizeof(content));
        check_content(image, &kinds[k]);
        release(image, buffer);
        free(host);
    }
}
END_TEST

/* Writes a part from memory with padding, and reads another one back the same way. */
START_TEST(transfers_parts_with_pitches) {
    SKIP_WITHOUT_IMAGES();
    for (size_t k = 0; k < COUNT(kinds); k++) {
        const struct kind *kind = &kinds[k];
        bool layered_rows = kind->type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
        bool slices = layered_rows || kind->size[2] > 1;
        size_t origin[3], region[3];
        static unsigned char host[2 * MOST], back[2 * MOST];
        cl_mem buffer;

        if (layered_rows && excused(POCL, "takes the row pitch of 1D arrays for the slice pitch"))
            continue;
        invent_content((unsigned)k);
        cl_mem image = make_image(kind, CL_MEM_COPY_HOST_PTR, content, &buffer);
        for (int i = 0; i < 3; i++) {
            origin[i] = kind->size[i] > 1 ? 1 : 0;
            region[i] = kind->size[i] > 1 ? kind->size[i] - 2 : 1;
        }
        size_t row = (region[0] + 3) * PIXEL, slice = row * (layered_rows ? 2 : region[1] + 1);
        for (size_t i = 0; i < sizeof(host); i++)
            host[i] = (unsigned char)(i * 7 + k);
        ck_ok(clEnqueueWriteImage(queue, image, CL_TRUE, origin, region, row, slices ? slice : 0,
                                  host, 0, NULL, NULL));
        size_t host_row = layered_rows ? slice : row; /* layers are rows */
        for (size_t z = 0; z < region[2]; z++)
            for (size_t y = 0; y < region[1]; y++)
                memcpy(content +
                           (((z + origin[2]) * kind->size[1] + y + origin[1]) * kind->size[0] +
                            origin[0]) *
                               PIXEL,
                       host + z * slice + y * host_row, region[0] * PIXEL);
        check_content(image, kind);
        memset(back, 0xaa, sizeof(back));
        ck_ok(clEnqueueReadImage(queue, image, CL_TRUE, origin, region, row, slices ? slice : 0,
                                 back, 0, NULL, NULL));
        for (size_t i = 0; i < sizeof(back); i++) {
            size_t z = slices && !layered_rows ? i / slice : 0, y = i % slice / host_row;
            if (layered_rows)
                y = i / slice;
            size_t x = i - z * slice - y * host_row;
            bool inside = z < region[2] && y < region[1] && x < region[0] * PIXEL;
            unsigned char wanted = inside ? host[i] : 0xaa;
            ck_assert_msg(back[i] == wanted, "type %x: byte %zu is %u, expected %u", kind->type, i,
                          back[i], wanted);
        }
        release(image, buffer);
    }
}
END_TEST

START_TEST(works_in_the_programs_memory) {
    enum { W = 10, H = 6, ROW = 16 * PIXEL };
    static _Alignas(128) unsigned char host[ROW * H];
    const cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D,
                                .image_width = W,
                                .image_height = H,
                                .image_row_pitch = ROW};
    const size_t whole[3] = {W, H, 1}, origin[3] = {2, 3, 0}, region[3] = {4, 2, 1};
    size_t row, slice = 1;

    SKIP_WITHOUT_IMAGES();
    for (size_t i = 0; i < sizeof(host); i++)
        host[i] = (unsigned char)i;
    cl_mem image =
        ck_made(clCreateImage(context, CL_MEM_USE_HOST_PTR, &rgba8, &desc, host, &error));
    ck_assert_ptr_eq(get_info(void *, clGetMemObjectInfo, image, CL_MEM_HOST_PTR), host);
    ck_assert_uint_eq(get_info(size_t, clGetImageInfo, image, CL_IMAGE_ROW_PITCH), ROW);
    const cl_uint color[4] = {1, 2, 3, 4};
    ck_ok(clEnqueueFillImage(queue, image, color, origin, region, 0, NULL, NULL));
    unsigned char *mapped =
        ck_made(clEnqueueMapImage(queue, image, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, start, whole,
                                  &row, &slice, 0, NULL, NULL, &error));
    ck_assert_ptr_eq(mapped, host);
    ck_assert_uint_eq(row, ROW);
    ck_assert_uint_eq(slice, 0);
    for (size_t i = 0; i < sizeof(host); i++) {
        size_t x = i % ROW / PIXEL, y = i / ROW;
        bool filled = x >= 2 && x < 6 && y >= 3 && y < 5;
        ck_assert_uint_eq(host[i], filled ? i % PIXEL + 1 : (unsigned char)i);
    }
    mapped[ROW + PIXEL] = 77;
    ck_ok(clEnqueueUnmapMemObject(queue, image, mapped, 0, NULL, NULL));
    read_all(image, &(struct kind){CL_MEM_OBJECT_IMAGE2D, {W, H, 1}}, seen);
    ck_assert_uint_eq(seen[(W + 1) * PIXEL], 77);
    ck_ok(clReleaseMemObject(image));
}
END_TEST

START_TEST(copies_between_kinds) {
    SKIP_WITHOUT_IMAGES();
    skip_on(POCL, "refuses to copy between some kinds");
    for (size_t a = 0; a < COUNT(kinds); a++)
        for (size_t b = 0; b < COUNT(kinds); b++) {
            const struct kind *from = &kinds[a], *to = &kinds[b];
            cl_mem source_buffer, target_buffer;
            size_t region[3], source_origin[3], target_origin[3];
            unsigned char source_bytes[MOST];

            invent_content((unsigned)(10 * a + b));
            memcpy(source_bytes, content, sizeof(source_bytes));
            cl_mem source = make_image(from, CL_MEM_COPY_HOST_PTR, content, &source_buffer);
            invent_content(99);
            cl_mem target = make_image(to, CL_MEM_COPY_HOST_PTR, content, &target_buffer);
            for (int i = 0; i < 3; i++) {
                region[i] = from->size[i] < to->size[i] ? from->size[i] : to->size[i];
                region[i] = region[i] > 2 ? region[i] - 1 : region[i];
                source_origin[i] = from->size[i] - region[i];
                target_origin[i] = (to->size[i] - region[i]) / 2;
            }
            ck_ok(clEnqueueCopyImage(queue, source, target, source_origin, target_origin, region, 0,
                                     NULL, NULL));
            for (size_t z = 0; z < region[2]; z++)
                for (size_t y = 0; y < region[1]; y++)
                    memcpy(content +
                               (((z + target_origin[2]) * to->size[1] + y + target_origin[1]) *
                                    to->size[0] +
                                target_origin[0]) *
                                   PIXEL,
                           source_bytes +
                               (((z + source_origin[2]) * from->size[1] + y + source_origin[1]) *
                                    from->size[0] +
                                source_origin[0]) *
                                   PIXEL,
                           region[0] * PIXEL);
            check_content(target, to);
            release(source, source_buffer);
            release(target, target_buffer);
        }
}
END_TEST

START_TEST(copies_to_and_from_buffers) {
    SKIP_WITHOUT_IMAGES();
    skip_on(POCL, "crashes on the way from an image over a buffer to another buffer");
    for (size_t k = 0; k < COUNT(kinds); k++) {
        const struct kind *kind = &kinds[k];
        size_t bytes = pixels(kind) * PIXEL;
        cl_mem below, image = make_image(kind, 0, NULL, &below);

        invent_content((unsigned)k);
        cl_mem buffer = make_buffer(CL_MEM_COPY_HOST_PTR, bytes + 8, content);
        ck_ok(
            clEnqueueCopyBufferToImage(queue, buffer, image, 8, start, kind->size, 0, NULL, NULL));
        ck_ok(
            clEnqueueCopyImageToBuffer(queue, image, buffer, start, kind->size, 4, 0, NULL, NULL));
        ck_ok(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, bytes + 8, seen, 0, NULL, NULL));
        ck_assert_mem_eq(seen, content, 4);
        ck_assert_mem_eq(seen + 4, content + 8, bytes);
        ck_assert_mem_eq(seen + 4 + bytes, content + 4 + bytes, 4);
        ck_assert_cl(
            clEnqueueCopyImageToBuffer(queue, image, buffer, start, kind->size, 12, 0, NULL, NULL),
            CL_INVALID_VALUE);
        ck_ok(clReleaseMemObject(buffer));
        release(image, below);
    }
}
END_TEST

START_TEST(maps_a_part) {
    SKIP_WITHOUT_IMAGES();
    for (size_t k = 0; k < COUNT(kinds); k++) {
        const struct kind *kind = &kinds[k];
        size_t origin[3], region[3], row = 0, slice = 0;
        cl_mem below;

        invent_content((unsigned)k);
        cl_mem image = make_image(kind, CL_MEM_COPY_HOST_PTR, content, &below);
        for (int i = 0; i < 3; i++) {
            origin[i] = kind->size[i] > 1 ? 2 : 0;
            region[i] = kind->size[i] > 3 ? kind->size[i] - 3 : 1;
        }
        unsigned char *mapped =
            ck_made(clEnqueueMapImage(queue, image, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, origin,
                                      region, &row, &slice, 0, NULL, NULL, &error));
        if (kind->type == CL_MEM_OBJECT_IMAGE1D_ARRAY)
            row = slice;
        if (!excused(POCL, "does not count maps of some kinds"))
            ck_assert_uint_eq(map_count(image), 1);
        for (size_t z = 0; z < region[2]; z++)
            for (size_t y = 0; y < region[1]; y++)
                for (size_t x = 0; x < region[0] * PIXEL; x++) {
                    size_t at = ((z + origin[2]) * kind->size[1] + y + origin[1]) * kind->size[0];
                    unsigned char *ours = content + (at + origin[0]) * PIXEL + x;
                    unsigned char *theirs = mapped + z * slice + y * row + x;
                    ck_assert_uint_eq(*theirs, *ours);
                    *ours = *theirs = (unsigned char)(*ours * 3 + 1);
                }
        ck_ok(clEnqueueUnmapMemObject(queue, image, mapped, 0, NULL, NULL));
        check_content(image, kind);
        ck_no_maps(image);
        release(image, below);
    }
}
END_TEST

static const struct {
    cl_image_format format;
    cl_float real[4];
    cl_int whole[4];
    size_t size;
    unsigned char bytes[16];
} colors[] = {
    {{CL_RGBA, CL_UNORM_INT8}, {0, 1, 0.5f, 0.2f}, {0}, 4, {0, 255, 128, 51}},
    {{CL_BGRA, CL_UNORM_INT8}, {0, 1, 0.5f, 2}, {0}, 4, {128, 255, 0, 255}},
    {{CL_RGBA, CL_SNORM_INT8}, {-1, 1, -2, 0}, {0}, 4, {129, 127, 129, 0}},
    {{CL_RGBA, CL_UNORM_INT16}, {0, 1, 1, 0}, {0}, 8, {0, 0, 255, 255, 255, 255, 0, 0}},
    {{CL_R, CL_FLOAT}, {1, 0, 0, 0}, {0}, 4, {0, 0, 0x80, 0x3f}},
    {{CL_RGBA, CL_HALF_FLOAT}, {1, -2, 0, 65504}, {0}, 8, {0, 0x3c, 0, 0xc0, 0, 0, 0xff, 0x7b}},
    {{CL_RGBA, CL_SIGNED_INT8}, {0}, {-128, 127, 5, -1}, 4, {128, 127, 5, 255}},
    {{CL_RG, CL_UNSIGNED_INT16}, {0}, {1, 65535, 0, 0}, 4, {1, 0, 255, 255}},
    {{CL_R, CL_SIGNED_INT32}, {0}, {-2, 0, 0, 0}, 4, {254, 255, 255, 255}},
};

static bool supported(const cl_image_format *format) {
    cl_image_format formats[256];
    cl_uint count = 0;
    ck_ok(clGetSupportedImageFormats(context, CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D,
                                     COUNT(formats), formats, &count));
    for (cl_uint i = 0; i < count && i < COUNT(formats); i++)
        if (memcmp(&formats[i], format, sizeof(*format)) == 0)
            return true;
    return false;
}

START_TEST(fills_with_a_color) {
    const struct kind kind = {CL_MEM_OBJECT_IMAGE2D, {12, 9, 1}};
    const size_t origin[3] = {3, 2, 0}, region[3] = {5, 4, 1};

    SKIP_WITHOUT_IMAGES();
    skip_on(POCL, "rounds colors towards zero, and does not clamp them");
    for (size_t c = 0; c < COUNT(colors); c++) {
        size_t size = colors[c].size;
        const void *color = colors[c].format.image_channel_data_type >= CL_SIGNED_INT8 &&
                                    colors[c].format.image_channel_data_type <= CL_UNSIGNED_INT32
                                ? (const void *)colors[c].whole
                                : colors[c].real;
        if (!supported(&colors[c].format))
            continue;
        invent_content((unsigned)c);
        cl_image_desc desc = describe(&kind);
        cl_mem image = ck_made(clCreateImage(context, CL_MEM_COPY_HOST_PTR, &colors[c].format,
                                             &desc, content, &error));
        ck_ok(clEnqueueFillImage(queue, image, color, origin, region, 0, NULL, NULL));
        read_all(image, &kind, seen);
        for (size_t i = 0; i < pixels(&kind) * size; i++) {
            size_t x = i / size % kind.size[0], y = i / size / kind.size[0];
            bool inside = x >= 3 && x < 8 && y >= 2 && y < 6;
            unsigned char wanted = inside ? colors[c].bytes[i % size] : content[i];
            ck_assert_msg(seen[i] == wanted, "color %zu: byte %zu is %u, expected %u", c, i,
                          seen[i], wanted);
        }
        ck_ok(clReleaseMemObject(image));
    }
}
END_TEST

static const cl_image_desc small = {
    .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 4, .image_height = 4};

START_TEST(refuses_bad_images) {
    const cl_image_format no_order = {0x1234, CL_UNSIGNED_INT8},
                          no_pair = {CL_INTENSITY, CL_UNSIGNED_INT8};
    unsigned char host[64];
    cl_image_desc desc = small;

    SKIP_WITHOUT_IMAGES();
    skip_on(POCL, "takes some of them and has other errors for others");
    ck_refused(clCreateImage(NULL, 0, &rgba8, &small, NULL, &error), CL_INVALID_CONTEXT);
    ck_refused(
        clCreateImage(context, CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, &rgba8, &small, NULL, &error),
        CL_INVALID_VALUE);
    ck_refused(clCreateImage(context, 0, NULL, &small, NULL, &error),
               CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
    ck_refused(clCreateImage(context, 0, &no_order, &small, NULL, &error),
               CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
    ck_refused(clCreateImage(context, 0, &no_pair, &small, NULL, &error),
               CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
    ck_refused(clCreateImage(context, 0, &rgba8, NULL, NULL, &error), CL_INVALID_IMAGE_DESCRIPTOR);
    ck_refused(clCreateImage(context, 0, &rgba8, &small, host, &error), CL_INVALID_HOST_PTR);
    ck_refused(clCreateImage(context, CL_MEM_USE_HOST_PTR, &rgba8, &small, NULL, &error),
               CL_INVALID_HOST_PTR);
    desc.image_row_pitch = 16;
    ck_refused(clCreateImage(context, 0, &rgba8, &desc, NULL, &error), CL_INVALID_IMAGE_DESCRIPTOR);
    desc.image_row_pitch = 15;
    ck_refused(clCreateImage(context, CL_MEM_COPY_HOST_PTR, &rgba8, &desc, host, &error),
               CL_INVALID_IMAGE_DESCRIPTOR);
    desc = small;
    desc.image_type = CL_MEM_OBJECT_BUFFER;
    ck_refused(clCreateImage(context, 0, &rgba8, &desc, NULL, &error), CL_INVALID_IMAGE_DESCRIPTOR);
    desc = small;
    desc.num_samples = 1;
    ck_refused(clCreateImage(context, 0, &rgba8, &desc, NULL, &error), CL_INVALID_IMAGE_DESCRIPTOR);
    desc = small;
    desc.image_width = 0;
    ck_refused(clCreateImage(context, 0, &rgba8, &desc, NULL, &error), CL_INVALID_IMAGE_SIZE);
    desc.image_width = get_info(size_t, clGetDeviceInfo, device, CL_DEVICE_IMAGE2D_MAX_WIDTH) + 1;
    ck_refused(clCreateImage(context, 0, &rgba8, &desc, NULL, &error), CL_INVALID_IMAGE_SIZE);
    ck_refused(clCreateImage2D(context, 0, &rgba8, 0, 4, 0, NULL, &error), CL_INVALID_IMAGE_SIZE);
    ck_refused(clCreateImage3D(context, 0, &rgba8, 4, 4, 0, 0, 0, NULL, &error),
               CL_INVALID_IMAGE_SIZE);
}
END_TEST

START_TEST(is_made_by_the_old_functions) {
    SKIP_WITHOUT_IMAGES();
    invent_content(3);
    cl_mem flat =
        ck_made(clCreateImage2D(context, CL_MEM_COPY_HOST_PTR, &rgba8, 8, 4, 0, content, &error));
    check_content(flat, &(struct kind){CL_MEM_OBJECT_IMAGE2D, {8, 4, 1}});
    cl_mem deep = ck_made(
        clCreateImage3D(context, CL_MEM_COPY_HOST_PTR, &rgba8, 8, 4, 3, 0, 0, content, &error));
    check_content(deep, &(struct kind){CL_MEM_OBJECT_IMAGE3D, {8, 4, 3}});
    ck_ok(clReleaseMemObject(flat));
    ck_ok(clReleaseMemObject(deep));
}
END_TEST

START_TEST(refuses_bad_transfers) {
    const size_t whole[3] = {4, 4, 1}, too_wide[3] = {5, 4, 1}, deep[3] = {4, 4, 2},
                 empty[3] = {4, 0, 1}, outside[3] = {1, 0, 0};
    const cl_image_format other = {CL_RGBA, CL_SIGNED_INT32};
    size_t row;

    SKIP_WITHOUT_IMAGES();
    skip_on(POCL, "takes empty regions, small pitches and more");
    cl_mem image = ck_made(clCreateImage(context, 0, &rgba8, &small, NULL, &error));
    cl_mem buffer = make_buffer(0, 64, NULL);
    cl_mem strange = ck_made(clCreateImage(context, 0, &other, &small, NULL, &error));
    cl_mem hidden =
        ck_made(clCreateImage(context, CL_MEM_HOST_NO_ACCESS, &rgba8, &small, NULL, &error));
#define READ(image, origin, region, row, slice, pointer)                                           \
    clEnqueueReadImage(queue, image, CL_TRUE, origin, region, row, slice, pointer, 0, NULL, NULL)
    ck_assert_cl(READ(NULL, start, whole, 0, 0, seen), CL_INVALID_MEM_OBJECT);
    ck_assert_cl(READ(buffer, start, whole, 0, 0, seen), CL_INVALID_MEM_OBJECT);
    ck_assert_cl(READ(image, NULL, whole, 0, 0, seen), CL_INVALID_VALUE);
    ck_assert_cl(READ(image, start, NULL, 0, 0, seen), CL_INVALID_VALUE);
    ck_assert_cl(READ(image, start, too_wide, 0, 0, seen), CL_INVALID_VALUE);
    ck_assert_cl(READ(image, outside, whole, 0, 0, seen), CL_INVALID_VALUE);
    ck_assert_cl(READ(image, start, deep, 0, 0, seen), CL_INVALID_VALUE);
    ck_assert_cl(READ(image, start, empty, 0, 0, seen), CL_INVALID_VALUE);
    ck_assert_cl(READ(image, start, whole, 15, 0, seen), CL_INVALID_VALUE);
    ck_assert_cl(READ(image, start, whole, 0, 0, NULL), CL_INVALID_VALUE);
    ck_assert_cl(READ(hidden, start, whole, 0, 0, seen), CL_INVALID_OPERATION);
    ck_assert_cl(READ(image, start, whole, 16, 64, seen), CL_INVALID_VALUE);
    ck_assert_cl(clEnqueueReadBuffer(queue, image, CL_TRUE, 0, 4, seen, 0, NULL, NULL),
                 CL_INVALID_MEM_OBJECT);
    ck_assert_cl(clEnqueueCopyImage(queue, image, strange, start, start, whole, 0, NULL, NULL),
                 CL_IMAGE_FORMAT_MISMATCH);
    ck_assert_cl(clEnqueueCopyImage(queue, image, image, start, start, whole, 0, NULL, NULL),
                 CL_MEM_COPY_OVERLAP);
    ck_assert_cl(clEnqueueFillImage(queue, image, NULL, start, whole, 0, NULL, NULL),
                 CL_INVALID_VALUE);
    ck_refused(clEnqueueMapImage(queue, image, CL_TRUE, CL_MAP_READ, start, whole, NULL, NULL, 0,
                                 NULL, NULL, &error),
               CL_INVALID_VALUE);
    ck_refused(clEnqueueMapImage(queue, hidden, CL_TRUE, CL_MAP_READ, start, whole, &row, NULL, 0,
                                 NULL, NULL, &error),
               CL_INVALID_OPERATION);
    ck_assert_cl(clGetImageInfo(buffer, CL_IMAGE_WIDTH, 0, NULL, NULL), CL_INVALID_MEM_OBJECT);
    ck_ok(clReleaseMemObject(image));
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseMemObject(strange));
    ck_ok(clReleaseMemObject(hidden));
}
END_TEST

/* The image and its buffer are the same bytes, whoever wrote them. */
START_TEST(shares_a_buffers_bytes) {
    const struct kind *kind = &kinds[5];
    const size_t bytes = kind->size[0] * PIXEL, one[3] = {1, 1, 1}, at[3] = {7, 0, 0};
    const cl_uint color[4] = {9, 8, 7, 6};
    cl_mem buffer;

    SKIP_WITHOUT_IMAGES();
    skip_on(POCL, "sometimes crashes on images over buffers");
    invent_content(5);
    cl_mem image = make_image(kind, CL_MEM_COPY_HOST_PTR, content, &buffer);
    content[0] ^= 0xff;
    ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, 1, content, 0, NULL, NULL));
    check_content(image, kind);
    ck_ok(clEnqueueFillImage(queue, image, color, at, one, 0, NULL, NULL));
    for (int i = 0; i < PIXEL; i++)
        content[7 * PIXEL + i] = (unsigned char)(9 - i);
    ck_ok(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, bytes, seen, 0, NULL, NULL));
    ck_assert_mem_eq(seen, content, bytes);
    ck_assert_cl(clEnqueueCopyImageToBuffer(queue, image, buffer, start, one, 0, 0, NULL, NULL),
                 CL_INVALID_MEM_OBJECT);
    /* A row pitch is allowed here, as there is memory that it can be about. */
    cl_mem again =
        ck_made(clCreateImage(context, 0, &rgba8,
                              &(cl_image_desc){.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER,
                                               .image_width = kind->size[0],
                                               .image_row_pitch = bytes,
                                               .buffer = buffer},
                              NULL, &error));
    check_content(again, kind);
    ck_ok(clReleaseMemObject(again));
    ck_refused(clCreateImage(context, 0, &rgba8,
                             &(cl_image_desc){.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER,
                                              .image_width = kind->size[0] + 1,
                                              .buffer = buffer},
                             NULL, &error),
               CL_INVALID_IMAGE_SIZE);
    release(image, buffer);
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        tells_what_it_is,
        lists_formats,
        copies_what_it_is_made_from,
        transfers_parts_with_pitches,
        works_in_the_programs_memory,
        copies_between_kinds,
        copies_to_and_from_buffers,
        maps_a_part,
        fills_with_a_color,
        refuses_bad_images,
        is_made_by_the_old_functions,
        refuses_bad_transfers,
        shares_a_buffers_bytes,
    };

    return test_main(argc, argv, tests, COUNT(tests));
}
