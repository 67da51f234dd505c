/* SPDX-License-Identifier: MIT */
#ifndef EXAMPLES_IMAGE_H
#define EXAMPLES_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

/* Whether this build can write pictures (libpng was there). */
bool image_supported(void);

/* Writes 8-bit RGB pixels, row by row from the top, as a PNG file; exits if that fails. */
void image_write(const char *path, unsigned width, unsigned height, const uint8_t *rgb);

#endif
