/* SPDX-License-Identifier: MIT */
#include "memory/color.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Which of the color's components each channel in memory is; −1: no more channels. */
static const signed char *channels_of(cl_channel_order order) {
    static const signed char rgba[] = {0, 1, 2, 3}, bgra[] = {2, 1, 0, 3}, argb[] = {3, 0, 1, 2},
                             abgr[] = {3, 2, 1, 0}, rgb[] = {0, 1, 2, -1}, rg[] = {0, 1, -1},
                             ra[] = {0, 3, -1}, a[] = {3, -1}, r[] = {0, -1};
    switch (order) {
    case CL_RGBA:
    case CL_sRGBA:
        return rgba;
    case CL_BGRA:
    case CL_sBGRA:
        return bgra;
    case CL_ARGB:
        return argb;
    case CL_ABGR:
        return abgr;
    case CL_RGB:
    case CL_RGBx:
    case CL_sRGB:
        return rgb;
    case CL_RG:
        return rg;
    case CL_RA:
        return ra;
    case CL_A:
        return a;
    default: /* CL_R, CL_INTENSITY, CL_LUMINANCE, CL_DEPTH */
        return r;
    }
}

/* NaN becomes `low`. */
static float clamped(float value, float low, float high) {
    return value >= low ? (value <= high ? value : high) : low;
}

static uint32_t normalized(float value, float low, float scale) {
    return (uint32_t)(int32_t)lrintf(clamped(value, low, 1) * scale);
}

static int32_t saturated(int32_t value, int32_t low, int32_t high) {
    return value < low ? low : value > high ? high : value;
}

static uint16_t half_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    float size = fabsf(value);
    if (isnan(value))
        return sign | 0x7e00;
    if (size >= 65520.0f) /* rounds to infinity */
        return sign | 0x7c00;
    if (size < 0x1p-14f) /* denormal: a multiple of 2^-24 */
        return sign | (uint16_t)lrintf(size * 0x1p24f);
    /* A carry out of the fraction goes to the exponent, as it should. */
    uint32_t rest = bits & 0x1fff;
    uint32_t half = ((bits & 0x7fffffff) >> 13) - ((127 - 15) << 10);
    half += rest > 0x1000 || (rest == 0x1000 && half & 1);
    return sign | (uint16_t)half;
}

/* Linear to sRGB (8.3.1.4). */
static float gamma_of(float linear) {
    if (!(linear > 0))
        return 0;
    return linear < 0.0031308f ? 12.92f * linear : 1.055f * powf(linear, 1 / 2.4f) - 0.055f;
}

static bool is_gamma(cl_channel_order order) {
    return order == CL_sRGB || order == CL_sRGBA || order == CL_sBGRA;
}

/* Writes one channel; returns its bytes. */
static size_t put_channel(cl_channel_type type, const void *color, int component, bool gamma,
                          unsigned char *where) {
    float real = ((const float *)color)[component];
    int32_t integer = ((const int32_t *)color)[component];
    uint32_t natural = ((const uint32_t *)color)[component], value;
    size_t size = 1;
    if (gamma && component < 3)
        real = gamma_of(real);
    switch (type) {
    case CL_SNORM_INT8:
        value = normalized(real, -1, 127);
        break;
    case CL_UNORM_INT8:
        value = normalized(real, 0, 255);
        break;
    case CL_SIGNED_INT8:
        value = (uint32_t)saturated(integer, INT8_MIN, INT8_MAX);
        break;
    case CL_UNSIGNED_INT8:
        value = natural > UINT8_MAX ? UINT8_MAX : natural;
        break;
    case CL_SNORM_INT16:
        value = normalized(real, -1, 32767);
        size = 2;
        break;
    case CL_UNORM_INT16:
        value = normalized(real, 0, 65535);
        size = 2;
        break;
    case CL_SIGNED_INT16:
        value = (uint32_t)saturated(integer, INT16_MIN, INT16_MAX);
        size = 2;
        break;
    case CL_UNSIGNED_INT16:
        value = natural > UINT16_MAX ? UINT16_MAX : natural;
        size = 2;
        break;
    case CL_HALF_FLOAT:
        value = half_of(real);
        size = 2;
        break;
    default: /* 32 bits of any kind */
        value = natural;
        size = 4;
        break;
    }
    uint8_t one = (uint8_t)value;
    uint16_t two = (uint16_t)value;
    memcpy(where, size == 1 ? (void *)&one : size == 2 ? (void *)&two : &value, size);
    return size;
}

void tutti_color_pack(const cl_image_format *format, const void *color,
                      unsigned char pixel[TUTTI_LARGEST_PIXEL]) {
    const float *c = color;
    uint16_t packed16;
    uint32_t packed32;
    switch (format->image_channel_data_type) {
    case CL_UNORM_SHORT_565:
        packed16 = (uint16_t)(normalized(c[0], 0, 31) << 11 | normalized(c[1], 0, 63) << 5 |
                              normalized(c[2], 0, 31));
        memcpy(pixel, &packed16, sizeof(packed16));
        return;
    case CL_UNORM_SHORT_555:
        packed16 = (uint16_t)(normalized(c[0], 0, 31) << 10 | normalized(c[1], 0, 31) << 5 |
                              normalized(c[2], 0, 31));
        memcpy(pixel, &packed16, sizeof(packed16));
        return;
    case CL_UNORM_INT_101010:
        packed32 = normalized(c[0], 0, 1023) << 20 | normalized(c[1], 0, 1023) << 10 |
                   normalized(c[2], 0, 1023);
        memcpy(pixel, &packed32, sizeof(packed32));
        return;
    case CL_UNORM_INT_101010_2:
        packed32 = normalized(c[0], 0, 1023) << 22 | normalized(c[1], 0, 1023) << 12 |
                   normalized(c[2], 0, 1023) << 2 | normalized(c[3], 0, 3);
        memcpy(pixel, &packed32, sizeof(packed32));
        return;
    default:
        break;
    }
    const signed char *channels = channels_of(format->image_channel_order);
    for (int i = 0; i < 4 && channels[i] >= 0; i++)
        pixel += put_channel(format->image_channel_data_type, color, channels[i],
                             is_gamma(format->image_channel_order), pixel);
}
