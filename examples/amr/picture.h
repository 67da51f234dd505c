/* SPDX-License-Identifier: MIT */
#ifndef AMR_PICTURE_H
#define AMR_PICTURE_H

#include "tree.h"

/* Writes the density as a PNG file of `pixels` by `pixels` or a little less, patches outlined. */
void picture_write(const struct tree *tree, unsigned pixels, const char *path);

#endif
