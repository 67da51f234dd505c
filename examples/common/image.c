/* SPDX-License-Identifier: MIT */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "check.h"
#include "image.h"

#ifdef HAVE_LIBPNG

#include <png.h>

bool image_supported(void) { return true; }

void image_write(const char *path, unsigned width, unsigned height, const uint8_t *rgb) {
    png_image image = {
        .version = PNG_IMAGE_VERSION, .width = width, .height = height, .format = PNG_FORMAT_RGB};
    if (!png_image_write_to_file(&image, path, 0, rgb, 0, NULL))
        die("%s: %s", path, image.message);
}

#else

bool image_supported(void) { return false; }

void image_write(const char *path, unsigned width, unsigned height, const uint8_t *rgb) {
    (void)width;
    (void)height;
    (void)rgb;
    die("%s: this build has no PNG support (configure found no libpng-dev)", path);
}

#endif
